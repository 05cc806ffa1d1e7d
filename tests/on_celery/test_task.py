"""A task that is a job: each message works the window that it was sent for, however often it comes and whoever sent it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import Retry
from celery.schedules import crontab

import duly
import duly.aio
from duly.celery import task_of
from duly.errors import (
    FOR_GOOD,
    ClaimLost,
    LedgerBusy,
    LedgerCorrupt,
    LedgerUnavailable,
    Misuse,
    NoLedger,
    RunBusy,
    RunSkipped,
    TriggerUnclear,
    WindowInvalid,
    meaning_of,
)
from duly.ledger.pause import pause
from duly.ledger.retire import retire_job
from duly.store.sqlite import SqliteStore
from duly.trigger.celery import HEADER
from duly.trigger.celery.beat import Scheduler
from tests.books import WORD, Book
from tests.exec.stage import PATIENCE, Gate
from tests.ledger.test_owed import days
from tests.on_celery.stage import CeleryStage
from tests.on_celery.test_carried import ALONE, DAILY, POSTGRES, SQLITE, gate, gate_of, outcomes

__all__ = ["gate"]

TASK = """
from duly.celery import task_of
export_task = task_of(app, export{options})
"""

MIDNIGHT = {"entry": "export", "schedule": "crontab", "at": "2026-10-06T00:00:00Z", "zone": "UTC", "late": False}


def send(stage: CeleryStage, header: dict[str, Any] | None = None, **options: Any) -> None:
    """A message of beat's, or of a caller."""
    with stage.broker.app() as app:
        app.send_task("export", headers=None if header is None else {HEADER: header}, **options)


def triggers(stage: CeleryStage) -> list[str]:
    return [words for (words,) in stage.book.rows("select trigger from duly_attempt_readable order by number")]


# -- what a message works -------------------------------------------------------------------------------------------------


@SQLITE
def test_messages_of_two_beats_and_a_redelivery_have_one_effect(stage: CeleryStage) -> None:
    stage.app_module(DAILY, carry=TASK.format(options=""))
    for task_id in ("beat-1", "beat-2", "beat-1"):
        send(stage, MIDNIGHT, task_id=task_id)
    worker = stage.worker("-c", "1")

    stage.until(lambda: worker.log.count("succeeded in") + worker.log.count("comes again") >= 3, "all are read")
    stage.until(lambda: worker.log.count("'answer': 'AlreadyCompleted'") >= 2, "and two of them had come too late")

    assert stage.effects() == days(5)
    assert triggers(stage)[0].startswith("celery scheduled beat-")
    assert outcomes(stage)["completed"] == len(triggers(stage)) == 1


@POSTGRES
def test_retries_of_celery_are_attempts_at_the_same_run(stage: CeleryStage) -> None:
    failing = DAILY.replace(
        "    done(run)", "    done(run)\n    if run.attempt < 3:\n        raise OSError('pa55word')"
    )
    options = ", autoretry_for=(Exception,), default_retry_delay=0, max_retries=5"
    stage.app_module(failing, carry=TASK.format(options=options))
    send(stage, MIDNIGHT, task_id="4711")
    stage.worker("-c", "1")

    stage.until_done(*days(5))

    assert triggers(stage) == [
        "celery scheduled 4711",
        "celery retry 4711 retry-1",
        "celery retry 4711 retry-2",
    ]
    assert stage.book.runs() == [("2026-10-05T00:00:00", "completed")]


@SQLITE
def test_a_message_that_a_killed_worker_had_comes_to_another_which_waits_for_the_lease(
    stage: CeleryStage, gate: Gate
) -> None:
    # Redis gives a message back when its visibility time-out is over; here a second copy stands for that.
    stage.app_module(ALONE.replace('lease="60s"', 'lease="3s"'), carry=TASK.format(options=""))
    send(stage, MIDNIGHT, task_id="4711")
    first = stage.worker("-c", "1", environ=gate_of(gate))
    gate.arrived()
    first.kill()

    send(stage, MIDNIGHT, task_id="4711")
    second = stage.worker("-c", "1", environ=gate_of(gate))
    second.until_said("comes again in")
    stage.clock.advance("4s")

    gate.arrived()
    gate.open()
    stage.until_done(*days(5))
    assert outcomes(stage) == {"lost": 1, "completed": 1}


