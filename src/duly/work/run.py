"""Run: what a job's function is given. It knows its window, never the time at which it was started."""

from __future__ import annotations

import datetime
import os
import threading
import time
import warnings
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from duly.errors import CommitUnknown, Conflict, DulyError, Misuse, OutputRefused, TransactionOwned
from duly.ledger.complete import NOTHING, Left, has_completed
from duly.ledger.progress import Progress
from duly.ledger.records import Claim
from duly.ledger.records import Run as Row
from duly.schedule.keys import RunKey
from duly.times import SECOND, as_datetime, civil_text
from duly.work.identity import idempotency_key, uuid_text
from duly.work.payload import canonical

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from pathlib import Path

    from duly.ledger.ask import Operation
    from duly.store.protocol import Owned, Store
    from duly.work.destinations import Destinations
    from duly.work.letters import Letters
    from duly.work.output import Place
    from duly.work.payload import Json

Tx = TypeVar("Tx")
T = TypeVar("T")

LONGEST_OUTPUT = 4096  # it says where something is, and is not that thing
LONGEST_RESULT = 65_536  # a few facts, and not the data


class LongTransaction(UserWarning):
    """A run held its transaction for long; on SQLite nobody else could write meanwhile. Read `run.tx` late."""


class Window(NamedTuple):
    """The half-open window that a run answers for, as aware datetimes in UTC."""

    start: datetime.datetime
    end: datetime.datetime


class Facts:
    """What is known of a run and its newest attempt. Most functions ask for little of it."""

    def __init__(self, namespace: str, key: RunKey, claim: Claim, row: Row, first_name: str) -> None:
        self._namespace = namespace
        self._first_name = first_name
        self._key = key
        self._claim = claim
        self._row = row
        self.attempt: int = claim.number

    @cached_property
    def key(self) -> str:
        """The run's key, as `invoice-export:2026-10-05[Europe/Berlin]`."""
        return str(self._key)

    @property
    def job(self) -> str:
        """The job's name."""
        return self._key.job

    @property
    def scope(self) -> str:
        """The tenant or account; empty by default."""
        return self._key.scope

    @property
    def zone(self) -> str:
        """The schedule's zone, as its version writes it; empty for an ad-hoc run."""
        return self._key.zone

    @property
    def label(self) -> str:
        """The window's name without colons, fit for a file name: `2026-10-25T023000`."""
        return self._key.label

    @property
    def date(self) -> datetime.date | None:
        """The business date: of the nominal, in the schedule's zone. None for an ad-hoc run."""
        return None if self._key.adhoc else datetime.date.fromisoformat(civil_text(self._key.nominal >> 1)[:10])

    @property
    def attempt_id(self) -> str:
        """The attempt's UUID, as text."""
        return uuid_text(self._claim.attempt_id)

    @cached_property
    def idempotency_key(self) -> str:
        """What a remote system knows the run's effect by: a UUID, the same for every attempt."""
        return idempotency_key(self._namespace, self._key, first_name=self._first_name)

    @property
    def window(self) -> Window:
        """The half-open window [start, end) that this run answers for. Raises `ValueError` for an ad-hoc run: it has none."""
        start, end = self._row.window_start, self._row.window_end
        if start is None or end is None:
            raise ValueError(f"{self.key} has no window")
        return Window(as_datetime(start), as_datetime(end))


