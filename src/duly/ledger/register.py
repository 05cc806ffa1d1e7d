"""Register: jobs, their schedule in force, and the roster of scopes.

A declaration (flags, a decorator, a file) says what a job is. The first one registers it; later ones must agree with the
schedule in force, or nothing runs: a schedule changes only by a new version. Code that gives its schedule a label that the
ledger has never seen makes one; a label that was replaced is refused from then on, so that a host which still runs the code
of before cannot turn it back. Policies that are left out keep their stored value, and different ones are stored, with an
event.
"""

from __future__ import annotations

from duly.errors import (
    JobRenamed,
    Misuse,
    NoSchedule,
    Refused,
    Retired,
    ScheduleChanged,
    UnknownJob,
    UnknownScope,
)
from duly.ledger.ask import Statement, count, do, now, one
from duly.ledger.events import tell
from duly.ledger.records import (
    JOB_COLUMNS,
    JOB_WIDTH,
    LINE_COLUMNS,
    LINE_WIDTH,
    SERIES_COLUMNS,
    VERSION_COLUMNS,
    VERSION_WIDTH,
    Job,
    Known,
    Line,
    Series,
    Version,
)
from duly.records import record
from duly.schedule.spec import Schedule, every, from_spec
from duly.schedule.spells import Spell
from duly.times import DAY, HOUR, MINUTE, SECOND, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.ledger.ask import Value

NO_HORIZON = -(1 << 62)

DEFAULTS: dict[str, Value] = {
    "catch_up": "latest",
    "contract": "external",
    "remembers": None,
    "clean_exits": "",
    "retries": None,
    "retry_delay": MINUTE,
    "retry_ceiling": HOUR,
    "grace": None,
    "overlap": 0,
    "ordered": 0,
    "lease": 60 * SECOND,
    "timeout": None,
    "retain": None,
    "owner": "",
    "roster": "open",
}

FIND = Statement(
    "find",
    f"""
select {JOB_COLUMNS},
       {VERSION_COLUMNS},
       {LINE_COLUMNS},
       {SERIES_COLUMNS}
  from duly_job j
  left join duly_version v on v.job = j.id and v.number = j.version
  left join duly_line l on l.job = j.id and l.scope = :scope
  left join duly_series s on s.line = l.id and s.zone = v.zone and s.grain = v.grain
 where j.name = :name
""",
)

ADD_JOB = Statement(
    "add_job",
    """
insert into duly_job (name, first_name, catch_up, contract, remembers, clean_exits, retries, retry_delay, retry_ceiling, grace,
       overlap, ordered, lease, timeout, retain, owner, roster, created_at)
values (:name, :name, :catch_up, :contract, :remembers, :clean_exits, :retries, :retry_delay, :retry_ceiling, :grace,
       :overlap, :ordered, :lease, :timeout, :retain, :owner, :roster, {now})
    on conflict do nothing
""",
)

KEEP_POLICIES = Statement(
    "keep_policies",
    """
update duly_job
   set catch_up = :catch_up, contract = :contract, remembers = :remembers, clean_exits = :clean_exits,
       retries = :retries, retry_delay = :retry_delay, retry_ceiling = :retry_ceiling, grace = :grace,
       overlap = :overlap, ordered = :ordered, lease = :lease, timeout = :timeout, retain = :retain, owner = :owner,
       roster = :roster
 where id = :id
""",
)

ADD_VERSION = Statement(
    "add_version",
    """
insert into duly_version (job, number, label, kind, zone, grain, gap, fold, at, "offset", lines, "interval", anchor,
       calendar, words, effective_from, created_at, by, reason)
values (:job, :number, :label, :kind, :zone, :grain, :gap, :fold, :at, :offset, :lines, :interval, :anchor,
       :calendar, :words, :effective_from, {now}, :by, :reason)
    on conflict do nothing
""",
)

PUT_IN_FORCE = Statement("put_in_force", "update duly_job set version = :number where id = :job")

HOLD_JOB_STILL = Statement(
    "hold_job_still",
    # Whoever edits the schedule looks which lines there are, and opens what has begun of each: a line that comes meanwhile
    # would begin under a schedule that is none any more.
    "select id from duly_job where id = :job {still}",
    only_locks=True,
)

ADD_LINE = Statement(
    "add_line",
    """
insert into duly_line (job, scope, created_at)
values (:job, :scope, {now})
    on conflict do nothing
""",
)

