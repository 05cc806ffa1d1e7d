"""What a ledger of millions of runs costs: bytes, how long it takes to be asked, and to be pruned.

    python -m bench.scale [--runs N] [--rounds N] [--folder DIR] [--only sqlite|postgres]

Ten lines of a five-minute job: of each one real run, which is then copied window by window, with its attempts, in SQL. One run
of twelve has three attempts. Nine lines are complete; of the tenth every 1,000th window is missing, and every 5,000th
has failed. Then each question is asked by the code that pages and commands use: the median of some, and the slowest. At last
the older half of a line is pruned, in the batches of `duly db prune`. A PostgreSQL is started for it.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import duly
from bench.entries import POSTGRES, SQLITE
from bench.figure import Figure, arguments, positive, write
from bench.places import POSTGRES_FLUSHED, NotThere, ready
from duly.evidence.axis import axis_until
from duly.evidence.backfill import asked_for
from duly.evidence.check import check_range
from duly.evidence.complete_through import complete_lines
from duly.evidence.explain import explain
from duly.evidence.over_time import over_time
from duly.evidence.runs import runs
from duly.evidence.status import status
from duly.evidence.verdict import lines
from duly.ledger.address import by_window
from duly.ledger.ask import now
from duly.ledger.backfill import plan
from duly.ledger.forget import forget_batch, prospects, raise_horizon
from duly.testing.clock import HandClock
from duly.times import DAY, MINUTE, SECOND, instant_text, parse_instant
from duly.work.prune import Pace, timed

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.protocol import Store

LINES, STEP, BATCH = 10, 5 * MINUTE, 20_000
FEWEST = 100  # windows of a line
MISSING_EACH, FAILED_EACH, RETRIED_EACH = 1_000, 5_000, 12
BEGIN = "2016-01-01T00:06:00Z"

# Columns of a run that are instants, and go with the window that it is copied to.
MOVED = [
    "due",
    "window_start",
    "window_end",
    "opened_at",
    "settled_at",
    "first_started_at",
    "started_at",
    "lease_until",
]


class Made:
    """A ledger that is made, and how SQL is sent to it beside its store."""

    def __init__(self, store: Store, sql: Callable[[str], list[Any]], size: Callable[[], int], series: str) -> None:
        self.store, self.sql, self.size, self.series = store, sql, size, series


@contextmanager
def on_sqlite(folder: str) -> Iterator[tuple[str, Made]]:
    import sqlite3

    from duly.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = str(Path(inside) / "ledger.db")
        HandClock(path, at=BEGIN)
        connection = sqlite3.connect(path, isolation_level=None)

        def size() -> int:
            connection.execute("pragma wal_checkpoint(truncate)")
            return os.path.getsize(path)

        counted = (
            "(with recursive n(k) as (select {first} union all select k + 1 from n where k < {last}) select k from n) g"
        )
        yield path, Made(SqliteStore(path), lambda sql: connection.execute(sql).fetchall(), size, counted)
        connection.close()


@contextmanager
def on_postgres(folder: str) -> Iterator[tuple[str, Made]]:
    import psycopg

    from duly.store.postgres import PostgresStore

    with ready(POSTGRES_FLUSHED) as ground, ground.new_database() as url:
        HandClock(url, at=BEGIN)
        with psycopg.connect(url, autocommit=True) as connection:

            def sql(text: str) -> list[Any]:
                found = connection.execute(re.sub(r"\bduly_(\w+)", r"duly.\1", text))
                return found.fetchall() if found.description else []

            def size() -> int:
                sql("vacuum analyze")
                tables = "select oid from pg_class where relkind = 'r' and relnamespace = 'duly'::regnamespace"
                return int(sql(f"select sum(pg_total_relation_size(oid))::bigint from ({tables}) t")[0][0])

            store = PostgresStore(url)
            yield url, Made(store, sql, size, "generate_series({first}::bigint, {last}::bigint) g(k)")
            store.close()


# -- making -------------------------------------------------------------------------------------------------------------


def make(url: str, made: Made, windows: int) -> int:
    """Fill the ledger: so many windows for each line. Answers how many runs there are."""
    ledger = duly.sqlite(url) if not url.startswith("postgres") else duly.postgres(url)
    for number in range(LINES):
        job = ledger.job(f"rates-{number}", duly.every("5m"), catch_up=duly.EACH)
        job(lambda run: None).catch_up()
    ledger.close()
    all_columns = columns_of(made, "duly_run")
    moved = ", ".join(_of_run(column) for column in all_columns)
    source = made.series.format(first=1, last=windows - 1)
    made.sql(f"insert into duly_run ({', '.join(all_columns)}) select {moved} from duly_run r cross join {source}")
    last = made.sql("select max(series) from duly_run")[0][0]
    inside = f"series = {last} and nominal > (select min(nominal) from duly_run where series = {last})"
    place = f"(nominal / {2 * STEP // SECOND})"
    made.sql(f"delete from duly_run where {inside} and {place} % {MISSING_EACH} = 0")
    made.sql(
        "update duly_run set state = 'failed', settled_at = null, cause = 'exit 1' "
        f"where {inside} and {place} % {FAILED_EACH} = 1"
    )
    made.sql("delete from duly_attempt")
    named = columns_of(made, "duly_attempt")
    for number, outcome, which in ((1, "failed", "r.fence = 3"), (2, "failed", "r.fence = 3"), (0, "", "1 = 1")):
        values = ", ".join(_of_attempt(column, number, outcome) for column in named)
        made.sql(f"insert into duly_attempt ({', '.join(named)}) select {values} from duly_run r where {which}")
    ahead = (windows - 1) * STEP
    made.sql(f"update duly_line set opened_until = opened_until + {ahead}, next_due = next_due + {ahead}")
    now_ = made.sql("select max(next_due) from duly_line")[0][0]
    HandClock(url, at=now_ - MINUTE)
    return int(made.sql("select count(*) from duly_run")[0][0])


def columns_of(made: Made, table: str) -> list[str]:
    if "generate_series" in made.series:
        found = made.sql(
            f"select attname from pg_attribute where attrelid = '{table.replace('duly_', 'duly.', 1)}'::regclass "
            "and attnum > 0 and not attisdropped order by attnum"
        )
        return [name for (name,) in found]
    return [row[1] for row in made.sql(f"pragma table_info({table})")]


def _of_run(column: str) -> str:
    if column == "nominal":
        return f"r.nominal + {2 * STEP // SECOND} * g.k"
    if column in MOVED:
        return f"r.{column} + {STEP} * g.k"
    if column in ("fence", "failures"):
        more, less = (3, 1) if column == "fence" else (2, 0)
        return f"case when g.k % {RETRIED_EACH} = 0 then {more} else {less} end"
    return f"r.{column}"


def _of_attempt(column: str, number: int, outcome: str) -> str:
    """A column of an attempt that was made of a run: of the last one, where `number` is 0."""
    standing = "case when r.state = 'failed' then 'failed' else 'completed' end"
    return {
        "number": str(number) if number else "r.fence",
        "ended_at": "r.started_at + 1000000",
        "outcome": f"'{outcome}'" if outcome else standing,
        "error": "'exit 1'" if outcome else "null",
    }.get(column, f"r.{column}")


# -- asking -------------------------------------------------------------------------------------------------------------


def questions(end: int) -> dict[str, Callable[[int], Operation[Any]]]:
    """What is asked, by the code that answers it to people; each is given the number of the round."""
    year = f"{instant_text(end - 366 * DAY)[:10]}..{instant_text(end - DAY)[:10]}"
    last = f"rates-{LINES - 1}"

    async def one(turn: int) -> Any:
        begin = parse_instant(BEGIN)
        window = instant_text((begin + (turn + 1) * (end - begin) // 20) // STEP * STEP)
        return await explain(await by_window("rates-3", "", window))

    async def grid(_: int) -> Any:
        at = await now()
        return await over_time(await lines(None, None), axis_until("hour", "UTC", at, 96, 4), at)

    async def missing(_: int) -> Any:
        at = await now()
        return await over_time(await lines(last, None), axis_until("day", "UTC", at, 366, 1), at)

    async def planned(job: str, text: str) -> Any:
        asked = await asked_for(job, "", text, what="missing", order="oldest", concurrency=1, stop_after=0)
        return await plan(job, "", asked)

    return {
        "point look-up and explain": one,
        "complete through and last completed, ten lines": lambda _: complete_lines(),
        "status": lambda _: status(),
        "grid, ten lines by 96 hours": grid,
        "the newest 100 runs of a job": lambda _: runs("rates-3", None, limit=100),
        "a five-minute year by days: what is missing": missing,
        "a backfill of that year, planned": lambda _: planned(last, year),
        "`duly check` of that year (20,000 windows at most)": lambda _: check_range(last, "", year),
    }


def ask(made: Made, rounds: int) -> Iterator[tuple[str, float]]:
    """Each question, and its median in milliseconds."""
    end = made.store.now()
    for name, question in questions(end).items():
        took = []
        for turn in range(rounds):
            began = time.perf_counter()
            made.store.read(question(turn))
            took.append(time.perf_counter() - began)
        print(f"| {name} | {1e3 * median(took):.1f} | {1e3 * max(took):.1f} |", flush=True)
        yield name, 1e3 * median(took)


# -- pruning ------------------------------------------------------------------------------------------------------------


def prune(made: Made) -> tuple[float, float]:
    """Prune the older half of the first line, in the batches of `duly db prune`: runs a second, and the longest time that
    a batch held its locks, in milliseconds.
    """
    (known,) = made.store.read(lines("rates-0", ""))
    half = made.sql("select (min(settled_at) + max(settled_at)) / 2 from duly_run where series = 1")[0][0]
    (prospect,) = made.store.read(prospects(known, settled_by=int(half)))
    assert prospect.found is not None
    made.store.write(raise_horizon(prospect.found, by="bench", reason="bench"))
    pace, gone, held, after = Pace(BATCH), 0, [], None
    began = time.perf_counter()
    while True:
        done, seconds = made.store.write(
            timed(forget_batch(prospect.series, pace.many, settled_by=int(half), after=after))
        )
        held.append(seconds)
        gone, after = gone + done.gone.runs, done.last
        if done.is_last:
            break
        pace.after(seconds)
    took = time.perf_counter() - began
    print(
        f"\n{gone:,} runs with their attempts pruned in {took:.1f} s: {gone / took:,.0f} runs a second; a batch held its locks "
        f"for {1e3 * median(held):.1f} ms, at most {1e3 * max(held):.1f} ms"
    )
    return gone / took, 1e3 * max(held)


def tell(name: str, url: str, made: Made, windows: int, rounds: int) -> list[Figure]:
    empty = made.size()
    began = time.perf_counter()
    runs_made = make(url, made, windows)
    attempts = made.sql("select count(*) from duly_attempt")[0][0]
    size = made.size() - empty
    print(f"\n## {name}: {runs_made:,} runs, {attempts:,} attempts (made in {time.perf_counter() - began:.0f} s)\n")
    print(f"{size / runs_made:.0f} bytes a run with its attempts; {size / 1e9:.2f} GB\n")
    print("| question | ms, median | slowest |\n|---|---|---|")
    case = f"{name}, {runs_made:,} runs"
    figures = [Figure("scale", case, question, took, "ms") for question, took in ask(made, rounds)]
    pruned, held = prune(made)
    return [
        *figures,
        Figure("scale", case, "pruned", pruned, "runs/s"),
        Figure("scale", case, "the longest time that a batch of it held its locks", held, "ms"),
        Figure("scale", case, "a run, with its attempts", size / runs_made, "bytes"),
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=positive, help="how many runs in all (1,000,000; quick: 10,000)")
    parser.add_argument("--rounds", type=positive, help="how often each question is asked (7; quick: 1)")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the SQLite ledger is made")
    parser.add_argument("--only", choices=(SQLITE, POSTGRES))
    args = parser.parse_args()
    windows = (args.runs or (10_000 if args.quick else 1_000_000)) // LINES
    if windows < FEWEST:
        parser.error(f"--runs: {LINES * FEWEST:,} at least")
    rounds = args.rounds or (1 if args.quick else 7)
    figures = []
    for database, name, place in ((SQLITE, "SQLite", on_sqlite), (POSTGRES, "PostgreSQL", on_postgres)):
        if args.only in (None, database):
            try:
                with place(args.folder) as (url, made):
                    figures += tell(name, url, made, windows, rounds)
            except NotThere as e:
                print(f"{name}: {e}")
    write(args.json, figures)


if __name__ == "__main__":
    main()
