"""`duly jobs`: the jobs of the ledger. `list` them, `show` one, `plan` another schedule for one, `apply` it; and the jobs of a
file: `check` them.
"""

from __future__ import annotations

from duly.cli import codes, jobs_rename, jobs_retire, jobs_scopes
from duly.cli.arguments import add_format, add_ledger, add_schedule, given_schedule
from duly.cli.change import add_reason, reason_given
from duly.cli.complete_words import complete_words, furthest_behind
from duly.cli.jobs_check import add_check, add_schema, run_check, run_schema
from duly.cli.jobs_pause import add_pause, add_resume, run_pause, run_resume
from duly.cli.ledgers import open_ledger, open_to_look
from duly.cli.output import Cell, complete_as_json, document, iso, note, show, table, when
from duly.cli.plan import configured_schedule, in_words, plan_as_json, planned, run_plan
from duly.cli.runs_argument import job_meant
from duly.errors import Misuse
from duly.evidence.complete_through import LineComplete, complete_lines
from duly.evidence.documents.job import job_as_json, version_as_json
from duly.evidence.job_words import pauses, policies
from duly.evidence.jobs import JobSeen, job, jobs
from duly.ledger.records import Version
from duly.ledger.versions import Applied, apply
from duly.schedule.keys import nominal_text
from duly.store.tried import write_or_try
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule


HELP = "the jobs of the ledger: list, show, plan, apply, pause, resume, scopes, rename, retire; those of a file: check"
EXAMPLE = (
    "duly jobs show close-day\n"
    "  duly jobs plan close-day --period daily --zone Europe/Paris --at 03:00\n"
    "  duly jobs apply close-day --period daily --zone Europe/Paris --at 03:00 --reason 'the feed comes later'\n"
    "  duly jobs check duly.toml"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="verb",
        metavar="list | show | plan | apply | pause | resume | scopes | rename | retire | check | schema",
        required=True,
    )
    listing = verbs.add_parser("list", help="every job with its schedule", description="every job with its schedule")
    listing.add_argument("--all", action="store_true", help="those that were retired too")
    showing = verbs.add_parser("show", help="one job with its policies, versions and scopes", description="one job")
    showing.add_argument("job", metavar="JOB")
    planning = verbs.add_parser(
        "plan",
        help="what another schedule would change, beside what has been done",
        description="Which windows another schedule would add, drop, shift or split. Changes nothing. Without flags it is the "
        "one that the configuration has for the job.",
    )
    planning.add_argument("job", metavar="JOB")
    planning.add_argument(
        "range",
        metavar="RANGE",
        nargs="?",
        help="half-open: 2026-11-01..2026-12-01; else a few windows from the seam on",
    )
    add_schedule(planning)
    applying = verbs.add_parser(
        "apply",
        help="put another schedule in force",
        description="Put another schedule in force. Windows that have begun keep their bounds, and all that was done stays. "
        "Without flags it is the one that the configuration has for the job.",
    )
    applying.add_argument("job", metavar="JOB")
    add_reason(applying)
    applying.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    add_schedule(applying)
    pausing = verbs.add_parser(
        "pause",
        help="start nothing of a job for a while",
        description="Start nothing of a job, or of one scope, until it is resumed. What is running goes on; windows come "
        "due all the same.",
    )
    add_pause(pausing)
    resuming = verbs.add_parser(
        "resume",
        help="end a pause, and see what is owed",
        description="End a pause. Of what it held back the catch-up policy keeps some; the rest is skipped as paused.",
    )
    add_resume(resuming)
    jobs_scopes.add_arguments(verbs)
    jobs_rename.add_arguments(verbs)
    jobs_retire.add_arguments(verbs)
    checking = verbs.add_parser(
        "check",
        help="read a configuration, and say what it means",
        description="Read a configuration, and say of each job what it means, when it comes due, and what differs from the "
        "ledger. Nothing is changed.",
    )
    add_check(checking)
    schema = verbs.add_parser(
        "schema",
        help="print the JSON Schema of duly.toml",
        description="Print the JSON Schema of duly.toml, for editors.",
    )
    add_schema(schema)
    for each in (listing, showing, planning, applying, checking):
        add_format(each)
        add_ledger(each)


