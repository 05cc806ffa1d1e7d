"""The manual page duly(1), in mdoc, made from the parsers themselves.

python -m duly.cli.manual > share/man/man1/duly.1      or `make share`
"""

from __future__ import annotations

import re
import sys
from textwrap import wrap

from duly.cli import codes
from duly.cli.tree import Flag, Node, Word, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DATE = "November 30, 2026"  # when the page was last looked through
_MANY = 10  # commands that have a flag, for it to be told once
_WIDTH = 76

_WHAT_IT_IS = (
    "A scheduler starts attempts; a business cares whether a run (this job, this scope, this nominal window) is complete. "
    "duly is the ledger between the two: whatever calls it pokes, the ledger says what is owed, and each window is done once."
)
_WHAT_IS_WRITTEN = (
    "RUN is the key of a run, or a job and a window as people write it: 2026-11-28, 2026-W48, 2026-11, 2026-11-28T14, "
    "yesterday. Ranges are half-open: 2026-11-01..2026-12-01, -7d.. and so on. What was understood is said on standard error; "
    "what was asked for goes to standard output."
)

_EXEC_CODES = (
    (str(codes.DONE), "Completed now, complete already, skipped, paused, or nothing is owed."),
    (str(codes.USAGE), "Usage; a window off the grid, or below the horizon."),
    (str(codes.UNAVAILABLE), "The ledger cannot be reached; of exec 75."),
    (str(codes.OUR_BUG), "A bug of duly."),
    (str(codes.UNWRITABLE), "The ledger, or what was asked for, cannot be written; or the ledger is damaged."),
    (str(codes.TRY_AGAIN), "Held by another attempt; due or to be retried later; the ledger is busy. Try again."),
    (str(codes.NO_PERMISSION), "No permission."),
    (str(codes.CONFIGURATION), "Configuration: a bad schedule, or another one than the ledger's; another payload."),
    (str(codes.WAITS_FOR_A_PERSON), "The run has failed and waits for a person: duly retry, or duly skip."),
    (str(codes.UNKNOWN), "The outcome is unknown: duly resolve."),
    (str(codes.TAKEN_OVER), "Another attempt took the run over: nothing of this one was recorded as complete."),
    ("124, 128+n", "The command ran out of time, or was killed by signal n."),
    ("126, 127", "The command cannot be executed, or was not found."),
)

_ANSWERS = (
    (
        "duly check",
        "0 complete, 1 not complete, 2 cannot tell, 3 not yet; with --nagios the codes of a plugin: 0, 2, 3.",
    ),
    ("duly due", "0 a poke would work something, 1 it would not, 255 anything else."),
)

_ENVIRONMENT = (
    ("DULY_LEDGER", "The ledger, where --ledger does not name one."),
    ("DULY_CONFIG", "The configuration, where --config does not name one."),
    ("NO_COLOR, FORCE_COLOR", "No colour and no progress; colour where there is no terminal too."),
    ("DULY_JOB, DULY_SCOPE, DULY_RUN_KEY, DULY_LABEL", "What a command that duly exec runs is told of its run."),
    (
        "DULY_DATE, DULY_WINDOW_START, DULY_WINDOW_END",
        "The same: its business date and window, in local time with offset.",
    ),
    ("DULY_ATTEMPT, DULY_ATTEMPT_ID, DULY_IDEMPOTENCY_KEY", "The same: who it is, and what destinations know it by."),
)

_FILES = (
    ("duly.toml", "The configuration: the nearest one, then the user's, then /etc/duly/duly.toml."),
    ("/var/lib/duly/ledger.db", "The ledger of root, where none is named."),
    ("~/.local/state/duly/ledger.db", "That of others."),
)


