"""What duly costs, measured: `python -m bench` runs every suite of this room and makes one report; each also runs alone."""
