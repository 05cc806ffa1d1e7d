"""Spells of a job: the versions of its schedule that the ledger holds, each with the time that it answers for.

What a spell is and yields is pure, and stands in `schedule/spells.py`.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, every
from duly.ledger.records import VERSION_COLUMNS, Job, Known, Version
from duly.ledger.register import schedule_of, scheduled
from duly.schedule.spells import Spell, due_after, due_before, find_nominal, lookup, windows_after

__all__ = [
    "VERSIONS_OF",
    "Spell",
    "due_after",
    "due_before",
    "find_nominal",
    "lookup",
    "spell_in_force",
    "spells_of",
    "spells_of_job",
    "windows_after",
]

VERSIONS_OF = Statement(
    "versions_of", f"select {VERSION_COLUMNS} from duly_version v where v.job = :job order by v.number"
)


def spell_in_force(known: Known) -> Spell:
    """The version in force with its spell, which has no end yet. Raises `NoSchedule` for a job without one."""
    schedule, _, _ = scheduled(known)
    assert known.version is not None
    return Spell(schedule, known.version.number, known.version.effective_from or None, None)


async def spells_of(known: Known) -> list[Spell]:
    """The spells of a job under the zone and grain in force, oldest first. Raises as `spell_in_force`."""
    scheduled(known)
    assert known.version is not None
    return await spells_of_job(known.job, known.version)


async def spells_of_job(job: Job, in_force: Version) -> list[Spell]:
    """As `spells_of`, of a job that may have no line yet. `in_force` is its version now."""
    if in_force.number == 1:
        return [Spell(schedule_of(in_force), 1, in_force.effective_from or None, None)]
    versions = await every(VERSIONS_OF, Version, job=job.id)
    beginnings = [version.effective_from for version in versions]
    return [
        Spell(schedule_of(version), version.number, version.effective_from or None, until)
        for version, until in zip(versions, [*beginnings[1:], None], strict=True)
        if (version.zone, version.grain) == (in_force.zone, in_force.grain)
    ]
