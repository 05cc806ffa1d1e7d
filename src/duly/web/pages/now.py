"""Now: what is not complete, why, and what may safely be done; or the proof that nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.evidence.complete_through import LineComplete, complete_lines
from duly.evidence.documents.status import needs_as_json, status_as_json
from duly.evidence.names import named
from duly.evidence.status import Status, status
from duly.records import record, replace
from duly.web.page import Document, Page
from duly.web.paths import run_path
from duly.web.work_list import COUNTED, counts_of, kind_of, work_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.evidence.verdict import Window
    from duly.ledger.ask import Operation
    from duly.web.asked import Asked
    from duly.web.showing import Showing

AT_MOST = 200  # rows of the work list on a page


@record
class Filters:
    """What of it is to be shown."""

    job: str | None
    scope: str | None
    owner: str
    state: str

    def let(self, owner: str, word: str) -> bool:
        """Whether what is so is shown: all that `status` has not narrowed already."""
        return self.owner in ("", owner) and self.state in ("", kind_of(word))


@record
class Now:
    """What there is to say now, with the proof of what there is not."""

    as_of: int
    filters: Filters
    status: Status
    lines: list[LineComplete]


def filters_of(asked: Asked) -> Filters:
    """The filters of the URL."""
    return Filters(
        asked.text("job") or None,
        asked.text("scope") or None,
        asked.text("owner"),
        asked.one_of("state", ("", *COUNTED)),
    )


def see(asked: Asked) -> Callable[[], Operation[Now]]:
    filters, is_list = filters_of(asked), asked.form != "html"

    async def look() -> Now:
        name, scope = await named(filters.job, filters.scope)
        seen = await status(name, scope)
        lines = await complete_lines(name, scope) if is_list else await _held(seen)
        return Now(seen.as_of, filters, seen, lines)

    return look


async def _held(seen: Status) -> list[LineComplete]:
    """How far those lines are complete that something holds."""
    held = {(window.key.job, window.key.scope): None for window in seen.needs}
    held |= {(unopened.windows[0].key.job, unopened.windows[0].key.scope): None for unopened in seen.unopened}
    return [line for name, scope in list(held)[:20] for line in await complete_lines(name, scope)]


def show(seen: Now, showing: Showing) -> dict[str, Any]:
    items = work_list(seen.status, showing.settings.ledger)
    filters = seen.filters
    owners = sorted({item.owner for item in items if item.owner})
    wanted = [item for item in items if filters.let(item.owner, item.word)]
    proven, status = seen.status.proof, seen.status
    on_the_way = len(status.running) + len(status.waiting)
    twin = ["duly", "status", *([filters.job] if filters.job else [])]
    return {
        "title": "Now",
        "counts": counts_of(status),
        "items": wanted[:AT_MOST],
        "hidden": len(wanted) - AT_MOST,
        "owners": owners,
        "filters": filters,
        "status": status,
        "proof": proven,
        "on_the_way": on_the_way,
        "lines": seen.lines,
        "path_of": run_path,
        "twin": showing.twin(*twin, *(["--scope", filters.scope] if filters.scope else [])),
        "zone": "UTC",
    }


def document(seen: Now) -> Document:
    status, filters = seen.status, seen.filters

    def let(window: Window) -> bool:
        return filters.let(window.known.job.owner, window.verdict.word)

    wanted = replace(
        status,
        needs=[window for window in status.needs if let(window)],
        unopened=[unopened for unopened in status.unopened if let(unopened.windows[0])],
    )
    return Document("duly.status.v1", status_as_json(status, seen.lines), "needs", needs_as_json(wanted))


PAGE = Page("now", "/", "Now", see, show, {"/now": document})
