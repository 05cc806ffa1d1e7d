"""`duly runs`: the ledger, newest first. `duly runs show RUN`: one run with its attempts, texts and events. `duly runs
verify`: whether what it says is there."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope, count_from_1
from duly.cli.ledgers import open_to_look
from duly.cli.outbox_words import message_as_json, message_row
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
from duly.errors import Misuse, UnknownRun
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

    from duly.cli.output import Json

HELP = "the runs in the ledger; `show RUN`: one with its attempts and events; `verify`: is what it says there?"
EXAMPLE = (
    "duly runs close-day --state failed        duly runs show close-day 2026-11-28\n"
    "  duly runs verify close-day 2026-11-01..   0 its files, attempts and messages are there, 1 something is not"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        metavar="JOB | show RUN | verify [RUN | JOB [RANGE]]",
        nargs="*",
        help="only this job; one run, by key or job and window; or whether what was completed is there: of one run, "
        "the newest of a job, those of a range",
    )
    parser.add_argument("--state", choices=states.STATES, help="only runs in this state")
    parser.add_argument("-n", type=count_from_1, default=20, metavar="N", help="how many, newest first (default: 20)")
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    match args.words:
        case ["show", *words]:
            return _show_one(args, words)
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
        print(document("duly.run.v1", _one_as_json(seen)))
    else:
        attempts = [_attempt_as_json(seen, attempt) for attempt in seen.history.attempts]
        show(args, "duly.attempt.v1", {}, "attempts", attempts, str)
    return codes.DONE


def _attempt_as_json(seen: _Seen, attempt: Attempt) -> dict[str, Json]:
    ended, request, progress = attempt.ended, seen.history.request_to(attempt), attempt.progress
    return {
        "key": str(seen.window.key),
        "revision": attempt.revision,
        "number": ended.number,
        "attempt_id": ended.attempt_id.hex(),
        "outcome": ended.outcome,
        "started_at": iso(ended.started_at),
        "ended_at": iso(ended.ended_at),
        "contract": ended.contract,
        "owner": ended.owner,
        "trigger": ended.trigger,
        "error": ended.error,
        "alive": attempt.alive,
        "done": None if progress is None else progress.done,
        "of": None if progress is None else progress.total,
        "progress_at": None if progress is None else iso(progress.at),
        "cancel_asked_at": None if request is None else iso(request.at),
        "cancel_asked_by": None if request is None else request.by,
        "cancel_became": None if request is None else attempt.became_of(request),
    }


def _one_as_json(seen: _Seen) -> dict[str, Json]:
    return {
        "as_of": iso(seen.history.as_of),
        "run": as_json(seen.window),
        "attempts": [_attempt_as_json(seen, attempt) for attempt in seen.history.attempts],
        "events": [
            {
                "revision": told.revision,
                "at": iso(told.event.at),
                "kind": told.event.kind,
                "by": told.event.by,
                "reason": told.event.reason,
                "detail": told.event.detail,
            }
            for told in seen.history.events
        ],
        "messages": [message_as_json(str(seen.window.key), message) for message in seen.history.messages],
        "texts": [
            {"revision": text.revision, "number": text.number, "kind": text.kind, "body": text.body}
            for text in seen.history.texts
        ],
    }


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
    return [f"  {at(event.at)}", event.kind.replace("_", " "), f"by {event.by}", why]
