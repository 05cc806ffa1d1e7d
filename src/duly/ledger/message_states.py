"""The states of a message and what may change them: one table, as that of the runs.

It is rendered into the guards of the SQL (`deliver`, `messages`), walked by the tests against the real databases, and drawn in
docs/states.md. A transition that is not in it does not exist.
"""

from __future__ import annotations

PENDING = "pending"  # surely not delivered, and to be sent
SENDING = "sending"  # an attempt has it
DELIVERED = "delivered"
UNKNOWN = "unknown"  # an attempt may have delivered it: sent again only while its key is remembered
REFUSED = "refused"  # the receiver will not have it
DEAD = "dead"  # surely not sent, too often
SKIPPED = "skipped"  # a person said that it is not to be sent

STATES = (PENDING, SENDING, DELIVERED, UNKNOWN, REFUSED, DEAD, SKIPPED)
SETTLED = (DELIVERED, SKIPPED)  # for ever: nothing leads out of these
UNSETTLED = (PENDING, SENDING, UNKNOWN, REFUSED, DEAD)

ABSENT = "absent"

# event → {state before: state after}
TRANSITIONS: dict[str, dict[str, str]] = {
    "send": {ABSENT: PENDING},
    "begin": {PENDING: SENDING},
    "begin_again": {UNKNOWN: SENDING},  # with the same key, while the receiver remembers it
    "deliver": {SENDING: DELIVERED, UNKNOWN: DELIVERED},  # from unknown: by the attempt itself, after its lease
    "fall_back": {
        SENDING: PENDING,
        UNKNOWN: PENDING,
    },  # this sending surely had no effect, and none before it is in doubt
    "die": {SENDING: DEAD, UNKNOWN: DEAD},  # so, once too often
    "refuse": {SENDING: REFUSED, UNKNOWN: REFUSED},
    "doubt": {SENDING: UNKNOWN, UNKNOWN: UNKNOWN},  # by the attempt itself
    "lapse": {SENDING: UNKNOWN},  # its relay is gone, and nobody can know what it did
    "restore": dict.fromkeys((ABSENT, PENDING, SENDING, UNKNOWN), UNKNOWN),  # the ledger forgot what happened since
    "resolve_done": {UNKNOWN: DELIVERED},  # by a probe or a person
    "resolve_not_done": {UNKNOWN: PENDING},
    "probe": {UNKNOWN: UNKNOWN},  # nobody can tell yet
    "retry": {PENDING: PENDING, REFUSED: PENDING, DEAD: PENDING},
    "skip": {PENDING: SKIPPED, REFUSED: SKIPPED, DEAD: SKIPPED},
}


def sources(event: str) -> tuple[str, ...]:
    """The states, other than absent, from which the event is allowed."""
    return tuple(before for before in TRANSITIONS[event] if before != ABSENT)


def target(event: str) -> str:
    """The one state that the event leads to."""
    (after,) = set(TRANSITIONS[event].values())
    return after


def allowed(event: str, before: str) -> bool:
    """Whether the event may happen to a message in this state."""
    return before in TRANSITIONS[event]
