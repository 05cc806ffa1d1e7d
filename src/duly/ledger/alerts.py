"""Alerts: what somebody is to be told of, from the look that saw it first to the one that saw it no more.

That something is wrong is never stored as a truth: each look computes it anew (`evidence.conditions`). Here is stored what was
seen, so that a *flip*, of raised or recovered, happens once. Two rules carry it:

- A look takes a number, and writes what it found only while no later look has begun. So of two that look at once one writes,
  and one that was stopped for an hour writes nothing. Killed before it has written, it found nothing, and the next one does.
- What is told follows what is so. Each alert has the state that it is in, and the one that was told last. Where they differ and
  no silence is in force a message goes into the outbox, in the transaction that notes that it was told: there is no moment
  at which one of the two is lost.

Messages belong to runs, and so each flip is a run of the job `duly.alerts`, outside any schedule, complete when it is there.
What is told of an alert waits for what was told before of its subject, where that is on its way: they come in order.
"""

from __future__ import annotations

from hashlib import sha256

from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.backfill_states import ors
from duly.ledger.message_states import DEAD, PENDING, REFUSED, SENDING
from duly.ledger.message_states import UNKNOWN as IN_DOUBT
from duly.ledger.once import once
from duly.ledger.records import Claimer
from duly.ledger.send import LONGEST_NAME, send_in
from duly.ledger.silence import silences_in_force
from duly.records import record, replace
from duly.schedule.keys import RunKey
from duly.times import MINUTE, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duly.ledger.send import Letter

JOB = "duly.alerts"  # whose runs the flips are

LATE = "late"  # a line: a window that nobody has come to work in time, or that was begun too late and is not complete
FAILED = "failed"  # a run that waits for a person
UNKNOWN = "unknown"  # a run of which nobody knows what it did
STUCK = "stuck"  # a destination with messages that no relay will deliver by itself
SUPERSEDED = "superseded"  # an attempt that vanished, and whose run was taken over
DRIFT = "drift"  # a run whose stored window is not what the rules of its zone say now
KINDS = (LATE, FAILED, UNKNOWN, STUCK, SUPERSEDED, DRIFT)

OPEN, RECOVERED, NOTED = "open", "recovered", "noted"

EARLIER_AT_MOST = 5  # alerts of one subject whose messages may not have left yet
DIGEST_ABOVE = 20  # flips of one look: more are one message
LONGEST_TRANSACTION = 10 * MINUTE  # of whoever writes that something has happened

# -- statements ---------------------------------------------------------------------------------------------------------

BEGIN_LOOK = Statement(
    "begin_look_if_time",
    "update duly_look set number = number + 1, looked_at = {now} where looked_at <= {now} - :every or looked_at > {now}",
)

LOOK_BEGUN = Statement("look_begun", "select number, recorded, recorded_at, first_at from duly_look")

RECORD_LOOK = Statement(
    "record_look_if_newest",
    # The guard of all that a look writes: nobody has begun another one since, and nobody wrote of this one.
    """
update duly_look
   set recorded = :number, recorded_at = :at, first_at = case when recorded = 0 then :at else first_at end
 where number = :number and recorded < :number
""",
)

ALERT_COLUMNS = """a.id, a.kind, a.subject, coalesce(j.name, ''), a.job, a.scope, a.about, a.note, a.step, a.state, a.told,
       a.since, a.raised_at, a.recovered_at"""

LIVE_ALERTS = Statement(
    "live_alerts",
    # Those that are open, and those of which it was not told that they are over.
    f"""
select {ALERT_COLUMNS}
  from duly_alert a
  left join duly_job j on j.id = a.job
 where a.state = 'open' or a.told = 'open'
 order by a.id
""",
)

NEWEST_ALERTS = Statement(
    "newest_alerts",
    f"""
select {ALERT_COLUMNS}
  from duly_alert a
  left join duly_job j on j.id = a.job
 order by a.id desc
 limit :limit
""",
)

NOTED_ALERT = Statement(
    "noted_alert",
    f"""
select {ALERT_COLUMNS}
  from duly_alert a
  left join duly_job j on j.id = a.job
 where a.kind = :kind and a.subject = :subject and a.state = 'noted'
""",
)

RAISE = Statement(
    "raise_alert",
    """
insert into duly_alert (kind, subject, job, scope, about, note, step, state, told, since, raised_at)
values (:kind, :subject, :job, :scope, :about, :note, :step, :state, '', :since, :at)
    on conflict do nothing
""",
)

RECOVER = Statement(
    "recover_alert",
    "update duly_alert set state = 'recovered', recovered_at = :at where id = :id and state = 'open'",
)

