"""The daemon as a process: it works what comes due, of plain and of async jobs, stops when it is told, and may be killed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from duly.ledger.rename import rename
from duly.times import DAY
from tests.books import WORD
from tests.daemon.stage import Stage, no_effect
from tests.exec.stage import Gate, until
from tests.ledger.test_owed import days

DAILY = """
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0, lease="60s")
def export(run):
    done(run)
"""

ASYNC = """
@ledger.job("fetch", duly.daily("UTC"), catch_up=duly.EACH, lease="60s")
async def fetch(run):
    await done(run)
"""

# A job that says that it has begun, and goes on when it is let.
GATED = """
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0, lease="60s")
def export(run):
    with open(os.environ["CAME"], "w") as came:
        came.write(f"{os.getpid()}\\n")
    with open(os.environ["GO"]) as go:
        go.readline()
    done(run)
"""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path, "gate")
    yield gate
    gate.close()


def gate_of(gate: Gate) -> dict[str, str]:
    """What a gated job needs to know, as its environment."""
    return {"CAME": str(gate._came), "GO": str(gate._go)}


# -- what comes due -----------------------------------------------------------------------------------------------------


def test_windows_are_worked_as_they_come_due(stage: Stage) -> None:
    stage.module(DAILY)
    daemon = stage.daemon()
    stage.until_done(*days(5))

    stage.clock.set("2026-10-07T00:00:00Z")
    stage.until_done(*days(5, 6))
    stage.clock.advance(3 * DAY)
    stage.until_done(*days(5, 6, 7, 8, 9))

    assert daemon.stop() == 0
    assert stage.book.runs() == [(f"2026-10-0{day}T00:00:00", "completed") for day in range(5, 10)]


def test_runs_that_share_a_commit_are_worked_and_told_each(stage: Stage) -> None:
    stage.module(DAILY.replace("retry_delay=0", "inline=True, group=3"))
    daemon = stage.daemon()
    stage.until_done(*days(5))

    stage.clock.advance(7 * DAY)
    stage.until_done(*days(*range(5, 13)))

    assert daemon.stop() == 0
    assert [state for _, state in stage.book.runs()] == ["completed"] * 8
    assert all(f"{key} attempt 1 completed" in daemon.log for key in days(*range(5, 13)))


def test_plain_and_async_jobs_are_worked_by_one_daemon(stage: Stage) -> None:
    stage.module(DAILY)
    stage.aio_module(ASYNC)
    daemon = stage.daemon(modules=("jobs:ledger", "tasks:ledger"))

    stage.until_done(*days(5), "fetch:2026-10-05[UTC]")

    assert daemon.stop() == 0


def test_async_jobs_alone_are_worked_on_the_ledger_that_is_named(stage: Stage) -> None:
    stage.aio_module(ASYNC)
    daemon = stage.daemon(modules=("tasks:ledger",))

    stage.until_done("fetch:2026-10-05[UTC]")

    assert daemon.stop() == 0


def test_a_scope_that_is_first_seen_elsewhere_is_worked_too(stage: Stage) -> None:
    stage.module(DAILY)
    stage.daemon("--poll", "100ms")
    stage.until_done(*days(5))
    stage.book.job()
    stage.book.declare(scope="acme")

    stage.until_done(*days(5), "acme/export:2026-10-05[UTC]")


def test_a_clock_that_is_set_back_makes_nothing_be_done_again(stage: Stage, tmp_path: Path) -> None:
    stage.module(DAILY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(30)
        stage.daemon("--poll", "50ms", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        stage.until_done(*days(5))
        stage.clock.set("2026-10-09T00:00:00Z")
        stage.until_done(*days(5, 6, 7, 8))

        with no_effect(stage):
            for at in ("2026-10-06T00:00:00Z", "2026-10-09T12:00:00Z"):
                stage.clock.set(at)
                _turns(ear, 5)
        stage.clock.set("2026-10-10T00:00:00Z")
        stage.until_done(*days(5, 6, 7, 8, 9))


def test_whoever_asked_to_be_notified_and_does_not_listen_keeps_no_run_waiting(stage: Stage, tmp_path: Path) -> None:
    stage.module(DAILY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "notify"))
        daemon = stage.daemon("--poll", "1ms", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        for day in range(5, 12):
            stage.until_done(*days(*range(5, day + 1)))
            stage.clock.advance(DAY)

        assert daemon.stop() == 0


def _turns(ear: socket.socket, times: int) -> None:
    """Wait until the daemon has gone round so often from now on: it says each time that it is alive."""
    ear.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            ear.recv(1000)
    ear.settimeout(30)
    for _ in range(times):
        ear.recv(1000)


# -- what goes wrong ----------------------------------------------------------------------------------------------------


def test_a_failed_run_is_retried_when_its_time_has_come(stage: Stage) -> None:
    stage.module("""
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay="10m", retry_ceiling="10m")
def export(run):
    if run.attempt == 1:
        raise RuntimeError("the feed is broken")
    done(run)
