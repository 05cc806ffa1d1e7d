"""`duly outbox`: messages to other systems. `list` what is not delivered, `show` those of a run, `deliver` what is due, `retry`
or `skip` one that waits for a person. What became of one whose outcome is unknown is said with `duly resolve --message`.
"""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_run, add_scope, count_from_1
from duly.cli.change import add_reason, line, word_of
from duly.cli.ledgers import open_ledger, open_to_look
from duly.cli.outbox_words import message_row, state_cell
from duly.cli.output import (
    Cell,
    document,
    glyph_and_word,
    iso,
    line_name,
    note,
    show,
    table,
    when,
    window_name,
    zone_of,
)
from duly.cli.runs_argument import addressed, echo, run_argument
from duly.errors import Misuse, NotAllowed, UnknownRun
from duly.evidence.documents.change import MESSAGE_CHANGE, message_change_as_json
from duly.evidence.documents.message import message_as_json, sent_as_json
from duly.evidence.verdict import Window, window_of
from duly.ledger.address import Addressed, key_of
from duly.ledger.ask import now as ledger_now
from duly.ledger.messages import (
    Backlog,
    Message,
    MessageAttempt,
    attempts_at_message,
    backlog,
    messages_of,
    open_messages,
    retry_message,
    skip_message,
)
from duly.records import record
from duly.store.tried import write_or_try

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from duly.cli.output import Json
    from duly.ledger.ask import Operation
    from duly.ledger.records import RunId
    from duly.ledger.resolve import Word
    from duly.outbox.relay import Told

