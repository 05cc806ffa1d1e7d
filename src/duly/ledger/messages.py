"""Messages: what is known of them, and what a person may say.

A person resolves what is unknown, retries what was refused or is dead, and skips what is not to be sent. Each is one guarded
change of the message's row with an event that names who and why; the run of the message is held first, as whoever delivers
does.
"""

from __future__ import annotations

from duly.errors import Misuse, NotAllowed
from duly.ledger import message_states
from duly.ledger.ask import Statement, alive, count, every, now, one
from duly.ledger.backfill_states import ors
from duly.ledger.deliver import lapse
from duly.ledger.events import tell
from duly.ledger.message_probe import AS_DONE, AS_NOT_DONE
from duly.ledger.message_states import DEAD, PENDING, REFUSED, SENDING, SETTLED, UNKNOWN, UNSETTLED
from duly.ledger.parcel import THIS_MESSAGE, WAKE_NEXT, MessageId, place_of_message
from duly.ledger.records import RunId
from duly.ledger.resolve import Word
from duly.ledger.take import HOLD_RUN, run_parameters
from duly.records import record

MESSAGE_COLUMNS = """m.series, m.nominal, m.revision, m.number, m.name, m.destination, m.idempotency_key, m.state, m.fence,
       m.failures, m.noted_at, m.due_at, m.settled_at, m.cause, m.attempt_id, m.started_at, m.lease_until, m.owner,
       m.first_sent_at, m.doubt_number, m.doubted_at, m.denials"""
IS_UNSETTLED = ors("m.state", UNSETTLED)

OF_RUN = Statement(
    "messages_of_run",
    f"""
select {MESSAGE_COLUMNS}
  from duly_message m
 where m.series = :series and m.nominal = :nominal
 order by m.revision, m.number
""",
)

NAMED = Statement(
    "message_named",
    f"""
select {MESSAGE_COLUMNS}
  from duly_message m
 where m.series = :series and m.nominal = :nominal and m.revision = :revision and m.name = :name
""",
)

OPEN_MESSAGES = Statement(
    "open_messages",
    f"""
select {MESSAGE_COLUMNS}
  from duly_message m
 where {IS_UNSETTLED}
   and (cast(:destination as text) is null or m.destination = :destination)
 order by m.destination, m.noted_at, m.series, m.nominal, m.revision, m.number
 limit :limit
""",
)

ATTEMPTS_AT = Statement(
    "attempts_at_message",
    f"""
select fence, attempt_id, started_at, ended_at, outcome, owner, said
  from duly_message_attempt
 where {THIS_MESSAGE}
 order by fence
""",
)

TALLY_COLUMNS = """count(*),
       coalesce(sum(case when m.state in {settled_messages} then 1 else 0 end), 0),
       coalesce(sum(case when m.state = 'skipped' then 1 else 0 end), 0),
       coalesce(sum(case when m.state = 'unknown' then 1 else 0 end), 0),
       coalesce(sum(case when m.state = 'refused' or m.state = 'dead' then 1 else 0 end), 0)""".replace(
    "{settled_messages}", "(" + ", ".join(f"'{name}'" for name in SETTLED) + ")"
)

TALLY = Statement(
    "tally_of_run",
    f"""
select {TALLY_COLUMNS}
  from duly_message m
 where m.series = :series and m.nominal = :nominal and m.revision = :revision
""",
)

OLDEST_UNDELIVERED = Statement(
    "oldest_undelivered",
    # A run is settled when its messages are. Those that are not are few, and an index holds them.
    f"""
select r.series, r.nominal, r.revision
  from duly_message m
  join duly_series s on s.id = m.series
  join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
 where s.line = :line and r.due < :due
   and {IS_UNSETTLED}
 order by r.due limit 1
""",
)

BACKLOG = Statement(
    "backlog",
    f"""
select m.destination, count(*), min(m.noted_at), min(m.due_at),
       sum(case when m.state = 'unknown' then 1 else 0 end),
       sum(case when m.state = 'refused' or m.state = 'dead' then 1 else 0 end)
  from duly_message m
 where {IS_UNSETTLED}
 group by m.destination
 order by m.destination
""",
)

ANY_UNSETTLED = Statement(
    "any_unsettled_message",
    f"""
select m.name
  from duly_message m
 where m.series = :series and m.nominal = :nominal and m.revision = :revision
   and {IS_UNSETTLED}
 limit 1
""",
)

