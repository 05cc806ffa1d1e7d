"""Arguments: the words that mean the same in every command, and a parser whose errors are ours."""

from __future__ import annotations

import argparse
import os
import re

from duly.errors import Misuse
from duly.schedule.written import FLAGS
from duly.work.schedule_flags import schedule_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from duly.schedule.spec import Schedule

FORMATS = ("table", "json", "jsonl", "csv", "keys")
MOST = 1_000_000_000  # of anything that is counted
TIMES = ("local", "utc", "relative")


class Parser(argparse.ArgumentParser):
    """A parser that raises `Misuse` where argparse would exit with 2, and keeps an example as it was written."""

    def __init__(self, **named: object) -> None:
        named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        named.setdefault("allow_abbrev", False)
        super().__init__(**named)  # type: ignore[arg-type]  # as argparse takes them
        # `-3d..` is a range: what begins like a number is no option, as argparse has it for whole numbers.
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{self.prog.removeprefix('duly ')}: {message}", next_step=f"{self.prog} --help")


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """`--ledger`, and `--config`, which may name it."""
    parser.add_argument(
        "--ledger",
        metavar="URL",
        help="sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration's, else this user's",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        action=_NameConfiguration,
        help="the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user's and the system's",
    )


class _NameConfiguration(argparse.Action):
    """`--config` is another way to say `$DULY_CONFIG`: whatever looks for the ledger finds it there."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option_string: str | None = None
    ) -> None:
        if not str(values).strip():  # "$FILE" of a variable that is not set must not mean another one
            raise Misuse("--config takes FILE, and it is blank")
        os.environ["DULY_CONFIG"] = namespace.config = os.path.abspath(str(values))


def add_scope(parser: argparse.ArgumentParser) -> None:
    """`--scope`."""
    parser.add_argument("--scope", metavar="SCOPE", help="the tenant or account whose runs are meant")


def add_quiet(parser: argparse.ArgumentParser, means: str = "say nothing but what is asked for, and errors") -> None:
    """`-q`."""
    parser.add_argument("-q", "--quiet", action="store_true", help=means)


def add_format(parser: argparse.ArgumentParser) -> None:
    """`--format`, `--json` and `--time`."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print (default: table)")
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="the same as --format json; its schema is stable",
    )
    parser.add_argument(
        "--time", choices=TIMES, default="local", help="local to the schedule's zone (default), utc, or relative to now"
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """RUN: a key, or a job and a window."""
    parser.add_argument("run", metavar="RUN", help="a run's key, or the name of its job")
    parser.add_argument(
        "window", metavar="WINDOW", nargs="?", help="with a job: 2026-11-28, 2026-W48, 2026-11-28T14, yesterday …"
    )


def count_from_1(text: str) -> int:
    """A number from 1 on."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST}")
    return int(text)


def count_from_0(text: str) -> int:
    """A number from 0 on."""
    return 0 if text == "0" else count_from_1(text)


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """The flags of a schedule, as `duly exec` takes them."""
    flags = parser.add_argument_group("schedule")
    for name, (takes, means) in FLAGS.items():
        flags.add_argument(f"--{name}", metavar=takes, action="append", help=means)


def given_schedule(args: argparse.Namespace, command: str, words: Sequence[str | None]) -> Schedule | None:
    """The schedule that the flags of `add_schedule` describe, or None. Raises as `schedule_given`."""
    typed = {name: getattr(args, name.replace("-", "_")) for name in FLAGS}
    given = {name: values for name, values in typed.items() if values}
    flags = [word for name, values in given.items() for value in values for word in (f"--{name}", value)]
    return schedule_given(given, typed=["duly", *command.split(), *(word for word in words if word), *flags])
