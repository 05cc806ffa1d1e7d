"""duly: every scheduled period, done once, and on the record."""

__version__ = "0.1.0.dev0"
