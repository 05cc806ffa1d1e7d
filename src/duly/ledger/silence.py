"""Silences: nothing is told of a job for a while, because somebody knows already.

What flips meanwhile is recorded all the same. When the silence is over, what is still so and was not told is told.
"""

from __future__ import annotations

from duly.errors import Misuse, NotAllowed, UnknownJob, UnknownScope
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.ends import JOB_NAMED
from duly.ledger.events import tell
from duly.ledger.register import name_now, renamed
from duly.ledger.scopes import scopes_of
from duly.records import record
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.alerts import Alert
    from duly.ledger.resolve import Word

SILENCES = Statement(
    "silences_in_force",
    """
select s.id, j.name, s.job, s.scope, s.kind, s.since, s.until, s.by, s.reason
  from duly_silence s
  join duly_job j on j.id = s.job
 where s.until > :at
 order by s.id
""",
)

SILENCE = Statement(
    "silence",
    """
insert into duly_silence (job, scope, kind, since, until, by, reason)
values (:job, :scope, :kind, {now}, :until, :by, :reason)
""",
)

END_SILENCE = Statement("end_silence", "update duly_silence set until = {now} where id = :id and until > {now}")


@record
class Silence:
    """Of a job nothing is told for a while: of one scope or all, of one kind or all; by whom, and why."""

    id: int
    job: str
    job_id: int
    scope: str | None
    kind: str | None
    since: int
    until: int
    by: str
    reason: str

    def covers(self, alert: Alert) -> bool:
        """Whether it is of this alert."""
        return alert.job_id == self.job_id and self.scope in (None, alert.scope) and self.kind in (None, alert.kind)


async def silences_in_force(at: int) -> list[Silence]:
    """Those that are not over at an instant."""
    return await every(SILENCES, Silence, at=at)


async def silence(name: str, scope: str | None, kind: str | None, word: Word, *, until: int) -> Silence:
    """Tell nothing of a job until an instant. What flips meanwhile is recorded, and told afterwards if it is still so.

    Raises `UnknownJob`, `UnknownScope`, and `Misuse` for an instant that has passed.
    """
    instant = await now()
    if until <= instant:
        raise Misuse(f"until: {instant_text(until)} has passed")
    job = await _job(name, scope)
    await count(SILENCE, job=job, scope=scope, kind=kind, until=until, by=word.by, reason=word.reason)
    detail = _in_words(scope, kind)
    changed = ("told", f"silenced until {instant_text(until)}")
    await tell("silenced", job=job, by=word.by, reason=word.reason, detail=detail, changed=changed)
    return max((each for each in await silences_in_force(instant) if each.job_id == job), key=lambda each: each.id)


async def unsilence(name: str, scope: str | None, kind: str | None, word: Word) -> list[Silence]:
    """End the silences of a job: those of a scope and a kind, where these are named. Answers them, as they were.

    Raises `UnknownJob`, `UnknownScope`, and `NotAllowed` where there is none.
    """
    job = await _job(name, scope)
    ended = [
        each
        for each in await silences_in_force(await now())
        if each.job_id == job and scope in (None, each.scope) and kind in (None, each.kind)
    ]
    if not ended:
        raise NotAllowed(f"{name}: no such silence is in force", next_step="duly alerts list")
    for each in ended:
        await count(END_SILENCE, id=each.id)
    changed = (f"silenced until {instant_text(max(each.until for each in ended))}", "told")
    await tell("unsilenced", job=job, by=word.by, reason=word.reason, detail=_in_words(scope, kind), changed=changed)
    return ended


async def _job(name: str, scope: str | None) -> int:
    """A job that there is, with such a scope."""
    job = await one(JOB_NAMED, int, name=name)
    if job is None:
        if (now_named := await name_now(name)) is not None:
            raise renamed(name, now_named)
        raise UnknownJob(f"the ledger knows no job {name!r}")
    if scope is not None and scope not in await scopes_of(name):
        raise UnknownScope(f"scope: {name} has no scope {scope!r}")
    return job


def _in_words(scope: str | None, kind: str | None) -> str:
    return ", ".join(("all kinds" if kind is None else kind, *(() if scope is None else (f"scope {scope!r}",))))
