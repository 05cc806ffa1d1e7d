"""On record: all that the ledger holds of some windows, of one line or of many, in a few statements however many there are.

A view of a hundred lines asked for each line, and for each run that is not settled, would wait a thousand times for a database
that is elsewhere. So whoever judges says first which windows, as spans of names, and everything that judging needs is read
for all of them at once.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.ask import Statement, every
from duly.ledger.backfill import COLUMNS, Backfill, Sight, Sights, SkippedRange
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.cancel import Request
from duly.ledger.message_states import UNSETTLED
from duly.ledger.messages import TALLY_COLUMNS, Tally
from duly.ledger.progress import Progress
from duly.ledger.records import LEASES, RUN_COLUMNS, Run, RunId
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int, int]  # a series, and the first and the last nominal of some of its windows

TOLD_OF = (states.RUNNING, states.FAILED, states.UNKNOWN)  # whose attempt says how far it came

RUNS = Statement(
    "runs_in_spans",
    f"""
select {RUN_COLUMNS}
  from {{spans}}
 cross join {{in_spans}}duly_run r
  {LEASES}
 where r.series = spans.series and r.nominal between spans.first and spans.last
 order by r.series, r.nominal, r.revision
""",
)

RANGES = Statement(
    "ranges_in_spans",
    """
select distinct k.series, k.from_nominal, k.to_nominal, k.reason, k.at
  from {spans}
 cross join duly_skipped k
 where k.series = spans.series and k.from_nominal <= spans.last and k.to_nominal > spans.first
 order by k.series, k.from_nominal
""",
)

UNDELIVERED = Statement(
    "undelivered_in_spans",
    # Few: the index holds those that are not settled.
    f"""
select distinct m.series, m.nominal, m.revision
  from {{spans}}
 cross join duly_message m
 where m.series = spans.series and m.nominal between spans.first and spans.last
   and {ors("m.state", UNSETTLED)}
""",
)

LIVE_BACKFILLS = Statement(
    "live_backfills_in_spans",
    f"""
select distinct {COLUMNS}
  from {{spans}}
 cross join duly_backfill f
 where f.series = spans.series and {ors("f.state", LIVE)}
   and f.from_nominal <= spans.last and f.to_nominal > spans.first
 order by f.id
""",
)

PROGRESS = Statement(
    "progress_in_spans",
    """
select p.series, p.nominal, p.revision, p.attempt_id, p.done, p.total, p.at
  from {spans}
 cross join {in_spans}duly_progress p
 where p.series = spans.series and p.nominal between spans.first and spans.last
""",
)

REQUESTS = Statement(
    "requests_in_spans",
    # The first that was written of an attempt is the one that counts.
    """
select e.series, e.nominal, e.revision, e.attempt_id, e.at, e.by, e.reason
  from {spans}
 cross join {in_spans}duly_event e
 where e.series = spans.series and e.nominal between spans.first and spans.last
   and e.kind = 'cancel_asked'
 order by e.id desc
""",
)

TALLIES = Statement(
    "tallies_in_spans",
    f"""
select m.series, m.nominal, m.revision, {TALLY_COLUMNS}
  from {{spans}}
 cross join {{in_spans}}duly_message m
 where m.series = spans.series and m.nominal between spans.first and spans.last
 group by m.series, m.nominal, m.revision
""",
)


SETTLED = Statement(
    "settled_in_spans",
    """
select r.series, sum(case when r.state = 'completed' then 1 else 0 end), sum(case when r.state = 'skipped' then 1 else 0 end)
  from {spans}
 cross join {in_spans}duly_run r
 where r.series = spans.series and r.nominal between spans.first and spans.last
   and r.due > :since and r.due <= :until
 group by r.series
