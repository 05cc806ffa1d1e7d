"""Post in a storm, long: ten thousand messages to a shop that remembers keys for a time, as many to one that remembers none.

Relays and shop are killed by SIGKILL at seeded points, requests and replies are swallowed, and time goes on so far that the
shop forgets (tests/outbox/storm.py). A piece is a thousand messages on one database; it goes on where it stopped, says what
went wrong on purpose and how fast it goes, and stops at the first promise that was broken, with its seed.

    python -m campaigns.post                            go on
    python -m campaigns.post once|word DATABASE SEED    tell one piece again, on sqlite or postgres
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tests.books import Book, PostgresBook
from tests.outbox.storm import Storm, StormWithoutMemory

from campaigns.histories import server
from campaigns.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Server

RUNS, EACH, FAULTS = 100, 10, 5  # of a piece; so many sendings of each hundred meet a fault
SEEDS = 5  # of each story on each database: ten thousand messages a story
STORIES = {"once": Storm, "word": StormWithoutMemory}
KEPT = {
    "once": "with a shop that remembers keys for two hours each effect was there once, in the order of its run",
    "word": "to a shop that remembers none nothing was sent again without a word that it was not done",
}


def pieces() -> Iterator[tuple[str, str, int]]:
    """Story, database and seed."""
    for story in STORIES:
        for seed in range(1, SEEDS + 1):
            for database in ("sqlite", "postgres"):
                yield story, database, seed


def tell(found: Server, story: str, database: str, seed: int) -> Counter[str]:
    """One piece; what happened in it. Raises `AssertionError` where a promise was broken."""
    with tempfile.TemporaryDirectory() as name, books(found, database, Path(name)) as (ledger, shop):
        storm = STORIES[story](ledger, shop, Path(name), seed=seed, runs=RUNS, each=EACH, faults=FAULTS)
        began = monotonic()
        try:
            storm.go_by(most=2_000)
            storm.look_in_the_end()
        finally:
            storm.close()
        storm.counts["messages"] = RUNS * EACH
        storm.counts["milliseconds"] = int((monotonic() - began) * 1000)
        return storm.counts


@contextmanager
def books(found: Server, database: str, folder: Path) -> Iterator[tuple[Book, Book]]:
    """A ledger and a shop, each with a database of its own."""
    if database == "sqlite":
        yield Book(folder / "jobs.db"), Book(folder / "shop.db")
        return
    urls = [found.new_database(), found.new_database()]
    try:
        yield PostgresBook(urls[0]), PostgresBook(urls[1])
    finally:
        for url in urls:
            found.drop(url)


def told_or_say(found: Server, story: str, database: str, seed: int) -> Counter[str] | None:
    """A piece; None where a promise was broken, which was said with what tells it again."""
    try:
        return tell(found, story, database, seed)
    except AssertionError as broken:
        print(
            f"{story} {database} seed {seed} BROKEN: {broken}\nagain: python -m campaigns.post {story} {database} {seed}"
        )
        return None


def in_words(counts: Counter[str]) -> str:
    """The rate, and each thing that happened."""
    rate = counts["messages"] / max(counts["milliseconds"] / 1000, 0.001)
    others = sorted(name for name in counts if name not in ("messages", "milliseconds"))
    return f"{counts['messages']} messages, {rate:.0f} a second; " + ", ".join(f"{counts[n]} {n}" for n in others)


def main(wanted: list[str]) -> int:
    """Go on, or tell what is named."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its databases are dropped
    with server() as found:
        if wanted:
            counts = told_or_say(found, wanted[0], wanted[1], int(wanted[2]))
            if counts is None:
                return 1
            print(in_words(counts))
            return 0
        progress = Progress("post")
        for story, database, seed in pieces():
            piece = f"{story} {database} {seed}"
            if progress.has(piece):
                continue
            counts = told_or_say(found, story, database, seed)
            if counts is None:
                return 1
            progress.note(piece, json.dumps(counts))
            print(f"{piece}: {in_words(counts)}", flush=True)
    for story, kept in KEPT.items():
        whole: Counter[str] = Counter()
        for piece, result in progress.done.items():
            if piece.startswith(story):
                whole.update(json.loads(result))
        print(f"{kept}:\n  {in_words(whole)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
