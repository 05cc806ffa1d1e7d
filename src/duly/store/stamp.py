"""Stamp: a text that is another as soon as something was committed, so that whoever shows a ledger need not read it to know
whether what is shown is still so.

It is a hint. It may be another where nothing was committed: a log was moved into its file, a transaction was given up. Of a
server it may be late by a moment, and is never early: whoever asks for the stamp first, and reads then, has read at least what
the stamp stands for.
"""

from __future__ import annotations

import os

from duly.errors import LedgerUnavailable


def stamp_of_file(path: str) -> str:
    """The stamp of an SQLite file, which is not opened for it. Raises `LedgerUnavailable` where there is none.

    A commit writes the log beside the file, or the file. An empty log is as none: who reads may make one, and removes it.
    """
    try:
        parts = [os.stat(path)]
    except OSError as e:
        raise LedgerUnavailable(f"{path} cannot be looked at: {e.strerror}") from e
    try:
        log = os.stat(f"{path}-wal")
    except FileNotFoundError:
        log = None
    except OSError as e:
        raise LedgerUnavailable(f"{path}-wal cannot be looked at: {e.strerror}") from e
    if log is not None and log.st_size > 0:
        parts.append(log)
    return "-".join(f"{part.st_ino:x}.{part.st_size:x}.{part.st_mtime_ns:x}" for part in parts)
