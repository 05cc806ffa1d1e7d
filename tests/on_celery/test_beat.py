"""Beat: each message of a crontab says for which of its fires it is, whenever it is sent. Driven tick by tick, time by hand."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab, schedule

import duly
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell
from duly.times import parse_instant
from duly.trigger import Meant
from duly.trigger.celery import HEADER
from duly.trigger.celery.beat import Scheduler, newest_fire

BERLIN = "Europe/Berlin"
_time: dict[str, Any] = {"now": datetime(2026, 10, 5, tzinfo=UTC), "step": timedelta()}


def now_by_hand() -> datetime:
    """What the schedules of these stories ask for the time."""
    _time["now"] += _time["step"]  # from one look to the next
    now: datetime = _time["now"]
    return now


class Crontab(crontab):  # type: ignore[misc]
    """A crontab that goes by the clock of these stories, also out of beat's file; in the app's zone, as Celery's own clock."""

    def now(self) -> datetime:
        return now_by_hand().astimezone(self.tz)


class Interval(schedule):  # type: ignore[misc]
    """And an interval."""

    def now(self) -> datetime:
        return now_by_hand()


class Beat:
    """A beat with one entry, and what it sent. Started again, it goes on with its file."""

    def __init__(self, folder: Path, entry: Any, *, zone: str = "UTC", at: str, kind: type = Scheduler) -> None:
        self.app = Celery("shop", broker=f"memory://{folder}")
        self.app.conf.update(
            timezone=zone,
            task_default_queue=f"beat-{id(folder)}",
            beat_schedule={"credit": {"task": "credit", "schedule": entry, "options": {"headers": {"mine": 1}}}},
            broker_transport_options={"polling_interval": 0.01},
        )
        self._file = str(folder / "beat")
        self._kind = kind
        self.set(at)
        self.start()

    def start(self) -> None:
        self.scheduler = self._kind(app=self.app, schedule_filename=self._file)

    def stop(self) -> None:
        self.scheduler.close()

    def set(self, at: str) -> None:
        _time["now"] = datetime.fromisoformat(at).astimezone(UTC)

    def tick(self, at: str) -> list[dict[str, Any]]:
        """Let it do at an instant what it does; the headers of ours of what it sent."""
        self.set(at)
        while self.scheduler.tick() == 0:
            pass
        return self.sent()

    def sent(self) -> list[dict[str, Any]]:
        found = []
        with self.app.connection_for_read() as connection:
            box = connection.SimpleQueue(self.app.amqp.queues[self.app.conf.task_default_queue], no_ack=True)
            while True:
                try:
                    headers = box.get(block=False).headers
                except queue.Empty:
                    break
                assert headers["mine"] == 1
                found.append(headers.get(HEADER, {}))
        return found


@pytest.fixture
def beat_of(tmp_path: Path) -> Iterator[Callable[..., Beat]]:
    made: list[Beat] = []

    def make(entry: Any, **options: Any) -> Beat:
        made.append(Beat(tmp_path, entry, **options))
        return made[-1]

    yield make
    for beat in made:
        beat.stop()


def cron(**fields: Any) -> Any:
    return Crontab(**fields)


# -- the time that is meant -----------------------------------------------------------------------------------------------


