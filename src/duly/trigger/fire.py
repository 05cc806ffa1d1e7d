"""Fire: a job of this program works the run that a scheduler elsewhere meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.errors import Misuse
from duly.trigger import adhoc_id, trigger_words
from duly.work.job import Job

if TYPE_CHECKING:
    from duly.trigger import Firing
    from duly.work.aio.job import Job as AsyncJob
    from duly.work.answers import AlreadyCompleted, Busy, Completed, NotDue
    from duly.work.payload import Json


def fire(
    job: Job[Any],
    firing: Firing,
    *,
    scope: str = "",
    payload: Json = None,
    wait: int | float | str | None = None,
) -> Completed | AlreadyCompleted | Busy | NotDue:
    """Work the window that is meant, or, where a person fired, a run outside the schedule. Answers and raises as `Job.run`.

    Raises `WindowInvalid` for a time that is none of the job's schedule, and `Misuse` for a job of `duly.aio`.
    """
    check_job(job)
    words = trigger_words(firing)
    if firing.meant is None:
        return job.run(adhoc=adhoc_id(firing), scope=scope, payload=payload, wait=wait, trigger=words)
    window = job.window_meant(firing.meant, scope=scope)
    return job.run(window, scope=scope, payload=payload, wait=wait, trigger=words)


def check_job(job: object) -> None:
    """Raise `Misuse` for what is no job of a plain ledger's: one of `duly.aio` would be awaited by nobody."""
    if not isinstance(job, Job):
        raise Misuse(
            f"job: it is a {type(job).__module__}.{type(job).__name__}; give a function that is decorated with @ledger.job of a"
            " plain ledger, as duly.sqlite(…) makes one, or await fire_async with a job of duly.aio"
        )


async def fire_async(
    job: AsyncJob[Any],
    firing: Firing,
    *,
    scope: str = "",
    payload: Json = None,
    wait: int | float | str | None = None,
) -> Completed | AlreadyCompleted | Busy | NotDue:
    """As `fire`, a job of `duly.aio`."""
    words = trigger_words(firing)
    if firing.meant is None:
        return await job.run(adhoc=adhoc_id(firing), scope=scope, payload=payload, wait=wait, trigger=words)
    window = await job.window_meant(firing.meant, scope=scope)
    return await job.run(window, scope=scope, payload=payload, wait=wait, trigger=words)
