"""Over time: what each line did in each piece of an axis, the worst of it first; for many lines and many windows at once.

A piece in which every window that the schedule has is settled is only counted: one statement counts the rows of all lines, and
the schedule says how many there should be. Any other piece is judged window by window, by the judgement that every view rests
on. So what is well costs next to nothing, however dense it is, and what is not is told in the words of all other views. Of a
line that comes due every few minutes the hours of a day are counted apart: a window that is missing has those of its hour
judged, and not those of its day. What began before a line did, and what was pruned, is *not recorded*: nobody can say that it
went well.

A period that is longer than the pieces spans them.
"""

from __future__ import annotations

from itertools import groupby

from duly.evidence import verdict
from duly.evidence.axis import Axis
from duly.evidence.pieces import Pieces, lies_at
from duly.evidence.verdict import Window, windows_of_many
from duly.ledger import states
from duly.ledger.ask import Statement, every
from duly.ledger.backfill_states import ors
from duly.ledger.message_states import UNSETTLED
from duly.ledger.records import SERIES_COLUMNS, VERSION_COLUMNS, Known, Series, Version
from duly.ledger.spells import Placed, Spell, spell_in_force, spells_with, tiles_after
from duly.records import record
from duly.times import DAY, SECOND, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from duly.schedule.occurrence import Occurrence

    # The spells of a line, and by zone and grain what is known of it with the series of these.
    _Placing: TypeAlias = tuple[list[Spell], dict[tuple[str, str], Known]]

    # Rows of a series in a part of civil time, in a pass of an hour that comes twice, and in a state: how many they are.
    _Part: TypeAlias = tuple[int, int, str, int]

# The worst first. What is not recorded is no better than what is well: it stands where nothing else does.
WORST_FIRST = (
    *(verdict.UNKNOWN, verdict.FAILED, verdict.MISSING, verdict.LATE, verdict.UNDELIVERED, verdict.RETRYING),
    *(
        verdict.DUE,
        verdict.RUNNING,
        verdict.COMPLETE,
        verdict.SKIPPED,
        verdict.COMING,
        verdict.PRUNED,
        verdict.NOT_OWED,
    ),
)
_RANK = {word: rank for rank, word in enumerate(WORST_FIRST)}
NOT_RECORDED = (verdict.NOT_OWED, verdict.PRUNED)

_BAD = {states.UNKNOWN: verdict.UNKNOWN, states.FAILED: verdict.FAILED}

JUDGE_AT_MOST = 20_000  # windows that are judged one by one for one view
_RUNS_AT_MOST = 20_000  # that have messages to be delivered
_MANY = 4  # windows of an hour
_FEW = 16  # windows that are read with others sooner than asked for apart from them

ROWS_IN_PIECES = Statement(
    "rows_in_pieces",
    # A name is 2 x civil seconds: what is divided by a unit of them is an hour or a day on the wall of its zone. The joins are
    # crossed, for SQLite takes them in this order then: from the lines of the page to their rows, and not through all series.
    # Counted by their state, and not a sum for each: that takes SQLite twice as long.
    """
select r.series, r.nominal / :unit, r.nominal % 2, r.state, count(*)
  from duly_job j
 cross join duly_line l
 cross join duly_version v
 cross join duly_series s
 cross join duly_run r
 where (j.name, l.scope) >= (:first_name, :first_scope) and (j.name, l.scope) <= (:last_name, :last_scope)
   and l.job = j.id
   and v.job = j.id and v.number = j.version
   and s.line = l.id and s.zone = v.zone and s.grain = v.grain
   and r.series = s.id and r.nominal between :first and :last
   and r.state <> 'replaced'
 group by 1, 2, 3, 4
""",
)

UNDELIVERED = Statement(
    "undelivered_names",
    f"""
select distinct m.series, m.nominal
  from duly_message m
 where {ors("m.state", UNSETTLED)} and m.nominal between :first and :last
 limit :limit
""",
)


