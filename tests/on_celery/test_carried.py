"""Attempts that Celery's workers make: what befalls messages, workers, brokers and daemons changes nothing of the record."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.times import DAY, HOUR, MINUTE
from tests.exec.stage import Gate, is_alive, until
from tests.ledger.test_owed import days
from tests.on_celery.conftest import PAIRS
from tests.on_celery.stage import CeleryStage

# A start of a worker costs seconds: most stories are told on one of the pairs.
SQLITE, POSTGRES = (
    pytest.mark.parametrize(("kept", "broker"), [pair], ids=["-".join(pair)], indirect=True) for pair in PAIRS
)

HOURLY = """
@ledger.job("credit", duly.every("1h"), catch_up=duly.EACH, overlap=True, lease="60s")
def credit(run):
    done(run)
"""

DAILY = """
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0, lease="60s")
def export(run):
    done(run)
"""

# A job that says that it has come, and goes on when it is let; its effect says how many were in hands then.
GATED = """
from tests.daemon.effects import at_once

@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0, lease="60s", overlap={overlap})
def export(run):
    with open(os.environ["CAME"], "w") as came:
        came.write(f"{{os.getpid()}}\\n")
    with open(os.environ["GO"], "rb", buffering=0) as go:
        go.read(len("go\\n"))  # no word that is another's
    done(run, at_once(run, "2026-10-05"))
"""
ALONE = GATED.format(overlap=False)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path, "gate")
    yield gate
    gate.close()


def gate_of(gate: Gate) -> dict[str, str]:
    return {"CAME": str(gate._came), "GO": str(gate._go)}


def outcomes(stage: CeleryStage) -> Counter[str]:
    return Counter(dict(stage.book.rows("select outcome, count(*) from duly_attempt group by outcome")))


# -- what is owed is worked ------------------------------------------------------------------------------------------------


def test_a_backlog_is_worked_once_by_two_workers_and_two_daemons_though_one_daemon_is_killed(
    stage: CeleryStage,
) -> None:
    stage.app_module(HOURLY + DAILY)
    pool = ("-P", "prefork") if stage.is_postgres else ("-P", "threads")
    stage.worker("-c", "2", *pool)
    stage.worker("-c", "2", *pool)
    first = stage.dispatcher("--per-job", "4")
    stage.until(lambda: len(stage.effects()) == 2, "what is owed first is done")

    stage.clock.advance(2 * DAY)
    second = stage.dispatcher("--per-job", "4")
    stage.until(lambda: len(stage.effects("credit")) > 10, "the backlog is begun")
    first.kill()

    stage.until(lambda: len(stage.effects()) >= 52, "all is done")  # 48 hours, 2 days, and the two of the beginning
    assert second.stop() == 0
    assert max(Counter(stage.effects()).values()) == 1
    assert len(stage.effects()) == 52
    assert stage.book.rows("select distinct trigger from duly_attempt_readable") == [("celery",)]
    assert outcomes(stage) == Counter(completed=52)


@POSTGRES
def test_a_failure_is_on_record_and_retried_when_its_time_has_come_and_no_word_of_it_leaves_the_worker(
    stage: CeleryStage,
) -> None:
    stage.app_module(
        """
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay="10m", retry_ceiling="10m")
def export(run):
    done(run)
    if run.attempt == 1:
        raise KeyError("pa55word")
