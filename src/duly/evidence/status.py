"""Status: what needs a person now, what is running, and how much went well.

A person is needed for a run whose outcome is unknown, one that failed and waits, and a window that is late: opened and
never begun, waiting for a retry that nobody came to make, or never opened at all because nobody poked. The last kind has
no row: it is computed from the schedule, from where the line's windows were last opened up to now.
"""

from __future__ import annotations

from duly.evidence.proof import Proof, proof
from duly.evidence.verdict import DUE, RUNNING, Window, lines, windows_of_many, windows_of_rows
from duly.ledger.ask import Statement, every, now
from duly.ledger.backfill import COLUMNS, Backfill
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.message_states import UNSETTLED
from duly.ledger.messages import Backlog, backlog
from duly.ledger.owed import dropped_next, nothing_due_yet
from duly.ledger.records import LEASES, RUN_COLUMNS, Known, Pause, Run, pause_of
from duly.ledger.spells import spell_in_force
from duly.records import record, replace
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

# How many windows that were never opened are looked at for a line; an every-minute job asleep for a year has 525,600. Of all
# lines together as many as can be judged in a second or two, but a few of each.
LOOK_AT_MOST, LOOK_IN_ALL, LOOK_AT_LEAST = 1_000, 20_000, 20

UNSETTLED_OF_LINES = Statement(
    "unsettled_of_lines",
    # The joins are crossed: SQLite then begins with the runs that an index holds, which are few. From the other side it first
    # reads all runs, for a filter of those that it need not look at.
    f"""
select s.line, {RUN_COLUMNS}
  from duly_run r
 cross join duly_series s
 cross join duly_line l
 cross join duly_job j
  {LEASES}
 where {{unsettled}} and s.id = r.series and l.id = s.line and j.id = l.job
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by r.due, r.series, r.nominal
""",
)

UNDELIVERED_OF_LINES = Statement(
    "undelivered_of_lines",
    # From the messages that are not settled, which an index holds, to their runs.
    f"""
select s.line, {RUN_COLUMNS}
  from (select distinct m.series, m.nominal, m.revision
          from duly_message m
         where {ors("m.state", UNSETTLED)}) m
  join duly_series s on s.id = m.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
  {LEASES}
 where (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by r.series, r.nominal, r.revision
""",
)


@record
class Unopened:
    """Windows of one line that came due and were never opened, the newest first; `more` if there are others before.

    `skipped` of them the next poke will skip, where that was asked.
    """

    known: Known
    windows: list[Window]
    more: bool
    skipped: int = 0


@record
class Paused:
    """A line of which nothing is started, and by whose word; how many windows without a row wait, or more than that."""

    known: Known
    pause: Pause
    windows: int
    more: bool


LIVE_BACKFILLS = Statement(
    "live_backfills",
    f"""
select {COLUMNS}, j.name, l.scope
  from duly_backfill f
  join duly_series s on s.id = f.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where {ors("f.state", LIVE)}
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by f.id
""",
)


@record
class Asked:
    """A backfill that is not over, with the job and scope whose windows it owes."""

    backfill: Backfill
    job: str
    scope: str


@record
class Status:
    """What is to be said at an instant. `needs` and `unopened` want a person, in the order of their due times."""

    as_of: int
    needs: list[Window]
    unopened: list[Unopened]
    running: list[Window]
    waiting: list[Window]
    proof: Proof  # of the last 24 hours
    paused: list[Paused]
    backfills: list[Asked]
    undelivered: list[Backlog]  # of the whole ledger, by destination

    @property
    def completed(self) -> int:
        """How many of the periods that came due in the last 24 hours are complete."""
        return self.proof.complete

    @property
    def periods_in_need(self) -> int:
        """How many windows need a person and are not unknown."""
        return sum(w.verdict.word != "unknown" for w in self.needs) + sum(len(u.windows) for u in self.unopened)

    @property
    def unknown(self) -> int:
        """How many runs have an outcome that nobody knows."""
        return sum(w.verdict.word == "unknown" for w in self.needs)


