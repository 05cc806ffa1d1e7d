"""Probes: a command that knows whether a message happened, where the receiver cannot be asked otherwise.

It says so in a word: `happened` or `did not`, as the last line of its output, and exits with 0. Whatever else it does tells
nothing. An exit code alone would not do, for a script that dies of a typing error exits with 1, like one that found nothing.
"""

from __future__ import annotations

from duly.outbox.destinations import CannotTell, DidNot, Happened
from duly.outbox.destinations.child import NotStarted, filled, ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from duly.outbox.destinations import Finding, Message
    from duly.outbox.destinations.settings import Settings


class Probe:
    """A declared command, or none: then nothing can be told."""

    def __init__(self, argv: Sequence[str] | None, *, without: str, hidden: Collection[str] = ()) -> None:
        self._argv = argv
        self._without = without
        self._hidden = hidden

    @property
    def is_declared(self) -> bool:
        """Whether there is a command."""
        return self._argv is not None

    def ask(self, message: Message, *, seconds: float) -> Finding:
        """What the command says of a message."""
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


def probe_of(settings: Settings, *, without: str = "no probe is declared for this destination") -> Probe:
    """The probe that a table declares."""
    return Probe(settings.words("probe", as_in='["./did-it.sh", "{key}"]'), without=without, hidden=settings.hidden)
