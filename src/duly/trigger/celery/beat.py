"""Beat, and what it means: a scheduler that says with each message for which time of its crontab it is.

    beat_scheduler = "duly.trigger.celery.beat:Scheduler"

It is Celery's own scheduler, file and all, and sends what that sends when that sends it. Facts of it that count here
(celery/beat.py and celery/schedules.py, 5.5 to 5.7):

- An entry is due when the first fire after its `last_run_at` has come. That is then set to *now*, whatever fire was meant:
  after an hour in which beat was down, an entry of every minute is sent once, and it stands for the newest.
- Fires are wall clocks of the app's `timezone`. One that does not exist, as clocks go forward, is as many minutes later; an
  hour that comes twice is gone through once.
- An interval begins anew from each `last_run_at`, so that nothing tells when it should have been.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from celery.beat import PersistentScheduler
from celery.schedules import crontab
from celery.utils.log import get_logger
from celery.utils.time import maybe_make_aware

from duly.times import from_datetime
from duly.trigger import is_late
from duly.trigger.celery import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

# The newest fire is looked for in the last two hours first, and only where there was none further back: an entry of every
# minute that was down for a year has half a million.
_SPANS = tuple(timedelta(hours=hours) for hours in (2, 48, 24 * 32, 24 * 367))

_log = get_logger(__name__)


class Meaning:
    """Beside a scheduler of beat's: each message of an entry says what it is for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._reserved: dict[str, datetime] = {}
        super().__init__(*args, **options)

    def reserve(self, entry: Any) -> Any:
        """Note until when an entry counts as sent: what comes due later is sent by its next message, and nothing twice."""
        following = super().reserve(entry)  # type: ignore[misc]
        self._reserved[entry.name] = following.last_run_at
        return following

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **options: Any) -> Any:
        """Send an entry's message, with what it means in its headers."""
        if advance:
            self.reserve(entry)
        until = self._reserved.pop(entry.name, None)
        plain = entry.options
        try:
            headers = {**(plain.get("headers") or {}), HEADER: meaning(entry, until)}
            entry.options = {**plain, "headers": headers}
            return super().apply_async(entry, producer=producer, advance=False, **options)  # type: ignore[misc]
        finally:
            entry.options = plain


class Scheduler(Meaning, PersistentScheduler):  # type: ignore[misc]
    """Celery's own scheduler, whose messages say what they mean."""


def meaning(entry: Any, until: datetime | None) -> dict[str, Any]:
    """What a message of an entry means that is sent now, as its header has it."""
    schedule = entry.schedule
    said: dict[str, Any] = {"entry": entry.name, "schedule": type(schedule).__name__}
    if not isinstance(schedule, crontab):
        return said
    try:
        found = newest_fire(schedule, entry.last_run_at, until or schedule.now())
    except Exception as e:  # the message is to leave: whoever gets it says what it lacks
        _log.warning("duly: for which time %r is sent cannot be told: %s", entry.name, type(e).__name__)
        return said
    if found is None:
        return said
    nominal, late = found
    at = nominal.astimezone(UTC)
    said |= {"at": at.isoformat().replace("+00:00", "Z"), "zone": _name_of(schedule.tz), "late": late}
    # A wall clock that does not exist: Celery fires some time after it, and a schedule of duly's may say at which instant.
    if at.astimezone(schedule.tz).replace(tzinfo=None) != nominal.replace(tzinfo=None):
        said["exact"] = False
    return said


def newest_fire(schedule: Any, last_run_at: datetime, until: datetime) -> tuple[datetime, bool] | None:
    """The newest fire of a crontab after `last_run_at` and not after `until`, by its wall clock; and whether it is sent late,
    until then. None where there is none.
    """
    last, end = (maybe_make_aware(each).astimezone(UTC) for each in (last_run_at, until))
    first = next(_fires(schedule, last, end), None)
    if first is None:
        return None
    newest = first
    for span in (*_SPANS, end - last):
        fires = list(_fires(schedule, max(last, end - span), end))
        if fires:
            newest = fires[-1]
            break
    return newest, is_late(from_datetime(newest), from_datetime(end))


def _fires(schedule: Any, after: datetime, until: datetime) -> Iterator[datetime]:
    """The fires of a crontab, as Celery goes from one to the next."""
    at = after
    while True:
        start, step, _ = schedule.remaining_delta(at.astimezone(schedule.tz))
        fire = start + step
        following = fire.astimezone(UTC)
        if following > until or following <= at:
            return
        yield fire
        at = following


def _name_of(zone: Any) -> str:
    """A zone's name; empty for the host's own, which has none that holds elsewhere."""
    if zone is UTC or str(zone) == "UTC":
        return "UTC"
    return str(getattr(zone, "key", ""))
