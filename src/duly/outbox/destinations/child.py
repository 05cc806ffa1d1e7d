"""Children: a command that is given a message, or asked about one.

It is told of the message by its environment, and of nothing else that duly knows: no variable of duly's own is inherited, since
one may hold the ledger's password. What it prints is not repeated anywhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic

from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import IO

    from duly.outbox.destinations import Message

_FOREIGN = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
LONGEST_HEARD = 4096  # bytes of what a command says: its last line is meant
_PIECE = 1 << 16
_GRACE = 2.0  # seconds between the word to stop and the end


@record
class Ended:
    """How a command ended. `code`: as a shell has it, None where it was stopped for its time. `said`: the end of its output,
    and `is_cut` whether there was more before that.
    """

    code: int | None
    said: bytes
    is_cut: bool = False


class NotStarted(Exception):
    """The command could not be started at all."""


# Not an argument of `deliver`: most destinations start no command, and one of somebody's own may only wrap one that does.
_inherited: ContextVar[tuple[int, ...]] = ContextVar("inherited", default=())


@contextmanager
def inheriting(*descriptors: int) -> Iterator[None]:
    """Let the commands that are started meanwhile in this thread hold these descriptors too.

    So an attempt shows its pulse for as long as its command is at work, though its relay was killed.
    """
    before = _inherited.set(descriptors)
    try:
        yield
    finally:
        _inherited.reset(before)


def ran(
    argv: Sequence[str],
    environment: Mapping[str, str],
    given: bytes,
    *,
    seconds: float,
    heard: bool = False,
) -> Ended:
    """Run a command in this environment with these bytes on its stdin, for so long. Raises `NotStarted`.

    `heard`: its output is wanted. If it does not end in time, it is ended with all that it started: they are a group.
    """
    until = monotonic() + seconds
    try:
        child = subprocess.Popen(  # noqa: S603  # declared by the operator, as a list of words
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            pass_fds=_inherited.get(),
        )
    except (OSError, ValueError):
        raise NotStarted from None
    tail = None if child.stdout is None else _Tail(child.stdout)
    child.stdout = None  # it is read beside: of what it says only the end is kept
    try:
        child.communicate(given, timeout=seconds)
        code = child.returncode if child.returncode >= 0 else 128 - child.returncode
        if tail is None:
            return Ended(code, b"")
        return Ended(code, tail.said, tail.is_cut) if tail.is_over(until - monotonic()) else Ended(None, b"")
    except subprocess.TimeoutExpired:
        return Ended(None, b"")
    finally:
        _end(child, holds_on=tail is not None and not tail.is_over(0))
        if tail is not None:
            tail.close()


class _Tail:
    """The end of what a command says, read in a thread of its own as it comes."""

    def __init__(self, output: IO[bytes]) -> None:
        self.said, self.is_cut = b"", False
        self._output = output
        self._thread = threading.Thread(target=self._read, name="duly-tail", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # closed: nobody waits for the rest
            while piece := os.read(self._output.fileno(), _PIECE):
                self.is_cut = self.is_cut or len(self.said) + len(piece) > LONGEST_HEARD
                self.said = (self.said + piece)[-LONGEST_HEARD:]

    def is_over(self, seconds: float) -> bool:
        """Whether all of it was read, after waiting for so long: what it has started may hold the pipe."""
        self._thread.join(max(seconds, 0))
        return not self._thread.is_alive()

    def close(self) -> None:
        """Give the pipe back, once nobody can hold it any more."""
        self._thread.join(_GRACE)
        if not self._thread.is_alive():
            self._output.close()


def _end(child: subprocess.Popen[bytes], *, holds_on: bool) -> None:
    """End a command with all that it started, unless it has ended by itself. `holds_on`: what it started goes on."""
    if holds_on and child.returncode is not None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.stdin is not None:
        with suppress(OSError):
            child.stdin.close()


def environment_for(message: Message, hidden: Collection[str] = ()) -> dict[str, str]:
    """What a command is told of a message, beside what it may see of our own environment: nothing that is `hidden`."""
    unwanted = {*_FOREIGN, *hidden}
    own = {name: value for name, value in os.environ.items() if not name.startswith("DULY_") and name not in unwanted}
    own.update(
        DULY_IDEMPOTENCY_KEY=message.key,
        DULY_RUN_KEY=message.run,
        DULY_MESSAGE=message.name,
        DULY_MESSAGE_ATTEMPT=str(message.attempt),
        DULY_CONTENT_TYPE=message.content_type,
    )
    return own


def filled(text: str, message: Message) -> str:
    """A word of a command with `{key}`, `{run}` and `{name}` filled in; all other braces pass."""
    for field, value in (("{key}", message.key), ("{run}", message.run), ("{name}", message.name)):
        text = text.replace(field, value)
    return text
