"""Job: what it is, when it comes due, what its last windows came to, and how long they took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.errors import UnknownScope
from duly.evidence.check import Checked, check_range
from duly.evidence.complete_through import LineComplete, complete_lines
from duly.evidence.documents.grid import cells_as_json
from duly.evidence.documents.job import job_as_json, version_as_json
from duly.evidence.documents.window import as_json, complete_as_json, iso
from duly.evidence.durations import Took, durations, middle_and_high
from duly.evidence.explain_words import length
from duly.evidence.grid import Grid, grid
from duly.evidence.job_words import pauses, policies
from duly.evidence.jobs import JobSeen, job
from duly.evidence.next import night_note
from duly.evidence.runs import runs
from duly.evidence.shown import window_name
from duly.evidence.verdict import Window
from duly.evidence.words import span
from duly.ledger.address import current_name
from duly.ledger.ask import now
from duly.ledger.register import schedule_of
from duly.ledger.spells import Placed, placed_after, spells_of_line
from duly.records import record
from duly.schedule.keys import nominal_text
from duly.schedule.versions import what_changes
from duly.times import SECOND
from duly.web.drawings.timeline import bars
from duly.web.page import Document, Page
from duly.web.paths import job_path, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duly.evidence.documents.window import Json
    from duly.ledger.ask import Operation
    from duly.web.asked import Asked
    from duly.web.showing import Showing

WINDOWS, NEXT, RUNS, LINES, RANGE = 60, 6, 100, 20, 400


@record
class JobPage:
    """A job with all that its page tells; of a job with very many scopes the first few, unless one was named. `first`: the
    scope of which it tells what comes next and how long runs took.
    """

    as_of: int
    name: str
    scope: str | None
    first: str
    job: JobSeen
    complete: list[LineComplete]
    strips: Grid
    hidden: int
    coming: list[Placed]
    took: list[Took]
    range: str
    within: list[Checked]
    runs: list[Window]


def see(asked: Asked) -> Callable[[], Operation[JobPage]]:
    name, scope = asked.path["name"], asked.text("scope") or None
    since, until = asked.text("since"), asked.text("until")
    wanted = f"{since}..{until}" if since or until else ""
    is_list = asked.form != "html"

    async def look() -> JobPage:
        instant = await now()
        current = await current_name(name)
        seen = await job(current)
        shown = [known for known in seen.lines if known.line is not None and scope in (None, known.line.scope)]
        if not shown:
            scopes = ", ".join(repr(known.line.scope) for known in seen.lines[:5] if known.line is not None)
            raise UnknownScope(f"scope: {current} has no scope {scope!r}; its roster has {scopes}")
        first = shown[0]
        strips: list[Any] = []
        for known in shown[:LINES]:
            assert known.line is not None
            strips += (await grid(current, known.line.scope, columns=WINDOWS)).lines
        coming = [] if first.version is None else await _coming(first, instant)
        return JobPage(
            instant,
            current,
            scope,
            "" if first.line is None else first.line.scope,
            seen,
            await complete_lines(current, scope),
            Grid(instant, strips),
            len(shown) - LINES,
            coming,
            [] if first.series is None else await durations(first.series.id),
            wanted,
            await check_range(current, scope, wanted) if wanted else [],
            await runs(current, scope, limit=RUNS) if is_list else [],
        )

    return look


async def _coming(known: Any, instant: int) -> list[Placed]:
    from itertools import islice

    placed = placed_after(await spells_of_line(known), instant)
    return [each for each in islice(placed, NEXT) if known.line.owes(each.occurrence.due)]


def show(seen: JobPage, showing: Showing) -> dict[str, Any]:
    known = seen.job.lines[0]
    zone = "UTC" if known.version is None else known.version.zone
    scope = ["--scope", seen.scope] if seen.scope else []
    took = seen.took
    within = [window for checked in seen.within for window in checked.windows]

    def beside(name: str) -> str:
        return showing.url(with_fields(f"{job_path(seen.name)}/{name}", {"scope": seen.scope}))

    return {
        "title": seen.name,
        "job": seen.job,
        "known": known,
        "name": seen.name,
        "scope": seen.scope,
        "scopes": [each.line.scope for each in seen.job.lines if each.line is not None and each.line.scope],
        "schedule": None if known.version is None else known.version.words,
        "policies": policies(known.job),
        "pauses": pauses(seen.job, seen.as_of),
        "complete": seen.complete[:LINES],
        "strips": [line for line in seen.strips.lines if line.windows],
        "strip_name": window_name,
        "hidden": seen.hidden,
        "coming": [_coming_row(placed) for placed in seen.coming],
        "versions": list(_versions(seen.job)),
        "took": took,
        "lag": middle_and_high([one.lag for one in took]),
        "duration": middle_and_high([one.duration for one in took]),
        "plot": _plot(took, zone, showing),
        "took_of": "" if seen.scope else seen.first,
        "job_url": beside("job.json"),
        "durations_url": beside("durations.json"),
        "runs_url": beside("runs.csv"),
        "range": seen.range,
        "within": within[:RANGE],
        "within_more": len(within) > RANGE or any(checked.more for checked in seen.within),
        "twin": showing.twin("duly", "jobs", "show", seen.name),
        "twin_status": showing.twin("duly", "status", seen.name, *scope),
        "zone": zone,
    }


def _coming_row(placed: Placed) -> dict[str, Any]:
    occurrence, schedule = placed.occurrence, placed.spell.schedule
    return {
        "name": nominal_text(schedule.grain, occurrence.nominal, schedule.zone),
        "length": length((occurrence.start, occurrence.end)),
        "start": occurrence.start,
        "end": occurrence.end,
        "due": occurrence.due,
        "note": "; ".join(filter(None, ("seam" if placed.is_seam else "", night_note(schedule, occurrence)))),
    }


def _versions(seen: JobSeen) -> Iterator[dict[str, Any]]:
    """The versions, the newest first, each with what it changed."""
    for place in range(len(seen.versions) - 1, -1, -1):
        version = seen.versions[place]
        changes = [] if place == 0 else what_changes(schedule_of(seen.versions[place - 1]), schedule_of(version))
        yield {"version": version, "changes": changes, "in_force": version.number == seen.lines[0].job.version}


def _plot(took: list[Took], zone: str, showing: Showing) -> Any:
    newest = took[-60:]
    titles = [f"due {showing.words(one.due, zone)}: took {span(one.duration)}" for one in newest]
    return bars([one.duration for one in newest], titles, f"how long the last {len(newest)} runs took")


def job_document(seen: JobPage) -> Document:
    facts: dict[str, Json] = {
        "as_of": iso(seen.as_of),
        **job_as_json(seen.job),
        "versions": [version_as_json(version) for version in seen.job.versions],
    }
    lines = [line for line in complete_as_json(seen.complete) if isinstance(line, dict)]
    return Document("duly.job.v1", facts, "lines", lines)


def runs_document(seen: JobPage) -> Document:
    return Document("duly.runs.v1", {"as_of": iso(seen.as_of)}, "runs", [as_json(window) for window in seen.runs])


def periods_document(seen: JobPage) -> Document:
    facts: dict[str, Json] = {"as_of": iso(seen.as_of), "lines": complete_as_json(seen.complete)}
    return Document("duly.grid.v1", facts, "periods", cells_as_json(seen.strips))


def durations_document(seen: JobPage) -> Document:
    records: list[dict[str, Json]] = [
        {
            "due": iso(one.due),
            "started_at": iso(one.started_at),
            "ended_at": iso(one.ended_at),
            "lag_seconds": one.lag // SECOND,
            "duration_milliseconds": one.duration // 1_000,
        }
        for one in seen.took
    ]
    facts: dict[str, Json] = {"as_of": iso(seen.as_of), "job": seen.name, "scope": seen.first}
    return Document("duly.durations.v1", facts, "runs", records)


PAGE = Page(
    "job",
    "/job/{name}",
    "",
    see,
    show,
    {
        "/job/{name}/job": job_document,
        "/job/{name}/runs": runs_document,
        "/job/{name}/periods": periods_document,
        "/job/{name}/durations": durations_document,
    },
)
