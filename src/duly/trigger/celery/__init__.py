"""Celery: a task that beat, or a caller, sends, and that works the window which is meant.

Beat does not say for which of its fires it sends a message; a scheduler of `beat` (here, beside) is beat as it is, and writes
that into the message's headers. It is the same for each retry and each redelivery of the message, and for a second beat that
was not told of the first: they are attempts at one run. The id of the task is on record with each attempt.

    credit_task = task_of(app, credit)                       a task named `credit`, after the job
    app.conf.beat_scheduler = "duly.trigger.celery.beat:Scheduler"
    app.conf.beat_schedule = {"credit": {"task": "credit", "schedule": crontab(minute=0)}}

An interval (`"schedule": 300.0`) is counted from whenever beat sent the last one: it has no time that it was for, so such a
message names no window, and neither does one that is sent by hand. What they do is said by `unnamed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.errors import AGAIN, DECIDED, FOR_GOOD, Misuse, RunPaused, TriggerUnclear, meaning_of
from duly.times import SECOND, from_datetime
from duly.trigger import (
    CATCH_UP,
    MANUAL,
    RETRY,
    SCHEDULED,
    Firing,
    Meant,
    instant_of,
    name_of,
    number_of,
    optional_name_of,
    shown,
    trigger_words,
    zone_of,
)
from duly.trigger.fire import fire
from duly.work.answers import Busy, Completed, NotDue
from duly.work.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from duly.work.answers import AlreadyCompleted
    from duly.work.payload import Json

SOURCE = "celery"
HEADER = "duly_beat"

# What a message that names no window does: fail, in words; work what is owed, by the job's policy; or a run of its own.
REFUSE, OWED, ADHOC = "refuse", "owed", "adhoc"

# A message comes again where another attempt holds its run, which may have died: not sooner, and not later, in seconds.
_SOONEST, _LATEST = 1.0, 300.0
_LATER = 30.0  # and where nobody says how long it takes: the ledger could not be asked

_OPTIONS = {
    # A message that a killed worker had is delivered again: it is another attempt at the same run, or finds it complete.
    "acks_late": True,
    "reject_on_worker_lost": True,
}


def read(request: Any) -> Firing:
    """What the headers of a message tell, by the request of the task that got it. Raises `TriggerUnclear` for a message of a
    beat that did not say for which time it is.
    """
    run, attempt = _who(request)
    headers = request.headers or {}
    if not isinstance(headers, dict):
        raise TriggerUnclear(f"the message's headers: {shown(headers)} is no mapping")
    said = headers.get(HEADER)
    if said is None and not ({"celery_beat_task", "periodic_task_name"} & set(headers)):
        return Firing(SOURCE, MANUAL, run, attempt, "a message that no beat sent", None)
    if said is None:
        raise TriggerUnclear(
            "beat sent this message and does not say for which time; let beat do so, by the setting beat_scheduler ="
            " 'duly.trigger.celery.beat:Scheduler', or let such messages work what is owed: task_of(…, unnamed='owed')",
            next_step="celery -A MODULE beat --scheduler duly.trigger.celery.beat:Scheduler",
        )
    place = f"the header {HEADER}"
    if not isinstance(said, dict):
        raise TriggerUnclear(f"{place}: {shown(said)} is nothing that beat says")
    if said.get("at") is None:
        raise TriggerUnclear(
            f"beat sent this message by {shown(said.get('schedule'))} and could not tell for which time: only a crontab"
            " has times of its own; give the entry one, or let such messages work what is owed: task_of(…, unnamed='owed')"
        )
    at, zone = instant_of(f"{place}, at", said["at"]), zone_of(f"{place}, zone", said.get("zone"))
    kind = RETRY if attempt else CATCH_UP if said.get("late") is True else SCHEDULED
    return Firing(SOURCE, kind, run, attempt, place, Meant(at, None, zone, said.get("exact") is not False))


def task_of(
    app: Any,
    job: Job[Any],
    *,
    name: str | None = None,
    scope: str = "",
    payload: Json = None,
    unnamed: str = REFUSE,
    **options: Any,
) -> Any:
    """Register a task on an app of Celery's that works the window of a job for which it is sent; answers the task.

    It is named like the job unless `name` says otherwise. A caller may name the window, and the scope:
    `task.delay(window="2026-10-05", scope="acme")`. `unnamed` says what a message does that names none: "refuse", "owed", which
    works what is owed as `job.catch_up()` does, or "adhoc", a run outside the schedule with the id of the task. `options` are
    those of a task of Celery's, as `autoretry_for=(OSError,), retry_backoff=True, max_retries=5`: each retry is another attempt
    at the same run.

    What may be tried again (another attempt holds the run, it is not due yet, the ledger is busy or out of reach) has the
    message come again, which is no retry. What somebody has decided (skipped, retired, paused) is told, and no failure. What no
    try mends is raised, and never retried. What the function raises is recorded, and raised, as in any task. Raises `Misuse`.
    """
    given: object = job
    if not isinstance(given, Job):
        raise Misuse(
            "task_of: it takes a job of a ledger of duly's, a function decorated with @ledger.job; Celery's workers have no"
            " event loop for one of duly.aio"
        )
    if unnamed not in (REFUSE, OWED, ADHOC):
        raise Misuse(f"unnamed: {unnamed!r} is none of refuse, owed, adhoc")
    if payload is not None and unnamed == OWED:
        raise Misuse("payload: what is owed is worked without one; leave it out, or let messages name their window")
    default = scope

    def work(task: Any, *, window: str | None = None, scope: str = default) -> Any:
        try:
            return _worked(job, task.request, unnamed, window, scope, payload)
        except _Again as e:
            again = e
        except Exception as e:
            if (meaning := meaning_of(e)) not in (AGAIN, DECIDED):
                raise
            kinds = dict.fromkeys(type(each) for each in _each_of(e))
            name = " ".join(kind.__name__ for kind in kinds)
            # A pause may last for weeks, and every message that beat sends meanwhile would go round.
            if meaning == DECIDED or set(kinds) == {RunPaused}:
                return {"answer": name, "said": str(e)}
            again = _Again({"answer": name}, _LATER)
        if task.request.is_eager:  # nobody would wait meanwhile
            return again.said
        return _come_again(task, again)

    base = type("Task", (_Firm, options.pop("base", None) or app.Task), {"abstract": True})
    return app.task(base=base, bind=True, name=name or job.name, shared=False, **{**_OPTIONS, **options})(work)


class _Firm:
    """A task that Celery does not try again for what no try mends, whatever `autoretry_for` says."""

    def retry(self, *args: Any, exc: Any = None, **options: Any) -> Any:
        if isinstance(exc, Exception) and meaning_of(exc) == FOR_GOOD:
            raise exc
        return super().retry(*args, exc=exc, **options)  # type: ignore[misc]


class _Again(Exception):
    """Not now: the message is to come again, after so many seconds."""

    def __init__(self, said: dict[str, Any], seconds: float) -> None:
        super().__init__(said["answer"])
        self.said = said
        self.seconds = seconds


def _worked(job: Job[Any], request: Any, unnamed: str, window: str | None, scope: str, payload: Json) -> dict[str, Any]:
    if window is not None:
        run, attempt = _who(request)
        words = trigger_words(Firing(SOURCE, MANUAL, run, attempt, "the caller's words", None))
        return _told(job, job.run(window, scope=scope, payload=payload, trigger=words))
    firing = _read(request, unnamed)
    if firing is None:
        return {"answer": "CaughtUp", "keys": [done.key for done in job.catch_up(scope=scope or None)]}
    return _told(job, fire(job, firing, scope=scope, payload=payload))


def _who(request: Any) -> tuple[str, str]:
    """What Celery calls the task, and this attempt at it."""
    retries = number_of("the message's retries", request.retries)
    return optional_name_of("the task's id", request.id), f"retry-{retries}" if retries else ""


def _each_of(error: Exception) -> Iterator[Exception]:
    """What was raised together, one by one."""
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _each_of(each)
    else:
        yield error


def _read(request: Any, unnamed: str) -> Firing | None:
    """The firing; None where what is owed is to be worked. Raises `TriggerUnclear`."""
    try:
        firing = read(request)
    except TriggerUnclear:
        if unnamed == OWED:
            return None
        raise
    if firing.meant is not None:
        return firing
    if unnamed == OWED:
        return None
    if unnamed == ADHOC:
        name_of("the task's id", firing.run)  # by which its retries find the run
        return firing
    raise TriggerUnclear(
        "this message names no window and no beat sent it; name one, as task.delay(window='2026-10-05'), or say what such"
        " messages do: task_of(…, unnamed='owed' or 'adhoc')"
    )


def _told(job: Job[Any], answer: Completed | AlreadyCompleted | Busy | NotDue) -> dict[str, Any]:
    """What the task returns. Raises `_Again` where it cannot be told yet."""
    said = {"answer": type(answer).__name__, "key": answer.key}
    if isinstance(answer, Busy):
        raise _Again(said, _seconds_until(job, answer.until))
    if isinstance(answer, NotDue):  # beat's clock is before the ledger's
        raise _Again(said, _seconds_until(job, answer.due))
    return said


def _seconds_until(job: Job[Any], moment: datetime) -> float:
    """How long it is until then, by the ledger's clock."""
    return (from_datetime(moment) - job._store.now()) / SECOND


def _come_again(task: Any, again: _Again) -> None:
    """Send the message once more, later. It is no retry: those of the task's own options are counted apart."""
    from celery.exceptions import Retry

    seconds = min(max(again.seconds, _SOONEST), _LATEST)
    request = task.request
    task.signature_from_request(request, countdown=seconds, retries=request.retries).apply_async()
    raise Retry(f"{again}: comes again in {seconds:.0f} s", when=seconds)
