"""The post of a dispatcher: when a place is given back, and to whom nothing is sent. On a broker in this process's memory."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

import duly
import duly.aio
from duly.celery import carry
from duly.errors import Misuse, Refused
from duly.ledger.open import Idle
from duly.ledger.ripe import Ripe
from duly.work.daemon.celery import TASK, AttemptFailed, NotMade, NotTaken, Post
from duly.work.daemon.crew import Elsewhere
from tests.books import Book
from tests.exec.stage import PATIENCE, until
from tests.story import duly as run_duly

LINE, OTHER = Ripe("export", "", 1, 1, 0), Ripe("other", "", 0, 1, 0)
SOON, NEVER = 0.05, 3600.0


class Mail:
    """A post, the messages that it has sent, and what came back."""

    def __init__(self, book: Book, *, again: float) -> None:
        self.app = Celery("shop", broker=f"memory://{id(self)}")
        self.app.conf.task_default_queue = f"shop-{id(self)}"
        self.app.conf.broker_transport_options = {"polling_interval": 0.01}
        carry(self.app, duly.sqlite(book.path))
        self.told: list[str] = []
        self.post = Post(self.app, book.store, self.told.append, again=again)
        self._back: queue.SimpleQueue[tuple[str, Future[Any]]] = queue.SimpleQueue()
        self.post.start()

    def ask(self, line: Ripe = LINE) -> None:
        self.post.ask(line, lambda ended: self._back.put((line.job, ended)))

    def back(self, job: str = "export") -> Any:
        """What the next place comes back with, which is one of this job's."""
        whose, ended = self._back.get(timeout=PATIENCE)
        assert whose == job
        return ended.exception() or ended.result()

    def sent(self) -> Any:
        """The next message."""
        with self.app.connection_for_read() as connection:
            return connection.SimpleQueue(self.app.amqp.queues[self.app.conf.task_default_queue]).get(timeout=PATIENCE)

    def reply(self, body: object, message: object) -> None:
        with self.app.connection_for_write() as connection, connection.Producer() as producer:
            producer.publish(body, routing_key=self.post.queue, correlation_id=message, serializer="json")


@pytest.fixture
def book(tmp_path: Path) -> Book:
    book = Book(tmp_path / "ledger.db")
    book.job(overlap=1)
    return book


@pytest.fixture
def mail_of(book: Book) -> Iterator[Callable[..., Mail]]:
    made: list[Mail] = []

    def make(*, again: float) -> Mail:
        made.append(Mail(book, again=again))
        return made[-1]

    yield make
    for mail in made:
        mail.post.close()


# -- when a place is given back --------------------------------------------------------------------------------------------


def test_a_message_names_a_line_and_nothing_else(book: Book, mail_of: Callable[..., Mail]) -> None:
    mail = mail_of(again=NEVER)
    mail.ask()

    message = mail.sent()
    _, arguments, _ = message.payload

    assert arguments == {"job": "export", "scope": "", "of_backfill": False, "ledger_id": book.store.ledger_id}
    assert message.headers["expires"] is not None


@pytest.mark.parametrize(
    ("reply", "back"),
    [
        ({"worked": 3}, Elsewhere(3)),
        ({"live": True}, Idle(None, None, None, live=True)),
        ({"worked": -1}, Idle(None, None, None)),
        ({"worked": "many", "live": "yes"}, Idle(None, None, None)),
        ("what?", Idle(None, None, None)),
    ],
)
def test_a_reply_gives_a_place_back_whatever_is_in_it(
    mail_of: Callable[..., Mail], reply: object, back: object
) -> None:
    mail = mail_of(again=NEVER)
    mail.ask()
    mail.reply(reply, "of-another")
    mail.reply(reply, None)

    mail.reply(reply, mail.sent().properties["correlation_id"])

    assert mail.back() == back


def test_what_a_worker_was_refused_is_a_refusal_here_and_other_trouble_is_not(mail_of: Callable[..., Mail]) -> None:
    mail = mail_of(again=NEVER)
    for reply in ({"error": "ScheduleChanged: no", "refused": True}, {"error": "OSError", "refused": False}):
        mail.ask()
        mail.reply(reply, mail.sent().properties["correlation_id"])

    assert [type(mail.back()), type(mail.back())] == [Refused, NotMade]


def test_a_place_is_kept_while_a_run_of_its_line_is_in_hands_and_given_back_when_none_is(
    book: Book, mail_of: Callable[..., Mail]
) -> None:
    claim = book.take()
    mail = mail_of(again=SOON)
    mail.ask()
    for _ in range(2):  # another line's comes back: the ledger is looked at
        mail.ask(OTHER)
        assert isinstance(mail.back("other"), NotTaken)

    book.complete(claim)

    assert isinstance(mail.back(), NotTaken)


def test_one_whose_lease_is_over_works_for_no_place(book: Book, mail_of: Callable[..., Mail]) -> None:
    book.take()
    mail = mail_of(again=SOON)
    mail.ask()

    book.lapse()

    assert isinstance(mail.back(), NotTaken)


def test_of_more_messages_than_runs_in_hands_only_those_that_are_too_many_are_given_back(
    book: Book, mail_of: Callable[..., Mail]
) -> None:
    claims = [book.take("2026-10-05"), book.take("2026-10-04")]
    mail = mail_of(again=SOON)
    for _ in range(3):
        mail.ask()
    assert isinstance(mail.back(), NotTaken)
    mail.ask(OTHER)
    mail.back("other")

    for claim in claims:
        book.complete(claim)

    assert isinstance(mail.back(), NotTaken)
    assert isinstance(mail.back(), NotTaken)


