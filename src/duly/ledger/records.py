"""Records: the rows of the ledger as values. Column lists stand beside the record that reads them."""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.backfill_states import LIVE, ors
from duly.records import record
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


@record
class RunId:
    """A run's stored identity: its series, its nominal (2 x civil seconds, + 1 for a second pass), its revision."""

    series: int
    nominal: int
    revision: int = 1


@record
class Job:
    """A named thing with policies. Durations are in microseconds."""

    id: int
    name: str
    first_name: str
    catch_up: str
    contract: str
    remembers: int | None
    clean_exits: str
    retries: int | None
    retry_delay: int
    retry_ceiling: int
    grace: int | None
    overlap: int
    ordered: int
    lease: int
    timeout: int | None
    retain: int | None
    owner: str
    roster: str
    version: int | None
    retired_at: int | None
    edition: int
    paused_at: int | None = None
    paused_until: int | None = None
    paused_by: str | None = None
    paused_why: str | None = None


JOB_COLUMNS = """j.id, j.name, j.first_name, j.catch_up, j.contract, j.remembers, j.clean_exits, j.retries, j.retry_delay,
       j.retry_ceiling, j.grace, j.overlap, j.ordered, j.lease, j.timeout, j.retain, j.owner, j.roster, j.version,
       j.retired_at, j.edition, j.paused_at, j.paused_until, j.paused_by, j.paused_why"""
JOB_WIDTH = 25


@record
class Version:
    """A schedule version: what `Schedule.spec` holds, column by column."""

    number: int
    label: str
    kind: str
    zone: str
    grain: str
    gap: str
    fold: str
    at: str
    offset: str
    lines: str
    interval: int
    anchor: int
    calendar: str
    words: str
    effective_from: int


VERSION_COLUMNS = """v.number, v.label, v.kind, v.zone, v.grain, v.gap, v.fold, v.at, v."offset", v.lines,
       v."interval", v.anchor, v.calendar, v.words, v.effective_from"""
VERSION_WIDTH = 15


@record
class Line:
    """A job with a scope: one row of the roster. Instants are in microseconds.

    Nothing due before `starts`, or at or after `ends`, is owed.
    """

    id: int
    scope: str
    starts: int | None
    ends: int | None
    undeclared_at: int | None
    opened_until: int | None
    next_due: int | None
    holder_series: int | None
    holder_nominal: int | None
    holder_revision: int | None
    paused_at: int | None = None
    paused_until: int | None = None
    paused_by: str | None = None
    paused_why: str | None = None
    live_claims: int = 0

    @property
    def holder(self) -> RunId | None:
        """The run noted as holding the line; whether it still does, its own row says."""
        if self.holder_series is None or self.holder_nominal is None or self.holder_revision is None:
            return None
        return RunId(self.holder_series, self.holder_nominal, self.holder_revision)

    def owes(self, due: int) -> bool:
        """Whether what is due then comes before the line's end."""
        return self.ends is None or due < self.ends

    def owed_by(self, instant: int) -> int:
        """The last instant, up to this one, at which something may have come due of the line."""
        return instant if self.ends is None else min(instant, self.ends - 1)


LINE_COLUMNS = """l.id, l.scope, l.starts, l.ends, l.undeclared_at, l.opened_until, l.next_due,
       l.holder_series, l.holder_nominal, l.holder_revision, l.paused_at, l.paused_until, l.paused_by, l.paused_why,
       l.live_claims"""
LINE_WIDTH = 15


@record
class Series:
    """The part of a line under one zone and grain. Nothing below the horizon is ever executed."""

    id: int
    zone: str
    grain: str
    horizon: int


SERIES_COLUMNS = "s.id, s.zone, s.grain, s.horizon"


@record
class Known:
    """What the ledger knows of a job and scope before a run of it is looked at.

    `version` is the one in force, and `series` that of its zone and grain; or, for a window of a former series, that one
    and the last version that counted by it (`spells.known_by`).
    """

    job: Job
    version: Version | None
    line: Line | None
    series: Series | None


@record
class Pause:
    """No run of a job or a line is started from `since` on, and before `until` if that is given."""

    since: int
    until: int | None
    by: str
    why: str

    def covers(self, instant: int) -> bool:
        """Whether it is in force at an instant, or was."""
        return self.since <= instant and (self.until is None or instant < self.until)


def pause_words(pause: Pause) -> str:
    """As `paused until 2026-12-01T00:00:00Z by ops: the bank is closed`."""
    until = "" if pause.until is None else f" until {instant_text(pause.until)}"
    return f"paused{until} by {pause.by}: {pause.why}"


def own_pause(row: Job | Line | None) -> Pause | None:
    """The last pause that was written of a job as a whole, or of one line, whether or not it is over."""
    if row is None or row.paused_at is None:
        return None
    return Pause(row.paused_at, row.paused_until, row.paused_by or "", row.paused_why or "")


