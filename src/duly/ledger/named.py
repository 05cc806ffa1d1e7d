"""Named: one run that a caller names, rather than what is owed.

A named window may lie before the line's start, and ignores a retry time; it does not ignore its due time, a skip, or a
failure that waits for a person. An ad-hoc run lies outside the schedule and never counts for completeness.
"""

from __future__ import annotations

from duly.errors import KeyInvalid, Misuse, Refused, ScheduleError, UnknownRun, WindowInvalid
from duly.ledger.address import by_key, find_revision, key_of, other_series, refuse_off_grid, window_in
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer, Known, NotDue, Run
from duly.ledger.register import Declaration, adhoc_nominal, declare, find, is_complete, refused, series_of
from duly.ledger.spells import find_nominal, known_by, spells_of
from duly.ledger.take import answer_first, take
from duly.records import record
from duly.schedule.keys import RunKey, check_adhoc
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from duly.ledger.records import Series
    from duly.schedule.occurrence import Occurrence

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
        answer.next_step = answer.next_step or step("explain", key)
    return answer


_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/@%+=,")


def quoted(text: str) -> str:
    """A word for a shell: scopes are names of tenants, and a next step is pasted (POSIX shell, 2.2.2)."""
    if text and text[0] != "-" and _PLAIN.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def words_of(key: RunKey) -> str:
    """JOB WINDOW, as a person would type it in the next command; an ad-hoc run has only its key."""
    scope = f" --scope {quoted(key.scope)}" if key.scope else ""
    return quoted(str(key)) if key.adhoc else f"{key.job} {key.middle}{scope}"


# What a verb wants to be told besides the run. Only a person knows it: they write it in the place of what stands here, and no
# command takes it as it stands.
TO_FILL_IN = "…"
EITHER = "'done|not-done'"
_TO_SAY = {
    **dict.fromkeys(("retry", "skip", "unskip", "reopen", "cancel"), f"--reason '{TO_FILL_IN}'"),
    "resolve": f"--as {EITHER} --evidence '{TO_FILL_IN}'",
}


def to_say(verb: str) -> str:
    """The flags that a verb wants, for whoever types it next; empty where it wants none."""
    return _TO_SAY.get(verb, "")


def step(verb: str, key: RunKey) -> str:
    """The command line that does `verb` to a run, as it is printed for a person to type."""
    return " ".join(filter(None, (f"duly {verb} {words_of(key)}", to_say(verb))))


async def peek_window(declared: Declaration, window: str, claimer: Claimer) -> Named | Refused | Misuse | None:
    """What a plain look can say of a named window: complete, or held. None where a claim has to be tried."""
    known = await find(declared.job, declared.scope)
    refusal = await refused(known, declared)
    if refusal is not None:
        return refusal
    if known is None or not is_complete(known, declared):
        return None
    addressed = await window_in(known, window)
    answer = await answer_first(addressed.row, claimer)
    return None if answer is None else Named(addressed.known, addressed.key, answer, addressed.row)


async def take_window(declared: Declaration, window: str, claimer: Claimer) -> Named | Refused | Misuse:
    """Register what is new, and take the window that is named."""
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    addressed = await window_in(known, window)
    known = addressed.known
    assert known.series is not None
    answer = await take(known, known.series, addressed.occurrence, addressed.run, addressed.row, claimer)
    row = answer.row if isinstance(answer, Claim) else addressed.row
    return Named(known, addressed.key, about(addressed.key, answer), row)


async def peek_adhoc(declared: Declaration, adhoc: str, claimer: Claimer) -> Named | Refused | Misuse | None:
    """What a plain look can say of a run outside the schedule; as `peek_window`."""
    known = await find(declared.job, declared.scope)
    if known is None or not is_complete(known, declared):
        return None
    try:
        addressed = await by_key(adhoc_key(declared, adhoc))
    except UnknownRun:
        return None
    answer = await answer_first(addressed.row, claimer)
    return None if answer is None else Named(known, addressed.key, answer, addressed.row)


@record
class Place:
    """Where a key's run lies: its series, its nominal, and the occurrence of the schedule, if it has one.

    `known` is what is known by that series.
    """

    known: Known
    series: Series
    nominal: int
    occurrence: Occurrence | None


async def place_of(known: Known, key: RunKey) -> Place:
    """The place of a key, checked against the schedule where one is known; its series is made if it is new.

    What lies below the horizon is refused as that, by whoever would open it. Raises `WindowInvalid` for a zone or grain
    that the schedule never had, and for a nominal off its grid.
    """
    assert known.line is not None
    if key.adhoc:
        series = await series_of(known.line.id, "", "adhoc")
        return Place(known, series, await adhoc_nominal(series, key.adhoc), None)
    if known.version is None:
        check_zone(key)
        return Place(known, await series_of(known.line.id, key.zone, key.grain), key.nominal, None)
    in_series = await known_by(known, key.zone, key.grain)
    if in_series is None or in_series.series is None:
        raise WindowInvalid(other_series(known, key))
    spells = await spells_of(in_series)
    occurrence = find_nominal(spells, key.nominal)
    if occurrence is None and key.nominal >= in_series.series.horizon:
        await refuse_off_grid(in_series, key)
    return Place(in_series, in_series.series, key.nominal, occurrence)


def check_zone(key: RunKey) -> None:
    """Raise `KeyInvalid` for a zone that does not exist: misspelt, it would be another identity."""
    try:
        Zone(key.zone)
    except ScheduleError as e:
        raise KeyInvalid(f"zone: {e} (in {str(key)!r})") from e


async def take_key(key: RunKey, declared: Declaration, claimer: Claimer) -> Named | Refused | Misuse:
    """Take the run of a key. A job never seen before is registered without a schedule."""
    known = await declare(declared, unscheduled=True)
    if isinstance(known, (Refused, Misuse)):
        return known
    place = await place_of(known, key)
    run, seen = await find_revision(place.series, place.nominal, key.revision)
    answer = await take(place.known, place.series, place.occurrence, run, seen, claimer)
    named = await key_of(run)
    row = answer.row if isinstance(answer, Claim) else seen
    return Named(place.known, named, about(named, answer), row)


async def take_adhoc(declared: Declaration, adhoc: str, claimer: Claimer) -> Named | Refused | Misuse:
    """Take a run outside the schedule, under an id that a retry passes back. Raises `NameInvalid` for one that is none."""
    check_adhoc(adhoc)
    return await take_key(adhoc_key(declared, adhoc), declared, claimer)


def adhoc_key(declared: Declaration, adhoc: str) -> RunKey:
    """The key of a run outside the schedule."""
    return RunKey(declared.job, declared.scope, "adhoc", 0, "", None, adhoc)
