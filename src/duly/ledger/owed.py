"""Owed: what is owed of a line, and what its catch-up policy drops (DESIGN §5). Looks only.

Windows are opened in the order of their bounds, each from where the one before was left as it is stored, whatever the
rules of the zone say today, or said there (I9). The line remembers that place. So what is owed are the windows that end
after it and have come due, and the runs that are unsettled, less what the policy drops. The same function answers for
`exec`, for `catch_up()` and for a daemon.
"""

from __future__ import annotations

from itertools import takewhile

from duly.ledger import states
from duly.ledger.ask import Statement, every, one
from duly.ledger.bounds import RULES_MAY_MOVE, Coming, Range, open_in_order, passed_over
from duly.ledger.records import LEASES, RUN_COLUMNS, Known, Line, Run, RunId, Series
from duly.ledger.spells import SERIES_OF_LINE, Spell, spell_in_force
from duly.ledger.windows import has_moved, is_sealed
from duly.records import record
from duly.schedule.occurrence import Occurrence
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# How many windows one transaction opens at most: a year of five-minute windows must not hold the writer for a second.
OPEN_AT_ONCE = 2_000

# How far back the newest window that is worked is looked for: a calendar has a business day within 400 days, but a line
# may have all its fires on days off.
LONGEST_HOLIDAY = 410 * DAY

UNSETTLED_OF_LINE = Statement(
    "unsettled_of_line",
    f"""
select {RUN_COLUMNS}
  from duly_series s
  join duly_run r on r.series = s.id
  {LEASES}
 where s.line = :line and {{unsettled}}
 order by r.due, r.series, r.nominal
""",
)

NEWEST_DUE = Statement(
    "newest_due",
    # The last of the newest names: where clocks are set back a name may come due after one that is higher.
    """
select nominal, due
  from (select nominal, due
          from duly_run
         where series = :series and due <= :as_of and window_start is not null and state <> 'skipped'
         order by nominal desc limit 200) newest
 order by due desc limit 1
""",
)


@record
class Owed:
    """What is owed at an instant: runs with a row, windows without one, what is dropped, and when more comes due.

    `fresh` have the bounds that they are to be stored with. `opened_until` is where the next window will start.
    """

    rows: list[Run]
    fresh: list[Occurrence]
    dropped_rows: list[Run]
    dropped: list[Range]  # windows without a row that are dropped
    opened_until: int
    next_due: int | None
    moved: list[Run]  # opened ahead of time, not sealed yet, and the zone's rules mean something else now
    more: bool = False  # windows have come due beyond those that one transaction opens
    newest: RunId | None = None  # the newest window that is due, where anything is unsettled or new

    @property
    def changes_the_ledger(self) -> bool:
        return bool(self.fresh or self.dropped_rows or self.dropped or self.moved or self.more)


async def owed(known: Known, *, as_of: int) -> Owed:
    """What is owed of a line at an instant. Raises `NoSchedule` for a job without one."""
    line, series = known.line, known.series
    assert line is not None
    open_ones = await every(UNSETTLED_OF_LINE, Run, line=line.id)
    unsettled = [run for run in open_ones if _due_by(run, as_of)]
    if not open_ones and line.opened_until is not None and nothing_due_yet(known, as_of):
        # The common case of a duplicate: settled, and nothing new. The schedule need not even be understood.
        return Owed([], [], [], [], line.opened_until, line.next_due, [])
    spell = spell_in_force(known)
    assert series is not None
    assert line.opened_until is not None  # it was seen under its schedule
    moved = [run for run in open_ones if not is_sealed(run, as_of) and await has_moved(run)]
    coming = _come_due(spell, line, series, known.job.catch_up, as_of)
    opening = await open_in_order(series, line.opened_until, coming)
    next_due = None if coming.following is None else coming.following.due
    more = next_due is not None and next_due <= as_of
    newest = await _newest(known, spell, series, as_of)
    kept, dropped = unsettled, []
    if known.job.catch_up != "each":
        kept = [run for run in unsettled if _stays_owed(run) or is_of(run, newest)]
        dropped = [run for run in unsettled if run not in kept]
    return Owed(kept, opening.fresh, dropped, coming.dropped, opening.until, next_due, moved, more, newest)


def nothing_due_yet(known: Known, as_of: int) -> bool:
    """Whether the line's own note says that no window has come due since its windows were opened.

    It was made under the zone's rules of then, on some host: where rules may change it is believed only from afar.
    """
    assert known.line is not None
    if known.line.next_due is None:
        return True
    certain = known.version is None or known.version.zone == "UTC"
    return known.line.next_due > as_of + (0 if certain else RULES_MAY_MOVE)


def _due_by(run: Run, as_of: int) -> bool:
    return run.due is not None and run.due <= as_of


