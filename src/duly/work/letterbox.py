"""Letterbox: where a command may leave messages while it works, `$DULY_OUTBOX`. Made for every command, and mostly empty.

What lies in it is read by `mail`, which is imported only where something does.
"""

from __future__ import annotations

import os

_LOOK_AT_BYTES = 1 << 25  # of messages that are counted, to say how many are not sent


class Mail:
    """What a command may add messages to: `$DULY_OUTBOX`, a line of JSON for each.

    It lies in memory, under a path of this process that its children, and theirs, may open: nothing of it is left when this
    process is killed, and no other user can read it. Where a system has no such thing it is a file that only this user may
    read.
    """

    __slots__ = ("_descriptor", "_file", "path")

    def __init__(self, attempt_id: bytes) -> None:
        self._file = ""
        try:
            self._descriptor = os.memfd_create("duly-outbox")
            self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        except (AttributeError, OSError):
            self.path = self._file = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"duly-outbox-{attempt_id.hex()}")  # noqa: S108  made here, and nobody can know its name
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def has_come(self) -> bool:
        """Whether the command wrote anything."""
        return self._descriptor >= 0 and os.fstat(self._descriptor).st_size > 0

    def read(self, most: int) -> bytes:
        """What it wrote, so many bytes at most."""
        return os.pread(self._descriptor, most, 0) if self.has_come() else b""

    def count(self) -> int:
        """How many lines there are, as far as anybody cares."""
        return len(self.read(_LOOK_AT_BYTES).splitlines()) if self.has_come() else 0

    def close(self) -> None:
        """Let it go, with all that is in it."""
        os.close(self._descriptor)
        self._descriptor = -1
        if self._file:
            os.unlink(self._file)
