"""The store: all database I/O. It drives the ledger's operations in transactions, its own or a caller's."""
