"""Told: the one line that a log has of an attempt, with the same fields whoever worked it, in three forms.

No payload, no body, no message of an exception: of an error its type, or how a command ended. Nothing here writes, and
nothing imports `logging`: a wrapper that cron starts each minute prints these lines by itself.
"""

from __future__ import annotations

from duly.ledger import contracts, states
from duly.records import record
from duly.times import SECOND, duration_text
from duly.work.identity import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from duly.ledger.records import Claim
    from duly.schedule.keys import RunKey
    from duly.work.poke import Report

    Fields: TypeAlias = Mapping[str, str | int | float | None]

FORMS = ("text", "json", "logfmt")

ATTEMPT, MESSAGE, NOTE = "attempt", "message", "note"  # what a line may be of: its `event`

_OUTCOMES = {
    states.COMPLETED: "completed",
    states.FAILED: "failed",
    states.UNKNOWN: "unknown",
    states.OPEN: "released",
    states.RUNNING: "lost",
}


@record
class Account:
    """What is said of one attempt when it has ended.

    `outcome` is the attempt's: completed, failed, cancelled, unknown, released (nothing was begun) or lost (another attempt
    took the run over). `state` is what the run is then. `exit_code` is exec's, of a command.
    """

    event: str
    run: str
    job: str
    scope: str
    window: str
    attempt: int
    attempt_id: str
    trigger: str
    outcome: str
    state: str
    cause: str
    duration_seconds: float
    exit_code: int | None
    messages: int

    @property
    def is_good(self) -> bool:
        return self.state == states.COMPLETED


def account(
    key: RunKey,
    claim: Claim,
    state: str,
    cause: str,
    *,
    took: int,
    exit_code: int | None = None,
    messages: int = 0,
) -> Account:
    """The account of an attempt that ended. `took` is in microseconds."""
    outcome = "cancelled" if state == states.FAILED and cause == contracts.CANCELLED else _OUTCOMES[state]
    return Account(
        ATTEMPT,
        str(key),
        key.job,
        key.scope,
        "" if key.adhoc else key.middle,
        claim.number,
        uuid_text(claim.attempt_id),
        claim.trigger,
        outcome,
        state,
        "" if state == states.COMPLETED else cause,
        took / SECOND,
        exit_code,
        messages,
    )


def account_of(report: Report) -> Account:
    """The account of an attempt that a command made."""
    key, claim, state = report.key, report.claim, report.state
    return account(key, claim, state, report.cause, took=report.took, exit_code=report.code, messages=report.sent)


def fields_of(told: Account) -> Fields:
    """Its fields by name, in their order."""
    return {name: getattr(told, name) for name in Account.__match_args__}


# -- three forms --------------------------------------------------------------------------------------------------------


def in_words(told: Account) -> str:
    """As `credit:2026-09-13[UTC] attempt 1 failed: KeyError, 12ms, attempt 0193a7c2-…`. Pure."""
    word = "could not begin" if told.state == states.OPEN else told.outcome
    why = f": {told.cause}" if told.cause else ""
    took = duration_text(round(told.duration_seconds * 1_000) * 1_000)
    return f"{told.run} attempt {told.attempt} {word}{why}, {took}, {told.attempt_id}"


def line(form: str, level: str, at: float, fields: Fields) -> str:
    """One line of a log, as JSON or logfmt, that begins with its time (in seconds since 1970) and its level. Pure."""
    from datetime import UTC, datetime

    time = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"json": as_json, "logfmt": as_logfmt}[form]({"time": time, "level": level, **fields})


def as_json(fields: Fields) -> str:
    """One JSON object. Pure."""
    from json import dumps  # of most wrappers nobody asks for it

    return dumps(dict(fields), ensure_ascii=False)


def as_logfmt(fields: Fields) -> str:
    """`name=value` with blanks between; what is not known is left out, and what holds a blank is quoted. Pure."""
    return " ".join(f"{name}={_plain(value)}" for name, value in fields.items() if value is not None)


def _plain(value: str | int | float | None) -> str:
    text = str(value)
    if text and not any(sign in ' ="\\' or not sign.isprintable() for sign in text):
        return text
    shown = "".join(_shown(sign) for sign in text)
    return f'"{shown}"'


def _shown(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else ascii(sign)[1:-1]
