"""Audit: what was done, by whom, when and why, over the whole ledger; the newest first, a page at a time.

A page begins where the last one ended, by a place of its own (`at` and `id` of its last event): nothing is counted, and
nothing newer that comes meanwhile moves what is still to be read.
"""

from __future__ import annotations

from duly.errors import Misuse
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, every
from duly.ledger.events import Event
from duly.ledger.records import RunId
from duly.records import record

NEWEST_EVENTS = Statement(
    "newest_events",
    # Read along (at, id): it stops at the last of the page.
    """
select e.id, j.name, l.scope, e.series, e.nominal, e.revision, e.at, e.kind, e.attempt_id, e.by, e.reason, e.detail,
       e.before, e.after
  from duly_event e
  left join duly_job j on j.id = e.job
  left join duly_series s on s.id = e.series
  left join duly_line l on l.id = s.line
 where (e.at, e.id) < (:at, :id) and e.at >= :since
   and (cast(:scope as text) is null or l.scope = :scope)
   and (cast(:by as text) is null or e.by = :by)
   and (cast(:kind as text) is null or e.kind = :kind)
 order by e.at desc, e.id desc
 limit :limit
""",
)

NEWEST_EVENTS_OF_JOB = Statement(
    "newest_events_of_job",
    NEWEST_EVENTS.sql.replace(" where ", " where e.job = (select id from duly_job where name = :job) and "),
)

_AFTER_ALL = (1 << 63) - 1
_BEFORE_ALL = -(1 << 62)


@record
class Place:
    """Where a page of events ends: the next one is of those before it."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}-{self.id}"


def parse_place(text: str) -> Place:
    """The place that was printed. Raises `Misuse`."""
    at, dash, number = text.rpartition("-")
    if not dash or not at.lstrip("-").isdecimal() or not number.isdecimal():
        raise Misuse(f"before: {text!r} is no place; it is what `duly runs events --format keys` prints")
    return Place(int(at), int(number))


@record
class Happening:
    """An event with what it belongs to: a run by its key; else a job as a whole, or the ledger where there is none."""

    place: Place
    job: str | None
    scope: str | None
    key: str | None
    event: Event


async def happenings(
    job: str | None = None,
    scope: str | None = None,
    *,
    by: str | None = None,
    kind: str | None = None,
    since: int | None = None,
    before: Place | None = None,
    limit: int,
) -> list[Happening]:
    """The newest events of the ledger or of one job, those before a place where one is given.

    With a scope, or of who or a kind that is named, those alone; what is said of a job as a whole is of no scope.
    """
    start = before or Place(_AFTER_ALL, _AFTER_ALL)
    narrowed = {"scope": scope, "by": by, "kind": kind, "limit": limit}
    window = {"at": start.at, "id": start.id, "since": _BEFORE_ALL if since is None else since}
    if job is None:
        rows = await every(NEWEST_EVENTS, lambda *cells: cells, **narrowed, **window)
    else:
        rows = await every(NEWEST_EVENTS_OF_JOB, lambda *cells: cells, job=job, **narrowed, **window)
    found = []
    for number, name, of_scope, series, nominal, revision, *cells in rows:
        key = None if series is None else str(await key_of(RunId(series, nominal, revision)))
        event = Event(*cells)
        found.append(Happening(Place(event.at, number), name, of_scope, key, event))
    return found