@POSTGRES
def test_a_worker_that_is_killed_gives_its_message_back_to_rabbitmq(stage: CeleryStage, gate: Gate) -> None:
    stage.app_module(ALONE.replace('lease="60s"', 'lease="3s"'), carry=TASK.format(options=""))
    send(stage, MIDNIGHT, task_id="4711")
    first = stage.worker("-c", "1", environ=gate_of(gate))
    gate.arrived()
    first.kill()

    stage.clock.advance("4s")
    stage.worker("-c", "1", environ=gate_of(gate))

    gate.arrived()
    gate.open()
    stage.until_done(*days(5))
    assert outcomes(stage) == {"lost": 1, "completed": 1}


@SQLITE
def test_a_real_beat_is_late_for_a_window_and_two_of_them_are_for_the_same(stage: CeleryStage) -> None:
    minute = (datetime.now(UTC) - timedelta(minutes=10)).minute
    entry = (
        "from celery.schedules import crontab\n"
        f"app.conf.beat_schedule = {{'export': {{'task': 'export', 'schedule': crontab(minute={minute})}}}}\n"
        "app.conf.beat_scheduler = 'duly.trigger.celery.beat:Scheduler'\n"
    )
    hourly = DAILY.replace('duly.daily("UTC")', f'duly.cron("{minute} * * * *", zone="UTC")')
    stage.app_module(hourly, carry=entry + TASK.format(options=""))
    stage.clock.set(f"{datetime.now(UTC) + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}")
    _were_down_for_two_hours(minute, stage.folder / "beat-1", stage.folder / "beat-2")
    worker = stage.worker("-c", "1")
    for name in ("beat-1", "beat-2"):
        stage.beat("-s", name)

    stage.until(lambda: worker.log.count("'key': 'export:") >= 2, "both have sent a message")

    assert len(stage.effects()) == 1
    assert triggers(stage)[0].startswith("celery catch-up ")


def _were_down_for_two_hours(minute: int, *files: Path) -> None:
    """The files of beats that were stopped then."""
    app = Celery("shop", broker="memory://")
    app.conf.beat_schedule = {"export": {"task": "export", "schedule": crontab(minute=minute)}}
    scheduler = Scheduler(app=app, schedule_filename=str(files[0]))
    scheduler.schedule["export"].last_run_at -= timedelta(hours=2)
    scheduler.close()
    for file in files[0].parent.glob(f"{files[0].name}*"):
        for other in files[1:]:
            shutil.copy(file, file.with_name(file.name.replace(files[0].name, other.name)))


# -- in this process ------------------------------------------------------------------------------------------------------


class Shop:
    """An app whose tasks are called here, as its worker would."""

    def __init__(self, book: Book, **options: Any) -> None:
        self.app = Celery("shop", broker=f"memory://{id(self)}")
        self.app.conf.update(task_eager_propagates=True, broker_transport_options={"polling_interval": 0.01})
        self.worked: list[str] = []
        self.tries = 0
        self.raises: Exception | None = None
        self.meets: Callable[[], Any] = int
        ledger = duly.sqlite(book.path, busy_seconds=0.01)

        @ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retries=9, retry_delay="1ms")
        def export(run: Any) -> None:
            self.tries += 1
            self.meets()
            if self.raises is not None:
                raise self.raises
            self.worked.append(run.key)

        self.job = export
        self.task = task_of(self.app, export, **options)

    def send(self, header: object = None, task_id: str = "4711", **arguments: Any) -> Any:
        headers = {} if header is None else {HEADER: header}
        return self.task.apply(kwargs=arguments, headers=headers, task_id=task_id).get()


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "ledger.db")


def test_a_message_that_names_no_window_says_so(book: Book) -> None:
    shop = Shop(book)

    with pytest.raises(TriggerUnclear, match="names no window and no beat sent it"):
        shop.send()
    with pytest.raises(TriggerUnclear, match="could not tell for which time"):
        shop.send({"entry": "export", "schedule": "schedule"})
    with pytest.raises(TriggerUnclear, match="does not say for which time"):
        shop.task.apply(headers={"celery_beat_task": True}).get()

    assert shop.worked == []
    assert shop.send(window="2026-10-05") == {"answer": "Completed", "key": "export:2026-10-05[UTC]"}


def test_it_may_work_what_is_owed_instead(book: Book) -> None:
    shop = Shop(book, unnamed="owed")

    for _ in range(2):
        shop.send()
        shop.send({"entry": "export", "schedule": "schedule"})
        shop.task.apply(headers={"celery_beat_task": True}).get()

    assert shop.worked == days(5)


