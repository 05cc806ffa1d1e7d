"""Celery: attempts that Celery's workers make. The ledger decides, Celery carries.

A message says of which line there may be work, and nothing else: no run, no window, no right, no payload. Whoever gets it
claims at the ledger then and there, as every other poke does. So one that is lost, late, doubled or handed to somebody else
costs a look at most, and what becomes of a run is on record whatever becomes of its message. Replies only wake: a place whose
reply is lost is given back as soon as the ledger shows that nobody works for it.

    carry(app, ledger)                                   in the module that workers and dispatcher import
    celery -A shop.jobs worker                           as many as there is work for
    duly daemon shop.jobs:ledger --celery shop.jobs:app  a daemon whose hands are the workers
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from duly.errors import DulyError, Misuse, Refused, UnknownJob, WrongLedger
from duly.ledger.open import Idle
from duly.ledger.ripe import held
from duly.work.aio.ledger import Ledger as AsyncLedger
from duly.work.answers import Completed
from duly.work.daemon.crew import Elsewhere
from duly.work.daemon.shares import line_of
from duly.work.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duly.ledger.ripe import Ripe
    from duly.store.protocol import Store
    from duly.work.answers import Attempted
    from duly.work.daemon.crew import Answer
    from duly.work.job import Job
    from duly.work.probe import Probed

TASK = "duly.attempt"
TRIGGER = "celery"

# How long a message may wait for a worker before its line is asked for again, in seconds. Less would ask twice where workers
# are merely busy; more would let a line wait longer for a message that is lost.
AGAIN_SECONDS = 60.0

# So many times as long a message is worth reading: workers discard older ones unread, and RabbitMQ drops them by itself, so
# that a queue that nobody empties for a night holds no more than this. More than once, because it is a worker's clock that says
# how old a message is, and that may be off.
WORTH = 10

_REPLIES = "duly.replies."  # the queue of a dispatcher: this, and chance
_FORGOTTEN_SECONDS = 60.0  # so long after its dispatcher has gone it is kept, for one that only lost its connection
_TURN_SECONDS = 1.0  # how long is listened before it is looked whether anything is lost
_CONFIRM_SECONDS = 10.0  # within them the broker says that it has a message, or it has not
_LAST_WORDS_SECONDS = 5.0

# Why each, in docs/celery.md. Acknowledged when taken: nothing hangs on it, and neither RabbitMQ's limit for acknowledgements
# nor Redis's visibility time-out then says how long a run may take. Never retried by Celery: the ledger says when.
_OPTIONS = {
    "acks_late": False,
    "autoretry_for": (),
    "ignore_result": True,
    "max_retries": 0,
    "reject_on_worker_lost": False,
    "track_started": False,
}


class AttemptFailed(Exception):
    """What an attempt came to, for Celery's eyes: run, attempt and the type of its error. All else is in the ledger."""


class NotMade(DulyError):
    """An attempt that was asked for was not made; it is asked for again."""


class NotTaken(NotMade):
    """No worker works for this line, though it was asked for long ago."""


# -- the worker's side -----------------------------------------------------------------------------------------------------


def carry(app: Any, *ledgers: Ledger[Any], **options: Any) -> None:
    """Register the task by which an app's workers make attempts at the jobs of these ledgers.

    Call it in the module that declares the jobs, once, whatever else the app has. `options` are those of a task of Celery's:
    `queue=…`, `soft_time_limit=…`. Raises `Misuse`, for a ledger of an event loop too: a worker has none.
    """
    given: tuple[object, ...] = ledgers
    for ledger in given:
        if isinstance(ledger, AsyncLedger):
            raise Misuse(
                "carry: Celery's workers call plain functions, and have no event loop for a ledger of duly.aio; declare these "
                "jobs on a ledger of duly's, or work them with a daemon of their own",
                next_step="duly daemon MODULE:LEDGER",
            )
        if not isinstance(ledger, Ledger):
            raise Misuse(f"carry: it is a {type(ledger).__name__}, not a ledger as duly.sqlite(…) makes one")
    if not ledgers:
        raise Misuse("carry: name the ledger whose jobs are to be worked: carry(app, ledger)")
    if getattr(app, "_duly_carries", False):
        raise Misuse("carry: this app carries a ledger already; name all of them at once: carry(app, ledger, another)")
    app._duly_carries = True

    def attempt(task: Any, *, job: str, scope: str, of_backfill: bool, ledger_id: str) -> None:
        _attempt(task, ledgers, job, scope, of_backfill=of_backfill, ledger_id=ledger_id)

    # Not shared: another app of this process carries what it is told to carry.
    app.task(bind=True, name=TASK, shared=False, **{"throws": (AttemptFailed,), **_OPTIONS, **options})(attempt)