RESOLVE_DONE = Statement(
    "resolve_message_done",
    f"""
update duly_message
   set {AS_DONE}
 where {THIS_MESSAGE}
   and state in {{from}} and fence = :seen_fence
""",
    event="resolve_done",
    of=message_states,
)

RESOLVE_NOT_DONE = Statement(
    "resolve_message_not_done",
    f"""
update duly_message
   set {AS_NOT_DONE}
 where {THIS_MESSAGE}
   and state in {{from}} and fence = :seen_fence
""",
    event="resolve_not_done",
    of=message_states,
)

RETRY = Statement(
    "retry_message",
    f"""
update duly_message
   set state = {{to}}, failures = 0, due_at = {{now}}
 where {THIS_MESSAGE}
   and state in {{from}}
""",
    event="retry",
    of=message_states,
)

SKIP = Statement(
    "skip_message",
    f"""
update duly_message
   set state = {{to}}, settled_at = {{now}}, due_at = null, cause = :cause
 where {THIS_MESSAGE}
   and state in {{from}}
""",
    event="skip",
    of=message_states,
)


@record
class Message:
    """A message's row; its body is elsewhere, and shown by nothing. `state` is one of `message_states.STATES`."""

    series: int
    nominal: int
    revision: int
    number: int
    name: str
    destination: str
    key: str
    state: str
    fence: int
    failures: int
    noted_at: int
    due_at: int | None
    settled_at: int | None
    cause: str | None
    attempt_id: bytes | None
    started_at: int | None
    lease_until: int | None
    owner: str | None
    first_sent_at: int | None
    doubt_number: int | None
    doubted_at: int | None
    denials: int

    @property
    def id(self) -> MessageId:
        return MessageId(self.series, self.nominal, self.revision, self.number)

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def waits_for_a_person(self) -> bool:
        """Whether nothing that a relay does by itself will settle it. One that is unknown may yet be found by a probe."""
        return self.state in (REFUSED, DEAD, UNKNOWN)


@record
class MessageAttempt:
    """One sending that has ended. `said`: the evidence of a delivery, the cause of anything else."""

    fence: int
    attempt_id: bytes
    started_at: int
    ended_at: int
    outcome: str
    owner: str
    said: str


@record
class Tally:
    """How the messages of a run stand."""

    total: int
    settled: int
    skipped: int
    unknown: int
    stuck: int  # refused or dead

    @property
    def is_settled(self) -> bool:
        return self.settled == self.total

    @property
    def words(self) -> str:
        """As `14/20 delivered, 1 outcome unknown`."""
        more = [f"{self.skipped} skipped"] * bool(self.skipped)
        more += [f"{self.unknown} outcome unknown"] * bool(self.unknown)
        more += [f"{self.stuck} refused or dead"] * bool(self.stuck)
        return ", ".join([f"{self.settled - self.skipped}/{self.total} delivered", *more])


@record
class Backlog:
    """What one destination has not got yet."""

    destination: str
    messages: int
    oldest: int
    next_due: int | None
    unknown: int
    stuck: int


async def messages_of(run: RunId) -> list[Message]:
    """The messages of a run, of all its revisions."""
    return await every(OF_RUN, Message, series=run.series, nominal=run.nominal)


async def message_named(run: RunId, name: str) -> Message:
    """A message of a run. Raises `Misuse`, naming those there are."""
    found = await one(NAMED, Message, **run_parameters(run), name=name)
    if found is None:
        names = ", ".join(message.name for message in (await messages_of(run))[:5]) or "none"
        raise Misuse(f"message: this run has no message {name!r}; it has {names}")
    return found


async def open_messages(*, destination: str | None = None, limit: int) -> list[Message]:
    """Messages that are not settled, the oldest of each destination first."""
    return await every(OPEN_MESSAGES, Message, destination=destination, limit=limit)


async def attempts_at_message(message: MessageId) -> list[MessageAttempt]:
    """The sendings of a message that have ended."""
    return await every(ATTEMPTS_AT, MessageAttempt, **place_of_message(message))


async def tally(run: RunId) -> Tally:
    """How the messages of a run stand; all nought where it has none."""
    found = await one(TALLY, Tally, **run_parameters(run))
    assert found is not None
    return found


