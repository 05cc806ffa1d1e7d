"""Ledger in an event loop: where async jobs are declared and runs are taken. The twin of `work.ledger`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duly.errors import Misuse, OutcomeUnknown, Refused
from duly.ledger import contracts
from duly.ledger.once import once as once_operation
from duly.ledger.records import Claim as Held
from duly.ledger.records import Claimer
from duly.ledger.remembered import Untouched, claim_remembered, peek_remembered
from duly.ledger.result import result_of
from duly.schedule.keys import RunKey, parse_key
from duly.store import BUSY_SECONDS
from duly.store.borrowed import run_in_async
from duly.store.sqlite import ledger_path
from duly.work.aio.attempt import Claiming, Patience, held_of
from duly.work.aio.awaited import Awaited
from duly.work.aio.claim import Claim
from duly.work.aio.job import Job
from duly.work.aio.keeper import LeaseKeeper
from duly.work.aio.output import completed_in_place, done_after_all
from duly.work.answers import AlreadyCompleted, Busy, NotDue, told
from duly.work.attempt import Pulse
from duly.work.declared import declaration_of, micros, probe_declared, wanted
from duly.work.destinations import Destinations
from duly.work.identity import actor, new_attempt_id, owner
from duly.work.job import wait_micros
from duly.work.memory import Memory
from duly.work.payload import parsed, payload_hash

if TYPE_CHECKING:
    import aiosqlite
    import psycopg

    from duly.ledger.alerts import Alert
    from duly.ledger.ask import Operation
    from duly.ledger.named import Named
    from duly.ledger.roster import Scope
    from duly.outbox.destinations import Destination
    from duly.schedule.catch_up import CatchUp
    from duly.schedule.spec import Schedule
    from duly.store.protocol import AsyncStore
    from duly.work.aio.run import Run
    from duly.work.declared import Wanted
    from duly.work.payload import Json
    from duly.work.probe import Doubt, Probe

Tx = TypeVar("Tx")


class Ledger(Generic[Tx]):
    """A ledger for the tasks of one event loop. It is opened by the first thing that is awaited of it."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._keeper = LeaseKeeper(store)
        self._memory = Memory()
        self._destinations = Destinations()
        self._jobs: dict[str, Job[Tx]] = {}

    def __repr__(self) -> str:
        return f"<duly.aio.Ledger {self._store.path}>"

    async def __aenter__(self) -> Ledger[Tx]:
        await self._store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

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
    ) -> Callable[[Callable[[Run[Tx]], Awaitable[object]]], Job[Tx]]:
        """Declare a job whose work is the decorated `async def`. As `duly.Ledger.job`."""
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
        asked = probe_declared(name, effect, probe, may_be_async=True)

        def register(function: Callable[[Run[Tx]], Awaitable[object]]) -> Job[Tx]:
            if not iscoroutinefunction(function):
                raise Misuse(f"{name}: the function of a job in duly.aio is an `async def`; duly.Ledger has plain ones")
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
    def store(self) -> AsyncStore:
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
    ) -> Awaited[Claim | AlreadyCompleted | Busy | NotDue]:
        """Take a run: a window of a job that the ledger knows, a run key, or with `adhoc` an id outside the schedule.

        As `duly.Ledger.take`. Cancelled meanwhile, it gives back what it claimed.
        """
        run = wanted(job, None if window is None else str(window), scope, adhoc)
        hashed = None if payload is None else payload_hash(payload)
        return Awaited(self._take_patiently(run, hashed, wait))

    async def _take_patiently(
        self, run: Wanted, payload: str | None, wait: int | float | str | None
    ) -> Claim | AlreadyCompleted | Busy | NotDue:
        await self._store.open()
        patience = None if wait is None else await Patience.of(self._store, wait_micros(wait))
        while True:
            answer = await self._take(run, payload)
            if not isinstance(answer, Busy) or patience is None or not await patience.pause():
                return answer

    async def _take(self, run: Wanted, payload: str | None) -> Claim | AlreadyCompleted | Busy | NotDue:
        pulse = Pulse(self._store, trigger="call", payload=payload)
        claim = None
        try:
            named = await self._from_memory(run, pulse.claimer)
            if named is None:
                async with Claiming(self._store) as claiming:
                    named = await claiming.claim(run.take(pulse.claimer), held_of)
                self._memory.keep(named.known, run.declared)
            answer = named.answer
            if isinstance(answer, OutcomeUnknown) and (done := await done_after_all(self._store, named)) is not None:
                return done
            if isinstance(answer, (Refused, Misuse)):
                raise answer
            if not isinstance(answer, Held):
                return told(named.key, answer)
            if answer.number > 1 and (done := await completed_in_place(self._store, named.key, answer)) is not None:
                return done
            assert named.row is not None
            claim = Claim(
                self._store, self._keeper, named.known.job, named.key, answer, named.row, pulse, self._destinations
            )
            return claim
        finally:
            if claim is None:
                pulse.stop()

    async def _from_memory(self, run: Wanted, claimer: Claimer) -> Named | None:
        recalled = self._memory.recall(run.declared, run.window)
        if recalled is None:
            return None
        if not self._store.claim_looks:
            seen = await self._store.glance(peek_remembered(recalled, claimer))
            if not isinstance(seen, Untouched):
                return seen
        async with Claiming(self._store) as claiming:
            return await claiming.claim_at_once(claim_remembered(recalled, claimer))

    def result(self, job: str, window: str | date, *, scope: str = "") -> Awaited[Json]:
        """What a window's run has come to, as its attempt left it: as `duly.Ledger.result`."""
        return Awaited(self._result(job, str(window), scope))

    async def _result(self, job: str, window: str, scope: str) -> Json:
        await self._store.open()
        return parsed(await self._store.read(result_of(job, scope, window)))

    def destination(self, name: str, make: Callable[[], Destination] | None = None, /, **settings: object) -> None:
        """Declare where messages may go: `ledger.destination("billing", kind="http", url="https://…", concurrency=4)`.

        The settings are those of `[destinations.NAME]` in duly.toml; what stands there need not be said here. `make` makes a
        destination of one's own, an object for each thread, with the methods of `duly.outbox.destinations.Destination`. A name
        alone may be sent to, and whoever delivers knows where it is. Raises `Misuse`.
        """
        self._destinations.declare(name, settings, make)

    def send(
        self,
        tx: object,
        key: str,
        destination: str,
        body: Json | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
    ) -> Awaited[bool]:
        """Send a message of a run that this transaction of the caller's has completed: as `duly.Ledger.send`, awaited."""
        from duly.ledger.send import send_in
        from duly.work.letters import key_of_message, letter_of

        letter = letter_of(destination, body, name=name, content_type=content_type)
        self._destinations.check(destination)
        return Awaited(self._send(tx, send_in(parse_key(key), letter, owner(), key_of_message)))

    async def _send(self, tx: object, operation: Operation[bool]) -> bool:
        await self._store.open()
        return await self._store.run_in(tx, operation)

    def deliver(self) -> Awaited[bool]:
        """Deliver what is due now; True when no message is left: as `duly.Ledger.deliver`, in a thread, since destinations are
        spoken to by plain calls. Cancelled, it takes nothing more, and what is being sent is still written down.
        """
        return Awaited(self._deliver())

    async def _deliver(self) -> bool:
        from duly.ledger.messages import backlog
        from duly.store.beside import store_beside
        from duly.work.relay import relay_of

        await self._store.open()
        beside = store_beside(self._store)
        relay = relay_of(beside, self._destinations.routes())

        def deliver() -> None:
            try:
                relay.deliver()
            finally:
                beside.close()

        try:
            await asyncio.to_thread(deliver)
        except asyncio.CancelledError:
            relay.stop()
            raise
        return not await self._store.read(backlog())

    def alerts(self, to: str | Sequence[str], *, kinds: Sequence[str] | None = None, every: str | int = "1m") -> None:
        """Declare which destinations are told that something is late, failed, unknown or stuck, and that it is well again.

        As `[alerts]` in duly.toml (docs/alerts.md). `kinds`: of what, all if not given. `every`: how often a daemon looks.
        Raises `Misuse`, and `UnknownDestination` for one that nobody declared.
        """
        from duly.work.alerts import alerting_of

        self._destinations.alert(alerting_of(to, kinds, every))

    def look(self) -> Awaited[list[Alert]]:
        """Look now for what somebody is to be told of; answers the alerts that are open: as `duly.Ledger.look`."""
        return Awaited(self._look())

    async def _look(self) -> list[Alert]:
        from duly.evidence.conditions import conditions
        from duly.ledger.alerts import begin_look, open_alerts, record_look
        from duly.work.alerts import Alerting, audience_of

        await self._store.open()
        begun = await self._store.write(begin_look(0), durable=False)
        if begun is not None:
            found = await self._store.read(conditions(begun.since))
            audience = audience_of(self._destinations.alerting() or Alerting())
            await self._store.write(record_look(begun, found, audience))
        return await self._store.read(open_alerts())

    def prune(self, job: str | None = None, *, older_than: str | int | None = None) -> Awaited[int]:
        """Forget what was settled long ago; how many runs. As `duly.Ledger.prune`."""
        from duly.work.aio.prune import prune

        return Awaited(prune(self._store, job, micros("older_than", older_than), by=actor()))

    @property
    def destinations(self) -> Destinations:
        """What is declared here: for a daemon that delivers to it."""
        return self._destinations

    async def close(self) -> None:
        """Close the connections that are free."""
        await self._keeper.rest()
        await self._store.close()


