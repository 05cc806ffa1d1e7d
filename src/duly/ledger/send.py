"""Send: messages that commit with their run's completion, and so leave if and only if its local effect is there.

A message is a row that is written by the transaction that completes the run, after the guard that ends a stale attempt's
transaction (I2). Nobody can see it before, and there is none of a run that did not complete. Only the first message of a run
that is not settled has a time at which it is due: those behind it wait for it, in the order in which they were noted.
"""

from __future__ import annotations

from hashlib import sha256

from duly.errors import BelowHorizon, Misuse, NotAllowed, PayloadConflict
from duly.ledger.address import find_revision
from duly.ledger.ask import Statement, do, one
from duly.ledger.backfill_states import ors
from duly.ledger.message_states import UNSETTLED
from duly.ledger.named import place_of
from duly.ledger.records import RunId
from duly.ledger.register import Declaration, declare
from duly.ledger.take import HOLD_RUN, run_parameters
from duly.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duly.schedule.keys import RunKey

# More attempts than a run, or a message, has in any time that a ledger may have forgotten.
NUMBERS_LOST = 1_000

LONGEST_BODY = 1 << 20  # a message says what happened; what is longer lies somewhere, and the message says where
MOST_MESSAGES = 10_000  # of one run
LONGEST_NAME = 200

_UNSETTLED = ors("m.state", UNSETTLED)

SEND = Statement(
    "send",
    # Due at once where it is the first that is not settled, else when the one before it is. I5: of a window that came due
    # before the ledger went back in time, it may have been sent in the time that is lost.
    f"""
insert into duly_message (series, nominal, revision, number, name, destination, idempotency_key, digest, state, fence,
       failures, noted_at, first_sent_at, doubt_number, doubted_at, cause, due_at, stored, denials)
select :series, :nominal, :revision, :number, :name, :destination, :idempotency_key, :digest,
       case when l.until is null then 'pending' else 'unknown' end,
       case when l.until is null then 0 else :lost end, 0, {{now}},
       l.since, case when l.until is not null then :lost end, case when l.until is not null then {{now}} end,
       case when l.until is not null then 'its run is done again: the ledger forgot whether it was sent' end,
       case when not exists (select 1
                               from duly_message m
                              where m.series = :series and m.nominal = :nominal and m.revision = :revision
                                and {_UNSETTLED})
            then {{now}} end,
       0, 0
  from duly_run r
  left join (select cast(s.value as bigint) as since, cast(u.value as bigint) as until
               from duly_meta s
               join duly_meta u on u.name = 'lost_until'
              where s.name = 'lost_since') l on r.due <= l.until
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'completed'
""",
    refuses=PayloadConflict,
)

KEEP_BODY = Statement(
    "keep_body",
    """
insert into duly_message_body (series, nominal, revision, number, content_type, body)
values (:series, :nominal, :revision, :number, :content_type, :body)
""",
)

HOLD_SERIES_ABOVE = Statement(
    "hold_series_above",
    # I7: as whoever creates a run, so that a prune and a message cannot pass each other.
    "select 1 from duly_series s where s.id = :series and s.horizon <= :nominal {share}",
)

SENT_AS = Statement(
    "sent_as",
    """
select number, destination, digest
  from duly_message
 where series = :series and nominal = :nominal and revision = :revision and name = :name
""",
)

LAST_MESSAGE = Statement(
    "last_message",
    """
select max(number)
  from duly_message
 where series = :series and nominal = :nominal and revision = :revision
""",
)

NAMESPACE = Statement("namespace", "select value from duly_meta where name = 'namespace'")


@record
class Letter:
    """A message as it is noted: where to, under which name, what it says. Its repr shows no body."""

    destination: str
    name: str
    content_type: str
    body: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of what it says, in hex."""
        return sha256(f"{self.content_type}\n".encode() + self.body).hexdigest()

    def same_as(self, destination: str, digest: str) -> bool:
        """Whether a message of its name that goes there and says that is this one."""
        return destination == self.destination and digest == self.digest

    def __repr__(self) -> str:
        return f"<Letter {self.name} to {self.destination}, {len(self.body)} bytes>"


def check_letter(letter: Letter) -> Letter:
    """The letter, if it can be a message. Raises `Misuse`, naming the field; never with what it says."""
    name = letter.name
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name.strip() != name:
        raise Misuse(f"name: 1 to {LONGEST_NAME} printable characters name a message, without blanks at the ends")
    if len(letter.body) > LONGEST_BODY:
        raise Misuse(
            f"body: it has {len(letter.body)} bytes, and a message has at most {LONGEST_BODY}; keep it elsewhere, and "
            "send where it is"
        )
    kind = letter.content_type
    if not kind.isascii() or not kind.isprintable() or "/" not in kind or len(kind) > 200:
        raise Misuse("content_type: this is none; write it like application/json")
    return letter


def conflict(name: str) -> PayloadConflict:
    """The refusal of a second message of a name that says something else."""
    return PayloadConflict(
        f"this run has another message {name!r} already; a message has one body, so give the second a name of its own"
    )


async def send_noted(run: RunId, letters: Sequence[tuple[Letter, str]]) -> None:
    """Write the messages of a run, each with its idempotency key, in the transaction that has just completed it."""
    for number, (letter, key) in enumerate(letters, 1):
        await _write(run, number, letter, key)


async def _write(run: RunId, number: int, letter: Letter, key: str) -> None:
    place = {**run_parameters(run), "number": number}
    await do(
        SEND,
        **place,
        name=letter.name,
        destination=letter.destination,
        idempotency_key=key,
        digest=letter.digest,
        lost=NUMBERS_LOST,
    )
    await do(KEEP_BODY, **place, content_type=letter.content_type, body=letter.body)


async def send_in(key: RunKey, letter: Letter, by: str, key_of: Callable[[str, RunKey, str, str], str]) -> bool:
    """Add a message to a run that the caller's transaction has completed. False: that very message was there already.

    `key_of` makes the idempotency key from namespace, run key, message name and the job's first name. Raises `PayloadConflict`,
    `BelowHorizon`, and `NotAllowed` for a run that is not completed: its messages go with its completion.
    """
    known = await declare(Declaration(key.job, key.scope, by=by), unscheduled=True)
    if isinstance(known, Exception):
        raise known
    place = await place_of(known, key)
    run, _ = await find_revision(place.series, place.nominal, key.revision)
    if await one(HOLD_SERIES_ABOVE, int, series=run.series, nominal=run.nominal) is None:
        raise BelowHorizon
    if await one(HOLD_RUN, str, **run_parameters(run)) != "completed":
        raise NotAllowed("a message goes with its run's completion: complete the run first, in this transaction")
    sent = await one(SENT_AS, lambda *cells: cells, **run_parameters(run), name=letter.name)
    if sent is not None:
        if not letter.same_as(*sent[1:]):
            raise conflict(letter.name)
        return False
    last = await one(LAST_MESSAGE, lambda number: number or 0, **run_parameters(run))
    assert last is not None
    if last >= MOST_MESSAGES:
        raise NotAllowed(f"a run has at most {MOST_MESSAGES} messages, and this one has as many")
    namespace = await one(NAMESPACE, str)
    assert namespace is not None
    named = replace(key, revision=run.revision)
    await _write(run, last + 1, letter, key_of(namespace, named, letter.name, known.job.first_name))
    return True
