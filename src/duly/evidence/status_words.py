"""What is said of a window where many are looked at: a few words, the same at every door."""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.status import Unopened
from duly.evidence.verdict import Window, grace_text
from duly.evidence.words import ago, span


def in_few_words(window: Window, now: int) -> str:
    """Why a window is what it is, and since when, in a few words."""
    said, row = window.verdict, window.row
    match said.word:
        case verdict.RUNNING if row is not None and row.started_at is not None:
            late = f", late (grace {grace_text(window)})" if said.late else ""
            return f"running for {span(now - row.started_at)}, {said.note}{late}"
        case verdict.FAILED:
            return f"failed, {said.note}"
        case verdict.RETRYING if row is not None and row.retry_at is not None:
            return f"failed, {said.note}; to be retried {ago(row.retry_at, now)}"
        case verdict.LATE | verdict.MISSING | verdict.DUE if window.due is not None:
            return f"{said.note}, due {ago(window.due, now)} (grace {grace_text(window)})"
    return said.note


def skipped_next(unopened: Unopened) -> str:
    """What the catch-up policy makes of the windows before the newest."""
    if unopened.skipped == 0:
        return ""
    some = "" if unopened.skipped >= len(unopened.windows) - 1 else f"; {unopened.skipped} of them are ones"
    return f"{some} that the next poke will skip"


def is_noted(window: Window) -> bool:
    """Whether a run that is being worked is worth a line: it is late, or a person waits for it to stop.

    One that a backfill owes is as old as it was when somebody asked for it, and has a line in that.
    """
    is_late = window.verdict.late and window.backfill is None
    return is_late or (window.row is not None and window.row.cancel_is_asked)