START_LINE = Statement(
    "start_line",
    """
update duly_line
   set starts = :starts, opened_until = :opened_until, next_due = :next_due
 where id = :line and starts is null
""",
)

ADD_SERIES = Statement(
    "add_series",
    """
insert into duly_series (line, zone, grain, horizon)
values (:line, :zone, :grain, :horizon)
    on conflict do nothing
""",
)

FIND_LABEL = Statement(
    "find_label",
    f"""
select {VERSION_COLUMNS}
  from duly_version v
 where v.job = :job and v.label = :label
 order by v.number desc
 limit 1
""",
)

NAME_NOW = Statement(
    "name_now", "select j.name from duly_former_name f join duly_job j on j.id = f.job where f.name = :name"
)

FIND_SERIES = Statement(
    "find_series",
    f"select {SERIES_COLUMNS} from duly_series s where s.line = :line and s.zone = :zone and s.grain = :grain",
)


NEXT_ADHOC = Statement(
    "next_adhoc",
    """
insert into duly_adhoc (series, nominal, id)
select :series, 2 * (1 + (select count(*) from duly_adhoc where series = :series)), :id
 where not exists (select 1 from duly_adhoc where series = :series and id = :id)
""",
)

FIND_ADHOC = Statement("find_adhoc", "select nominal from duly_adhoc where series = :series and id = :id")


@record
class Declaration:
    """What a caller says that a job is. `policies` holds the columns of duly_job that it names, and no others.

    `defaults` are for a job that is seen for the first time; `scopes` is the roster that the caller closes it to. `version`
    is the label of the schedule, empty where it has none.
    """

    job: str
    scope: str = ""
    schedule: Schedule | None = None
    policies: dict[str, Value] = {}  # noqa: RUF012  a record never changes its fields
    by: str = ""
    defaults: dict[str, Value] = {}  # noqa: RUF012
    scopes: tuple[str, ...] | None = None
    version: str = ""


_understood: dict[Version, Schedule] = {}  # versions never change, and are read at each claim


def schedule_of(version: Version) -> Schedule:
    """The schedule that a version holds."""
    schedule = _understood.get(version)
    if schedule is None:
        if len(_understood) >= 1_000:  # a process that serves more jobs than that begins anew
            _understood.clear()
        schedule = _understood[version] = _read(version)
    return schedule


def _read(version: Version) -> Schedule:
    if not version.calendar:
        return _without_calendar(version)
    from duly.schedule.calendar import parse_on_calendar  # few jobs have one

    on = parse_on_calendar(version.calendar)
    return _without_calendar(version).on(on.calendar, on.policy)


def _without_calendar(version: Version) -> Schedule:
    if version.kind == "every":
        return every(version.interval, anchor=version.anchor)
    if version.kind == "cron":
        lines = [
            dict(zip(("gap", "fold", "cron"), line.split(" ", 2), strict=True)) for line in version.lines.split("\n")
        ]
        return from_spec({"kind": "cron", "zone": version.zone, "lines": lines})
    return from_spec(
        {
            "kind": version.kind,
            "zone": version.zone,
            "gap": version.gap,
            "fold": version.fold,
            "at": version.at or None,
            "offset": version.offset or None,
        }
    )


def version_columns(schedule: Schedule) -> dict[str, Value]:
    """A schedule as the columns of duly_version that make it. Columns, not JSON: a duplicate need not load a parser."""
    lines = [f"{rule.gap} {rule.fold} {rule.line.text}" for rule in schedule.rules] if schedule.kind == "cron" else []
    return {
        "kind": schedule.kind,
        "zone": schedule.zone,
        "grain": schedule.grain,
        "gap": schedule.gap,
        "fold": schedule.fold,
        "at": schedule.at or "",
        "offset": schedule.offset or "",
        "lines": "\n".join(lines),
        "interval": schedule.interval,
        "anchor": schedule.anchor,
        "calendar": "" if schedule.calendar is None else str(schedule.calendar),
    }


def same_schedule(version: Version, schedule: Schedule) -> bool:
    """Whether a version in force is this schedule. How it is put in words is not part of it."""
    return all(getattr(version, name) == value for name, value in version_columns(schedule).items())


def known_from_row(*row: object) -> Known:
    """The four records of one joined row; the last three may be absent."""
    job, rest = row[:JOB_WIDTH], row[JOB_WIDTH:]
    version, rest = rest[:VERSION_WIDTH], rest[VERSION_WIDTH:]
    line, series = rest[:LINE_WIDTH], rest[LINE_WIDTH:]
    return Known(
        Job(*job),  # type: ignore[arg-type]  # as the columns are declared
        None if version[0] is None else Version(*version),  # type: ignore[arg-type]
        None if line[0] is None else Line(*line),  # type: ignore[arg-type]
        None if series[0] is None else Series(*series),  # type: ignore[arg-type]
    )


