"""Backfill: how far one is, what holds it, and what may be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from duly.evidence.backfill import Progress, progress
from duly.evidence.backfill_words import SIGNS, line_of, numbers, works
from duly.ledger import backfill_states as backfills
from duly.web.page import Page
from duly.web.paths import backfill_path
from duly.web.showing import slug

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.ask import Operation
    from duly.web.asked import Asked
    from duly.web.showing import Showing

# What may be done about one: the action, and what a button says.
_STEPS = {
    backfills.ACTIVE: (("pause", "Pause"), ("cancel", "Cancel")),
    backfills.PAUSED: (("resume", "Resume"), ("cancel", "Cancel")),
    backfills.STOPPED: (("resume", "Resume"), ("cancel", "Cancel")),
}


def see(asked: Asked) -> Callable[[], Operation[Progress]]:
    number = int(asked.path["id"])

    async def look() -> Progress:
        return await progress(number)

    return look


def show(seen: Progress, showing: Showing) -> dict[str, Any]:
    mine = seen.backfill
    by_state = (
        (seen.done, "done", "complete"),
        (seen.running, "running", "running"),
        (seen.waiting, "to be tried again", "retrying"),
        (seen.failed, "failed", "failed"),
        (seen.unknown, "unknown", "unknown"),
        (seen.left, "not begun", "due"),
    )
    return {
        "title": f"Backfill {mine.id}",
        "mine": mine,
        "seen": seen,
        "state": state_of(seen),
        "line_name": line_of(seen.known),
        "numbers": numbers(seen),
        "by_state": [each for each in by_state if each[0]],
        "steps": _STEPS.get(mine.state, ()),
        "path": backfill_path(mine.id),
        "works": works(seen),
        "twin": showing.twin("duly", "backfill", "show", str(mine.id)),
        "zone": "UTC" if seen.known.version is None else seen.known.version.zone,
    }


def state_of(found: Progress) -> Markup:
    """The state of a backfill: its sign in its shape, and its word."""
    glyph, word = SIGNS[found.backfill.state]
    return Markup('<span class="chip s-{}"><span class="sign" aria-hidden="true">{}</span> {}</span>').format(
        slug(word), glyph, found.backfill.state
    )


PAGE = Page("backfill", "/backfill/{id:int}", "", see, show, {})
