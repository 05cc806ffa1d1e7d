"""The ledger on PostgreSQL: connections, transactions, and the answers to what an operation asks.

A write is a transaction at READ COMMITTED, so that a look after a write sees what rivals have committed; the guards of the
statements decide, row locks only order who waits. All locks end with their transaction, so that a pooler in transaction
mode may stand between. The lease alone says whether a holder may be alive: processes of other hosts cannot be looked at.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.errors import CommitUnknown, Conflict, DulyError, LedgerTooNew, LedgerUnavailable, LedgerWentBack
from duly.ledger.ask import Ask, ask_together, conclude, drive
from duly.redaction import shown_url
from duly.store import BUSY_SECONDS, SCHEMA, refuse_other_versions
from duly.store.postgres_sql import clock_sql
from duly.store.sqlstate import leaves_open, meaning_of, why_unreachable
from duly.store.talk import COMMIT, Sent, Talk, raise_refusal, sent_of

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin
    from duly.store.owned.postgres import OwnedTransaction

T = TypeVar("T")


def translated(error: psycopg.Error, *, name: str) -> DulyError:
    """What an error of psycopg means for the ledger of this name."""
    return meaning_of(error.sqlstate or "", name=name, kind=why_unreachable(str(error)) or type(error).__name__)


# -- answering ----------------------------------------------------------------------------------------------------------


class Answers:
    """Answers what an operation asks on one connection, inside whatever transaction that is in."""

    def __init__(self, connection: psycopg.Connection[Any], *, clock_by_hand: bool = False) -> None:
        self._connection = connection
        self.clock_by_hand = clock_by_hand

    def now(self) -> int:
        """The instant by the database's clock, or by the one that a test set by hand."""
        instant = self(NOW)
        assert isinstance(instant, int)
        return instant

    def __call__(self, ask: Ask) -> object:
        if ask.want == "alive":
            return None  # no pulse is to be seen from here
        return answer_of(ask, send(self._connection, [sent_of(ask, clock_sql(self.clock_by_hand))])[-1])


NOW = Ask("now", None, {})


def send(connection: psycopg.Connection[Any], sent: Sequence[Sent]) -> list[psycopg.Cursor[tuple[Any, ...]]]:
    """Send statements in one wait; the cursor of each. Raises what an error means of the one that it came from."""
    cursors: list[psycopg.Cursor[tuple[Any, ...]]] = []
    try:
        with together(connection) if len(sent) > 1 else nullcontext():
            for each in sent:
                # A caller's row factory is none of our rows' business.
                cursors.append(psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row))
                cursors[-1].execute(each.text, each.parameters)
    except psycopg.Error as e:
        raise_refusal(sent, cursors, e)
    return cursors


def answer_of(ask: Ask, cursor: psycopg.Cursor[tuple[Any, ...]]) -> object:
    """What a question wanted of its statement."""
    match ask.want:
        case "do":
            return None
        case "count":
            return cursor.rowcount
        case "every":
            return cursor.fetchall()
    row = cursor.fetchone()
    return row if row is None or ask.want == "one" else row[0]


def exit_by_sync(pipeline: Any) -> Any:
    """How a pipeline of psycopg ends, but for the flush that it asks for after its Sync: PostgreSQL (15) takes that for a sign
    of life, and the transaction is never idle to it again (`idle_in_transaction_session_timeout`).
    """
    try:
        pipeline._enqueue_sync()
        yield from pipeline._communicate_gen()
    finally:
        yield from pipeline._fetch_gen(flush=False)


class _Pipeline(psycopg.Pipeline):
    _exit_gen = exit_by_sync


