"""`duly resolve RUN --probe`: ask what became of a run now, by the rules by which a poke and the daemon ask."""

from __future__ import annotations

import os

from duly.cli import codes
from duly.cli.change import line
from duly.cli.ledgers import open_ledger
from duly.cli.output import document, note
from duly.cli.runs_argument import addressed, echo, run_argument
from duly.errors import Misuse, NotAllowed
from duly.ledger import states
from duly.ledger.ask import now as ledger_now
from duly.ledger.found import TOO_LATE
from duly.ledger.named import TO_FILL_IN
from duly.ledger.probe import last_asked, may_be_asked
from duly.ledger.resolve import not_allowed
from duly.ledger.take import end_gone, gone, look
from duly.times import duration_text, instant_text
from duly.work.command import inherited
from duly.work.configuration import read_configuration
from duly.work.probe import Probed, ask_about

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.store.protocol import Store
    from duly.work.probe import CommandProbe


def ask(args: argparse.Namespace) -> int:
    """Ask the job's probe, and do as it says. 0 where what happened is known now, 80 where it is not, 75 where it is too early
    to ask.
    """
    if args.message is not None:
        raise Misuse(
            "resolve: a message's probe belongs to its destination, and whoever delivers asks it; leave --probe out",
            next_step=line("outbox show", args),
        )
    if args.outcome is not None or args.evidence or args.attempt_is_dead:
        raise Misuse("resolve: --probe asks what happened, so nobody has to say it; leave --as and the others out")
    store = open_ledger(args.ledger)
    found = store.read(addressed(run_argument([args.run, args.window], "resolve"), args.scope))
    echo(found)
    probe = _probe_of(found.key.job, args)
    if args.dry_run:
        return _tried(args, found, probe, store)
    store.write(_judge(found))
    probed = ask_about(store, found.run, probe)
    if probed is None:
        return _too_early(store.read(_why_not(found, probe, line("explain", args))))
    if probed.state != TOO_LATE:
        return _tell(args, probed)
    row = store.read(look(found.run))  # somebody has said meanwhile what happened
    return _tell(args, Probed(probed.run, states.UNKNOWN if row is None else row.state, probed.said))


def _tried(args: argparse.Namespace, found: Addressed, probe: CommandProbe, store: Store) -> int:
    row = store.read(look(found.run))
    if row is not None and row.state == states.RUNNING and store.read(gone(row)):
        said = f"its attempt has vanished; it would be asked in {duration_text(probe.after)}"
    elif store.read(may_be_asked(found.run, probe_after=probe.after)):
        said = "it would be asked"
    else:
        return _too_early(store.read(_why_not(found, probe, line("explain", args))))
    return _tell(args, Probed(str(found.key), states.UNKNOWN, said))


def _too_early(why: NotAllowed | str) -> int:
    if isinstance(why, NotAllowed):
        raise why
    note(f"nothing was asked: {why}")
    return codes.TRY_AGAIN


def _tell(args: argparse.Namespace, probed: Probed) -> int:
    if args.format == "json":
        print(document("duly.probe.v1", {"run": probed.run, "state": probed.state, "said": probed.said}))
    else:
        print(f"{probed.run}: {probed.said}")
    note("nothing was changed: this was a dry run" if args.dry_run else f"it is {probed.state}")
    return codes.DONE if args.dry_run or probed.state != states.UNKNOWN else codes.UNKNOWN


async def _judge(found: Addressed) -> None:
    """Where no poke has judged a vanished holder yet, that is done first."""
    row = await look(found.run)
    if row is not None and row.state == states.RUNNING and await gone(row):
        await end_gone(row)


def _probe_of(job: str, args: argparse.Namespace) -> CommandProbe:
    configured = read_configuration(os.getcwd())
    entry = configured.jobs.get(job)
    hidden = () if configured.ledger is None else configured.ledger.hidden
    probe = None if entry is None else entry.probe(inherited(os.environ, hidden))
    if probe is None:
        raise Misuse(
            f'resolve: no probe is declared for {job}; write probe = ["./did-it.sh", "{{date}}"] into [jobs.{job}] of '
            "duly.toml, or say yourself what happened",
            next_step=line("resolve", args, "--as", "done|not-done", "--evidence", TO_FILL_IN),
        )
    return probe


async def _why_not(found: Addressed, probe: CommandProbe, next_step: str) -> NotAllowed | str:
    """Why a run is not to be asked about: because of its state, or because it is too early, in words."""
    row = await look(found.run)
    if row is None or row.state != states.UNKNOWN:
        refused = not_allowed("resolve", row)
        refused.next_step = next_step
        return refused
    if await may_be_asked(row.id, probe_after=0):
        return f"its probe is asked {duration_text(probe.after)} after the doubt: an effect may take a while to be seen"
    asked = await last_asked(row)
    if asked is None or asked.next_at <= await ledger_now():
        return "its attempt is not gone, and may yet say what it did"
    said = f"; it said last that it {asked.said}" if asked.said else ", for somebody is asking it"
    return f"its probe is not asked before {instant_text(asked.next_at)}{said}"
