"""Children: a command that is given a message, or asked about one.

It is told of the message by its environment, and of nothing else that duly knows: no variable of duly's own is inherited, since
one may hold the ledger's password. What it prints is not repeated anywhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from duly.outbox.destinations import Message

_FOREIGN = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
_GRACE = 2.0  # seconds between the word to stop and the end


@record
class Ended:
    """How a command ended. `code`: as a shell has it, None where it was stopped for its time. `said`: its output."""

    code: int | None
    said: bytes


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
    message: Message,
    given: bytes,
    *,
    seconds: float,
    hidden: Collection[str] = (),
    heard: bool = False,
) -> Ended:
    """Run a command with these bytes on its stdin, for so long. Raises `NotStarted`.

    `hidden`: variables that it may not see. `heard`: its output is wanted. If it does not end in time, it is ended with all
    that it started: they are a group.
    """
    try:
        child = subprocess.Popen(  # noqa: S603  # declared by the operator, as a list of words
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(message, hidden),
            start_new_session=True,
            pass_fds=_inherited.get(),
        )
    except (OSError, ValueError):
        raise NotStarted from None
    try:
        said, _ = child.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Ended(None, b"")
    else:
        return Ended(child.returncode if child.returncode >= 0 else 128 - child.returncode, (said or b"")[-4096:])
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _environment(message: Message, hidden: Collection[str]) -> dict[str, str]:
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