# Of the same subject, those before one: what is told of them may not have left yet.
EARLIER_ALERTS = Statement(
    "earlier_alerts",
    """
select id, kind, raised_at
  from duly_alert
 where kind = :kind and subject = :subject and id < :id
 order by id desc limit :many
""",
)

TELL_OF = Statement("tell_of_alert", "update duly_alert set told = state where id = :id")

UNSENT_OF_RUN = Statement(
    "unsent_of_alert",
    # Of a run in which one waits for word, or for a person, nothing leaves: what is told now must not wait with it.
    f"""
select m.number
  from duly_adhoc a
  join duly_series s on s.id = a.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  join duly_message m on m.series = a.series and m.nominal = a.nominal
 where j.name = :job and l.scope = '' and a.id = :adhoc
   and {ors("m.state", (PENDING, SENDING))}
   and not exists (
       select 1
         from duly_message w
        where w.series = m.series and w.nominal = m.nominal and {ors("w.state", (IN_DOUBT, REFUSED, DEAD))})
 limit 1
""",
)


# -- values -------------------------------------------------------------------------------------------------------------


@record
class Condition:
    """What a look has seen. `subject` names what it is about by ids, `about` as people do. One that does not `raise` an alert
    keeps one open that was raised before. `job` is an id, None where it is about no job. `happened`: it has, for good.
    """

    kind: str
    subject: str
    job: int | None
    scope: str
    about: str
    note: str
    step: str
    since: int
    raises: bool = True
    happened: bool = False


@record
class Alert:
    """A row of what was seen. `state` is `open`, `recovered` or `noted`, `told` the one that was told last, or empty."""

    id: int
    kind: str
    subject: str
    job: str
    job_id: int | None
    scope: str
    about: str
    note: str
    step: str
    state: str
    told: str
    since: int
    raised_at: int
    recovered_at: int | None

    @property
    def flip(self) -> str:
        """What is told of it: raised, recovered or noted."""
        return "raised" if self.state == OPEN else self.state

    @property
    def is_untold(self) -> bool:
        """Whether what was told last is not what is so. Of what nobody was told it need not be told that it is over."""
        return self.told != self.state and (self.state != RECOVERED or self.told == OPEN)


@record
class Look:
    """A look that has begun. `since`: what happened at or after this instant may be news to it."""

    number: int
    is_first: bool
    since: int


@record
class Telling:
    """What one destination is told in one message: an alert, or several at once; `open` of those it knows are open then, and
    `open_of_job` of those are of the alert's job. `is_first`: it is what was so when somebody first looked.
    """

    destination: str
    alerts: tuple[Alert, ...]
    open: int
    open_of_job: int
    at: int
    is_first: bool = False

    @property
    def is_digest(self) -> bool:
        """Whether it is told of by numbers."""
        return self.is_first or len(self.alerts) > 1


@record
class Audience:
    """Who is told of what, and how: `of` an alert the destinations; `letter` for one of them; whatever makes keys and ids."""

    of: Callable[[Alert], Sequence[str]]
    letter: Callable[[Telling], Letter]
    key_of: Callable[[str, RunKey, str, str], str]
    new_id: Callable[[], bytes]
    owner: str


# -- looking ------------------------------------------------------------------------------------------------------------


async def begin_look(every_micros: int) -> Look | None:
    """Take the next number, unless somebody looked less than so long ago. To lose it in a crash loses nothing."""
    if not await count(BEGIN_LOOK, every=every_micros):
        return None
    begun = await one(LOOK_BEGUN, lambda *cells: cells)
    assert begun is not None
    number, recorded, recorded_at, first_at = begun
    # Not all that was committed before the last look could be seen by it, for its instant may be older than its commit.
    return Look(number, not recorded, max(first_at, recorded_at - LONGEST_TRANSACTION))


async def record_look(look: Look, found: Sequence[Condition], audience: Audience) -> list[str] | None:
    """Write down what flipped, and put what is to be told of it into the outbox; answers for which destinations.

    None: a later look has begun, and nothing was written.
    """
    at = await now()
    if not await count(RECORD_LOOK, number=look.number, at=at):
        return None
    before = {(alert.kind, alert.subject): alert for alert in await open_alerts()}
    holds = {(each.kind, each.subject) for each in found}
    noted = []
    for each in found:
        if not each.raises or (each.kind, each.subject) in before or (each.happened and look.is_first):
            continue
        if await count(RAISE, **_columns(each), at=at) and each.happened:
            noted += await every(NOTED_ALERT, Alert, kind=each.kind, subject=each.subject)
    for place, alert in before.items():
        if place not in holds:
            await count(RECOVER, id=alert.id, at=at)
    return await _tell([*await live_alerts(), *noted], look, at, audience)


