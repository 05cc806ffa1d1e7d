"""Jobs: what the ledger knows of each, with its roster and the versions of its schedule."""

from __future__ import annotations

from duly.errors import UnknownJob
from duly.evidence.verdict import lines
from duly.ledger.ask import Statement, every
from duly.ledger.records import Known, Version
from duly.ledger.spells import VERSIONS_OF
from duly.records import record

FORMER_NAMES = Statement("former_names", "select name from duly_former_name where job = :job order by at, name")


@record
class JobSeen:
    """A job with its lines, by scope, its versions, the oldest first, and the names that it had before."""

    lines: list[Known]
    versions: list[Version]
    former_names: list[str]

    @property
    def next_due(self) -> int | None:
        """When the first of its lines comes due."""
        dues = [k.line.next_due for k in self.lines if k.line is not None and k.line.next_due is not None]
        return min(dues, default=None)


async def jobs() -> list[JobSeen]:
    """Every job of the ledger, by name."""
    by_name: dict[str, list[Known]] = {}
    for known in await lines():
        by_name.setdefault(known.job.name, []).append(known)
    return [await seen_of(found) for found in by_name.values()]


async def job(name: str) -> JobSeen:
    """One job. Raises `UnknownJob`."""
    found = await lines(name)
    if not found:
        raise UnknownJob(f"the ledger knows no job {name!r}")
    return await seen_of(found)


async def seen_of(found: list[Known]) -> JobSeen:
    """A job, of whose lines all are given."""
    job = found[0].job.id
    return JobSeen(found, await every(VERSIONS_OF, Version, job=job), await every(FORMER_NAMES, str, job=job))
