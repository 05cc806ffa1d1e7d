"""Dispatch: from the first word to the module of its command, and from an error to words and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module

from duly import __version__
from duly.cli import codes
from duly.cli.complain import complain, say
from duly.errors import DulyError, Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# The words in the order of the help. A command is the module of its name in this folder (`module_of`).
COMMANDS = {
    "Work": ("exec", "due", "daemon"),
    "See": ("status", "check", "explain", "next", "runs", "web", "metrics"),
    "Say": ("retry", "skip", "unskip", "reopen", "cancel", "resolve", "backfill", "outbox", "alerts"),
    "Keep": ("jobs", "import", "db", "doctor", "completion", "demo"),
}
NAMES = tuple(name for names in COMMANDS.values() for name in names)
SEES_NOTHING_BUT_COMMANDS = ("help", "--help", "-h")


def dispatch(words: list[str]) -> int:
    """Run the command that the first word names; answer its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it came closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for good
        getattr(sys, name).reconfigure(errors="replace")  # a sign that a terminal does not have is no reason to fail
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has seen enough (`duly runs | head`); Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return codes.DONE
    except KeyboardInterrupt:
        return codes.INTERRUPTED
    except OSError as e:
        if not _is_full(e):
            raise
        say(f"duly: what was found cannot be written: {e.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return codes.UNWRITABLE


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else "help"
    if first in SEES_NOTHING_BUT_COMMANDS:
        if first == "help" and len(words) > 1:
            return _dispatch([words[1], "--help"])
        print(overview())
        return codes.DONE
    if first in ("--version", "-V", "version"):
        print(f"duly {__version__}")
        return codes.DONE
    if first not in NAMES:
        return complain(_unknown(first), ["duly"])
    if first == "exec":  # it is asked for its help
        from duly.cli.exec_help import usage

        print(usage())
        return codes.DONE
    return call(module_of(first), first, words[1:])


def call(command: ModuleType, name: str, words: list[str]) -> int:
    """Parse the words of a command and run it. A command may say itself which code an error means (`code_of`)."""
    from duly.cli.arguments import Parser

    code_of: Callable[[BaseException], int] = getattr(command, "code_of", codes.code_of)
    try:
        parser = Parser(prog=f"duly {name}", description=command.HELP, epilog=f"example:\n  {command.EXAMPLE}")
        command.add_arguments(parser)
        code: int = command.run(parser.parse_args(words))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except DulyError as e:
        complain(e, ["duly", name, *words])
        return code_of(e)
    except Exception as e:
        if _is_full(e):  # of what was found there is nothing wrong
            raise
        # Python would exit with 1, which `check` and `due` use for an answer.
        _confess(e)
        return code_of(e)
    return code


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO)


def _confess(error: Exception) -> None:
    """Show an error that nobody foresaw, with all that its repair needs."""
    from duly.redaction import traceback_of

    print(traceback_of(error), file=sys.stderr)
    print(f"duly: this is a bug of duly {__version__}; please report it with the lines above", file=sys.stderr)


def _unknown(word: str) -> Misuse:
    from difflib import get_close_matches

    close = get_close_matches(word, NAMES, n=1)
    if close:
        return Misuse(f"there is no command {word!r}; did you mean {close[0]}?", next_step=f"duly {close[0]} --help")
    return Misuse(f"there is no command {word!r}", next_step="duly --help")


def overview() -> str:
    """The help of it all: every command with its line."""
    parts = ["duly: every scheduled period, done once, and on the record.", "", "usage: duly COMMAND …"]
    for group, names in COMMANDS.items():
        parts += ["", f"{group}:"]
        parts += [f"  {name:<11}{module_of(name).HELP}" for name in names if _is_there(name)]
    parts += [
        "",
        "duly COMMAND --help says more, with an example. A ledger is named by --ledger, $DULY_LEDGER or duly.toml.",
    ]
    return "\n".join(parts)


def module_of(name: str) -> ModuleType:
    """The module of a command."""
    return import_module(f"duly.cli.{_module_name(name)}")


def _module_name(name: str) -> str:
    return "import_" if name == "import" else name  # which no statement could import under its own name


def _is_there(name: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(__file__), f"{_module_name(name)}.py"))
