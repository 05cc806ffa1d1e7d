"""What the stories of messages begin with: a run that has completed with some, relays that take and report, a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.deliver import FOREVER, record_words, take_messages
from duly.ledger.found import FoundDone, FoundNot, FoundNothing
from duly.ledger.messages import Message, Tally, messages_of, resolve_message, retry_message, skip_message, tally
from duly.ledger.parcel import Limits, Parcel, SaidDelivered, SaidNotSent, SaidRefused, SaidUnknown
from duly.ledger.records import Claim, RunId
from duly.ledger.send import Letter
from duly.store.lock import begin_pulse, lock_path
from duly.times import HOUR, MINUTE, SECOND
from duly.work.identity import new_attempt_id
from tests.books import WORD, Book, PostgresBook

if TYPE_CHECKING:
    from duly.ledger.parcel import Word

LEASE = 90 * SECOND
PROBE_AFTER = MINUTE
TO = "billing"

DELIVERED = SaidDelivered("201")
NOT_SENT = SaidNotSent("the connection was refused", 0, 0)
LAST_TRY = SaidNotSent("the connection was refused", None, 0)
REFUSED = SaidRefused("422")
UNKNOWN = SaidUnknown("no answer came", 0)
STORED = SaidUnknown("a stored 500", 0, stored=True)
HAPPENED = FoundDone("their batch 4711")
DID_NOT = FoundNot("404", at_once=False, again_in=PROBE_AFTER)
DID_NOT_AT_ONCE = FoundNot("404", at_once=True, again_in=PROBE_AFTER)
CANNOT_TELL = FoundNothing("no answer came", PROBE_AFTER)

__all__ = [
    "DELIVERED",
    "FOREVER",
    "HOUR",
    "LEASE",
    "PROBE_AFTER",
    "Post",
    "RunId",
    "SaidDelivered",
    "SaidNotSent",
    "SaidRefused",
    "SaidUnknown",
]


class Post:
    """The outbox of a book: one job, `export`, whose runs send."""

    def __init__(self, book: Book, *, remembers: int = 0, at_once: int = 16, interval: int = 0) -> None:
        self.book = book
        self.limits = Limits(TO, at_once, interval, LEASE, remembers, PROBE_AFTER)

    # -- sending ---------------------------------------------------------------------------------------------------------

    def complete(self, claim: Claim, *names: str, body: bytes = b"{}") -> RunId:
        """Complete a run with messages of these names."""
        letters = [(Letter(TO, name, "application/json", body), f"key-of-{name}") for name in names]
        self.book.write(complete_or_raise(claim, Left(letters=letters)))
        return claim.run

    def sent(self, *names: str, window: str = "2026-10-05") -> RunId:
        """A completed run of a day with messages; the first is due."""
        self.book.job()
        return self.complete(self.book.take(window), *(names or ("a",)))

    # -- delivering ------------------------------------------------------------------------------------------------------

    def take(self, many: int = 16) -> list[Parcel]:
        """What a relay takes now, that vanishes when it does not report."""
        attempts = [new_attempt_id() for _ in range(many)]
        taking = take_messages(self.limits, attempts, owner="host/7@7+r", put_off_by=lambda _: MINUTE)
        return self.book.write(taking)

    def take_one(self) -> Parcel:
        (parcel,) = self.take()
        return parcel

    def pulse(self, parcel: Parcel) -> int:
        """The file lock of an attempt whose process lives. Close the descriptor to let it die."""
        assert not isinstance(self.book, PostgresBook)
        return begin_pulse(lock_path(self.book.path), parcel.attempt_id)

    def report(self, parcel: Parcel, word: Word) -> str:
        """What an attempt, or a probe, says of its message; what comes of it."""
        (became,) = self.book.write(record_words([(parcel, word)]))
        return became

    def deliver(self) -> list[str]:
        """Take and deliver until nothing is due; the names in order."""
        names = []
        while parcels := self.take():
            for parcel in parcels:
                names.append(parcel.name)
                self.report(parcel, DELIVERED)
        return names

    def lapse(self) -> None:
        """Let the lease of whoever is sending run out."""
        self.book.clock.advance(LEASE + SECOND)

    # -- a person --------------------------------------------------------------------------------------------------------

    def resolve(self, run: RunId, name: str = "a", *, done: bool) -> Message:
        return self.book.write(resolve_message(run, name, WORD, done=done))

    def retry(self, run: RunId, name: str = "a") -> Message:
        return self.book.write(retry_message(run, name, WORD))

    def skip(self, run: RunId, name: str = "a") -> Message:
        return self.book.write(skip_message(run, name, WORD))

    # -- looking ---------------------------------------------------------------------------------------------------------

    def messages(self, run: RunId) -> list[Message]:
        return self.book.store.read(messages_of(run))

    def states(self, run: RunId) -> dict[str, str]:
        return {message.name: message.state for message in self.messages(run)}

    def message(self, run: RunId, name: str = "a") -> Message:
        (found,) = [message for message in self.messages(run) if message.name == name]
        return found

    def tally(self, run: RunId) -> Tally:
        return self.book.store.read(tally(run))

    def attempts(self) -> list[tuple[int, str, str]]:
        """Number, outcome and word of each sending that has ended."""
        return self.book.rows("select fence, outcome, said from duly_message_attempt order by number, fence")
