"""One migration for each step: a copy of its neighbour with another number."""
