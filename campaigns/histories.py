"""Races of the ledger, long: all histories of two operations, then samples with faults and clock jumps, two actors and three.

It goes on where it stopped, says how fast it goes, and stops at the first history that breaks an invariant, with its story.

    python -m campaigns.histories                                     go on
    python -m campaigns.histories DATABASE RACE                       all histories of a race of two, on sqlite or postgres
    python -m campaigns.histories DATABASE RACE 3a.b+crash.2a         tell one again
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from tests.histories.races import CROWDS, ISOLATED, KNOWN, PAIRS, RACES
from tests.servers import MACHINES_OWN, Server, answers, from_wheel

from campaigns.progress import Progress
from duly.testing.histories import (
    History,
    HistoryFailed,
    PostgresStage,
    SqliteStage,
    Stage,
    check,
    every_history,
    replay,
    some_histories,
)

ROUNDS, SEEDS = 100, 50  # a piece is so many seeds of one race on one database; a round is one piece of each
AGAIN = "python -m campaigns.histories"


def pieces() -> Iterator[tuple[str, str, str]]:
    """Database, race, and what of it: all, or which seeds."""
    for database in ("sqlite", "postgres"):
        for name in PAIRS + (ISOLATED if database == "postgres" else ()):
            yield database, name, "all"
    for number in range(ROUNDS):
        for database in ("sqlite", "postgres"):
            for name in PAIRS + CROWDS + (ISOLATED if database == "postgres" else ()):
                yield database, name, str(number)


def histories_of(stage: Stage, name: str, what: str) -> Iterator[History]:
    """The histories of a piece."""
    if what == "all":
        yield from every_history(RACES[name], stage)
    else:
        first = int(what) * SEEDS
        yield from (history for _, history in some_histories(RACES[name], stage, range(first, first + SEEDS)))


def tell(stages: dict[str, Stage], progress: Progress, wanted: Iterable[tuple[str, str, str]]) -> int:
    """Tell the pieces that are left; how many histories that were. Raises `HistoryFailed`."""
    told, began = 0, monotonic()
    for database, name, what in wanted:
        piece = f"{database} {name} {what}"
        if progress.has(piece) or (database, name) in KNOWN:
            continue
        histories = [
            check(history, again=f"{AGAIN} {database} {name}") for history in histories_of(stages[database], name, what)
        ]
        told += len(histories)
        progress.note(piece, str(len(histories)))
        print(f"{piece}: {len(histories)} histories; {told / (monotonic() - began):.0f} a second", flush=True)
    return told


@contextmanager
def stages() -> Iterator[dict[str, Stage]]:
    """A stage in memory, and one in a new database of a server."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder,
        server() as found,
    ):
        both: dict[str, Stage] = {"sqlite": SqliteStage(folder), "postgres": PostgresStage(found.new_database())}
        try:
            yield both
        finally:
            for stage in both.values():
                stage.close()


@contextmanager
def server() -> Iterator[Server]:
    """The server that DULY_TEST_POSTGRES names, the machine's own, or one from a wheel."""
    named = os.environ.get("DULY_TEST_POSTGRES") or (MACHINES_OWN if answers(MACHINES_OWN) else None)
    if named is None:
        with tempfile.TemporaryDirectory() as folder, from_wheel(Path(folder)) as url:
            yield Server(url)
        return
    found = Server(named)
    try:
        yield found
    finally:
        found.close()


def main(wanted: list[str]) -> int:
    """Go on, or tell what is named."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its database is dropped
    with stages() as both:
        try:
            if len(wanted) == 3:
                print(check(replay(RACES[wanted[1]], both[wanted[0]], wanted[2])).story())
            elif len(wanted) == 2:
                told = [
                    check(each, again=f"{AGAIN} {' '.join(wanted)}")
                    for each in histories_of(both[wanted[0]], wanted[1], "all")
                ]
                print(f"{len(told)} histories")
            else:
                progress = Progress("histories")
                tell(both, progress, pieces())
                print(f"{sum(map(int, progress.done.values()))} histories kept every invariant")
        except HistoryFailed as failure:
            print(failure)
            return 1
    for (database, name), reason in KNOWN.items():
        print(f"not told: {name} on {database}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
