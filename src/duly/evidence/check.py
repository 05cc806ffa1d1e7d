"""Check: did the period complete? The answer is an exit code, for monitors that ask nothing else.

`complete` (skipped counts, with a note, unless strict) · `not complete` (failed, unknown, missing, or late whatever it is
doing) · `cannot tell` (pruned, or never owed) · `not yet` (coming, due, running, retrying or undelivered, and not late; what
no relay will deliver by itself is not complete). Of several windows, and of several lines, the worst answers.
"""

from __future__ import annotations

from itertools import islice

from duly.evidence import verdict
from duly.evidence.next import Range, parse_range
from duly.evidence.verdict import Verdict, Window, lines, windows_of_line
from duly.ledger.ask import now
from duly.ledger.records import Known
from duly.ledger.spells import Placed, Spell, placed_after, spells_of_line, tiles_after
from duly.records import record, replace
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COMPLETE, NOT_COMPLETE, CANNOT_TELL, NOT_YET = 0, 1, 2, 3
IN_WORDS = {COMPLETE: "complete", NOT_COMPLETE: "not complete", CANNOT_TELL: "cannot tell", NOT_YET: "not yet"}
_WORST_FIRST = (NOT_COMPLETE, CANNOT_TELL, NOT_YET, COMPLETE)

# How many windows of a range are looked at, of all lines together: a year of hours has 8,760.
LOOK_AT_MOST = 20_000


def answer_of(said: Verdict, *, strict: bool = False) -> int:
    """The code of a verdict. Pure. `strict`: a skipped window is not complete."""
    match said.word:
        case verdict.COMPLETE:
            return COMPLETE
        case verdict.SKIPPED:
            return NOT_COMPLETE if strict else COMPLETE
        case verdict.PRUNED | verdict.NOT_OWED:
            return CANNOT_TELL
        case verdict.UNKNOWN | verdict.FAILED | verdict.MISSING | verdict.LATE:
            return NOT_COMPLETE
    return NOT_COMPLETE if said.late or said.stuck else NOT_YET


def answer_for(window: Window, *, strict: bool = False) -> int:
    """The code of a window. Pure. A day that the calendar has off was skipped by nobody, so that `strict` lets it pass."""
    is_off = window.occurrence is not None and bool(window.occurrence.off)
    return answer_of(window.verdict, strict=strict and not is_off)


def worst(answers: list[int]) -> int:
    """The one answer for several windows or lines: the first of not complete, cannot tell, not yet, complete."""
    return min(answers, key=_WORST_FIRST.index)


@record
class Checked:
    """The windows of a line that were asked for, judged, in order of time; `more` if others were not looked at."""

    known: Known
    windows: list[Window]
    more: bool = False

    def answers(self, *, strict: bool = False) -> list[int]:
        """The answer for each window, and for what was not looked at."""
        unseen = self.more or not self.windows
        return [answer_for(window, strict=strict) for window in self.windows] + [CANNOT_TELL] * unseen


async def check_range(name: str, scope: str | None, text: str) -> list[Checked]:
    """The windows of a half-open range, of a job's lines or of one, each meant in its own wall clock.

    An end that is left open is now: what has come due is judged, and nothing that is to come. What was not owed cannot be
    told, with two exceptions: a tenant who came later says nothing of days that others owed, and a look back (`-7d..`) goes
    no further than the line. Raises `WindowInvalid`.
    """
    instant = await now()
    known = await lines(name, scope)
    at_most = max(1, LOOK_AT_MOST // max(1, len(known)))
    found = [await _within(each, text, instant, at_most) for each in known]
    owed = {_name(w) for each in found for w in each.windows if w.verdict.word != verdict.NOT_OWED}
    looks_back = text.lstrip().startswith("-")

    def is_told(window: Window) -> bool:
        return window.verdict.word != verdict.NOT_OWED or not (looks_back or _name(window) in owed)

    kept = [replace(each, windows=list(filter(is_told, each.windows))) for each in found]
    return [each for each in kept if each.windows or each.more] or kept


def _name(window: Window) -> tuple[str, str, int]:
    return window.key.zone, window.key.grain, window.run.nominal


async def _within(known: Known, text: str, instant: int, at_most: int) -> Checked:
    spells = await spells_of_line(known)
    wanted = parse_range(text, spells[-1].schedule.zone, instant)
    begins = 0 if known.line is None else known.line.starts or 0
    placed = list(islice(_tiles_within(spells, wanted, begins, instant), at_most + 1))
    windows = await windows_of_line(known, placed[:at_most], instant)
    return Checked(known, windows, len(placed) > at_most)


def _tiles_within(spells: list[Spell], wanted: Range, begins: int, instant: int) -> Iterator[Placed]:
    """The windows with a nominal in a range, in order of their bounds: a calendar may have them due in another."""
    # No zone is further than a day from UTC, and a repeated hour goes back by less: two days are enough either way.
    since = begins - 1 if wanted.begin is None else wanted.begin * SECOND - 2 * DAY
    for placed in tiles_after(spells, since):
        occurrence = placed.occurrence
        civil = occurrence.nominal >> 1
        if wanted.end is None and occurrence.start > instant:
            return
        if wanted.end is not None and civil >= wanted.end + 2 * 86_400:
            return
        is_asked = (wanted.begin is None or civil >= wanted.begin) and (wanted.end is None or civil < wanted.end)
        if is_asked and (wanted.end is not None or occurrence.due <= instant):
            yield placed


async def newest_due(known: Known) -> Window | None:
    """The newest window of a line that has come due and is owed, judged; before its first, the one that is coming.

    Of a line that has ended the last that was owed: the record of a retired scope is not made good by its retirement.
    """
    assert known.line is not None
    instant = await now()
    spells = await spells_of_line(known)
    # The newest in time, which a calendar may have made due before others.
    by = known.line.owed_by(instant)
    newest = [(spell, next(spell.before(by), None)) for spell in reversed(spells)]
    past = (Placed(spell, occurrence) for spell, occurrence in newest if occurrence is not None)
    begins = max(instant, (known.line.starts or 0) - 1)
    for placed in (past, placed_after(spells, begins)):
        for window in await windows_of_line(known, list(islice(placed, 1)), instant):
            if window.verdict.word != verdict.NOT_OWED:
                return window
    return None


def has_begun(known: Known, window: Window | None, instant: int) -> bool:
    """Whether a line has anything to say yet, or ever had: not one that starts later, nor one that ended before. Pure."""
    assert known.line is not None
    if window is None:
        return known.line.ends is None
    return known.line.starts is None or known.line.starts <= instant
