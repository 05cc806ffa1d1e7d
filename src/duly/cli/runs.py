"""`duly runs`: the ledger, newest first. `duly runs show RUN`: one run with its attempts, texts and events. `duly runs
verify`: whether what it says is there."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope, count_from_1
from duly.cli.ledgers import open_to_look
from duly.cli.outbox_words import message_row
from duly.cli.output import (
    GLYPHS,
    Cell,
    as_json,
    document,
    glyph,
    iso,
    line_name,
    show,
    table,
    when,
    window_name,
    zone_of,
)
from duly.cli.runs_argument import addressed, echo, known_job, run_argument
from duly.cli.runs_events import add_flags as add_events
from duly.cli.runs_events import change_words, events
from duly.cli.runs_export import add_flags as add_export
from duly.cli.runs_export import export, verify_export
from duly.errors import Misuse, UnknownRun
from duly.evidence.documents.history import attempt_as_json, run_as_json
from duly.evidence.runs import Attempt, History, Told, history, runs
from duly.evidence.verdict import Window, window_of
from duly.evidence.words import ago, printable, span
from duly.ledger import states
from duly.ledger.address import Addressed
from duly.ledger.ask import now as ledger_now
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator


HELP = "the runs in the ledger; show, verify, events: who did what; export: a range for an auditor; verify-export"
EXAMPLE = (
    "duly runs close-day --state failed        duly runs show close-day 2026-11-28\n"
    "  duly runs verify close-day 2026-11-01..   0 its files, attempts and messages are there, 1 something is not\n"
    "  duly runs events close-day --since -7d    who changed what, when and why\n"
    "  duly runs export 2026-11-01..2026-12-01 close-day -o november.jsonl\n"
    "  duly runs verify-export november.jsonl    0 it is whole, 1 it was changed"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        metavar="JOB | show RUN | verify [RUN | JOB [RANGE]] | events [JOB] | export RANGE [JOB] | verify-export FILE",
        nargs="*",
        help="only this job; one run, by key or job and window; whether what was completed is there: of one run, "
        "the newest of a job, those of a range; who did what; how each window of a range ended, as a file that shows "
        "when it was changed; or whether such a file is whole",
    )
    parser.add_argument("--state", choices=states.STATES, help="only runs in this state")
    parser.add_argument("-n", type=count_from_1, default=20, metavar="N", help="how many, newest first (default: 20)")
    add_events(parser)
    add_export(parser)
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


# The flags that belong to a verb alone.
_FLAGS = {
    "events": ("since", "by", "kind", "before"),
    "export": ("output", "at", "key_file"),
    "verify-export": ("key_file", "expect", "against"),
}


def _refuse_flags_of_others(args: argparse.Namespace) -> None:
    """Raise `Misuse` for a flag that this verb would not heed: a list that were narrowed by nothing looks like one that is."""
    mine = _FLAGS.get(args.words[0], ()) if args.words else ()
    for verb, names in _FLAGS.items():
        for name in names:
            if name not in mine and getattr(args, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise Misuse(f"runs: {flag} belongs to `duly runs {verb}`", next_step="duly runs --help")


def run(args: argparse.Namespace) -> int:
    _refuse_flags_of_others(args)
    match args.words:
        case ["show", *words]:
            return _show_one(args, words)
        case ["events", *words]:
            return events(args, words)
        case ["export", _, *_]:  # by itself it is a job of that name
            return export(args, args.words[1:])
        case ["verify-export", *words]:
            return verify_export(args, words)
        case ["verify", *words]:
            from duly.cli.runs_verify import verify

            return verify(args, words)
        case []:
            return _list(args, None)
        case [job]:
            return _list(args, job)
    raise Misuse(
        f"runs: {args.words[1]!r} is one word too many", next_step=f"duly runs show {' '.join(args.words[:2])}"
    )


# -- the list -----------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace, job: str | None) -> int:
    store = open_to_look(args.ledger)
    if job is not None:
        job = store.read(known_job(job, args.scope))
    now = store.now()
    found = store.read(runs(job, args.scope, state=args.state, limit=args.n))
    records = [as_json(window) for window in found]
    show(args, "duly.runs.v1", {"as_of": iso(now)}, "runs", records, lambda: _in_words(found, args, now))
    return codes.DONE


def _in_words(found: list[Window], args: argparse.Namespace, now: int) -> str:
    return table([_row(window, args, now) for window in found])


def _row(window: Window, args: argparse.Namespace, now: int) -> list[str | Cell]:
    row = window.row
    assert row is not None
    attempt = f"attempt {row.fence}" if row.fence and row.state != states.REPLACED else ""
    due = "" if window.due is None else f"due {when(window.due, zone_of(window), time=args.time, now=now)}"
    return [*_state(window), line_name(window), window_name(window), due, attempt, window.verdict.note]


def _state(window: Window) -> list[str | Cell]:
    word = window.verdict.word
    return [glyph(word), Cell(word, word)]


# -- one run ------------------------------------------------------------------------------------------------------------


@record
class _Seen:
    addressed: Addressed
    window: Window
    history: History


async def _see(argument_words: list[str], scope: str | None) -> _Seen:
    found = await addressed(run_argument(argument_words, "runs show"), scope)
    if found.row is None:
        raise UnknownRun(
            f"{found.key} has no row in the ledger: it was never opened",
            next_step=f"duly explain {' '.join(argument_words)}",
        )
    window = await window_of(found, await ledger_now())
    return _Seen(found, window, await history(found))


def _show_one(args: argparse.Namespace, words: list[str]) -> int:
    seen = open_to_look(args.ledger).read(_see(words, args.scope))
    echo(seen.addressed)
    if args.format == "table":
        print(_one_in_words(seen, args))
    elif args.format == "json":
        print(document("duly.run.v1", run_as_json(seen.window, seen.history)))
    else:
        attempts = [attempt_as_json(seen.window.key, seen.history, attempt) for attempt in seen.history.attempts]
        show(args, "duly.attempt.v1", {}, "attempts", attempts, str)
    return codes.DONE


def _one_in_words(seen: _Seen, args: argparse.Namespace) -> str:
    window, now = seen.window, seen.history.as_of

    def at(instant: int) -> str:
        return when(instant, zone_of(window), time=args.time, now=now)

    word, why = window.verdict.word, window.verdict.note
    facts: list[list[str | Cell]] = [["state", Cell(f"{GLYPHS[word]} {word}{f': {why}' if why else ''}", word)]]
    if window.bounds:
        facts.append(["window", f"{at(window.bounds[0])} to {at(window.bounds[1])}"])
    if window.due is not None:
        facts.append(["due", f"{at(window.due)}, {ago(window.due, now)}"])
    parts = [str(window.key), table(facts)]
    if seen.history.attempts:
        parts += ["", "attempts", table([_attempt_row(seen, attempt, at) for attempt in seen.history.attempts])]
    if seen.history.messages:
        parts += [
            "",
            "messages",
            table([["  " + message.name, *message_row(message, at)] for message in seen.history.messages]),
        ]
    if seen.history.events:
        parts += ["", "events", table([_event_row(told, at) for told in seen.history.events])]
    for text in seen.history.texts:
        parts += ["", f"{text.kind} of attempt {text.number}", printable(text.body)] if text.body else []
    return "\n".join(parts)


def _attempt_row(seen: _Seen, attempt: Attempt, at: Callable[[int], str]) -> list[str | Cell]:
    ended, now = attempt.ended, seen.history.as_of
    number = f"{ended.number}" if attempt.revision == 1 else f"{ended.number} of revision {attempt.revision}"
    took = f"for {span((now if ended.ended_at is None else ended.ended_at) - ended.started_at)}"
    error = f": {ended.error}" if ended.error else ""
    return [
        f"  {number}",
        f"{ended.outcome}{error}",
        at(ended.started_at),
        took,
        f"by {ended.owner}",
        ended.trigger,
        "; ".join(_beside(seen, attempt)),
    ]


def _beside(seen: _Seen, attempt: Attempt) -> Iterator[str]:
    """What else is to be said of an attempt: how far it came, who asked it to stop, whether it may be alive."""
    request, progress, now = seen.history.request_to(attempt), attempt.progress, seen.history.as_of
    if progress is not None:
        yield f"{progress.words}, {ago(progress.at, now)}"
    if request is not None:
        yield f"asked to stop {ago(request.at, now)} by {request.by}: {attempt.became_of(request)}"
    if attempt.was_superseded:
        yield attempt.pulse_words


def _event_row(told: Told, at: Callable[[int], str]) -> list[str | Cell]:
    event = told.event
    why = "; ".join(part for part in (event.reason, event.detail) if part)
    changed = change_words(event.before, event.after)
    return [f"  {at(event.at)}", event.kind.replace("_", " "), f"by {event.by}", why, changed]
