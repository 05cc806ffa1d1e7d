"""The help of exec, from the tables of its flags. Off the path of a call that asks for none."""

from __future__ import annotations

from duly.cli.exec import HELP
from duly.cli.exec_flags import EXAMPLE, OPTIONS
from duly.schedule.written import FLAGS


def usage() -> str:
    """The help of exec, from the tables of its flags."""
    lines = [
        "usage: duly exec JOB [flags] [-- COMMAND…]",
        "",
        HELP,
        "A trigger is a poke: exec asks the ledger what is owed, and works it, oldest first, each run at most once.",
        "What is not typed is taken from [jobs.JOB] of the configuration, the command too; duly jobs check shows it.",
        "",
        f"example: {EXAMPLE}",
        "",
        "schedule (needed when the job is first seen):",
        *[_flag_line(name, *text) for name, text in FLAGS.items()],
        "",
        "flags:",
        *[_flag_line(name, *text) for name, text in OPTIONS.items()],
        "",
        "placeholders in COMMAND and FILE: {label} {date} {scope} {run.key} {window.start} {window.end:%d.%m.%Y}",
        "exit codes: the command's own, or 0 complete · 75 try again · 79 waits for a person · 80 outcome unknown ·",
        "81 taken over · 124 time-out · 126, 127 cannot execute · 64 usage · 78 configuration · 73 cannot be written",
    ]
    return "\n".join(lines)


def _flag_line(name: str, takes: str, meaning: str) -> str:
    return f"  {f'--{name} {takes}'.rstrip():26} {meaning}"
