"""Documents: what is seen, for programs. One view a file; their shapes are stable, and the same at every door."""
