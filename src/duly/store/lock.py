"""Locks on the file beside an SQLite ledger, `LEDGER-lock`. Two kinds share it and do not touch each other.

The *writer lock* is a flock: SQLite's own busy handler polls and starves writers, a flock queues them. It is tried
without blocking, then waited for in a thread with a deadline, since a stopped holder would block for ever. The thread lets
go at once if the lock comes too late.

Before it is the *gate*, a lock of one byte, held by whoever is next while it waits. Without it whoever lets the lock go and
wants it again has it before those who wait have woken: two turns of three went to the one that had the last, and one writer
waited for a hundred turns of seven others. It is a courtesy: other programs that take the flock need not know of it.

A *pulse* is a byte-range lock of the open file description (fcntl(2), F_OFD_SETLK) at an offset made from the attempt's
id. It belongs to the description, not the process, so a child that inherits the descriptor keeps it when its wrapper is
killed. It says that a claim's holder may be alive, and leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import os
from _thread import allocate_lock, start_new_thread
from struct import Struct
from time import monotonic

from duly.errors import LedgerUnwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

HAS_PULSE = hasattr(fcntl, "F_OFD_SETLK")  # Linux; elsewhere the lease alone says whether a holder may be alive

_FLOCK = Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid
_GATE = 1 << 62  # above every pulse
_LOOK_SECONDS = 0.1  # how often who waits to be next looks whether the lock is free all the same
_writer_descriptors: set[int] = set()


def lock_path(ledger_path: str) -> str:
    """The file whose flock duly's writers take before `BEGIN IMMEDIATE`. Take it too when you write the same file often."""
    return ledger_path + "-lock"


