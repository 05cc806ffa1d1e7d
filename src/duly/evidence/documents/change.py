"""A change for programs: of a run, as it was before and after; of a message, as it is now."""

from __future__ import annotations

from duly.evidence.documents.message import message_as_json
from duly.evidence.documents.window import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.changed import Changed
    from duly.evidence.documents.window import Json
    from duly.ledger.messages import Message

CHANGE, MESSAGE_CHANGE = "duly.change.v1", "duly.message_change.v1"


def change_as_json(verb: str, made: Changed, *, dry_run: bool) -> dict[str, Json]:
    """What a verb made of a run."""
    return {"verb": verb, "dry_run": dry_run, "before": as_json(made.before), "after": as_json(made.after)}


def message_change_as_json(verb: str, key: str, message: Message, *, dry_run: bool) -> dict[str, Json]:
    """What a verb made of a message of the run with this key."""
    return {"verb": verb, "dry_run": dry_run, "message": message_as_json(key, message)}