def pauses_of(known: Known) -> list[Pause]:
    """The last pause of the job and that of its line, whether or not they are over."""
    return [pause for row in (known.job, known.line) if (pause := own_pause(row)) is not None]


def pause_of(known: Known, instant: int) -> Pause | None:
    """The pause that is in force at an instant; of two the one that lasts longer."""
    in_force = [pause for pause in pauses_of(known) if pause.covers(instant)]
    return max(in_force, key=lambda pause: (pause.until is None, pause.until or 0), default=None)


@record
class Run:
    """A run's row with its lease, whichever table holds it. `state` is one of `states.STATES`."""

    series: int
    nominal: int
    revision: int
    state: str
    fence: int
    due: int | None
    window_start: int | None
    window_end: int | None
    resolution: str | None
    version: int | None
    opened_at: int
    payload: str | None
    failures: int
    retry_at: int | None
    asked_at: int | None
    settled_at: int | None
    was: str | None
    cause: str | None
    first_started_at: int | None
    attempt_id: bytes | None
    started_at: int | None
    lease_until: int | None
    contract: str | None
    owner: str | None
    trigger: str | None
    zone_facts: int | None
    remembers: int | None
    cancel_number: int | None = None
    backfill: int | None = None  # that owes it; None once that is done or cancelled: then its line does

    @property
    def id(self) -> RunId:
        return RunId(self.series, self.nominal, self.revision)

    @property
    def waits_for_a_person(self) -> bool:
        return self.state == states.FAILED and self.retry_at is None

    @property
    def cancel_is_asked(self) -> bool:
        """Whether a person asked its newest attempt to stop; what was asked of an earlier one is over with that."""
        return self.cancel_number is not None and self.cancel_number == self.fence

    @property
    def standing(self) -> str:
        """How it stands, as events say it: its state, and what else of it a person or a policy changes."""
        revision = "" if self.revision == 1 else f" (revision {self.revision})"
        if self.state == states.FAILED:
            again = "waits for a person" if self.retry_at is None else f"tried again from {instant_text(self.retry_at)}"
            return f"failed, {again}{revision}"
        asked = ", asked to stop" if self.state == states.RUNNING and self.cancel_is_asked else ""
        return f"{self.state}{asked}{revision}"


# The backfill that owes the run r. While there is one, the run is none of its line's catch-up policy.
BACKFILL_OF = f"""(select f.id
          from duly_backfill_run b
          join duly_backfill f on f.id = b.backfill and {ors("f.state", LIVE)}
         where b.series = r.series and b.nominal = r.nominal and b.revision = r.revision)"""

RUN_COLUMNS = f"""r.series, r.nominal, r.revision, r.state, r.fence, r.due, r.window_start, r.window_end,
       r.resolution, r.version, r.opened_at, r.payload, r.failures, r.retry_at, r.asked_at, r.settled_at, r.was,
       r.cause, r.first_started_at, r.attempt_id, r.started_at, coalesce(n.until, r.lease_until), r.contract,
       r.owner, r.trigger, r.zone_facts, r.remembers, r.cancel_number, {BACKFILL_OF}"""

# A renewal counts only for the attempt that made it; a later attempt starts from the lease in its run's row.
LEASES = """left join duly_renewal n
    on n.series = r.series and n.nominal = r.nominal and n.revision = r.revision and n.attempt_id = r.attempt_id"""


@record
class EndedAttempt:
    """One try that has ended, as its row says. `outcome`: completed, failed, cancelled, lost or released."""

    number: int
    attempt_id: bytes
    started_at: int
    ended_at: int | None
    outcome: str
    contract: str
    owner: str
    trigger: str
    error: str | None


@record
class Claim:
    """The right to work a run now: key, attempt and number, which every write names (I2)."""

    run: RunId
    attempt_id: bytes
    number: int
    started_at: int
    lease_until: int
    lease: int
    contract: str
    owner: str
    trigger: str
    failures: int
    first_started_at: int
    remembers: int | None = None
    row: Run | None = None  # as it was when it was claimed


@record
class Claimer:
    """Who wants to claim, with an id made before the claim. `payload`: a hash, `none`, or None to adopt what is stored."""

    attempt_id: bytes
    owner: str
    trigger: str
    payload: str | None = None


# -- answers ------------------------------------------------------------------------------------------------------------


@record
class AlreadyCompleted:
    """The run is complete; nothing was run. Falsy."""

    run: RunId
    settled_at: int
    number: int

    def __bool__(self) -> Literal[False]:
        return False


@record
class Busy:
    """Another attempt holds the run or its line until `until` (an instant, renewed while it lives). Falsy."""

    run: RunId
    until: int
    owner: str

    def __bool__(self) -> Literal[False]:
        return False


@record
class NotDue:
    """The run may not be taken before `due`. Falsy."""

    run: RunId
    due: int

    def __bool__(self) -> Literal[False]:
        return False
