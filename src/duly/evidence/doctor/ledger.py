"""Examinations of what the ledger holds: the same on each database."""

from __future__ import annotations

from shlex import join

from duly.evidence.doctor import NOTE, OK, TROUBLE, WARNING, Finding
from duly.evidence.next import next_change
from duly.evidence.verdict import lines
from duly.evidence.words import ago, span
from duly.ledger import states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.messages import backlog
from duly.ledger.named import to_say
from duly.ledger.policy import grace_of
from duly.ledger.probe import last_asked
from duly.ledger.records import LEASES, RUN_COLUMNS, Run, pause_of
from duly.ledger.register import schedule_of
from duly.ledger.take import gone
from duly.schedule.facts import UNKNOWN, release_in_use
from duly.schedule.lints import lints_of
from duly.store import SCHEMA
from duly.store.migrations import POSTGRES, SQLITE, steps
from duly.times import DAY, HOUR, MINUTE, SECOND, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import Known

LONG_RUNNING = DAY
LONG_HELD = 30 * DAY  # what is not settled for so long holds a horizon that somebody may wish to raise
LONG_STUCK = HOUR
SOON = 30 * DAY
AHEAD = 5 * SECOND  # no two looks at one clock are further apart

FACTS = Statement("facts_of_ledger", "select name, value from duly_meta")

MIGRATIONS = Statement("migrations_on_record", "select number, sha256 from duly_migration order by number")

NEWEST_EVENT = Statement("newest_event", "select at from duly_event order by at desc limit 1")