class RunFacts(Facts):
    """What an attempt knows of its run, whichever way it is called, and what it may say."""

    def __init__(
        self,
        namespace: str,
        key: RunKey,
        claim: Claim,
        row: Row,
        timeout: int | None,
        first_name: str,
        destinations: Destinations | None,
    ) -> None:
        super().__init__(namespace, key, claim, row, first_name)
        self._timeout = timeout
        self._superseded = False
        self._cancelled = False
        self._progress: Progress | None = None
        self._output: str | None = None
        self._result: Json = None
        self._destinations = destinations
        self._letters: Letters | None = None
        self._place: Place | None = None
        self._goes_inline = False
        self._completed = False

    @property
    def deadline(self) -> datetime.datetime | None:
        """When the job's time-out is over, in UTC; None without one."""
        return None if self._timeout is None else as_datetime(self._claim.started_at + self._timeout)

    def __repr__(self) -> str:
        return f"<duly.Run {self.key} attempt {self.attempt}>"

    @property
    def superseded(self) -> bool:
        """Whether another attempt took this run over: stop. Nothing of this attempt will be committed."""
        return self._superseded

    def _supersede(self) -> None:
        self._superseded = True

    @property
    def cancelled(self) -> bool:
        """Whether a person asked this attempt to stop (`duly cancel`), as its last heartbeat heard. What raises from then on
        ends it as cancelled, by its contract; what completes all the same is complete.
        """
        return self._cancelled

    def _cancel(self) -> None:
        self._cancelled = True

    def progress(self, done: int, *, of: int | None = None) -> None:
        """Say how far this attempt is: so many are done, of so many if that is known. Shown by `duly status` and `explain`.

        Only noted here; written every few seconds at most beside the lease, never in a transaction of this run's. An inline
        run shows none. Raises `Misuse`.
        """
        for name, number in (("done", done), ("of", of)):
            least = 0 if name == "done" else 1
            if number is not None and (type(number) is not int or not least <= number < 1 << 63):
                raise Misuse(f"progress: {name} has to be a whole number from {least} on, not {number!r}")
        self._progress = Progress(done, of)

    def _progress_now(self) -> Progress | None:
        return self._progress

    @property
    def output(self) -> str | None:
        """Where the run's output is, as `s3://exports/2026-10-05.csv`: set by the function, kept with the completion, shown by
        `duly explain`. Never a secret. Setting it raises `Misuse`, and `TransactionOwned` after the completion.
        """
        return self._output

    @output.setter
    def output(self, where: str | None) -> None:
        self._refuse_late("output")
        given: object = where
        if isinstance(given, str):
            if not given.strip() or len(given) > LONGEST_OUTPUT:
                raise Misuse(f"output: 1 to {LONGEST_OUTPUT} characters say where it is; these are {len(given)}")
            if not is_text(given):
                raise Misuse("output: it has a NUL, or surrogates that stand alone, and cannot be kept")
        elif given is not None:
            raise Misuse(f"output: a text says where it is, not a {type(given).__name__}")
        self._output = where

    @property
    def result(self) -> Json:
        """What the run has come to, as JSON: counts, totals, a name. Set by the function, kept with the completion, read by
        `ledger.result(…)` and shown by `duly explain`. Never a secret, and no data that belongs in a table of yours. What is
        not JSON, or too long, raises `Misuse`: when it is set, and when the run completes. `TransactionOwned` after that.
        """
        return self._result

    @result.setter
    def result(self, value: Json) -> None:
        self._refuse_late("result")
        _kept(value)
        self._result = value

    def send(
        self, destination: str, body: Json | bytes, *, name: str | None = None, content_type: str | None = None
    ) -> None:
        """Send a message to another system if, and only if, this run completes.

        Noted now, written with the completion in its transaction, delivered after it by a relay: `duly daemon`, `duly outbox
        deliver` or `ledger.deliver()`. Messages of a run go one after the other, in the order in which they were noted. `name`
        tells them apart, and is the destination's if it is left out; the receiver knows a message by a key that is made of
        it, the same for every attempt. Text and bytes go as they are, anything else as JSON. The same again is a no-op. A
        savepoint that is rolled back takes no message with it. Raises `PayloadConflict` for another body under a name,
        `UnknownDestination`, `TransactionOwned` after the completion, and `Misuse`.
        """
        if self._completed:
            raise TransactionOwned("this run is over: a message is sent with its completion, and not after it")
        from duly.work.letters import Letters, letter_of

        letter = letter_of(destination, body, name=name, content_type=content_type)
        if self._destinations is None:
            from duly.work.destinations import Destinations

            self._destinations = Destinations()
        self._destinations.check(destination)
        if self._letters is None:
            self._letters = Letters(self._key_of_message)
        self._letters.note(letter)

    def _refuse_late(self, what: str) -> None:
        if self._completed:
            raise TransactionOwned(f"this run is over: its {what} is kept with its completion, and not after it")

    def _key_of_message(self, name: str) -> str:
        return idempotency_key(self._namespace, self._key, name, first_name=self._first_name)

    def _left(self, output: str | None = None) -> Left:
        """What is kept with the completion; `output`, where it was said at the end."""
        letters = () if self._letters is None else self._letters.keyed()
        output = self._output if output is None else output
        if output is None and self._place is not None:
            output = self._place.final
        return Left(output, _kept(self._result), letters)

    def _placed(self, path: str | PathLike[str], *, replace: bool) -> Place:
        """Where the run's one file goes, as it is asked for. Raises `Misuse` and `TransactionOwned`."""
        if self._completed:
            raise TransactionOwned("this run is over: a file is published with its completion, and not after it")
        if self._goes_inline:
            raise Misuse(
                "publish: an inline run, or one of a group, leaves nothing before its one commit; work it alone"
            )
        from duly.work.output import Place, named

        place = Place(
            named(path),
            self._claim.attempt_id,
            may_replace=replace,
            replaces_with="replace=True",
            written_to="nothing was written to what run.publish() answered",
        )
        if self._place is not None and (self._place.final, self._place.may_replace) != (place.final, replace):
            raise Misuse(f"publish: a run has one file, and this one's is {self._place.final}; make one of several")
        return place

    def _refuse_file_elsewhere(self) -> None:
        """Raise for a completion in a transaction of the caller's, which may come or not after the file was moved."""
        if self._place is not None:
            raise Misuse("publish: a file goes with a completion in run.tx, or in duly's own transaction: complete()")

    def _leaves_only_its_file(self, left: Left) -> bool:
        """Whether all that the attempt leaves is its file: then one that stands is a sign that the run is done."""
        assert self._place is not None
        return left == Left(self._place.final)


