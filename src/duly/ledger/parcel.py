"""Parcel: a message in the hands of whoever sends it or asks about it, and what he may say of that."""

from __future__ import annotations

from duly.ledger.ask import Statement
from duly.ledger.backfill_states import ors
from duly.ledger.events import tell
from duly.ledger.found import FoundDone, FoundNot, FoundNothing
from duly.ledger.message_states import UNSETTLED
from duly.ledger.records import RunId
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value

THIS_MESSAGE = "series = :series and nominal = :nominal and revision = :revision and number = :number"

WAKE_NEXT = Statement(
    "wake_next",
    # The first that is not settled, where it waited for the one before it.
    f"""
update duly_message
   set due_at = {{now}}
 where series = :series and nominal = :nominal and revision = :revision
   and number = (select min(m.number)
                   from duly_message m
                  where m.series = :series and m.nominal = :nominal and m.revision = :revision
                    and {ors("m.state", UNSETTLED)})
   and (state = 'pending' or state = 'unknown') and due_at is null
""",
)


@record
class MessageId:
    """A message's stored identity: its run's, and its place among the messages of that."""

    series: int
    nominal: int
    revision: int
    number: int

    @property
    def run(self) -> RunId:
        return RunId(self.series, self.nominal, self.revision)

    @property
    def order(self) -> tuple[int, int, int, int]:
        """In which order several are written of."""
        return self.series, self.nominal, self.revision, self.number


@record
class Limits:
    """How a destination is served, in microseconds where it is a time.

    `at_once`: messages being sent, by whoever sends. `interval`: between two of them, 0 for no limit. `lease`: of one sending,
    its time-out and a reserve. `remembers`: how long the receiver knows a key. `probe_after`: how long after the doubt it may
    be asked what happened, and between two such questions.
    """

    destination: str
    at_once: int
    interval: int
    lease: int
    remembers: int
    probe_after: int


@record
class Parcel:
    """A message that an attempt may send, or a probe look for, with all that a destination is told. Its repr shows no body."""

    id: MessageId
    run: str
    name: str
    destination: str
    key: str
    content_type: str
    body: bytes
    attempt_id: bytes  # the attempt's, or the probe's
    fence: int
    failures: int
    started_at: int
    owner: str
    first_sent_at: int | None
    doubted_at: int | None
    denials: int
    probing: bool

    def __repr__(self) -> str:
        return f"<Parcel {self.name} of {self.run} to {self.destination}, {len(self.body)} bytes>"


# What an attempt says of its sending, as the relay understood it. In all of them what is said is a few words of ours.


@record
class SaidDelivered:
    said: str


@record
class SaidNotSent:
    """`retry_in`: None where it was once too often."""

    said: str
    retry_in: int | None
    again_in: int  # where an earlier sending is in doubt


@record
class SaidRefused:
    said: str


@record
class SaidUnknown:
    said: str
    again_in: int
    stored: bool = False


if TYPE_CHECKING:
    Word = SaidDelivered | SaidNotSent | SaidRefused | SaidUnknown | FoundDone | FoundNot | FoundNothing


def place_of_message(message: MessageId) -> dict[str, Value]:
    return {
        "series": message.series,
        "nominal": message.nominal,
        "revision": message.revision,
        "number": message.number,
    }


async def tell_of(parcel: Parcel, kind: str, detail: str, changed: tuple[str, str] = ("", "")) -> None:
    """Append an event of a message; `changed` is its state before and after."""
    where = f"message {parcel.name} to {parcel.destination}: {detail}"
    await tell(kind, run=parcel.id.run, attempt_id=parcel.attempt_id, by=parcel.owner, detail=where, changed=changed)
