"""A message for programs: never with its body."""

from __future__ import annotations

from duly.evidence.documents.window import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.ledger.messages import Message, MessageAttempt


def message_as_json(run: str, message: Message) -> dict[str, Json]:
    """A message for programs."""
    return {
        "key": run,
        "name": message.name,
        "revision": message.revision,
        "number": message.number,
        "destination": message.destination,
        "idempotency_key": message.key,
        "state": message.state,
        "cause": message.cause,
        "attempts": message.fence,
        "in_doubt": message.doubt_number is not None,
        "noted_at": iso(message.noted_at),
        "first_sent_at": iso(message.first_sent_at),
        "next_at": iso(message.due_at),
        "settled_at": iso(message.settled_at),
    }


def sent_as_json(run: str, message: Message, attempts: list[MessageAttempt]) -> dict[str, Json]:
    """A message with each of its sendings that has ended."""
    sendings: list[Json] = [
        {
            "number": attempt.fence,
            "attempt_id": attempt.attempt_id.hex(),
            "outcome": attempt.outcome,
            "said": attempt.said,
            "owner": attempt.owner,
            "started_at": iso(attempt.started_at),
            "ended_at": iso(attempt.ended_at),
        }
        for attempt in attempts
    ]
    return {**message_as_json(run, message), "sendings": sendings}