@contextmanager
def together(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Statements of which nothing is read back are sent with what follows them, where libpq can (from PostgreSQL 14 on)."""
    if not psycopg.capabilities.has_pipeline():
        yield
        return
    with psycopg.Connection.pipeline(connection) as pipeline:
        pipeline.__class__ = _Pipeline
        yield


def give_up(connection: psycopg.Connection[Any]) -> None:
    """Roll back what is open on a connection. One that is in the midst of a statement cannot: it is closed at the driver."""
    if connection.pgconn.transaction_status == TransactionStatus.ACTIVE or _is_in_pipeline(connection):
        with suppress(psycopg.Error):  # the server would go on with it, and hold what it has locked
            connection.cancel_safe(timeout=CANCEL_SECONDS)
        psycopg.Connection.close(connection)
    elif not connection.closed and connection.pgconn.transaction_status != TransactionStatus.IDLE:
        psycopg.Cursor(connection).execute("rollback")


def _is_in_pipeline(connection: psycopg.Connection[Any]) -> bool:
    return psycopg.capabilities.has_pipeline() and connection.pgconn.pipeline_status != 0


def is_usable(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether a connection that was kept is in no transaction, and the server has not ended it meanwhile. Waits for nothing."""
    try:
        connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return connection.pgconn.transaction_status == TransactionStatus.IDLE


def is_refusal(error: BaseException) -> bool:
    """Whether it is the error of the guard of an attempt's end (I2); a constraint of the user's has another table."""
    return isinstance(error, psycopg.IntegrityError) and (error.diag.schema_name, error.diag.table_name) == (
        "duly",
        "attempt",
    )


def millis(busy_seconds: float) -> str:
    """How long a statement waits for a lock, as the server takes it. 0 would be for ever."""
    return str(max(int(busy_seconds * 1000), 1))


def beginning(busy_seconds: float, *, durable: bool = True) -> list[Sent]:
    """What begins a transaction that writes; `busy_seconds` is how long each of its statements waits for a lock. The last of
    them is `BEGUN`.

    Set explicitly: a role's defaults may be otherwise. Without `durable` the commit is not flushed.
    """
    unflushed = [] if durable else [Sent("set local synchronous_commit = off")]
    return [Sent(BEGIN), *unflushed, Sent(BEGUN, (millis(busy_seconds),))]


READING = [Sent("begin isolation level repeatable read read only")]


BEGIN: LiteralString = "begin isolation level read committed"
BEGUN: LiteralString = "select * from duly.begun(%s)"


def begun_sql(busy_seconds: float) -> str:
    """`BEGUN` as a text by itself, for who sends it as one of several or through another driver."""
    return f"select * from duly.begun('{millis(busy_seconds)}')"


# Groups of statements that the database holds as one function, by their names: a wait for all of them, and one statement to
# be sent. A test sees to it that they are the same, word for word.
CLAIM_AT_ONCE: LiteralString = (
    "select * from duly.claim_as_remembered(%(lock_timeout)s, %(synchronous_commit)s, %(writer)s, %(newest_xid)s, %(epoch)s, "
    "%(series)s, %(nominal)s, %(revision)s, %(line)s, %(job)s, %(edition)s, %(due)s, %(window_start)s, %(window_end)s, "
    "%(resolution)s, %(version)s, %(payload)s, %(attempt_id)s, %(owner)s, %(trigger)s, %(lease)s, %(contract)s, "
    "%(remembers)s, %(overlap)s, %(zone)s, %(release)s, %(source)s, %(fingerprint)s, %(before)s, %(after)s, %(first)s, "
    "%(last)s)"
)
COMPLETE_AT_ONCE: LiteralString = (
    "select duly.complete_held(%(xid)s, %(series)s, %(nominal)s, %(revision)s, %(attempt_id)s, %(number)s, %(state)s, "
    "%(outcome)s, %(contract)s, %(owner)s, %(trigger)s, %(error)s)"
)
_CLAIMING = ("lock_line_if_absent", "hold_line_if_free", "claim_if_as_remembered", "see_as_remembered")
_COMPLETING = ("complete_if_held", "record_end_or_raise")
ANOTHER_TRANSACTION = "DULY1"  # the SQLSTATE of a completion in another transaction than the run's


def as_claim(asked: list[Ask], before: Mark, busy_seconds: float, *, durable: bool) -> dict[str, Any]:
    """What `claim_remembered` asks, as the parameters of `CLAIM_AT_ONCE`; `before` is what the database was."""
    names = tuple(ask.statement.name for ask in asked if ask.statement is not None)
    if names not in (_CLAIMING, (_CLAIMING[0], *_CLAIMING[2:])):
        raise TypeError(f"no claim from memory asks {names}")
    return {
        **asked[-2].parameters,
        "lock_timeout": millis(busy_seconds),
        "synchronous_commit": "on" if durable else "off",
        "writer": SCHEMA,
        "newest_xid": before.xid,
        "epoch": before.epoch,
    }


def leaves_claim_open(error: psycopg.Error) -> bool:
    """Whether after an error a claim in one statement may have been made, or is to be refused by who can say why."""
    return reply_is_lost(error) or isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState)


