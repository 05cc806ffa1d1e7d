"""What a page of the dashboard costs its server: a ledger of 1,000 jobs, 100 of them with 96 hours in view.

Each page is asked for through the whole application, guard and compression included, but for a socket: processor time of the
process, wall time, bytes as they are and as they are sent. On SQLite, and on a PostgreSQL that is started for it (what the
server itself computes is in the wall time alone). Rounds are interleaved; each number is a median. Goal: the grid under 150 ms
and 200 kB.

    python -m bench.grid [--rounds N]
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.books import Book, PostgresBook
from tests.web.seeded import DENSE, HOURS, seed

from bench.figure import Figure, arguments, positive, write
from bench.places import POSTGRES_FLUSHED, NotThere, ready
from duly.store.migrations import postgres
from duly.web import dashboard
from duly.web.reading import Reader

JOBS = 1_000
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
    try:
        with ready(POSTGRES_FLUSHED) as ground, ground.new_database() as url:
            postgres.create(url, clock="hand")
            books["PostgreSQL"] = PostgresBook(url)
            yield from _seeded(books)
    except NotThere as e:
        print(f"PostgreSQL: {e}")
        yield from _seeded(books)


def _seeded(books: dict[str, Book]) -> Iterator[dict[str, Book]]:
    for book in books.values():
        seed(book, jobs=JOBS, dense=JOBS // 10)
    yield books
    for book in books.values():
        book.store.close()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=positive, help="how often each page is asked for (5; quick: 1)")
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.quick else 5)
    with tempfile.TemporaryDirectory() as folder, ledgers(folder) as books:
        readers = {
            name: Reader(lambda book=book: book.open(), keeps=name != "SQLite", threads=1)  # type: ignore[misc]
            for name, book in books.items()
        }
        found = asyncio.run(measured({name: dashboard(reader) for name, reader in readers.items()}, rounds))
        for reader in readers.values():
            reader.close()
    print(f"{'page':<58} {'ledger':<10} {'CPU ms':>7} {'wall ms':>8} {'kB':>7} {'sent kB':>8}")
    figures = []
    for (path, name), each in found.items():
        cpu, wall = (median(getattr(one, of) for one in each) * 1_000 for of in ("cpu", "wall"))
        print(f"{path:<58} {name:<10} {cpu:7.0f} {wall:8.0f} {each[0].size / 1_000:7.0f} {each[0].sent / 1_000:8.1f}")
        case = f"{name}, {JOBS:,} jobs"
        figures += [
            Figure("grid", case, f"`{path}`, processor", cpu, "ms"),
            Figure("grid", case, f"`{path}`, sent", each[0].sent / 1_000, "kB"),
        ]
    write(args.json, figures)


if __name__ == "__main__":
    main()
