"""Policy: which of the windows that are owed the catch-up policy keeps, and why it drops the others. Looks only.

One engine for all that holds windows back: downtime, a pause, a job that was off, a run that took too long. What is being
worked, is unknown, waits for a person or was asked for by one is no policy's business, and stays owed.
"""

from __future__ import annotations

from itertools import islice, takewhile

from duly.ledger import states
from duly.ledger.ask import Statement, every, one
from duly.ledger.bounds import Coming, Range, passed_over
from duly.ledger.records import Job, Known, Line, Run, RunId, Series, pauses_of
from duly.ledger.spells import SERIES_OF_LINE
from duly.records import record
from duly.schedule.catch_up import CatchUp, parse_catch_up
from duly.times import DAY, HOUR, SECOND, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.ledger.spells import Spell
    from duly.schedule.occurrence import Occurrence

# How many windows one transaction opens at most: a year of five-minute windows must not hold the writer for a second.
OPEN_AT_ONCE = 500

# How many windows are looked up in one statement to see which of them have a row.
_LOOK_UP_AT_ONCE = 500

# How far back the newest window that is worked is looked for: a calendar has a business day within 400 days, but a line
# may have all its fires on days off.
LONGEST_HOLIDAY = 410 * DAY

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

NAMES_WITH_ROWS = Statement(
    "names_with_rows",
    "select nominal from duly_run where series = :series and nominal between :first and :last and revision = 1",
)


@record
class DroppedRun:
    """A run with a row that the policy drops, and why."""

    run: Run
    cause: str


@record
class DroppedRange:
    """Windows without a row that the policy drops, as a range of nominals, and why."""

    range: Range
    cause: str


@record
class Admitted:
    """What the policy makes of what is owed. `coming` are the windows without a row that it keeps, as they are to be opened."""

    rows: list[Run]
    dropped_rows: list[DroppedRun]
    dropped: list[DroppedRange]
    coming: Coming
    newest: RunId | None  # the newest that is due


async def admit(known: Known, spell: Spell, unsettled: list[Run], as_of: int) -> Admitted:
    """Apply the policy of the job to what has come due by an instant. `unsettled`: the runs of the line that are."""
    assert known.line is not None
    assert known.series is not None
    policy = parse_catch_up(known.job.catch_up, once=True)
    newest = await _newest_due(known, spell, known.series, known.line.owed_by(as_of))
    owed = _Owed(known, spell, policy, as_of, newest)
    free = [run for run in unsettled if not stays_owed(run)]
    if policy.policy != "each":
        kept = [run for run in free if owed.is_newest_and_fresh(run)]
        windows = owed.newest_to_work()
    elif policy.max is None:
        kept = [run for run in free if owed.is_young(run.due)]
        windows = owed.oldest_to_work()
    else:
        kept, windows = await owed.newest_of_all(free, policy.max)
    stays = {run.id for run in kept}
    dropped = [DroppedRun(run, owed.cause_of(run.due or 0)) for run in free if run.id not in stays]
    ranges, coming = owed.arranged(windows)
    rows = [run for run in unsettled if run.id in stays or stays_owed(run)]
    return Admitted(rows, dropped, ranges, coming, None if newest is None else newest[1])


def stays_owed(run: Run) -> bool:
    """Whether no catch-up policy drops a run: it is being worked, waits for a person or for word, or a person asked for it."""
    return run.state in (states.RUNNING, states.UNKNOWN) or run.waits_for_a_person or run.asked_at is not None


def is_of(run: Run, window: RunId | None) -> bool:
    """Whether a run is of this window, whichever revision. Pure."""
    return window is not None and (run.series, run.nominal) == (window.series, window.nominal)


async def _newest_due(known: Known, spell: Spell, series: Series, as_of: int) -> tuple[int, RunId] | None:
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
            return found[0]
    for each in await every(SERIES_OF_LINE, Series, line=known.line.id):
        if found and each.id == series.id:
            continue
        row = await one(NEWEST_DUE, lambda nominal, due: (due, nominal), series=each.id, as_of=as_of)
        if row is not None:
            found.append((row[0], RunId(each.id, row[1])))
    return max(found, key=lambda one: one[0]) if found else None


