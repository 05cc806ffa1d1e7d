"""Named: one run that a caller names, rather than what is owed.

A named window may lie before the line's start, and ignores a retry time; it does not ignore its due time, a skip, or a
failure that waits for a person. An ad-hoc run lies outside the schedule and never counts for completeness.
"""

from __future__ import annotations

from duly.errors import Misuse, Refused, UnknownRun, WindowInvalid
from duly.ledger.address import Addressed, by_key, by_window, find_revision, key_of
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer, Known, NotDue, Run
from duly.ledger.register import Declaration, adhoc_nominal, declare, find, is_complete, refusal_of, series_of
from duly.ledger.take import look, look_first, take
from duly.records import record
from duly.schedule.keys import RunKey, check_adhoc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from duly.ledger.records import Series

    T = TypeVar("T")
    Answer: TypeAlias = Claim | AlreadyCompleted | Busy | NotDue | Refused | Misuse


@record
class Named:
    """How a named run answered, with its key and, where it was claimed, its row."""

    known: Known
    key: RunKey
    answer: Answer
    row: Run | None


def about(key: RunKey, answer: T) -> T:
    """The answer; a refusal says which run it is about, and where to look."""
    if isinstance(answer, Refused):
        answer.args = (f"{key}: {answer}",)
        answer.next_step = answer.next_step or f"duly explain {words_of(key)}"
    return answer


def words_of(key: RunKey) -> str:
    """JOB WINDOW, as a person would type it in the next command; an ad-hoc run has only its key."""
    scope = f" --scope {key.scope}" if key.scope else ""
    return str(key) if key.adhoc else f"{key.job} {key.middle}{scope}"


async def peek_window(declared: Declaration, window: str, claimer: Claimer) -> Named | Refused | Misuse | None:
    """What a plain look can say of a named window: complete, or held. None where a claim has to be tried."""
    known = await find(declared.job, declared.scope)
    refusal = refusal_of(known, declared)
    if refusal is not None:
        return refusal
    if known is None or not is_complete(known, declared):
        return None
    addressed = await _named(declared, window)
    answer = await look_first(addressed.run, claimer)
    return None if answer is None else Named(known, addressed.key, answer, addressed.row)


async def take_window(declared: Declaration, window: str, claimer: Claimer) -> Named | Refused | Misuse:
    """Register what is new, and take the window that is named."""
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    addressed = await _named(declared, window)
    known = addressed.known
    assert known.line is not None
    series = known.series
    if series is None or series.id != addressed.run.series:
        return WindowInvalid(f"{addressed.key} lies in a series that the schedule in force no longer counts by")
    answer = await take(known, series, addressed.occurrence, addressed.run, claimer)
    row = await look(addressed.run) if isinstance(answer, Claim) else addressed.row
    return Named(known, addressed.key, about(addressed.key, answer), row)


async def peek_adhoc(declared: Declaration, adhoc: str, claimer: Claimer) -> Named | Refused | Misuse | None:
    """What a plain look can say of a run outside the schedule; as `peek_window`."""
    known = await find(declared.job, declared.scope)
    if known is None or not is_complete(known, declared):
        return None
    try:
        addressed = await by_key(RunKey(declared.job, declared.scope, "adhoc", 0, "", None, adhoc))
    except UnknownRun:
        return None
    answer = await look_first(addressed.run, claimer)
    return None if answer is None else Named(known, addressed.key, answer, addressed.row)


async def _named(declared: Declaration, window: str) -> Addressed:
    return await by_window(declared.job, declared.scope, window)


async def take_key(key: RunKey, declared: Declaration, claimer: Claimer) -> Named | Refused | Misuse:
    """Take the run of a key. A job never seen before is registered without a schedule."""
    if key.adhoc:
        return await take_adhoc(declared, key.adhoc, claimer, revision=key.revision)
    known = await find(key.job, key.scope)
    if known is not None and known.version is not None:
        addressed = await by_key(key)
        assert known.line is not None
        assert known.series is not None
        answer = await take(known, known.series, addressed.occurrence, addressed.run, claimer)
        return Named(known, addressed.key, about(addressed.key, answer), await look(addressed.run))
    registered = await declare(declared, unscheduled=True)
    if isinstance(registered, (Refused, Misuse)):
        return registered
    assert registered.line is not None
    series = await series_of(registered.line.id, key.zone, key.grain)
    return await _take_placed(registered, series, key.nominal, key.revision, claimer)


async def take_adhoc(
    declared: Declaration, adhoc: str, claimer: Claimer, *, revision: int | None = None
) -> Named | Refused | Misuse:
    """Take a run outside the schedule, under an id that a retry passes back. Raises `NameInvalid` for one that is none."""
    check_adhoc(adhoc)
    known = await declare(declared, unscheduled=True)
    if isinstance(known, (Refused, Misuse)):
        return known
    assert known.line is not None
    series = await series_of(known.line.id, "", "adhoc")
    return await _take_placed(known, series, await adhoc_nominal(series, adhoc), revision, claimer)


async def _take_placed(known: Known, series: Series, nominal: int, revision: int | None, claimer: Claimer) -> Named:
    """Take a run whose series and nominal are known."""
    assert known.line is not None
    run, _ = await find_revision(series, nominal, revision)
    answer = await take(known, series, None, run, claimer)
    key = await key_of(run)
    return Named(known, key, about(key, answer), await look(run))