def test_it_is_the_time_of_the_crontab_and_not_when_beat_got_to_it(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(cron(minute=30, hour=2), zone=BERLIN, at="2026-10-05T12:00:00Z")
    assert beat.tick("2026-10-06T00:29:59Z") == []

    (said,) = beat.tick("2026-10-06T00:30:07.25Z")

    assert said == {
        "entry": "credit",
        "schedule": "Crontab",
        "at": "2026-10-06T00:30:00Z",
        "zone": BERLIN,
        "late": False,
    }
    assert beat.tick("2026-10-06T00:30:08Z") == []


def test_what_was_missed_is_sent_once_late_and_for_the_newest_of_it(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(cron(minute="*/5"), at="2026-10-05T12:01:00Z")
    (first,) = beat.tick("2026-10-05T12:05:00Z")
    beat.stop()

    beat.set("2026-10-05T18:32:10Z")
    beat.start()
    (late,) = beat.tick("2026-10-05T18:32:11Z")
    (next_one,) = beat.tick("2026-10-05T18:35:01Z")

    assert (first["at"], first["late"]) == ("2026-10-05T12:05:00Z", False)
    assert (late["at"], late["late"]) == ("2026-10-05T18:30:00Z", True)
    assert (next_one["at"], next_one["late"]) == ("2026-10-05T18:35:00Z", False)


def test_one_that_was_down_for_a_year_tells_at_once(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(cron(minute="*", hour="3"), at="2025-10-05T12:00:00Z")
    beat.stop()

    beat.set("2026-10-05T12:00:00Z")
    beat.start()
    (late,) = beat.tick("2026-10-05T12:00:00Z")

    assert late["at"] == "2026-10-05T03:59:00Z"


def test_no_fire_is_left_out_or_sent_twice_however_beat_is_late(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(cron(minute="*"), at="2026-10-05T12:00:30Z")

    # It may look a little before, at, or long after each minute.
    looks = ("12:00:59.9999", "12:01:00", "12:01:00.0001", "12:02:59.9999", "12:03:00", "12:03:59", "12:04:00.5")
    said = [each["at"][11:16] for look in looks for each in beat.tick(f"2026-10-05T{look}Z")]

    assert said == ["12:01", "12:02", "12:03", "12:04"]


def test_none_is_sent_twice_where_a_minute_begins_while_beat_is_at_it(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(cron(minute="*"), at="2026-10-05T12:00:30Z")
    said: list[str] = []

    for minute in range(1, 60):  # late for the one before; between two of its looks at the clock the next minute begins
        _time["step"] = timedelta(milliseconds=minute / 8)
        said += [each["at"][14:16] for each in beat.tick(f"2026-10-05T12:{minute:02}:59.98Z")]
    _time["step"] = timedelta()

    assert said == sorted(set(said))
    assert said[:2] == ["01", "02"]


def test_two_beats_mean_the_same(tmp_path: Path) -> None:
    said = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        beat = Beat(tmp_path / name, cron(minute=0), at="2026-10-05T11:30:00Z")
        said += beat.tick(f"2026-10-05T12:00:0{len(name)}Z")
        said += beat.tick("2026-10-05T13:00:09Z")
        beat.stop()

    assert [each["at"] for each in said] == 2 * ["2026-10-05T12:00:00Z", "2026-10-05T13:00:00Z"]


def test_an_interval_has_no_time_and_says_so(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(Interval(300.0), at="2026-10-05T12:00:00Z")

    assert beat.tick("2026-10-05T12:05:00Z") == [{"entry": "credit", "schedule": "Interval"}]


# -- the nights of Berlin -------------------------------------------------------------------------------------------------

# 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
NIGHTS = [
    # A time that does not exist: Celery fires at the wall clock of as many minutes later, duly's default at the transition.
    ({"minute": 30, "hour": 2}, "2026-03-29", ["2026-03-29T02:30:00"]),
    # An hour that does: nothing for the one that is left out, in Celery.
    ({"minute": 30}, "2026-03-29", ["2026-03-29T01:30:00", "2026-03-29T03:30:00", "2026-03-29T04:30:00"]),
    # A time that comes twice is fired at once, the first time.
    ({"minute": 30, "hour": 2}, "2026-10-25", ["2026-10-25T02:30:00"]),
    # And Celery goes through an hour that comes twice once: its second pass is nobody's.
    ({"minute": 30}, "2026-10-25", ["2026-10-25T02:30:00", "2026-10-25T03:30:00"]),
]


@pytest.mark.parametrize(("fields", "day", "names"), NIGHTS)
def test_in_the_nights_when_clocks_change_each_message_means_a_window_of_the_jobs_own_schedule(
    beat_of: Callable[..., Beat], fields: dict[str, int], day: str, names: list[str]
) -> None:
    begins, ends = parse_instant(f"{day}T00:00:00Z"), parse_instant(f"{day}T03:00:00Z")
    at = datetime.fromtimestamp(begins / 1e6 - 600, UTC).isoformat()
    beat = beat_of(cron(**fields), zone=BERLIN, at=at)
    own = duly.cron(f"{fields['minute']} {fields.get('hour', '*')} * * *", zone=BERLIN)

    windows = []
    for instant in range(begins, ends + 1, 300_000_000):
        for said in beat.tick(datetime.fromtimestamp(instant / 1e6, UTC).isoformat()):
            meant = Meant(parse_instant(said["at"]), None, said["zone"], said.get("exact") is not False)
            windows.append(window_meant([Spell(own, 1, None, None)], meant).name)

    assert windows == [f"{name}[{BERLIN}]" for name in names]


def test_it_is_told_as_celery_itself_goes_from_fire_to_fire(beat_of: Callable[..., Beat]) -> None:
    beat = beat_of(
        cron(minute="7", hour="*/6", day_of_month="1-7", month_of_year="3,10"), zone=BERLIN, at="2026-10-05T12:00Z"
    )
    entry = beat.scheduler.schedule["credit"].schedule
    last = datetime(2026, 3, 1, 12, tzinfo=UTC)

    found = newest_fire(entry, last, datetime(2026, 10, 9, tzinfo=UTC))

    assert found is not None
    assert found[0].isoformat() == "2026-10-07T18:07:00+02:00"
    assert newest_fire(entry, datetime(2026, 10, 7, 20, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)) is None


def test_celerys_own_scheduler_says_nothing(beat_of: Callable[..., Beat]) -> None:
    """What all of this is for."""
    beat = beat_of(cron(minute=0), at="2026-10-05T11:30:00Z", kind=PersistentScheduler)

    assert beat.tick("2026-10-05T12:00:00Z") == [{}]
