"""Of jobs: all of them, one with its schedule and policies, and its windows, whether or not they have a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import UnknownScope
from duly.evidence.batches import jobs_after, windows_after
from duly.evidence.complete_through import LineComplete, complete_lines, completeness_of
from duly.evidence.documents.grid import cells_as_json
from duly.evidence.documents.job import job_as_json, version_as_json
from duly.evidence.documents.window import complete_as_json, iso
from duly.evidence.grid import Grid
from duly.evidence.jobs import job
from duly.ledger.address import current_name, known_or_raise
from duly.ledger.ask import now
from duly.web.api.read import Found, Read, listed
from duly.web.api.reads.of_lines import OF_SCOPE
from duly.web.api.values import FLAG, JOB, Parameter, place, place_of

if TYPE_CHECKING:
    from duly.web.api.read import Wanted


async def _jobs(wanted: Wanted) -> Found:
    found, after = await jobs_after(wanted.text("after") or "", retired=wanted.flag("retired"), limit=wanted.limit)
    return Found({"jobs": [job_as_json(each) for each in found]}, after)


async def _job(wanted: Wanted) -> Found:
    name = await current_name(wanted.path["name"])
    seen = await job(name)
    return Found(
        {
            "as_of": iso(await now()),
            **job_as_json(seen),
            "versions": [version_as_json(version) for version in seen.versions],
            "lines": complete_as_json(await complete_lines(name)),
        }
    )


async def _windows(wanted: Wanted) -> Found:
    instant, name, scope = await now(), await current_name(wanted.path["name"]), wanted.text("scope")
    seen = await job(name)
    if scope is not None and all(known.line is None or known.line.scope != scope for known in seen.lines):
        await known_or_raise(name, scope)
        raise UnknownScope(f"scope: {name} has no scope {scope!r}")
    found, after = await windows_after(wanted.after, name, scope, limit=wanted.limit)
    lines = [LineComplete(each.known, await completeness_of(each.known, instant)) for each in found]
    cells = [*cells_as_json(Grid(instant, found))]
    return Found({"as_of": iso(instant), "lines": complete_as_json(lines), "periods": [*cells]}, place_of(after))


READS = (
    Read(
        "jobs",
        "/jobs",
        "Jobs, by name",
        "duly.jobs.v1",
        (Parameter("retired", FLAG, "Also those that were retired."), *listed(JOB)),
        _jobs,
        is_list=True,
    ),
    Read(
        "windows",
        "/job/{name}/windows",
        "The windows of a job that have come due, the newest of each line first",
        "duly.grid.v1",
        (OF_SCOPE, *listed(place(2))),
        _windows,
        is_list=True,
    ),
    Read(
        "job", "/job/{name}", "A job, the versions of its schedule, and how far it is complete", "duly.job.v1", (), _job
    ),
)