def _stays_owed(run: Run) -> bool:
    """Runs that no catch-up policy drops: being worked, waiting for a person or for word, or asked for by a person."""
    return run.state in (states.RUNNING, states.UNKNOWN) or run.waits_for_a_person or run.asked_at is not None


def is_of(run: Run, window: RunId | None) -> bool:
    """Whether a run is of this window, whichever revision. Pure."""
    return window is not None and (run.series, run.nominal) == (window.series, window.nominal)


async def _newest(known: Known, spell: Spell, series: Series, as_of: int) -> RunId | None:
    """The newest window that is due and has a time of its own: of the version in force, else the newest that has a row.

    In whichever series: where the zone or grain has changed, the last window of before may come due after the first ones.
    """
    assert known.line is not None
    recent = takewhile(lambda o: o.due > as_of - LONGEST_HOLIDAY, spell.before(as_of))
    newest = next((o for o in recent if not o.off), None)
    found: list[tuple[int, RunId]] = []
    if newest is not None and not await passed_over(known, newest):
        found.append((newest.due, RunId(series.id, newest.nominal)))
        if known.job.version == 1:
            return found[0][1]
    for each in await every(SERIES_OF_LINE, Series, line=known.line.id):
        if found and each.id == series.id:
            continue
        row = await one(NEWEST_DUE, lambda nominal, due: (due, nominal), series=each.id, as_of=as_of)
        if row is not None:
            found.append((row[0], RunId(each.id, row[1])))
    return max(found, key=lambda one: one[0])[1] if found else None


def _come_due(spell: Spell, line: Line, series: Series, policy: str, as_of: int) -> Coming:
    """The windows that have come due since the line's windows were opened, as far as the policy keeps them. Pure."""
    assert line.opened_until is not None
    admitted = (o for o in _until_end(line, spell.ending_after(line.opened_until)) if o.nominal >= series.horizon)
    first = next(admitted, None)
    if first is None or first.due > as_of:
        return Coming([], [], first)
    if policy == "each":
        come = [first]
        for occurrence in admitted:
            if occurrence.due > as_of or len(come) == OPEN_AT_ONCE:
                return Coming(come, [], occurrence)
            come.append(occurrence)
        return Coming(come, [], None)
    by = as_of if line.ends is None else min(as_of, line.ends - 1)
    kept = newest_to_work(spell.before(by), line.opened_until)
    following = next(_until_end(line, spell.ending_after(kept[-1].end)), None)
    if kept[0].start <= first.start:
        return Coming(kept, [], following)
    before = next(o for o in spell.before(kept[0].due) if o.end <= kept[0].start)
    return Coming([before, *kept], dropped_ranges(spell, first, kept[0]), following)


def _until_end(line: Line, occurrences: Iterator[Occurrence]) -> Iterator[Occurrence]:
    return takewhile(lambda o: line.ends is None or o.due < line.ends, occurrences)


def newest_to_work(newest_first: Iterator[Occurrence], since: int) -> list[Occurrence]:
    """The newest window ending after `since` that is no day off, with the days off after it; those alone if all are off.

    Days off are skipped for a reason of their own, one by one. Looks no further back than `since`. Pure.
    """
    kept: list[Occurrence] = []
    for occurrence in newest_first:
        if occurrence.end <= since:
            break
        kept.append(occurrence)
        if not occurrence.off:
            break
    return kept[::-1]


def dropped_ranges(spell: Spell, first: Occurrence, newest: Occurrence) -> list[Range]:
    """Ranges of nominals over the windows from `first` on and before `newest`, and over no other. Pure.

    In the night on which clocks go back the order of windows in time is not the order of their nominals, and a range from
    01:15 to 02:45 would speak for 02:00~2, which has not come yet. So ranges are cut at every nominal of a window near
    their ends that is not dropped.
    """
    near = 2 * DAY
    beginning = [first, *_windows_between(spell, first.end, min(first.end + near, newest.start))]
    ending = _windows_between(spell, max(beginning[-1].end, newest.start - near), newest.start)
    dropped = sorted(o.nominal for o in (*beginning, *ending))
    others = [
        *_windows_between(spell, first.start - near, first.start),
        newest,
        *_windows_between(spell, newest.end, newest.end + near),
    ]
    kept = sorted(o.nominal for o in others)
    ranges: list[Range] = []
    for nominal in dropped:
        beyond = next((other for other in kept if other > nominal), nominal + 1)
        if ranges and ranges[-1].beyond == beyond:
            continue  # no window that is kept lies between it and the one before
        ranges.append(Range(nominal, beyond))
    return ranges


def _windows_between(spell: Spell, ends_after: int, starts_before: int) -> list[Occurrence]:
    return list(takewhile(lambda o: o.start < starts_before, spell.ending_after(ends_after)))