def _attempt(
    task: Any, ledgers: tuple[Ledger[Any], ...], name: str, scope: str, *, of_backfill: bool, ledger_id: str
) -> None:
    """Poke one line, and tell its dispatcher that it was. Raises `AttemptFailed` for what did not go well."""
    reply: dict[str, Any] = {"error": "the worker stopped", "refused": False}
    failed = ""
    try:
        answer = _job(ledgers, name, ledger_id).attempt(scope, TRIGGER, of_backfill=of_backfill)
        if isinstance(answer, Idle):
            reply = {"live": answer.live}
        else:
            reply = {"worked": len(answer)}
            failed = _failed(answer)
    except Exception as e:
        failed = f"{type(e).__name__}: {e}" if isinstance(e, DulyError) else type(e).__name__
        reply = {"error": failed, "refused": isinstance(e, (Refused, Misuse))}
    finally:
        _tell(task, reply)
    if failed:  # a new one, with no other behind it: what was raised may hold what no log should
        raise AttemptFailed(failed)


def _job(ledgers: tuple[Ledger[Any], ...], name: str, ledger_id: str) -> Job[Any]:
    for ledger in ledgers:
        if ledger.store.ledger_id != ledger_id:
            raise WrongLedger("the worker's ledger is not the one of the daemon that asked; give both the same")
        if name in ledger.jobs:
            return ledger.jobs[name]
    raise UnknownJob(f"job: this worker has no {name!r}; start it again with the code that declares it")


def _failed(attempted: list[Attempted]) -> str:
    """What is said of attempts that did not complete their runs; nothing if all did."""
    failures = [each for each in attempted if not isinstance(each.outcome, Completed)]
    said = [f"{each.key} attempt {each.number}: {type(each.outcome).__name__}" for each in failures]
    return "; ".join(said)


def _tell(task: Any, reply: dict[str, Any]) -> None:
    """Wake the dispatcher that asked, if it can be reached: nothing depends on it."""
    queue = task.request.reply_to
    if not (isinstance(queue, str) and queue.startswith(_REPLIES)):
        return
    with suppress(Exception), task.app.producer_pool.acquire(block=True, timeout=_LAST_WORDS_SECONDS) as producer:
        producer.publish(
            reply,
            exchange="",
            routing_key=queue,
            correlation_id=task.request.id,
            serializer="json",
            delivery_mode=1,
            declare=[_reply_queue(queue)],
            retry=True,
            retry_policy={"max_retries": 1, "interval_start": 0},
        )


def _reply_queue(name: str) -> Any:
    """A queue that goes when nobody has listened for a while. Both sides declare it: on Redis it is who writes that says when
    what is written goes.
    """
    from kombu import Queue

    return Queue(name, durable=True, expires=_FORGOTTEN_SECONDS, no_ack=True)


# -- the dispatcher's side ----------------------------------------------------------------------------------------------------


class _Sent(NamedTuple):
    """A message that is under way, since when by the monotonic clock, and whom its place is given back to."""

    message: str
    ripe: Ripe
    at: float
    ended: Future[Answer]


