"""The states of a run and what may change them: one table.

The table is rendered into the guards of the SQL (`ask.Statement`), walked by the tests against the real database, and
drawn as the picture in docs/states.md. A transition that is not in it does not exist.
"""

from __future__ import annotations

OPEN = "open"
RUNNING = "running"
COMPLETED = "completed"
FAILED = "failed"
UNKNOWN = "unknown"
SKIPPED = "skipped"
REPLACED = "replaced"

STATES = (OPEN, RUNNING, COMPLETED, FAILED, UNKNOWN, SKIPPED, REPLACED)
SETTLED = (COMPLETED, SKIPPED, REPLACED)
UNSETTLED = (OPEN, RUNNING, FAILED, UNKNOWN)

ABSENT = "absent"  # no row: the window was never opened
AS_BEFORE = "as before"  # unskip: what the run was when it was skipped

# event → {state before: state after}
TRANSITIONS: dict[str, dict[str, str]] = {
    "open": {ABSENT: OPEN},
    "take": {ABSENT: RUNNING, OPEN: RUNNING, FAILED: RUNNING},
    "take_over": {RUNNING: RUNNING},  # the holder is gone and its contract allows; the old attempt ends as lost
    "renew": {RUNNING: RUNNING, UNKNOWN: RUNNING},  # from unknown: by the same attempt, while its line still notes it
    "release": {RUNNING: OPEN},
    "complete": {RUNNING: COMPLETED, UNKNOWN: COMPLETED},
    "once": {ABSENT: COMPLETED, OPEN: COMPLETED, FAILED: COMPLETED, RUNNING: COMPLETED},  # running: as for take_over
    "fail": {RUNNING: FAILED, UNKNOWN: FAILED},
    "doubt": {RUNNING: UNKNOWN},  # by the attempt itself
    "lapse": {RUNNING: UNKNOWN},  # the holder is gone and nobody can know what it did
    "lose": {RUNNING: FAILED},  # the holder is gone and nothing happened; retry now
    "restore": dict.fromkeys((OPEN, FAILED, RUNNING, UNKNOWN), UNKNOWN),  # the ledger forgot what happened since
    "resolve_done": {UNKNOWN: COMPLETED},
    "resolve_not_done": {UNKNOWN: FAILED},
    "retry": {FAILED: FAILED},
    "cancel": {RUNNING: RUNNING},  # its attempt is asked to stop; how it ends is the attempt's word, or its contract's
    "skip": {ABSENT: SKIPPED, OPEN: SKIPPED, FAILED: SKIPPED},
    "unskip": {SKIPPED: AS_BEFORE},
    "reopen": {COMPLETED: REPLACED},  # and the next revision is open
}


def sources(event: str) -> tuple[str, ...]:
    """The states, other than absent, from which the event is allowed."""
    return tuple(before for before in TRANSITIONS[event] if before != ABSENT)


def target(event: str) -> str:
    """The one state that the event leads to from any state with a row."""
    (after,) = {after for before, after in TRANSITIONS[event].items() if before != ABSENT}
    return after


def allowed(event: str, before: str) -> bool:
    """Whether the event may happen to a run in this state."""
    return before in TRANSITIONS[event]


def picture(table: dict[str, dict[str, str]] = TRANSITIONS) -> str:
    """The table, or another like it, as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for event, moves in table.items():
        word = event.replace("_", " ")
        for before, after in moves.items():
            start = "[*]" if before == ABSENT else before
            ends = (OPEN, FAILED) if after == AS_BEFORE else (after,)
            lines += [f"    {start} --> {end}: {word}" for end in ends]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page of documentation on states: `python -m duly.ledger.states > docs/states.md`."""
    from duly.ledger import message_states

    return f"""# The states of a run, and of a message

Made from the one table of transitions, `duly/ledger/states.py`, which the SQL and the tests are made from too. Change the
table, then run `python -m duly.ledger.states > docs/states.md`.

```mermaid
{picture()}```

*Settled*: {", ".join(SETTLED)}. Everything else is owed until it is settled. A run that never was opened has no row; it
is where `[*]` stands.

## The states of a message

Made from `duly/ledger/message_states.py`, in the same way. What each means for who reads it: [the outbox](outbox.md).

```mermaid
{picture(message_states.TRANSITIONS)}```

*Settled*: {", ".join(message_states.SETTLED)}. A run with messages is complete when all of them are settled.
"""


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
