"""An explanation for programs: every fact that its sentences are made of."""

from __future__ import annotations

from duly.evidence.documents.history import event_as_json, history_as_json
from duly.evidence.documents.message import message_as_json
from duly.evidence.documents.window import as_json, iso
from duly.evidence.explain import Explanation, Sent
from duly.evidence.shown import typed
from duly.ledger.backfill import Backfill
from duly.ledger.policy import grace_of
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.ledger.probe import Asked
    from duly.ledger.records import Pause, Version
    from duly.schedule.keys import RunKey


def explanation_as_json(told: Explanation, ledger: str | None) -> dict[str, Json]:
    """The facts of `duly.explain.v1`, in the order of the sentences; `ledger` is `--ledger`, for what is to be typed."""
    window, known, row = told.window, told.window.known, told.window.row
    said, last = window.verdict, told.completeness.last
    skipped, end = told.skipped, told.end
    return {
        "as_of": iso(told.as_of),
        "run": as_json(window),
        "versions": [_version_as_json(version, known.job.version) for version in told.versions],
        "schedule_version": row.version if row is not None else known.version.number if known.version else None,
        "resolution": row.resolution
        if row is not None
        else window.occurrence.resolution
        if window.occurrence
        else None,
        "off": window.occurrence.off if window.occurrence else "",
        "grace_seconds": grace_of(known.job, window.bounds) // SECOND,
        "contract": known.job.contract,
        "retries": known.job.retries,
        "failures": 0 if row is None else row.failures,
        "retry_at": None if row is None else iso(row.retry_at),
        "opened_at": None if row is None else iso(row.opened_at),
        "opened_until": None if known.line is None else iso(known.line.opened_until),
        "lease_until": None if row is None else iso(row.lease_until),
        "holder_alive": told.holder_alive,
        "backfill": None if told.backfill is None else _backfill_as_json(told.backfill),
        "pause": None if told.pause is None else _pause_as_json(told.pause),
        "pauses": [event_as_json(event) for event in told.paused],
        **history_as_json(window.key, told.history),
        "messages": [_sent_as_json(window.key, sent) for sent in told.sent],
        "probe": None if told.asked is None else _asked_as_json(told.asked),
        "skipped_range": None
        if skipped is None
        else {"at": iso(skipped.at), "by": skipped.by, "reason": skipped.reason},
        "line_begins": None if known.line is None else iso(known.line.starts),
        "line_ends": None if known.line is None else iso(known.line.ends),
        "ended": None if end is None else {"by": end.by, "reason": end.reason},
        "next_poke_drops_it": told.dropped,
        "newer_window": told.newest,
        "waits_for": told.in_the_way,
        "complete_through": iso(told.completeness.through),
        "last_completed": None if last is None else iso(last.window_end),
        "needs_a_person": said.needs_a_person,
        "next_step": typed(said.verb, window, ledger) if said.verb not in ("", "explain") else None,
    }


def _version_as_json(version: Version, in_force: int | None) -> dict[str, Json]:
    return {
        "number": version.number,
        "label": version.label,
        "schedule": version.words,
        "zone": version.zone,
        "grain": version.grain,
        "effective_from": iso(version.effective_from or None),
        "in_force": version.number == in_force,
    }


def _backfill_as_json(mine: Backfill) -> dict[str, Json]:
    return {
        "id": mine.id,
        "range": mine.asked,
        "asked_at": iso(mine.asked_at),
        "by": mine.by,
        "reason": mine.reason,
        "state": mine.state,
        "state_by": mine.said_by,
        "state_reason": mine.said,
    }


def _pause_as_json(pause: Pause) -> dict[str, Json]:
    return {"since": iso(pause.since), "until": iso(pause.until), "by": pause.by, "reason": pause.why}


def _sent_as_json(key: RunKey, sent: Sent) -> dict[str, Json]:
    sendings: list[Json] = [
        {
            "number": one.fence,
            "started_at": iso(one.started_at),
            "ended_at": iso(one.ended_at),
            "outcome": one.outcome,
            "owner": one.owner,
            "said": one.said,
        }
        for one in sent.sendings
    ]
    return {**message_as_json(str(key), sent.message), "sendings": sendings}


def _asked_as_json(asked: Asked) -> dict[str, Json]:
    return {"asked": asked.asked, "denials": asked.denials, "next_at": iso(asked.next_at), "said": asked.said}
