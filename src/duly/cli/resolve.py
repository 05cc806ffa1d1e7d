"""`duly resolve`: say what happened to a run, or to a message of one, whose outcome is unknown."""

from __future__ import annotations

from duly.cli.change import add_change, line, run_change
from duly.errors import Misuse, NotAllowed
from duly.ledger import states
from duly.ledger.ask import alive
from duly.ledger.ask import now as ledger_now
from duly.ledger.resolve import Word, resolve
from duly.ledger.take import end_gone
from duly.store.lock import holders_of_pulse, lock_path
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
    "  duly resolve invoice-push 2026-11-27 --message billing --as not-done --evidence 'they have no such key'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    parser.add_argument(
        "--as", dest="outcome", choices=("done", "not-done"), help="what happened; not-done is retried; required"
    )
    parser.add_argument("--evidence", metavar="TEXT", help="how you know, kept in the ledger; required")
    parser.add_argument(
        "--attempt-is-dead", action="store_true", help="its lock is held by a process that is not doing it any more"
    )
    parser.add_argument("--message", metavar="NAME", help="not the run itself, but this message of it")


def run(args: argparse.Namespace) -> int:
    evidence = (args.evidence or "").strip()
    if args.outcome is None or not evidence:
        outcome = args.outcome or "done"
        raise Misuse(
            "resolve: say what happened with --as done or --as not-done, and with --evidence how you know",
            next_step=line("resolve", args, "--as", outcome, "--evidence", evidence or "their log shows batch 4711"),
        )

    if args.message is not None:
        from duly.cli.outbox import change_message
        from duly.ledger.messages import resolve_message

        said, done = Word(actor(), evidence, evidence), args.outcome == "done"
        return change_message(
            args, "resolve", said, lambda run, word: resolve_message(run, args.message, word, done=done)
        )

    def change(found: Addressed, word: Word) -> Operation[Run]:
        return _resolve(args, found, word)

    then = "it is complete" if args.outcome == "done" else "the next poke of the job takes it again"
    return run_change(args, "resolve", change, word=Word(actor(), evidence, evidence), then=then)


async def _resolve(args: argparse.Namespace, found: Addressed, word: Word) -> Run:
    """Resolve the run; where no poke has judged a vanished holder yet, that is done first."""
    row = found.row
    if (
        row is not None
        and row.state in (states.RUNNING, states.UNKNOWN)
        and (row.lease_until or 0) <= await ledger_now()
    ):
        assert row.attempt_id is not None
        if not args.attempt_is_dead and await alive(row.attempt_id):
            raise _still_held(args, row)
        if row.state == states.RUNNING:
            await end_gone(row)
    return await resolve(found.run, word, done=args.outcome == "done", attempt_is_dead=args.attempt_is_dead)


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
