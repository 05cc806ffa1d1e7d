"""`duly status`: what needs a person now."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope, count_from_1
from duly.cli.ledgers import open_to_look, shown
from duly.cli.output import (
    GLYPHS,
    Cell,
    as_json,
    glyph,
    iso,
    line_name,
    paint,
    show,
    table,
    typed,
    window_name,
)
from duly.cli.runs_argument import known_job
from duly.evidence import verdict
from duly.evidence.grid import Grid, grid
from duly.evidence.status import Asked, Paused, Status, Unopened, status
from duly.evidence.verdict import Window, grace_text
from duly.evidence.words import ago, span
from duly.ledger import backfill_states as backfills
from duly.ledger.messages import Backlog
from duly.ledger.records import own_pause, pause_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

HELP = "what needs a person now"
EXAMPLE = "duly status        duly status close-day --json        duly status --grid"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="only this job, with what runs and waits too")
    parser.add_argument("--grid", action="store_true", help="each line's newest periods, a glyph each")
    parser.add_argument(
        "-n", type=count_from_1, default=30, metavar="N", help="how many periods --grid shows (default: 30)"
    )
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    if args.job is not None:
        args.job = store.read(known_job(args.job, args.scope))
    if args.grid:
        return _show_grid(args, store)
    seen = store.read(status(args.job, args.scope))
    needs = [as_json(window) for window in seen.needs]
    needs += [_unopened_as_json(unopened) for unopened in seen.unopened]
    facts: dict[str, Json] = {
        "as_of": iso(seen.as_of),
        "counts": {
            "need_you": seen.periods_in_need,
            "unknown": seen.unknown,
            "running": len(seen.running),
            "completed_24h": seen.completed,
        },
        "running": [as_json(window) for window in seen.running],
        "waiting": [as_json(window) for window in seen.waiting],
        "paused": [_paused_as_json(paused) for paused in seen.paused],
        "backfills": [_asked_as_json(asked) for asked in seen.backfills],
        "undelivered": [_backlog_as_json(backlog) for backlog in seen.undelivered],
    }
    show(args, "duly.status.v1", facts, "needs", needs, lambda: _in_words(seen, args))
    return codes.DONE


def _paused_as_json(paused: Paused) -> dict[str, Json]:
    known, pause = paused.known, paused.pause
    return {
        "job": known.job.name,
        "scope": "" if known.line is None else known.line.scope,
        "since": iso(pause.since),
        "until": iso(pause.until),
        "by": pause.by,
        "reason": pause.why,
        "windows": paused.windows,
        "windows_exact": not paused.more,
    }


def _asked_as_json(asked: Asked) -> dict[str, Json]:
    mine = asked.backfill
    return {"id": mine.id, "job": asked.job, "scope": asked.scope, "range": mine.asked, "state": mine.state}


def _backlog_as_json(backlog: Backlog) -> dict[str, Json]:
    return {
        "destination": backlog.destination,
        "messages": backlog.messages,
        "oldest": iso(backlog.oldest),
        "next_due": iso(backlog.next_due),
        "unknown": backlog.unknown,
        "stuck": backlog.stuck,
    }


def _unopened_as_json(unopened: Unopened) -> dict[str, Json]:
    newest, oldest = unopened.windows[0], unopened.windows[-1]
    windows: dict[str, Json] = {
        "windows": len(unopened.windows),
        "windows_exact": not unopened.more,
        "oldest": str(oldest.key),
    }
    return {**as_json(newest), **windows}


def _in_words(seen: Status, args: argparse.Namespace) -> str:
    rows = [_row(window, seen.as_of, args) for window in seen.needs]
    rows += [_unopened_row(unopened, seen.as_of, args) for unopened in seen.unopened]
    rows += [_paused_row(paused, args) for paused in seen.paused]
    rows += [_asked_row(asked, args) for asked in seen.backfills]
    rows += [_backlog_row(backlog, seen.as_of, args) for backlog in seen.undelivered]
    running = seen.running if args.job else [window for window in seen.running if _is_noted(window)]
    rows += [_row(window, seen.as_of, args) for window in running]
    if args.job:
        rows += [_row(window, seen.as_of, args) for window in seen.waiting]
    return "\n".join(part for part in (_headline(seen), table(rows)) if part)


def _is_noted(window: Window) -> bool:
    """Whether a run that is being worked is worth a line: it is late, or a person waits for it to stop."""
    return window.verdict.late or (window.row is not None and window.row.cancel_is_asked)


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
    return [glyph(said.word), line_name(window), window_name(window), _what(window, now), step]


def _what(window: Window, now: int) -> str:
    said, row = window.verdict, window.row
    match said.word:
        case verdict.RUNNING if row is not None and row.started_at is not None:
            late = f", late (grace {grace_text(window)})" if said.late else ""
            return f"running for {span(now - row.started_at)}, {said.note}{late}"
        case verdict.FAILED:
            return f"failed, {said.note}"
        case verdict.RETRYING if row is not None and row.retry_at is not None:
            return f"failed, {said.note}; to be retried {ago(row.retry_at, now)}"
        case verdict.LATE | verdict.MISSING | verdict.DUE if window.due is not None:
            return f"{said.note}, due {ago(window.due, now)} (grace {grace_text(window)})"
    return said.note


def _paused_row(paused: Paused, args: argparse.Namespace) -> list[str | Cell]:
    from shlex import join

    known = paused.known
    assert known.line is not None
    waiting = f"; {paused.windows}{'+' if paused.more else ''} windows wait" if paused.windows else ""
    scope = [] if paused.pause == own_pause(known.job) else ["--scope", known.line.scope]
    ledger = ["--ledger", shown(args.ledger)] if args.ledger else []
    step = join(["duly", "jobs", "resume", known.job.name, *scope, *ledger])
    name = f"{known.line.scope}/{known.job.name}" if known.line.scope else known.job.name
    return [glyph(verdict.DUE), name, "", f"{pause_words(paused.pause)}{waiting}", step]


def _asked_row(asked: Asked, args: argparse.Namespace) -> list[str | Cell]:
    """A backfill that is not over; one that has stopped needs somebody."""
    from shlex import join

    mine = asked.backfill
    word = {backfills.STOPPED: verdict.FAILED, backfills.PAUSED: verdict.DUE}.get(mine.state, verdict.RUNNING)
    why = "" if mine.state == backfills.ACTIVE else f" by {mine.said_by}: {mine.said}"
    name = f"{asked.scope}/{asked.job}" if asked.scope else asked.job
    ledger = ["--ledger", shown(args.ledger)] if args.ledger else []
    step = join(["duly", "backfill", "show", str(mine.id), *ledger])
    return [glyph(word), name, mine.asked, f"backfill {mine.id} is {mine.state}{why}", step]


def _backlog_row(backlog: Backlog, now: int, args: argparse.Namespace) -> list[str | Cell]:
    """What a destination has not got yet."""
    from shlex import join

    parts = [f"{backlog.messages} to be delivered, the oldest {ago(backlog.oldest, now)}"]
    parts += [f"{backlog.unknown} outcome unknown"] * bool(backlog.unknown)
    parts += [f"{backlog.stuck} refused or dead"] * bool(backlog.stuck)
    ledger = ["--ledger", shown(args.ledger)] if args.ledger else []
    step = join(["duly", "outbox", "list", "--to", backlog.destination, *ledger])
    return [glyph(verdict.UNDELIVERED), backlog.destination, "", ", ".join(parts), step]


def _skipped_next(unopened: Unopened) -> str:
    """What the catch-up policy makes of the windows before the newest."""
    if unopened.skipped == 0:
        return ""
    some = "" if unopened.skipped >= len(unopened.windows) - 1 else f"; {unopened.skipped} of them are ones"
    return f"{some} that the next poke will skip"


def _unopened_row(unopened: Unopened, now: int, args: argparse.Namespace) -> list[str | Cell]:
    newest = unopened.windows[0]
    what = _what(newest, now)
    others = len(unopened.windows) - 1
    if others:
        more = "+" if unopened.more else ""
        what += f", and {others}{more} before it{_skipped_next(unopened)}"
    return [
        glyph(newest.verdict.word),
        line_name(newest),
        window_name(newest),
        what,
        typed("explain", newest, args.ledger),
    ]


# -- the grid -----------------------------------------------------------------------------------------------------------


def _show_grid(args: argparse.Namespace, store: Store | RestingLedger) -> int:
    seen = store.read(grid(args.job, args.scope, columns=args.n))
    cells = [as_json(window) for line in seen.lines for window in line.windows]
    show(args, "duly.grid.v1", {"as_of": iso(seen.as_of)}, "periods", cells, lambda: _grid_in_words(seen))
    return codes.DONE


def _grid_in_words(seen: Grid) -> str:
    """A row of glyphs for each line of the ledger, aligned at the newest period; below, what the glyphs mean."""
    shown = [line.windows for line in seen.lines if line.windows]
    names = max((len(line_name(windows[0])) for windows in shown), default=0)
    widest = max((len(windows) for windows in shown), default=0)
    rows = [
        f"{line_name(windows[0]).ljust(names)}   {' ' * (widest - len(windows))}{_glyphs(windows)}   "
        f"{window_name(windows[0])} to {window_name(windows[-1])}"
        for windows in shown
    ]
    words = sorted({window.verdict.word for windows in shown for window in windows}, key=verdict.WORDS.index)
    legend = "   ".join(paint(f"{GLYPHS[word]} {word}", word) for word in words)
    return "\n".join([*rows, legend] if rows else ["no period has come due yet"])


def _glyphs(windows: list[Window]) -> str:
    return "".join(paint(GLYPHS[window.verdict.word], window.verdict.word) for window in windows)