class Carried:
    """Works a job whose attempts are made by Celery's workers: asks for each by a message."""

    def __init__(self, job: Job[Any], post: Post) -> None:
        self.name = job.name
        self.has_probe = job.has_probe
        self._job = job
        self._post = post

    def lines(self) -> list[str]:
        return self._job.lines()

    def has(self, scope: str) -> bool:
        return self._job.has(scope)

    def attempt(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        self._post.ask(ripe, done)

    def ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        return self._job.ask_probe(is_over=is_over)

    def leave(self) -> None:
        self._post.leave()

    def end(self) -> None:
        """Nothing is attempted here: workers end their attempts themselves."""


class Post:
    """The messages of one dispatcher that are under way: a thread sends them, another hears the replies."""

    def __init__(self, app: Any, store: Store, tell: Callable[[str], None], *, again: float = AGAIN_SECONDS) -> None:
        self.queue = _REPLIES + os.urandom(8).hex()
        self._app = app
        self._task = _task_of(app)
        self._store = store
        self._tell = tell
        self._again = again
        self._sent: dict[str, _Sent] = {}
        self._guard = threading.Lock()
        self._to_send: SimpleQueue[_Sent | None] = SimpleQueue()
        self._over = threading.Event()
        self._looks_at = 0.0
        self._connection: Any = None  # of the sender
        self._threads = [
            threading.Thread(target=target, name=f"duly-celery-{target.__name__.strip('_')}", daemon=True)
            for target in (self._send, self._hear)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def ask(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        """Ask for an attempt at a line. `done` is called when there was one, or none is to be expected any more."""
        sent = _Sent(_message_id(), ripe, monotonic(), Future())
        sent.ended.add_done_callback(done)
        with self._guard:
            self._sent[sent.message] = sent
        self._to_send.put(sent)

    def leave(self) -> None:
        """Give back every place. Messages that are under way are as good without us."""
        for message in self._under_way():
            self._end(message, Idle(None, None, None))

    def close(self) -> None:
        """Send and hear no more."""
        self._over.set()
        self._to_send.put(None)
        for thread in self._threads:
            thread.join(_LAST_WORDS_SECONDS)

    def _under_way(self) -> dict[str, _Sent]:
        with self._guard:
            return dict(self._sent)

    def _end(self, message: object, answer: Answer | Exception) -> None:
        """Give the place of a message back, once, whoever else says so too."""
        with self._guard:
            sent = self._sent.pop(message, None) if isinstance(message, str) else None
        if sent is None:
            return
        if isinstance(answer, Exception):
            sent.ended.set_exception(answer)
        else:
            sent.ended.set_result(answer)

    # -- sending ---------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        for sent in iter(self._to_send.get, None):
            if sent.message in self._under_way():
                try:
                    self._publish(sent)
                except Exception as e:  # whatever a broker's library raises: what was not sent is asked for again
                    self._end(
                        sent.message, NotMade(f"what asks for it could not be sent to the broker: {type(e).__name__}")
                    )
        self._hang_up()

    def _publish(self, sent: _Sent) -> None:
        """Send a message. A connection that has been quiet for long may be dead: then once more, by a new one."""
        had_one = self._connection is not None
        try:
            self._publish_now(sent)
        except Exception:
            self._hang_up()
            if not had_one:
                raise
            self._publish_now(sent)

    def _publish_now(self, sent: _Sent) -> None:
        if self._connection is None:
            self._connection = _dial(self._app)
        ripe = sent.ripe
        self._task.apply_async(
            kwargs={
                "job": ripe.job,
                "scope": ripe.scope,
                "of_backfill": ripe.backfill,
                "ledger_id": self._store.ledger_id,
            },
            task_id=sent.message,
            reply_to=self.queue,
            producer=self._app.amqp.Producer(self._connection, auto_declare=False),
            retry=False,
            confirm_timeout=_CONFIRM_SECONDS,
            expires=WORTH * self._again,
            expiration=WORTH * self._again,
        )

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.release()

    # -- hearing ---------------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        is_told = False
        while not self._over.is_set():
            try:
                for _ in self._heard():
                    is_told = False
                    self._look_for_lost()
            except Exception as e:
                if not is_told:
                    self._tell(
                        f"no replies of workers are heard, and the ledger is looked at instead: {type(e).__name__}"
                    )
                is_told = True
                self._look_for_lost()
                self._over.wait(_TURN_SECONDS)
        self._store.close()  # this thread's connection

    def _heard(self) -> Iterator[None]:
        """Hear replies as long as the connection lasts; yields after each, and when there was none for a while."""
        with self._app.connection_for_read(heartbeat=self._app.conf.broker_heartbeat) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0)
            queue = _reply_queue(self.queue)(connection.default_channel)
            with connection.Consumer([queue], callbacks=[self._take_reply], accept=["json"], no_ack=True):
                while not self._over.is_set():
                    with suppress(TimeoutError):
                        connection.drain_events(timeout=min(_TURN_SECONDS, self._again))
                    if connection.supports_heartbeats and connection.heartbeat:
                        connection.heartbeat_check()
                    yield
            queue.delete()

    def _take_reply(self, body: Any, message: Any) -> None:
        self._end(message.properties.get("correlation_id"), _answer_of(body))

    def _look_for_lost(self) -> None:
        """Give back places for which nobody works: of a line there are more messages, sent long ago, than runs in hands."""
        now = monotonic()
        if now < self._looks_at:
            return
        self._looks_at = now + min(_TURN_SECONDS, self._again)
        sent = list(self._under_way().values())
        old = [each for each in sent if now - each.at >= self._again]
        if not old:
            return
        try:
            worked = self._store.read(held())
        except DulyError:  # nobody can tell: the next look will
            return
        under_way = Counter(line_of(each.ripe) for each in sent)
        for each in old:  # the oldest first
            line = line_of(each.ripe)
            if under_way[line] > worked.get(line, 0):
                under_way[line] -= 1
                self._end(each.message, self._not_taken())

    def _not_taken(self) -> NotTaken:
        return NotTaken(
            f"no worker has worked for it since it was asked for, {self._again:g} s ago or longer: none is there, none is free,"
            " or the message was lost; it is asked for again",
            next_step="celery -A MODULE inspect active_queues",
        )


def _task_of(app: Any) -> Any:
    """The task by which the app's workers make attempts. Raises `Misuse`."""
    app.finalize()
    task = app.tasks.get(TASK)
    if task is None:
        raise Misuse(
            "--celery: this app carries no ledger; call carry(app, ledger) where the jobs are declared",
            next_step="python -c 'from duly.celery import carry; help(carry)'",
        )
    if app.conf.task_always_eager:
        raise Misuse("--celery: task_always_eager is set, so that nothing would ever reach a worker; unset it")
    return task


def _dial(app: Any) -> Any:
    """A connection to send by, on which a broker that can says that it has each message. It has no heartbeat: nobody would
    listen for it.
    """
    connection = app.connection_for_write(heartbeat=0)
    if connection.transport.driver_type == "amqp":
        connection.transport_options = {**(connection.transport_options or {}), "confirm_publish": True}
    connection.ensure_connection(max_retries=1, interval_start=0)
    return connection


def _answer_of(reply: Any) -> Answer | Exception:
    """What a reply says, as far as it says anything: it is a hint, whatever is in it."""
    said = reply if isinstance(reply, dict) else {}
    if "error" in said:
        text = "".join(sign if sign.isprintable() else "?" for sign in str(said["error"])[:500])
        return Refused(text) if said.get("refused") is True else NotMade(text)
    worked = said.get("worked")
    if isinstance(worked, int) and worked > 0:
        return Elsewhere(worked)
    return Idle(None, None, None, live=said.get("live") is True)


def _message_id() -> str:
    from uuid import uuid4

    return str(uuid4())