@record
class Cell:
    """What a line did in some pieces that follow one another: one, or as many as its window is long.

    `word` is the worst state of its windows; `total` are all that it has, `done` those that are complete or skipped, `coming`
    those that are not due yet. `windows` are those that were judged one by one, where counting was not enough.
    `unseen`: too many are not settled to look at each.
    """

    place: int
    span: int
    word: str
    total: int
    done: int
    coming: int
    windows: list[Window]
    unseen: bool = False

    @property
    def is_recorded(self) -> bool:
        """Whether anything can be said of it: it is owed, and was not pruned."""
        return self.word not in NOT_RECORDED

    @property
    def worst(self) -> Window | None:
        """The window that gave it its word, where it was looked at."""
        return min(self.windows, key=lambda w: (_RANK[w.verdict.word], -(w.due or 0)), default=None)


@record
class LineOverTime:
    """A line with its cells, in order; a piece that no window lies in has none."""

    known: Known
    cells: list[Cell]


@record
class _Rows:
    """The rows of lines by series, in parts of civil time of so many units: two to the second, as names are."""

    unit: int
    parts: dict[int, list[_Part]]


class _Plan:
    """What is to be judged of a line: its windows, by series, and what is made of them then."""

    def __init__(
        self, asks: list[tuple[Known, list[Occurrence]]], finish: Callable[[list[list[Window]]], list[Cell]]
    ) -> None:
        self.asks = asks
        self.finish = finish

    @property
    def many(self) -> int:
        return sum(len(occurrences) for _, occurrences in self.asks)


async def over_time(lines: list[Known], axis: Axis, instant: int) -> list[LineOverTime]:
    """What these lines, which are in the order of `verdict.lines`, did in the pieces of an axis.

    First it is said of each what has to be looked at, then all of that is read at once: it takes as many statements as one
    line does.
    """
    pieces = Pieces(axis.starts(), axis.end)
    undelivered = await _undelivered(axis)
    # Where not all messages are known that are to be delivered, nothing is well because it was counted.
    quick = [] if undelivered is None else [known for known in lines if _is_quick(known, pieces)]
    laid_on = _laid_on(quick, pieces)
    rows = await _rows(quick, axis, by_hours=any(theirs is not pieces for theirs in laid_on.values()))
    others = [
        known for known in lines if known.line is not None and known.line.id not in laid_on and _has_windows(known)
    ]
    placing = await _placing(others)
    left = JUDGE_AT_MOST
    planned: dict[int, _Plan] = {}
    # Those with few windows first: one that comes due every few seconds would leave nothing for those named after it, and what
    # has failed there would not be looked at.
    for known in sorted(lines, key=lambda known: sum(pieces.expected(known)) if _has_windows(known) else 0):
        line, series = known.line, known.series
        assert line is not None
        if series is None or not _has_windows(known):
            plan = _Plan([], lambda _: [])
        elif line.id in laid_on:
            waiting = (undelivered or {}).get(series.id, [])
            plan = _counted(known, laid_on[line.id], rows, waiting, instant, left)
            if laid_on[line.id] is not pieces:
                plan = _Plan(plan.asks, _together(plan.finish, laid_on[line.id], pieces))
        else:
            plan = _judged(known, *placing[line.id], pieces, instant, left)
        left -= plan.many
        planned[line.id] = plan
    plans = [planned[known.line.id] for known in lines if known.line is not None]
    judged = iter(await windows_of_many([ask for plan in plans for ask in plan.asks], instant))
    found = [plan.finish([next(judged) for _ in plan.asks]) for plan in plans]
    return [LineOverTime(known, cells) for known, cells in zip(lines, found, strict=True)]


def _has_windows(known: Known) -> bool:
    return known.version is not None and known.series is not None


def _is_quick(known: Known, pieces: Pieces) -> bool:
    """Whether a line may be counted: one schedule names all its windows, and they are no longer than the pieces."""
    version = known.version
    if version is None or known.series is None or known.job.version != 1 or version.calendar:
        return False
    return sum(pieces.expected(known)) * 4 >= len(pieces.starts) * 3


# -- counted ------------------------------------------------------------------------------------------------------------


def _laid_on(quick: list[Known], pieces: Pieces) -> dict[int, Pieces]:
    """By line the pieces that it is counted in: those of the axis, or hours.

    It is hours where a line comes due several times in each, and the rows of all lines make fewer groups by far than they are.
    """
    hours = pieces.hours()
    many = {known.line.id: sum(pieces.expected(known)) for known in quick if known.line is not None}
    of_hour = len(hours.starts)
    pays = len(pieces.starts) < of_hour and sum(many.values()) >= _MANY * sum(min(of_hour, n) for n in many.values())
    return {line: hours if pays and n >= _MANY * of_hour else pieces for line, n in many.items()}


