"""Of all lines: what needs somebody, as `duly status` says; and the grid over time, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from duly.evidence import names
from duly.evidence.axis import COMING, MOST, PAST, axis_from, axis_until
from duly.evidence.complete_through import complete_lines
from duly.evidence.documents.status import needs_as_json, status_as_json
from duly.evidence.over_time import over_time
from duly.evidence.status import status
from duly.evidence.verdict import lines
from duly.ledger.ask import now
from duly.schedule.keys import parse_nominal
from duly.times import SECOND, Zone
from duly.web.api.read import Found, Read, listed
from duly.web.api.values import FLAG, JOB, NAME, SCOPE, Parameter, whole, words
from duly.web.pages.grid import Filters, GridSeen, document, is_wanted, most_frequent_zone

if TYPE_CHECKING:
    from duly.ledger.records import Known
    from duly.web.api.read import Wanted

OF_JOB = Parameter("job", JOB, "Only this job.")
OF_SCOPE = Parameter("scope", SCOPE, "Only this scope.")
LINE = {"type": "string", "maxLength": 1_000, "pattern": "^(?:[^/\\u0000]+/)?[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}


async def named(wanted: Wanted) -> tuple[str | None, str | None]:
    """The job and the scope that a query names, if it does. Raises as `names.named`."""
    return await names.named(wanted.text("job"), wanted.text("scope"))


async def _status(wanted: Wanted) -> Found:
    name, scope = await named(wanted)
    seen = await status(name, scope)
    return Found({**status_as_json(seen, await complete_lines(name, scope)), "needs": [*needs_as_json(seen)]})


async def _grid(wanted: Wanted) -> Found:
    instant = await now()
    unit = wanted.text("unit") or "day"
    filters = Filters(
        wanted.text("job") or "",
        wanted.text("scope") or "",
        wanted.text("owner") or "",
        "yes" if wanted.flag("retired") else "",
        unit,
        wanted.text("zone") or "",
        wanted.text("from") or "",
        int(wanted.values.get("n", PAST[unit] + COMING[unit])),
        wanted.limit,
        1,
    )
    every_line = [known for known in await lines() if is_wanted(known, filters, instant)]
    zone = filters.zone or most_frequent_zone(every_line)
    since = _begin(filters.since, zone)
    axis = (
        axis_until(unit, zone, instant, filters.n, COMING[unit])
        if since is None
        else axis_from(unit, zone, since, filters.n)
    )
    place = _line(wanted.text("after"))
    ahead = every_line[_beyond(every_line, place) :]
    page = ahead[: wanted.limit]
    seen = GridSeen(instant, filters, axis, await over_time(page, axis, instant), len(every_line), [], [])
    made = document(seen)
    return Found({**made.facts, "cells": [*made.records]}, _text(page[-1]) if len(ahead) > len(page) else None)


def _beyond(found: list[Known], place: tuple[str, str] | None) -> int:
    """Where the lines begin that come after one, in the order of the database, which may not be ours."""
    if place is None:
        return 0
    there = (number for number, known in enumerate(found, 1) if _names(known) == place)
    return next(there, sum(_names(known) <= place for known in found))


def _names(known: Known) -> tuple[str, str]:
    return known.job.name, "" if known.line is None else known.line.scope


def _text(known: Known) -> str:
    job, scope = _names(known)
    return f"{quote(scope, safe='')}/{job}" if scope else job


def _line(place: str | None) -> tuple[str, str] | None:
    """The job and scope that a place names."""
    if place is None:
        return None
    scope, _, job = place.rpartition("/")
    return job, unquote(scope, errors="replace")


def _begin(day: str, zone: str) -> int | None:
    """When a day begins in a zone. Raises `ScheduleError` for a zone that there is not."""
    if not day:
        return None
    civil = parse_nominal(day)[1] >> 1
    return (civil - Zone(zone).offsets_of(civil)[0]) * SECOND


READS = (
    Read(
        "status",
        "/status",
        "What needs a person, what runs, and how far each line is complete",
        "duly.status.v1",
        (OF_JOB, OF_SCOPE),
        _status,
    ),
    Read(
        "grid",
        "/grid",
        "Lines by pieces of time, the worst state of each cell",
        "duly.over_time.v1",
        (
            Parameter("job", NAME, "Only jobs whose names hold this."),
            OF_SCOPE,
            Parameter("owner", NAME, "Only jobs of this owner."),
            Parameter("retired", FLAG, "Also what was retired."),
            Parameter("unit", {**words("hour", "day", "week"), "default": "day"}, "How long a piece is."),
            Parameter("zone", NAME, "The zone of the pieces: of most lines where it is left out."),
            Parameter("from", {"type": "string", "format": "date"}, "The first day: else the pieces end with now."),
            Parameter("n", whole(1, MOST), "How many pieces."),
            *listed(LINE),
        ),
        _grid,
        is_list=True,
    ),
)