def test_who_leaves_has_all_places_back_and_a_reply_that_comes_then_is_nobodys(mail_of: Callable[..., Mail]) -> None:
    mail = mail_of(again=NEVER)
    mail.ask()
    message = mail.sent().properties["correlation_id"]

    mail.post.leave()
    assert mail.back() == Idle(None, None, None)
    mail.reply({"worked": 1}, message)

    mail.ask()
    mail.reply({"worked": 2}, mail.sent().properties["correlation_id"])
    assert mail.back() == Elsewhere(2)


def test_a_broker_that_cannot_be_reached_gives_the_place_back_and_its_password_to_nobody(book: Book) -> None:
    app = Celery("shop", broker="amqp://shop:pa55word@127.0.0.1:1//")
    carry(app, duly.sqlite(book.path))
    told: list[str] = []
    post = Post(app, book.store, told.append, again=NEVER)
    back: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    post.start()
    try:
        post.ask(LINE, back.put)
        error = back.get(timeout=PATIENCE).exception()
        until(lambda: told, "it is said that nobody is heard")
    finally:
        post.close()

    assert isinstance(error, NotMade)
    assert "pa55word" not in f"{error!r}{told}"


# -- the worker's side, called here ---------------------------------------------------------------------------------------


def test_a_worker_answers_dispatchers_only(book: Book, mail_of: Callable[..., Mail]) -> None:
    mail = mail_of(again=NEVER)
    asked = {"job": "nobody", "scope": "", "of_backfill": False, "ledger_id": book.store.ledger_id}

    for reply_to in ("celery", "another.queue", None):
        mail.app.tasks[TASK].apply(kwargs=asked, reply_to=reply_to, task_id="4711")

    with mail.app.connection_for_read() as connection:
        for name in ("celery", "another.queue"):
            with pytest.raises(queue.Empty):
                connection.SimpleQueue(name).get(block=False)


def test_a_worker_makes_no_attempt_for_another_ledger_or_at_a_job_that_it_does_not_know(book: Book) -> None:
    worker, worked = worker_of(book)
    right = {"job": "export", "scope": "", "of_backfill": False, "ledger_id": book.store.ledger_id}

    with pytest.raises(AttemptFailed, match="WrongLedger"):
        worker.apply(kwargs={**right, "ledger_id": "another"}).get()
    with pytest.raises(AttemptFailed, match="UnknownJob"):
        worker.apply(kwargs={**right, "job": "nobody"}).get()
    assert worked == []

    worker.apply(kwargs=right).get()
    assert worked == ["export:2026-10-05[UTC]"]


def test_what_a_function_raised_is_for_the_ledger_and_celery_sees_that_it_failed(book: Book) -> None:
    worker, _ = worker_of(book, error=KeyError("pa55word"))
    asked = {"job": "export", "scope": "", "of_backfill": False, "ledger_id": book.store.ledger_id}

    with pytest.raises(AttemptFailed) as failed:
        worker.apply(kwargs=asked).get()

    assert str(failed.value) == "export:2026-10-05[UTC] attempt 1: KeyError"
    assert (failed.value.__cause__, failed.value.__context__) == (None, None)


def worker_of(book: Book, *, error: Exception | None = None) -> tuple[Any, list[str]]:
    """The task of a worker, to be called here, and the runs that its job was called for."""
    app, ledger, worked = Celery("shop", broker="memory://"), duly.sqlite(book.path), []

    @ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)
    def export(run: Any) -> None:
        worked.append(run.key)
        if error is not None:
            raise error

    carry(app, ledger)
    app.finalize()
    return app.tasks[TASK], worked


# -- what is refused ----------------------------------------------------------------------------------------------------------


def test_what_cannot_be_carried_is_refused(book: Book, tmp_path: Path) -> None:
    ledger = duly.sqlite(book.path)

    with pytest.raises(Misuse, match="no event loop"):
        carry(Celery("shop"), duly.aio.sqlite(tmp_path / "other.db"))  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="it is a str"):
        carry(Celery("shop"), "jobs.db")  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="name the ledger"):
        carry(Celery("shop"))
    app = Celery("shop")
    carry(app, ledger)
    with pytest.raises(Misuse, match="carries a ledger already"):
        carry(app, ledger)


def test_an_app_that_sends_nothing_is_no_carrier(book: Book) -> None:
    app = Celery("shop")
    carry(app, duly.sqlite(book.path))
    with pytest.raises(Misuse, match="carries no ledger"):
        Post(Celery("another"), book.store, print)
    app.conf.task_always_eager = True
    with pytest.raises(Misuse, match="task_always_eager"):
        Post(app, book.store, print)


def test_the_command_line_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(
        f"import duly, duly.aio\nledger = duly.sqlite({str(tmp_path / 'l.db')!r})\n"
        f"tasks = duly.aio.sqlite({str(tmp_path / 'l.db')!r})\napp = 'app'\n"
    )
    python: dict[str, Any] = {"PYTHONPATH": f"{tmp_path}:{Path(duly.__file__).parents[1]}"}

    for words, said in (
        (("jobs:ledger", "--again", "1m"), "give it with --celery"),
        (("jobs:tasks", "--celery", "jobs:app"), "no event loop"),
        (("jobs:ledger", "--celery", "jobs:app"), "not an app of Celery's"),
        (("jobs:ledger", "--celery", "jobs:app", "--again", "soon"), "--again: "),
    ):
        ended = run_duly("daemon", *words, **python)

        assert ended.code == 64, ended
        assert said in ended.talk