async def _rows(quick: list[Known], axis: Axis, *, by_hours: bool) -> _Rows:
    """The rows of lines by series, in parts of civil time, each of which begins where a piece does or within it."""
    if not quick:
        return _Rows(1, {})
    in_step = not by_hours and axis.unit != "hour"
    in_step = in_step and all(known.version is not None and known.version.zone == axis.zone for known in quick)
    is_hour = (by_hours or axis.unit == "hour") and _whole_hours(quick, axis)
    unit = 2 * (86_400 if in_step else 3_600 if is_hour else 900)
    first, last = quick[0], quick[-1]
    assert first.line is not None
    assert last.line is not None
    found = await every(
        ROWS_IN_PIECES,
        lambda *cells: cells,
        unit=unit,
        **_names(axis),
        first_name=first.job.name,
        first_scope=first.line.scope,
        last_name=last.job.name,
        last_scope=last.line.scope,
    )
    parts: dict[int, list[_Part]] = {known.series.id: [] for known in quick if known.series is not None}
    for series, *part in found:
        if series in parts:
            parts[series].append((part[0], part[1], part[2], part[3]))
    return _Rows(unit, parts)


def _whole_hours(quick: list[Known], axis: Axis) -> bool:
    """Whether an hour on one wall is an hour on all others."""
    zones = {known.version.zone for known in quick if known.version is not None} | {axis.zone}
    seconds = (axis.start // SECOND, axis.end // SECOND)
    return all(Zone(zone).offset_at(second) % 3_600 == 0 for zone in zones for second in seconds)


def _names(axis: Axis) -> dict[str, int]:
    """Between which names the windows lie that begin or are due on an axis: no zone is further than a day from UTC."""
    return {"first": 2 * ((axis.start - DAY) // SECOND), "last": 2 * ((axis.end + DAY) // SECOND)}


async def _undelivered(axis: Axis) -> dict[int, list[int]] | None:
    """By series the names of runs that have messages to be delivered; None where they are too many."""
    names = await every(UNDELIVERED, lambda *pair: pair, **_names(axis), limit=_RUNS_AT_MOST + 1)
    if len(names) > _RUNS_AT_MOST:
        return None
    found: dict[int, list[int]] = {}
    for series, nominal in names:
        found.setdefault(series, []).append(nominal)
    return found


def _counted(
    known: Known,
    pieces: Pieces,
    found: _Rows,
    undelivered: list[int],
    instant: int,
    left: int,
) -> _Plan:
    """The cells of a line whose windows are no longer than the pieces."""
    assert known.series is not None
    zone = known.series.zone
    expected = pieces.expected(known)
    many = len(expected)
    rows, completed, skipped = [0] * many, [0] * many, [0] * many
    bad: dict[int, set[str]] = {}
    for part, second, state, there in found.parts[known.series.id]:
        place = pieces.place_of_name(zone, found.unit, part, second)
        if 0 <= place < many:
            rows[place] += there
            if state == states.COMPLETED:
                completed[place] += there
            elif state == states.SKIPPED:
                skipped[place] += there
            elif state in _BAD:
                bad.setdefault(place, set()).add(_BAD[state])
    waiting = {pieces.place_of_name(zone, 2, name >> 1, name & 1) for name in undelivered}
    edge = _edges_of(known)
    cells: dict[int, Cell] = {}
    to_judge: list[int] = []
    for place, total in enumerate(expected):
        done = completed[place] + skipped[place]
        if total == 0 and rows[place] == 0:
            continue
        if rows[place] == done == total and place not in waiting:
            word = verdict.COMPLETE if completed[place] else verdict.SKIPPED
            cells[place] = Cell(place, 1, word, total, done, 0, [])
        elif rows[place] == 0 and (word := edge(pieces.edges[place], pieces.edges[place + 1], instant)):
            cells[place] = Cell(place, 1, word, total, 0, total if word == verdict.COMING else 0, [])
        else:
            to_judge.append(place)
    stretches, asks = list(_stretches(to_judge, expected)), []
    for stretch in stretches:
        occurrences = pieces.occurrences(known, stretch)
        asks.append((known, occurrences[-left:] if left > 0 else []))  # only so many of them, the newest
        left -= len(asks[-1][1])

    def finish(judged: list[list[Window]]) -> list[Cell]:
        for stretch, windows in zip(stretches, judged, strict=True):
            by_place: dict[int, list[Window]] = {}
            for window in windows:
                assert window.occurrence is not None
                by_place.setdefault(pieces.place(lies_at(window.known, window.occurrence)), []).append(window)
            for place in stretch:
                mine = by_place.get(place, [])
                if mine or expected[place]:
                    cells[place] = _cell(place, 1, mine, max(expected[place], len(mine)), bad.get(place, ()))
        return [cells[place] for place in sorted(cells)]

    return _Plan(asks, finish)


def _edges_of(known: Known) -> Callable[[int, int, int], str]:
    """Of pieces that have no row at all: which are wholly to come, or wholly not recorded, whatever windows they have."""
    line, series = known.line, known.series
    assert line is not None
    assert series is not None
    horizon = (series.horizon >> 1) * SECOND - 2 * DAY
    starts = line.starts
    begins = 0 if starts is None else min(starts, line.opened_until or starts) - 3 * DAY

    def word(start: int, end: int, instant: int) -> str:
        if start > instant:
            return verdict.COMING if line.ends is None or end <= line.ends else verdict.NOT_OWED
        if end <= horizon:
            return verdict.PRUNED
        return verdict.NOT_OWED if end <= begins or (line.ends is not None and start > line.ends) else ""

    return word


def _together(
    finish: Callable[[list[list[Window]]], list[Cell]], hours: Pieces, pieces: Pieces
) -> Callable[[list[list[Window]]], list[Cell]]:
    """The cells of hours, made cells of the pieces that these lie in."""

    def cells(judged: list[list[Window]]) -> list[Cell]:
        by_piece = groupby(finish(judged), key=lambda cell: pieces.place(hours.starts[cell.place]))
        return [_of_hours(place, list(theirs)) for place, theirs in by_piece]

    return cells


def _of_hours(place: int, cells: list[Cell]) -> Cell:
    # What the line began or was pruned in has windows that are none of its own, as `_cell` has it.
    counted = [cell for cell in cells if cell.is_recorded] or cells
    return Cell(
        place,
        1,
        min((cell.word for cell in counted), key=_RANK.__getitem__),
        sum(cell.total for cell in counted),
        sum(cell.done for cell in counted),
        sum(cell.coming for cell in counted),
        [window for cell in cells for window in cell.windows],
        any(cell.unseen for cell in counted),
    )


def _stretches(places: list[int], expected: list[int]) -> Iterator[list[int]]:
    """Places that are read together: those that follow one another, or with few windows between them, as to ask costs more."""
    stretch: list[int] = []
    for place in places:
        if stretch and sum(expected[stretch[-1] + 1 : place]) > _FEW:
            yield stretch
            stretch = []
        stretch.append(place)
    if stretch:
        yield stretch


# -- judged -------------------------------------------------------------------------------------------------------------

VERSIONS_OF_MANY = Statement(
    "versions_of_many",
    f"""
select v.job, {VERSION_COLUMNS}
  from duly_job j
  join duly_version v on v.job = j.id
 where j.name >= :first and j.name <= :last and j.version > 1
 order by v.job, v.number
""",
)

SERIES_OF_MANY = Statement(
    "series_of_many",
    f"""
select s.line, {SERIES_COLUMNS}
  from duly_job j
  join duly_line l on l.job = j.id
  join duly_series s on s.line = l.id
 where j.name >= :first and j.name <= :last and j.version > 1
 order by s.line, s.id
""",
)


async def _placing(lines: list[Known]) -> dict[int, _Placing]:
    """By line the spells that name its windows, and by zone and grain what is known of it with the series of these."""
    if not lines:
        return {}
    names = [known.job.name for known in lines]
    bounds = {"first": min(names), "last": max(names)}
    versions: dict[int, list[Version]] = {}
    series: dict[int, list[Series]] = {}
    if any(known.job.version != 1 for known in lines):
        for job, *cells in await every(VERSIONS_OF_MANY, lambda *cells: cells, **bounds):
            versions.setdefault(job, []).append(Version(*cells))
        for line, *cells in await every(SERIES_OF_MANY, lambda *cells: cells, **bounds):
            series.setdefault(line, []).append(Series(*cells))
    return {
        known.line.id: _placed_by(known, versions.get(known.job.id, []), series.get(known.line.id, []))
        for known in lines
        if known.line is not None
    }


def _placed_by(known: Known, versions: list[Version], series: list[Series]) -> _Placing:
    current = spell_in_force(known)
    if known.job.version == 1:
        return [current], {current.series: known}
    return spells_with(known, versions, series)


def _judged(
    known: Known,
    spells: list[Spell],
    by_series: dict[tuple[str, str], Known],
    pieces: Pieces,
    instant: int,
    at_most: int,
) -> _Plan:
    """The cells of a line with few windows, or several schedules: each window is judged, and a long one spans pieces.

    From the first that is too many on each piece says so: an empty one would say that nothing comes due there.
    """
    placed: list[Placed] = []
    unseen = len(pieces.starts)  # the first piece of which not each window is looked at
    for each in tiles_after(spells, pieces.edges[0]):
        if each.occurrence.start >= pieces.edges[-1]:
            break
        if len(placed) >= max(0, at_most):
            unseen = _span_of(each.spell, each.occurrence, pieces)[0]
            break
        placed.append(each)
    edge = _edges_of(known)
    kinds = list(dict.fromkeys(each.series for each in placed))
    asks = [(by_series[kind], [each.occurrence for each in placed if each.series == kind]) for kind in kinds]

    def finish(judged: list[list[Window]]) -> list[Cell]:
        theirs = {kind: iter(windows) for kind, windows in zip(kinds, judged, strict=True)}
        spans: dict[tuple[int, int], list[Window]] = {}
        for each in placed:
            window = next(theirs[each.series])
            spans.setdefault(_span_of(each.spell, each.occurrence, pieces), []).append(window)
        cells: list[Cell] = []
        for (first, beyond), mine in sorted(spans.items()):
            first = max(
                first, cells[-1].place + cells[-1].span if cells else 0
            )  # one that was changed begins where another ends
            if first < min(beyond, len(pieces.starts)):
                total = len(mine) if first < unseen else len(mine) + 1
                cells.append(_cell(first, min(beyond, len(pieces.starts)) - first, mine, total))
        seen = cells[-1].place + cells[-1].span if cells else 0
        for place in range(max(seen, unseen), len(pieces.starts)):
            word = edge(pieces.edges[place], pieces.edges[place + 1], instant)
            total = max(1, pieces.expected(known)[place])
            is_coming = word == verdict.COMING
            cells.append(Cell(place, 1, word, total, 0, total, []) if is_coming else _cell(place, 1, [], total))
        return cells

    return _Plan(asks, finish)


def _span_of(spell: Spell, occurrence: Occurrence, pieces: Pieces) -> tuple[int, int]:
    """The pieces of a window, half-open: of a period that covers two or more of them all, else the one that it lies in."""
    if spell.schedule.kind not in ("cron", "every"):
        first, beyond = pieces.edge(occurrence.start), pieces.edge(occurrence.end)
        if 2 * (occurrence.end - occurrence.start) > 3 * (pieces.edges[1] - pieces.edges[0]):
            return first, max(beyond, first + 1)
    at = occurrence.start if spell.schedule.kind not in ("cron", "every") else occurrence.due
    place = pieces.place(at)
    return place, place + 1


def _cell(place: int, span: int, windows: list[Window], total: int, bad: Iterable[str] = ()) -> Cell:
    """A cell of windows that were judged one by one. `bad`: what its rows say that there is, where not each was looked at."""
    words = [window.verdict.word for window in windows]
    done = words.count(verdict.COMPLETE) + words.count(verdict.SKIPPED)
    unseen = len(windows) < total
    # What has failed and may be tried again counts as failed there: a cell looks no better than what nobody has looked at.
    word = min([*words, *(bad if unseen else ())], key=_RANK.__getitem__, default=verdict.DUE)
    if word not in NOT_RECORDED:  # the line began in it: what was before is none of its windows
        total -= sum(words.count(each) for each in NOT_RECORDED)
    return Cell(place, span, word, total, done, words.count(verdict.COMING), windows, unseen)
