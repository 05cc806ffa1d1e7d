"""Unknown: of what nobody knows whether it happened; what was sent, with which key, who looked; and three answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.evidence import verdict
from duly.evidence.documents.window import as_json
from duly.evidence.explain import Explanation
from duly.evidence.message_words import GLYPHS, what
from duly.evidence.names import named
from duly.evidence.shown import line_name, typed, window_name, zone_of
from duly.evidence.unknown import Unknown, unknown
from duly.ledger import message_states
from duly.records import record
from duly.web.page import Document, Page
from duly.web.paths import run_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.evidence.documents.window import Json
    from duly.evidence.explain import Sent
    from duly.ledger.ask import Operation
    from duly.ledger.events import Event
    from duly.web.asked import Asked
    from duly.web.showing import Showing

AT_MOST = 25
_WORDS_OF_OTHERS = ("probed", "put_off", "message_probed", "message_put_off", "unknown", "message_unknown")


@record
class UnknownPage:
    """What is unknown, and of what it was asked."""

    as_of: int
    job: str
    scope: str
    found: Unknown


def see(asked: Asked) -> Callable[[], Operation[UnknownPage]]:
    job, scope = asked.text("job"), asked.text("scope")

    async def look() -> UnknownPage:
        found = await unknown(*await named(job or None, scope or None), limit=AT_MOST)
        return UnknownPage(found.as_of, job, scope, found)

    return look


def show(seen: UnknownPage, showing: Showing) -> dict[str, Any]:
    scope = ["--scope", seen.scope] if seen.scope else []
    return {
        "title": "Unknown",
        "items": [_item(told, showing) for told in seen.found.told],
        "more": seen.found.more,
        "job": seen.job,
        "scope": seen.scope,
        "twin": showing.twin("duly", "runs", *([seen.job] if seen.job else []), *scope, "--state", "unknown"),
        "zone": "UTC",
    }


def _item(told: Explanation, showing: Showing) -> dict[str, Any]:
    window, zone = told.window, zone_of(told.window)
    is_run = window.verdict.word == verdict.UNKNOWN
    return {
        "line_name": line_name(window),
        "window_name": window_name(window),
        "key": window.key,
        "path": run_path(window.key),
        "zone": zone,
        "is_run": is_run,
        "says": window.verdict.note,
        "row": window.row,
        "owner": window.known.job.owner,
        "messages": [each for each in told.sent if each.message.state == message_states.UNKNOWN],
        "delivered": sum(each.message.state == message_states.DELIVERED for each in told.sent),
        "sent": len(told.sent),
        "message_says": lambda message: what(message, lambda instant: showing.words(instant, zone)),
        "sign_of": _sign_of,
        "asked": told.asked,
        "said": [each.event for each in told.history.events if each.event.kind in _WORDS_OF_OTHERS],
        "said_words": _said,
        "command": typed("resolve", window, showing.settings.ledger),
    }


def _sign_of(sent: Sent) -> tuple[str, str]:
    return GLYPHS[sent.message.state]


def _said(event: Event) -> str:
    why = "; ".join(part for part in (event.reason, event.detail) if part)
    return f"{event.kind.replace('_', ' ')}{': ' if why else ''}{why}"


def document(seen: UnknownPage) -> Document:
    return Document(
        "duly.unknown.v1", {"more": seen.found.more}, "unknown", [_record(told) for told in seen.found.told]
    )


def _record(told: Explanation) -> dict[str, Json]:
    in_doubt = sum(each.message.state == message_states.UNKNOWN for each in told.sent)
    return {**as_json(told.window), "unknown_messages": in_doubt}


PAGE = Page("unknown", "/unknown", "Unknown", see, show, {"/unknown": document})
