"""Probes: a command or a function that knows whether a message, or a run, happened, where nobody can be asked otherwise.

A command says so in a word: `happened` or `did not`, as the last line of its output, and exits with 0. Whatever else it does
tells nothing. An exit code alone would not do, for a script that dies of a typing error exits with 1, like one that found
nothing.

A function is given the message, or what is known of the run, and answers `Happened`, `DidNot` or `CannotTell`, each with its
evidence. Whatever else it answers or raises tells nothing, for one that forgets its `return` answers None.
"""

from __future__ import annotations

from collections.abc import Coroutine

from duly.outbox.destinations import CannotTell, DidNot, Happened, in_few_words
from duly.outbox.destinations.child import NotStarted, environment_for, filled, ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from duly.outbox.destinations import Finding, Message
    from duly.outbox.destinations.child import Ended
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
        if (function := self._function) is not None:
            return told_by(lambda: function(message, seconds=seconds))
        if self._argv is None:
            return CannotTell(self._without)
        argv = [self._argv[0], *(filled(word, message) for word in self._argv[1:])]
        return said_by(argv, environment_for(message, self._hidden), seconds=seconds)


def said_by(argv: Sequence[str], environment: Mapping[str, str], *, seconds: float) -> Finding:
    """What a command says, in the last line of its output."""
    try:
        ended = ran(argv, environment, b"", seconds=seconds, heard=True)
    except NotStarted:
        return CannotTell("the probe could not be started")
    if ended.code is None:
        return CannotTell(f"the probe did not end within {seconds:g} s")
    if ended.code:
        return CannotTell(f"the probe ended with exit {ended.code}")
    match _last_line(ended):
        case "happened":
            return Happened('it printed "happened"')
        case "did not":
            return DidNot('it printed "did not"')
    return CannotTell('the probe said neither "happened" nor "did not"')


def _last_line(ended: Ended) -> str:
    """The last line of an output; nothing where it began before what was kept."""
    _, newline, line = ended.said.decode("utf-8", "replace").strip().rpartition("\n")
    return "" if ended.is_cut and not newline else line.strip()


def told_by(ask: Callable[[], object]) -> Finding:
    """What a function answers; of what it raises the type, for its text may hold what nobody is to read."""
    try:
        return as_finding(ask())
    except Exception as e:
        return raised(e)


def as_finding(found: object) -> Finding:
    """The answer of a function, if it is one, in few words. Raises what its evidence does."""
    match found:
        case Happened(evidence):
            return Happened(in_few_words(evidence))
        case DidNot(evidence):
            return DidNot(in_few_words(evidence))
        case CannotTell(cause):
            return CannotTell(in_few_words(cause))
    if isinstance(found, Coroutine):
        found.close()
    return CannotTell(f"the probe answered neither Happened nor DidNot, but a {type(found).__name__}")


def raised(error: Exception) -> CannotTell:
    """What is said of a probe that raised."""
    return CannotTell(f"the probe raised {type(error).__qualname__}")


def probe_of(settings: Settings, *, without: str = "no probe is declared for this destination") -> Probe:
    """The probe that is declared: a command, or in code a function."""
    if (function := settings.function("probe")) is not None:
        return Probe(None, without=without, function=function)
    return Probe(settings.words("probe", as_in='["./did-it.sh", "{key}"]'), without=without, hidden=settings.hidden)
