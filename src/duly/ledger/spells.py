"""Spells of a job: the versions of its schedule that the ledger holds, each with the time that it answers for.

What a spell is and yields is pure, and stands in `schedule/spells.py`. A zone and grain make a series of a line; the spells
of one series name its windows, those of all its series tile its time.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, every, one
from duly.ledger.records import SERIES_COLUMNS, VERSION_COLUMNS, Job, Known, Run, RunId, Series, Version
from duly.ledger.register import FIND_SERIES, schedule_of, scheduled
from duly.records import replace
from duly.schedule.spells import (
    Placed,
    Spell,
    due_after,
    due_before,
    find_nominal,
    lookup,
    place,
    placed_after,
    placed_before,
    tiles_after,
    windows_after,
)

__all__ = [
    "SERIES_OF_LINE",
    "VERSIONS_OF",
    "Placed",
    "Spell",
    "due_after",
    "due_before",
    "every_spell_of",
    "find_nominal",
    "known_by",
    "known_of",
    "lookup",
    "place",
    "placed_after",
    "placed_before",
    "spell_in_force",
    "spells_of",
    "spells_of_job",
    "spells_of_line",
    "spells_with",
    "tiles_after",
    "windows_after",
]

VERSIONS_OF = Statement(
    "versions_of", f"select {VERSION_COLUMNS} from duly_version v where v.job = :job order by v.number"
)

SERIES_OF_LINE = Statement(
    "series_of_line", f"select {SERIES_COLUMNS} from duly_series s where s.line = :line order by s.id"
)

SERIES_OF_RUN = Statement("series_of_run", f"select {SERIES_COLUMNS} from duly_series s where s.id = :series")

LINE_OF_SERIES = Statement("line_of_series", "select s.line from duly_series s where s.id = :series")


def spell_in_force(known: Known) -> Spell:
    """The version in force with its spell, which has no end yet. Raises `NoSchedule` for a job without one."""
    schedule, _, _ = scheduled(known)
    assert known.version is not None
    return Spell(schedule, known.version.number, known.version.effective_from or None, None)


async def spells_of(known: Known) -> list[Spell]:
    """The spells of the series that is known, oldest first: the one in force, or a former one. Raises as `spell_in_force`."""
    current = spell_in_force(known)
    if known.job.version == 1:
        return [current]
    return [spell for spell in await every_spell_of(known.job) if spell.series == current.series]


async def spells_of_line(known: Known) -> list[Spell]:
    """The spells that name windows of a line, in all its series, oldest first. Raises as `spell_in_force`.

    Of versions that had been replaced before the line began it has no series, and no window.
    """
    current = spell_in_force(known)
    if known.job.version == 1:
        return [current]
    assert known.line is not None
    series = {(one.zone, one.grain) for one in await every(SERIES_OF_LINE, Series, line=known.line.id)}
    return [spell for spell in await every_spell_of(known.job) if spell.series in series]


async def spells_of_job(job: Job, in_force: Version) -> list[Spell]:
    """As `spells_of`, of a job that may have no line yet. `in_force` is its version now."""
    return [spell for spell in await every_spell_of(job) if spell.series == (in_force.zone, in_force.grain)]


async def every_spell_of(job: Job) -> list[Spell]:
    """The spells of all versions of a job, oldest first."""
    return _spells(await every(VERSIONS_OF, Version, job=job.id))


def _spells(versions: list[Version]) -> list[Spell]:
    beginnings = [version.effective_from for version in versions]
    return [
        Spell(schedule_of(version), version.number, version.effective_from or None, until)
        for version, until in zip(versions, [*beginnings[1:], None], strict=True)
    ]


async def known_by(known: Known, zone: str, grain: str) -> Known | None:
    """What is known, with the series of a zone and grain and the last version that counted by it; None if none ever did.

    Windows of a series that is no longer in force are opened, claimed and judged by this.
    """
    if known.version is None or (known.version.zone, known.version.grain) == (zone, grain):
        return known
    assert known.line is not None
    versions = await every(VERSIONS_OF, Version, job=known.job.id)
    last = next((version for version in reversed(versions) if (version.zone, version.grain) == (zone, grain)), None)
    series = await one(FIND_SERIES, Series, line=known.line.id, zone=zone, grain=grain)
    return None if last is None or series is None else replace(known, version=last, series=series)


def spells_with(
    known: Known, versions: list[Version], series: list[Series]
) -> tuple[list[Spell], dict[tuple[str, str], Known]]:
    """As `spells_of_line` and `known_by`, of a line whose job's versions and whose series were read before. Pure."""
    found = {(one.zone, one.grain): one for one in series}
    spells = [spell for spell in _spells(versions) if spell.series in found]
    last = {(version.zone, version.grain): version for version in versions}
    theirs = {kind: replace(known, version=last[kind], series=found[kind]) for kind in last if kind in found}
    assert known.version is not None
    return spells, {**theirs, (known.version.zone, known.version.grain): known}


async def is_of_line(known: Known, run: RunId) -> bool:
    """Whether a run is of the line that is known."""
    if known.series is not None and run.series == known.series.id:
        return True
    assert known.line is not None
    return await one(LINE_OF_SERIES, int, series=run.series) == known.line.id


async def known_of(known: Known, run: Run | RunId) -> Known:
    """What is known, as `known_by`, for a run of the line, whichever its series. Of one outside any schedule: as it is."""
    if known.series is not None and run.series == known.series.id:
        return known
    series = await one(SERIES_OF_RUN, Series, series=run.series)
    assert series is not None  # a run's series is never deleted
    return await known_by(known, series.zone, series.grain) or known