def _columns(found: Condition) -> dict[str, int | str | bytes | None]:
    return {
        "kind": found.kind,
        "subject": found.subject,
        "job": found.job,
        "scope": found.scope,
        "about": found.about,
        "note": found.note,
        "step": found.step,
        "state": NOTED if found.happened else OPEN,
        "since": found.since,
    }


async def live_alerts() -> list[Alert]:
    """Those that are open, and those of which it was not told that they are over; the oldest first."""
    return await every(LIVE_ALERTS, Alert)


async def open_alerts() -> list[Alert]:
    """Those that are open, the oldest first."""
    return [alert for alert in await live_alerts() if alert.state == OPEN]


async def newest_alerts(limit: int) -> list[Alert]:
    """Whatever was raised, the newest first."""
    return await every(NEWEST_ALERTS, Alert, limit=limit)


# -- telling ------------------------------------------------------------------------------------------------------------


async def _tell(alerts: list[Alert], look: Look, at: int, audience: Audience) -> list[str]:
    """Put into the outbox what is not told yet and not silenced; answers to which destinations."""
    silences = await silences_in_force(at)
    news = [alert for alert in alerts if alert.is_untold and not any(silence.covers(alert) for silence in silences)]
    # It was over and is so again: that it was over is no news any more.
    again = {(alert.kind, alert.subject) for alert in alerts if alert.state == OPEN}
    stale = [alert for alert in news if alert.state == RECOVERED and (alert.kind, alert.subject) in again]
    news = [alert for alert in news if alert not in stale]
    told = {alert.id for alert in news if look.is_first or audience.of(alert)}
    # What each destination knows to be open once it has been told.
    known = [alert for alert in alerts if alert.state == OPEN and (alert.told == OPEN or alert.id in told)]
    destinations = dict.fromkeys(name for alert in news for name in audience.of(alert))
    for destination in destinations:
        theirs = [alert for alert in news if destination in audience.of(alert)]
        theirs_open = [alert for alert in known if destination in audience.of(alert)]
        if look.is_first or len(theirs) > DIGEST_ABOVE:
            telling = Telling(destination, tuple(theirs), len(theirs_open), len(theirs_open), at, look.is_first)
            await _send(f"look-{look.number}-{at // SECOND}-{_short(destination)}", telling, audience)
            continue
        for alert in theirs:
            of_job = [each for each in theirs_open if each.job_id == alert.job_id]
            telling = Telling(destination, (alert,), len(theirs_open), len(of_job), at)
            await _send(await _run_of(alert, destination), telling, audience, number=alert.id)
    for id_ in (*told, *(alert.id for alert in stale)):
        await count(TELL_OF, id=id_)
    return list(destinations)


async def _run_of(alert: Alert, destination: str) -> str:
    """The run that a message about an alert goes with: that of what was told before of the same subject, if it is on
    its way, for messages of one run leave in their order; else one of its own.

    Its id has a time in it: a ledger that went back gives its numbers again, and a receiver must not take the next alert for
    one that it knows.
    """
    before = await every(
        EARLIER_ALERTS, lambda *cells: cells, kind=alert.kind, subject=alert.subject, id=alert.id, many=EARLIER_AT_MOST
    )
    for id_, kind, raised_at in ((alert.id, alert.kind, alert.raised_at), *before):
        for word in (RECOVERED, kind):
            run = f"{id_}-{raised_at // SECOND}-{word}-{_short(destination)}"
            if await one(UNSENT_OF_RUN, int, job=JOB, adhoc=run) is not None:
                return run
    word = RECOVERED if alert.state == RECOVERED else alert.kind
    return f"{alert.id}-{alert.raised_at // SECOND}-{word}-{_short(destination)}"


async def _send(adhoc: str, telling: Telling, audience: Audience, *, number: int = 0) -> None:
    """Complete a run, as `once` does, and add the message to it. In the run of another alert it is named with its number."""
    key = RunKey(JOB, "", "adhoc", 0, "", None, adhoc)
    await once(key, Claimer(audience.new_id(), audience.owner, "alert"))
    letter = audience.letter(telling)
    if number and not adhoc.startswith(f"{number}-"):
        letter = replace(letter, name=f"{letter.name[: LONGEST_NAME - 12]} #{number}")
    await send_in(key, letter, audience.owner, audience.key_of)


def _short(destination: str) -> str:
    """A destination's name as it may stand in an id."""
    if len(destination) <= 60:
        return destination
    return f"{destination[:51]}-{sha256(destination.encode()).hexdigest()[:8]}"
