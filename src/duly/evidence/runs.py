"""Runs: what the ledger holds, as a list, or one run with its attempts, texts and events."""

from __future__ import annotations

from duly.evidence.verdict import Window, lines, window_of_row
from duly.ledger import states
from duly.ledger.address import Addressed, key_of
from duly.ledger.ask import Statement, alive, every, now
from duly.ledger.cancel import ASKED, Request
from duly.ledger.events import Event
from duly.ledger.messages import Message, messages_of
from duly.ledger.progress import Progress, progress_of
from duly.ledger.records import LEASES, RUN_COLUMNS, EndedAttempt, Run, RunId, Series
from duly.ledger.spells import SERIES_OF_LINE
from duly.records import record
from duly.schedule.keys import RunKey

NEWEST_OF_SERIES = Statement(
    "newest_of_series",
    # The newest by identity, read along the primary key from its end: no index names a time, and none is needed.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and (cast(:state as text) is null or r.state = :state)
 order by r.nominal desc, r.revision desc
 limit :limit
""",
)

NEWEST_UNSETTLED_OF_SERIES = Statement(
    "newest_unsettled_of_series",
    # What is not settled has an index of its own: it is few among many.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.state = :state and {{unsettled}}
 order by r.nominal desc, r.revision desc
 limit :limit
""",
)

REVISIONS = Statement(
    "revisions",
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.nominal = :nominal
 order by r.revision
""",
)

ATTEMPTS = Statement(
    "attempts",
    """
select revision, number, attempt_id, started_at, ended_at, outcome, contract, owner, trigger, error
  from duly_attempt
 where series = :series and nominal = :nominal
 order by revision, number
""",
)

EVENTS = Statement(
    "events",
    """
select revision, at, kind, attempt_id, by, reason, detail, before, after
  from duly_event
 where series = :series and nominal = :nominal
 order by id
""",
)

TEXTS = Statement(
    "texts",
    """
select revision, number, kind, body
  from duly_text
 where series = :series and nominal = :nominal
 order by revision, number, kind
""",
)


@record
class Attempt:
    """One try, ended or current. Of a current one `ended_at` is None and the outcome is the run's state.

    `alive`: whether the process of one whose end nobody saw still shows a pulse; None where nobody can tell, or it is no
    question. `progress` is how far it said that it was, unless it completed.
    """

    revision: int
    ended: EndedAttempt
    alive: bool | None = None
    progress: Progress | None = None

    @property
    def was_superseded(self) -> bool:
        """Whether it was declared lost: whatever it may still do, what it reports is refused."""
        return self.ended.outcome == "lost"

    @property
    def pulse_words(self) -> str:
        """Of one that was declared lost: what is known of its process."""
        return {True: "superseded, still alive", False: "superseded, no pulse", None: "superseded, maybe alive"}[
            self.alive
        ]

    def became_of(self, request: Request | None) -> str:
        """What became of a request to stop it, in a few words; empty where there was none."""
        if request is None:
            return ""
        return {
            states.RUNNING: "has not ended yet",
            states.UNKNOWN: "how it ended is not known",
            "cancelled": "stopped",
            "completed": "too late: it completed",
            "failed": "failed by itself",
            "lost": "vanished",
        }.get(self.ended.outcome, self.ended.outcome)


@record
class Told:
    """An event of one revision of a run."""

    revision: int
    event: Event


@record
class Text:
    """A long text beside an attempt: `error`, `output` or a person's `evidence`."""

    revision: int
    number: int
    kind: str
    body: str


@record
class History:
    """All that the ledger holds of one window: every revision, its attempts, events and texts, and its verdict now."""

    as_of: int
    key: RunKey
    revisions: list[Run]
    attempts: list[Attempt]
    events: list[Told]
    texts: list[Text]
    messages: list[Message]

    def request_to(self, attempt: Attempt) -> Request | None:
        """Who asked an attempt to stop, if anybody did."""
        for told in self.events:
            if told.event.kind == ASKED and told.event.attempt_id == attempt.ended.attempt_id:
                return Request(told.event.at, told.event.by, told.event.reason)
        return None


async def runs(
    name: str | None = None, scope: str | None = None, *, state: str | None = None, limit: int
) -> list[Window]:
    """The newest runs, by due time, of the whole ledger, one job or one line; of one state if that is named."""
    instant = await now()
    found: list[Window] = []
    for known in await lines(name, scope):
        assert known.line is not None
        statement = NEWEST_UNSETTLED_OF_SERIES if state in states.UNSETTLED else NEWEST_OF_SERIES
        for series in await every(SERIES_OF_LINE, Series, line=known.line.id):
            rows = await every(statement, Run, series=series.id, state=state, limit=limit)
            found += [await window_of_row(known, row, instant) for row in rows]
    found.sort(key=lambda window: window.due or (window.row.opened_at if window.row else 0), reverse=True)
    return found[:limit]


async def history(addressed: Addressed) -> History:
    """One window's whole history. Empty lists where it never had a row."""
    run = addressed.run
    of = {"series": run.series, "nominal": run.nominal}
    revisions = await every(REVISIONS, Run, **of)
    ended = await every(ATTEMPTS, lambda revision, *rest: Attempt(revision, EndedAttempt(*rest)), **of)
    current = [Attempt(row.revision, current_attempt(row)) for row in revisions if row.state in ("running", "unknown")]
    told = {row.attempt_id: await progress_of(row) for row in revisions}
    attempts = [
        Attempt(
            attempt.revision,
            attempt.ended,
            await alive(attempt.ended.attempt_id) if attempt.was_superseded else None,
            told.get(attempt.ended.attempt_id) if attempt.ended.outcome != "completed" else None,
        )
        for attempt in (*ended, *current)
    ]
    return History(
        await now(),
        await key_of(RunId(run.series, run.nominal)),
        revisions,
        sorted(attempts, key=lambda attempt: (attempt.revision, attempt.ended.number)),
        await every(EVENTS, lambda revision, *rest: Told(revision, Event(*rest)), **of),
        await every(TEXTS, Text, **of),
        await messages_of(run),
    )


def current_attempt(row: Run) -> EndedAttempt:
    """The attempt that lives in its run's row, because it has not ended."""
    assert row.attempt_id is not None
    assert row.started_at is not None
    return EndedAttempt(
        row.fence,
        row.attempt_id,
        row.started_at,
        None,
        row.state,
        row.contract or "",
        row.owner or "",
        row.trigger or "",
        row.cause,
    )
