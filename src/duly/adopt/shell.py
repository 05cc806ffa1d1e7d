"""A command in a line of a crontab, behind `duly exec NAME -q --`, and taken out of there again.

Where the command is a program with plain words it stands there as it is: every shell reads it alike. Everything else (pipes,
`&&`, redirections, variables, quotes, globs) stays one text for the shell that has run it until now: `-- /bin/sh -c '…'`. The
two cannot be mistaken for each other, since plain words have no quote. What was wrapped is unwrapped from the line itself, to
the byte: nothing has to be kept for that.
"""

from __future__ import annotations

import os
import re
from shlex import quote

from duly.adopt.words import words
from duly.records import record
from duly.work.command import literal, not_literal

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./ \t-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# What a shell does itself, or reads as its own; with those that are programs as well, and not quite the same ones.
BUILTINS = words(
    ". : [ alias bg break builtin case cd command continue declare dirs disown do done echo elif else enable esac eval exec "
    "exit export false fc fg fi for function getopts hash help history if in jobs kill let local logout popd printf pushd pwd "
    "read readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask "
    "unalias unset until wait while"
)
# Shells in which a text in single quotes is literal, and '\'' a quote between two such texts.
_SHELLS = words("sh bash dash ash ksh mksh zsh busybox rbash")

# How duly is called: by its name, by its path, or as a module of a Python; in the quotes of a shell, or in those of systemd.
_DULY = r"""(?:'(?:[^']*/)?duly'|"(?:[^"]*/)?duly"|(?:[^\s'"]*/)?duly|(?:'[^']*'|"[^"]*"|[^\s'"]+)\s+-m\s+duly)"""
_CALL = re.compile(rf"{_DULY}\s+(?P<verb>exec|daemon|outbox|db|check|alerts|metrics)\b")
_JOB = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_WRAPPED = re.compile(
    rf"{_DULY} exec (?P<job>{_JOB}) -q(?: --config (?P<config>'[^']*'|[^\s']+))? -- (?P<rest>.*)", re.DOTALL
)
_TO_SHELL = re.compile(r"(?P<shell>/[^\s']+) -c '(?P<text>(?:[^']|'\\'')*)'", re.DOTALL)


@record
class Wrapper:
    """What is put before a command: how duly is called, in quotes, and the configuration, empty where it is found unnamed."""

    duly: str
    config: str = ""

    def wrap(self, job: str, command: str, shell: str) -> str | None:
        """The line that runs the command as a job; None where this shell would read it in another way."""
        config = f" --config {quote(self.config)}" if self.config else ""
        # Quiet, as a line of cron is that another host may have been faster for: cron mails what is printed.
        prefix = f"{self.duly} exec {job} -q{config} -- ".replace("%", "\\%")  # a bare one ends the command
        if is_plain(command):
            return prefix + command
        if os.path.basename(shell) not in _SHELLS or re.search(r"[\s']", shell) or not shell.startswith("/"):
            return None
        text = literal(command).replace("'", "'\\''")
        return f"{prefix}{shell} -c '{text}'"


@record
class Unwrapped:
    """A command that was wrapped, and the job that it is."""

    job: str
    config: str
    command: str


def unwrap(line: str) -> Unwrapped | None:
    """The command in a line that `wrap` made; None for a line that it did not make, or that was changed since."""
    found = _WRAPPED.fullmatch(line)
    if found is None:
        return None
    config = (found["config"] or "").strip("'").replace("\\%", "%")
    if is_plain(found["rest"]):
        return Unwrapped(found["job"], config, found["rest"])
    inner = _TO_SHELL.fullmatch(found["rest"])
    command = None if inner is None else not_literal(inner["text"].replace("'\\''", "'"))
    return None if command is None else Unwrapped(found["job"], config, command)


def is_plain(command: str) -> bool:
    """Whether every shell, and none, reads the command as the same words."""
    argv = command.split()
    return bool(
        argv
        and _PLAIN.fullmatch(command)
        and argv[0] not in BUILTINS
        and not _ASSIGNMENT.match(argv[0])
        and not command.startswith((" ", "\t", "-"))
    )


def calls_duly(command: str) -> bool:
    """Whether the command is one of duly's already: a person has wrapped it, or we have."""
    return _CALL.match(command) is not None


def job_called(command: str) -> str | None:
    """The job that a command pokes by itself; empty where it names none, None where it calls no duly."""
    called = _CALL.match(command)
    if called is None:
        return None
    found = re.match(rf"\s+(?:-\S+\s+)*({_JOB})", command[called.end() :])
    return found[1] if found is not None and called["verb"] == "exec" else ""


def quoted_call(call: str) -> str:
    """How duly is called, for a shell; `PYTHON -m duly` are three words."""
    python = call.removesuffix(" -m duly")
    return quote(call) if python == call else f"{quote(python)} -m duly"


def is_callable(call: str) -> bool:
    """Whether a call of duly is one that would be known again, and can be put in quotes in a shell as well as in a unit."""
    return re.fullmatch(r"(?:[^\0-\x1f\x7f'\"\\]+ -m |(?:[^\0-\x1f\x7f'\"\\]*/)?)duly", call) is not None