def test_or_a_run_outside_the_schedule_that_its_retries_share(book: Book) -> None:
    shop = Shop(book, unnamed="adhoc")

    for task_id in ("4711", "4711", "4712"):
        shop.send(task_id=task_id)

    assert shop.worked == ["export:adhoc-4711", "export:adhoc-4712"]
    with pytest.raises(TriggerUnclear):  # beat is nobody who fires by hand
        shop.send({"entry": "export", "schedule": "schedule"})


def test_a_time_that_is_none_of_the_jobs_schedule_is_refused(book: Book) -> None:
    shop = Shop(book)

    with pytest.raises(WindowInvalid, match="no window is due"):
        shop.send({**MIDNIGHT, "at": "2026-10-06T00:30:00Z"})
    with pytest.raises(WindowInvalid, match="Europe/Berlin"):
        shop.send({**MIDNIGHT, "zone": "Europe/Berlin"})
    for wrong in ({"zone": "../../etc/passwd"}, {"at": "soon"}, {"at": 1}):
        with pytest.raises(Misuse):
            shop.send({**MIDNIGHT, **wrong})
    assert shop.worked == []


def test_what_somebody_skipped_or_holds_is_told_and_is_no_failure(book: Book) -> None:
    shop = Shop(book)
    book.job()
    book.skip("2026-10-04")
    book.take("2026-10-05")

    assert shop.send(window="2026-10-04")["answer"] == "RunSkipped"
    assert shop.send(MIDNIGHT) == {"answer": "Busy", "key": "export:2026-10-05[UTC]"}
    assert shop.send(window="2026-10-07")["answer"] == "NotDue"
    assert shop.worked == []


def test_a_retry_is_another_attempt_at_the_same_window_and_says_so(book: Book) -> None:
    shop = Shop(book)

    answer = shop.task.apply(headers={HEADER: MIDNIGHT}, retries=2, task_id="4711").get()

    assert answer == {"answer": "Completed", "key": "export:2026-10-05[UTC]"}
    assert book.rows("select trigger from duly_attempt_readable") == [("celery retry 4711 retry-2",)]


def test_a_message_whose_run_is_in_other_hands_comes_again_and_is_no_retry(book: Book) -> None:
    shop = Shop(book)
    book.job()
    claim = book.take("2026-10-05")
    queue = f"shop-{id(shop)}"
    got = {"id": "4711", "headers": {HEADER: MIDNIGHT}, "retries": 1, "is_eager": False, "args": (), "kwargs": {}}
    shop.task.push_request(**got, delivery_info={"exchange": "", "routing_key": queue})

    with pytest.raises(Retry, match="Busy: comes again in 60 s"):
        shop.task.run()

    with shop.app.connection_for_read() as connection:
        again = connection.SimpleQueue(shop.app.amqp.queues[queue]).get(timeout=PATIENCE)
    assert (again.headers["id"], again.headers["retries"], again.headers[HEADER]) == ("4711", 1, MIDNIGHT)
    assert again.headers["eta"] is not None
    book.complete(claim)
    assert shop.task.run() == {"answer": "AlreadyCompleted", "key": "export:2026-10-05[UTC]"}


# -- what an error means --------------------------------------------------------------------------------------------------


def got(shop: Shop, **retried: Any) -> dict[str, Any]:
    """A message as a worker gets it, for `push_request`."""
    route = {"exchange": "", "routing_key": f"shop-{id(shop)}"}
    return {"id": "4711", "headers": {HEADER: MIDNIGHT}, "is_eager": False, "args": (), "kwargs": {}, "retries": 0} | {
        "called_directly": False,
        "delivery_info": route,
        **retried,
    }


def missing_ledger(folder: Path) -> Any:
    """What a job meets that reads a ledger which nobody has made."""
    return SqliteStore(str(folder / "nowhere.db"), create=False)


@pytest.mark.parametrize(
    "error", [LedgerCorrupt(), LedgerBusy(), NoLedger(), RunSkipped(), RunBusy(), Misuse("its own"), ClaimLost()]
)
def test_what_the_function_raises_fails_the_task_though_it_is_an_error_of_another_ledgers(
    book: Book, error: Exception
) -> None:
    shop = Shop(book)
    shop.raises = error

    ended = shop.task.apply(headers={HEADER: MIDNIGHT}, throw=False)

    assert ended.state == "FAILURE"
    assert ended.result is error


