"""Run: what one window is, what happened to it, how it stands, and what may safely be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from duly.evidence import verdict
from duly.evidence.documents.explanation import explanation_as_json
from duly.evidence.documents.history import attempt_as_json
from duly.evidence.explain import Explanation, explain
from duly.evidence.explain_words import length, sentences
from duly.evidence.message_words import GLYPHS, what
from duly.evidence.shown import line_name, typed, when, window_name, zone_of
from duly.evidence.verdict import grace_text
from duly.evidence.words import ago, span
from duly.ledger.address import by_key
from duly.ledger.output import Intent, find_output
from duly.ledger.policy import grace_of
from duly.records import record
from duly.schedule.keys import parse_key
from duly.times import MINUTE
from duly.web.drawings.timeline import Mark, Row, lane, scale_of
from duly.web.page import Document, Page
from duly.web.paths import run_path
from duly.web.showing import chip
from duly.web.steps import message_steps, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duly.evidence.runs import Attempt
    from duly.ledger.ask import Operation
    from duly.web.asked import Asked
    from duly.web.showing import Showing

ROWS_AT_MOST = 200
MOMENT = 10 * MINUTE

# How an attempt ended, as the state of a window that it left.
_LEFT = {
    "completed": verdict.COMPLETE,
    "failed": verdict.FAILED,
    "cancelled": verdict.FAILED,
    "lost": verdict.MISSING,
    "released": verdict.SKIPPED,
    "running": verdict.RUNNING,
    "unknown": verdict.UNKNOWN,
}


@record
class RunPage:
    """A run that was named, explained; and the file that it has put in place, or was about to."""

    as_of: int
    told: Explanation
    output: Intent | None


def see(asked: Asked) -> Callable[[], Operation[RunPage]]:
    key = parse_key(asked.path["key"])

    async def look() -> RunPage:
        told = await explain(await by_key(key))  # also by a former name of its job
        return RunPage(told.as_of, told, await find_output(told.window.run))

    return look


def show(seen: RunPage, showing: Showing) -> dict[str, Any]:
    told, window = seen.told, seen.told.window
    zone, ledger = zone_of(window), showing.settings.ledger
    said = sentences(told, lambda instant: showing.words(instant, zone))
    rows = sorted(_rows(told, showing, zone), key=lambda row: row.at)
    scale = scale_of(rows, told.as_of)
    row = window.row
    return {
        "title": f"{line_name(window)} {window_name(window)}",
        "told": told,
        "window": window,
        "output": seen.output,
        "word": window.verdict.word,
        "line_name": line_name(window),
        "window_name": window_name(window),
        "decision": said[-1],
        "sentences": said[:-1],
        "steps": steps_of(told, ledger),
        "grace": grace_text(window),
        "length": length(window.bounds) if window.bounds else "",
        "contract": (row.contract if row is not None and row.contract else window.known.job.contract),
        "rows": [(each, lane(each.mark, scale)) for each in rows[-ROWS_AT_MOST:]],
        "rows_hidden": len(rows) - ROWS_AT_MOST,
        "messages": [(sent, *GLYPHS[sent.message.state]) for sent in told.sent[:ROWS_AT_MOST]],
        "messages_hidden": len(told.sent) - ROWS_AT_MOST,
        "message_says": lambda message: what(message, lambda instant: showing.words(instant, zone)),
        "texts": [text for text in told.history.texts if text.body],
        "twin": typed("explain", window, ledger),
        "twin_show": typed("runs show", window, ledger),
        "zone": zone,
        "path": run_path(window.key),
        "message_steps": message_steps,
        "latest": _latest(told),
        "documents": showing.url(run_path(window.key)),
    }


def _latest(told: Explanation) -> str:
    """What somebody said of it a moment ago: whoever has just said it sees that it was heard, and so does everybody else."""
    said = [each.event for each in told.history.events if each.event.by and each.event.reason]
    if not said or told.as_of - said[-1].at > MOMENT:
        return ""
    event = said[-1]
    return f"{event.by}, {ago(event.at, told.as_of)}: {event.kind.replace('_', ' ')}. {event.reason}"


def _rows(told: Explanation, showing: Showing, zone: str) -> Iterator[Row]:
    """What happened, each at its time."""
    window = told.window
    if window.due is not None:
        yield Row(
            window.due,
            "came due" if window.due <= told.as_of else "comes due",
            "",
            Mark(window.due, None, "", "edge"),
        )
        late = window.due + grace_of(window.known.job, window.bounds)
        if window.verdict.late or any(attempt.ended.started_at > late for attempt in told.history.attempts):
            yield Row(late, "late from here on", f"grace {grace_text(window)}", Mark(late, None, verdict.LATE, "edge"))
    for attempt in told.history.attempts:
        yield _of_attempt(attempt, told)
    for event in told.history.events:
        why = "; ".join(part for part in (event.event.reason, event.event.detail) if part)
        who = f" by {event.event.by}" if event.event.by else ""
        what_ = f"{event.event.kind.replace('_', ' ')}{who}"
        yield Row(event.event.at, what_, why, Mark(event.event.at, None, "", "point"))
    for sent in told.sent:
        message = sent.message
        _, word = GLYPHS[message.state]
        at = message.settled_at or message.first_sent_at
        if at is not None:
            name = f"message {message.name} {message.state}"
            yield Row(at, name, f"to {message.destination}", Mark(at, None, word, "point"))


def _of_attempt(attempt: Attempt, told: Explanation) -> Row:
    ended, now = attempt.ended, told.as_of
    word = _LEFT.get(ended.outcome, verdict.DUE)
    took = span((now if ended.ended_at is None else ended.ended_at) - ended.started_at)
    which = (
        f"attempt {ended.number}" if attempt.revision == 1 else f"attempt {ended.number} of revision {attempt.revision}"
    )
    row = next((each for each in told.history.revisions if each.attempt_id == ended.attempt_id), None)
    lease = row.lease_until if row is not None and ended.ended_at is None else None
    request = told.history.request_to(attempt)
    beside = [f"by {ended.owner}", f"started by {ended.trigger}" if ended.trigger else ""]
    beside += [f"{attempt.progress.words}, {ago(attempt.progress.at, now)}" if attempt.progress is not None else ""]
    beside += [f"{request.by} asked it to stop: {attempt.became_of(request)}" if request is not None else ""]
    beside += [attempt.pulse_words if attempt.was_superseded else ""]
    error = f"{ended.error}; " if ended.error else ""
    goes = {"running": f"running for {took}", "unknown": "how it ended is not known"}.get(ended.outcome, f"took {took}")
    says = f"{error}{goes}; {', '.join(part for part in beside if part)}"
    until = (now if ended.outcome == "running" else None) if ended.ended_at is None else ended.ended_at
    what_ = Markup("{} {}").format(which, chip(word, ended.outcome))
    return Row(ended.started_at, what_, says, Mark(ended.started_at, until or ended.started_at, word, "bar", lease))


def explain_document(seen: RunPage) -> Document:
    told = seen.told
    zone, now = zone_of(told.window), told.as_of
    facts = explanation_as_json(told, None)
    attempts = [attempt_as_json(told.window.key, told.history, attempt) for attempt in told.history.attempts]
    facts["sentences"] = [*sentences(told, lambda instant: when(instant, zone, time="local", now=now))]
    del facts["attempts"]
    return Document("duly.explain.v1", facts, "attempts", attempts)


PAGE = Page("run", "/run/{key:path}", "", see, show, {"/run/{key:path}/explain": explain_document})