UNSETTLED_RUNS = Statement(
    "unsettled_runs",
    # Few: the partial index holds them.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where {{unsettled}}
 order by r.series, r.nominal, r.revision
""",
)

LIVE_BACKFILLS = Statement(
    "live_backfills",
    f"""
select f.id, f.asked, f.asked_at, j.name
  from duly_backfill f
  join duly_series s on s.id = f.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where {ors("f.state", LIVE)}
 order by f.id
""",
)

RELEASES = Statement(
    "releases_of_zones",
    "select distinct zone, release from duly_zone_facts order by zone, release",
)

DRIFTS = Statement(
    "drifts_since",
    "select count(*) from duly_event where at >= :since and kind = 'tz_drift'",
)


async def schema() -> list[Finding]:
    """The tables: whether this release may write, and whether it has migrations that the ledger lacks."""
    facts = dict(await every(FACTS, lambda *pair: pair))
    found, writer = int(facts["schema"]), int(facts["min_writer"])
    recorded = await every(MIGRATIONS, lambda *row: row)
    numbers = [number for number, _ in recorded]
    if writer > SCHEMA:
        seen = f"schema {found} is written only by releases that know schema {writer}; this one knows {SCHEMA}"
        return [Finding("schema", TROUBLE, seen, "pip install --upgrade duly")]
    if numbers != list(range(1, found + 1)):
        seen = (
            f"it says schema {found}, and has migrations {numbers or 'none'} on record: one failed, or was run by hand"
        )
        return [Finding("schema", TROUBLE, seen, "duly db migrate --dry-run")]
    own = {step.sha256 for engine in (SQLITE, POSTGRES) for step in steps(engine)}
    other = [number for number, sha256 in recorded if number <= SCHEMA and sha256 not in own]
    if other:
        seen = f"migration {other[0]} was applied as another text than this release has"
        return [Finding("schema", TROUBLE, seen, "duly db migrate --dry-run")]
    if found < SCHEMA:
        seen = f"schema {found}; this release knows {SCHEMA}, and works on it as it is"
        return [Finding("schema", NOTE, seen, "duly db migrate --dry-run")]
    return [Finding("schema", OK, f"schema {found}, written by releases that know {writer}, epoch {facts['epoch']}")]


async def clock() -> list[Finding]:
    """The ledger's clock: whether something was written at an instant that is still to come."""
    instant, newest = await now(), await one(NEWEST_EVENT, int)
    if newest is not None and newest > instant + AHEAD:
        seen = f"an event was written {span(newest - instant)} from now: the clock went back, or was wrong then"
        return [Finding("clock", TROUBLE, seen, "timedatectl status")]
    return [Finding("clock", OK, f"it is {instant_text(instant)} by the ledger, and nothing was written after that")]


async def leases() -> list[Finding]:
    """Attempts that run: one that is gone and nobody judges, one whose lease ends too far ahead, one that runs for long."""
    instant, found = await now(), []
    jobs = {known.series.id: known for known in await lines() if known.series is not None}
    running = [run for run in await every(UNSETTLED_RUNS, Run) if run.state == states.RUNNING]
    for run in running:
        key, known = str(await key_of(run.id)), jobs.get(run.series)
        lease, until, started = MINUTE if known is None else known.job.lease, run.lease_until or 0, run.started_at or 0
        if until > instant + lease + AHEAD:
            seen = f"{key}: its lease ends in {span(until - instant)}, and is {span(lease)} long: a clock went back"
            found.append(Finding("leases", TROUBLE, seen, join(["duly", "runs", "show", key])))
        elif instant - until > 10 * lease and await gone(run):
            seen = f"{key}: its attempt is gone for {span(instant - until)}, and no poke has come to judge it"
            found.append(Finding("leases", WARNING, seen, join(["duly", "explain", key])))
        elif instant - started > LONG_RUNNING:
            seen = f"{key}: its attempt runs for {span(instant - started)}"
            found.append(Finding("leases", WARNING, seen, join(["duly", "runs", "show", key])))
    oldest = min((run.started_at or instant for run in running), default=None)
    said = (
        "no attempt runs" if oldest is None else f"{len(running)} attempts run, the oldest for {span(instant - oldest)}"
    )
    return found or [Finding("leases", OK, said)]


async def unknown() -> list[Finding]:
    """Runs whose outcome nobody knows: those that no probe was asked about, and those of which it cannot tell."""
    instant, found = await now(), []
    for run in await every(UNSETTLED_RUNS, Run):
        if run.state == states.UNKNOWN:
            key = str(await key_of(run.id))
            asked = await last_asked(run)
            said = "no probe was asked"
            if asked is not None:
                said = f"its probe was asked {asked.asked} times: {asked.said or 'no answer yet'}"
            when = ago(run.started_at or instant, instant)
            seen = f"{key}: nobody knows what attempt {run.fence} did {when}; {said}"
            step = f"{join(['duly', 'resolve', key])} {to_say('resolve')}"
            found.append(Finding("unknown", WARNING, seen, step))
    return found or [Finding("unknown", OK, "the outcome of every run is known")]


async def horizons() -> list[Finding]:
    """What keeps a horizon from rising: an old run that is not settled, or a backfill that is not over."""
    instant, found = await now(), []
    seen_series: set[int] = set()
    for run in await every(UNSETTLED_RUNS, Run):
        since = run.due or run.opened_at
        if run.series not in seen_series and instant - since > LONG_HELD:
            seen_series.add(run.series)  # the lowest of its series holds the horizon
            key = str(await key_of(run.id))
            seen = f"{key} is {run.state} for {span(instant - since)}: nothing of its line that came after it can be pruned"
            found.append(Finding("horizons", NOTE, seen, join(["duly", "explain", key])))
    for number, asked, at, job in await every(LIVE_BACKFILLS, lambda *row: row):
        if instant - at > LONG_HELD:
            seen = f"backfill {number} of {job}, {asked}, was asked for {ago(at, instant)} and is not over"
            found.append(Finding("horizons", NOTE, seen, f"duly backfill show {number}"))
    return found or [
        Finding("horizons", OK, f"nothing that is older than {span(LONG_HELD)} keeps a horizon from rising")
    ]


async def pokes() -> list[Finding]:
    """Lines that no poke has come to since a window of theirs was due, and its grace is over."""
    instant, found, watched = await now(), [], 0
    for known in await lines():
        line = known.line
        if line is None or known.job.retired_at is not None or known.version is None:
            continue
        watched += 1
        if line.next_due is None or line.undeclared_at is not None or pause_of(known, instant) is not None:
            continue
        bounds = None if line.opened_until is None else (line.opened_until, line.next_due)
        if instant - line.next_due > grace_of(known.job, bounds):
            seen = f"{_name(known)}: a window has been due for {span(instant - line.next_due)}, and no poke has come"
            found.append(Finding("pokes", WARNING, seen, join(["duly", "status", known.job.name])))
    return found or [Finding("pokes", OK, f"every line with a schedule is poked: {watched} of them")]


async def messages() -> list[Finding]:
    """Destinations with messages that no relay will deliver by itself, or that none delivers."""
    instant, found = await now(), []
    for each in await backlog():
        step = join(["duly", "outbox", "list", "--to", each.destination])
        if each.unknown or each.stuck:
            seen = f"{each.destination}: {each.unknown} of unknown outcome, {each.stuck} refused or dead"
            found.append(Finding("messages", WARNING, seen, step))
        elif instant - each.oldest > LONG_STUCK:
            seen = (
                f"{each.destination}: {each.messages} wait, the oldest {ago(each.oldest, instant)}; does a relay run?"
            )
            found.append(Finding("messages", WARNING, seen, step))
    return found or [Finding("messages", OK, "no message waits for long, or for a person")]


async def zones() -> list[Finding]:
    """The rules of zones that this host reads, beside those that the hosts which opened windows read."""
    found: list[Finding] = []
    stored: dict[str, set[str]] = {}
    for zone, release in await every(RELEASES, lambda *row: row):
        stored.setdefault(zone, set()).add(release)
    here = {zone: release_in_use(zone).version for zone in stored}
    for zone, releases in stored.items():
        newest = max((release for release in releases if release != UNKNOWN), default=here[zone])
        if here[zone] != UNKNOWN and newest > here[zone]:  # 2026a, 2026b …: they sort as they came
            seen = f"{zone}: this host reads {here[zone]}, and another has read {newest}"
            found.append(Finding("zones", WARNING, seen, "pip install --upgrade tzdata"))
    instant = await now()
    drifts = await one(DRIFTS, int, since=instant - SOON) or 0
    if drifts:
        seen = f"{drifts} times in {span(SOON)} a host had other rules than those by which a window was opened"
        found.append(Finding("zones", WARNING, seen, f"duly runs events --kind tz_drift --since -{SOON // DAY}d"))
    said = ", ".join(f"{zone} {release}" for zone, release in sorted(here.items())) or "UTC alone"
    return found or [Finding("zones", OK, f"rules read here: {said}")]


async def nights() -> list[Finding]:
    """Jobs whose times the clocks skip or repeat in the next 30 days."""
    instant, found = await now(), []
    for known in await lines():
        if known.version is None or (known.job.retired_at is not None):
            continue
        change = next_change(known.version.zone, instant)
        if change is None or change.at > instant + SOON:
            continue
        day = instant_text(change.at)[:10]
        for lint in lints_of(schedule_of(known.version), instant):
            if lint.night and lint.night <= instant_text(change.at + DAY)[:10]:
                step = join(["duly", "next", known.job.name])
                found.append(Finding("nights", NOTE, f"{_name(known)}, around {day}: {lint.says}", step))
    return found or [
        Finding("nights", OK, f"in the next {span(SOON)} no clock skips or repeats a time that a job counts")
    ]


def _name(known: Known) -> str:
    scope = "" if known.line is None else known.line.scope
    return f"{scope}/{known.job.name}" if scope else known.job.name


EXAMINATIONS = (schema, clock, leases, unknown, horizons, pokes, messages, zones, nights)