async def find(name: str, scope: str) -> Known | None:
    """What is known of a job and scope; None for a job never registered."""
    return await one(FIND, known_from_row, name=name, scope=scope)


async def name_now(name: str) -> str | None:
    """The name that a job has in place of a former one; None for a name that no job has given up."""
    return await one(NAME_NOW, str, name=name)


def renamed(name: str, now_named: str) -> JobRenamed:
    """The refusal of whoever still declares a job by a former name."""
    return JobRenamed(
        f"{name} was renamed, and its runs with it; nothing was run. Declare it as {now_named}",
        next_step=f"duly jobs show {now_named}",
    )


async def refused(known: Known | None, declared: Declaration) -> Refused | Misuse | None:
    """Why a declaration cannot stand: as `refusal_of`, also of a name that was given up."""
    if known is None and (now_named := await name_now(declared.job)) is not None:
        return renamed(declared.job, now_named)
    return await refusal_of(known, declared)


async def refusal_of(known: Known | None, declared: Declaration) -> Refused | Misuse | None:
    """Why a declaration cannot stand beside what is known, or None. Looks only: the same before a write and inside it.

    A schedule that is not in force, with a label that the ledger has never seen, can stand: it is to be put in force.
    """
    if known is None:
        return None if declared.schedule is not None else UnknownJob(f"the ledger knows no job {declared.job!r}")
    if declared.schedule is not None and known.version is not None:
        refusal = await _refusal_of_schedule(known.job, known.version, declared, declared.schedule)
        if refusal is not None:
            return refusal
    if known.line is None and known.job.retired_at is not None:
        return Retired(
            f"{known.job.name} was retired at {instant_text(known.job.retired_at)}; its roster takes no new scope",
            next_step=f"duly jobs show {known.job.name}",
        )
    if known.line is None and known.job.roster == "closed" and declared.scope not in (declared.scopes or ()):
        return UnknownScope(f"{declared.job} has a closed roster, and {declared.scope!r} is not in it")
    return None


async def _refusal_of_schedule(
    job: Job, in_force: Version, declared: Declaration, schedule: Schedule
) -> ScheduleChanged | None:
    if same_schedule(in_force, schedule):
        return None
    label = declared.version
    plan = plan_of(job.name, schedule)
    force = f"in force is version {_named(in_force)}: {in_force.words}. Nothing was run"
    if not label:
        return _changed(f"{job.name} is declared as: {schedule.words()}; {force}", plan)
    labelled = await one(FIND_LABEL, Version, job=job.id, label=label)
    if labelled is None:
        return None
    if same_schedule(labelled, schedule):
        return _changed(
            f"version: {label} of {job.name} was replaced, and does not come back by itself; {force}; "
            "deploy the code that declares that, or give this schedule a label that is new",
            f"duly jobs show {job.name}",
        )
    return _changed(
        f"version: {label} of {job.name} is {labelled.words} in the ledger, and declared as: {schedule.words()}; {force}; "
        "a label means one schedule, so give this one a label that is new",
        plan,
    )


def _named(version: Version) -> str:
    return f"{version.number} ({version.label})" if version.label else f"{version.number}"


def _changed(why: str, next_step: str) -> ScheduleChanged:
    refusal = ScheduleChanged(why)
    refusal.next_step = next_step
    return refusal


def plan_of(job: str, schedule: Schedule) -> str:
    """The command that shows what a schedule would change; or that shows the job, where flags cannot say the schedule."""
    from duly.schedule.words import flags_of  # a refusal is rare

    flags = flags_of(schedule)
    return f"duly jobs show {job}" if flags is None else f"duly jobs plan {job} {flags}"


def is_complete(known: Known | None, declared: Declaration) -> bool:
    """Whether the ledger already holds all that the declaration says, so that nothing needs to be written. Pure.

    Where the label is not the one in force a look at the others is needed, which is left to who may write.
    """
    if known is None or known.line is None or not policies_agree(known.job, declared.policies):
        return False
    if declared.version and (known.version is None or known.version.label != declared.version):
        return False
    if declared.schedule is None and known.version is None:
        return True
    return known.series is not None and known.line.starts is not None


