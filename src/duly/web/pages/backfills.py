"""Backfills: a range becomes a plan, with its counts and bounds; what was asked for before, and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from duly.errors import DulyError
from duly.evidence.backfill import Progress, listed
from duly.evidence.backfill_words import left_out, line_of, why_one_at_a_time, window_text
from duly.evidence.documents.backfill import BACKFILLS, progress_as_json
from duly.ledger.ask import now
from duly.ledger.backfill import MISSING, OPEN, Plan, plan
from duly.records import record
from duly.web.action import Given
from duly.web.actions.of_backfill import ACTIONS as BACKFILL_ACTIONS
from duly.web.actions.of_backfill import ASKED, EXPECT, PATH, asked_by, not_too_many, start_line
from duly.web.page import Document, Page
from duly.web.pages.backfill import state_of
from duly.web.troubles import next_step_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.ask import Operation
    from duly.web.asked import Asked
    from duly.web.showing import Showing

AT_MOST = 50
START = BACKFILL_ACTIONS[0]


@record
class Backfills:
    """What was asked for lately; and what a range would be, or why it would be nothing."""

    as_of: int
    given: Given
    planned: Plan | None
    wrong: DulyError | None
    latest: list[Progress]
    more: bool


def see(asked: Asked) -> Callable[[], Operation[Backfills]]:
    said = {field.name: asked.text(field.name) for field in ASKED}
    is_asked = bool(said["job"] and said["range"])
    given = Given({}, {name: value for name, value in said.items() if value}, "")

    async def look() -> Backfills:
        planned = wrong = None
        if is_asked:
            try:
                read = Given({}, START.read({**given.fields, EXPECT.name: "0", "reason": "-"}), "")
                planned = await plan(*await asked_by(read), not_too_many)
            except DulyError as e:
                if asked.form != "html":
                    raise
                wrong = e
        # Of one job where one is asked for: how a list is narrowed that has grown long.
        latest = [] if wrong is not None else await listed(said["job"] or None, said["scope"] or None, AT_MOST + 1)
        return Backfills(await now(), given, planned, wrong, latest[:AT_MOST], len(latest) > AT_MOST)

    return look


def show(seen: Backfills, showing: Showing) -> dict[str, Any]:
    planned, ledger = seen.planned, showing.settings.ledger
    zone = "UTC" if planned is None or planned.known.version is None else planned.known.version.zone
    return {
        "title": "Backfill",
        "fields": ASKED,
        "expect": EXPECT,
        "start": START,
        "said": seen.given.fields,
        "key": str(uuid4()),
        "planned": planned,
        "wrong": seen.wrong,
        "wrong_step": None if seen.wrong is None else next_step_of(seen.wrong),
        "line_of": line_of,
        "state_of": state_of,
        "kinds": [] if planned is None else _kinds(planned),
        "left_out": "" if planned is None else left_out(planned).removeprefix("; "),
        "one_at_a_time": "" if planned is None else why_one_at_a_time(planned),
        "first": None
        if planned is None or planned.first is None
        else window_text(planned.known, planned.first.nominal),
        "last": None if planned is None or planned.last is None else window_text(planned.known, planned.last.nominal),
        "start_line": "" if planned is None else start_line(seen.given, planned, ledger),
        "latest": seen.latest,
        "more": seen.more,
        "twin": showing.twin("duly", "backfill", "list")
        if planned is None
        else start_line(seen.given, planned, ledger),
        "zone": zone,
    }


def _kinds(planned: Plan) -> list[tuple[int, str, bool]]:
    """How many windows there are of each kind, and whether they are worked."""
    return [
        (number, kind, (MISSING if kind == OPEN else kind) in planned.asked.what)
        for kind, number in planned.counts.items()
        if number
    ]


def backfills_document(seen: Backfills) -> Document:
    records = [{"key": str(each.backfill.id), **progress_as_json(each)} for each in seen.latest]
    return Document(BACKFILLS, {"more": seen.more}, "backfills", records)


PAGE = Page("backfills", PATH, "Backfill", see, show, {"/backfills": backfills_document})
