"""Batches: what a long list holds, a piece at a time, each from the place at which the one before it ended.

A place is a key: of a row, or of a window that the schedule names. So what is added meanwhile moves nothing, and a list that is
followed to its end has each of its members once that was there all along. A batch costs so many statements and no more, however
many jobs there are: where little is found in much, it has fewer members than were asked for, and still says where to go on.
"""

from __future__ import annotations

from itertools import islice, takewhile

from duly.evidence.backfill import Progress, progress
from duly.evidence.grid import GridLine, clocks_of
from duly.evidence.jobs import JobSeen, seen_of
from duly.evidence.verdict import UNKNOWN, Window, lines, window_of_row, windows_of_line
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.backfill import COLUMNS, Backfill
from duly.ledger.backfill_states import ors
from duly.ledger.bounds import is_before_start
from duly.ledger.message_states import UNSETTLED
from duly.ledger.messages import MESSAGE_COLUMNS, Message
from duly.ledger.records import LEASES, RUN_COLUMNS, Known, Run, RunId
from duly.ledger.spells import Placed, placed_before, spells_of_line
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from duly.schedule.keys import RunKey

    Place: TypeAlias = tuple[int, ...]

FIRST = 10**18 - 1  # before the newest of a series: no name is as high
SERIES_AT_MOST = 200  # that one batch looks through
LINES_AT_MOST = 50
_SLACK = 400 * DAY  # by which a calendar may make a window due before it ends

SERIES_FROM = Statement(
    "series_from",
    """
select s.id, s.line
  from duly_series s
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where s.id >= :series
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by s.id
 limit :most
""",
)