def policies_agree(job: Job, policies: dict[str, Value]) -> bool:
    """Whether every policy named has its stored value."""
    return all(getattr(job, name) == value for name, value in policies.items())


def policies_of(job: Job) -> dict[str, Value]:
    """All policies of a job, by column."""
    return {name: getattr(job, name) for name in DEFAULTS}


def check_policies(policies: dict[str, Value]) -> None:
    """Raise `Misuse`, naming the field, for policies that contradict each other. Pure."""
    contract = policies.get("contract")
    if policies.get("remembers") is not None and contract not in (None, "idempotent"):
        raise Misuse(f"remembers: it belongs to effect = idempotent, not {contract!r}")
    lease = policies.get("lease")
    if isinstance(lease, int) and not 100_000 <= lease <= 30 * DAY:
        raise Misuse("lease: it lies between 100ms and 30d")
    for name in ("retries", "retry_delay", "retry_ceiling", "retain"):
        value = policies.get(name)
        if isinstance(value, int) and value < 0:
            raise Misuse(f"{name}: it cannot be negative")


async def declare(declared: Declaration, *, unscheduled: bool = False) -> Known | Refused | Misuse:
    """Register what is new in the declaration; answer what is known after it, or why it cannot stand.

    A job that was never seen is registered without a schedule only where that is asked for.
    """
    known = await find(declared.job, declared.scope)
    refusal = await refused(known, declared)
    if refusal is not None and not (unscheduled and isinstance(refusal, UnknownJob)):
        return refusal
    if is_complete(known, declared):
        assert known is not None
        return known
    known = await _keep_job(known, declared)
    if known.line is None:
        await do(HOLD_JOB_STILL, job=known.job.id)
        known = await _found(declared)  # it may have been retired, or its roster closed, while we waited
        refusal = await refusal_of(known, declared)
        if refusal is not None and not (unscheduled and isinstance(refusal, UnknownJob)):
            return refusal
        await _add_line(known, declared)
    await _add_series(await _found(declared))
    known = await _found(declared)
    # Another host may have registered the job meanwhile, and otherwise: the verdict comes from a look after the write.
    return await refusal_of(known, declared) or known


def _is_new_label(declared: Declaration, in_force: Version) -> bool:
    return declared.version not in ("", in_force.label)


async def is_declared(declared: Declaration) -> bool | Refused | Misuse:
    """Whether the ledger holds all of a declaration already, or why it cannot stand. Looks only."""
    known = await find(declared.job, declared.scope)
    return await refused(known, declared) or is_complete(known, declared)


async def declare_job(declared: Declaration) -> Known | Refused | Misuse:
    """As `declare`, of the job alone: its scope is not put on the roster by it."""
    known = await find(declared.job, declared.scope)
    refusal = await refused(known, declared)
    if refusal is not None:
        return refusal
    known = await _keep_job(known, declared)
    return await refusal_of(known, declared) or known


async def _keep_job(known: Known | None, declared: Declaration) -> Known:
    """Write down what is new of the job: its name, its policies, its first schedule."""
    was_there = known is not None
    if known is None:
        await _add_job(declared)
    elif not policies_agree(known.job, declared.policies):
        await _keep_policies(known.job, declared)
    known = await _found(declared)
    if known.version is None and declared.schedule is not None:
        label = declared.version
        first = {"number": 1, "effective_from": 0}
        await add_version(known.job, declared.schedule, **first, by=declared.by, reason="registered", label=label)
        if was_there:
            changed = ("no schedule", f"version 1: {declared.schedule.words()}")
            await tell(
                "version_applied", job=known.job.id, by=declared.by, detail="its first schedule", changed=changed
            )
        known = await _found(declared)
    elif declared.schedule is not None and known.version is not None and _is_new_label(declared, known.version):
        from duly.ledger.versions import adopt  # which declares as well; needed once for each version

        await adopt(known.job, declared.schedule, declared.version, by=declared.by)
        known = await _found(declared)
    return known


async def _found(declared: Declaration) -> Known:
    return await find_again(declared.job, declared.scope)


async def find_again(name: str, scope: str) -> Known:
    """What is known of a job that was seen in this transaction: it is never deleted, but others may have renamed it."""
    known = await find(name, scope)
    if known is not None:
        return known
    now_named = await name_now(name)
    assert now_named is not None
    raise renamed(name, now_named)


