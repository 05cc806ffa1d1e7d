"""Nominal time: which window an attempt is for is told to it, and is the same whoever pokes, when, and how often.

Berlin's clocks go back on 25 October 2026 at 01:00 UTC: that day has 25 hours, and 02:30 is there twice.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.times import MINUTE, parse_instant
from tests.exec.stage import Stage, until
from tests.faults.account import Account

BERLIN = ("--period", "daily", "--zone", "Europe/Berlin", "--at", "02:30")
NIGHTLY = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin")
TOLD = ("RUN_KEY", "LABEL", "DATE", "WINDOW_START", "WINDOW_END", "WINDOW_ZONE", "IDEMPOTENCY_KEY")


def telling(stage: Stage, then: str = "") -> list[str]:
    """A command that writes down what it was told, in its arguments and in its environment."""
    words = " ".join(f"$DULY_{name}" for name in TOLD)
    script = f'echo "$1 $2 $3 {words} attempt $DULY_ATTEMPT" >> "{stage.file("told")}"; {then or ":"}'
    return ["sh", "-c", script, "sh", "{date}", "{window.start}", "{window.end:%d.%m.%Y %H:%M}"]


def told(stage: Stage) -> list[tuple[str, str]]:
    """What each attempt was told, and its number."""
    parted = (line.rpartition(" attempt ") for line in stage.effects("told"))
    return [(window, number) for window, _, number in parted]


# -- 1: every attempt is told its nominal time and window, the same on each retry ---------------------------------------


def test_every_attempt_at_a_day_is_told_the_same_window_however_late_it_begins(stage: Stage) -> None:
    flags = (*BERLIN, "--retries", "5", "--no-retry")
    stage.clock.set("2026-10-26T01:30:00Z")  # 02:30, on the minute

    stage.exec("report", *flags, command=telling(stage, "exit 3"))
    stage.clock.advance("37m")  # behind a queue
    stage.exec("report", command=telling(stage, "kill -9 $$"), environ={"TZ": "Asia/Tokyo"})
    said = stage.duly("resolve", "report", "2026-10-25", "--as", "not-done", "--evidence", "nothing was written")
    stage.clock.set("2026-10-26T22:59:00Z")  # almost the next day
    stage.exec("report", command=telling(stage), environ={"TZ": "America/New_York"})

    assert said.code == 0, said.talk
    (window,) = {window for window, _ in told(stage)}
    assert [number for _, number in told(stage)] == ["1", "2", "3"]
    assert window.startswith(
        "2026-10-25 2026-10-25T00:00:00+02:00 26.10.2026 00:00 report:2026-10-25[Europe/Berlin] 2026-10-25 2026-10-25"
        " 2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00 Europe/Berlin "
    )


def test_every_attempt_of_a_function_is_given_the_same_window(account: Account) -> None:
    seen: list[Any] = []
    ledger = account.ledger()

    @ledger.job("report", duly.daily("Europe/Berlin"), catch_up=duly.EACH, retries=5)
    def report(run: duly.Run[Any]) -> None:
        seen.append((run.date, run.window.start, run.window.end, run.label, run.idempotency_key))
        if len(seen) < 3:
            raise ValueError("not yet")

    account.clock.set("2026-10-26T00:00:00Z")
    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            report.run("2026-10-25")
        account.clock.advance("3h")
    report.run("2026-10-25")

    assert len(seen) == 3
    assert len({*seen}) == 1
    date, start, end, *_ = seen[0]
    assert (date.isoformat(), (end - start).total_seconds()) == ("2026-10-25", 25 * 3600)


# -- 2: a rerun addresses its window ------------------------------------------------------------------------------------


def test_a_rerun_at_five_of_what_failed_at_half_past_two_is_told_of_half_past_two(stage: Stage) -> None:
    stage.clock.set("2026-11-28T01:30:00Z")  # 02:30 in Berlin
    assert stage.exec("flow", *NIGHTLY, command=telling(stage, "exit 3")).code == 3
    stage.clock.set("2026-11-28T04:00:00Z")

    assert stage.exec("flow", command=telling(stage)).code == 79  # nobody has said that it may be
    assert stage.duly("retry", "flow", "2026-11-28T02:30", "--reason", "the disk was full").code == 0
    assert stage.exec("flow", command=telling(stage)).code == 0

    (first, _), (second, _) = told(stage)
    assert first == second
    assert "flow:2026-11-28T02:30:00[Europe/Berlin]" in second
    assert " 2026-11-27T02:30:00+01:00 2026-11-28T02:30:00+01:00 " in second


def test_a_rerun_days_later_names_its_window_and_no_other_is_touched(stage: Stage) -> None:
    for day in ("2026-11-28", "2026-11-29", "2026-11-30"):
        stage.clock.set(f"{day}T01:30:00Z")
        command = telling(stage, "exit 3" if day < "2026-11-29" else "")
        stage.exec("flow", *NIGHTLY, "--catch-up", "each", command=command)
    stage.clock.set("2026-11-30T16:00:00Z")

    stage.duly("retry", "flow", "2026-11-28T02:30", "--reason", "its input is there")
    stage.exec("flow", "--window", "2026-11-28T02:30", command=telling(stage))

    windows = [window for window, _ in told(stage)]
    assert windows[-1] == windows[0]
    assert [number for _, number in told(stage)] == ["1", "1", "1", "2"]
    assert stage.rows("select distinct state from duly_run") == [("completed",)]


# -- 3: a backfilled run has the dates of its own window ----------------------------------------------------------------


def test_a_backfilled_day_is_told_its_own_dates_in_arguments_and_environment(stage: Stage) -> None:
    stage.clock.set("2026-11-29T12:00:00Z")
    stage.exec("report", *BERLIN)

    said = stage.duly("backfill", "start", "report", "2026-10-24..2026-10-27", "--reason", "the feed was wrong")
    assert said.code == 0, said.talk
    stage.exec("report", "--backfill", command=telling(stage))

    assert [window.rsplit(" ", 1)[0] for window, _ in told(stage)] == [
        f"{day} {start} {end} report:{day}[Europe/Berlin] {day} {day} {start} {after} Europe/Berlin"
        for day, start, end, after in (
            ("2026-10-24", "2026-10-24T00:00:00+02:00", "25.10.2026 00:00", "2026-10-25T00:00:00+02:00"),
            ("2026-10-25", "2026-10-25T00:00:00+02:00", "26.10.2026 00:00", "2026-10-26T00:00:00+01:00"),
            ("2026-10-26", "2026-10-26T00:00:00+01:00", "27.10.2026 00:00", "2026-10-27T00:00:00+01:00"),
        )
    ]


# -- 12: two schedulers fire one period --------------------------------------------------------------------------------

CRON = {"HOME": "/root", "LOGNAME": "root", "SHELL": "/bin/sh"}
NIGHTS = [f"nightly:2026-10-{day}T02:30:00[Europe/Berlin]" for day in (24, 25, 26)]


def timer_at(at: int) -> Mapping[str, str]:
    """What systemd gives a service that a timer has started."""
    return {
        "INVOCATION_ID": "0f2d9c4a7c3e4b0f9d8a6b5c4d3e2f10",
        "SYSTEMD_EXEC_PID": "4711",
        "JOURNAL_STREAM": "8:4711",
        "TRIGGER_UNIT": "nightly.timer",
        "TRIGGER_TIMER_REALTIME_USEC": str(at),
    }


def pod_at(at: int) -> Mapping[str, str]:
    """What a Pod of a CronJob knows."""
    job = f"nightly-{at // MINUTE}"
    return {"JOB_NAME": job, "POD_NAME": f"{job}-aaaaa", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def nights(stage: Stage) -> Iterator[int]:
    """02:30 in Berlin of three nights, the first where there are two: the clock is there."""
    for at in ("2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"):
        stage.clock.set(at)
        yield parse_instant(at)


def test_cron_beside_a_systemd_timer_is_one_effect_each_night(stage: Stage) -> None:
    for at in nights(stage):
        both = [
            stage.start("nightly", *NIGHTLY, command=stage.effect(), environ=environ)
            for environ in (CRON, timer_at(at))
        ]

        assert [each.ended().code for each in both] in ([0, 0], [0, 75], [75, 0])

    assert stage.effects() == NIGHTS
    assert stage.outcomes() == ["completed"] * 3


def is_complete(stage: Stage, runs: int) -> bool:
    """Whether so many are: whoever works one has let it go before the clock leaps to the next night."""
    return stage.outcomes() == ["completed"] * runs


@pytest.fixture
def configuration(stage: Stage, tmp_path: Path) -> str:
    """A file with the job, for a daemon and whoever else pokes here."""
    file = tmp_path / "duly.toml"
    file.write_text(
        f"[jobs.nightly]\ncommand = {json.dumps(stage.effect())}\ncron = '30 2 * * *'\nzone = 'Europe/Berlin'\n"
        "catch_up = 'each'\n"
    )
    return str(file)


def test_cron_beside_the_daemon_is_one_effect_each_night(stage: Stage, configuration: str) -> None:
    stage.clock.set("2026-10-23T23:00:00Z")  # the night of the 23rd is the first that it owes
    daemon = stage.call("daemon", "--poll", "1s", DULY_CONFIG=configuration)
    until(lambda: is_complete(stage, 1), "the daemon works")
    for count, _ in enumerate(nights(stage), 2):
        said = stage.exec("nightly", command=stage.effect(), environ={**CRON, "DULY_CONFIG": configuration})
        assert said.code in (0, 75)
        until(lambda: is_complete(stage, count), "one of them has worked")  # noqa: B023
    daemon.signal(signal.SIGTERM)

    assert daemon.ended().code == 0
    assert stage.effects() == ["nightly:2026-10-23T02:30:00[Europe/Berlin]", *NIGHTS]
    assert stage.outcomes() == ["completed"] * 4


def test_cron_a_timer_a_pod_and_the_daemon_at_once_are_one_effect_each_night(stage: Stage, configuration: str) -> None:
    stage.clock.set("2026-10-23T23:00:00Z")
    daemon = stage.call("daemon", "--poll", "1s", DULY_CONFIG=configuration)
    until(lambda: is_complete(stage, 1), "the daemon works")
    for count, at in enumerate(nights(stage), 2):
        crowd = [
            stage.start("nightly", *words, command=stage.effect(), environ={**environ, "DULY_CONFIG": configuration})
            for words, environ in (((), CRON), ((), timer_at(at)), (("--trigger", "kubernetes"), pod_at(at)))
        ]
        assert {each.ended().code for each in crowd} <= {0, 75}
        until(lambda: is_complete(stage, count), "one of them has worked")  # noqa: B023
    daemon.signal(signal.SIGTERM)

    assert daemon.ended().code == 0
    assert stage.effects() == ["nightly:2026-10-23T02:30:00[Europe/Berlin]", *NIGHTS]
    assert stage.outcomes() == ["completed"] * 4