HELP = "messages to other systems: list, show, deliver, retry, skip"
EXAMPLE = (
    "duly outbox list\n"
    "  duly outbox deliver                       what cron calls, where no daemon runs\n"
    "  duly outbox retry invoice-push 2026-11-27 --message billing --reason 'their schema is mended'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="list | show | deliver | retry | skip", required=True)
    listing = verbs.add_parser("list", help="messages that are not delivered, the oldest of each destination first")
    listing.add_argument("--to", metavar="DESTINATION", help="only those to this destination")
    listing.add_argument("-n", type=count_from_1, default=50, metavar="N", help="how many (default: 50)")
    showing = verbs.add_parser("show", help="the messages of a run, with each sending; never their bodies")
    add_run(showing)
    add_scope(showing)
    delivering = verbs.add_parser(
        "deliver",
        help="deliver what is due, then end: 0 all is delivered, 75 some waits for its time, 79 for a person, 80 is unknown",
    )
    delivering.add_argument("--to", metavar="DESTINATION", action="append", help="only to this destination; repeatable")
    for name, does in (
        ("retry", "let one be sent again that was refused or is dead; one that waits for its time, now"),
        ("skip", "settle one without sending it; the next one of its run goes"),
    ):
        changing = verbs.add_parser(name, help=does)
        add_run(changing)
        changing.add_argument("--message", metavar="NAME", help="which message of the run; required")
        changing.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
        add_reason(changing)
        add_scope(changing)
        add_format(changing)
        add_ledger(changing)
    for each in (listing, showing, delivering):
        add_format(each)
        add_ledger(each)


def run(args: argparse.Namespace) -> int:
    match args.verb:
        case "list":
            return _list(args)
        case "show":
            return _show(args)
        case "deliver":
            return _deliver(args)
    return _change(args)


# -- list ---------------------------------------------------------------------------------------------------------------


@record
class _Open:
    """A message that is not settled, with its run's key and zone."""

    key: str
    zone: str
    message: Message


def _list(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    found, instant = store.read(_open(args.to, args.n))
    records = [message_as_json(each.key, each.message) for each in found]
    show(
        args, "duly.messages.v1", {"as_of": iso(instant)}, "messages", records, lambda: _in_words(found, args, instant)
    )
    return codes.DONE


async def _open(destination: str | None, limit: int) -> tuple[list[_Open], int]:
    found = []
    for message in await open_messages(destination=destination, limit=limit):
        key = await key_of(message.id.run)
        found.append(_Open(str(key), key.zone or "UTC", message))
    return found, await ledger_now()


def _in_words(found: list[_Open], args: argparse.Namespace, instant: int) -> str:
    if not found:
        return "every message is delivered"

    def at(zone: str) -> Callable[[int], str]:
        return lambda moment: when(moment, zone, time=args.time, now=instant)

    return table([[each.key, each.message.name, *message_row(each.message, at(each.zone))] for each in found])


# -- show ---------------------------------------------------------------------------------------------------------------


@record
class _Seen:
    """The messages of a run that was named, each with its sendings."""

    addressed: Addressed
    window: Window
    messages: list[tuple[Message, list[MessageAttempt]]]
    as_of: int


def _show(args: argparse.Namespace) -> int:
    seen = open_to_look(args.ledger).read(_see(args))
    echo(seen.addressed)
    records = [sent_as_json(str(seen.window.key), *each) for each in seen.messages]
    facts: dict[str, Json] = {"as_of": iso(seen.as_of), "state": seen.window.verdict.word}
    show(args, "duly.messages_of_run.v1", facts, "messages", records, lambda: _shown_in_words(seen, args))
    return codes.DONE


async def _see(args: argparse.Namespace) -> _Seen:
    found = await addressed(run_argument([args.run, args.window], "outbox show"), args.scope)
    instant = await ledger_now()
    messages = [(message, await attempts_at_message(message.id)) for message in await messages_of(found.run)]
    return _Seen(found, await window_of(found, instant), messages, instant)


def _shown_in_words(seen: _Seen, args: argparse.Namespace) -> str:
    def at(instant: int) -> str:
        return when(instant, zone_of(seen.window), time=args.time, now=seen.as_of)

    said = seen.window.verdict
    rows: list[list[str | Cell]] = [
        [glyph_and_word(said.word), line_name(seen.window), window_name(seen.window), said.note]
    ]
    parts = [table(rows)]
    if not seen.messages:
        return f"{parts[0]}\nit has no messages"
    for message, attempts in seen.messages:
        parts += ["", table([[message.name, *message_row(message, at)]]), f"  key {message.key}"]
        sendings: list[list[str | Cell]] = [
            [f"  {attempt.fence}", attempt.outcome, at(attempt.started_at), attempt.said, f"by {attempt.owner}"]
            for attempt in attempts
        ]
        parts += [table(sendings)] if sendings else []
    return "\n".join(parts)


# -- deliver ------------------------------------------------------------------------------------------------------------


def _deliver(args: argparse.Namespace) -> int:
    from duly.work.destinations import configured_here, unknown_destination
    from duly.work.relay import relay_of

    layers = configured_here()
    served = {} if args.to else layers.destinations()
    for name in args.to or ():
        route = layers.destination(name)
        if route is None:
            raise unknown_destination(name, layers.destination_names())
        served[name] = route
    store = open_ledger(args.ledger)
    told: list[Told] = []
    relay_of(store, served, told.append).deliver()
    left = [each for each in store.read(backlog()) if not args.to or each.destination in args.to]
    facts: dict[str, Json] = {
        "left": [{"destination": each.destination, "messages": each.messages} for each in left],
        "unserved": [each.destination for each in left if each.destination not in served],
    }
    records: list[dict[str, Json]] = [
        {
            "key": each.run,
            "name": each.name,
            "destination": each.destination,
            "state": each.state,
            "said": each.said,
        }
        for each in told
    ]
    show(args, "duly.delivered.v1", facts, "messages", records, lambda: _delivered_in_words(told))
    for each in left:
        note(_left(each, known=each.destination in served))
    return _code(left)


def _delivered_in_words(told: list[Told]) -> str:
    return table([[each.run, each.name, each.state, f"to {each.destination}", each.said] for each in told])


def _left(left: Backlog, *, known: bool) -> str:
    """What is said of a destination that has not got everything."""
    why = "" if known else "; no such destination is declared here, so they stay"
    return f"{left.messages} to {left.destination} not delivered yet{why}; duly outbox list --to {left.destination}"


def _code(left: list[Backlog]) -> int:
    if not left:
        return codes.DONE
    if any(each.unknown for each in left):
        return codes.UNKNOWN
    return codes.WAITS_FOR_A_PERSON if any(each.stuck for each in left) else codes.TRY_AGAIN


# -- a person's word ----------------------------------------------------------------------------------------------------


def _change(args: argparse.Namespace) -> int:
    verb = f"outbox {args.verb}"
    word = word_of(args, verb)
    if not args.message:
        raise Misuse(f"{verb}: say which message with --message", next_step=line("outbox show", args))
    change = retry_message if args.verb == "retry" else skip_message
    return change_message(args, verb, word, lambda run, said: change(run, args.message, said))


def change_message(
    args: argparse.Namespace, verb: str, word: Word, change: Callable[[RunId, Word], Operation[Message]]
) -> int:
    """Change a message of the run that the arguments name, and say how it stands then."""
    store = open_ledger(args.ledger)
    operation = _changed(args, verb, word, change)
    try:
        found, message, window = write_or_try(store, operation, dry_run=args.dry_run)
    except NotAllowed as e:
        e.next_step = e.next_step or line("outbox show", args)
        raise
    echo(found)
    if args.format == "table":
        print(table([[line_name(window), window_name(window), message.name, state_cell(message), window.verdict.note]]))
    else:
        print(document(MESSAGE_CHANGE, message_change_as_json(verb, str(window.key), message, dry_run=args.dry_run)))
    note(
        "nothing was changed: this was a dry run"
        if args.dry_run
        else "a relay delivers what is due: duly outbox deliver"
    )
    return codes.DONE


async def _changed(
    args: argparse.Namespace, verb: str, word: Word, change: Callable[[RunId, Word], Operation[Message]]
) -> tuple[Addressed, Message, Window]:
    found = await addressed(run_argument([args.run, args.window], verb), args.scope)
    if found.row is None:
        raise UnknownRun(f"{found.key} has no row, and so no messages")
    message = await change(found.row.id, word)
    return found, message, await window_of(found, await ledger_now())
