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
insert into duly_event (at, kind, job, series, nominal, revision, attempt_id, by, reason, detail)
values ({now}, :kind, :job, :series, :nominal, :revision, :attempt_id, :by, :reason, :detail)
""",
)


@record
class Event:
    """One piece of evidence. `kind` says what happened, `reason` is a person's word, `detail` is ours."""

    at: int
    kind: str
    attempt_id: bytes | None
    by: str
    reason: str
    detail: str


async def tell(
    kind: str,
    *,
    by: str,
    job: int | None = None,
    run: RunId | None = None,
    attempt_id: bytes | None = None,
    reason: str = "",
    detail: str = "",
) -> None:
    """Append an event, in the transaction of what it tells of."""
    await count(
        TELL,
        kind=kind,
        job=job,
        series=None if run is None else run.series,
        nominal=None if run is None else run.nominal,
        revision=None if run is None else run.revision,
        attempt_id=attempt_id,
        by=by,
        reason=reason,
        detail=detail,
    )
