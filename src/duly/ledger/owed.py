"""Owed: what is owed of a line, and what its catch-up policy drops (DESIGN §5). Looks only.

Occurrences that have come due since the line's windows were last opened, and the runs that are unsettled, less what the
policy drops. The same function answers for `exec`, for `catch_up()` and for a daemon.
"""

from __future__ import annotations

from itertools import takewhile

from duly.ledger import states
from duly.ledger.ask import Statement, every, one
from duly.ledger.records import LEASES, RUN_COLUMNS, Known, Line, Run, Series
from duly.ledger.spells import Spell, spell_in_force
from duly.ledger.windows import RULES_MAY_MOVE, has_moved, is_sealed
from duly.records import record, replace
from duly.schedule.occurrence import Occurrence
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.ledger.ask import Value

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
 where s.line = :line and r.state in {{unsettled}}
 order by r.due, r.series, r.nominal
""",
)

ROWS_BETWEEN = Statement(
    "rows_between",
    """
select nominal
  from duly_run
 where series = :series and nominal between :first and :last and revision = 1
""",
)

RANGES_BETWEEN = Statement(
    "ranges_between",
    """
select from_nominal, to_nominal
  from duly_skipped
 where series = :series and from_nominal <= :last and to_nominal > :first
""",
)

NEWEST_DUE = Statement(
    "newest_due",
    "select nominal from duly_run where series = :series and due <= :as_of order by due desc limit 1",
)

MADE_UNDER_OTHER_RULES = Statement(
    "made_under_other_rules",
    """
select r.nominal
  from duly_run r
  join duly_zone_facts f on f.id = r.zone_facts
 where r.series = :series
   and r.nominal >= (select max(n.nominal) from duly_run n where n.series = :series) - :near
   and (f.release <> :release or f.source <> :source)
 limit 1
""",
)


@record
class Range:
    """Half-open, in nominals."""

    first: int
    beyond: int


@record
class Owed:
    """What is owed at an instant: runs with a row, windows without one, what is dropped, and when more comes due."""

    rows: list[Run]
    fresh: list[Occurrence]
    dropped_rows: list[Run]
    dropped: list[Range]  # windows without a row that are dropped
    opened_until: int
    next_due: int | None
    moved: list[Run]  # opened ahead of time, not sealed yet, and the zone's rules mean something else now
    newest: int | None = None  # the nominal of the newest that is due, where anything is unsettled or new

    @property
    def changes_the_ledger(self) -> bool:
        return bool(self.fresh or self.dropped_rows or self.dropped or self.moved)


async def owed(known: Known, *, as_of: int) -> Owed:
    """What is owed of a line at an instant."""
    line = known.line
    assert line is not None
    open_ones = await every(UNSETTLED_OF_LINE, Run, line=line.id)
    unsettled = [run for run in open_ones if _due_by(run, as_of)]
    if not open_ones and line.opened_until is not None and nothing_due_yet(known, as_of):
        # The common case of a duplicate: settled, and nothing new. The schedule need not even be understood.
        return Owed([], [], [], [], line.opened_until, line.next_due, [])
    spell = spell_in_force(known)
    series = known.series
    assert series is not None
    moved = [run for run in open_ones if not is_sealed(run, as_of) and await has_moved(known, run)]
    coming = _come_due(spell, line, series, known.job.catch_up, as_of)
    fresh = await without_rows(series, coming.occurrences)
    more = coming.next_due is not None and coming.next_due <= as_of
    if not fresh and not coming.dropped and not more and series.zone != "UTC" and line.opened_until is not None:
        # All have rows, maybe made under other rules. What is noted as opened must not pass them: no row would tell.
        coming = replace(coming, until=line.opened_until)
    passed_over = await without_rows(series, await _passed_over(known, spell))
    newest = await _newest_nominal(spell, series, as_of)
    if known.job.catch_up == "each":
        return Owed(unsettled, [*passed_over, *fresh], [], [], coming.until, coming.next_due, moved, newest)
    kept: list[Run] = []
    dropped: list[Run] = []
    for run in unsettled:
        stays = _stays_owed(run) or (run.series, run.nominal) == (series.id, newest)
        (kept if stays else dropped).append(run)
    fresh = [*(o for o in passed_over if o.nominal == newest), *fresh]
    others = [Range(o.nominal, o.nominal + 1) for o in passed_over if o.nominal != newest]
    return Owed(kept, fresh, dropped, [*others, *coming.dropped], coming.until, coming.next_due, moved, newest)


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


async def _newest_nominal(spell: Spell, series: Series, as_of: int) -> int | None:
    """The newest window that is due: of the version in force, else the last that an earlier version opened."""
    recent = takewhile(lambda o: o.due > as_of - LONGEST_HOLIDAY, spell.before(as_of))
    newest = next((o for o in recent if not o.off), None)
    if newest is not None or spell.since is None:
        return None if newest is None else newest.nominal
    return await one(NEWEST_DUE, int, series=series.id, as_of=as_of)


async def _passed_over(known: Known, spell: Spell) -> list[Occurrence]:
    """The windows due before the line's windows were last opened that the rules then, or there, did not have so early.

    Hosts get a release of the zone's rules at different times. One of them may note windows as opened until an instant at
    which the rules of another have a window more; each looks back where a row near the newest was made under another release.
    """
    line, series = known.line, known.series
    assert line is not None
    assert series is not None
    if series.zone == "UTC" or line.opened_until is None or line.starts is None:
        return []
    from duly.schedule.facts import UNKNOWN, release_in_use  # needed in a zone that has rules

    here = release_in_use(series.zone)
    near = (
        2 * (2 * RULES_MAY_MOVE) // SECOND
    )  # in nominals, which are two to a second; one may differ from UTC by a day
    told: dict[str, Value] = {"release": here.version, "source": here.source, "near": near}
    other = await one(MADE_UNDER_OTHER_RULES, int, series=series.id, **told)
    if other is None and here.version != UNKNOWN:
        return []
    until, since = line.opened_until, max(line.opened_until - RULES_MAY_MOVE, line.starts - 1)
    coming = takewhile(lambda o: o.due <= until, spell.after(since))
    return [o for o in coming if o.nominal >= series.horizon and not _ended(line, o.due)]


@record
class _Coming:
    occurrences: list[Occurrence]
    dropped: list[Range]
    until: int
    next_due: int | None


def _come_due(spell: Spell, line: Line, series: Series, policy: str, as_of: int) -> _Coming:
    """The occurrences due since the line's windows were opened, as far as the policy keeps them. Pure."""
    since = line.opened_until if line.opened_until is not None else as_of
    admitted = (o for o in spell.after(since) if o.nominal >= series.horizon)
    first = next(admitted, None)
    if first is None or first.due > as_of or _ended(line, first.due):
        return _Coming([], [], since, None if first is None else first.due)
    if policy == "each":
        batch = [first]
        following = next(admitted, None)
        while following is not None and following.due <= as_of and not _ended(line, following.due):
            # Where a calendar moves them several may be due at once: those are opened together, or some never.
            if len(batch) >= OPEN_AT_ONCE and following.due > batch[-1].due:
                break
            batch.append(following)
            following = next(admitted, None)
        return _Coming(batch, [], batch[-1].due, None if following is None else following.due)
    kept = newest_to_work((o for o in spell.before(as_of) if not _ended(line, o.due)), since)
    dropped = dropped_ranges(spell, first, kept[0]) if first.due < kept[0].due else []
    following = next(spell.after(kept[-1].due), None)
    return _Coming(kept, dropped, kept[-1].due, None if following is None else following.due)