async def undelivered_before(line: int, due: int) -> RunId | None:
    """The oldest run of a line, due before an instant, that has messages which are not settled."""
    return await one(OLDEST_UNDELIVERED, RunId, line=line, due=due)


async def backlog() -> list[Backlog]:
    """What each destination has not got yet."""
    return await every(BACKLOG, Backlog)


async def refuse_undelivered(run: RunId, what: str) -> None:
    """Raise `NotAllowed` where a message of a run is not settled. The run is held by then."""
    name = await one(ANY_UNSETTLED, str, **run_parameters(run))
    if name is not None:
        raise NotAllowed(
            f"cannot {what} this run: {(await tally(run)).words}, and its messages come first ({name}); "
            "`duly outbox list` shows them"
        )


async def resolve_message(run: RunId, name: str, word: Word, *, done: bool) -> Message:
    """Say what happened to a message whose outcome is unknown: it was delivered, or it was not, and is sent again now.

    Raises `NotAllowed` for one that is not unknown, or whose attempt still shows a pulse: it may yet report.
    """
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await message_named(run, name)
    if seen.state == SENDING and (seen.lease_until or 0) <= await now():
        await lapse(seen.destination, stand_by=0)
        seen = await message_named(run, name)
    if seen.state != UNKNOWN:
        raise not_allowed_of_message("resolve", seen)
    if seen.attempt_id is not None and await alive(seen.attempt_id):
        raise NotAllowed(f"cannot resolve this message: its attempt may yet report (it is of {seen.owner})")
    held = {**place_of_message(seen.id), "seen_fence": seen.fence}
    settling = count(RESOLVE_DONE, **held) if done else count(RESOLVE_NOT_DONE, **held, cause="resolved as not done")
    if not await settling:
        raise not_allowed_of_message("resolve", await message_named(run, name))
    await tell(
        "message_resolved",
        run=run,
        attempt_id=seen.attempt_id,
        by=word.by,
        reason=word.reason,
        detail=f"message {name} to {seen.destination}: {'done' if done else 'not done'}",
        changed=(seen.state, (await message_named(run, name)).state),
    )
    await count(WAKE_NEXT, **run_parameters(run))
    return await message_named(run, name)


async def retry_message(run: RunId, name: str, word: Word) -> Message:
    """Let a message be sent again that was refused or is dead; one that waits for its time, now. Raises `NotAllowed`."""
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await message_named(run, name)
    if seen.state == PENDING and seen.due_at is None:
        raise NotAllowed(
            f"cannot retry the message {name!r}: it waits for the one before it, and goes when that is settled"
        )
    if not await count(RETRY, **place_of_message(seen.id)):
        raise not_allowed_of_message("retry", seen)
    found = await message_named(run, name)
    await _said(seen, "message_retried", word, found.state)
    return found


async def skip_message(run: RunId, name: str, word: Word) -> Message:
    """Settle a message without sending it: the next one of its run goes. Raises `NotAllowed`."""
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await message_named(run, name)
    if not await count(SKIP, **place_of_message(seen.id), cause=word.reason):
        raise not_allowed_of_message("skip", seen)
    await _said(seen, "message_skipped", word, message_states.SKIPPED)
    await count(WAKE_NEXT, **run_parameters(run))
    return await message_named(run, name)


async def _said(seen: Message, kind: str, word: Word, after: str) -> None:
    detail = f"message {seen.name} to {seen.destination}, which was {seen.state}"
    await tell(
        kind,
        run=seen.id.run,
        attempt_id=seen.attempt_id,
        by=word.by,
        reason=word.reason,
        detail=detail,
        changed=(seen.state, after),
    )


def not_allowed_of_message(what: str, seen: Message) -> NotAllowed:
    """The refusal of a change that the message's state does not allow."""
    advice = {
        PENDING: "`duly outbox deliver` sends what is due",
        SENDING: "wait for its attempt",
        UNKNOWN: "`duly resolve` it first, with --message",
        message_states.DELIVERED: "it cannot be taken back",
        REFUSED: "`duly outbox retry` or `skip` it",
        DEAD: "`duly outbox retry` or `skip` it",
        message_states.SKIPPED: "it stays so; `duly reopen` its run to do it all again",
    }
    return NotAllowed(f"cannot {what} the message {seen.name!r}: it is {seen.state}; {advice[seen.state]}")
