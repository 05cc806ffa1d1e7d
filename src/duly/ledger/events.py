"""Events: append-only evidence of who did what to which run, when, and why (I10)."""

from __future__ import annotations

from duly.ledger.ask import Statement, count
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import RunId

TELL = Statement(
    "tell",
    """
insert into duly_event (at, kind, job, series, nominal, revision, attempt_id, by, reason, detail, before, after)
values ({now}, :kind,
        coalesce(cast(:job as bigint),
                 (select l.job from duly_series s join duly_line l on l.id = s.line where s.id = cast(:line_of as bigint))),
        :series, :nominal, :revision, :attempt_id, :by, :reason, :detail, :before, :after)
""",
)


@record
class Event:
    """One piece of evidence. `kind` says what happened, `reason` is a person's word, `detail` is ours.

    Of a change `before` and `after` say what was so, and what is since; of what changed nothing, as a refusal, both are empty.
    """

    at: int
    kind: str
    attempt_id: bytes | None
    by: str
    reason: str
    detail: str
    before: str
    after: str


async def tell(
    kind: str,
    *,
    by: str,
    job: int | None = None,
    series: int | None = None,
    run: RunId | None = None,
    attempt_id: bytes | None = None,
    reason: str = "",
    detail: str = "",
    changed: tuple[str, str] = ("", ""),
) -> None:
    """Append an event, in the transaction of what it tells of.

    One of a run, or of a `series` as a whole, is one of its job; only that of a run is forgotten with it.
    `changed`: what was so, and what is since.
    """
    await count(
        TELL,
        kind=kind,
        job=job,
        line_of=series if run is None else run.series,
        series=None if run is None else run.series,
        nominal=None if run is None else run.nominal,
        revision=None if run is None else run.revision,
        attempt_id=attempt_id,
        by=by,
        reason=reason,
        detail=detail,
        before=changed[0],
        after=changed[1],
    )