def test_a_ledger_that_the_function_does_not_find_is_none_of_the_tasks(book: Book, tmp_path: Path) -> None:
    shop = Shop(book)
    shop.meets = lambda: missing_ledger(tmp_path)
    shop.task.push_request(**got(shop))

    with pytest.raises(NoLedger):
        shop.task.run()


@pytest.mark.parametrize("error", [RunBusy(), LedgerBusy(), Misuse("its own")])
def test_what_the_function_raises_is_retried_by_the_options_of_the_task(book: Book, error: Exception) -> None:
    shop = Shop(book, autoretry_for=(Exception,), default_retry_delay=0, max_retries=1)
    shop.raises = error

    with pytest.raises(Retry) as retried:
        shop.send(MIDNIGHT)

    assert retried.value.exc is error


def test_what_no_try_mends_fails_at_once_whatever_is_retried(book: Book) -> None:
    shop = Shop(book, autoretry_for=(Exception,), default_retry_delay=0, max_retries=3)
    shop.task.push_request(**got(shop, headers={HEADER: {**MIDNIGHT, "at": "2026-10-06T00:30:00Z"}}))

    with pytest.raises(WindowInvalid):
        shop.task.run()


def test_a_ledger_that_is_damaged_fails_the_task_and_no_message_goes_round(tmp_path: Path) -> None:
    shop = Shop(Book(tmp_path / "ledger.db"))
    shop.job._store.close()
    (tmp_path / "ledger.db").write_bytes(b"no ledger at all" * 1000)
    shop.task.push_request(**got(shop))

    with pytest.raises(LedgerUnavailable) as raised:
        shop.task.run()

    assert meaning_of(raised.value) == FOR_GOOD


@pytest.mark.parametrize("unnamed", ["refuse", "owed"])
def test_a_ledger_that_is_busy_has_the_message_come_again(book: Book, unnamed: str) -> None:
    shop = Shop(book, unnamed=unnamed)
    shop.job.run("2026-10-04")
    shop.task.push_request(**got(shop, headers={HEADER: MIDNIGHT} if unnamed == "refuse" else {}))

    with closing(sqlite3.connect(book.path)) as other:
        other.execute("begin immediate")
        with pytest.raises(Retry, match="LedgerBusy: comes again in 30 s"):
            shop.task.run()

    assert shop.tries == 1


def test_what_was_retired_is_told_and_is_no_failure(book: Book) -> None:
    shop = Shop(book)
    shop.job.run("2026-10-04")
    book.write(retire_job("export", WORD, skip_owed=True))
    book.clock.advance("5d")

    assert shop.send(window="2026-10-08")["answer"] == "Retired"


@pytest.mark.parametrize("unnamed", ["refuse", "owed"])
def test_what_is_paused_is_told_and_no_message_goes_round(book: Book, unnamed: str) -> None:
    shop = Shop(book, unnamed=unnamed)
    shop.job.run("2026-10-04")
    book.write(pause("export", None, WORD, until=None))
    shop.task.push_request(**got(shop, headers={HEADER: MIDNIGHT} if unnamed == "refuse" else {}))

    assert shop.task.run()["answer"] == ("RunPaused" if unnamed == "refuse" else "CaughtUp")
    assert shop.tries == 1


def test_a_payload_and_a_scope_may_be_given_to_the_task(book: Book) -> None:
    shop = Shop(book, scope="acme", payload={"units": 3})

    assert shop.send(MIDNIGHT)["key"] == "acme/export:2026-10-05[UTC]"
    assert shop.send(window="2026-10-04", scope="bcme")["key"] == "bcme/export:2026-10-04[UTC]"
    assert book.rows("select count(*) from duly_run where payload like '%:%'") == [(2,)]
    with pytest.raises(Misuse, match="payload: what is owed is worked without one"):
        Shop(book, unnamed="owed", payload={"units": 3})


def test_a_job_of_an_event_loop_and_a_word_that_is_none_are_refused(book: Book, tmp_path: Path) -> None:
    ledger = duly.aio.sqlite(tmp_path / "other.db")

    @ledger.job("fetch", duly.daily("UTC"), catch_up=duly.EACH)
    async def fetch(run: Any) -> None: ...

    with pytest.raises(Misuse, match="no event loop"):
        task_of(Celery("shop"), fetch)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="none of refuse, owed, adhoc"):
        Shop(book, unnamed="guess")
