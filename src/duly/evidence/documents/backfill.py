"""A backfill for programs: what one would do, and how far one is."""

from __future__ import annotations

from duly.evidence.backfill_words import window_text
from duly.evidence.documents.window import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.backfill import Progress
    from duly.evidence.documents.window import Json
    from duly.ledger.backfill import Plan, Started

PLAN, STARTED, BACKFILL, BACKFILLS = (
    f"duly.{name}.v1" for name in ("backfill_plan", "backfill_started", "backfill", "backfills")
)


def plan_as_json(planned: Plan) -> dict[str, Json]:
    """What a backfill would do."""
    known, asked = planned.known, planned.asked
    counts: dict[str, Json] = dict(planned.counts)
    what: list[Json] = list(asked.what)
    first, last = planned.first, planned.last
    return {
        "job": known.job.name,
        "scope": "" if known.line is None else known.line.scope,
        "range": asked.text,
        "first": None if first is None else window_text(known, first.nominal),
        "last": None if last is None else window_text(known, last.nominal),
        "start": iso(None if first is None else first.start),
        "end": iso(None if last is None else last.end),
        "counts": counts,
        "to_do": planned.to_do,
        "not_due": planned.future,
        "not_owed": planned.not_owed,
        "of_schedule_before": 0 if planned.before is None else planned.before.windows,
        "what": what,
        "order": asked.direction,
        "concurrency": asked.concurrency,
        "at_a_time": planned.at_a_time,
        "stop_after": asked.stop_after,
    }


def started_as_json(made: Started, *, dry_run: bool) -> dict[str, Json]:
    """A backfill that was started, with its plan."""
    return {"id": made.backfill.id, "dry_run": dry_run, **plan_as_json(made.plan)}


def progress_as_json(found: Progress) -> dict[str, Json]:
    """How far a backfill is."""
    mine = found.backfill
    what: list[Json] = list(mine.wanted)
    return {
        "id": mine.id,
        "job": found.owner.job,
        "scope": found.owner.scope,
        "range": mine.asked,
        "start": iso(mine.since),
        "end": iso(mine.until),
        "what": what,
        "order": mine.direction,
        "concurrency": mine.concurrency,
        "at_a_time": found.at_a_time,
        "stop_after": mine.stop_after,
        "state": mine.state,
        "asked_at": iso(mine.asked_at),
        "by": mine.by,
        "reason": mine.reason,
        "state_by": mine.said_by,
        "state_reason": mine.said,
        "windows": found.total,
        "done": found.done,
        "running": found.running,
        "failed": found.failed,
        "unknown": found.unknown,
        "waiting": found.waiting,
        "left": found.left,
    }
