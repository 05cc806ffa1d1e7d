"""Ledger: where jobs are declared and runs are taken, from Python."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duly.errors import Misuse, OutcomeUnknown, Refused, raise_if_refused
from duly.ledger import contracts
from duly.ledger.once import once as once_operation
from duly.ledger.records import Claim as Held
from duly.ledger.records import Claimer
from duly.ledger.remembered import Untouched, claim_remembered, peek_remembered
from duly.ledger.result import result_of
from duly.schedule.keys import parse_key
from duly.store import BUSY_SECONDS
from duly.store.borrowed import run_in
from duly.store.sqlite import SqliteStore, ledger_path
from duly.work.answers import AlreadyCompleted, Busy, NotDue, told
from duly.work.attempt import Pulse
from duly.work.claim import Claim
from duly.work.declared import declaration_of, micros, probe_declared, wanted
from duly.work.destinations import Destinations
from duly.work.identity import actor, new_attempt_id, owner
from duly.work.job import Job, wait_micros
from duly.work.keeper import LeaseKeeper
from duly.work.memory import Memory
from duly.work.output import completed_in_place, done_after_all
from duly.work.payload import parsed, payload_hash
from duly.work.waiting import Patience

if TYPE_CHECKING:
    import psycopg

    from duly.ledger.alerts import Alert
    from duly.ledger.named import Named
    from duly.ledger.roster import Scope
    from duly.outbox.destinations import Destination
    from duly.schedule.catch_up import CatchUp
    from duly.schedule.spec import Schedule
    from duly.store.borrowed import Lent
    from duly.store.protocol import Store
    from duly.work.declared import Wanted
    from duly.work.payload import Json
    from duly.work.probe import Doubt, Probe
    from duly.work.run import Run

Tx = TypeVar("Tx")


class Ledger(Generic[Tx]):
    """A ledger that is open. `Tx` is the type of the connection that a run's effect is written through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keeper = LeaseKeeper(store)
        self._memory = Memory()
        self._destinations = Destinations()
        self._jobs: dict[str, Job[Tx]] = {}

    def __repr__(self) -> str:
        return f"<duly.Ledger {self._store.path}>"

    def job(
        self,
        name: str,
        schedule: Schedule,
        *,
        catch_up: CatchUp | str,
        effect: str = contracts.TRANSACTIONAL,
        remembers: str | None = None,
        retries: int | None = None,
        retry_delay: str | int | None = None,
        retry_ceiling: str | int | None = None,
        grace: str | int | None = None,
        timeout: str | int | None = None,
        lease: str | int | None = None,
        retain: str | int | None = None,
        overlap: bool | None = None,
        ordered: bool | None = None,
        inline: bool = False,
        group: int = 1,
        owner: str | None = None,
        scopes: Sequence[str | Scope] | None = None,
        version: str | None = None,
        probe: Probe | Callable[[Doubt], object] | None = None,
    ) -> Callable[[Callable[[Run[Tx]], object]], Job[Tx]]:
        """Declare a job whose work is the decorated function.

        `catch_up` is named by whoever writes the job: `duly.EACH` or `duly.LATEST`. `effect` is its contract:
        `transactional` (it writes through `run.tx`), `idempotent` (with `remembers`, how long the destination
        deduplicates, or `forever`) or `external`. Durations are text as `15m`, or microseconds. `retain` is how long what is
        settled is kept, or `forever`; nothing goes before somebody prunes (`duly db prune`). What is left out keeps the
        value that the ledger has. `scopes` closes the roster: names, or a `duly.Scope` with a beginning and an end; all of
        them are on it from the first `run` or `catch_up` on, whether they run or not. A `timeout` ends no function from
        outside: it is told as `run.deadline`. `inline` puts claim, effect and completion into one transaction: one flushed
        commit instead of two, for short transactional work that may hold the ledger while it lasts. With `group`, so many
        runs of a line that are owed share that one commit, where they are worked by `catch_up` or a daemon and take 50
        milliseconds together at most (docs/daemon.md). `probe` knows whether a run happened whose outcome is unknown: a
        function, or a `duly.Probe` (docs/unknown.md).

        Another schedule than the ledger has in force is refused as `ScheduleChanged`, unless it comes with a `version`, a
        label as `2026-11-a` that the ledger has not seen: then it is put in force, for the windows after those that have
        begun. A label that was replaced is refused. Nothing is written before the first `run` or `catch_up`. Raises `Misuse`,
        naming the argument.
        """
        declared, closed = declaration_of(
            name,
            schedule,
            catch_up=catch_up,
            effect=effect,
            remembers=remembers,
            retries=retries,
            retry_delay=retry_delay,
            retry_ceiling=retry_ceiling,
            grace=grace,
            timeout=timeout,
            lease=lease,
            retain=retain,
            overlap=overlap,
            ordered=ordered,
            inline=inline,
            group=group,
            owner=owner,
            scopes=scopes,
            version=version,
        )
        asked = probe_declared(name, effect, probe, may_be_async=False)

        def register(function: Callable[[Run[Tx]], object]) -> Job[Tx]:
            if iscoroutinefunction(function) or isgeneratorfunction(function) or isasyncgenfunction(function):
                raise Misuse(
                    f"{name}: the function of a job is called and is done when it returns; it cannot be async or yield"
                )
            job = Job[Tx](
                self._store,
                self._keeper,
                declared,
                function,
                closed,
                inline=inline,
                group=group,
                destinations=self._destinations,
                probe=asked,
            )
            self._jobs[name] = job
            return job

        return register

    @property
    def store(self) -> Store:
        """Where it is kept: for a daemon that works its jobs."""
        return self._store

    @property
    def jobs(self) -> dict[str, Job[Tx]]:
        """The jobs that were declared here, by name: what a daemon works."""
        return dict(self._jobs)

    def take(
        self,
        job: str,
        window: str | date | None = None,
        *,
        scope: str = "",
        adhoc: str | None = None,
        payload: Json = None,
        wait: int | float | str | None = None,
    ) -> Claim | AlreadyCompleted | Busy | NotDue:
        """Take a run: a window of a job that the ledger knows, a run key, or with `adhoc` an id outside the schedule.

        A job first seen by its key is registered without a schedule, under the contract `external`. `wait` is how long to
        wait for another attempt, in seconds or as `10m`. Raises `OutcomeUnknown`, `RunFailed`, `RunSkipped`,
        `PayloadConflict`, `BelowHorizon`, `UnknownJob`, `WindowInvalid`, `KeyInvalid`, `LedgerBusy`.
        """
        hashed = None if payload is None else payload_hash(payload)
        patience = None if wait is None else Patience(self._store, wait_micros(wait))
        run = wanted(job, None if window is None else str(window), scope, adhoc)
        while True:
            answer = self._take(run, hashed)
            if not isinstance(answer, Busy) or patience is None or not patience.pause():
                return answer

    def _take(self, run: Wanted, payload: str | None) -> Claim | AlreadyCompleted | Busy | NotDue:
        pulse = Pulse(self._store, trigger="call", payload=payload)
        claim = None
        try:
            named = self._from_memory(run, pulse.claimer)
            if named is None:
                named = raise_if_refused(self._store.write(run.take(pulse.claimer)))
                self._memory.keep(named.known, run.declared)
            answer = named.answer
            if isinstance(answer, OutcomeUnknown) and (done := done_after_all(self._store, named)) is not None:
                return done
            if isinstance(answer, (Refused, Misuse)):
                raise answer
            if not isinstance(answer, Held):
                return told(named.key, answer)
            if answer.number > 1 and (done := completed_in_place(self._store, named.key, answer)) is not None:
                return done
            assert named.row is not None
            claim = Claim(
                self._store, self._keeper, named.known.job, named.key, answer, named.row, pulse, self._destinations
            )
            return claim
        finally:
            if claim is None:
                pulse.stop()

    def _from_memory(self, run: Wanted, claimer: Claimer) -> Named | None:
        recalled = self._memory.recall(run.declared, run.window)
        if recalled is None:
            return None
        if not self._store.claim_looks:
            seen = self._store.glance(peek_remembered(recalled, claimer))
            if not isinstance(seen, Untouched):
                return seen
        return self._store.claim_at_once(claim_remembered(recalled, claimer))

    def result(self, job: str, window: str | date, *, scope: str = "") -> Json:
        """What a window's run has come to: `run.result`, as its attempt left it; None where it left nothing.

        Raises `NotComplete`, and `UnknownJob`, `UnknownScope` or `WindowInvalid` for what names no run.
        """
        return parsed(self._store.read(result_of(job, scope, str(window))))

    def destination(self, name: str, make: Callable[[], Destination] | None = None, /, **settings: object) -> None:
        """Declare where messages may go: `ledger.destination("billing", kind="http", url="https://…", concurrency=4)`.

        The settings are those of `[destinations.NAME]` in duly.toml; what stands there need not be said here. `make` makes a
        destination of one's own, an object for each thread, with the methods of `duly.outbox.destinations.Destination`. A name
        alone may be sent to, and whoever delivers knows where it is. Raises `Misuse`.
        """
        self._destinations.declare(name, settings, make)

    def send(
        self,
        tx: Lent,
        key: str,
        destination: str,
        body: Json | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
    ) -> bool:
        """Send a message of a run that this transaction of the caller's has completed, by `duly.once` or `claim.complete(tx)`.

        A row of that transaction: it leaves if that commits. As `Run.send`; False: that very message was there already. Raises
        `NotAllowed` for a run that is not completed, `PayloadConflict`, `UnknownDestination`, `BelowHorizon`, `NoTransaction`,
        `WrongLedger`.
        """
        from duly.ledger.send import send_in
        from duly.work.letters import key_of_message, letter_of

        letter = letter_of(destination, body, name=name, content_type=content_type)
        self._destinations.check(destination)
        return self._store.run_in(tx, send_in(parse_key(key), letter, owner(), key_of_message))

    def deliver(self) -> bool:
        """Deliver what is due now, to the destinations that are declared here or in duly.toml; True when no message is left.

        What a daemon does all the time. Some messages may have to wait: for their next try, or for a person.
        """
        from duly.ledger.messages import backlog
        from duly.work.relay import relay_of

        relay_of(self._store, self._destinations.routes()).deliver()
        return not self._store.read(backlog())

    def alerts(self, to: str | Sequence[str], *, kinds: Sequence[str] | None = None, every: str | int = "1m") -> None:
        """Declare which destinations are told that something is late, failed, unknown or stuck, and that it is well again.

        As `[alerts]` in duly.toml (docs/alerts.md). `kinds`: of what, all if not given. `every`: how often a daemon looks.
        Raises `Misuse`, and `UnknownDestination` for one that nobody declared.
        """
        from duly.work.alerts import alerting_of

        self._destinations.alert(alerting_of(to, kinds, every))

    def look(self) -> list[Alert]:
        """Look now for what somebody is to be told of, and put that into the outbox: `deliver`, or a daemon, delivers it.

        Answers the alerts that are open. A daemon looks by itself, and so does `duly exec`, where alerts are declared.
        """
        from duly.ledger.alerts import open_alerts
        from duly.work.alerts import Alerting, look

        look(self._store, self._destinations.alerting() or Alerting(), every=0)
        return self._store.read(open_alerts())

    def prune(self, job: str | None = None, *, older_than: str | int | None = None) -> int:
        """Forget the runs that were settled for longer than their job says (`retain`), or than `older_than`; how many.

        Of one job, or of every one that says so. In short batches with a pause after each, so that whoever claims meanwhile is
        not held up; docs/operations.md says what is kept all the same. Raises `NotAllowed` for jobs that cannot be pruned so
        far, after the others were, `Misuse` for a job that is named and kept for ever, `UnknownJob`, `LedgerBusy`.
        """
        from duly.work.prune import prune

        return prune(self._store, job, micros("older_than", older_than), by=actor())

    @property
    def destinations(self) -> Destinations:
        """What is declared here: for a daemon that delivers to it."""
        return self._destinations

    def close(self) -> None:
        """Close this thread's connections."""
        self._store.close()


