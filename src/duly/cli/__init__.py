"""The command line: one module per command, all alike. This file is on the path of every `duly exec`, so it imports next to
nothing: `exec` is called before the parser of arguments, or anything else, is loaded.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and answer its exit code. Without arguments the process is ours."""
    words = sys.argv[1:] if argv is None else list(argv)
    if (
        words
        and words[0] == "exec"
        and not {"-h", "--help"} & set(words[: words.index("--") if "--" in words else None])
    ):
        if argv is None:
            return _exec(words[1:])
        from duly.cli.exec import run

        return run(words[1:])
    from duly.cli.dispatch import dispatch

    return dispatch(words)


def _exec(words: Sequence[str]) -> int:
    """Run `duly exec` in a process of its own.

    What is imported stays until the end. To look through it for garbage, a dozen times on the way and once more as the
    interpreter ends, is a tenth of what a start costs. A poke that works many windows is looked after all the same.
    """
    gc.set_threshold(50_000)
    from duly.cli.exec import run

    code = run(words)
    gc.freeze()
    return code
