"""Retire: a job of which nothing more comes due, and the way back.

Its lines end, all at the same instant, and what was owed of them before stays owed. Each remembers the end that it had by
itself, so that taking the retirement back brings back no scope that had left before.
"""

from __future__ import annotations

from duly.errors import NotAllowed, UnknownJob
from duly.ledger.ask import Statement, count, now, one
from duly.ledger.ends import SET_END, Ended, end_line, hold_job, resume_line
from duly.ledger.events import tell
from duly.ledger.records import Known, Line
from duly.ledger.register import find
from duly.ledger.roster import bound_of, check_bounds
from duly.ledger.scopes import scopes_of
from duly.ledger.take import hold_line
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.resolve import Word

SET_RETIRED = Statement("set_retired", "update duly_job set retired_at = cast(:at as bigint) where id = :job")

KEEP_END = Statement("keep_end", "update duly_line set ends_alone = ends where id = :line")

END_ALONE = Statement("end_alone", "select ends_alone from duly_line where id = :line")

FORGET_END = Statement("forget_end", "update duly_line set ends_alone = null where id = :line")

_NOT_RETIRED = "not retired"


async def retire_job(name: str, word: Word, *, skip_owed: bool) -> list[Ended]:
    """Let nothing of a job come due from now on; what that leaves, of each of its lines.

    Raises `UnknownJob`, and `NotAllowed` for one that is retired already.
    """
    lines = await _held(name)
    job = lines[0].job
    if job.retired_at is not None:
        raise NotAllowed(f"{name} was retired at {instant_text(job.retired_at)} already", next_step=_show(name))
    instant = await now()
    await count(SET_RETIRED, job=job.id, at=instant)
    ended = []
    for known in lines:
        known = await hold_line(known)
        line = _line(known)
        await count(KEEP_END, line=line.id)
        ended.append(await end_line(known, line.owed_by(instant - 1) + 1, word, skip_owed=skip_owed))
    changed = (_NOT_RETIRED, f"retired at {instant_text(instant)}")
    await tell("job_retired", job=job.id, by=word.by, reason=word.reason, changed=changed)
    return ended


async def bring_back(name: str, word: Word, *, since: str | None = None) -> list[Known]:
    """Let what comes due of a retired job be owed again: of each line from its newest window that is due, or from `since`.

    What came due meanwhile is skipped. Scopes that had left before stay away. Raises as `retire_job`.
    """
    lines = await _held(name)
    job = lines[0].job
    if job.retired_at is None:
        raise NotAllowed(f"{name} is not retired", next_step=_show(name))
    begins = await bound_of(lines[0], "from", since)
    check_bounds(lines[0], begins, None)
    await count(SET_RETIRED, job=job.id, at=None)
    back = [await _bring_back(known, begins, word) for known in lines]
    changed = (f"retired at {instant_text(job.retired_at)}", _NOT_RETIRED)
    await tell("job_resumed", job=job.id, by=word.by, reason=word.reason, changed=changed)
    return back


async def _bring_back(known: Known, begins: int | None, word: Word) -> Known:
    line = _line(await hold_line(known))
    ends = await _end_alone(line)
    await count(FORGET_END, line=line.id)
    if ends is not None and ends <= await now():
        await count(SET_END, line=line.id, ends=ends)
        return await hold_line(known)
    known = await resume_line(known, begins, word)
    if ends is not None:  # an end that lies ahead
        await count(SET_END, line=line.id, ends=ends)
    return await hold_line(known)


async def _end_alone(line: Line) -> int | None:
    """When the line of a retired job was to end by itself."""
    cells: tuple[int | None] | None = await one(END_ALONE, lambda *cells: cells, line=line.id)
    return None if cells is None else cells[0]


async def _held(name: str) -> list[Known]:
    """What is known of each line of a job, whose row is held from here on."""
    if await hold_job(name) is None:
        raise UnknownJob(f"the ledger knows no job {name!r}")
    found = [await find(name, scope) for scope in await scopes_of(name)]
    return [known for known in found if known is not None]


def _line(known: Known) -> Line:
    assert known.line is not None
    return known.line


def _show(name: str) -> str:
    return f"duly jobs show {name}"
