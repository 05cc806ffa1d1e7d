"""How far long work is: one line on stderr, drawn over and over, and gone when the work is over.

For whoever sits before a terminal, and for nobody else: nothing is drawn where stderr is none, with `NO_COLOR`, with
`TERM=dumb`, or with `-q`.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_EVERY_SECONDS = 0.1
_SIGNS = 20


def drawn(done: int, total: int | None) -> str:
    """As `[####................] 1/5`; of what has no known end `1`. Pure."""
    if total is None:
        return f"{done}"
    filled = min(_SIGNS, _SIGNS * done // total) if total else _SIGNS
    return f"[{'#' * filled}{'.' * (_SIGNS - filled)}] {done}/{total}"


def bar_wanted(environ: Mapping[str, str], *, terminal: bool, quiet: bool) -> bool:
    """Whether to draw. Pure."""
    return terminal and not quiet and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Bar:
    """Called with how much is done, as often as one likes; drawn ten times a second, and when all is done.

    `name` is of what, `what` the things that are counted: `export: [#####...............] 5/20 runs forgotten`. `total` may be
    said when it is known.
    """

    def __init__(self, name: str, what: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._name, self._what, self._total = name, what, total
        self._is_wanted = bar_wanted(os.environ, terminal=sys.stderr.isatty(), quiet=quiet)
        self._drawn_at: float | None = None

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, total: int | None = None) -> None:
        if not self._is_wanted:
            return
        self._total = self._total if total is None else total
        now = monotonic()
        if done != self._total and self._drawn_at is not None and now - self._drawn_at < _EVERY_SECONDS:
            return
        self._drawn_at = now
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        text = f"{self._name}: {drawn(done, self._total)} {self._what}"[: width - 1]
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn_at is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