def open_lock(path: str) -> int:
    """Open the lock file, and make it if it is not there. Raises `LedgerUnwritable`."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            return _make_lock(path, flags)
    except OSError as e:
        raise LedgerUnwritable(f"cannot open {path}: {e.strerror}; duly needs to write beside its ledger") from e


def _make_lock(path: str, flags: int) -> int:
    """Make the lock file for exactly those who may write the ledger: whoever can open it can stop all writers."""
    descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    try:
        ledger = os.stat(path.removesuffix("-lock"))
        writers = ledger.st_mode & 0o222
        os.fchmod(descriptor, writers | writers << 1)
        if os.geteuid() == 0:  # as SQLite does for its own files beside the database
            os.fchown(descriptor, ledger.st_uid, ledger.st_gid)
    except FileNotFoundError:  # the ledger is not there yet
        pass
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class WriterLock:
    """The lock that queues the writers of one ledger. One for each connection; not shared between threads."""

    __slots__ = ("_descriptor", "_next", "_path")

    def __init__(self, ledger_path: str) -> None:
        self._path = lock_path(ledger_path)
        self._descriptor = -1
        self._next: _Wait | None = None  # a wait of ours to be next, given up, for whoever is next has stopped

    def acquire(self, seconds: float) -> bool:
        """Take the lock, waiting for it at most so long. False: it stayed taken."""
        if self._descriptor < 0:
            self._descriptor = open_lock(self._path)
            _writer_descriptors.add(self._descriptor)
        if _is_free(self._descriptor):
            return True
        if self._next is None or self._next.is_over:
            descriptor, seconds = self._come_next(seconds / 2), seconds / 2
        else:
            descriptor = _taken(self._path)
        if descriptor is None:
            descriptor = _Wait(self._path, _out_of_turn).outcome(seconds)
        if descriptor is None:
            return False
        self.close()  # or whoever waited has closed it, from another thread
        self._descriptor = descriptor
        return True

    def _come_next(self, seconds: float) -> int | None:
        """Wait to be next, and for the lock; a descriptor that has it.

        Who is next may have been stopped, and would hold up all who come after for ever: then they go past it. That is so where
        the lock is free while we wait to be next, or has not come for long.
        """
        waiting, until = _Wait(self._path, _in_turn), monotonic() + seconds
        try:
            while not waiting.ends_within(min(_LOOK_SECONDS, until - monotonic())):
                if (descriptor := _taken(self._path)) is not None or monotonic() >= until:
                    waiting.give_up()
                    self._next = waiting
                    return descriptor
        except BaseException:
            waiting.give_up()
            raise
        return waiting.outcome(0)

    def release(self) -> None:
        """Let the next writer in; a no-op for who never had the lock: it may be one that could not be opened."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of lock and descriptor."""
        if self._descriptor >= 0:
            _writer_descriptors.discard(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


class _Wait:
    """One blocking wait for the writer lock, which its waiter may give up: in a thread and on a descriptor of its own, so that
    a deadline holds whatever the holder does.
    """

    __slots__ = ("_descriptor", "_done", "_given_up", "_guard", "_held", "_take", "is_over")

    def __init__(self, path: str, take: Callable[[int], None]) -> None:
        self._take = take
        self._descriptor = open_lock(path)
        _writer_descriptors.add(self._descriptor)
        self._guard: LockType = allocate_lock()
        self._done: LockType = allocate_lock()
        self._done.acquire()
        self._given_up = False
        self._held = False
        self.is_over = False  # its thread waits no longer
        start_new_thread(self._block, ())

    def _block(self) -> None:
        try:
            self._take(self._descriptor)
        except OSError:
            self._finish(held=False)
        else:
            self._finish(held=True)

    def _finish(self, *, held: bool) -> None:
        with self._guard:
            self._held = held
            if self._given_up or not held:
                _writer_descriptors.discard(self._descriptor)
                os.close(self._descriptor)  # too late: let go at once
            self.is_over = True
        self._done.release()

    def ends_within(self, seconds: float) -> bool:
        """Whether the wait ends in so many seconds. What has come is then asked for by `outcome`."""
        try:
            ended = self._done.acquire(timeout=max(seconds, 0))
        except BaseException:  # Ctrl-C: nobody will use the lock, so nobody may keep it
            self.give_up()
            raise
        if ended:
            self._done.release()
        return ended

    def outcome(self, seconds: float) -> int | None:
        """The locked descriptor, or None when it did not come in time: then it is let go when it comes."""
        self.ends_within(seconds)
        with self._guard:
            self._given_up = not self._held
            return self._descriptor if self._held else None

    def give_up(self) -> None:
        """Wait no longer, and let the lock go, or as soon as it comes."""
        with self._guard:
            self._given_up = True
            if self._held:
                self._held = False
                _writer_descriptors.discard(self._descriptor)
                os.close(self._descriptor)


def _is_free(descriptor: int) -> bool:
    """Take the lock, if nobody has it and nobody is next."""
    try:
        _gate(descriptor, fcntl.F_WRLCK, wait=False)
    except BlockingIOError:
        return False
    try:
        return _take(descriptor)
    finally:
        _gate(descriptor, fcntl.F_UNLCK, wait=False)


def _take(descriptor: int) -> bool:
    """Take the lock if nobody has it, whoever is next."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken(path: str) -> int | None:
    """A descriptor that has the lock, if nobody has it, whoever is next."""
    descriptor = open_lock(path)
    _writer_descriptors.add(descriptor)
    if _take(descriptor):
        return descriptor
    _writer_descriptors.discard(descriptor)
    os.close(descriptor)
    return None


def _in_turn(descriptor: int) -> None:
    """Wait to be next, and then for the lock."""
    _gate(descriptor, fcntl.F_WRLCK, wait=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        _gate(descriptor, fcntl.F_UNLCK, wait=False)


def _out_of_turn(descriptor: int) -> None:
    """Wait for the lock, beside whoever is next."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _gate(descriptor: int, kind: int, *, wait: bool) -> None:
    """Take the gate, or let it go; it belongs to the descriptor, as a pulse does."""
    if HAS_PULSE:
        command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(descriptor, command, _FLOCK.pack(kind, os.SEEK_SET, _GATE, 1, 0))


def _close_in_child() -> None:
    """A forked child shares its parent's open file descriptions: kept open, they would hold the lock after the parent."""
    for descriptor in _writer_descriptors:
        os.close(descriptor)
    _writer_descriptors.clear()


os.register_at_fork(after_in_child=_close_in_child)


# -- pulses -------------------------------------------------------------------------------------------------------------


def _offset(attempt_id: bytes) -> int:
    # The last eight bytes of a UUIDv7 are random but for its two variant bits; an offset is a positive 63-bit integer.
    return int.from_bytes(attempt_id[8:], "big") & ((1 << 62) - 1)


def begin_pulse(path: str, attempt_id: bytes) -> int:
    """Hold an attempt's byte of the lock file; the answer is the descriptor that holds it, to be closed at its end."""
    descriptor = open_lock(path)
    if HAS_PULSE:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _offset(attempt_id), 1, 0))
    return descriptor


def has_pulse(path: str, attempt_id: bytes) -> bool | None:
    """Whether any process holds the attempt's byte. None where this system has no such locks."""
    if not HAS_PULSE:
        return None
    try:
        # Only looked at (F_OFD_GETLK asks for no mode of access), so that whoever may read a ledger can judge its claims.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False  # nobody has written yet
    except OSError:
        return True  # who may not look cannot tell, and takes nothing over
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _offset(attempt_id), 1, 0)
        kind = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0]
    finally:
        os.close(descriptor)
    return bool(kind != fcntl.F_UNLCK)


def holders_of_pulse(path: str, attempt_id: bytes) -> list[int]:
    """The pids that hold the attempt's byte, as far as /proc shows them (proc(5), fdinfo)."""
    start = _offset(attempt_id)
    mark = f" {start} {start}"
    pids = filter(str.isdigit, os.listdir("/proc"))
    return sorted(int(pid) for pid in pids if any("OFDLCK" in line and line.endswith(mark) for line in _locks_of(pid)))


def _locks_of(pid: str) -> list[str]:
    lines: list[str] = []
    try:
        descriptors = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:  # it ended, or belongs to someone else
        return lines
    for descriptor in descriptors:
        try:
            with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as f:
                lines += [line.rstrip() for line in f if line.startswith("lock:")]
        except OSError:
            continue
    return lines
