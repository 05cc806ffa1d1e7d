"""A copy of an SQLite ledger while it is worked on.

The copy is of one instant: in WAL mode one snapshot is read to its end, and writers go on beside it. Elsewhere a reader that
stays would hold every commit up, so it lets go after each step and begins anew where somebody has written meanwhile; after a
few times it holds on, and writers wait. It is written beside its target under another name, checked, flushed, and only then
given the target's name: what has that name is whole.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from itertools import pairwise
from secrets import token_hex
from shlex import quote
from typing import TYPE_CHECKING

from duly.errors import LedgerCorrupt, LedgerUnwritable, NoLedger, NotAllowed
from duly.ledger.restore import BACKED_UP_AT
from duly.records import record
from duly.store import BUSY_SECONDS
from duly.store.sound import faults
from duly.store.sqlite import connect, translated, while_busy

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[int, int], None]  # pages copied, of how many

PAGES = 256  # in one step
BEGINNINGS = 3  # of a copy that writers interrupt, until it holds them up


@record
class Copy:
    """A copy that was made: its file, its length in bytes, and the ledger's instant up to which it is whole."""

    path: str
    size: int
    at: int


def backup(
    path: str, target: str, *, may_replace: bool, now: Callable[[], int], tell: Tell = lambda done, of: None
) -> Copy:
    """Copy the ledger at a path to a file, which is there afterwards only if it is whole. `now` is the ledger's instant.

    Raises `NotAllowed` where the target is there and may not be replaced, or is the ledger itself; `LedgerCorrupt` where
    what was copied is not sound; `LedgerUnwritable` where it cannot be written; else as whoever opens the ledger.
    """
    if not os.path.exists(path):
        raise NoLedger(f"there is no ledger at {path}")
    _refuse_target(path, target, may_replace=may_replace)
    temporary = os.path.join(os.path.dirname(os.path.abspath(target)), f".{os.path.basename(target)}.{token_hex(4)}")
    try:
        # For the same people as the ledger: a copy has all that it has.
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.stat(path).st_mode & 0o777))
        at = now()  # before the snapshot: what is committed from then on may be in it, or not
        _copy(path, temporary, tell)
        _sign(temporary, at)
        _refuse_unsound(temporary)
        _flush(temporary)
        _give_name(temporary, target, may_replace=may_replace)
        return Copy(target, os.path.getsize(target), at)
    except OSError as e:
        raise LedgerUnwritable(f"the copy {target} cannot be written: {e.strerror}") from e
    except sqlite3.Error as e:
        raise translated(e, path=path) from e
    finally:
        for left in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(temporary + left)


def _refuse_target(path: str, target: str, *, may_replace: bool) -> None:
    if not os.path.lexists(target):
        return
    if os.path.exists(target) and os.path.samefile(path, target):
        raise NotAllowed(f"{target} is the ledger itself; name another file for its copy")
    if not may_replace:
        raise NotAllowed(
            f"{target} is there already, and nothing was copied; name another file, or say --replace",
            next_step=f"duly db backup {quote(target)} --replace",
        )
    if not os.path.isfile(target):
        raise NotAllowed(f"{target} is no file, and is not replaced")


class _Interrupted(Exception):
    """Writers have made the copy begin anew too often."""


def _copy(path: str, temporary: str, tell: Tell) -> None:
    with closing(connect(path)) as source, closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
        ((mode,),) = while_busy(lambda: source.execute("pragma journal_mode").fetchall(), seconds=BUSY_SECONDS)
        if mode == "wal":
            _copy_snapshot(source, copy, PAGES, tell)
            return
        left: list[int] = []

        def see(_: int, remaining: int, total: int) -> None:
            left.append(remaining)
            if sum(after > before for before, after in pairwise(left)) >= BEGINNINGS:
                raise _Interrupted
            tell(total - remaining, total)

        try:
            source.backup(copy, pages=PAGES, progress=see, sleep=0.01)
        except _Interrupted:
            _copy_snapshot(source, copy, PAGES, tell)


def _copy_snapshot(source: sqlite3.Connection, copy: sqlite3.Connection, pages: int, tell: Tell) -> None:
    """Copy what one reading transaction sees: a copy in steps that each read anew would begin anew at every write."""
    source.execute("begin")
    while_busy(lambda: source.execute("select 1 from sqlite_master limit 1").fetchall(), seconds=BUSY_SECONDS)
    source.backup(copy, pages=pages, progress=lambda _, remaining, total: tell(total - remaining, total))
    source.execute("rollback")


def _sign(temporary: str, at: int) -> None:
    with closing(connect(temporary)) as copy:
        copy.execute(
            "insert into duly_meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
            (BACKED_UP_AT, str(at)),
        )


def _refuse_unsound(temporary: str) -> None:
    with closing(connect(temporary)) as copy:
        found = faults(copy)
    if found:
        raise LedgerCorrupt(f"what was copied is not sound, and was not kept: {found[0]}", next_step="duly db verify")


def _flush(temporary: str) -> None:
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give_name(temporary: str, target: str, *, may_replace: bool) -> None:
    if may_replace:
        os.replace(temporary, target)
    else:
        try:
            os.link(temporary, target)  # which refuses where somebody was first
        except FileExistsError as e:
            raise NotAllowed(f"{target} is there meanwhile, and was not replaced; name another file") from e
        os.unlink(temporary)
    folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
