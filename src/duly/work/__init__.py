"""Work: attempts being made, by functions and by commands."""