class _Owed:
    """What is owed of a line under a policy: the windows that have come due since its windows were opened."""

    def __init__(
        self, known: Known, spell: Spell, policy: CatchUp, as_of: int, newest: tuple[int, RunId] | None
    ) -> None:
        assert known.line is not None
        assert known.line.opened_until is not None
        assert known.series is not None
        self._known = known
        self._job: Job = known.job
        self._line: Line = known.line
        self._since: int = known.line.opened_until
        self._series: Series = known.series
        self._spell = spell
        self._policy = policy
        self._as_of = as_of
        self._newest: RunId | None = None if newest is None else newest[1]
        self._newest_due: int | None = None if newest is None else newest[0]

    # -- what is kept ----------------------------------------------------------------------------------------------------

    def is_young(self, due: int | None) -> bool:
        """Whether something due then is kept by `max_age`."""
        return self._policy.max_age is None or (due or 0) >= self._as_of - self._policy.max_age

    def is_newest_and_fresh(self, run: Run) -> bool:
        """Whether a run is the newest that is due, and not too old for the policy."""
        if not is_of(run, self._newest) or self._policy.policy == "none" or not self.is_young(run.due):
            return False
        bounds = None if run.window_start is None or run.window_end is None else (run.window_start, run.window_end)
        return self._is_fresh(run.due or 0, bounds)

    def _is_fresh(self, due: int, bounds: tuple[int, int] | None) -> bool:
        return self._policy.policy != "fresh" or self._as_of - due <= grace_of(self._job, bounds)

    def newest_to_work(self) -> list[Occurrence]:
        """The newest window that has come due, unless it is too old; with the days off after it."""
        if self._policy.policy == "none":
            return []
        kept = newest_to_work(self._newest_first(), self._since)
        first = kept[0] if kept else None
        if first is None or first.off:
            return kept
        is_kept = self.is_young(first.due) and self._is_fresh(first.due, (first.start, first.end))
        return kept if is_kept else kept[1:]

    def oldest_to_work(self) -> list[Occurrence]:
        """The windows that have come due, the oldest first, as many as one transaction opens."""
        due = takewhile(lambda o: o.due <= self._as_of, self._in_order())
        return list(islice((o for o in due if self.is_young(o.due)), OPEN_AT_ONCE))

    async def newest_of_all(self, free: list[Run], most: int) -> tuple[list[Run], list[Occurrence]]:
        """Of runs that wait and windows without a row together the newest so many; days off between them do not count."""
        rows = [run for run in free if self.is_young(run.due)]
        absent: list[Occurrence] = []
        walk: list[Occurrence] = []
        newest_first = takewhile(lambda o: o.end > self._since and self.is_young(o.due), self._newest_first())
        while len(absent) < most and (some := list(islice(newest_first, _LOOK_UP_AT_ONCE))):
            names = {"first": min(o.nominal for o in some), "last": max(o.nominal for o in some)}
            known = set(await every(NAMES_WITH_ROWS, int, series=self._series.id, **names))
            absent += [o for o in some if not o.off and o.nominal not in known]
            walk += some
        dues = sorted([*(run.due or 0 for run in rows), *(o.due for o in absent)], reverse=True)[:most]
        oldest = dues[-1] if dues else self._as_of
        kept = [run for run in rows if (run.due or 0) >= oldest]
        return kept, [o for o in reversed(walk) if o.due >= oldest][:OPEN_AT_ONCE]

    def _in_order(self) -> Iterator[Occurrence]:
        return (o for o in self._until_end(self._spell.ending_after(self._since)) if o.nominal >= self._series.horizon)

    def _until_end(self, occurrences: Iterator[Occurrence]) -> Iterator[Occurrence]:
        return takewhile(lambda o: self._line.owes(o.due), occurrences)

    def _newest_first(self) -> Iterator[Occurrence]:
        return self._spell.before(self._line.owed_by(self._as_of))

    # -- what is dropped -------------------------------------------------------------------------------------------------

    def arranged(self, kept: list[Occurrence]) -> tuple[list[DroppedRange], Coming]:
        """What is dropped before the windows that are kept, or of all that has come due if none is; and what is opened."""
        first = next(self._in_order(), None)
        if first is None or first.due > self._as_of:
            return [], Coming([], [], first)
        if kept and kept[0].start <= first.start:
            return [], Coming(kept, [], self._following(kept[-1]))
        last = self._last_before(kept[0]) if kept else next(self._newest_first())
        following = self._following(kept[-1] if kept else last)
        dropped = self._ranges(first, last)
        return dropped, Coming([last, *kept], [one.range for one in dropped], following)

    def _following(self, window: Occurrence) -> Occurrence | None:
        return next(self._until_end(self._spell.ending_after(window.end)), None)

    def _last_before(self, window: Occurrence) -> Occurrence:
        return next(o for o in self._spell.before(window.due) if o.end <= window.start)

    def _ranges(self, first: Occurrence, last: Occurrence) -> list[DroppedRange]:
        """The dropped windows, cut wherever they are dropped for another reason."""
        found: list[DroppedRange] = []
        begin: Occurrence | None = first
        for cut in [*sorted(cut for cut in self._cuts() if first.due < cut <= last.due), last.due + 1]:
            end = next(self._spell.before(cut - 1), last)
            if begin is None or end.end < begin.end:
                continue
            end = min(end, last, key=lambda o: o.end)
            cause = self.cause_of(begin.due)
            found += [DroppedRange(span, cause) for span in dropped_ranges(self._spell, begin, end)]
            begin = next(self._spell.ending_after(end.end), None)
        return found

    def _cuts(self) -> list[int]:
        """The due times from which on windows are dropped for another reason."""
        cuts = [self._newest_due] if self._newest_due is not None else []
        if self._policy.policy == "each":
            cuts = [self._as_of - self._policy.max_age] if self._policy.max_age is not None else []
        for pause in pauses_of(self._known):
            cuts += [pause.since, *([] if pause.until is None else [pause.until])]
        return cuts

    def cause_of(self, due: int) -> str:
        """Why something due then is dropped, if it is."""
        policy = self._policy
        paused = next((pause for pause in pauses_of(self._known) if pause.covers(due)), None)
        if paused is not None:
            return f"paused by {paused.by}: {paused.why}"
        if policy.policy == "none":
            why = "resumed without it"
        elif self._newest_due is not None and due < self._newest_due and policy.policy != "each":
            why = "a newer window was due"
        elif not self.is_young(due):
            why = f"it was due longer ago than {duration_text(policy.max_age or 0)}"
        elif policy.policy == "fresh":
            why = "it was due longer ago than its grace"
        else:
            why = (
                f"of those that were owed the newest {policy.max} are kept" if policy.max else "a newer window was due"
            )
        return f"catch-up {policy}: {why}"