def _kept(result: Json) -> str | None:
    """The text by which a result is kept. Raises `Misuse`."""
    if result is None:
        return None
    text = canonical(result, "result")
    if len(text) > LONGEST_RESULT:
        raise Misuse(f"result: at most {LONGEST_RESULT} characters of JSON are kept, and these are {len(text)}")
    if not is_text(text):
        raise Misuse("result: a text in it has surrogates that stand alone, and cannot be kept")
    return text


def is_text(text: str) -> bool:
    """Whether every database can keep it: no surrogates that stand alone, no NUL."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def as_path(place: Place) -> Path:
    """Where a function writes its file."""
    from pathlib import Path  # of most functions none is wanted

    return Path(place.temporary)


class Run(RunFacts, Generic[Tx]):
    """One attempt at a run, for a job's function.

    `tx` is the transaction that commits with the run's completion: a real connection of the driver's type. `window` is
    what the run answers for; `date` and `label` are its business date and a file-safe name; `idempotency_key` is the same
    on every attempt; `deadline` is when the job's time-out is over, which a function has to look at by itself.
    """

    def __init__(
        self,
        store: Store,
        key: RunKey,
        claim: Claim,
        row: Row,
        transaction: Owned | None = None,
        timeout: int | None = None,
        first_name: str = "",
        destinations: Destinations | None = None,
    ) -> None:
        super().__init__(store.namespace, key, claim, row, timeout, first_name, destinations)
        self._store = store
        self._transaction = transaction
        self._goes_inline = transaction is not None
        self._began = time.monotonic()
        self._thread = threading.get_ident()
        self._pid = os.getpid()
        self._over = False

    @property
    def tx(self) -> Tx:
        """The run's transaction: begun when it is first read, on PostgreSQL with its first statement, which then raises what
        this does. It commits with the completion, or not at all.

        Raises `LedgerBusy` when its turn does not come, and `LedgerTooNew`. Commit, rollback, close and `with` are refused;
        savepoints are not.
        """
        if self._over:
            raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
        if self._transaction is None:
            if threading.get_ident() != self._thread:
                raise TransactionOwned("read run.tx in the job's own thread first; others may use it from then on")
            self._transaction = self._begin()
        return self._transaction.connection  # type: ignore[return-value]  # the ledger's Tx is its driver's connection

    def _begin(self) -> Owned:
        transaction = self._store.owned()
        transaction.begin()
        self._began = time.monotonic()
        return transaction

    def publish(self, path: str | PathLike[str], *, replace: bool = False) -> Path:
        """Where to write a file that stands at `path` once, and only if, the run is complete.

            run.publish(f"exports/{run.label}.csv").write_text(rows)

        It answers the path of a temporary beside it. When the function has returned, the file is flushed, its size and digest
        are put on record, and it is moved into place in the transaction that completes the run; if it is all that the run
        leaves, an attempt that is killed in between is completed by the next without another call of the function. An attempt
        that fails leaves no file. A run has one. What is there already is not overwritten, unless `replace` allows it. The
        file is this host's, or on a file system that all who work the job share. Raises `OutputRefused`, and `Misuse` for an
        inline run or one of a group.
        """
        place = self._placed(path, replace=replace)
        if self._place is None:
            from duly.ledger.output import held_or_raise
            from duly.work.output import earlier_attempts

            try:
                place.prepare(earlier_attempts(self._store, self._claim))
            except OutputRefused:
                self._store.read(held_or_raise(self._claim))
                raise
            self._place = place
        return as_path(self._place)

    def _put_in_place(self, place: Place, left: Left) -> None:
        """Move the file into place in the run's transaction, begun now if it was not, on record before if it says it all."""
        from duly.ledger.output import held_or_raise

        try:
            place.finish()
        except OutputRefused:  # its successor has cleared away what it had written
            self._store.read(held_or_raise(self._claim))
            raise
        if self._transaction is None and self._leaves_only_its_file(left):
            place.record(self._store, self._claim)
        if self._transaction is None:
            self._transaction = self._begin()
        place.move_within(self._transaction, self._claim)

    def _take_back(self) -> None:
        """Take the file back, if nothing of what was to be committed with it was."""
        if self._place is not None:
            with suppress(DulyError):  # nobody can tell: it stays
                if not self._store.read(has_completed(self._claim)):
                    self._place.withdraw()

    def _complete(self, operation: Operation[T], left: Left = NOTHING) -> T:
        """Run the completing operation: in the run's own transaction if it was begun, else in one of the ledger's.

        `left` is what it leaves, where the run has a file.
        """
        if self._pid != os.getpid():
            operation.close()
            raise TransactionOwned("this run belongs to the process that forked this one, which completes it")
        if self._place is not None and not self._over:
            try:
                self._put_in_place(self._place, left)
            except BaseException:
                operation.close()
                raise
        transaction = self._transaction
        if transaction is None:
            written = self._told(lambda: self._store.write(operation))
            self._over = self._completed = True
            return written
        if self._over:
            operation.close()
            raise TransactionOwned("this run's transaction has ended, and nothing of it was kept; stop")
        self._over = self._completed = True
        try:
            result = self._told(lambda: transaction.complete(operation))
        except Exception:
            self._take_back()
            raise
        if self._place is not None:
            self._place.discard()
        self._transaction = None
        held = time.monotonic() - self._began
        if held * SECOND > self._claim.lease / 3:
            warnings.warn(f"{self.key} held its transaction for {held:.1f} s", LongTransaction, stacklevel=4)
        return result

    def _told(self, complete: Callable[[], T]) -> T:
        """What completing answers. Where nobody can tell whether its COMMIT came, the ledger is asked for the completion."""
        try:
            return complete()
        except CommitUnknown as e:
            if not self._store.read(has_completed(self._claim)):
                raise Conflict("the connection was lost at the commit, and nothing of it was kept; try again") from e
            return None  # type: ignore[return-value]  # completing answers nothing

    def _owns(self, tx: object) -> bool:
        """Whether this is the run's own transaction, now open."""
        return self._transaction is not None and self._transaction.connection is tx

    def _leave(self) -> None:
        """Be over, while the transaction goes on for the next run of its group."""
        self._transaction = None
        self._over = self._completed = True

    def _abandon(self) -> None:
        """Keep nothing of the run's transaction, if it is still open: the thread's next run has the same connection."""
        if self._transaction is not None and not self._over:
            self._transaction.abandon()
            if self._place is not None:
                self._place.withdraw()
        self._over = True
        if self._place is not None:
            self._place.discard()
