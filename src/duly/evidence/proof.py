"""Proof: how many periods came due in a time, and how many of them are complete. Nothing in sight is no proof of anything: a
dashboard that shows no trouble because nobody looked would look the same.

The schedules say how many there should be, the rows how many there are.
"""

from __future__ import annotations

from itertools import takewhile

from duly.evidence.on_record import settled_in_spans
from duly.evidence.verdict import lines
from duly.ledger.ask import Statement, now, one
from duly.ledger.records import Known
from duly.ledger.spells import known_by, spell_in_force, spells_of_line
from duly.records import record
from duly.schedule.spells import Spell
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT_AT_MOST = 20_000  # windows of several schedules that are counted one by one for a line

SETTLED_BETWEEN = Statement(
    "settled_between",
    """
select sum(case when r.state = 'completed' then 1 else 0 end), sum(case when r.state = 'skipped' then 1 else 0 end)
  from duly_run r
 where r.series = :series and r.nominal between :first and :last and r.due > :since and r.due <= :until
""",
)


@record
class Proof:
    """Of the periods that came due in (since, until]: how many there are by the schedules, and how many are complete."""

    since: int
    until: int
    due: int
    complete: int
    skipped: int
    lines: int
    newest_end: int | None  # up to when the newest of them answers


async def proof(length: int = DAY, name: str | None = None, scope: str | None = None) -> Proof:
    """What came due in the time up to now, of the whole ledger, one job or one line."""
    until = await now()
    since = until - length
    found = await lines(name, scope)
    due = complete = skipped = 0
    newest: int | None = None
    whole = await _settled_in_all(found, since, until)
    for known in found:
        if known.version is None or known.line is None or known.line.starts is None:
            continue
        begin, end = max(since, known.line.starts - 1), known.line.owed_by(until)
        if begin >= end:
            continue
        for spell in [spell_in_force(known)] if known.job.version == 1 else await spells_of_line(known):
            due += _count(spell, begin, end)
        settled = whole.get(known.line.id) or await _settled(known, begin, end)
        complete += settled[0]
        skipped += settled[1]
        if known.job.version == 1:
            last = next(spell_in_force(known).before(end), None)
            if last is not None and last.due > begin:
                newest = max(newest or 0, last.end)
    return Proof(since, until, due, complete, skipped, len(found), newest)


def _count(spell: Spell, begin: int, end: int) -> int:
    """How many windows of a spell came due, days off left out."""
    if spell.since is None and spell.until is None and spell.schedule.calendar is None:
        return spell.schedule.count(begin, end)
    return sum(1 for _ in _due(spell, begin, end))


def _due(spell: Spell, begin: int, end: int) -> Iterator[object]:
    found = takewhile(lambda o: o.due <= end, spell.after(begin))
    return (occurrence for number, occurrence in enumerate(found) if number < COUNT_AT_MOST and not occurrence.off)


async def _settled_in_all(found: list[Known], since: int, until: int) -> dict[int, tuple[int, int]]:
    """By line how many of its rows that came due then are complete, and how many skipped: of lines of one schedule that were
    owed all that time, which are most.
    """
    spans: list[tuple[int, int, int]] = []
    of_series: dict[int, int] = {}
    for known in found:
        line, series = known.line, known.series
        if line is None or series is None or line.starts is None or known.version is None or known.job.version != 1:
            continue
        if line.starts > since or line.owed_by(until) != until:
            continue
        spell = spell_in_force(known)
        names = _names(spell, since, until)
        of_series[series.id] = line.id
        if names:
            spans.append((series.id, *_around(names)))
    settled = await settled_in_spans(spans, since, until)
    return {line: settled.get(series, (0, 0)) for series, line in of_series.items()}


def _names(spell: Spell, begin: int, end: int) -> list[int]:
    """The first and the last nominal of a spell that came due then. Pure."""
    first, last = next(spell.after(begin), None), next(spell.before(end), None)
    return [o.nominal for o in (first, last) if o is not None and begin < o.due <= end]


def _around(names: list[int]) -> tuple[int, int]:
    """Bounds of names: where clocks are set back a name may be higher than one that follows. Pure."""
    return min(names) - 4 * 3_600, max(names) + 4 * 3_600


async def _settled(known: Known, begin: int, end: int) -> tuple[int, int]:
    """How many of a line's rows that came due then are complete, and how many skipped."""
    done = [0, 0]
    spells = [spell_in_force(known)] if known.job.version == 1 else await spells_of_line(known)
    for series in dict.fromkeys(spell.series for spell in spells):
        theirs = await known_by(known, *series)
        if theirs is None or theirs.series is None:
            continue
        names = []
        for spell in spells:
            if spell.series == series:
                names += _names(spell, begin, end)
        if not names:
            continue
        first, last = _around(names)
        found = await one(
            SETTLED_BETWEEN,
            lambda *cells: cells,
            series=theirs.series.id,
            first=first,
            last=last,
            since=begin,
            until=end,
        )
        if found is not None:
            done = [done[0] + (found[0] or 0), done[1] + (found[1] or 0)]
    return done[0], done[1]
