"""Files: what is written. All of it is known before the first is; each is whole or not there, and only if it is as it was read.

A file is written beside itself under a name that begins with a point (what cron and systemd read of a folder, they skip those
by), flushed, and moved into its place. It keeps its mode and its owner. No copy of the original is left beside it: in
/etc/cron.d some crons would run a copy too.
"""

from __future__ import annotations

import os
from shlex import quote

from duly.errors import FileChanged, Misuse
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@record
class Change:
    """A file as it was read, and as it is to be; None where it is not there, or is not to be. `mode` is that of a new one."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644

    @property
    def verb(self) -> str:
        """What is done to the file."""
        return "create" if self.before is None else "remove" if self.after is None else "change"


def read(path: str) -> bytes | None:
    """What is in a file; None where there is none. Raises `Misuse`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Misuse(f"{path} cannot be read: {e.strerror}", next_step=f"ls -ld {quote(path)}") from e


def write(changes: Sequence[Change]) -> None:
    """Make the changes, in their order. Raises `FileChanged`, where a file is not as it was read: before the first one, or for
    one that somebody changed meanwhile, which is left to them; and `Misuse` where one is to become two things.
    """
    once: set[str] = set()
    for change in changes:
        _refuse_changed(change, "nothing was written")
        path = os.path.realpath(change.path)
        if path in once:
            raise Misuse(f"{change.path} would be written twice; nothing was written", next_step=f"ls -l {quote(path)}")
        once.add(path)
    for number, change in enumerate(changes):
        written = ", ".join(one.path for one in changes[:number])
        _make(change, f"it was left so, after {written} was written" if written else "nothing was written")


def _refuse_changed(change: Change, so_far: str) -> None:
    if read(change.path) != change.before:
        raise FileChanged(
            f"{change.path} has changed since it was read; {so_far}, and the same command reads it anew",
            next_step=f"ls -l {quote(change.path)}",
        )


def _make(change: Change, so_far: str) -> None:
    path = os.path.realpath(change.path)
    try:
        if change.after is None:
            _refuse_changed(change, so_far)
            os.unlink(path)
            _remove_if_empty(os.path.dirname(path))
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _replace(path, change.after, change.mode, lambda: _refuse_changed(change, so_far))
    except OSError as e:
        raise Misuse(f"{change.path} cannot be written: {e.strerror}", next_step=f"ls -ld {quote(change.path)}") from e


def _replace(path: str, content: bytes, mode: int, check: Callable[[], None]) -> None:
    """Put content in a file's place; `check` is called when all is ready, and may raise."""
    folder, name = os.path.split(path)
    _remove_left_behind(folder, f".{name}.duly-")
    temporary = os.path.join(folder, f".{name}.duly-{os.getpid()}")
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        stat = None
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if stat is not None and (stat.st_uid, stat.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), stat.st_uid, stat.st_gid)
            os.fchmod(file.fileno(), mode if stat is None else stat.st_mode & 0o7777)
            os.fsync(file.fileno())
        check()
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _flush_folder(folder)


def _remove_left_behind(folder: str, beginning: str) -> None:
    """Remove what a process that was killed had not put in its place yet."""
    for name in os.listdir(folder):
        pid = name.removeprefix(beginning)
        if name.startswith(beginning) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            os.unlink(os.path.join(folder, name))


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_if_empty(folder: str) -> None:
    """Remove the folder of drop-ins that held ours alone."""
    if folder.endswith(".d"):
        try:
            os.rmdir(folder)
        except OSError:
            return
