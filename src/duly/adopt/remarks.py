"""Remarks: what a command does that reads otherwise once duly keeps its record. Nothing of it is changed."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_RANDOM_SLEEP = re.compile(r"\bsleep\b.*(?:RANDOM|\brand\b)", re.DOTALL)
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def remarks(command: str) -> list[tuple[str, str]]:
    """What is to be said of a command, each with its code."""
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted.group()), command)
    found = [(code, says) for code, applies, says in _REMARKS if applies(bare)]
    if _RANDOM_SLEEP.search(command):
        found.append(("random_sleep", "sleeps for a random time first: no other run of the job begins while it does"))
    return found


def _finds(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern)
    return lambda command: found.search(command) is not None


_REMARKS: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    (
        "background",
        _finds(r"(?<!&)&\s*\)?\s*$"),
        "ends with &: the run is complete as soon as the command was started; without the & it is when the command has ended",
    ),
    (
        "exit_hidden",
        _finds(r"\|\|\s*(?:true|:|/bin/true)\s*\)?\s*$|;\s*(?:true|:|exit 0|/bin/true)\s*$"),
        "hides how it ended: duly hears 0, and counts it as done whatever happened",
    ),
    (
        "pipe",
        _finds(r"(?<![|>])\|(?![|&])"),
        "of a pipe the shell tells how the last command ended; under SHELL=/bin/bash `set -o pipefail;` before it tells all",
    ),
    (
        "flock",
        _finds(r"(?:^|[\s;&|(/])flock\s"),
        "flock may go: duly works one run of a job at a time, on every host that shares the ledger",
    ),
    (
        "conditional",
        _finds(r"(?:^|[\s;&|(])(?:test|\[|\[\[|command -v)\s[^|&;]*?(?:\|\||&&)"),
        "does nothing where its test says so, and exits with 0: duly counts that as done",
    ),
)