async def status(name: str | None = None, scope: str | None = None) -> Status:
    """What needs a person now, of the whole ledger, one job or one line."""
    instant = await now()
    seen: list[Window] = []
    unopened: list[Unopened] = []
    paused: list[Paused] = []
    found = await lines(name, scope)
    all_rows = await opened(found, instant, name, scope)
    all_asleep = await never_opened_of(found, instant, look_at_most(len(found)))
    for known, rows, asleep in zip(found, all_rows, all_asleep, strict=True):
        seen += rows
        late = [window for window in asleep.windows if window.verdict.unattended]
        seen += [window for window in asleep.windows if window.verdict.word == DUE]
        if (pause := pause_of(known, instant)) is not None and not is_over(known, rows, asleep, instant):
            paused.append(Paused(known, pause, len(asleep.windows), asleep.more))
        if late:
            dropped = await dropped_next(known, instant)
            skipped = sum(dropped(window.run) is not None for window in asleep.windows)
            unopened.append(replace(asleep, windows=late, skipped=skipped))
    needs = [window for window in seen if window.verdict.needs_a_person]
    running = [window for window in seen if window.verdict.word == RUNNING]
    waiting = [window for window in seen if window not in needs and window not in running and _came(window, instant)]
    return Status(
        instant,
        sorted(needs, key=_order),
        sorted(unopened, key=lambda u: _order(u.windows[0])),
        sorted(running, key=_order),
        sorted(waiting, key=_order),
        await proof(DAY, name, scope),
        paused,
        await every(LIVE_BACKFILLS, lambda *row: Asked(Backfill(*row[:-2]), *row[-2:]), name=name, scope=scope),
        await backlog() if name is None else [],
    )


def look_at_most(lines: int) -> int:
    """How many windows that were never opened are looked at for each of so many lines. Pure."""
    return min(max(LOOK_IN_ALL // max(lines, 1), LOOK_AT_LEAST), LOOK_AT_MOST)


def _came(window: Window, instant: int) -> bool:
    return window.due is None or window.due <= instant


def _order(window: Window) -> tuple[bool, int]:
    """What is unknown first, then the oldest."""
    return window.verdict.word != "unknown", window.due or 0


async def opened(
    found: list[Known], instant: int, name: str | None = None, scope: str | None = None
) -> list[list[Window]]:
    """Of each line the windows that have a row and are not settled, or have messages that are not. `name` and `scope` are what
    the lines were found by, if not all are meant.
    """
    by_line: dict[int, list[Run]] = {known.line.id: [] for known in found if known.line is not None}
    for statement in (UNSETTLED_OF_LINES, UNDELIVERED_OF_LINES):
        for line, *cells in await every(statement, lambda *cells: cells, name=name, scope=scope):
            if line in by_line:
                by_line[line].append(Run(*cells))
    pairs = [(known, row) for known in found if known.line is not None for row in by_line[known.line.id]]
    judged = iter(await windows_of_rows(pairs, instant))
    return [[next(judged) for _ in by_line[known.line.id]] if known.line is not None else [] for known in found]


async def never_opened(known: Known, instant: int, look_at_most: int = LOOK_AT_MOST) -> Unopened:
    """As `never_opened_of`, of one line."""
    (asleep,) = await never_opened_of([known], instant, look_at_most)
    return asleep


async def never_opened_of(found: list[Known], instant: int, look_at_most: int) -> list[Unopened]:
    """Of each line the windows that came due since its windows were last opened: nobody has poked since."""
    asleep = [_asleep(known, instant, look_at_most) for known in found]
    asked = [(known, occurrences) for known, occurrences in zip(found, asleep, strict=True) if occurrences]
    judged = iter(await windows_of_many(asked, instant))
    return [
        Unopened(
            known,
            [window for window in next(judged) if window.row is None] if occurrences else [],
            len(occurrences) == look_at_most,
        )
        for known, occurrences in zip(found, asleep, strict=True)
    ]


def _asleep(known: Known, instant: int, look_at_most: int) -> list[Occurrence]:
    """The occurrences that came due since a line's windows were last opened, the newest first. Pure."""
    line = known.line
    if known.version is None or line is None or line.opened_until is None or nothing_due_yet(known, instant):
        return []
    occurrences: list[Occurrence] = []
    # Of the versions before, an edit opened what had begun.
    for occurrence in spell_in_force(known).before(line.owed_by(instant)):
        if occurrence.end <= line.opened_until or len(occurrences) == look_at_most:
            break
        occurrences.append(occurrence)
    return occurrences


def is_over(known: Known, rows: list[Window], asleep: Unopened, instant: int) -> bool:
    """Whether a line has ended and nothing is left of it: there is nothing to say of it any more. Pure."""
    assert known.line is not None
    return known.line.ends is not None and known.line.ends <= instant and not rows and not asleep.windows
