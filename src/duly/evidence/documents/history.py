"""The history of a run for programs: its attempts, events and texts, the same wherever they are shown."""

from __future__ import annotations

from duly.evidence.documents.message import message_as_json
from duly.evidence.documents.window import as_json, iso
from duly.evidence.runs import Attempt, History

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.evidence.verdict import Window
    from duly.ledger.events import Event
    from duly.schedule.keys import RunKey


def history_as_json(key: RunKey, past: History) -> dict[str, Json]:
    """The attempts, events and texts of a window, of all its revisions."""
    return {
        "attempts": [attempt_as_json(key, past, attempt) for attempt in past.attempts],
        "events": [{"revision": told.revision, **event_as_json(told.event)} for told in past.events],
        "texts": [
            {"revision": text.revision, "number": text.number, "kind": text.kind, "body": text.body}
            for text in past.texts
        ],
    }


def run_as_json(window: Window, past: History) -> dict[str, Json]:
    """The facts of `duly.run.v1`: a run with all that the ledger holds of it."""
    return {
        "as_of": iso(past.as_of),
        "run": as_json(window),
        **history_as_json(window.key, past),
        "messages": [message_as_json(str(window.key), message) for message in past.messages],
    }


def attempt_as_json(key: RunKey, past: History, attempt: Attempt) -> dict[str, Json]:
    """An attempt, ended or current."""
    ended, request, progress = attempt.ended, past.request_to(attempt), attempt.progress
    return {
        "key": str(key),
        "revision": attempt.revision,
        "number": ended.number,
        "attempt_id": ended.attempt_id.hex(),
        "outcome": ended.outcome,
        "started_at": iso(ended.started_at),
        "ended_at": iso(ended.ended_at),
        "contract": ended.contract,
        "owner": ended.owner,
        "trigger": ended.trigger,
        "error": ended.error,
        "alive": attempt.alive,
        "done": None if progress is None else progress.done,
        "of": None if progress is None else progress.total,
        "progress_at": None if progress is None else iso(progress.at),
        "cancel_asked_at": None if request is None else iso(request.at),
        "cancel_asked_by": None if request is None else request.by,
        "cancel_became": None if request is None else attempt.became_of(request),
    }


def event_as_json(event: Event) -> dict[str, Json]:
    """An event, without what it is of."""
    return {
        "at": iso(event.at),
        "kind": event.kind,
        "by": event.by,
        "reason": event.reason,
        "detail": event.detail,
        "before": event.before,
        "after": event.after,
    }