def sqlite(path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[sqlite3.Connection]:
    """Open the ledger in an SQLite file, and make it if it is not there, also inside a database that is.

    Keep it in the database that owns the effect, so that effect and completion commit together. `busy_seconds` is how long
    a write waits for its turn. Raises `LedgerUnavailable`, `LedgerUnwritable`, `LedgerCorrupt` or `LedgerTooNew`.
    """
    return Ledger(SqliteStore(ledger_path(os.fspath(path)), busy_seconds=busy_seconds))


def postgres(url: str, *, busy_seconds: float = BUSY_SECONDS) -> Ledger[psycopg.Connection[Any]]:
    """Open the ledger in a PostgreSQL database (extra `postgres`); its tables are made by `duly db create`, never here.

    `busy_seconds` is how long a statement waits for a lock. Raises `NoLedger`, `LedgerUnavailable` or `LedgerTooNew`.
    """
    from duly.store.postgres import PostgresStore

    return Ledger(PostgresStore(url, busy_seconds=busy_seconds))


def once(tx: Lent, key: str, *, payload: Json = None) -> bool:
    """Whether the caller's effect is to be done, in the caller's transaction: the run of `key` is then complete with it.

    True: do the effect now; both commit, or neither. False: it was complete already. Where the effect must not be done for
    another reason it raises: `RunBusy`, `OutcomeUnknown`, `RunFailed`, `RunSkipped`, `PayloadConflict`, `BelowHorizon`,
    `WindowInvalid`. None of these breaks the transaction. Without one: `NoTransaction`; without the ledger's tables in
    this database: `NoLedger`; when the transaction has read and can no longer write: `Conflict`.
    """
    hashed = None if payload is None else payload_hash(payload)
    claimer = Claimer(new_attempt_id(), owner(), "once", hashed)
    return run_in(tx, once_operation(parse_key(key), claimer))
