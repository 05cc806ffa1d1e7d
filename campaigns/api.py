"""The API, asked whatever its description allows and what it does not, for as long as is wanted, on both databases.

python -m campaigns.api [MINUTES] [SEED]
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.books import Book, PostgresBook
from tests.servers import MACHINES_OWN, Server, answers
from tests.web.api.fuzzing import fuzz, seeded

AT = "2026-10-23T00:00:00Z"


def main(minutes: int, seed: int) -> None:
    """On SQLite, and on the machine's own PostgreSQL where there is one; each for half of the time."""
    with tempfile.TemporaryDirectory() as folder:
        tell(Book(Path(folder) / "ledger.db", at=AT), Path(folder), seconds=30 * minutes, seed=seed)
    if answers(MACHINES_OWN):
        server = Server(MACHINES_OWN)
        try:
            with tempfile.TemporaryDirectory() as folder:
                book = PostgresBook(server.new_database(), at=AT)
                tell(book, Path(folder), seconds=30 * minutes, seed=seed)
        finally:
            server.close()


def tell(book: Book, folder: Path, *, seconds: int, seed: int) -> None:
    """Ask a server of one ledger, and say how much was asked. Raises `AssertionError` with what was found."""
    began = monotonic()
    try:
        with seeded(book) as port:
            found = fuzz(port, folder, examples=1_000, seed=seed, seconds=seconds)
    finally:
        book.store.close()
    if found.returncode:
        raise AssertionError(found.stdout + found.stderr)
    asked = re.search(r"(\d+) generated", found.stdout)
    print(
        f"{type(book).__name__}: {asked[1] if asked else 'no'} requests of every kind, each answered as the description says; "
        f"{monotonic() - began:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [10, 1][len(given) :]))
