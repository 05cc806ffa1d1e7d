"""The demo: five days of one account's credit, and one night of 25 hours, with workers that race, fail and are killed.

Everything is real: a ledger in a file, a table beside it, processes, signals. Each step says what it does and what it then
reads back from the database, and raises `NotAsClaimed` where that is not what was promised. `story` is told by `duly demo`;
`worker` is the process that does the crediting; `stage` is the ledger with what it takes to start processes and look.
"""
