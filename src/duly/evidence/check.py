"""Check: did the period complete? The answer is an exit code, for monitors that ask nothing else.

`complete` (skipped counts, with a note, unless strict) · `not complete` (failed, unknown, missing, or late whatever it is
doing) · `cannot tell` (pruned, or never owed) · `not yet` (coming, due, running, retrying or undelivered, and not late; what
no relay will deliver by itself is not complete).
"""

from __future__ import annotations

from itertools import islice

from duly.evidence import verdict
from duly.evidence.verdict import Verdict, Window, windows_of_line
from duly.ledger.ask import now
from duly.ledger.records import Known
from duly.ledger.spells import Placed, placed_after, spells_of_line

COMPLETE, NOT_COMPLETE, CANNOT_TELL, NOT_YET = 0, 1, 2, 3
IN_WORDS = {COMPLETE: "complete", NOT_COMPLETE: "not complete", CANNOT_TELL: "cannot tell", NOT_YET: "not yet"}
_WORST_FIRST = (NOT_COMPLETE, CANNOT_TELL, NOT_YET, COMPLETE)


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


def worst(answers: list[int]) -> int:
    """The one answer for several lines: the first of not complete, cannot tell, not yet, complete."""
    return min(answers, key=_WORST_FIRST.index)


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