""")
    daemon = stage.daemon()
    daemon.until_said("attempt 1 failed: RuntimeError")
    assert "the feed" not in daemon.log  # an error's message may hold a secret

    stage.clock.advance("30m")
    stage.until_done(*days(5))


def test_a_job_that_the_ledger_has_otherwise_is_left_out_and_the_others_are_worked(stage: Stage) -> None:
    stage.book.job("report", retries=3)
    stage.module(
        DAILY
        + """
@ledger.job("report", duly.weekly("UTC"), catch_up=duly.EACH)
def report(run):
    done(run)
"""
    )
    daemon = stage.daemon()

    daemon.until_said("report is not worked: ")
    stage.until_done(*days(5))


def test_one_that_was_killed_leaves_its_run_to_the_next(stage: Stage, gate: Gate) -> None:
    stage.module(GATED)
    first = stage.daemon(environ=gate_of(gate))
    gate.arrived()
    first.kill()

    stage.clock.advance("2m")
    stage.module(DAILY)
    stage.daemon()

    stage.until_done(*days(5))
    (run,) = {claim for claim, _ in stage.book.runs()}
    assert run == "2026-10-05T00:00:00"
    assert stage.book.rows("select number, outcome from duly_attempt order by number") == [
        (1, "lost"),
        (2, "completed"),
    ]


# -- being stopped ------------------------------------------------------------------------------------------------------


def test_told_to_stop_it_begins_nothing_more_and_waits_for_what_it_has_begun(stage: Stage, gate: Gate) -> None:
    stage.module(GATED)
    daemon = stage.daemon(environ=gate_of(gate))
    gate.arrived()

    daemon.send(signal.SIGTERM)
    stage.clock.set("2026-10-07T00:00:00Z")
    _kept_alive(stage, daemon)  # its lease is renewed all the while
    gate.open()

    assert daemon.ended() == 0
    assert stage.effects() == days(5)


def _kept_alive(stage: Stage, daemon: object) -> None:
    def lease() -> int:
        ((until_,),) = stage.book.rows(
            "select max(coalesce(n.until, r.lease_until)) from duly_run r left join duly_renewal n on n.series = r.series"
        )
        return int(until_)

    before = lease()
    stage.clock.advance("30s")
    until(lambda: lease() > before, "the lease is renewed")


def test_told_twice_it_ends_async_work_too_and_the_run_is_taken_again(stage: Stage, tmp_path: Path) -> None:
    stage.aio_module("""
import asyncio
@ledger.job("fetch", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)
async def fetch(run):
    if "STUCK" in os.environ:
        open(os.environ["STUCK"], "w").write("x")
        await asyncio.sleep(3600)
    await done(run)
