"""Status: what needs a person now, what is running, and how much went well.

A person is needed for a run whose outcome is unknown, one that failed and waits, and a window that is late: opened and
never begun, waiting for a retry that nobody came to make, or never opened at all because nobody poked. The last kind has
no row: it is computed from the schedule, from where the line's windows were last opened up to now.
"""

from __future__ import annotations

from duly.evidence.verdict import DUE, RUNNING, Window, lines, window_of_row, windows_of
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.backfill import COLUMNS, Backfill
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.message_states import UNSETTLED
from duly.ledger.messages import Backlog, backlog
from duly.ledger.owed import UNSETTLED_OF_LINE, dropped_next, nothing_due_yet
from duly.ledger.records import LEASES, RUN_COLUMNS, Known, Pause, Run, pause_of
from duly.ledger.spells import spell_in_force
from duly.records import record, replace
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

# How many windows that were never opened are looked at for a line; an every-minute job asleep for a year has 525,600.
LOOK_AT_MOST = 1_000

COMPLETED_SINCE = Statement(
    "completed_since",
    """
select count(*)
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where r.state = 'completed' and r.settled_at > :since
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
""",
)


UNDELIVERED_OF_LINE = Statement(
    "undelivered_of_line",
    # From the messages that are not settled, which an index holds, to their runs.
    f"""
select {RUN_COLUMNS}
  from (select distinct m.series, m.nominal, m.revision
          from duly_message m
         where {ors("m.state", UNSETTLED)}) m
  join duly_series s on s.id = m.series
  join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
  {LEASES}
 where s.line = :line
""",
)


@record
class Unopened:
    """Windows of one line that came due and were never opened, the newest first; `more` if there are others before.

    So many of them the next poke will skip.
    """

    known: Known
    windows: list[Window]
    more: bool
    skipped: int


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
    completed: int
    paused: list[Paused]
    backfills: list[Asked]
    undelivered: list[Backlog]  # of the whole ledger, by destination

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
    for known in await lines(name, scope):
        assert known.line is not None
        rows = await every(UNSETTLED_OF_LINE, Run, line=known.line.id)
        rows += await every(UNDELIVERED_OF_LINE, Run, line=known.line.id)
        seen += [await window_of_row(known, row, instant) for row in rows]
        asleep = await never_opened(known, instant)
        late = [window for window in asleep.windows if window.verdict.unattended]
        seen += [window for window in asleep.windows if window.verdict.word == DUE]
        over = known.line.ends is not None and known.line.ends <= instant and not rows and not asleep.windows
        if (pause := pause_of(known, instant)) is not None and not over:
            paused.append(Paused(known, pause, len(asleep.windows), asleep.more))
        if late:
            unopened.append(replace(asleep, windows=late))
    completed = await one(COMPLETED_SINCE, int, since=instant - DAY, name=name, scope=scope)
    needs = [window for window in seen if window.verdict.needs_a_person]
    running = [window for window in seen if window.verdict.word == RUNNING]
    waiting = [window for window in seen if window not in needs and window not in running and _came(window, instant)]
    return Status(
        instant,
        sorted(needs, key=_order),
        sorted(unopened, key=lambda u: _order(u.windows[0])),
        sorted(running, key=_order),
        sorted(waiting, key=_order),
        completed or 0,
        paused,
        await every(LIVE_BACKFILLS, lambda *row: Asked(Backfill(*row[:-2]), *row[-2:]), name=name, scope=scope),
        await backlog() if name is None else [],
    )


def _came(window: Window, instant: int) -> bool:
    return window.due is None or window.due <= instant


def _order(window: Window) -> tuple[bool, int]:
    """What is unknown first, then the oldest."""
    return window.verdict.word != "unknown", window.due or 0


async def never_opened(known: Known, instant: int) -> Unopened:
    """The windows of a line that came due since its windows were last opened: nobody has poked since."""
    line = known.line
    if known.version is None or line is None or line.opened_until is None:
        return Unopened(known, [], False, 0)
    if nothing_due_yet(known, instant):
        return Unopened(known, [], False, 0)
    occurrences: list[Occurrence] = []
    # Of the versions before, an edit opened what had begun.
    for occurrence in spell_in_force(known).before(line.owed_by(instant)):
        if occurrence.end <= line.opened_until or len(occurrences) == LOOK_AT_MOST:
            break
        occurrences.append(occurrence)
    more = len(occurrences) == LOOK_AT_MOST
    absent = [window for window in await windows_of(known, occurrences, instant) if window.row is None]
    dropped = await dropped_next(known, instant)
    return Unopened(known, absent, more, sum(dropped(window.run) is not None for window in absent))
