"""`duly status`: what needs a person now."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope, count_from_1
from duly.cli.complete_words import complete_words, furthest_behind
from duly.cli.ledgers import open_to_look
from duly.cli.output import (
    Cell,
    glyph,
    line_name,
    rendered,
    table,
    typed,
    window_name,
)
from duly.cli.runs_argument import known_job
from duly.cli.status_grid import look_at_grid
from duly.cli.watch import Look, add_watch, watch, watched
from duly.evidence import verdict
from duly.evidence.complete_through import LineComplete, complete_lines
from duly.evidence.documents.status import needs_as_json, status_as_json
from duly.evidence.fold import folded, range_name, reasons
from duly.evidence.status import Asked, Paused, Status, Unopened, status
from duly.evidence.status_words import in_few_words, is_noted, skipped_next
from duly.evidence.verdict import Window
from duly.evidence.words import ago
from duly.ledger import backfill_states as backfills
from duly.ledger.messages import Backlog
from duly.ledger.named import TO_FILL_IN
from duly.ledger.records import Known, own_pause, pause_words
from duly.redaction import shown_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from duly.cli.output import Json
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

HELP = "what needs a person now"
EXAMPLE = (
    "duly status        duly status close-day --json\n"
    "  duly status -w 5           look again every five seconds\n"
    "  duly status --grid         each line's newest periods, a glyph each; nights on which clocks are moved are marked"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="only this job, with what runs and waits too")
    add_watch(parser)
    parser.add_argument("--all", action="store_true", help="a line for each period; else many of a kind are one line")
    parser.add_argument("--grid", action="store_true", help="each line's newest periods, a glyph each")
    parser.add_argument(
        "-n", type=count_from_1, default=30, metavar="N", help="how many periods --grid shows (default: 30)"
    )
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    seconds = watched(args)
    look = look_at_grid if args.grid else _look
    store = open_to_look(args.ledger)
    if args.job is not None:
        args.job = store.read(known_job(args.job, args.scope))
    if seconds is not None:
        return watch(args.ledger, lambda ledger: look(args, ledger), seconds, draws=args.format == "table")
    if text := look(args, store).text:
        print(text)
    return codes.DONE


def _look(args: argparse.Namespace, store: Store | RestingLedger) -> Look:
    seen = store.read(status(args.job, args.scope))
    lines = _complete(args, store, seen)
    facts, needs = status_as_json(seen, lines), needs_as_json(seen)
    text = rendered(args, "duly.status.v1", facts, "needs", needs, lambda: _in_words(seen, lines, args))
    return Look(text, _news(seen, facts))


def _complete(args: argparse.Namespace, store: Store | RestingLedger, seen: Status) -> list[LineComplete]:
    """How far lines are complete: all that were asked for, or, for people, of the whole ledger those that are held."""
    if args.format == "json" or args.job is not None:
        return store.read(complete_lines(args.job, args.scope))
    if args.format != "table":
        return []
    held = {(window.key.job, window.key.scope): None for window in seen.needs}
    held |= {(unopened.windows[0].key.job, unopened.windows[0].key.scope): None for unopened in seen.unopened}
    return [line for name, scope in held for line in store.read(complete_lines(name, scope))]


def _news(seen: Status, facts: Mapping[str, Json]) -> object:
    """What has to change for a view of it to be news: what stands there, and not how long ago that was."""
    windows = [*seen.needs, *seen.running, *seen.waiting]
    return (
        [
            (w.key, w.verdict.word, w.verdict.verb, w.verdict.late, w.row and (w.row.fence, w.row.retry_at))
            for w in windows
        ],
        [(u.windows[0].key, len(u.windows), u.skipped) for u in seen.unopened],
        [facts[name] for name in ("paused", "backfills", "undelivered")],
    )


def _in_words(seen: Status, lines: list[LineComplete], args: argparse.Namespace) -> str:
    rows = _rows(seen.needs, seen.as_of, args)
    rows += [_unopened_row(unopened, seen.as_of, args) for unopened in seen.unopened]
    rows += [_paused_row(paused, args) for paused in seen.paused]
    rows += [_asked_row(asked, args) for asked in seen.backfills]
    rows += [_backlog_row(backlog, seen.as_of, args) for backlog in seen.undelivered]
    running = seen.running if args.job else [window for window in seen.running if is_noted(window)]
    rows += _rows(running, seen.as_of, args)
    if args.job:
        rows += _rows(seen.waiting, seen.as_of, args)
    return "\n".join(
        part for part in (_headline(seen), table(rows), _complete_in_words(lines, args, seen.as_of)) if part
    )


def _complete_in_words(lines: list[LineComplete], args: argparse.Namespace, now: int) -> str:
    behind, others = furthest_behind(lines)
    rows = [[_line_name(line.known), f"complete {complete_words(line, args, now)}"] for line in behind]
    return table([*rows, ["", f"{others} more are no further behind"]] if others else rows)


def _rows(windows: list[Window], now: int, args: argparse.Namespace) -> list[list[str | Cell]]:
    """A row for each window; many of one line in one state are one row."""
    return [
        _row(group[0], now, args) if len(group) == 1 else _folded_row(group, args)
        for group in folded(windows, unfold=args.all)
    ]


def _folded_row(group: list[Window], args: argparse.Namespace) -> list[str | Cell]:
    from shlex import join

    first = group[0]
    scope = ["--scope", first.key.scope] if first.key.scope else []
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    step = join(["duly", "status", first.key.job, *scope, "--all", *ledger])
    what = f"{len(group)} {first.verdict.word}: {reasons(group)}".removesuffix(": ")
    return [glyph(first.verdict.word), line_name(first), range_name(group), what, step]


def _headline(seen: Status) -> str:
    parts: list[Cell] = []
    if seen.periods_in_need:
        more = "+" if any(unopened.more for unopened in seen.unopened) else ""
        one = seen.periods_in_need == 1
        words = "period needs you" if one else "periods need you"
        parts.append(Cell(f"✗ {seen.periods_in_need}{more} {words}", verdict.FAILED))
    if seen.unknown:
        words = "outcome unknown" if seen.unknown == 1 else "outcomes unknown"
        parts.append(Cell(f"? {seen.unknown} {words}", verdict.UNKNOWN))
    if not parts:
        parts.append(Cell("✓ nothing needs you", verdict.COMPLETE))
    if seen.running:
        parts.append(Cell(f"▶ {len(seen.running)} running", verdict.RUNNING))
    parts.append(Cell(f"✓ {seen.completed} complete (24h)", verdict.COMPLETE))
    return table([parts], gap=5)


def _row(window: Window, now: int, args: argparse.Namespace) -> list[str | Cell]:
    said = window.verdict
    step = typed(said.verb, window, args.ledger) if said.verb else ""
    return [glyph(said.word), line_name(window), window_name(window), in_few_words(window, now), step]


def _line_name(known: Known) -> str:
    return f"{known.line.scope}/{known.job.name}" if known.line is not None and known.line.scope else known.job.name


def _paused_row(paused: Paused, args: argparse.Namespace) -> list[str | Cell]:
    from shlex import join

    known = paused.known
    assert known.line is not None
    waiting = f"; {paused.windows}{'+' if paused.more else ''} windows wait" if paused.windows else ""
    scope = [] if paused.pause == own_pause(known.job) else ["--scope", known.line.scope]
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    step = join(["duly", "jobs", "resume", known.job.name, *scope, *ledger, "--reason", TO_FILL_IN])
    return [glyph(verdict.DUE), _line_name(known), "", f"{pause_words(paused.pause)}{waiting}", step]


def _asked_row(asked: Asked, args: argparse.Namespace) -> list[str | Cell]:
    """A backfill that is not over; one that has stopped needs somebody."""
    from shlex import join

    mine = asked.backfill
    word = {backfills.STOPPED: verdict.FAILED, backfills.PAUSED: verdict.DUE}.get(mine.state, verdict.RUNNING)
    why = "" if mine.state == backfills.ACTIVE else f" by {mine.said_by}: {mine.said}"
    name = f"{asked.scope}/{asked.job}" if asked.scope else asked.job
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    step = join(["duly", "backfill", "show", str(mine.id), *ledger])
    return [glyph(word), name, mine.asked, f"backfill {mine.id} is {mine.state}{why}", step]


def _backlog_row(backlog: Backlog, now: int, args: argparse.Namespace) -> list[str | Cell]:
    """What a destination has not got yet."""
    from shlex import join

    parts = [f"{backlog.messages} to be delivered, the oldest {ago(backlog.oldest, now)}"]
    parts += [f"{backlog.unknown} outcome unknown"] * bool(backlog.unknown)
    parts += [f"{backlog.stuck} refused or dead"] * bool(backlog.stuck)
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    step = join(["duly", "outbox", "list", "--to", backlog.destination, *ledger])
    return [glyph(verdict.UNDELIVERED), backlog.destination, "", ", ".join(parts), step]


def _unopened_row(unopened: Unopened, now: int, args: argparse.Namespace) -> list[str | Cell]:
    newest = unopened.windows[0]
    what = in_few_words(newest, now)
    others = len(unopened.windows) - 1
    if others:
        more = "+" if unopened.more else ""
        what += f", and {others}{more} before it{skipped_next(unopened)}"
    return [
        glyph(newest.verdict.word),
        line_name(newest),
        window_name(newest),
        what,
        typed("explain", newest, args.ledger),
    ]
