"""Jobs: what the ledger knows of each, with its roster and the versions of its schedule."""

from __future__ import annotations

from duly.errors import UnknownJob
from duly.evidence.verdict import lines
from duly.ledger.ask import every
from duly.ledger.records import Known, Version
from duly.ledger.spells import VERSIONS_OF
from duly.records import record


@record
class JobSeen:
    """A job with its lines, by scope, and its versions, the oldest first."""

    lines: list[Known]
    versions: list[Version]

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
    return [JobSeen(found, await _versions(found)) for found in by_name.values()]


async def job(name: str) -> JobSeen:
    """One job. Raises `UnknownJob`."""
    found = await lines(name)
    if not found:
        raise UnknownJob(f"the ledger knows no job {name!r}")
    return JobSeen(found, await _versions(found))


async def _versions(found: list[Known]) -> list[Version]:
    return await every(VERSIONS_OF, Version, job=found[0].job.id)
