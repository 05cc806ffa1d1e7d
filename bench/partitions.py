"""What partitions would change on PostgreSQL: tables of runs and attempts as they are, beside the same in ranges of nominals.

    python -m bench.partitions [--runs N] [--rounds N]

A ledger as scale.py makes it is copied twice into plain tables of the ledger's own columns, keys and indexes: once
whole, once in twelve partitions by nominal. Then both do in turn what a ledger does all day, in words that name series and
nominal: a new run with its completion, a duplicate, a look at the newest of a series, a year counted by the day. At last the
oldest twelfth goes: deleted in the batches of `duly db prune`, or its partition dropped. Milliseconds, medians.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import psycopg

from bench.figure import Figure, arguments, positive, write
from bench.places import NotThere
from bench.scale import LINES, STEP, make, on_postgres
from duly.times import SECOND

if TYPE_CHECKING:
    from bench.scale import Made

PARTS, BATCH = 12, 2_000
WHOLE, PARTED = "whole", "parted"
YEAR = "a year by days"
UNSETTLED = "state in ('open', 'running', 'failed', 'unknown')"


def copy(connection: psycopg.Connection[Any], name: str, *, partitioned: bool) -> list[int]:
    """Copies of runs and attempts as `name_run` and `name_attempt`; answers the bounds between parts."""
    least, most = connection.execute("select min(nominal), max(nominal) + 1 from duly.run").fetchone() or (0, 0)
    bounds = [least + (most - least) * part // PARTS for part in range(PARTS)] + [2 * most]
    for table, key in (("run", "series, nominal, revision"), ("attempt", "series, nominal, revision, number")):
        how = "partition by range (nominal)" if partitioned else f"with (fillfactor = {75 if table == 'run' else 100})"
        connection.execute(f"create table {name}_{table} (like duly.{table} including constraints) {how}")
        if partitioned:
            for part, (first, beyond) in enumerate(pairwise(bounds)):
                connection.execute(
                    f"create table {name}_{table}_{part} partition of {name}_{table} for values from ({first}) to ({beyond})"
                    f" with (fillfactor = {75 if table == 'run' else 100})"
                )
        connection.execute(f"insert into {name}_{table} select * from duly.{table} order by nominal, series")
        connection.execute(f"alter table {name}_{table} add primary key ({key})")
    connection.execute(f"create index on {name}_run (series, nominal) where {UNSETTLED}")
    connection.execute(f"analyze {name}_run")
    connection.execute(f"analyze {name}_attempt")
    return bounds


def work(connection: psycopg.Connection[Any], name: str) -> dict[str, Callable[[int], object]]:
    """What is done to a copy; each is given a number that it has not been given before."""
    newest = connection.execute(f"select max(nominal) from {name}_run").fetchone()
    assert newest is not None
    step, year = 2 * STEP // SECOND, 366 * 86_400 * 2

    of_key = "series = %(series)s and nominal = %(nominal)s and revision = 1"

    def complete(number: int) -> None:
        key = {"series": number % LINES + 1, "nominal": newest[0] + step * (number + 1)}
        with connection.transaction():
            connection.execute(
                f"insert into {name}_run (series, nominal, revision, state, fence, opened_at, failures) "
                "values (%(series)s, %(nominal)s, 1, 'running', 1, 0, 0) on conflict do nothing",
                key,
            )
        with connection.transaction():
            connection.execute(f"update {name}_run set state = 'completed' where {of_key}", key)
            connection.execute(
                f"insert into {name}_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome, "
                "contract, owner, trigger) values (%(series)s, %(nominal)s, 1, 1, '', 0, 0, 'completed', '', '', '')",
                key,
            )

    def ask(sql: str) -> Callable[[int], object]:
        def asked(number: int) -> object:
            nominal = newest[0] - step * 997 * (number % 100)
            return connection.execute(sql, {"series": number % LINES + 1, "nominal": nominal, "year": year}).fetchall()

        return asked

    of_series = f"from {name}_run where series = %(series)s"
    return {
        "a run and its completion": complete,
        "a duplicate": ask(f"select state from {name}_run where {of_key}"),
        "the newest of a series": ask(f"select nominal {of_series} order by nominal desc, revision desc limit 1"),
        "the unsettled of a series": ask(f"select nominal {of_series} and {UNSETTLED}"),
        YEAR: ask(
            f"select nominal / 172800, count(*) {of_series} "
            "and nominal between %(nominal)s - %(year)s and %(nominal)s group by 1"
        ),
    }


def forget(
    connection: psycopg.Connection[Any], name: str, beyond: int, *, partitioned: bool
) -> tuple[int, float, float]:
    """The oldest part goes: how many runs, in how many seconds, and for how long others waited at most."""
    (runs,) = connection.execute(f"select count(*) from {name}_run where nominal < {beyond}").fetchone() or (0,)
    held = []
    if partitioned:
        began = time.perf_counter()
        with connection.transaction():
            connection.execute(f"drop table {name}_run_0, {name}_attempt_0")
        held.append(time.perf_counter() - began)
        return runs, sum(held), max(held)
    while True:
        began = time.perf_counter()
        with connection.transaction():
            gone = connection.execute(
                f"with batch as (select series, nominal from {name}_run where nominal < {beyond} and series = any(%s) "
                f"order by series, nominal limit {BATCH}), a as (delete from {name}_attempt a using batch b "
                "where a.series = b.series and a.nominal = b.nominal) "
                f"delete from {name}_run r using batch b where r.series = b.series and r.nominal = b.nominal",
                (list(range(1, LINES + 1)),),
            ).rowcount
        if gone == 0:
            return runs, sum(held), max(held)
        held.append(time.perf_counter() - began)


def compare(url: str, made: Made, runs: int, rounds: int) -> Iterator[Figure]:
    """Both copies of a ledger of so many runs, side by side."""
    make(url, made, runs // LINES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze duly.run, duly.attempt")
        copies = {name: copy(connection, name, partitioned=name == PARTED) for name in (WHOLE, PARTED)}
        works = {name: work(connection, name) for name in copies}
        print("| ms | whole | in twelve parts | ratio |\n|---|---|---|---|")
        for what in works[WHOLE]:
            took: dict[str, list[float]] = {name: [] for name in copies}
            for number in range(rounds if what != YEAR else max(rounds // 30, 3)):
                for name, does in works.items():
                    began = time.perf_counter()
                    does[what](number)
                    took[name].append(1e3 * (time.perf_counter() - began))
            whole, parts = median(took[WHOLE]), median(took[PARTED])
            print(f"| {what} | {whole:.2f} | {parts:.2f} | {parts / whole:.2f} |", flush=True)
            yield Figure("partitions", "whole", what, whole, "ms")
            yield Figure("partitions", f"in {PARTS} parts", what, parts, "ms", parts / whole, "whole")
        for name, bounds in copies.items():
            gone, seconds, most = forget(connection, name, bounds[1], partitioned=name == PARTED)
            pace = f"{gone / seconds:,.0f} a second; held {1e3 * most:.0f} ms at most"
            print(f"\n{name}: {gone:,} runs gone in {seconds:.2f} s, {pace}")
            yield Figure("partitions", name, "the oldest twelfth is gone", gone / seconds, "runs/s")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=positive, help="how many runs in all (1,000,000; quick: 20,000)")
    parser.add_argument("--rounds", type=positive, help="how often each thing is done to each copy (300; quick: 30)")
    args = parser.parse_args()
    runs, rounds = args.runs or (20_000 if args.quick else 1_000_000), args.rounds or (30 if args.quick else 300)
    try:
        with on_postgres("") as (url, made):
            write(args.json, compare(url, made, runs, rounds))
    except NotThere as e:
        sys.exit(f"PostgreSQL: {e}")


if __name__ == "__main__":
    main()
