"""Command: one start of a program for a message, with the body on its stdin and the key in its environment.

What its exit code means is as for a command that duly runs as a job: 0 is done, 80 its own word for "nobody knows", and one
that died by a signal, or did not end in time, may have done anything. Only a code that is declared clean (75 always is) proves
that nothing was sent; any other says no for good.
"""

from __future__ import annotations

from duly.outbox.destinations import Delivered, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.child import NotStarted, environment_for, filled, ran
from duly.outbox.destinations.probes import probe_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Settings

EXIT_UNKNOWN = 80
EXIT_LATER = 75  # EX_TEMPFAIL of sysexits(3)


def declared(settings: Settings) -> Command:
    """The destination that a table with `kind = "command"` declares."""
    example = '["./send.sh", "{name}"]'
    argv = settings.words("argv", as_in=example)
    if argv is None or not argv[0].strip():
        raise settings.missing("argv", "a command as a list of words (no shell is involved)", example)
    return Command(
        argv=argv,
        clean_exits=settings.numbers("clean_exits", least=1, most=255, as_in="[69]") | {EXIT_LATER},
        probe=probe_of(settings),
        remembers=settings.remembers(),
        max_length=settings.number("max_length", None),
        reads_own_writes=settings.switch("reads_own_writes", False),
        hidden=settings.hidden,
    )


class Command:
    """A program that takes a message."""

    kind = "command"
    key_form = "$DULY_IDEMPOTENCY_KEY"

    def __init__(
        self,
        *,
        argv: tuple[str, ...],
        clean_exits: frozenset[int],
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
        reads_own_writes: bool,
        hidden: frozenset[str],
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self.reads_own_writes = reads_own_writes
        self._argv = argv
        self._clean_exits = clean_exits
        self._probe = probe
        self._hidden = hidden

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Run the program, and say what its end means."""
        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        argv = [self._argv[0], *(filled(word, message) for word in self._argv[1:])]
        try:
            ended = ran(argv, environment_for(message, self._hidden), message.body, seconds=seconds)
        except NotStarted:
            return NotSent("the command could not be started")
        return self._meaning_of(ended.code, seconds)

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Ask the declared command."""
        return self._probe.ask(message, seconds=seconds)

    def close(self) -> None:
        """Nothing is kept between messages."""

    def _meaning_of(self, code: int | None, seconds: float) -> Outcome:
        if code is None:
            return Unknown(f"it did not end within {seconds:g} s, and was stopped")
        if code == 0:
            return Delivered("exit 0")
        if code == EXIT_UNKNOWN:
            return Unknown("exit 80")
        if code in self._clean_exits:
            return NotSent(f"exit {code}")
        if 129 <= code <= 192:
            return Unknown(f"signal {code - 128}")
        return Refused(f"exit {code}")
