"""Examinations of a ledger's file: what SQLite says of it, who may touch it, and what it lies on."""

from __future__ import annotations

import os
import stat
from shlex import join

from duly.evidence.doctor import NOTE, OK, TROUBLE, WARNING, Finding
from duly.ledger.ask import Statement, every, one
from duly.store.lock import lock_path
from duly.store.sqlite import network_file_system

MEGABYTE = 1 << 20
LARGE_WAL = 64 * MEGABYTE
LITTLE_SPACE = 256 * MEGABYTE

JOURNAL = Statement("journal_mode", "pragma journal_mode")
QUICK_CHECK = Statement("quick_check", "pragma quick_check(5)")

_OTHERS_WRITE, _OTHERS_READ = stat.S_IWOTH, stat.S_IROTH


async def journal() -> list[Finding]:
    """How the file is journalled: a WAL lets readers and a writer go on together."""
    mode = await one(JOURNAL, str)
    if mode == "wal":
        return [Finding("journal", OK, "journal_mode is wal; duly commits with synchronous = full")]
    seen = (
        f"journal_mode is {mode}: readers wait for each commit, and it for them; a file that was there keeps its mode"
    )
    return [Finding("journal", NOTE, seen)]


async def integrity() -> list[Finding]:
    """Whether the file is whole, as SQLite's quick check sees it. It reads all of the file."""
    said = await every(QUICK_CHECK, str)
    if said == ["ok"]:
        return [Finding("integrity", OK, "the quick check found nothing")]
    return [Finding("integrity", TROUBLE, f"the file is damaged: {'; '.join(said)}", "duly db restored --help")]


def wal(path: str) -> list[Finding]:
    """The size of the WAL: it grows while a reader keeps an old snapshot open."""
    try:
        size = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return [Finding("wal", OK, "there is none: nobody has the ledger open")]
    if size > LARGE_WAL:
        seen = (
            f"it has {size // MEGABYTE} MB: some process keeps a read transaction open, and nothing can be taken over"
        )
        return [Finding("wal", WARNING, seen, join(["fuser", "-v", path]))]
    return [Finding("wal", OK, f"it has {size} bytes")]


def permissions(path: str) -> list[Finding]:
    """Who may touch the ledger, and the files beside it: all of one owner, and none for everybody."""
    ledger = os.stat(path)
    found = []
    if ledger.st_mode & _OTHERS_WRITE:
        seen = f"{path} may be written by every user of this host"
        found.append(Finding("permissions", TROUBLE, seen, join(["chmod", "o-w", path])))
    elif ledger.st_mode & _OTHERS_READ:
        seen = f"{path} may be read by every user of this host: names of jobs and tenants stand in it"
        found.append(Finding("permissions", NOTE, seen, join(["chmod", "o-r", path])))
    for beside in (f"{path}-wal", f"{path}-shm", lock_path(path)):
        found += _beside(beside, ledger)
    folder = os.path.dirname(os.path.abspath(path))
    kept = os.stat(folder)
    if kept.st_mode & _OTHERS_WRITE and not kept.st_mode & stat.S_ISVTX:
        seen = f"{folder} may be written by every user: any of them can put another file in the ledger's place"
        found.append(Finding("permissions", TROUBLE, seen, join(["chmod", "o-w", folder])))
    return found or [Finding("permissions", OK, f"mode {stat.filemode(ledger.st_mode)}, and those beside it alike")]


def _beside(path: str, ledger: os.stat_result) -> list[Finding]:
    """A file beside the ledger: whoever writes the one writes the other."""
    try:
        mine = os.lstat(path)
    except FileNotFoundError:
        return []
    if stat.S_ISLNK(mine.st_mode):
        return [Finding("permissions", TROUBLE, f"{path} is a symbolic link", join(["ls", "-l", path]))]
    if mine.st_uid != ledger.st_uid:
        seen = f"{path} is of user {mine.st_uid}, the ledger of {ledger.st_uid}: one of them cannot write"
        step = join(["chown", f"{ledger.st_uid}:{ledger.st_gid}", path])
        return [Finding("permissions", TROUBLE, seen, step)]
    writers = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    if mine.st_mode & writers & ~ledger.st_mode:
        seen = f"{path} may be written by users who may not write the ledger: they can stop all who do"
        return [Finding("permissions", WARNING, seen, join(["chmod", f"--reference={path.rpartition('-')[0]}", path]))]
    if ledger.st_mode & writers & ~mine.st_mode:
        seen = f"{path} may not be written by all who may write the ledger: they cannot claim"
        return [Finding("permissions", TROUBLE, seen, join(["chmod", f"--reference={path.rpartition('-')[0]}", path]))]
    return []


def disk(path: str) -> list[Finding]:
    """What the ledger lies on: no network file system, whose locks cannot be trusted; and whether there is room."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            kind = network_file_system(f.read(), os.path.realpath(path))
    except OSError:  # not Linux, or no /proc
        kind = None
    return on_disk(path, kind, _free(path))


def _free(path: str) -> int:
    found = os.statvfs(os.path.dirname(os.path.abspath(path)))
    return found.f_bavail * found.f_frsize


def on_disk(path: str, network: str | None, free: int) -> list[Finding]:
    """As `disk`, of what was found: the type of a network file system, if it is one, and the bytes that are free. Pure."""
    folder = os.path.dirname(os.path.abspath(path))
    if network:
        seen = f"it lies on {network}, whose locks SQLite cannot trust: two hosts may claim one run"
        return [Finding("disk", TROUBLE, seen, "duly db create --ledger postgresql://duly@db.example/duly")]
    if free < LITTLE_SPACE:
        seen = f"{free // MEGABYTE} MB are free: when there are none, nothing can be claimed or completed"
        return [Finding("disk", WARNING, seen, join(["df", "-h", folder]))]
    return [Finding("disk", OK, f"a local file system, {free // MEGABYTE} MB free")]


EXAMINATIONS = (journal, integrity)
OF_FILE = (wal, permissions, disk)
