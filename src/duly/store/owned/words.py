"""Which statements would end or begin a transaction, told by their first words. Pure."""

from __future__ import annotations

import re

_ENDING = frozenset(("abort", "begin", "commit", "end", "rollback", "start"))
_BEFORE = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)  # blanks and comments before the first word


# What a semicolon does not end a statement in (PostgreSQL's manual, "Lexical Structure"): strings, also with escapes or
# between dollars, quoted names, comments.
_WHOLE = re.compile(
    r"""(?:\be)'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | (?<!\w)\$(\w*)\$.*?\$\1\$ | --[^\n]* | /\*.*?\*/""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


def ends_transaction(text: str) -> bool:
    """Whether one of the statements of a text would; `rollback to` a savepoint does not."""
    return any(map(statement_ends_transaction, _WHOLE.sub(" ", text).split(";")))


def is_several(text: str) -> bool:
    """Whether a text is more than one statement."""
    return ";" in text and ";" in _WHOLE.sub(" ", text).strip().rstrip(";")


def statement_ends_transaction(statement: str) -> bool:
    """Whether a text would that is one statement, as drivers of SQLite take them: a trigger has a `begin` inside."""
    words = _first_words(statement)
    if words[:1] == ["rollback"]:
        return "to" not in words
    return words[:1] in [[word] for word in _ENDING] or words[:2] == ["prepare", "transaction"]


def _first_words(statement: str) -> list[str]:
    """The words up to the next comment, in lower case; four tell everything."""
    before = _BEFORE.match(statement)
    start = before.end() if before else 0
    return re.findall("[a-z]+", re.split(r"--|/\*", statement[start : start + 200].lower())[0])[:4]