def completion_of(asked: list[Ask], begun: Begun) -> tuple[dict[str, Any], list[Ask]]:
    """What `complete_or_raise` asks, as the parameters of `COMPLETE_AT_ONCE`, and what comes after it."""
    names = tuple(ask.statement.name for ask in asked[:2] if ask.statement is not None)
    if names != _COMPLETING:
        raise TypeError(f"no completion asks {names}")
    return {**asked[1].parameters, "xid": begun.xid}, asked[2:]


class Begun(NamedTuple):
    """A transaction that was begun: its id, and which start of the server gave it; after a crash ids are given again."""

    xid: str
    server: str


def begun_of(rows: list[Any], past: Past, before: Mark) -> Begun:
    """The transaction of which `BEGUN` answered this; `before` is the mark from before it.

    Raises `LedgerTooNew` where this release may not write, and `LedgerWentBack` where the database was younger before.
    """
    ((min_writer, xid, epoch, server),) = rows
    if int(min_writer) > SCHEMA:
        raise LedgerTooNew
    past.check(int(xid), int(epoch), before)
    return Begun(xid, server)


class Mark(NamedTuple):
    """The newest commit of this process at a moment, and its epoch."""

    epoch: int
    xid: int


class Past:
    """What this process has seen the database at a URL be: the newest transaction that it committed, and in which epoch.

    `busy_seconds` is how long it is asked what became of one. Ids of transactions only rise, whoever makes them: one that
    began after that commit and has a lower id shows that the commit was forgotten.
    """

    def __init__(self, url: str, busy_seconds: float) -> None:
        self.url = url
        self.busy_seconds = busy_seconds
        self._committed = 0
        self._epoch = 0
        self._went_back = False

    def mark(self) -> Mark:
        """What was seen before a transaction begins, to be compared with it after: meanwhile others may commit."""
        return Mark(self._epoch, self._committed)

    @property
    def is_known(self) -> bool:
        """Whether the database was seen, and has not gone back."""
        return self._epoch > 0 and not self._went_back

    def check(self, xid: int, epoch: int, before: Mark) -> None:
        """Raise `LedgerWentBack` for a transaction that began after the mark and should have come before it."""
        if epoch > self._epoch:  # somebody has said what became of what was forgotten
            self._epoch, self._committed, self._went_back = epoch, 0, False
        # It stays so: each try uses up an id, and the database would seem young enough again after some.
        if epoch < before.epoch or (epoch == before.epoch and xid <= before.xid):
            self._went_back = True
        if self._went_back:
            raise LedgerWentBack

    def seen_by(self, row: tuple[Any, ...] | None, *, durable: bool) -> tuple[Any, ...] | None:
        """What a claim in one statement saw of its run; its commit is remembered. Who has written nothing has no id."""
        if row is None:
            return None
        *sight, xid, server = row
        if durable and xid is not None:
            self.committed(Begun(xid, server))
        return tuple(sight)

    def committed(self, begun: Begun) -> None:
        """Remember a commit that was flushed."""
        self._committed = max(self._committed, int(begun.xid))


# -- a reply that is lost ------------------------------------------------------------------------------------------------

FATE: LiteralString = "select pg_xact_status(%s::xid8), pg_postmaster_start_time()::text"
LOOK_AGAIN_SECONDS = 0.05
LISTEN_SECONDS = 0.5  # until whoever listens looks whether it is over
CANCEL_SECONDS = 2.0

