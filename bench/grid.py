"""What a page of the dashboard costs its server: a ledger of 1,000 jobs, 100 of them with 96 hours in view.

Each page is asked for through the whole application, guard and compression included, but for a socket: processor time of the
process, wall time, bytes as they are and as they are sent. On SQLite, and on PostgreSQL where DULY_TEST_POSTGRES names a
server or one runs on this machine (what the server itself computes is in the wall time alone). Rounds are interleaved; each
number is a median. Goal: the grid under 150 ms and 200 kB.

    python bench/grid.py [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.books import Book, PostgresBook  # noqa: E402
from tests.servers import MACHINES_OWN, Server, answers  # noqa: E402
from tests.web.seeded import DENSE, HOURS, seed  # noqa: E402

from duly.web import dashboard  # noqa: E402  after the path
from duly.web.reading import Reader  # noqa: E402

GRID = f"/grid?job={DENSE}&unit=hour&n={HOURS}&rows=100"
PAGES = (
    *("/", "/now.json", GRID, GRID.replace("/grid", "/grid.json"), "/grid", "/grid?rows=200"),
    *(
        "/job/hourly-0000",
        "/job/hourly-0009",
        "/job/nightly-0900",
        "/run/hourly-0005:2026-10-25T19%5BUTC%5D",
        "/lab?every=1h",
    ),
)


class Asked:
    """What one page cost."""

    def __init__(self, cpu: float, wall: float, size: int, sent: int) -> None:
        self.cpu, self.wall, self.size, self.sent = cpu, wall, size, sent


async def _ask(application: Any, path: str) -> tuple[int, int]:
    """Ask for a page; its size, and that of what is sent."""
    there, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": there.replace("%5B", "[").replace("%5D", "]"),
        "raw_path": there.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"accept-encoding", b"gzip")],
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 1),
    }
    body, status = b"", 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal body, status
        status = message.get("status", status)
        body += message.get("body", b"")

    await application(scope, receive, send)
    assert status == 200, (path, status, body[:500])
    return len(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body), len(body)


async def ask(application: Any, path: str) -> Asked:
    cpu, wall = time.process_time(), time.perf_counter()
    size, sent = await _ask(application, path)
    return Asked(time.process_time() - cpu, time.perf_counter() - wall, size, sent)


async def measured(applications: dict[str, Any], rounds: int) -> dict[tuple[str, str], list[Asked]]:
    """Each page of each ledger, as often as there are rounds, after one that is not counted."""
    found: dict[tuple[str, str], list[Asked]] = {}
    for number in range(rounds + 1):
        for path in PAGES:
            for name, application in applications.items():
                asked = await ask(application, path)
                if number:
                    found.setdefault((path, name), []).append(asked)
    return found


@contextmanager
def ledgers(folder: str) -> Iterator[dict[str, Book]]:
    """The ledger on each database."""
    books: dict[str, Book] = {"SQLite": Book(Path(folder) / "ledger.db")}
    url = os.environ.get("DULY_TEST_POSTGRES", MACHINES_OWN)
    if not answers(url):
        seed(books["SQLite"], jobs=1_000, dense=100)
        yield books
        return
    server = Server(url)
    with closing(server), server.ledger() as url:
        books["PostgreSQL"] = PostgresBook(url)
        for book in books.values():
            seed(book, jobs=1_000, dense=100)
        yield books
        for book in books.values():
            book.store.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder, ledgers(folder) as books:
        readers = {
            name: Reader(lambda book=book: book.open(), keeps=name != "SQLite", threads=1)  # type: ignore[misc]
            for name, book in books.items()
        }
        found = asyncio.run(measured({name: dashboard(reader) for name, reader in readers.items()}, given.rounds))
        for reader in readers.values():
            reader.close()
    print(f"{'page':<58} {'ledger':<10} {'CPU ms':>7} {'wall ms':>8} {'kB':>7} {'sent kB':>8}")
    for (path, name), rounds in found.items():
        cpu, wall = (median(getattr(one, of) for one in rounds) * 1_000 for of in ("cpu", "wall"))
        print(
            f"{path:<58} {name:<10} {cpu:7.0f} {wall:8.0f} {rounds[0].size / 1_000:7.0f} {rounds[0].sent / 1_000:8.1f}"
        )


if __name__ == "__main__":
    main()
