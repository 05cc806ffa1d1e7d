"""The store: all database I/O. It drives the ledger's operations in transactions, its own or a caller's."""

from __future__ import annotations

SCHEMA = 1  # the newest schema that this release knows; it writes a ledger whose min_writer is at most this
BUSY_SECONDS = 10.0  # how long a write waits for its turn