ROLLED_BACK = "the connection was lost at the commit, and the transaction was rolled back; try the whole of it again"
NOT_KNOWN = (
    "the connection was lost at the commit, and the ledger cannot be asked whether it committed; look before you retry"
)


def reply_is_lost(error: psycopg.Error) -> bool:
    """Whether an error at a COMMIT leaves open what became of it."""
    return leaves_open(error.sqlstate or "")


def commit(cursor: psycopg.Cursor[Any], past: Past, begun: Begun) -> None:
    """Commit, once. Where the reply is lost, what became of the transaction is looked up on a new connection.

    Raises `Conflict` where it was rolled back, and `CommitUnknown` or `LedgerUnavailable` where that cannot be told.
    """
    try:
        cursor.execute("commit")
    except psycopg.Error as e:
        settle(cursor.connection, past, begun, e)
    past.committed(begun)


def settle(connection: psycopg.Connection[Any], past: Past, begun: Begun, error: psycopg.Error) -> None:
    """After an error at a COMMIT: return where it has committed all the same, else raise what the error means."""
    if not reply_is_lost(error):
        raise error
    psycopg.Connection.close(connection)
    if not has_committed(past, begun):
        raise Conflict(ROLLED_BACK) from error


def fate_of(begun: Begun, row: tuple[Any, ...] | None) -> bool | None:
    """Whether a transaction has committed; None while that cannot be told. Raises `CommitUnknown`.

    After a crash an id that was not flushed is given to another transaction, whose status says nothing of this one.
    """
    status, server = (None, "") if row is None else row
    if status == "committed" and server != begun.server:
        raise CommitUnknown
    return {"committed": True, "aborted": False}.get(status)


def has_committed(past: Past, begun: Begun) -> bool:
    """Whether a transaction has committed, asked on a new connection. Raises `CommitUnknown` or `LedgerUnavailable`."""
    deadline = monotonic() + past.busy_seconds
    while True:
        try:
            with psycopg.connect(past.url, autocommit=True, connect_timeout=2) as connection:
                row = psycopg.Cursor(connection).execute(FATE, (begun.xid,)).fetchone()
        except psycopg.OperationalError:  # it restarts
            row = None
        except psycopg.DataError:  # an id that is still to come: an older copy of the database stands there now
            return False
        fate = fate_of(begun, row)
        if fate is not None:
            return fate
        if monotonic() >= deadline:
            raise LedgerUnavailable(NOT_KNOWN)
        sleep(LOOK_AGAIN_SECONDS)


# Behind a pooler in transaction mode the next transaction may be on another connection, which does not know a statement that
# was prepared here, or knows another client's by that name. There the driver prepares nothing, however often it is repeated.
PREPARE_NEVER = None
PREPARE_AFTER = 5  # psycopg's own default


def threshold_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], backend: str) -> int | None:
    """After how many uses the driver may prepare a statement, None for never.

    `backend` is the process that answered. A pooler makes up the one that it tells a client of when that connects.
    """
    return PREPARE_AFTER if str(connection.info.backend_pid) == backend else PREPARE_NEVER


FACTS: LiteralString = "select name, value from duly.meta"

# What is not settled, which is little, and the newest event are seen at once. That something became settled between two looks
# is known by how many rows the server has counted as written: it does so within a second, and of a process that goes on and is
# idle within ten. That somebody is still at work changes nothing that is shown, and is said often: it is not counted.
STAMP: LiteralString = """
select (select concat_ws('.', sum(pg_stat_get_tuples_inserted(oid)), sum(pg_stat_get_tuples_updated(oid)),
                         sum(pg_stat_get_tuples_deleted(oid)))
          from pg_class
         where relnamespace = 'duly'::regnamespace and relkind in ('r', 'p') and relname not in ('renewal', 'look')),
       (select sum(hashtext(concat_ws(' ', series, nominal, revision, state, fence, retry_at, cancel_number))::bigint)
          from duly.run
         where state in ('open', 'running', 'failed', 'unknown')),
       (select id from duly.event order by id desc limit 1)
"""

