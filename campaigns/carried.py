"""Days that Celery carries, long: on each database with each broker, in a storm (tests/on_celery/storm.py).

Workers and dispatchers are killed by SIGKILL, messages doubled, queues purged, and the broker severed: RabbitMQ closes every
connection, a Redis of our own is killed and started again, empty. A piece is a day of four jobs and a backfill of a month; it
goes on where it stopped, says what befell it, and stops at the first promise that was broken, with its seed.

    python -m campaigns.carried                          go on
    python -m campaigns.carried DATABASE BROKER SEED     tell one piece again: sqlite or postgres, rabbitmq or redis
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tests.books import Book, PostgresBook
from tests.on_celery.brokers import Broker, MortalRedis
from tests.on_celery.stage import CeleryStage
from tests.on_celery.storm import Storm

from campaigns.histories import server
from campaigns.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import Server

HOURS, SEEDS = 24, 5
VHOST = f"duly-campaign-{os.getpid()}"


def pieces() -> Iterator[tuple[str, str, int]]:
    """Database, broker and seed."""
    for seed in range(1, SEEDS + 1):
        for database in ("sqlite", "postgres"):
            for broker in BROKERS:
                if shutil.which(NEEDED[broker]) is not None:
                    yield database, broker, seed


def tell(found: Server, database: str, broker: str, seed: int, *, hours: int = HOURS) -> Counter[str]:
    """One piece; what happened in it. Raises `AssertionError` where a promise was broken."""
    with (
        tempfile.TemporaryDirectory() as name,
        book_of(found, database, Path(name)) as book,
        BROKERS[broker](Path(name)) as (post, sever),
    ):
        stage = CeleryStage(book, Path(name), post)
        began = monotonic()
        try:
            storm = Storm(stage, seed=seed, hours=hours, sever=sever)
            storm.go_by()
            storm.assert_whole()
        finally:
            stage.close()
        storm.counts["seconds"] = int(monotonic() - began)
        return storm.counts


@contextmanager
def book_of(found: Server, database: str, folder: Path) -> Iterator[Book]:
    if database == "sqlite":
        yield Book(folder / "jobs.db")
        return
    url = found.new_database()
    try:
        yield PostgresBook(url)
    finally:
        found.drop(url)


@contextmanager
def mortal_redis(folder: Path) -> Iterator[tuple[Broker, Callable[[], None]]]:
    """A Redis of our own; severed, it is killed and comes back empty."""
    redis = MortalRedis(folder)

    def sever() -> None:
        redis.kill()
        redis.start()

    try:
        yield redis, sever
    finally:
        redis.close()


@contextmanager
def rabbitmq(_: Path) -> Iterator[tuple[Broker, Callable[[], None]]]:
    """A virtual host of the machine's own; severed, it closes every connection."""
    rabbitmqctl("add_vhost", VHOST)
    rabbitmqctl("set_permissions", "-p", VHOST, "guest", ".*", ".*", ".*")
    try:
        yield (
            Broker(f"amqp://guest:guest@127.0.0.1:5672/{VHOST}"),
            lambda: rabbitmqctl("close_all_connections", "--vhost", VHOST, "a storm"),
        )
    finally:
        rabbitmqctl("delete_vhost", VHOST)


def rabbitmqctl(*words: str) -> None:
    subprocess.run(["rabbitmqctl", "-q", *words], check=True, stdout=subprocess.DEVNULL)


BROKERS = {"redis": mortal_redis, "rabbitmq": rabbitmq}
NEEDED = {"redis": "redis-server", "rabbitmq": "rabbitmqctl"}  # without it, nothing is told of that broker


def told_or_say(found: Server, database: str, broker: str, seed: int) -> Counter[str] | None:
    """A piece; None where a promise was broken, which was said with what tells it again."""
    try:
        return tell(found, database, broker, seed)
    except AssertionError as broken:
        print(
            f"{database} {broker} seed {seed} BROKEN: {broken}\n"
            f"again: python -m campaigns.carried {database} {broker} {seed}"
        )
        return None


def in_words(counts: Counter[str]) -> str:
    """How much was done, and each thing that befell it."""
    others = sorted(name for name in counts if name not in ("runs", "seconds"))
    return f"{counts['runs']} runs in {counts['seconds']} s; " + ", ".join(f"{counts[n]} {n}" for n in others)


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
        progress = Progress("carried")
        for database, broker, seed in pieces():
            piece = f"{database} {broker} {seed}"
            if progress.has(piece):
                continue
            counts = told_or_say(found, database, broker, seed)
            if counts is None:
                return 1
            progress.note(piece, json.dumps(counts))
            print(f"{piece}: {in_words(counts)}", flush=True)
    whole: Counter[str] = Counter()
    for result in progress.done.values():
        whole.update(json.loads(result))
    print(f"each run that was owed had its effect once, whatever befell its messages:\n  {in_words(whole)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
