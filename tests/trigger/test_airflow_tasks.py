"""What Airflow is told of a run: done, tried again, failed for good, or skipped. Airflow's own exceptions are stood for by
classes of the same names: a real Airflow is asked by `campaigns.airflow`."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import duly
from duly import errors
from duly.testing.clock import HandClock
from duly.trigger.airflow import task_of
from tests.books import Book
from tests.trigger.test_airflow import context


class AirflowException(Exception):
    pass


class AirflowFailException(AirflowException):
    pass


class AirflowSkipException(AirflowException):
    pass


@pytest.fixture(params=["2", "3"])
def airflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each version keeps its exceptions."""
    airflow, exceptions = ModuleType("airflow"), ModuleType("airflow.exceptions")
    for kind in (AirflowException, AirflowFailException, AirflowSkipException):
        setattr(exceptions, kind.__name__, kind)
    monkeypatch.setitem(sys.modules, "airflow", airflow)
    if request.param == "2":
        airflow.exceptions = exceptions  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "airflow.exceptions", exceptions)
        monkeypatch.setitem(sys.modules, "airflow.sdk", None)
    else:
        sdk = ModuleType("airflow.sdk")
        sdk.exceptions = exceptions  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)


@pytest.fixture
def clock(tmp_path: Path) -> HandClock:
    return HandClock(str(tmp_path / "jobs.db"), at="2026-10-25T23:00:05Z")


@pytest.fixture
def ledger(tmp_path: Path, clock: HandClock) -> Iterator[duly.Ledger[sqlite3.Connection]]:
    ledger = duly.sqlite(str(tmp_path / "jobs.db"))
    yield ledger
    ledger.close()


def declared(
    ledger: duly.Ledger[sqlite3.Connection], work: Callable[[duly.Run[sqlite3.Connection]], None], at: str = "00:00"
) -> duly.Job[sqlite3.Connection]:
    schedule = duly.daily("Europe/Berlin") if at == "00:00" else duly.daily("Europe/Berlin", at=at)
    return ledger.job("close", schedule, catch_up=duly.EACH)(work)


def test_a_window_that_is_complete_is_a_success_so_that_what_follows_goes_on(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None
) -> None:
    worked: list[str] = []
    task = task_of(declared(ledger, lambda run: worked.append(str(run.key))))

    said = [task(**context()), task(**context(tries=2))]

    assert said == ["close:2026-10-25[Europe/Berlin]"] * 2
    assert worked == said[:1]


def test_a_manual_run_works_no_window_and_its_second_try_nothing_more(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None
) -> None:
    worked: list[str] = []
    task = task_of(declared(ledger, lambda run: worked.append(str(run.key))))

    for tries in (1, 2):
        task(**context("manual", tries=tries))

    assert len(worked) == 1
    assert worked[0].startswith("close:adhoc-days-manual__")


def test_what_comes_too_early_is_tried_again(ledger: duly.Ledger[sqlite3.Connection], airflow: None) -> None:
    task = task_of(declared(ledger, lambda run: None, at="02:30"))

    with pytest.raises(AirflowException, match="NotDue") as raised:
        task(**context())

    assert type(raised.value) is AirflowException


def test_what_another_attempt_holds_is_tried_again(ledger: duly.Ledger[sqlite3.Connection], airflow: None) -> None:
    def work(run: duly.Run[sqlite3.Connection]) -> None:
        with pytest.raises(AirflowException, match="Busy") as raised:
            task(**context())
        assert type(raised.value) is AirflowException

    task = task_of(declared(ledger, work))

    assert task(**context()) == "close:2026-10-25[Europe/Berlin]"


def test_what_the_job_raises_is_raised_and_tried_again(ledger: duly.Ledger[sqlite3.Connection], airflow: None) -> None:
    tries: list[str] = []

    def work(run: duly.Run[sqlite3.Connection]) -> None:
        tries.append(str(run.key))
        if len(tries) == 1:
            raise OSError("the disk")

    task = task_of(declared(ledger, work))

    with pytest.raises(OSError, match="the disk"):
        task(**context())
    assert task(**context(tries=2)) == "close:2026-10-25[Europe/Berlin]"


def test_what_waits_for_a_person_fails_without_another_try(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None
) -> None:
    def work(run: duly.Run[sqlite3.Connection]) -> None:
        raise ZeroDivisionError

    job = ledger.job("close", duly.daily("Europe/Berlin"), catch_up=duly.EACH, retries=0)(work)
    with pytest.raises(ZeroDivisionError):
        task_of(job)(**context())

    with pytest.raises(AirflowFailException, match="waits for a person"):
        task_of(job)(**context(tries=2))


def test_a_time_that_is_none_of_the_jobs_fails_without_another_try(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None
) -> None:
    job = ledger.job("close", duly.cron("30 2 * * *", zone="Europe/Berlin"), catch_up=duly.EACH)(lambda run: None)

    with pytest.raises(AirflowFailException, match="no window is due"):
        task_of(job)(**context())


def test_a_mapped_task_that_would_be_taken_for_the_whole_window_is_refused(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None
) -> None:
    worked: list[str] = []
    job = declared(ledger, lambda run: worked.append(str(run.key)))

    with pytest.raises(AirflowFailException, match="give each a scope"):
        task_of(job)(**context(map_index=0))
    task_of(job, scope="acme")(**context(map_index=0))

    assert worked == ["acme/close:2026-10-25[Europe/Berlin]"]


@pytest.mark.parametrize(
    "error",
    [errors.LedgerBusy(), errors.LedgerCorrupt(), errors.RunSkipped(), errors.RunFailed(), errors.Misuse("its own")],
)
def test_an_error_of_another_ledger_that_the_job_raises_is_the_jobs(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None, error: Exception
) -> None:
    def work(run: duly.Run[sqlite3.Connection]) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        task_of(declared(ledger, work))(**context())

    assert raised.value is error


def test_what_a_person_skipped_is_skipped_and_a_ledger_that_is_damaged_fails_for_good(
    ledger: duly.Ledger[sqlite3.Connection], airflow: None, tmp_path: Path
) -> None:
    job = declared(ledger, lambda run: None)
    job.run("2026-10-24")
    Book(tmp_path / "jobs.db", at="2026-10-25T23:00:05Z").skip("2026-10-25", job="close")

    with pytest.raises(AirflowSkipException):
        task_of(job)(**context())
    ledger.close()
    (tmp_path / "jobs.db").write_bytes(b"no ledger at all" * 1000)
    with pytest.raises(AirflowFailException):
        task_of(job)(**context())


def test_a_context_that_is_none_fails_for_good(ledger: duly.Ledger[sqlite3.Connection], airflow: None) -> None:
    with pytest.raises(AirflowFailException, match="the context of the task has no"):
        task_of(declared(ledger, lambda run: None))()