def manual() -> str:
    """The page as mdoc source."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield '.\\" Made by `python -m duly.cli.manual`; do not edit.'
    yield from (f".Dd {DATE}", ".Dt DULY 1", ".Os")
    yield from (".Sh NAME", ".Nm duly", ".Nd every scheduled period, done once, and on the record")
    yield from (".Sh SYNOPSIS", ".Nm", ".Ar command", ".Op Ar ...", ".Nm", ".Ar command", ".Fl -help")
    yield ".Sh DESCRIPTION"
    yield from _text(_WHAT_IT_IS)
    yield ".Pp"
    yield from _text(_WHAT_IS_WRITTEN)
    nodes = [node for command in tree() for node in command.walk()]
    common = _common(nodes)
    yield ".Sh COMMANDS"
    for node in nodes:
        yield from _command(node, [flag for flag in node.flags if flag not in common])
    yield ".Sh COMMON FLAGS"
    yield from _text("Many commands take these, and they mean the same everywhere:")
    yield from _flags(common)
    yield ".Sh ENVIRONMENT"
    yield from _list(_ENVIRONMENT)
    yield ".Sh FILES"
    yield from _list(_FILES)
    yield ".Sh EXIT STATUS"
    yield from _text(
        "A command that duly exec ran gives its own code; other codes, of exec and of every other verb, are:"
    )
    yield from _list(_EXEC_CODES)
    yield ".Pp"
    yield from _text("Two verbs answer with their code:")
    yield from _list(_ANSWERS)
    yield from (".Sh SEE ALSO", ".Xr crontab 5 ,", ".Xr systemd.timer 5 ,", ".Xr cron 8")


def _common(nodes: list[Node]) -> list[Flag]:
    """The flags that many commands have, in the order in which they come first."""
    seen: list[Flag] = []
    for flag in (flag for node in nodes for flag in node.flags):
        if flag not in seen and sum(flag in node.flags for node in nodes) >= _MANY:
            seen.append(flag)
    return seen


def _command(node: Node, own: list[Flag]) -> Iterator[str]:
    yield f".Ss {_words(f'duly {node.name}')}"
    if node.verbs and not node.flags and not node.words:
        yield from _text(_sentence(node.description))
        return
    yield ".Bd -ragged -offset indent -compact"
    yield f".Nm {_arg(f'duly {node.name}')}"
    for word in node.words:
        yield _synopsis(word)
    if node.flags:
        yield f".Op Ar {_arg('flags')}"
    yield from (".Ed", ".Pp")
    yield from _text(_sentence(node.description))
    if own:
        yield from _flags(own)
    if node.example:
        yield from (".Pp", "For example:", ".Bd -literal -offset indent")
        yield from (_escaped(line.strip()) for line in node.example.splitlines())
        yield ".Ed"


def _synopsis(word: Word) -> str:
    shown = f"{word.name} ..." if word.repeats and word.name and "…" not in word.name else word.name or "..."
    return f".{'Op Ar' if word.is_optional else 'Ar'} {_arg(shown)}"


def _flags(flags: list[Flag]) -> Iterator[str]:
    yield ".Bl -tag -width Ds"
    for flag in flags:
        yield f".It {_flag(flag)}"
        yield from _text(_sentence(flag.means))
    yield ".El"


def _flag(flag: Flag) -> str:
    names = " , ".join(f"Fl {_arg(name[1:])}" for name in flag.names)
    return f"{names} Ar {_arg(flag.takes)}" if flag.takes else names


def _list(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    yield ".Bl -tag -width Ds"
    for name, means in rows:
        yield f".It {_arg(name)}"
        yield from _text(means)
    yield ".El"


def _sentence(text: str) -> str:
    """A help text as a sentence."""
    text = " ".join(text.split())
    first, blank, rest = text.partition(" ")
    first = first[:1].upper() + first[1:] if first.rstrip(",:").isalpha() else first
    return f"{first}{blank}{rest}{'' if text.endswith(('.', '?', '!')) else '.'}" if text else ""


def _text(text: str) -> Iterator[str]:
    """Running text, a line for each sentence, as mdoc wants it."""
    for sentence in re.split(r"(?<=[.?!]) +(?=[A-Z])", text):
        yield from map(_escaped, wrap(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _words(text: str) -> str:
    return " ".join(map(_arg, text.split()))


def _arg(text: str) -> str:
    """One argument of a macro, which none of its words is taken for."""
    return '"\\&' + _escaped(text).replace('"', "\\(dq") + '"'


def _escaped(text: str) -> str:
    """Text in ASCII in which roff finds no request."""
    text = text.replace("\\", "\\e")
    text = "".join(sign if sign.isascii() else f"\\[u{ord(sign):04X}]" for sign in text)
    return f"\\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    sys.stdout.write(manual())