async def _add_job(declared: Declaration) -> None:
    added = await count(ADD_JOB, name=declared.job, **{**DEFAULTS, **declared.defaults, **declared.policies})
    if not added:
        return
    if (
        now_named := await name_now(declared.job)
    ) is not None:  # registered and renamed by others since it was looked for
        raise renamed(declared.job, now_named)
    known = await _found(declared)
    words = "without a schedule" if declared.schedule is None else declared.schedule.words()
    stored = _policy_words(policies_of(known.job))
    await tell("job_registered", job=known.job.id, by=declared.by, detail=words, changed=("absent", stored))


async def _keep_policies(job: Job, declared: Declaration) -> None:
    await count(KEEP_POLICIES, id=job.id, **{**policies_of(job), **declared.policies})
    after = {name: value for name, value in declared.policies.items() if getattr(job, name) != value}
    before = {name: getattr(job, name) for name in after}
    detail = "; ".join(f"{name}: {before[name]!r} → {value!r}" for name, value in after.items())
    changed = (_policy_words(before), _policy_words(after))
    await tell("policies_changed", job=job.id, by=declared.by, detail=detail, changed=changed)


def _policy_words(policies: Mapping[str, Value]) -> str:
    return "; ".join(f"{name} = {value!r}" for name, value in policies.items())


async def add_version(
    job: Job, schedule: Schedule, *, number: int, effective_from: int, by: str, reason: str, label: str = ""
) -> None:
    """Put a schedule in force as a new version from an instant on."""
    await count(
        ADD_VERSION,
        job=job.id,
        number=number,
        label=label,
        effective_from=effective_from,
        by=by,
        reason=reason,
        words=schedule.words(),
        **version_columns(schedule),
    )
    await count(PUT_IN_FORCE, job=job.id, number=number)


async def _add_line(known: Known, declared: Declaration) -> None:
    added = await count(ADD_LINE, job=known.job.id, scope=declared.scope)
    if added and declared.scope:
        changed = ("absent", "on the roster")
        await tell("scope_added", job=known.job.id, by=declared.by, detail=declared.scope, changed=changed)


async def _add_series(known: Known) -> None:
    """The series of the schedule in force, and where the line starts: at its newest occurrence that is due."""
    if known.version is None:
        return
    await add_series(known)
    instant = await now()
    newest = next(_spell_in_force(known.version).before(instant), None)
    await start_line(known, instant if newest is None else newest.due)


def _spell_in_force(version: Version) -> Spell:
    return Spell(schedule_of(version), version.number, version.effective_from or None, None)


async def add_series(known: Known) -> None:
    """The series of the schedule in force; a line may have none yet."""
    assert known.line is not None
    assert known.version is not None
    await count(ADD_SERIES, line=known.line.id, zone=known.version.zone, grain=known.version.grain, horizon=NO_HORIZON)


async def start_line(known: Known, starts: int) -> None:
    """Let what comes due from an instant on be owed, of a line that has no beginning yet."""
    assert known.line is not None
    assert known.version is not None
    spell = _spell_in_force(known.version)
    first = next(spell.after(starts - 1), None)  # a calendar may make several due at once: then the oldest of them
    opened_until, next_due = (starts, None) if first is None else (first.start, first.due)
    await count(START_LINE, line=known.line.id, starts=starts, opened_until=opened_until, next_due=next_due)


async def series_of(line: int, zone: str, grain: str) -> Series:
    """The series of a line under a zone and grain, made if absent."""
    found = await one(FIND_SERIES, Series, line=line, zone=zone, grain=grain)
    if found is not None:
        return found
    await count(ADD_SERIES, line=line, zone=zone, grain=grain, horizon=NO_HORIZON)
    made = await one(FIND_SERIES, Series, line=line, zone=zone, grain=grain)
    assert made is not None
    return made


async def adhoc_nominal(series: Series, adhoc: str) -> int:
    """The serial nominal of an ad-hoc id, given out when it is first seen."""
    await count(NEXT_ADHOC, series=series.id, id=adhoc)
    nominal = await one(FIND_ADHOC, int, series=series.id, id=adhoc)
    assert nominal is not None
    return nominal


def scheduled(known: Known) -> tuple[Schedule, Line, Series]:
    """The schedule in force with its line and series. Raises `NoSchedule` for a job without one."""
    if known.version is None or known.line is None or known.series is None:
        raise NoSchedule(
            f"{known.job.name} has no schedule, so nothing is owed by itself; give it one, or name an ad-hoc run"
        )
    return schedule_of(known.version), known.line, known.series