def run(args: argparse.Namespace) -> int:
    match args.verb:
        case "list":
            return _list(args)
        case "show":
            return _show(args)
        case "plan":
            return run_plan(args)
        case "pause":
            return run_pause(args)
        case "resume":
            return run_resume(args)
        case "scopes":
            return jobs_scopes.run(args)
        case "rename":
            return jobs_rename.run(args)
        case "retire":
            return jobs_retire.run(args)
        case "check":
            return run_check(args)
        case "schema":
            return run_schema()
    return _apply(args)


# -- list ---------------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    found, now = store.read(jobs()), store.now()
    seen = [one for one in found if args.all or one.lines[0].job.retired_at is None]
    show(
        args,
        "duly.jobs.v1",
        {},
        "jobs",
        [job_as_json(one) for one in seen],
        lambda: _list_in_words(seen, len(found) - len(seen), args, now),
    )
    return codes.DONE


def _list_in_words(seen: list[JobSeen], hidden: int, args: argparse.Namespace, now: int) -> str:
    if not seen:
        return f"every job was retired; --all shows {hidden}" if hidden else "the ledger knows no job yet"
    return table([_list_row(one, args, now) for one in seen])


def _list_row(seen: JobSeen, args: argparse.Namespace, now: int) -> list[str | Cell]:
    known = seen.lines[0]
    scopes = [k.line.scope for k in seen.lines if k.line is not None and k.line.scope]
    roster = "" if not scopes else f"{len(scopes)} scopes" if len(scopes) > 1 else "1 scope"
    left = sum(k.line is not None and k.line.ends is not None and k.line.ends <= now for k in seen.lines)
    if known.job.retired_at is not None:
        zone = "UTC" if known.version is None else known.version.zone
        at = when(known.job.retired_at, zone, time=args.time, now=now)
        return [
            known.job.name,
            "" if known.version is None else known.version.words.partition(";")[0],
            f"retired {at}",
            roster,
        ]
    roster += f", {left} retired" if scopes and left else ""
    if known.version is None:
        return [known.job.name, "no schedule", "", roster]
    due = (
        "" if seen.next_due is None else f"next due {when(seen.next_due, known.version.zone, time=args.time, now=now)}"
    )
    return [known.job.name, known.version.words.partition(";")[0], due, roster]


# -- show ---------------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    seen, now = store.read(job(store.read(job_meant(args.job)))), store.now()
    lines = store.read(complete_lines(seen.lines[0].job.name))
    if args.format == "table":
        print(_show_in_words(seen, lines, args, now))
    elif args.format == "json":
        versions: list[Json] = [version_as_json(version) for version in seen.versions]
        print(document("duly.job.v1", {**job_as_json(seen), "versions": versions, "lines": complete_as_json(lines)}))
    else:
        show(args, "duly.job.v1", {}, "jobs", [job_as_json(seen)], str)
    return codes.DONE


def _show_in_words(seen: JobSeen, lines: list[LineComplete], args: argparse.Namespace, now: int) -> str:
    known = seen.lines[0]
    scopes = [k.line.scope for k in seen.lines if k.line is not None and k.line.scope]
    facts = [["schedule", "none" if known.version is None else known.version.words]]
    if seen.next_due is not None and known.version is not None:
        facts.append(["next due", when(seen.next_due, known.version.zone, time=args.time, now=now)])
    facts += _complete_rows(lines, args, now)
    facts += [list(policy) for policy in policies(known.job)]
    facts += [["paused", words] for words in pauses(seen, now)]
    if seen.former_names:
        facts.insert(0, ["formerly", ", ".join(seen.former_names)])
    if known.job.retired_at is not None:
        zone = "UTC" if known.version is None else known.version.zone
        facts.insert(0, ["retired", when(known.job.retired_at, zone, time=args.time, now=now)])
    if scopes:
        facts.append(["scopes", f"{', '.join(scopes)} ({known.job.roster})"])
    parts = [known.job.name, table(facts)]
    if len(seen.versions) > 1:
        parts += ["", "versions", table([_version_row(version, args, now) for version in seen.versions])]
    return "\n".join(parts)


