"""The states of a backfill and what may change them: one table, as that of the runs.

It is rendered into the guards of the SQL (`backfill`), and walked by the tests. A transition that is not in it does not
exist.
"""

from __future__ import annotations

ACTIVE = "active"  # its windows are worked
PAUSED = "paused"  # a person holds it
STOPPED = "stopped"  # too many of its windows failed
CANCELLED = "cancelled"
DONE = "done"

STATES = (ACTIVE, PAUSED, STOPPED, CANCELLED, DONE)
LIVE = (ACTIVE, PAUSED, STOPPED)  # it owes its windows, and holds the horizon

# event → {state before: state after}
TRANSITIONS: dict[str, dict[str, str]] = {
    "pause": {ACTIVE: PAUSED},
    "stop": {ACTIVE: STOPPED},
    "resume": {PAUSED: ACTIVE, STOPPED: ACTIVE},
    "cancel": {ACTIVE: CANCELLED, PAUSED: CANCELLED, STOPPED: CANCELLED},
    "finish": {ACTIVE: DONE},
}


def sources(event: str) -> tuple[str, ...]:
    """The states from which the event is allowed."""
    return tuple(TRANSITIONS[event])


def target(event: str) -> str:
    """The one state that the event leads to."""
    (after,) = set(TRANSITIONS[event].values())
    return after


def ors(column: str, names: tuple[str, ...]) -> str:
    """Being in one of some states, written out as the index has it."""
    return "(" + " or ".join(f"{column} = '{name}'" for name in names) + ")"
