"""Backfills as they stand: what has become of their windows is read from the runs, for nothing counts them on the way."""

from __future__ import annotations

from duly.errors import KeyInvalid, TimeInvalid, WindowInvalid
from duly.evidence.next import parse_range
from duly.ledger import backfill_states as backfills
from duly.ledger import states
from duly.ledger.address import known_or_raise
from duly.ledger.ask import Statement, every, now
from duly.ledger.backfill import (
    ALL,
    COLUMNS,
    WHAT,
    Asked,
    Backfill,
    Owner,
    find_backfill,
    look_at,
    owner_of,
    windows_left,
)
from duly.ledger.backfill_claim import UNSETTLED_OF_BACKFILL
from duly.ledger.records import Known, Run
from duly.ledger.register import scheduled
from duly.ledger.spells import spells_of
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence

COUNTS = Statement(
    "counts_of_backfill",
    """
select r.state, case when r.retry_at is null then 0 else 1 end, count(*)
  from duly_backfill_run m
  join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
 where m.series = :series and m.nominal >= :first and m.nominal < :beyond and m.backfill = :backfill
 group by 1, 2
""",
)

BACKFILLS = Statement(
    "backfills",
    f"""
select {COLUMNS}
  from duly_backfill f
  join duly_series s on s.id = f.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by f.id desc
 limit :limit
""",
)


@record
class Progress:
    """A backfill with the number of its windows by what has become of them. `left` are not begun."""

    as_of: int
    backfill: Backfill
    owner: Owner
    known: Known
    done: int
    running: int
    failed: int
    unknown: int
    waiting: int  # given back, or to be tried again
    left: int

    @property
    def total(self) -> int:
        return self.done + self.running + self.failed + self.unknown + self.waiting + self.left

    @property
    def is_worked_off(self) -> bool:
        """Whether nothing of it is left to take, and it is active only because nobody has come since to find that out."""
        return self.backfill.state == backfills.ACTIVE and not (self.left or self.running or self.waiting)

    @property
    def at_a_time(self) -> int:
        """How many of it run at once at most."""
        job = self.known.job
        return self.backfill.concurrency if job.overlap and not job.ordered else 1


async def progress(number: int) -> Progress:
    """How far a backfill is. Raises `UnknownBackfill`."""
    mine, owner = await find_backfill(number), await owner_of(number)
    known = await known_or_raise(owner.job, owner.scope)
    bounds = {"series": mine.series, "first": mine.first, "beyond": mine.beyond, "backfill": mine.id}
    counts = {"waiting": 0} | dict.fromkeys((*states.UNSETTLED, *states.SETTLED), 0)
    for state, is_retried, many in await every(COUNTS, lambda *row: row, **bounds):
        counts["waiting" if state == states.OPEN or is_retried else state] += many
    return Progress(
        await now(),
        mine,
        owner,
        known,
        done=sum(counts[state] for state in states.SETTLED),
        running=counts[states.RUNNING],
        failed=counts[states.FAILED],
        unknown=counts[states.UNKNOWN],
        waiting=counts["waiting"],
        left=sum(1 for _ in await windows_to_come(mine, known)),
    )


async def windows_to_come(mine: Backfill, known: Known) -> Iterator[Occurrence]:
    """The windows that a backfill has still to come to, as things stand, in its direction."""
    if mine.state not in backfills.LIVE or known.series is None or known.series.id != mine.series:
        return iter(())
    begun = {run.nominal for run in await every(UNSETTLED_OF_BACKFILL, Run, series=mine.series, backfill=mine.id)}
    sights = await look_at(mine.series, mine.first, mine.beyond)
    assert known.line is not None  # it has a series
    ahead = (o for o in windows_left(mine, await spells_of(known), known.line) if o.nominal not in begun)
    return (o for o in ahead if sights.wanted(o, mine.wanted, mine.asked_at) is not None)


async def listed(name: str | None, scope: str | None, limit: int) -> list[Progress]:
    """The backfills of the ledger, of a job or of a line, the newest first."""
    found = await every(BACKFILLS, Backfill, name=name, scope=scope, limit=limit)
    return [await progress(each.id) for each in found]


async def asked_for(
    job: str, scope: str, text: str, *, what: str, order: str, concurrency: int, stop_after: int
) -> Asked:
    """A range and kinds of windows as a person writes them, as the job's schedule reads them. `stop_after` 0: never.

    Raises `WindowInvalid`, `NoSchedule`, `UnknownJob`, `UnknownScope`.
    """
    schedule, _, _ = scheduled(await known_or_raise(job, scope))
    try:
        wanted = parse_range(text, schedule.zone, await now())
    except (KeyInvalid, TimeInvalid, WindowInvalid) as e:
        raise WindowInvalid(f"range: {e}") from e
    if wanted.begin is None:
        raise WindowInvalid(f"range: {text!r} has no beginning; write where to begin, as 2026-01-01..2026-02-01")
    kinds = [kind for word in what.split(",") for kind in (ALL if word.strip() == "all" else (word.strip(),))]
    ordered = tuple(kind for kind in WHAT if kind in kinds) + tuple(kind for kind in kinds if kind not in WHAT)
    return Asked(
        text,
        2 * wanted.begin,
        None if wanted.end is None else 2 * wanted.end,
        ordered,
        order,
        concurrency,
        stop_after or None,
    )
