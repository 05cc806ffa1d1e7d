"""Spells: which version of a schedule answers for which time.

A version is in force from an instant on, until the next one is. A window belongs to the version whose spell its end lies
in, after the spell's beginning and up to its end; one that straddles the beginning starts there instead, so that the
windows of a line tile time across versions (I9). Pure, but for reading the versions.
"""

from __future__ import annotations

from duly.errors import WindowInvalid
from duly.ledger.ask import Statement, every
from duly.ledger.records import VERSION_COLUMNS, Known, Version
from duly.ledger.register import schedule_of, scheduled
from duly.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

VERSIONS_OF = Statement(
    "versions_of", f"select {VERSION_COLUMNS} from duly_version v where v.job = :job order by v.number"
)


@record
class Spell:
    """A schedule and the time that it answers for: windows with an end in (since, until]. None: without limit."""

    schedule: Schedule
    version: int
    since: int | None
    until: int | None

    def has(self, occurrence: Occurrence) -> bool:
        """Whether the window is this version's."""
        return (self.since is None or occurrence.end > self.since) and (
            self.until is None or occurrence.end <= self.until
        )

    def clipped(self, occurrence: Occurrence) -> Occurrence:
        """The window, starting no earlier than the spell."""
        if self.since is None or occurrence.start >= self.since:
            return occurrence
        return replace(occurrence, start=self.since)

    def after(self, instant: int) -> Iterator[Occurrence]:
        """The spell's windows due after this instant, in order."""
        for occurrence in self.schedule.after(instant):
            if self.until is not None and occurrence.end > self.until:
                return
            if self.has(occurrence):
                yield self.clipped(occurrence)

    def before(self, instant: int) -> Iterator[Occurrence]:
        """The spell's windows due by this instant, the newest first."""
        for occurrence in self.schedule.before(instant):
            if self.since is not None and occurrence.end <= self.since:
                return
            if self.has(occurrence):
                yield self.clipped(occurrence)

    def find(self, nominal: int) -> Occurrence | None:
        """The spell's window of this nominal, or None."""
        found = self.schedule.find(nominal)
        return self.clipped(found) if found is not None and self.has(found) else None


def spell_in_force(known: Known) -> Spell:
    """The version in force with its spell, which has no end yet. Raises `NoSchedule` for a job without one."""
    schedule, _, _ = scheduled(known)
    assert known.version is not None
    return Spell(schedule, known.version.number, known.version.effective_from or None, None)


async def spells_of(known: Known) -> list[Spell]:
    """The spells of a job under the zone and grain in force, oldest first. Raises as `spell_in_force`."""
    current = spell_in_force(known)
    assert known.version is not None
    if known.version.number == 1:
        return [current]
    versions = await every(VERSIONS_OF, Version, job=known.job.id)
    beginnings = [version.effective_from for version in versions]
    return [
        Spell(schedule_of(version), version.number, version.effective_from or None, until)
        for version, until in zip(versions, [*beginnings[1:], None], strict=True)
        if (version.zone, version.grain) == (known.version.zone, known.version.grain)
    ]


def due_after(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """The windows due after this instant under whichever version answers for them, in order."""
    for spell in spells:
        yield from spell.after(instant)


def due_before(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """The windows due by this instant under whichever version answers for them, the newest first."""
    for spell in reversed(spells):
        yield from spell.before(instant)


def find_nominal(spells: list[Spell], nominal: int) -> Occurrence | None:
    """The window of this nominal in the version that answers for it; None: off the grid."""
    found = (spell.find(nominal) for spell in reversed(spells))
    return next((occurrence for occurrence in found if occurrence is not None), None)


def lookup(spells: list[Spell], text: str) -> Occurrence:
    """The window that a person named, in the version that answers for it. Raises as `Schedule.lookup`."""
    found: list[Occurrence] = []
    refused: WindowInvalid | None = None
    for spell in reversed(spells):
        try:
            occurrence = spell.schedule.lookup(text)
        except WindowInvalid as e:
            refused = refused or e
            continue
        if spell.has(occurrence):
            found.append(spell.clipped(occurrence))
        else:
            refused = refused or WindowInvalid(
                f"{text} is a window of version {spell.version} of the schedule, which did not answer for that time"
            )
    if len(found) > 1:
        raise WindowInvalid(f"{text} names a window before and one after the schedule changed; write its time too")
    if found:
        return found[0]
    assert refused is not None  # there is at least one spell
    raise refused
