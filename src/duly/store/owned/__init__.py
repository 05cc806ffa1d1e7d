"""Owned transactions: `run.tx`, a real connection of the driver's, which cannot end what duly will commit."""