FACTS_AND_BACKEND: LiteralString = FACTS + " union all select 'backend', pg_backend_pid()::text"


# -- the store ----------------------------------------------------------------------------------------------------------


class PostgresStore:
    """One ledger in the schema duly of a PostgreSQL database. Each thread gets a connection of its own.

    `busy_seconds` is how long a statement waits for a lock before it raises `LedgerBusy`. Raises `NoLedger` (tables are
    made by `duly db create`, never implicitly), `LedgerUnavailable`, `LedgerTooNew` or `LedgerTooOld`.
    """

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.url = url
        self.path = shown_url(url)
        self.busy_seconds = busy_seconds
        self.past = Past(url, busy_seconds)
        self._sessions = threading.local()
        try:
            facts = facts_of(self.session.connection, FACTS_AND_BACKEND)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        refuse_other_versions(facts, name=self.path)
        self.prepare_threshold = threshold_of(self.session.connection, facts["backend"])
        self.session.connection.prepare_threshold = self.prepare_threshold
        self.ledger_id = facts["ledger_id"]
        self.namespace = facts["namespace"]
        self.clock_by_hand = facts["clock"] == "hand"
        self.session.answers = Answers(self.session.connection, clock_by_hand=self.clock_by_hand)

    clock_by_hand = False
    prepare_threshold: int | None = PREPARE_NEVER  # until it is known who answers

    @property
    def session(self) -> Session:
        """This thread's session, opened when it is first asked for, anew in a forked child or when it is broken."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is None or session.pid != os.getpid() or session.connection.broken or session.connection.closed:
            session = self._sessions.session = Session(self)
        return session

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit to flush."""
        return self._run(operation, READING, writes=False)

    def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself: no transaction has to be begun and ended for it."""
        try:
            return drive(operation, self.session.answers)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        except BaseException:
            give_up(self.session.connection)
            raise
        finally:
            operation.close()

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it. Raises `LedgerBusy` when its turn does not come.

        Without `durable` the commit is not flushed: for what a later, flushed commit makes durable with it, and whose
        loss loses nothing.
        """
        return self._run(
            operation, beginning(busy_seconds or self.busy_seconds, durable=durable), writes=True, durable=durable
        )

    claim_looks = True

    def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """Make the claim of `claim_remembered` in one statement. None where nothing was claimed, and also where the reply was
        lost, or the ledger is not what it was: `write` tells, for the same attempt.
        """
        try:
            before = self.past.mark()
            asked = as_claim(list(ask_together(claim)), before, self.busy_seconds, durable=durable)
            if not self.past.is_known:
                return None
            cursor = psycopg.Cursor(self.session.connection, row_factory=psycopg.rows.tuple_row)
            row = cursor.execute(CLAIM_AT_ONCE, asked).fetchone()
            return conclude(claim, self.past.seen_by(row, durable=durable))
        except psycopg.Error as e:
            if leaves_claim_open(e):
                return None
            raise translated(e, name=self.path) from e
        except BaseException:  # raised by a handler of a signal, while the server goes on with the claim
            give_up(self.session.connection)
            raise
        finally:
            claim.close()

    def _run(self, operation: Operation[T], beginning: list[Sent], *, writes: bool, durable: bool = True) -> T:
        try:
            connection = self.session.connection
            talk, before = Talk(beginning, clock_by_hand=self.clock_by_hand), self.past.mark()
            began: Begun | None = None

            def say(*last: Ask | Sent) -> psycopg.Cursor[tuple[Any, ...]]:
                nonlocal began
                begins = not talk.has_begun
                cursors = send(connection, talk.take(*last))
                if begins and writes:
                    began = begun_of(cursors[len(beginning) - 1].fetchall(), self.past, before)
                return cursors[-1]

            def answer(ask: Ask) -> object:
                if ask.want == "do":
                    talk.hold(ask)
                    return None
                return None if ask.want == "alive" else answer_of(ask, say(ask))

            try:
                result = drive(operation, answer)
                if not talk.has_begun:
                    say()
            except BaseException:
                give_up(connection)
                raise
            self._commit(connection, talk.take(COMMIT), began, durable=durable)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        finally:
            operation.close()
        return result

    def _commit(
        self, connection: psycopg.Connection[Any], sent: list[Sent], began: Begun | None, *, durable: bool
    ) -> None:
        """Send what is left with the COMMIT. Raises as `commit`, and the refusal of a statement before it."""
        try:
            send(connection, sent)
        except psycopg.Error as e:
            if began is None or not reply_is_lost(e):
                give_up(connection)
                raise
            settle(connection, self.past, began, e)
        except BaseException:
            give_up(connection)
            raise
        if began is not None and durable:
            self.past.committed(began)

    def owned(self) -> OwnedTransaction:
        """This thread's transaction for a run's own effect."""
        session = self.session
        if session.owned is not None and not (session.owned.is_open or is_usable(session.owned.connection)):
            session.owned.close()
            session.owned = None
        if session.owned is None:
            from duly.store.owned.postgres import OwnedTransaction

            session.owned = OwnedTransaction(self)
        return session.owned

    def begin_pulse(self, attempt_id: bytes) -> int:
        """No pulse: processes of other hosts cannot be looked at, the lease alone decides."""
        return -1

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        from duly.store.borrowed import run_in

        return run_in(tx, operation, self.origin)

    def stamp(self) -> str:
        """What is another as soon as something was committed; see `STAMP` for how soon."""
        try:
            connection = self.session.connection
            row = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row).execute(STAMP).fetchone()
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        except BaseException:
            give_up(self.session.connection)
            raise
        return "-".join(str(part or 0) for part in row or ())

    def listen(self, wake: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """Call `wake` when a person's word may have given work, until it is over. What is not heard is lost: behind a pooler
        in transaction mode, or while the server is away.
        """
        while not is_over():
            with suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True, application_name="duly") as ear:
                ear.execute("listen duly")
                while not is_over():
                    for _ in ear.notifies(timeout=LISTEN_SECONDS, stop_after=1):
                        wake()
            if not is_over():
                sleep(LISTEN_SECONDS)

    @property
    def origin(self) -> Origin:
        """The ledger, as a claim of it names it to a borrowed transaction."""
        from duly.store.borrowed import Origin

        return Origin(self.ledger_id, "", self.path)

    def now(self) -> int:
        """The ledger's instant."""
        try:
            return self.session.answers.now()
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        except BaseException:
            give_up(self.session.connection)
            raise

    def close(self) -> None:
        """Close this thread's connections. The store may be used again."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is not None:
            session.close()
            del self._sessions.session


class ForgettableConnection(psycopg.Connection[Any]):
    """A connection that ends with the ledger that it is of, where that is forgotten: psycopg would complain of it, if the
    collector met it before what closes it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._pid = os.getpid()  # a forked child must not end its parent's
        super().__init__(*args, **kwargs)

    def __del__(self, *_: Any, getpid: Callable[[], int] = os.getpid) -> None:  # at exit there is no `os` any more
        if self._pid == getpid():
            self.pgconn.finish()


class Session:
    """One thread's connection to the ledger."""

    def __init__(self, store: PostgresStore) -> None:
        self.pid = os.getpid()
        self.owned: OwnedTransaction | None = None
        try:
            self.connection: psycopg.Connection[Any] = ForgettableConnection.connect(
                store.url, autocommit=True, application_name="duly", prepare_threshold=store.prepare_threshold
            )
        except psycopg.Error as e:
            raise translated(e, name=store.path) from e
        self.answers = Answers(self.connection, clock_by_hand=store.clock_by_hand)

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:  # at exit there is no `os` any more
        if self.pid == getpid() and hasattr(self, "connection"):
            self.close()

    def close(self) -> None:
        self.connection.close()
        if self.owned is not None:
            self.owned.close()
            self.owned = None


def facts_of(connection: psycopg.Connection[Any], facts: LiteralString = FACTS) -> dict[str, str]:
    """The facts of a ledger: schema, min_writer, ledger_id, namespace, clock. Raises an error of psycopg without one."""
    cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
    return dict(cursor.execute(facts).fetchall())
