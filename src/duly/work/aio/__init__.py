"""Work in an event loop: the twins of `work`, where whatever touches the ledger is awaited. Public names are in `duly.aio`."""
