"""Destinations: where a message goes, one file for each kind, all alike.

A destination is asked two things: to deliver a message, and whether one that it was given earlier happened. It answers with
small values and never raises, whatever the other side does. The deal is in the line between `NotSent` and `Unknown`: what is
*surely* not sent may be sent again freely; what *may* have been sent goes again only under a key that the receiver still
remembers, or after a probe or a person has said what happened. In doubt it is `Unknown`.

An answer speaks for this sending alone, but for `Delivered`, which speaks for the message. A `NotSent` after an `Unknown`
leaves the message as unknown as it was.

Words of a receiver are not repeated: an answer may echo a body or a password. A cause and an evidence are put together here,
from codes and from ids of a narrow shape.
"""

from __future__ import annotations

from duly import redaction
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Protocol

FOREVER = None  # a receiver that never forgets a key
NEVER = 0  # one that does not look at keys: no time is within it


@record
class Message:
    """What a destination is given of a message.

    `key`: the idempotency key, a UUID as text of 36 characters, the same for every attempt. `run`: the run's key. `name`: the
    message's name within its run. `attempt`: 1 for the first sending. `first_sent_at`: the instant, in microseconds, of the
    first sending that the receiver may know of, this one or an earlier; None: nobody keeps it.
    """

    key: str
    run: str
    name: str
    body: bytes
    content_type: str = "application/json"
    attempt: int = 1
    first_sent_at: int | None = None

    def __repr__(self) -> str:  # a body is nobody's but the receiver's
        return f"Message(key={self.key!r}, run={self.run!r}, name={self.name!r}, {len(self.body)} bytes)"


# -- what became of a sending -------------------------------------------------------------------------------------------


@record
class Delivered:
    """The receiver has it, now or from an earlier sending, and said so."""

    evidence: str


@record
class NotSent:
    """This sending surely had no effect: it may be tried again freely. `retry_after`: not before so many microseconds."""

    cause: str
    retry_after: int | None = None


@record
class Refused:
    """The receiver said no, and will say it again: a person decides."""

    cause: str


@record
class Unknown:
    """It may or may not have been sent.

    `retry_after`: not before so many microseconds. `stored`: the receiver keeps this very answer under the key and would repeat
    it, so that sending again tells nothing: a probe or a person is needed, whatever is remembered.
    """

    cause: str
    retry_after: int | None = None
    stored: bool = False


# -- what a probe says --------------------------------------------------------------------------------------------------


@record
class Happened:
    """The effect is there."""

    evidence: str


@record
class DidNot:
    """The effect is not there. Believed twice, or at once from a destination that reads its own writes."""

    evidence: str


@record
class CannotTell:
    """Nobody answered, or not so that it could be told."""

    cause: str


if TYPE_CHECKING:
    Outcome = Delivered | NotSent | Refused | Unknown
    Finding = Happened | DidNot | CannotTell

    class Destination(Protocol):
        """A receiver of messages. One object is used by one thread at a time; it may keep a connection between calls.

        `remembers`: for how many microseconds after its first sending the receiver knows a key again; `FOREVER`, `NEVER`. It
        may have to be asked of the receiver, and is `NEVER` as long as it does not answer. `key_form`: how the key travels.
        `max_length`: of a body, in bytes; None: as the receiver likes. `reads_own_writes`: a probe's "did not" holds at once.
        """

        @property
        def kind(self) -> str: ...
        @property
        def remembers(self) -> int | None: ...
        @property
        def key_form(self) -> str: ...
        @property
        def max_length(self) -> int | None: ...
        @property
        def reads_own_writes(self) -> bool: ...

        def deliver(self, message: Message, *, seconds: float) -> Outcome:
            """Hand the message over, and say what became of it, within about so many seconds."""

        def probe(self, message: Message, *, seconds: float) -> Finding:
            """Look whether the message happened. Changes nothing at the receiver."""

        def close(self) -> None:
            """Let go of what was kept between calls. It may be used again afterwards."""


LONGEST_SAID = 300


def in_few_words(said: str) -> str:
    """A cause or an evidence on one line, whatever a destination or a probe that is made in code says."""
    return redaction.in_few_words(str(said), LONGEST_SAID)


def too_long(message: Message, max_length: int | None) -> Refused | None:
    """The refusal of a body of more bytes than a destination takes; nothing is sent then."""
    if max_length is None or len(message.body) <= max_length:
        return None
    return Refused(f"the body has {len(message.body)} bytes, and {max_length} are taken")


def destination_of(name: str, settings: Mapping[str, object], *, hidden: Collection[str] = ()) -> Destination:
    """The destination of this name, from its table in duly.toml: `kind = "http"`, and what that kind takes.

    What belongs to the relay (rates, concurrency, retries) is taken out by the relay before. `hidden`: variables of the
    environment that no command may see, as the one that holds the ledger's URL; those of duly's own never are. Raises `Misuse`,
    which names the field and what to write. Nothing is connected, and no secret is read from its file, before a message is
    delivered.
    """
    from duly.outbox.destinations.kinds import kind_of

    return kind_of(name, settings, hidden)