def sqlite(path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[aiosqlite.Connection]:
    """The ledger in an SQLite file, for an event loop: as `duly.sqlite`. `await run.tx` needs aiosqlite."""
    from duly.store.sqlite_async import AsyncSqliteStore

    return Ledger(AsyncSqliteStore(ledger_path(os.fspath(path)), busy_seconds=busy_seconds))


def postgres(url: str, *, busy_seconds: float = BUSY_SECONDS) -> Ledger[psycopg.AsyncConnection[Any]]:
    """The ledger in a PostgreSQL database (extra `postgres`), for an event loop: as `duly.postgres`."""
    from duly.store.postgres_async import AsyncPostgresStore

    return Ledger(AsyncPostgresStore(url, busy_seconds=busy_seconds))


def once(tx: object, key: str, *, payload: Json = None) -> Awaited[bool]:
    """Whether the caller's effect is to be done, in the caller's transaction: as `duly.once`, awaited.

    `tx` is an `AsyncConnection` of psycopg, a connection of asyncpg or aiosqlite, or an `AsyncConnection` or `AsyncSession`
    of SQLAlchemy.
    """
    hashed = None if payload is None else payload_hash(payload)
    return Awaited(_once(tx, parse_key(key), hashed))


async def _once(tx: object, key: RunKey, payload: str | None) -> bool:
    return await run_in_async(tx, once_operation(key, Claimer(new_attempt_id(), owner(), "once", payload)))
