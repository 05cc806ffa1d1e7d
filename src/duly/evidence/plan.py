"""Plan: what another schedule would change, before anything does, beside what has been done.

What has begun, and whatever is not settled, stays as it is under its old keys; from the seam on the windows are those of the
new schedule. A look that changes nothing; `ledger.versions` does what it says.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice, takewhile

from duly.errors import UnknownJob
from duly.evidence.next import Range, next_change
from duly.evidence.status import never_opened
from duly.evidence.verdict import NOT_OWED, Window, lines, window_of_row, windows_of_line
from duly.ledger.ask import every, now
from duly.ledger.owed import UNSETTLED_OF_LINE
from duly.ledger.records import Known, Run, Version
from duly.ledger.register import same_schedule
from duly.ledger.spells import every_spell_of, spell_in_force, spells_of_line
from duly.ledger.versions import refuse_same_name, refuse_worked_ahead
from duly.records import record
from duly.schedule.spells import Placed, Spell, placed_after, placed_before, tiles_after
from duly.schedule.versions import Change, edited, preview, seam_of, what_changes
from duly.times import SECOND, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from duly.schedule.spec import Schedule

AT_MOST = 40  # changes that are shown; a range of one's own shows others
COMING = 3  # windows after the seam, of whichever schedule has the longer ones
KEPT_AT_MOST = 20  # windows that are not settled, the newest
DONE = 2  # windows that have come due, settled or not
KEPT = "stays"


@record
class Planned:
    """What becomes of a window: it `stays`, or what `Change` says; with how many lines have it in which state."""

    what: str
    window: Placed
    change: Change | None
    states: dict[str, int]


@record
class Plan:
    """What a schedule would change at an instant. `seam` is B, `first` the first new window, `changes` what differs in words.

    `series` is `same`, `new` or `returns`. Of a job without a schedule `before` is None, and nothing changes; where the
    schedule is in force already `changes` is empty.
    """

    as_of: int
    before: Version | None
    number: int
    schedule: Schedule
    changes: list[str]
    seam: int | None
    first: Placed | None
    series: str
    kept: list[Planned]
    planned: list[Planned]
    more: bool


async def plan(name: str, schedule: Schedule, wanted: Range | None = None) -> Plan:
    """What a schedule would change for all lines of a job, in a range, or from the seam on.

    Raises `UnknownJob`, and as `versions.apply` does.
    """
    instant = await now()
    known = await lines(name)
    if not known:
        raise UnknownJob(f"the ledger knows no job {name!r}; its first `duly exec` registers it")
    version = known[0].version
    if version is None:
        spell = Spell(schedule, 1, None, None)
        return Plan(
            instant, None, 1, schedule, [], None, next(placed_after([spell], instant), None), "new", [], [], False
        )
    if same_schedule(version, schedule):
        return Plan(instant, version, version.number, schedule, [], None, None, "same", [], [], False)
    in_force = spell_in_force(known[0])
    spells = await every_spell_of(known[0].job)
    after = edited(spells, schedule, instant)
    refuse_same_name(after)
    seam = seam_of(in_force, instant).since
    for each in known:
        await refuse_worked_ahead(each, after[-1], seam)
    changes = _changes(spells, schedule, instant, seam, wanted)
    kept = await _kept(known, spells, instant, seam)
    return Plan(
        instant,
        version,
        after[-1].version,
        schedule,
        what_changes(in_force.schedule, schedule),
        seam,
        next(tiles_after(after[-1:], seam), None),
        _series(spells, after[-1]),
        kept[-KEPT_AT_MOST:],
        await _planned(known, changes[:AT_MOST], instant),
        len(changes) > AT_MOST or len(kept) > KEPT_AT_MOST,
    )


def _series(spells: list[Spell], coming: Spell) -> str:
    if coming.series == spells[-1].series:
        return "same"
    return "returns" if any(spell.series == coming.series for spell in spells) else "new"


# -- which windows -------------------------------------------------------------------------------------------------------


def _changes(spells: list[Spell], schedule: Schedule, instant: int, seam: int, wanted: Range | None) -> list[Change]:
    """The changes in a range; without one from the seam over a few windows of both schedules, and where clocks are moved."""
    if wanted is not None:
        zone = spells[-1].schedule.zone
        begin = seam if wanted.begin is None else _instant(zone, wanted.begin)
        end = _a_few(spells, schedule, max(begin, seam)) if wanted.end is None else _instant(zone, wanted.end)
        return preview(spells, schedule, instant, begin, end)
    until = _a_few(spells, schedule, seam)
    found = preview(spells, schedule, instant, seam, until)
    for at in sorted(
        {change.at for zone in _zones(spells, schedule) if (change := next_change(zone, seam)) is not None}
    ):
        if at >= until:
            known = {_identity(change) for change in found}
            found += [c for c in preview(spells, schedule, instant, at - 1, at + 1) if _identity(c) not in known]
    return found


def _zones(spells: list[Spell], schedule: Schedule) -> list[str]:
    return [each.zone for each in (spells[-1].schedule, schedule) if each.kind != "every"]


def _a_few(spells: list[Spell], schedule: Schedule, since: int) -> int:
    """Where a few windows from an instant on have ended, of whichever of the two schedules has the longer ones."""
    ends = [since]
    for each in (spells[-1].schedule, schedule):
        spell = Spell(each, 0, None, None)
        for _, placed in zip(range(COMING), tiles_after([spell], since), strict=False):
            ends.append(placed.occurrence.end)
    return max(ends)


def _window(change: Change) -> Placed:
    """The window that a change is of: the old one, where there is one."""
    placed = change.before or change.after
    assert placed is not None  # a change is of something
    return placed


def _identity(change: Change) -> tuple[tuple[str, str], int]:
    placed = _window(change)
    return placed.series, placed.occurrence.nominal


def _instant(zone: str, civil: int) -> int:
    """The instant of a wall clock; of one that the clocks repeat the first."""
    return (civil - Zone(zone).offsets_of(civil)[0]) * SECOND


# -- beside what was done ------------------------------------------------------------------------------------------------


async def _kept(known: list[Known], spells: list[Spell], instant: int, seam: int) -> list[Planned]:
    """The windows up to the seam that are not settled, or that nobody opened yet, and the newest ones: they stay."""
    seen: list[Window] = []
    begun = [
        *list(islice(placed_before(spells, instant), DONE))[::-1],
        *takewhile(lambda placed: placed.occurrence.end <= seam, tiles_after(spells, instant)),
    ]
    for each in known:
        assert each.line is not None
        rows = await every(UNSETTLED_OF_LINE, Run, line=each.line.id)
        theirs = [await window_of_row(each, row, instant) for row in rows]
        theirs += (await never_opened(each, instant)).windows
        names = {window.run for window in theirs}
        theirs += [w for w in await _of_line(each, begun, instant) if w is not None and w.run not in names]
        seen += [window for window in theirs if window.bounds is not None and window.bounds[0] < seam]
    return _gathered(seen, spells)


def _gathered(windows: list[Window], spells: list[Spell]) -> list[Planned]:
    """The windows of several lines by name, in order of time, with how many lines have each in which state."""
    found: dict[tuple[tuple[str, str], int], list[Window]] = {}
    for window in sorted(windows, key=lambda w: w.bounds or (0, 0)):
        found.setdefault(((window.key.zone, window.key.grain), window.run.nominal), []).append(window)
    kept = []
    for (series, nominal), theirs in found.items():
        spell = next((s for s in reversed(spells) if s.series == series and s.find(nominal) is not None), None)
        occurrence = None if spell is None else spell.find(nominal)
        if spell is not None and occurrence is not None:
            kept.append(Planned(KEPT, Placed(spell, occurrence), None, _counted(w.verdict.word for w in theirs)))
    return kept


async def _planned(known: list[Known], changes: list[Change], instant: int) -> list[Planned]:
    """The changes, each with how many lines have the old window in which state."""
    olds = [change.before for change in changes if change.before is not None]
    words: list[list[str]] = [[] for _ in olds]
    for each in known:
        for place, window in enumerate(await _of_line(each, olds, instant)):
            words[place].append(NOT_OWED if window is None else window.verdict.word)
    counted = iter([_counted(each) for each in words])
    return [
        Planned(change.kind, _window(change), change, {} if change.before is None else next(counted))
        for change in changes
    ]


async def _of_line(known: Known, placed: list[Placed], instant: int) -> list[Window | None]:
    """The windows of a line in their order; None where it began too late to have one."""
    theirs = set() if known.series is None else {spell.series for spell in await spells_of_line(known)}
    found = iter(await windows_of_line(known, [each for each in placed if each.series in theirs], instant))
    return [next(found) if each.series in theirs else None for each in placed]


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words))