RUNS_BEFORE = Statement(
    "runs_before",
    # Along the primary key, the newest name first.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and (r.nominal, r.revision) < (:nominal, :revision)
   and (cast(:state as text) is null or r.state = :state)
 order by r.nominal desc, r.revision desc
 limit :limit
""",
)

PERHAPS_UNKNOWN_AFTER = Statement(
    "perhaps_unknown_after",
    # By the index of what is unsettled. Of a run whose holder is gone nobody may know what it did: the judgement says so.
    f"""
select {RUN_COLUMNS}, s.line
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  {LEASES}
 where {{unsettled}} and (r.state = 'unknown' or r.state = 'running')
   and (r.series, r.nominal, r.revision) > (:series, :nominal, :revision)
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by r.series, r.nominal, r.revision
 limit :limit
""",
)

OLDEST_OF_LINE = Statement(
    "oldest_of_line",
    # What was worked before the line began, because a backfill or a person asked for it.
    """
select min(r.window_start)
  from duly_series s
  join duly_run r on r.series = s.id and r.nominal = (select min(n.nominal) from duly_run n where n.series = s.id)
 where s.line = :line
""",
)

OPEN_MESSAGES_AFTER = Statement(
    "open_messages_after",
    f"""
select {MESSAGE_COLUMNS}
  from duly_message m
 where {ors("m.state", UNSETTLED)}
   and (m.series, m.nominal, m.revision, m.number) > (:series, :nominal, :revision, :number)
   and (cast(:destination as text) is null or m.destination = :destination)
   and (cast(:state as text) is null or m.state = :state)
 order by m.series, m.nominal, m.revision, m.number
 limit :limit
""",
)

BACKFILLS_BEFORE = Statement(
    "backfills_before",
    f"""
select {COLUMNS}
  from duly_backfill f
  join duly_series s on s.id = f.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where f.id < :before
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by f.id desc
 limit :limit
""",
)


async def jobs_after(name: str, *, retired: bool, limit: int) -> tuple[list[JobSeen], str | None]:
    """The jobs whose names come after one, by name, with those that were retired or without."""
    by_name: dict[str, list[Known]] = {}
    for known in await lines():
        if known.job.name > name and (retired or known.job.retired_at is None):
            by_name.setdefault(known.job.name, []).append(known)
    names = sorted(by_name)
    found = [await seen_of(by_name[each]) for each in names[:limit]]
    return found, names[limit - 1] if len(names) > limit else None


async def runs_after(
    after: Place | None, name: str | None, scope: str | None, *, state: str | None, limit: int
) -> tuple[list[Window], Place | None]:
    """The runs that have a row, series by series, the newest name of each first; of one state if that is named."""
    instant = await now()
    known = {each.line.id: each for each in await lines(name, scope) if each.line is not None}
    begin, nominal, revision = after or (0, FIRST, FIRST)
    series = await every(SERIES_FROM, lambda *pair: pair, series=begin, name=name, scope=scope, most=SERIES_AT_MOST + 1)
    found: list[tuple[int, Run]] = []
    for number, line in series[:SERIES_AT_MOST]:
        edge = (nominal, revision) if number == begin else (FIRST, FIRST)
        of = {"series": number, "nominal": edge[0], "revision": edge[1], "state": state}
        found += [(line, row) for row in await every(RUNS_BEFORE, Run, **of, limit=limit + 1 - len(found))]
        if len(found) > limit:
            break
    windows = [await window_of_row(known[line], row, instant) for line, row in found[:limit]]
    if len(found) > limit:
        return windows, _place(found[limit - 1][1])
    return windows, (series[SERIES_AT_MOST][0], FIRST, FIRST) if len(series) > SERIES_AT_MOST else None


async def unknowns_after(
    after: Place | None, name: str | None, scope: str | None, *, limit: int
) -> tuple[list[Window], Place | None]:
    """The runs of which nobody knows what became of them, series by series, the oldest first."""
    instant = await now()
    known = {each.line.id: each for each in await lines(name, scope) if each.line is not None}
    series, nominal, revision = after or (0, -FIRST, 0)
    of = {"series": series, "nominal": nominal, "revision": revision, "name": name, "scope": scope}
    rows = await every(PERHAPS_UNKNOWN_AFTER, lambda *cells: (cells[-1], Run(*cells[:-1])), **of, limit=limit + 1)
    judged = [await window_of_row(known[line], row, instant) for line, row in rows[:limit]]
    place = _place(rows[limit - 1][1]) if len(rows) > limit else None
    return [window for window in judged if window.verdict.word == UNKNOWN], place


def _place(row: Run) -> Place:
    return row.series, row.nominal, row.revision


async def windows_after(
    after: Place | None, name: str, scope: str | None, *, limit: int
) -> tuple[list[GridLine], Place | None]:
    """The windows of a job that have come due, line by line, the newest of each first, whether or not they have a row.

    Those before a line began are left out. Some that come due at one instant are not parted, so there may be a few more.
    """
    instant = await now()
    begin, since = after or (0, FIRST)
    every_line = [(known.line.id, known) for known in await lines(name, scope) if known.line is not None]
    ahead = sorted((each for each in every_line if each[0] >= begin), key=lambda each: each[0])
    found: list[GridLine] = []
    for line, known in ahead[:LINES_AT_MOST]:
        left = limit - sum(len(each.windows) for each in found)
        if left <= 0:
            return found, (line, FIRST)
        placed, more = await _newest(known, min(since, instant) if line == begin else instant, left)
        if placed:
            windows = await windows_of_line(known, placed, instant)
            found.append(GridLine(known, windows, [clocks_of(each) for each in placed]))
        if more:
            return found, (line, placed[-1].occurrence.due - 1)
    return found, (ahead[LINES_AT_MOST][0], FIRST) if len(ahead) > LINES_AT_MOST else None


async def _newest(known: Known, edge: int, limit: int) -> tuple[list[Placed], bool]:
    """The newest windows of a line that are due by an instant, and whether there are more."""
    assert known.line is not None
    if known.version is None or known.series is None or known.line.starts is None:
        return [], False
    oldest = min(known.line.starts, await one(OLDEST_OF_LINE, lambda first: first, line=known.line.id) or FIRST)
    if edge < oldest - _SLACK:
        return [], False
    before = placed_before(await spells_of_line(known), edge)
    owed = takewhile(
        lambda each: each.occurrence.start >= oldest or not is_before_start(known, each.occurrence), before
    )
    placed = list(islice(owed, limit))
    for each in owed:
        if each.occurrence.due != placed[-1].occurrence.due:
            return placed, True
        placed.append(each)
    return placed, False


async def messages_after(
    after: Place | None, destination: str | None, *, state: str | None, limit: int
) -> tuple[list[tuple[RunKey, Message]], Place | None]:
    """The messages that are not settled, each with the key of its run, run by run."""
    series, nominal, revision, number = after or (0, -FIRST, 0, 0)
    of = {"series": series, "nominal": nominal, "revision": revision, "number": number}
    found = await every(OPEN_MESSAGES_AFTER, Message, **of, destination=destination, state=state, limit=limit + 1)
    keys: dict[RunId, RunKey] = {}
    for message in found[:limit]:
        if message.id.run not in keys:
            keys[message.id.run] = await key_of(message.id.run)
    last = found[limit - 1].id if len(found) > limit else None
    place = None if last is None else (last.run.series, last.run.nominal, last.run.revision, last.number)
    return [(keys[message.id.run], message) for message in found[:limit]], place


async def backfills_before(
    number: int | None, name: str | None, scope: str | None, *, limit: int
) -> tuple[list[Progress], int | None]:
    """The backfills that were asked for before one, the newest first."""
    rows = await every(
        BACKFILLS_BEFORE, Backfill, before=FIRST if number is None else number, name=name, scope=scope, limit=limit + 1
    )
    found = [await progress(each.id) for each in rows[:limit]]
    return found, rows[limit - 1].id if len(rows) > limit else None
