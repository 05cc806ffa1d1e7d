"""What needs a person, for programs."""

from __future__ import annotations

from duly.evidence.documents.window import as_json, complete_as_json, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.complete_through import LineComplete
    from duly.evidence.documents.window import Json
    from duly.evidence.status import Asked, Paused, Status, Unopened
    from duly.ledger.messages import Backlog


def status_as_json(seen: Status, lines: list[LineComplete]) -> dict[str, Json]:
    """The facts of `duly.status.v1`, without what needs a person."""
    return {
        "as_of": iso(seen.as_of),
        "counts": {
            "need_you": seen.periods_in_need,
            "unknown": seen.unknown,
            "running": len(seen.running),
            "completed_24h": seen.completed,
        },
        "running": [as_json(window) for window in seen.running],
        "waiting": [as_json(window) for window in seen.waiting],
        "paused": [_paused_as_json(paused) for paused in seen.paused],
        "backfills": [_asked_as_json(asked) for asked in seen.backfills],
        "undelivered": [_backlog_as_json(backlog) for backlog in seen.undelivered],
        "lines": complete_as_json(lines),
    }


def needs_as_json(seen: Status) -> list[dict[str, Json]]:
    """What needs a person; windows of a line that were never opened are one, the newest."""
    needs = [as_json(window) for window in seen.needs]
    return [*needs, *(_unopened_as_json(unopened) for unopened in seen.unopened)]


def _paused_as_json(paused: Paused) -> dict[str, Json]:
    known, pause = paused.known, paused.pause
    return {
        "job": known.job.name,
        "scope": "" if known.line is None else known.line.scope,
        "since": iso(pause.since),
        "until": iso(pause.until),
        "by": pause.by,
        "reason": pause.why,
        "windows": paused.windows,
        "windows_exact": not paused.more,
    }


def _asked_as_json(asked: Asked) -> dict[str, Json]:
    mine = asked.backfill
    return {"id": mine.id, "job": asked.job, "scope": asked.scope, "range": mine.asked, "state": mine.state}


def _backlog_as_json(backlog: Backlog) -> dict[str, Json]:
    return {
        "destination": backlog.destination,
        "messages": backlog.messages,
        "oldest": iso(backlog.oldest),
        "next_due": iso(backlog.next_due),
        "unknown": backlog.unknown,
        "stuck": backlog.stuck,
    }


def _unopened_as_json(unopened: Unopened) -> dict[str, Json]:
    newest, oldest = unopened.windows[0], unopened.windows[-1]
    windows: dict[str, Json] = {
        "windows": len(unopened.windows),
        "windows_exact": not unopened.more,
        "oldest": str(oldest.key),
    }
    return {**as_json(newest), **windows}