""",
)


@record
class OnRecord:
    """What is on record of windows: by series the newest row of each nominal, skipped ranges and backfills that are still to
    come; by run the messages that are not delivered, and how far and by whom stopped its newest attempt is.
    """

    rows: dict[int, dict[int, Run]]
    ranges: dict[int, list[tuple[int, int, str, int]]]
    backfills: dict[int, list[Backfill]]
    tallies: dict[RunId, Tally]
    progress: dict[tuple[RunId, bytes | None], Progress]
    requests: dict[tuple[RunId, bytes | None], Request]

    def row(self, series: int, nominal: int) -> Run | None:
        """The newest row of a window."""
        return self.rows.get(series, {}).get(nominal)

    def skipped(self, series: int, nominal: int) -> str | None:
        """Why the range was skipped that a window lies in."""
        ranges = self.ranges.get(series, ())
        return next((reason for first, beyond, reason, _ in ranges if first <= nominal < beyond), None)

    def sights(self, series: int) -> Sights:
        """The same, as a backfill looks at it."""
        rows = {
            nominal: Sight(nominal, row.revision, row.state, row.settled_at, row.started_at, row.window_start)
            for nominal, row in self.rows.get(series, {}).items()
        }
        return Sights(rows, [SkippedRange(first, beyond, at) for first, beyond, _, at in self.ranges.get(series, ())])


async def on_record(spans: Sequence[Span]) -> OnRecord:
    """What is on record of the windows in some spans, which follow one another within a series and do not overlap."""
    if not spans:
        return OnRecord({}, {}, {}, {}, {}, {})
    given = _given(spans)
    rows: dict[int, dict[int, Run]] = {}
    for row in await every(RUNS, Run, spans=given):
        rows.setdefault(row.series, {})[row.nominal] = row  # of several revisions the last one read is the newest
    ranges: dict[int, list[tuple[int, int, str, int]]] = {}
    for series, *skipped in await every(RANGES, lambda *cells: cells, spans=given):
        ranges.setdefault(series, []).append((skipped[0], skipped[1], skipped[2], skipped[3]))
    backfills: dict[int, list[Backfill]] = {}
    for backfill in await every(LIVE_BACKFILLS, Backfill, spans=given):
        backfills.setdefault(backfill.series, []).append(backfill)
    undelivered = await every(UNDELIVERED, RunId, spans=given)
    newest = [row for of_series in rows.values() for row in of_series.values()]
    return OnRecord(
        rows,
        ranges,
        backfills,
        await tallies([run for run in undelivered if _is_completed(rows, run)]),
        await progress([row for row in newest if row.state in TOLD_OF]),
        await requests([row for row in newest if row.cancel_is_asked]),
    )


def _is_completed(rows: dict[int, dict[int, Run]], run: RunId) -> bool:
    row = rows.get(run.series, {}).get(run.nominal)
    return row is not None and row.id == run and row.state == states.COMPLETED


async def settled_in_spans(spans: Sequence[Span], since: int, until: int) -> dict[int, tuple[int, int]]:
    """By series how many of the runs in its span that came due in (since, until] are complete, and how many skipped."""
    if not spans:
        return {}
    found = await every(SETTLED, lambda *cells: cells, spans=_given(spans), since=since, until=until)
    return {series: (completed, skipped) for series, completed, skipped in found}


async def tallies(runs: Iterable[RunId]) -> dict[RunId, Tally]:
    """How the messages of runs stand."""
    spans = [(run.series, run.nominal, run.nominal) for run in runs]
    if not spans:
        return {}
    found = await every(TALLIES, lambda *cells: cells, spans=_given(spans))
    return {RunId(*cells[:3]): Tally(*cells[3:]) for cells in found}


async def progress(rows: Iterable[Run]) -> dict[tuple[RunId, bytes | None], Progress]:
    """How far attempts said that they are, by run and attempt."""
    spans = [(row.series, row.nominal, row.nominal) for row in rows]
    if not spans:
        return {}
    found = await every(PROGRESS, lambda *cells: cells, spans=_given(spans))
    return {(RunId(*cells[:3]), cells[3]): Progress(*cells[4:]) for cells in found}


async def requests(rows: Iterable[Run]) -> dict[tuple[RunId, bytes | None], Request]:
    """Who asked attempts to stop, by run and attempt."""
    spans = [(row.series, row.nominal, row.nominal) for row in rows]
    if not spans:
        return {}
    found = await every(REQUESTS, lambda *cells: cells, spans=_given(spans))
    return {(RunId(*cells[:3]), cells[3]): Request(*cells[4:]) for cells in found}


def _given(spans: Sequence[Span]) -> str:
    import json

    return json.dumps(spans)
