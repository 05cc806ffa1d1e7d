"""Watching: a view that is looked at again and again. On a terminal it is drawn anew; elsewhere each change is printed.

The ledger is looked at every few seconds, and at once when it says that there may be news, which PostgreSQL does. Ctrl-C is
how one stops watching, and no failure.
"""

from __future__ import annotations

import os
import sys

from duly.cli import codes
from duly.cli.arguments import MOST
from duly.cli.ledgers import open_to_look
from duly.cli.output import note
from duly.errors import Conflict, DulyError, LedgerUnavailable, Misuse
from duly.records import record
from duly.store.reader import RestingLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from queue import SimpleQueue
    from typing import NoReturn, TypeAlias

    from duly.store.protocol import Store

    Ledger: TypeAlias = "Store | RestingLedger"

EVERY = 2.0  # seconds, where none are given
_SHORTEST = 0.01


@record
class Look:
    """What was seen: as text, and as what has to differ for it to be news. That time goes on is none."""

    text: str
    facts: object


def add_watch(parser: argparse.ArgumentParser) -> None:
    """`-w`."""
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        const=str(EVERY),
        metavar="SECONDS",
        help=f"look again every few seconds ({EVERY:g}), until Ctrl-C; where there is no terminal print what changes",
    )


def watched(args: argparse.Namespace) -> float | None:
    """How often to look, in seconds; None where nobody watches. `-w JOB` is a job that follows a bare flag."""
    if args.watch is not None and args.job is None and not args.watch[:1].isdigit():
        args.job, args.watch = args.watch, str(EVERY)
    if args.watch is None:
        return None
    try:
        seconds = float(args.watch)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST <= seconds <= MOST:
        raise Misuse(f"--watch: {args.watch!r} is no number of seconds", next_step="duly status -w 5")
    return seconds


def watch(flag: str | None, look: Callable[[Ledger], Look], seconds: float, *, draws: bool) -> int:
    """Look until somebody presses Ctrl-C. `flag` is `--ledger`; `draws`: what is seen may be drawn, if there is a terminal.

    Raises what the first look raises. Later ones are repeated: a ledger that is busy or away comes back.
    """
    store = open_to_look(flag)
    show = _Screen() if draws and sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else _Pipe()
    wake, end = _listening(store)
    try:
        _look_on(flag, store, look, show, lambda: _next(wake, seconds))
    except KeyboardInterrupt:
        return codes.DONE
    finally:
        end()


def _look_on(
    flag: str | None,
    store: Ledger,
    look: Callable[[Ledger], Look],
    show: Callable[[Look], None],
    wait: Callable[[], None],
) -> NoReturn:
    seen, trouble = look(store), ""
    while True:
        show(seen)
        wait()
        try:
            if isinstance(store, RestingLedger):  # somebody may have begun to write it
                store = open_to_look(flag)
            seen, trouble = look(store), ""
        except (Conflict, LedgerUnavailable) as e:
            trouble = _say_once(e, trouble)
            store.close()


def _listening(store: Ledger) -> tuple[SimpleQueue[None], Callable[[], None]]:
    """What has something in it when the ledger says that there may be news; and what ends the listening.

    A queue, and no event: Ctrl-C in an event's wait may meet it with its lock let go, which is a RuntimeError.
    """
    from queue import SimpleQueue
    from threading import Event, Thread

    wake: SimpleQueue[None] = SimpleQueue()
    is_over = Event()
    if not isinstance(store, RestingLedger):
        Thread(target=store.listen, args=(lambda: wake.put(None), is_over.is_set), daemon=True).start()
    return wake, is_over.set


def _next(wake: SimpleQueue[None], seconds: float) -> None:
    """Until there may be news, or so many seconds have passed; what has been said meanwhile is one piece of news."""
    from queue import Empty

    try:
        wake.get(timeout=seconds)
        while True:
            wake.get_nowait()
    except Empty:
        pass


def _say_once(error: DulyError, before: str) -> str:
    if str(error) != before:
        note(f"{error}; looking again")
    return str(error)


class _Pipe:
    """A block for each change, with an empty line between two."""

    def __init__(self) -> None:
        self._before: Look | None = None

    def __call__(self, seen: Look) -> None:
        if self._before is not None and self._before.facts == seen.facts:
            return
        blank = "" if self._before is None else "\n"
        self._before = seen
        sys.stdout.write(f"{blank}{seen.text}\n")
        sys.stdout.flush()


class _Screen:
    """The whole screen, drawn over what was there, so that it does not flicker; what does not fit is said.

    Lines that are too long are cut by the terminal (DECAWM off), which is itself again after each drawing.
    """

    def __init__(self) -> None:
        self._clear = "\x1b[2J"

    def __call__(self, seen: Look) -> None:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
        lines = seen.text.split("\n")
        if len(lines) >= rows > 2:
            lines = [*lines[: rows - 2], f"… {len(lines) - rows + 2} more lines"]
        drawn = "".join(f"{line}\x1b[K\n" for line in lines)
        sys.stdout.write(f"{self._clear}\x1b[?7l\x1b[H{drawn}\x1b[J\x1b[?7h")
        sys.stdout.flush()
        self._clear = ""
