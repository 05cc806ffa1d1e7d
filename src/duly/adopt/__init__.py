"""Adoption: schedules that run today, read where they stand, and what they become under duly.

The deal: what is proposed fires at the instants at which the original fires, or is not proposed; what was not carried over is
said, with file and line and the reason. The original stays where it is, wrapped in `duly exec`, so that whatever triggers it
goes on doing so. Nothing is written before all of it is known, and what was written is taken back by `undo`.

One file for each source, all alike (`crontab`, `systemd`, `kubernetes`): text in, a `Reading` out, and the edit that takes the
names of its jobs. What they share: `found` (the records), `propose` (names, entries, changes), `declare` (entries of
duly.toml), `shell` (a command in a line of a shell), `files` (what is written, and how).
"""
