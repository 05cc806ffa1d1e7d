"""What the stories of the ledger begin with: a ledger under a clock set by hand, attempts that live or vanish, its rows.

A *book* is a real ledger in a real file. Its attempts are made by the ledger's own operations; one that is not given a
pulse has vanished as soon as its lease is over, as after a SIGKILL.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
import pytest

from duly.errors import Misuse, Refused
from duly.ledger.address import by_key, by_window
from duly.ledger.ask import Statement, count
from duly.ledger.backfill import Asked, Backfill, Plan, find_backfill, plan, start
from duly.ledger.backfill_claim import claim_backfill
from duly.ledger.cancel import cancel
from duly.ledger.complete import complete_or_raise, doubt_or_raise, fail_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.named import Named, take_adhoc, take_key, take_window
from duly.ledger.once import once
from duly.ledger.open import Idle, Taken, claim_next
from duly.ledger.pause import Resumed, pause, resume
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer, Known, NotDue, Run, RunId
from duly.ledger.register import Declaration, declare
from duly.ledger.resolve import Word, reopen, resolve, retry, skip, unskip
from duly.ledger.take import beat, look, renew
from duly.schedule.catch_up import CatchUp
from duly.schedule.keys import parse_key
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule, daily
from duly.store.lock import begin_pulse, lock_path
from duly.store.postgres import PostgresStore
from duly.store.protocol import Store
from duly.store.sqlite import SqliteStore
from duly.testing.clock import HandClock
from duly.times import MINUTE, SECOND, parse_instant
from duly.work.identity import new_attempt_id
from tests.servers import Server

T = TypeVar("T")

EACH_DATABASE = ("sqlite", "postgres")
MORNING = "2026-10-06T03:00:00Z"
LEASE = MINUTE
LATE = 2 * LEASE  # by then the lease of an attempt that nobody renewed is over
WORD = Word("ops@example", "looked into it")


class Book:
    """One ledger in a file, at the morning of 2026-10-06 unless told otherwise."""

    store: Store

    def __init__(self, path: Path | str, *, at: str = MORNING) -> None:
        self.path = str(path)
        self.clock = HandClock(self.path, at=at)
        self.store = self.open()
        self._declared: dict[str, Declaration] = {}

    def open(self) -> Store:
        """The ledger, as a process opens it."""
        return SqliteStore(self.path)

    # -- jobs and attempts ----------------------------------------------------------------------------------------------

    def job(
        self,
        name: str = "export",
        schedule: Schedule | None = None,
        *,
        scopes: Sequence[str] = ("",),
        **policies: int | str | None,
    ) -> None:
        """Register a job: by day in UTC, transactional, a lease of a minute, unless told otherwise."""
        stated: dict[str, int | str | bytes | None] = {
            "catch_up": "each",
            "contract": "transactional",
            "lease": LEASE,
            "retries": 3,
            **policies,
        }
        self._declared[name] = Declaration(name, "", schedule or daily("UTC"), stated, "dev@example")
        for scope in scopes:
            self.declare(name, scope)

    def declare(self, name: str = "export", scope: str = "") -> Known | Refused | Misuse:
        """Declare the job again, for a scope."""
        return self.write(declare(self.declaration(name, scope)))

    def adopt(self, name: str, schedule: Schedule) -> None:
        """Declare a job with this schedule from now on."""
        known = self._declared[name]
        self._declared[name] = Declaration(name, known.scope, schedule, known.policies, known.by)

    def declaration(self, name: str = "export", scope: str = "") -> Declaration:
        known = self._declared[name]
        return Declaration(name, scope, known.schedule, known.policies, known.by)

    def ask(
        self,
        window: str = "2026-10-05",
        *,
        job: str = "export",
        scope: str = "",
        payload: str | None = None,
        attempt: bytes | None = None,
    ) -> Claim | AlreadyCompleted | Busy | NotDue | Refused | Misuse:
        """Try to take a window; whatever the ledger answers, also a refusal, as a value."""
        claimer = Claimer(attempt or new_attempt_id(), "host/1@1+a", "test", payload)
        named = self.write(take_window(self.declaration(job, scope), window, claimer))
        return named.answer if isinstance(named, Named) else named

    def ask_key(
        self, key: str, *, payload: str | None = None
    ) -> Claim | AlreadyCompleted | Busy | NotDue | Refused | Misuse:
        """Try to take the run of a key."""
        parsed = parse_key(key)
        claimer = Claimer(new_attempt_id(), "host/1@1+a", "test", payload)
        named = self.write(take_key(parsed, Declaration(parsed.job, parsed.scope), claimer))
        return named.answer if isinstance(named, Named) else named

    def ask_adhoc(
        self, adhoc: str, *, job: str = "export"
    ) -> Claim | AlreadyCompleted | Busy | NotDue | Refused | Misuse:
        """Try to take a run outside the schedule."""
        claimer = Claimer(new_attempt_id(), "host/1@1+a", "test")
        named = self.write(take_adhoc(self.declaration(job), adhoc, claimer))
        return named.answer if isinstance(named, Named) else named

    def take(
        self, window: str = "2026-10-05", *, job: str = "export", scope: str = "", payload: str | None = None
    ) -> Claim:
        """Take a window that can be taken."""
        answer = self.ask(window, job=job, scope=scope, payload=payload)
        assert isinstance(answer, Claim), answer
        return answer

    def poke(
        self, job: str = "export", *, scope: str = "", as_of: int | None = None, tried: frozenset[RunId] = frozenset()
    ) -> Taken | Idle | Refused | Misuse:
        """What any trigger does: open what is owed, and take the next of it."""
        claimer = Claimer(new_attempt_id(), "host/2@2+b", "poke")
        return self.write(claim_next(self.declaration(job, scope), claimer, as_of=as_of, tried=tried))

    def work_all(self, job: str = "export") -> list[str]:
        """Poke and complete until nothing is left to take; the keys in order."""
        done = []
        while isinstance(taken := self.poke(job), Taken):
            self.complete(taken.claim)
            done.append(str(taken.key))
        return done

    def complete(self, claim: Claim) -> None:
        self.write(complete_or_raise(claim))

    def fail(self, claim: Claim, *, retry_in: int | None = 0, counted: bool = True) -> None:
        ending = Ending("failed", "exit 1", retry=retry_in is not None, counted=counted)
        self.write(fail_or_raise(claim, ending, retry_in=retry_in, error="exit 1"))

    def doubt(self, claim: Claim) -> None:
        self.write(doubt_or_raise(claim, "time-out at the provider"))

    def release(self, claim: Claim) -> None:
        self.write(release_or_raise(claim, "released"))

    def renew(self, claim: Claim) -> bool:
        return self.write(renew(claim))

    def hold_pulse(self, claim: Claim) -> int:
        """Keep an attempt's file lock, as its process does while it lives. Close the descriptor to let it die."""
        return begin_pulse(lock_path(self.path), claim.attempt_id)

    def lapse(self) -> None:
        """Let every lease that is not renewed run out."""
        self.clock.advance(LATE)

    # -- what people say ------------------------------------------------------------------------------------------------

    def find(
        self, window: str = "2026-10-05", *, job: str = "export", scope: str = ""
    ) -> tuple[Known, RunId, Occurrence]:
        """A window's run, addressed as a person does."""
        addressed = self.store.read(by_window(job, scope, window))
        assert addressed.occurrence is not None
        return addressed.known, addressed.run, addressed.occurrence

    def find_key(self, key: str) -> RunId:
        return self.store.read(by_key(parse_key(key))).run

    def skip(self, window: str = "2026-10-05", *, job: str = "export") -> Run:
        known, run, occurrence = self.find(window, job=job)
        return self.write(skip(known, run, occurrence, WORD))

    def cancel(self, window: str = "2026-10-05", *, job: str = "export", by: str = WORD.by) -> Run:
        known, run, occurrence = self.find(window, job=job)
        return self.write(cancel(known, run, occurrence, Word(by, WORD.reason)))

    def once(self, key: str) -> bool:
        """Complete the run of a key, as a caller does in a transaction of its own."""
        claimer = Claimer(new_attempt_id(), "host/3@3+c", "once")
        return self.write(once(parse_key(key), claimer))

    def beat(self, claim: Claim) -> str:
        return self.write(beat(claim))

    def unskip(self, window: str = "2026-10-05", *, job: str = "export") -> Run:
        known, run, occurrence = self.find(window, job=job)
        return self.write(unskip(known, run, occurrence, WORD))

    def retry(self, run: RunId, *, new_payload: bool = False) -> Run:
        return self.write(retry(run, WORD, new_payload=new_payload))

    def reopen(self, run: RunId) -> Run:
        return self.write(reopen(run, WORD))

    def resolve(self, run: RunId, *, done: bool, attempt_is_dead: bool = False) -> Run:
        return self.write(resolve(run, WORD, done=done, attempt_is_dead=attempt_is_dead))

    def pause(self, job: str = "export", scope: str | None = None, *, until: int | None = None) -> None:
        self.write(pause(job, scope, WORD, until=until))

    def resume(self, job: str = "export", scope: str | None = None, *, policy: CatchUp | None = None) -> list[Resumed]:
        return self.write(resume(job, scope, WORD, policy=policy))

    def plan(self, *days: str, job: str = "export", scope: str = "", **asked: Any) -> Plan:
        """What a backfill of a range of days, half-open, would do."""
        return self.store.read(plan(job, scope, _asked(*days, **asked)))

    def backfill(
        self, *days: str, job: str = "export", scope: str = "", expect: int | None = None, **asked: Any
    ) -> int:
        """Start a backfill of a range of days, half-open; its number."""
        started = self.write(start(job, scope, _asked(*days, **asked), WORD, expect=expect))
        return started.backfill.id

    def claim_backfill(
        self, job: str = "export", *, scope: str = "", number: int | None = None, tried: frozenset[RunId] = frozenset()
    ) -> Taken | Idle | Refused | Misuse:
        """What a worker of backfills does: take the next window of the oldest that has a slot free."""
        claimer = Claimer(new_attempt_id(), "host/3@3+c", "backfill")
        return self.write(claim_backfill(self.declaration(job, scope), claimer, backfill=number, tried=tried))

    def take_of_backfill(self, job: str = "export") -> Taken:
        """Take a window of a backfill that has one to give."""
        taken = self.claim_backfill(job)
        assert isinstance(taken, Taken), taken
        return taken

    def work_backfill(self, job: str = "export", *, most: int = 1_000) -> list[str]:
        """Take and complete windows of backfills until none is left to take; their days in order."""
        done: list[str] = []
        while len(done) < most and isinstance(taken := self.claim_backfill(job), Taken):
            self.complete(taken.claim)
            done.append(taken.key.middle)
        return done

    def backfill_row(self, number: int) -> Backfill:
        return self.store.read(find_backfill(number))

    # -- looking --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the ledger."""
        self.store.close()

    def write(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation in a transaction of its own."""
        return self.store.write(operation)

    def touch(self, statement: Statement, **parameters: Any) -> int:
        """Run one statement of the ledger in a transaction of its own; how many rows it touched."""
        return self.write(count(statement, **parameters))

    def run(self, run: RunId) -> Run:
        """The run as it is."""
        seen = self.store.read(look(run))
        assert seen is not None
        return seen

    def state(self, run: RunId) -> str:
        return self.run(run).state

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """What a person sees who opens the file."""
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def amend(self, sql: str, *parameters: object) -> None:
        """Change the file by hand, for what the ledger has no operation for yet."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql, parameters)

    @contextmanager
    def tried(self, sql: str) -> Iterator[Any]:
        """The file as it would be if it was changed by hand so: a transaction that is given up."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute(sql)
            yield connection

    def attempts(self, run: RunId) -> list[tuple[int, str]]:
        """Number and outcome of each attempt that has ended."""
        return self.rows(
            "select number, outcome from duly_attempt where series = ? and nominal = ? and revision = ? order by number",
            run.series,
            run.nominal,
            run.revision,
        )

    def events(self, kind: str) -> list[tuple[str, str, str]]:
        """By whom, why, and the detail of each event of a kind."""
        return self.rows("select by, reason, detail from duly_event where kind = ? order by id", kind)

    def runs(self, job: str = "export") -> list[tuple[str, str]]:
        """Nominal and state of the runs of a job, oldest first."""
        return self.rows("select nominal, state from duly_run_readable where job = ? order by nominal, revision", job)

    def reasons(self) -> list[str]:
        """Why each skipped range is, in order."""
        return [why for (why,) in self.rows("select reason from duly_skipped order by series, from_nominal")]

    def ranges(self) -> list[tuple[str, str]]:
        """First and last day (exclusive) of each skipped range."""
        return self.rows(
            "select date(from_nominal / 2, 'unixepoch'), date(to_nominal / 2, 'unixepoch') "
            "from duly_skipped order by from_nominal"
        )

    @contextmanager
    def no_commit(self) -> Iterator[None]:
        """Nothing is committed by anyone in here (sqlite.org/pragma.html#pragma_data_version)."""
        with closing(sqlite3.connect(self.path)) as watcher:
            before = watcher.execute("pragma data_version").fetchone()
            yield
            assert watcher.execute("pragma data_version").fetchone() == before

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that is recorded of runs, to tell that nothing changed."""
        tables = ("duly_run", "duly_attempt", "duly_renewal", "duly_skipped", "duly_text")
        return {table: self.rows(f"select * from {table}") for table in tables}


def _asked(first: str, beyond: str | None = None, **more: Any) -> Asked:
    """A range of days as `duly next` reads it."""
    names = [2 * (parse_instant(f"{day}T00:00:00Z") // SECOND) for day in (first, beyond) if day is not None]
    return Asked(f"{first}..{beyond or ''}", names[0], names[1] if beyond else None, **more)


class PostgresBook(Book):
    """The same stories on PostgreSQL: no file, no pulse; the lease alone says whether a holder may be alive."""

    def open(self) -> Store:
        return PostgresStore(self.path)

    def hold_pulse(self, claim: Claim) -> int:
        pytest.skip("on PostgreSQL a holder shows no pulse: the lease alone decides")

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.path) as connection:
            return connection.execute(_on_postgres(sql), parameters).fetchall()

    def amend(self, sql: str, *parameters: object) -> None:
        with psycopg.connect(self.path) as connection:
            connection.execute(_on_postgres(sql), parameters)

    @contextmanager
    def tried(self, sql: str) -> Iterator[Any]:
        with closing(psycopg.connect(self.path)) as connection:
            connection.execute(_on_postgres(sql))
            yield connection

    def runs(self, job: str = "export") -> list[tuple[str, str]]:
        return self.rows(
            """select to_char(nominal, 'YYYY-MM-DD"T"HH24:MI:SS'), state
                 from duly_run_readable where job = ? order by nominal, revision""",
            job,
        )

    def ranges(self) -> list[tuple[str, str]]:
        return self.rows(
            "select to_char(to_timestamp(from_nominal / 2) at time zone 'UTC', 'YYYY-MM-DD'), "
            "to_char(to_timestamp(to_nominal / 2) at time zone 'UTC', 'YYYY-MM-DD') "
            "from duly_skipped order by from_nominal"
        )

    @contextmanager
    def no_commit(self) -> Iterator[None]:
        """Nothing that is on record changes in here. (Who else commits in the server is not ours to see.)"""
        tables = ("duly_job", "duly_line", "duly_event")
        before = [self.everything(), *(self.rows(f"select * from {table}") for table in tables)]
        yield
        assert [self.everything(), *(self.rows(f"select * from {table}") for table in tables)] == before


def _on_postgres(sql: str) -> LiteralString:
    return re.sub(r"\bduly_(\w+)", r"duly.\1", sql.replace("%", "%%").replace("?", "%s"))


def let_die(pulse: int) -> None:
    """The process that held a pulse is gone."""
    os.close(pulse)


@contextmanager
def book_on(request: pytest.FixtureRequest, folder: Path, *, at: str = MORNING) -> Iterator[Book]:
    """A new ledger on that of `EACH_DATABASE` which a fixture was asked for."""
    if request.param == "sqlite":
        with closing(Book(folder / "ledger.db", at=at)) as mine:
            yield mine
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url, closing(PostgresBook(url, at=at)) as theirs:
        yield theirs
