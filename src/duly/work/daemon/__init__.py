"""The daemon: opens what comes due, and works it, for any number of jobs and beside any number of others of its kind.

It holds no state that matters and leads nobody: whatever it does is an ordinary poke of a line, as `duly exec` makes one,
and the ledger decides. `watch` looks at the ledger and gives lines to `crew`, by `shares`; `systemd` tells systemd.
"""
