"""Next steps: every line that duly prints for a person to type, tried. It has to be runnable as it stands, but for what only a
person can say, which stands in quotes: `--reason '…'`, `--as 'done|not-done'`.

It is tried on a ledger that cannot be: whatever is said of that, the line itself was understood.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import takewhile
from typing import Any

from duly.cli import main
from duly.cli.arguments import Parser
from duly.cli.dispatch import module_of
from duly.errors import Misuse

NOWHERE = "/nonexistent/ledger.db"
USAGE = 64

# Lines of others: what is on every host that has what they are about.
OF_OTHERS = (
    *("chmod", "chown", "createdb", "df", "export", "fuser", "ls", "mkdir", "openssl", "pg_dump", "pip", "psql"),
    *("python", "systemctl", "timedatectl", "celery", "helm"),
)
ONLY_READ = (
    "daemon",
    "demo",
    "import",
    "metrics",
)  # these would begin something without a ledger: their words are only read

# What is refused here only for lack of a file that is where the line is to be typed.
_OF_ANOTHER_FOLDER = ("No such file", "or one that a configuration has")

_TRY = re.compile(r"^  try: (.+)$", re.MULTILINE)
_IN_QUOTES = re.compile(r"`(duly [a-z]+ [^`]+)` starts it")


def next_steps(out: str, talk: str) -> Iterator[str]:
    """Every next step that a command printed: after `try:`, at the end of a row, and in documents for programs."""
    yield from _TRY.findall(talk)
    yield from _IN_QUOTES.findall(talk)
    if "usage:" not in out:
        for line in (*out.splitlines(), *talk.splitlines()):
            if found := re.search(r"(?:\S {3,}|next: )(duly [a-z]+ .+)$", line):
                yield found[1]
    if out.startswith("{"):
        try:
            yield from _named(json.loads(out))
        except ValueError:  # several documents, a line each
            return


def _named(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if isinstance(step := document.get("next_step"), str):
            yield step
        for each in document.values():
            yield from _named(each)
    elif isinstance(document, list):
        for each in document:
            yield from _named(each)


def filled(step: str, words: str) -> list[str]:
    """The words of a next step after `duly`, with a person's own in the place that is theirs."""
    return [{"…": words, "done|not-done": "done"}.get(word, word) for word in shlex.split(step)[1:]]


def _first_command(line: str) -> list[str]:
    """The words of a line up to what a shell makes of it itself: `>>`, `;` and the like."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(takewhile(lambda word: not set(word) <= set(";<>|&"), lexer))


def why_not_runnable(step: str) -> str:
    """Why a next step cannot be run as it stands; empty where it can be."""
    try:
        words = _first_command(step)
    except ValueError as e:
        return f"no shell reads it: {e}"
    if not words or words[0] not in ("duly", *OF_OTHERS):
        return "it is no command"
    if words[0] == "ls":
        return "" if os.path.lexists(words[-1]) else "there is nothing to see"
    if words[0] in OF_OTHERS:
        return ""
    typed = _elsewhere(filled(shlex.join(words), "what a person writes"))
    if typed[0] in ONLY_READ:
        return _why_not_read(typed)
    code, talk = _tried(typed)
    return f"it is refused: {talk}" if code == USAGE and not any(said in talk for said in _OF_ANOTHER_FOLDER) else ""


def _why_not_read(words: list[str]) -> str:
    if words == [words[0], "--help"]:
        return ""
    command = module_of(words[0])
    parser = Parser(prog=f"duly {words[0]}")
    command.add_arguments(parser)
    try:
        parser.parse_args(words[1:])
    except Misuse as e:
        return f"it is refused: {e}"
    except SystemExit:  # it was asked for its help
        return ""
    return ""


def _elsewhere(words: list[str]) -> list[str]:
    """The same line on the ledger that cannot be."""
    kept, rest = [], list(words)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word == "--ledger":
            kept += [word, NOWHERE]
            del rest[:1]
        elif word == "--outcome-file":
            del rest[:1]
        else:
            kept.append(word)
    return [*kept, *rest]


def _tried(words: list[str]) -> tuple[int, str]:
    before, talk = dict(os.environ), io.StringIO()
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    wrapped = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        for name in before:
            if name.startswith("DULY_"):
                del os.environ[name]
        os.environ["DULY_LEDGER"] = NOWHERE
        with redirect_stdout(out), redirect_stderr(wrapped):
            try:
                code = main(words)
            except SystemExit as e:  # of a parser that was asked for help
                code = int(e.code or 0)
        wrapped.seek(0)
        talk.write(wrapped.read())
    finally:
        os.environ.clear()
        os.environ.update(before)
    return code, talk.getvalue()


def assert_runnable(out: str, talk: str) -> None:
    """Every next step in what a command printed is runnable."""
    wrong = {step: why for step in next_steps(out, talk) if (why := why_not_runnable(step))}
    assert not wrong, "\n".join(f"{step}\n  {why}" for step, why in wrong.items())
