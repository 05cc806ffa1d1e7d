"""Pause: no run of a job, or of one line, is started until somebody resumes it, or until an instant.

What is running goes on. Windows come due all the same, and are late. When the pause is over they are owed like those of
any downtime: the catch-up policy keeps some, and what it drops of them is skipped as paused, by whom and why.
"""

from __future__ import annotations

from duly.errors import Misuse, NotAllowed, UnknownJob, UnknownScope
from duly.ledger.ask import Statement, count, now
from duly.ledger.ends import hold_job
from duly.ledger.events import tell
from duly.ledger.open import open_all_owed
from duly.ledger.owed import Owed
from duly.ledger.records import Known, Pause, RunId, own_pause, pause_of, pause_words
from duly.ledger.register import find
from duly.ledger.resolve import Word
from duly.ledger.scopes import scopes_of
from duly.ledger.take import hold_line, run_parameters
from duly.records import record, replace
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.catch_up import CatchUp

PAUSE_JOB = Statement(
    "pause_job",
    "update duly_job set paused_at = :at, paused_until = :until, paused_by = :by, paused_why = :why where id = :job",
)

PAUSE_LINE = Statement(
    "pause_line",
    "update duly_line set paused_at = :at, paused_until = :until, paused_by = :by, paused_why = :why where id = :line",
)

ASK_FOR = Statement(
    "ask_for",
    # A person asked for it: the standing policy does not drop it at the next poke.
    """
update duly_run
   set asked_at = {now}
 where series = :series and nominal = :nominal and revision = :revision and state in ('open', 'failed')
""",
)


@record
class Resumed:
    """A line that may be worked again, and what is owed of it now: what was kept has its row, what was dropped its reason."""

    known: Known
    steps: list[Owed]  # of each transaction's worth of windows


async def pause(name: str, scope: str | None, word: Word, *, until: int | None) -> list[Known]:
    """Pause a job, or one of its lines; one that is paused already gets the new end and reason. Answers its lines.

    Raises `UnknownJob`, `UnknownScope`, and `Misuse` for an end that has passed.
    """
    lines = await _lines(name, scope)
    instant = await now()
    if until is not None and until <= instant:
        raise Misuse(f"until: {instant_text(until)} has passed")
    mine = [_own(known, scope) for known in lines]
    already = next((own for own in mine if own is not None and own.covers(instant)), None)
    at = instant if already is None else already.since
    await _write(lines[0], scope, Pause(at, until, word.by, word.reason))
    detail = "until it is resumed" if until is None else f"until {instant_text(until)}"
    found = await _lines(name, scope)
    changed = (_standing(lines[0], scope), _standing(found[0], scope))
    await tell(
        "paused", job=lines[0].job.id, by=word.by, reason=word.reason, detail=_detail(scope, detail), changed=changed
    )
    return found


async def resume(name: str, scope: str | None, word: Word, *, policy: CatchUp | None) -> list[Resumed]:
    """End a pause, and apply to what it held back the job's catch-up policy, or another for this once.

    What a policy for this once keeps is asked for: the standing one does not drop it later. Raises `UnknownJob`,
    `UnknownScope`, and `NotAllowed` where nothing is paused, or the whole job is while one line is named.
    """
    lines = await _lines(name, scope)
    instant = await now()
    if all(_own(known, scope) is None for known in lines):
        whole = scope is not None and pause_of(lines[0], instant) is not None
        raise NotAllowed(
            f"{name} is paused as a whole; resume it without a scope" if whole else f"{name} is not paused"
        )
    resumed = [await _caught_up(known, instant, word, policy) for known in lines]
    await _write(lines[0], scope, None)
    detail = "" if policy is None else f"catch-up {policy}, this once"
    changed = (_standing(lines[0], scope), _NOT_PAUSED)
    await tell(
        "resumed", job=lines[0].job.id, by=word.by, reason=word.reason, detail=_detail(scope, detail), changed=changed
    )
    return resumed


_NOT_PAUSED = "not paused"


def _standing(known: Known, scope: str | None) -> str:
    """How a pause stands, as events say it."""
    own = _own(known, scope)
    return _NOT_PAUSED if own is None else pause_words(own)


def _detail(scope: str | None, detail: str) -> str:
    return detail if scope is None else ", ".join(filter(None, (f"scope {scope!r}", detail)))


async def _lines(name: str, scope: str | None) -> list[Known]:
    """The lines that are meant; the job's row is held, so that two who pause or resume come one after the other."""
    if await hold_job(name) is None:
        raise UnknownJob(f"the ledger knows no job {name!r}")
    scopes = await scopes_of(name)
    if scope is not None and scope not in scopes:
        raise UnknownScope(f"scope: {name} has no scope {scope!r}")
    found = [await find(name, each) for each in (scopes if scope is None else [scope])]
    return [known for known in found if known is not None]


def _own(known: Known, scope: str | None) -> Pause | None:
    """The pause that was written where this one is: on the job, or on the line."""
    return own_pause(known.job if scope is None else known.line)


async def _write(known: Known, scope: str | None, own: Pause | None) -> None:
    columns = dict.fromkeys(("at", "until", "by", "why"))
    if own is not None:
        columns = {"at": own.since, "until": own.until, "by": own.by, "why": own.why}
    if scope is None:
        await count(PAUSE_JOB, job=known.job.id, **columns)
    else:
        assert known.line is not None
        await count(PAUSE_LINE, line=known.line.id, **columns)


async def _caught_up(known: Known, instant: int, word: Word, policy: CatchUp | None) -> Resumed:
    """Open what is kept of the line's windows, and write down what is dropped."""
    known = await hold_line(known)
    assert known.line is not None
    series = known.series
    if series is None or known.line.opened_until is None:
        return Resumed(known, [])
    if policy is not None:
        known = replace(known, job=replace(known.job, catch_up=str(policy)))
    known, steps = await open_all_owed(known, instant, word.by)
    for due in steps if policy is not None else ():
        fresh = [RunId(series.id, occurrence.nominal) for occurrence in due.fresh]
        for run in (*fresh, *(row.id for row in due.rows)):
            await count(ASK_FOR, **run_parameters(run))
    return Resumed(known, steps)
