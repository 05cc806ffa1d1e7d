"""Probes: a command or a function that knows whether a message happened, where the receiver cannot be asked otherwise.

A command says so in a word: `happened` or `did not`, as the last line of its output, and exits with 0. Whatever else it does
tells nothing. An exit code alone would not do, for a script that dies of a typing error exits with 1, like one that found
nothing.

A function is given the message, and answers `Happened`, `DidNot` or `CannotTell`, each with its evidence. Whatever else it
answers or raises tells nothing, for one that forgets its `return` answers None.
"""

from __future__ import annotations

from collections.abc import Coroutine

from duly.outbox.destinations import CannotTell, DidNot, Happened
from duly.outbox.destinations.child import NotStarted, filled, ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from duly.outbox.destinations import Finding, Message
    from duly.outbox.destinations.settings import Settings


class Probe:
    """A declared command or function, or none: then nothing can be told."""

    def __init__(
        self,
        argv: Sequence[str] | None,
        *,
        without: str,
        hidden: Collection[str] = (),
        function: Callable[..., object] | None = None,
    ) -> None:
        self._argv = argv
        self._function = function
        self._without = without
        self._hidden = hidden

    @property
    def is_declared(self) -> bool:
        """Whether there is one."""
        return self._argv is not None or self._function is not None

    def ask(self, message: Message, *, seconds: float) -> Finding:
        """What it says of a message."""
        if self._function is not None:
            return _found(self._function, message, seconds)
        if self._argv is None:
            return CannotTell(self._without)
        argv = [self._argv[0], *(filled(word, message) for word in self._argv[1:])]
        try:
            ended = ran(argv, message, b"", seconds=seconds, hidden=self._hidden, heard=True)
        except NotStarted:
            return CannotTell("the probe could not be started")
        if ended.code is None:
            return CannotTell(f"the probe did not end within {seconds:g} s")
        if ended.code:
            return CannotTell(f"the probe ended with exit {ended.code}")
        match ended.said.decode("utf-8", "replace").strip().rpartition("\n")[2].strip():
            case "happened":
                return Happened("the probe says that it happened")
            case "did not":
                return DidNot("the probe says that it did not")
        return CannotTell('the probe said neither "happened" nor "did not"')


def _found(function: Callable[..., object], message: Message, seconds: float) -> Finding:
    try:
        found = function(message, seconds=seconds)
    except Exception as e:  # its text may hold what the message says
        return CannotTell(f"the probe raised {type(e).__qualname__}")
    if isinstance(found, (Happened, DidNot, CannotTell)):
        return found
    if isinstance(found, Coroutine):
        found.close()
    return CannotTell(f"the probe answered neither Happened nor DidNot, but a {type(found).__name__}")


def probe_of(settings: Settings, *, without: str = "no probe is declared for this destination") -> Probe:
    """The probe that is declared: a command, or in code a function."""
    if (function := settings.function("probe")) is not None:
        return Probe(None, without=without, function=function)
    return Probe(settings.words("probe", as_in='["./did-it.sh", "{key}"]'), without=without, hidden=settings.hidden)