def newest_to_work(newest_first: Iterator[Occurrence], since: int) -> list[Occurrence]:
    """The newest window due after `since` that is no day off, with the days off after it; those alone where all are off.

    Days off are skipped for a reason of their own, one by one. Looks no further back than `since`. Pure.
    """
    kept: list[Occurrence] = []
    for occurrence in newest_first:
        if occurrence.due <= since:
            break
        kept.append(occurrence)
        if not occurrence.off:
            break
    return kept[::-1]


def dropped_ranges(spell: Spell, first: Occurrence, newest: Occurrence) -> list[Range]:
    """Ranges of nominals over the windows due from `first` on and before `newest`, and over no other. Pure.

    In time windows are in the order of their due; in the night on which clocks go back that is not the order of their
    nominals, and a range from 01:15 to 02:45 would speak for 02:00~2, which has not come yet. So ranges are cut at every
    nominal of a window near their ends that is not dropped.
    """
    near = 2 * DAY
    beginning = [first, *_due_within(spell, first.due, min(first.due + near, newest.due - 1))]
    ending = _due_within(spell, max(beginning[-1].due, newest.due - near), newest.due - 1)
    dropped = sorted(o.nominal for o in (*beginning, *ending))
    others = [
        *_due_within(spell, first.due - near, first.due - 1),
        newest,
        *_due_within(spell, newest.due, newest.due + near),
    ]
    kept = sorted(o.nominal for o in others)
    ranges: list[Range] = []
    for nominal in dropped:
        beyond = next((other for other in kept if other > nominal), nominal + 1)
        if ranges and ranges[-1].beyond == beyond:
            continue  # no window that is kept lies between it and the one before
        ranges.append(Range(nominal, beyond))
    return ranges


def _due_within(spell: Spell, after: int, until: int) -> list[Occurrence]:
    return list(takewhile(lambda o: o.due <= until, spell.after(after)))


def _ended(line: Line, due: int) -> bool:
    return line.ends is not None and due >= line.ends


async def without_rows(series: Series, occurrences: list[Occurrence]) -> list[Occurrence]:
    """Those that have no row yet (a person may have taken one by name) and lie in no skipped range."""
    if not occurrences:
        return []
    bounds = {"first": min(o.nominal for o in occurrences), "last": max(o.nominal for o in occurrences)}
    present = set(await every(ROWS_BETWEEN, int, series=series.id, **bounds))
    ranges = await every(RANGES_BETWEEN, lambda *ends: ends, series=series.id, **bounds)
    return [
        o
        for o in occurrences
        if o.nominal not in present and not any(first <= o.nominal < beyond for first, beyond in ranges)
    ]
