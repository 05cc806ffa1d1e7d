"""`duly resolve`: say what happened to a run, or to a message of one, whose outcome is unknown."""

from __future__ import annotations

from duly.cli.change import add_change, line, run_change, said
from duly.cli.complain import Unsaid
from duly.errors import Misuse, NotAllowed, TimeInvalid
from duly.ledger import states
from duly.ledger.ask import alive
from duly.ledger.ask import now as ledger_now
from duly.ledger.named import TO_FILL_IN
from duly.ledger.put_off import LATER, put_off, put_off_message
from duly.ledger.resolve import Word, resolve_left
from duly.store.lock import holders_of_pulse, lock_path
from duly.times import parse_duration
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

HELP = "say what happened to a run, or a message of one, whose outcome is unknown"
EXAMPLE = (
    "duly resolve invoice-push 2026-11-27 --as done --evidence 'their log: batch 4711 received at 02:31'\n"
    "  duly resolve invoice-push 2026-11-27 --probe\n"
    "  duly resolve invoice-push 2026-11-27 --message billing --as not-done --evidence 'they have no such key'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    parser.add_argument(
        "--as",
        dest="outcome",
        choices=("done", "not-done", "later"),
        help="what happened; not-done is retried; later: you cannot tell yet, and it is not asked about before --again-in; "
        "required",
    )
    parser.add_argument(
        "--again-in", metavar="DURATION", help="with later: when somebody is to look again (default: 1h)"
    )
    parser.add_argument("--evidence", metavar="TEXT", help="how you know, kept in the ledger; required")
    parser.add_argument(
        "--attempt-is-dead", action="store_true", help="its lock is held by a process that is not doing it any more"
    )
    parser.add_argument("--message", metavar="NAME", help="not the run itself, but this message of it")
    parser.add_argument("--probe", action="store_true", help="ask the probe that the configuration has for the job")


def run(args: argparse.Namespace) -> int:
    if args.probe:
        from duly.cli.resolve_probe import ask

        return ask(args)
    evidence = said(args.evidence)
    again_in = _again_in(args)
    if args.outcome is None or not evidence:
        raise Unsaid(
            "resolve: say what happened with --as done or --as not-done, and with --evidence how you know",
            *([("--as", "done|not-done")] if args.outcome is None else []),
            *([] if evidence else [("--evidence", TO_FILL_IN)]),
        )

    if args.message is not None:
        from duly.cli.outbox import change_message
        from duly.ledger.messages import resolve_message

        spoken, done = Word(actor(), evidence, evidence), args.outcome == "done"
        if args.outcome == "later":
            return change_message(
                args, "resolve", spoken, lambda run, word: put_off_message(run, args.message, word, again_in=again_in)
            )
        return change_message(
            args, "resolve", spoken, lambda run, word: resolve_message(run, args.message, word, done=done)
        )

    def change(found: Addressed, word: Word) -> Operation[Run]:
        if args.outcome == "later":
            return put_off(found.run, word, again_in=again_in)
        return _resolve(args, found, word)

    return run_change(args, "resolve", change, word=Word(actor(), evidence, evidence))


def _again_in(args: argparse.Namespace) -> int:
    """When somebody is to look again, in microseconds from now."""
    if args.again_in is None:
        return LATER
    if args.outcome != "later":
        raise Misuse("resolve: --again-in says when to look again, and goes with --as later")
    try:
        return parse_duration(args.again_in)
    except TimeInvalid as e:
        raise Misuse(f"--again-in: {e}", next_step=line("resolve", args, "--as", "later", "--again-in", "1h")) from e


async def _resolve(args: argparse.Namespace, found: Addressed, word: Word) -> Run:
    """Resolve the run; of a lock that is held still, say by whom."""
    row = found.row
    if (
        not args.attempt_is_dead
        and row is not None
        and row.state in (states.RUNNING, states.UNKNOWN)
        and row.attempt_id is not None
        and (row.lease_until or 0) <= await ledger_now()
        and await alive(row.attempt_id)
    ):
        raise _still_held(args, row)
    return await resolve_left(found.run, word, done=args.outcome == "done", attempt_is_dead=args.attempt_is_dead)


def _still_held(args: argparse.Namespace, row: Run) -> NotAllowed:
    from duly.cli.ledgers import path_of_ledger

    assert row.attempt_id is not None
    pids = holders_of_pulse(lock_path(path_of_ledger(args.ledger)), row.attempt_id)
    holders = f"held by pid {', '.join(map(str, pids))}" if pids else "held by a process of another user"
    return NotAllowed(
        f"cannot resolve this run: the lock of its attempt is {holders}, so it may yet report (it began as {row.owner}). "
        "Wait for it or end it; where it has nothing to do with this run any more, say --attempt-is-dead",
        next_step=line("resolve", args, "--as", args.outcome, "--evidence", args.evidence, "--attempt-is-dead"),
    )