def _complete_rows(lines: list[LineComplete], args: argparse.Namespace, now: int) -> list[list[str]]:
    """How far each line is complete, without a gap and at all; of many those that are furthest behind."""
    behind, others = furthest_behind(lines)
    rows = [["complete", complete_words(line, args, now) + _of_scope(line)] for line in behind]
    return [*rows, ["", f"{others} more are no further behind"]] if others else rows


def _of_scope(line: LineComplete) -> str:
    return f" ({line.known.line.scope})" if line.known.line is not None and line.known.line.scope else ""


def _version_row(version: Version, args: argparse.Namespace, now: int) -> list[str | Cell]:
    since = (
        "first"
        if not version.effective_from
        else f"from {when(version.effective_from, version.zone, time=args.time, now=now)}"
    )
    return [f"  {version.number}", version.label, since, version.words]


# -- apply --------------------------------------------------------------------------------------------------------------


def _apply(args: argparse.Namespace) -> int:
    schedule = given_schedule(args, "jobs apply", [args.job]) or configured_schedule(args.job)
    if schedule is None:
        raise Misuse(
            "jobs apply: which schedule? Give it by flags, as `duly exec` takes them, or in a configuration",
            next_step=f"duly jobs apply {args.job} --period daily --zone Europe/Paris --reason '…' --dry-run",
        )
    reason = reason_given(args, "jobs apply")
    store = open_ledger(args.ledger)
    operation = apply(args.job, schedule, by=actor(), reason=reason)
    applied = write_or_try(store, operation, dry_run=args.dry_run)
    made = store.read(planned(args.job, schedule)) if args.dry_run else None
    if args.format == "table":
        print(in_words(args, made) if made is not None else _applied_in_words(args, schedule, applied, store.now()))
    else:
        plan: dict[str, Json] = {} if made is None else {"plan": plan_as_json(args.job, made)}
        print(document("duly.apply.v1", {**_applied_as_json(args, schedule, applied), **plan}))
    if applied is not None:
        note(
            "nothing was changed: this was a dry run"
            if args.dry_run
            else "declare it so from now on, or nothing is run"
        )
    return codes.DONE


def _applied_in_words(args: argparse.Namespace, schedule: Schedule, applied: Applied | None, now: int) -> str:
    if applied is None:
        return f"{args.job}: in force already: {schedule.words()}"

    def at(instant: int) -> str:
        return when(instant, schedule.zone, time=args.time, now=now)

    said = [f"{args.job}: version {applied.number}: {applied.words}"]
    if applied.before is not None:
        said.append(f"in place of version {applied.before.number}: {applied.before.words}")
    said += [
        f"{_named(o, applied.before)} has begun; it keeps its bounds, and comes due {at(o.due)}" for o in applied.began
    ]
    if applied.first is not None:
        seam = f"{at(applied.first.start)} to {at(applied.first.end)}"
        said.append(f"first window: {_named(applied.first, schedule)}, {seam}, due {at(applied.first.due)}")
    return "\n".join(said)


def _named(occurrence: Occurrence, counted_by: Schedule | Version | None) -> str:
    assert counted_by is not None  # it has windows
    return nominal_text(counted_by.grain, occurrence.nominal, counted_by.zone)


def _applied_as_json(args: argparse.Namespace, schedule: Schedule, applied: Applied | None) -> dict[str, Json]:
    facts: dict[str, Json] = {"job": args.job, "dry_run": args.dry_run, "changed": applied is not None}
    if applied is None:
        return facts
    began: list[Json] = [_occurrence_as_json(occurrence, applied.before) for occurrence in applied.began]
    return {
        **facts,
        "version": applied.number,
        "schedule": applied.words,
        "before": None if applied.before is None else applied.before.words,
        "effective_from": iso(applied.since),
        "began": began,
        "first": None if applied.first is None else _occurrence_as_json(applied.first, schedule),
    }


def _occurrence_as_json(occurrence: Occurrence, counted_by: Schedule | Version | None) -> dict[str, Json]:
    return {
        "window": _named(occurrence, counted_by),
        "due": iso(occurrence.due),
        "window_start": iso(occurrence.start),
        "window_end": iso(occurrence.end),
    }
