"""The command line: one module per command, all alike."""