"""
    )
    worker = stage.worker("-c", "1")
    dispatcher = stage.dispatcher()
    dispatcher_log = stage.folder / "daemon-0.log"
    stage.until(lambda: outcomes(stage)["failed"] == 1, "it failed")
    worker.until_said("AttemptFailed('export:2026-10-05[UTC] attempt 1: KeyError')")
    assert stage.effects() == []

    stage.clock.advance(HOUR)

    stage.until_done(*days(5))
    assert dispatcher.stop() == 0
    assert outcomes(stage) == Counter(failed=1, completed=1)
    assert "pa55word" not in worker.log + dispatcher_log.read_text()


# -- messages hold nothing -------------------------------------------------------------------------------------------------


@SQLITE
def test_messages_that_are_doubled_late_or_of_nobody_do_nothing_that_is_not_owed(stage: CeleryStage) -> None:
    stage.app_module(DAILY)
    asked = {"job": "export", "scope": "", "of_backfill": False, "ledger_id": stage.book.store.ledger_id}
    for _ in range(6):
        stage.broker.send("duly.attempt", **asked)
    stage.broker.send("duly.attempt", **{**asked, "job": "nobody"})
    stage.broker.send("duly.attempt", **{**asked, "ledger_id": "another"})
    stage.broker.send("duly.attempt", **{**asked, "of_backfill": True})
    worker = stage.worker("-c", "2").until_ready()

    for _ in range(2):
        stage.until(lambda: _handled(worker.log) == 9, "all are read")

    assert stage.effects() == days(5)
    assert outcomes(stage) == Counter(completed=1)
    assert "UnknownJob" in worker.log
    assert "WrongLedger" in worker.log


def _handled(log: str) -> int:
    return log.count("succeeded in") + log.count("raised expected")


def test_a_queue_that_is_purged_while_nobody_works_costs_nothing_but_time(stage: CeleryStage) -> None:
    stage.app_module(DAILY)
    stage.dispatcher("--again", "500ms")
    stage.until(lambda: stage.broker.waiting() == 1, "the line is asked for")

    assert stage.broker.purge() == 1
    stage.until(lambda: stage.broker.waiting() == 1, "and again")

    stage.worker("-c", "1")
    stage.until_done(*days(5))


def test_a_broker_that_dies_and_comes_back_empty_changes_nothing(mortal: CeleryStage, gate: Gate) -> None:
    stage, redis = mortal, mortal.broker
    stage.app_module(ALONE + HOURLY)
    stage.worker("-c", "2", environ=gate_of(gate))
    dispatcher = stage.dispatcher("--again", "1s")
    gate.arrived()
    stage.until(lambda: len(stage.effects("credit")) == 1, "the other is done")

    redis.kill()  # type: ignore[attr-defined]
    stage.clock.advance(4 * HOUR)
    gate.open()  # its run goes on without a broker
    stage.until(lambda: stage.effects("export") == days(5), "it is complete")
    redis.start()  # type: ignore[attr-defined]
    stage.worker(
        "-c", "2", environ=gate_of(gate)
    )  # one that lost its broker while it acknowledged may hear of no other

    stage.until(lambda: len(stage.effects("credit")) == 5, "what came due meanwhile is done")
    assert max(Counter(stage.effects()).values()) == 1
    assert dispatcher.stop() == 0


# -- workers that die ------------------------------------------------------------------------------------------------------


@SQLITE
def test_a_worker_that_is_killed_in_a_run_leaves_it_to_another(stage: CeleryStage, gate: Gate) -> None:
    stage.app_module(ALONE)
    first = stage.worker("-c", "1", environ=gate_of(gate))
    stage.dispatcher("--again", "500ms")
    gate.arrived()

    first.kill()
    stage.worker("-c", "1", environ=gate_of(gate)).until_ready()
    assert not gate.has_come()  # its lease is not over
    stage.clock.advance(2 * MINUTE)

    gate.arrived()
    gate.open()
    stage.until_done(*days(5))
    assert outcomes(stage) == Counter(lost=1, completed=1)


@SQLITE
def test_a_time_limit_of_celery_is_an_exception_and_the_hard_one_a_death(stage: CeleryStage, gate: Gate) -> None:
    stage.app_module(ALONE, options=", soft_time_limit=1")
    stage.worker("-c", "1", environ=gate_of(gate))
    stage.dispatcher("--again", "500ms")
    gate.arrived()
    stage.until(lambda: outcomes(stage)["failed"] == 1, "the function got it as an exception")
    (error,) = stage.book.rows("select error from duly_attempt_readable where outcome = 'failed'")
    assert "SoftTimeLimitExceeded" in error[0]

    gate.open(9)
    stage.until_done(*days(5))


@POSTGRES
def test_a_run_that_the_hard_limit_ends_is_retried_by_its_contract(stage: CeleryStage, gate: Gate) -> None:
    stage.app_module(ALONE, options=", time_limit=1")
    worker = stage.worker("-c", "1", environ=gate_of(gate))
    stage.dispatcher("--again", "500ms")
    child = gate.arrived()
    worker.until_said("Hard time limit")
    until(lambda: not is_alive(child), "it is gone")

    gate.open(9)
    stage.clock.advance(2 * MINUTE)

    stage.until_done(*days(5))
    # Celery sends SIGTERM, which the function sees as an exception, and SIGKILL soon after, which nobody sees.
    assert outcomes(stage) in (Counter(failed=1, completed=1), Counter(lost=1, completed=1))


# -- those that are told to stop ------------------------------------------------------------------------------------------


@POSTGRES
def test_a_dispatcher_that_is_told_to_stop_leaves_at_once_and_a_worker_when_its_run_has_ended(
    stage: CeleryStage, gate: Gate
) -> None:
    stage.app_module(ALONE)
    worker = stage.worker("-c", "1", environ=gate_of(gate))
    dispatcher = stage.dispatcher()
    gate.arrived()

    assert dispatcher.stop() == 0
    worker.send(signal.SIGTERM)
    worker.until_said("Warm shutdown")
    assert not worker.is_over
    stage.clock.advance(2 * MINUTE)  # whoever works keeps its lease
    gate.open()

    assert worker.ended() == 0
    assert stage.effects() == days(5)
    assert outcomes(stage) == Counter(completed=1)


# -- backfills -------------------------------------------------------------------------------------------------------------


@POSTGRES
def test_a_backfill_of_three_at_once_never_has_more_on_two_workers(stage: CeleryStage, gate: Gate) -> None:
    stage.app_module(GATED.format(overlap=True))
    for _ in range(2):
        stage.worker("-c", "3", environ=gate_of(gate)).until_ready()
    gate.open()
    stage.dispatcher("--per-job", "6", "--poll", "1s")
    gate.arrived()
    stage.until_done(*days(5))

    stage.book.job("export", overlap=1)
    stage.book.backfill("2026-09-20", "2026-10-05", concurrency=3)
    came = [gate.arrived() for _ in range(3)]
    for _ in range(15):
        gate.open()
        if len(came) < 15:
            came.append(gate.arrived())

    stage.until(lambda: len(stage.effects()) == 16, "all of it is done")
    assert max(Counter(stage.effects()).values()) == 1
    at_once = [int(by) for run, by in stage.book.rows("select run, by from duly_done") if run not in days(5)]
    assert max(at_once) == 3