""")
    daemon = stage.daemon(modules=("tasks:ledger",), environ={"STUCK": str(tmp_path / "stuck")})
    until((tmp_path / "stuck").exists, "it is stuck")

    daemon.send(signal.SIGTERM)
    daemon.send(signal.SIGINT)
    assert daemon.ended() == 0
    assert stage.effects() == []

    stage.daemon(modules=("tasks:ledger",))
    stage.until_done("fetch:2026-10-05[UTC]")


def test_told_a_third_time_it_leaves_at_once(stage: Stage, gate: Gate) -> None:
    stage.module(GATED)
    daemon = stage.daemon(environ=gate_of(gate))
    gate.arrived()

    daemon.send(signal.SIGTERM)
    daemon.until_said("begins nothing more; 1 attempts go on")
    daemon.send(signal.SIGINT)
    daemon.until_said("ends the 1 attempts that are left")
    daemon.send(signal.SIGTERM)

    assert daemon.ended() == 0
    assert "judged by its contract" in daemon.log
    assert stage.effects() == []


# -- systemd ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True], ids=["a path", "abstract"])
def test_systemd_is_told_that_it_is_ready_alive_and_stops(stage: Stage, tmp_path: Path, abstract: bool) -> None:
    stage.module(DAILY)
    name = f"@duly-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + name[1:] if abstract else name)
        ear.settimeout(30)
        daemon = stage.daemon(environ={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"})
        assert ear.recv(1000).decode().startswith("READY=1\nSTATUS=1 jobs")
        beats = [ear.recv(1000).decode() for _ in range(5)]  # though nothing comes due
        assert set(beats) == {"WATCHDOG=1"}
        daemon.send(signal.SIGTERM)
        said = "WATCHDOG=1"
        while said == "WATCHDOG=1":
            said = ear.recv(1000).decode()
    assert said.startswith("STOPPING=1")
    assert daemon.ended() == 0


# -- being started ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jobs", "names no ledger"),
        ("nothing:ledger", "there is no module 'nothing'"),
        ("jobs:nothing", "jobs has no 'nothing'"),
        ("jobs:os", "it is a module, not a ledger"),
    ],
)
def test_what_names_no_ledger_is_refused_with_what_to_write(stage: Stage, name: str, said: str) -> None:
    stage.module(DAILY)

    daemon = stage.daemon(modules=(name,))

    assert daemon.ended() == 64
    assert said in daemon.log


@pytest.mark.parametrize("text", ["import nothere\n", "raise RuntimeError\n", "def broken(:\n"])
def test_what_a_module_raises_is_shown_as_its_own_trouble(stage: Stage, text: str) -> None:
    stage.module(text)

    daemon = stage.daemon()

    assert daemon.ended() == 78
    assert "Traceback" in daemon.log
    assert "jobs:ledger: the module raised" in daemon.log
    assert "bug of duly" not in daemon.log


def test_a_ledger_without_jobs_and_one_job_declared_twice_are_refused(stage: Stage) -> None:
    stage.module("")
    daemon = stage.daemon()
    assert daemon.ended() == 64
    assert "there is no job to work" in daemon.log

    stage.module(DAILY)
    stage.module(DAILY, "again")
    daemon = stage.daemon(modules=("jobs:ledger", "again:ledger"))
    assert daemon.ended() == 64
    assert "export is declared twice" in daemon.log


# -- backfills ----------------------------------------------------------------------------------------------------------


def test_a_backfill_is_worked_behind_what_comes_due(stage: Stage) -> None:
    stage.module(DAILY)
    stage.aio_module(ASYNC)
    daemon = stage.daemon("--poll", "50ms", modules=("jobs:ledger", "tasks:ledger"))
    stage.until_done(*days(5), "fetch:2026-10-05[UTC]")
    for job in ("export", "fetch"):
        stage.book.backfill("2026-10-01", "2026-10-04", job=job)

    stage.until_done(*days(1, 2, 3, 5), *(f"fetch:2026-10-0{day}[UTC]" for day in (1, 2, 3, 5)))
    stage.clock.set("2026-10-07T00:00:00Z")
    stage.until_done(*days(1, 2, 3, 5, 6), *(f"fetch:2026-10-0{day}[UTC]" for day in (1, 2, 3, 5, 6)))
    assert daemon.stop() == 0


def test_what_a_function_says_as_it_leaves_is_not_logged(stage: Stage) -> None:
    stage.module("""
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)
def export(run):
    if run.attempt == 1:
        raise SystemExit("password=hunter2 was refused")
    done(run)
""")
    daemon = stage.daemon("--poll", "50ms")

    stage.until_done(*days(5))
    assert "SystemExit" in daemon.log
    assert "hunter2" not in daemon.log


def test_an_async_job_that_wants_to_end_the_process_does_not_end_the_others(stage: Stage) -> None:
    stage.aio_module(
        ASYNC
        + """
@ledger.job("exits", duly.daily("UTC"), catch_up=duly.EACH, retry_delay="1h", retry_ceiling="1h")
async def exits(run):
    raise SystemExit("no configuration was found")
"""
    )
    daemon = stage.daemon(modules=("tasks:ledger",))
    daemon.until_said("exits: Left")
    stage.clock.set("2026-10-07T00:00:00Z")

    stage.until_done("fetch:2026-10-05[UTC]", "fetch:2026-10-06[UTC]")
    assert daemon.stop() == 0


def test_async_jobs_are_worked_on_the_ledger_of_their_module_where_none_is_named(stage: Stage, tmp_path: Path) -> None:
    stage.aio_module(ASYNC)
    home = {"HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}
    stage.daemon(modules=("tasks:ledger",), environ=home, unset=("DULY_LEDGER",))

    stage.until_done("fetch:2026-10-05[UTC]")


def test_a_job_that_is_renamed_under_a_daemon_is_said_with_its_name(stage: Stage) -> None:
    stage.module(DAILY)
    daemon = stage.daemon("--poll", "50ms")
    stage.until_done(*days(5))
    stage.book.write(rename("export", "dispatch", WORD))

    stage.clock.set("2026-10-07T00:00:00Z")

    daemon.until_said("export is not worked: ")
    assert "dispatch" in daemon.log