def grace_of(job: Job, bounds: tuple[int, int] | None) -> int:
    """How long a window may be due before it is late, in microseconds: a tenth of the period, at most 1 h, if not set."""
    if job.grace is not None:
        return job.grace
    return HOUR if bounds is None else min((bounds[1] - bounds[0]) // 10, HOUR)


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


def dropped_ranges(spell: Spell, first: Occurrence, last: Occurrence) -> list[Range]:
    """Ranges of nominals over the windows from `first` to `last`, and over no other. Pure.

    In the night on which clocks go back the order of windows in time is not the order of their nominals, and a range from
    01:15 to 02:45 would speak for 02:00~2, which has not come yet. So ranges are cut at every nominal of a window near
    their ends that is not dropped.
    """
    if spell.schedule.zone == "UTC":  # whose clocks are never set: names are in the order of time
        after = next(spell.ending_after(last.end), None)
        return [Range(first.nominal, last.nominal + 1 if after is None else after.nominal)]
    near = 2 * DAY
    beginning = [first, *_windows_between(spell, first.end, min(first.end + near, last.end))]
    ending = _windows_between(spell, max(beginning[-1].end, last.end - near), last.end)
    dropped = sorted(o.nominal for o in (*beginning, *ending))
    others = [
        *_windows_between(spell, first.start - near, first.start),
        *_windows_between(spell, last.end, last.end + near),
    ]
    kept = sorted(o.nominal for o in others)
    ranges: list[Range] = []
    for nominal in dropped:
        beyond = next((other for other in kept if other > nominal), nominal + 1)
        if ranges and ranges[-1].beyond == beyond:
            continue  # no window that is kept lies between it and the one before
        ranges.append(Range(nominal, beyond))
    return ranges


def windows_in(spell: Spell, span: Range) -> Iterator[Occurrence]:
    """The windows of a spell whose nominals lie in a range. Pure."""
    first = spell.find(span.first)
    if first is None:
        return
    slack = 4 * DAY // SECOND  # where clocks are set back a lower name may follow a higher one
    for occurrence in takewhile(lambda o: o.nominal < span.beyond + slack, spell.ending_after(first.end - 1)):
        if span.first <= occurrence.nominal < span.beyond:
            yield occurrence


def _windows_between(spell: Spell, ends_after: int, starts_before: int) -> list[Occurrence]:
    return list(takewhile(lambda o: o.start < starts_before, spell.ending_after(ends_after)))
