"""`duly db prune`: forget what was settled long ago, as the policy of each job says, or a person; nothing else goes.

What is printed of a dry run is what would go. What was forgotten is refused from then on, not done again.
"""

from __future__ import annotations

import sys

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_quiet, add_scope, count_from_1
from duly.cli.bar import Bar
from duly.cli.ledgers import open_ledger
from duly.cli.output import Cell, iso, note, show, table
from duly.errors import Misuse, TimeInvalid
from duly.ledger.forget import Below, Prospect
from duly.ledger.receive import Forgetful, forgetful
from duly.ledger.register import NO_HORIZON
from duly.records import record
from duly.schedule.keys import nominal_text
from duly.times import duration_text, parse_duration
from duly.work.identity import actor
from duly.work.prune import BATCH, Wanted, prune_received, prune_series, refusal, wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store

EXAMPLE = "duly db prune --dry-run\n  duly db prune close-day --older-than 400d --yes\n  duly db prune --received --yes"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`prune`, as a verb of `duly db`."""
    pruning = verbs.add_parser(
        "prune",
        help="forget what was settled long ago",
        description="Forget the runs that were settled for longer than their job says (`retain`), with their attempts, "
        "messages and events. A late retry of what was forgotten is refused. Without `retain` everything is kept for ever.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    pruning.add_argument("job", metavar="JOB", nargs="?", help="else every job")
    pruning.add_argument(
        "--older-than", metavar="TIME", help="settled for longer than this, as 90d; else what jobs say"
    )
    pruning.add_argument(
        "--received",
        metavar="SOURCE",
        nargs="?",
        const="",
        help="instead of runs, the keys of a source, or of all, that were received and need not be remembered any longer",
    )
    pruning.add_argument(
        "--batch", metavar="N", type=count_from_1, default=BATCH, help=f"rows in one transaction at most ({BATCH})"
    )
    pruning.add_argument("--yes", action="store_true", help="do it without being asked; required without a terminal")
    pruning.add_argument("--dry-run", action="store_true", help="say what would be forgotten, and forget nothing")
    add_quiet(pruning, "do not say how far it is")
    add_scope(pruning)
    add_format(pruning)
    add_ledger(pruning)


def run(args: argparse.Namespace) -> int:
    if args.received is not None:
        if args.job or args.older_than or args.scope:
            raise Misuse(
                "--received: keys are remembered for as long as their source says; leave JOB, --scope and --older-than out",
                next_step="duly db prune --received --dry-run",
            )
        return _received(args)
    store = open_ledger(args.ledger)
    looked = store.read(wanted(args.job, args.scope, _older_than(args)))
    if looked.refused and args.job is not None:
        raise refusal(looked.refused)
    if not looked.prospects and not looked.refused:
        note("no job says how long its runs are kept (`retain`), so all are kept for ever")
        _show(args, [], looked)
        return codes.DONE
    found = [Forgotten(prospect, prospect.below) for prospect in looked.prospects]
    total = sum((one.gone for one in found), Below())
    if args.dry_run:
        _show(args, found, looked)
        note("nothing was forgotten: this was a dry run")
    else:
        if total.runs or total.ranges:
            _ask(args, f"{total.runs} runs and {total.ranges} skipped ranges")
        found = [Forgotten(prospect, _prune(args, store, prospect, looked)) for prospect in looked.prospects]
        _show(args, found, looked)
    for name, why in looked.refused.items():
        note(f"{name} is left as it is: {why}")
    return codes.CONFIGURATION if looked.refused else codes.DONE


def _older_than(args: argparse.Namespace) -> int | None:
    if args.older_than is None:
        return None
    try:
        return parse_duration(args.older_than)
    except TimeInvalid as e:
        raise Misuse(f"--older-than: {e}", next_step="duly db prune --older-than 90d --dry-run") from e


# -- runs ---------------------------------------------------------------------------------------------------------------


@record
class Forgotten:
    """What was forgotten of a series, or would be."""

    prospect: Prospect
    gone: Below

    @property
    def name(self) -> str:
        known = self.prospect.known
        scope = "" if known.line is None else known.line.scope
        return f"{scope}/{known.job.name}" if scope else known.job.name

    @property
    def counts_by(self) -> str:
        series = self.prospect.series
        return "outside the schedule" if series.grain == "adhoc" else f"by {series.grain} in {series.zone}"

    @property
    def horizon(self) -> str:
        """The name that everything that is kept is at or after; empty where there is none."""
        series, horizon = self.prospect.series, self.prospect.horizon
        if horizon == NO_HORIZON or series.grain == "adhoc":
            return ""
        return nominal_text(series.grain, horizon, series.zone)


def _prune(args: argparse.Namespace, store: Store, prospect: Prospect, looked: Wanted) -> Below:
    name = prospect.known.job.name
    with Bar(name, "runs forgotten", prospect.below.runs, quiet=args.quiet) as bar:

        def tell(gone: Below) -> None:
            bar(gone.runs)

        return prune_series(store, prospect, by=actor(), reason=looked.reason_of(name), batch=args.batch, tell=tell)


def _show(args: argparse.Namespace, found: list[Forgotten], looked: Wanted) -> None:
    facts: dict[str, Json] = {"dry_run": args.dry_run, "refused": dict(looked.refused)}
    show(args, "duly.prune.v1", facts, "series", [_as_json(one) for one in found], lambda: _in_words(found))


def _in_words(found: list[Forgotten]) -> str:
    return table([_row(one) for one in found])


def _row(one: Forgotten) -> list[str | Cell]:
    gone = one.gone
    counts = f"{gone.windows} windows, {gone.runs} runs, {gone.attempts} attempts, {gone.messages} messages"
    ranges = f"{gone.ranges} skipped ranges" if gone.ranges else ""
    kept = f"kept from {one.horizon} on" if one.horizon else ""
    held = f"held: {one.prospect.held}" if one.prospect.held else ""
    return [one.name, one.counts_by, counts, ranges, kept, held]


def _as_json(one: Forgotten) -> dict[str, Json]:
    known, series = one.prospect.known, one.prospect.series
    return {
        "key": f"{one.name} {series.grain}{f'[{series.zone}]' if series.zone else ''}",
        "job": known.job.name,
        "scope": "" if known.line is None else known.line.scope,
        "zone": series.zone,
        "grain": series.grain,
        "windows": one.gone.windows,
        "runs": one.gone.runs,
        "attempts": one.gone.attempts,
        "messages": one.gone.messages,
        "skipped_ranges": one.gone.ranges,
        "horizon": one.horizon or None,
        "held": one.prospect.held or None,
    }


def _ask(args: argparse.Namespace, what: str) -> None:
    """Raise `Misuse` unless it was said, or is said now, that it is meant."""
    if args.yes:
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"duly: forget {what} for good? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    from shlex import join

    received = [] if args.received is None else ["--received", *filter(None, [args.received])]
    flags = {"--scope": args.scope, "--older-than": args.older_than}
    words = [word for name, value in flags.items() if value for word in (name, value)]
    typed = join(["duly", "db", "prune", *filter(None, [args.job]), *words, *received, "--yes"])
    raise Misuse(f"--yes: {what} would be forgotten for good; say that it is meant", next_step=typed)


# -- keys that were received --------------------------------------------------------------------------------------------


def _received(args: argparse.Namespace) -> int:
    store = open_ledger(args.ledger)
    found = store.read(forgetful(args.received or None))
    if args.received and not found:
        raise Misuse(
            f"--received: nothing was ever received from {args.received!r}", next_step="duly db prune --received"
        )
    gone = {one.name: one.keys for one in found}
    if not args.dry_run:
        if sum(gone.values()):
            _ask(args, f"{sum(gone.values())} keys")
        reason = "what its source remembers"
        gone = {one.name: prune_received(store, one.name, by=actor(), reason=reason, batch=args.batch) for one in found}
        found = store.read(forgetful(args.received or None))
    records = [_source_as_json(one, gone.get(one.name, 0)) for one in found]
    show(args, "duly.prune_received.v1", {"dry_run": args.dry_run}, "sources", records, lambda: _sources(found, gone))
    if args.dry_run:
        note("nothing was forgotten: this was a dry run")
    elif not found:
        note("nothing was ever received here")
    return codes.DONE


def _sources(found: list[Forgetful], gone: dict[str, int]) -> str:
    return table([[one.name, _remembers(one), f"{gone.get(one.name, 0)} keys", _kept(one)] for one in found])


def _remembers(one: Forgetful) -> str:
    return "remembers for ever" if one.remembers is None else f"remembers {duration_text(one.remembers)}"


def _kept(one: Forgetful) -> str:
    return f"kept from {iso(one.horizon)} on" if one.horizon else ""


def _source_as_json(one: Forgetful, gone: int) -> dict[str, Json]:
    return {
        "key": one.name,
        "source": one.name,
        "remembers": None if one.remembers is None else duration_text(one.remembers),
        "keys": gone,
        "horizon": iso(one.horizon or None),
    }
