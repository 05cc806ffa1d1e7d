"""Occurrences: what a schedule yields. The nominal is identity, the rest is what the zone's rules make of it today."""

from __future__ import annotations

from duly.records import record


@record
class Occurrence:
    """One owed period or fire.

    `nominal` is 2 × the civil second that the schedule names, + 1 for the second pass of a repeated hour. `start`,
    `end` and `due` are instants (microseconds, UTC): the run answers for [start, end) and may be taken from `due` on.
    `off` says why a window is not to be worked (a day off of the schedule's calendar), and is empty for most.
    `resolution` says how the nominal met the zone: `exact`, `gap-shifted` (its wall time does not exist), `fold-first`
    or `fold-second` (its wall time exists twice).
    """

    nominal: int
    start: int
    end: int
    due: int
    resolution: str
    off: str = ""
