"""Durations: how long the newest runs of a line took, and how long after their due time they began."""

from __future__ import annotations

from duly.ledger.ask import Statement, every
from duly.records import record

NEWEST = 200  # runs that are looked at

NEWEST_COMPLETED = Statement(
    "newest_completed",
    # The attempt that completed each, by the primary key of both.
    """
select w.nominal, w.due, w.window_end, a.started_at, a.ended_at, w.first_started_at
  from (select n.series, n.nominal, n.revision, n.fence, n.due, n.window_end, n.first_started_at
          from duly_run n
         where n.series = :series and n.state = 'completed'
         order by n.nominal desc, n.revision desc limit :limit) w
  join duly_attempt a
    on a.series = w.series and a.nominal = w.nominal and a.revision = w.revision and a.number = w.fence
 where w.due is not null
 order by w.nominal
""",
)


@record
class Took:
    """One completed run: when it was due, when its first attempt began, and when the attempt ran that completed it."""

    nominal: int
    due: int
    window_end: int | None
    started_at: int
    ended_at: int
    first_started_at: int | None

    @property
    def lag(self) -> int:
        """How long after its due time its first attempt began; nothing, where somebody was early."""
        return max(0, (self.first_started_at or self.started_at) - self.due)

    @property
    def duration(self) -> int:
        """How long the attempt took that completed it."""
        return self.ended_at - self.started_at


async def durations(series: int, limit: int = NEWEST) -> list[Took]:
    """The newest completed runs of a series, the oldest first."""
    return await every(NEWEST_COMPLETED, Took, series=series, limit=limit)


def middle_and_high(values: list[int]) -> tuple[int, int] | None:
    """The median, and what nineteen of twenty do not exceed. Pure."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 19 // 20)]
