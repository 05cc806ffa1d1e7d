"""Flags of exec: from what was typed to what it means: a declaration of the job, and an order of what to run.

By hand: argparse would double the start.
"""

from __future__ import annotations

import os

from duly.cli.codes import UNKNOWN
from duly.errors import Misuse, UnknownScope
from duly.ledger.register import Declaration, check_policies
from duly.records import record, replace
from duly.schedule.keys import check_adhoc, check_job_name, check_scope
from duly.schedule.written import FLAGS
from duly.times import DAY, SECOND, parse_duration
from duly.work.command import inherited
from duly.work.identity import actor, new_attempt_id, uuid_text
from duly.work.poke import Order
from duly.work.schedule_flags import line_with, schedule_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeVar

    from duly.ledger.ask import Value
    from duly.work.configuration import JobEntry

    T = TypeVar("T")

EXAMPLE = "duly exec close-day --period daily --zone Europe/Paris --at 02:30 -- ./close.sh --day {date}"

# name: (what it takes or "" for a switch, what it means); the order is the one of the help. Schedule flags come first.
OPTIONS = {
    "scope": ("SCOPE", "the tenant or account that the run belongs to"),
    "catch-up": ("POLICY", "after downtime: each, or latest (which is what a job first seen here gets)"),
    "effect": ("CONTRACT", "transactional, idempotent or external (the default of commands)"),
    "remembers": ("TIME", "idempotent: how long the destination deduplicates, as 24h, or forever"),
    "clean-exits": ("CODES", "exit codes that prove that nothing happened, as 75,111"),
    "retries": ("N", "how often a failure is retried, in place until the deadline"),
    "no-retry": ("", "leave retries to whatever calls duly"),
    "timeout": ("TIME", "end the command after this long: SIGTERM, then SIGKILL"),
    "lease": ("TIME", "how long a claim lives without a heartbeat (60s)"),
    "grace": ("TIME", "how long after its due time a window may still be open without being late"),
    "retain": ("TIME", "how long what is settled is kept, as 90d, or forever; duly db prune forgets it then"),
    "overlap": ("yes|no", "whether runs of one job and scope may overlap (no)"),
    "ordered": ("yes|no", "whether a run waits until the one before it is settled (no)"),
    "owner": ("NAME", "who is asked about this job"),
    "window": ("W", "work this window, as 2026-11-28 or 2026-11-28T14"),
    "adhoc": ("[ID]", "run outside the schedule; prints its id, and a retry passes it back"),
    "trigger": (
        "SOURCE",
        "work the window that a scheduler elsewhere meant: airflow, cloud-scheduler, eventbridge, kubernetes, systemd",
    ),
    "backfill": ("[ID]", "work a backfill's windows, one after the other, until none is left to take"),
    "one": ("", "stop after one run"),
    "output": ("FILE", "the command writes to $DULY_OUTPUT; moved to FILE when it ends with 0"),
    "replace": ("", "with --output: overwrite what is there"),
    "chronic": ("", "show the command's output only if it fails"),
    "keep-output": ("SIZE", "keep the last of the command's output in the ledger, redacted, as 16k (64k at most)"),
    "outcome-file": ("PATH", "write how it ended to PATH, as one JSON object"),
    "exit-duplicate": ("N", "exit with N instead of 0 when nothing had to be done (Airflow: 99)"),
    "settle": ("TIME", "how long to try to write down how the command ended (10m)"),
    "busy-timeout": ("TIME", "how long to wait for a busy ledger (10s)"),
    "ledger": ("URL", "the ledger, as sqlite:////var/lib/duly/ledger.db"),
    "config": ("FILE", "the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user's, the system's"),
    "log-format": ("FORM", "text, json or logfmt: a line on stderr for each attempt, with fixed fields"),
    "verbose": ("", "-v: say what is done also when all is well"),
    "quiet": ("", "-q: say nothing but errors"),
}
SHORT = {"-v": "verbose", "-q": "quiet"}
SWITCHES = tuple(name for name, (takes, _) in OPTIONS.items() if not takes)


# -- what was typed ----------------------------------------------------------------------------------------------------


@record
class Given:
    """What was typed: the job, the command, and each flag's values as written. The command is empty where a file has it."""

    job: str
    argv: list[str]
    flags: dict[str, list[str]]
    typed: list[str]

    def one(self, name: str) -> str | None:
        """The value of a flag that may be given once."""
        values = self.flags.get(name, [])
        if len(values) > 1:
            raise Misuse(f"--{name} is given twice: {values[0]} and {values[1]}; leave one out")
        return values[0] if values else None

    def has(self, name: str) -> bool:
        return name in self.flags

    @property
    def names_a_run(self) -> bool:
        return self.has("window") or self.has("adhoc") or self.has("trigger")

    def duration(self, name: str) -> int | None:
        """A duration in microseconds. Raises `Misuse`, naming the flag."""
        text = self.one(name)
        micros = None if text is None else _named(name, text, parse_duration)
        if micros is not None and micros > 36_500 * DAY:
            raise Misuse(f"--{name}: {text!r} is longer than a hundred years")
        return micros

    def number(self, name: str, *, at_most: int = 1_000_000) -> int | None:
        """A whole number, not negative. Raises `Misuse`, naming the flag."""
        text = self.one(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= at_most):
            raise Misuse(f"--{name}: {text!r} is not a whole number between 0 and {at_most}")
        return int(text)


def parse(argv: Sequence[str]) -> Given:
    """The arguments of exec, `JOB [flags] -- COMMAND…`. Raises `Misuse`."""
    end = end_of_flags(argv)
    flags: dict[str, list[str]] = {}
    names: list[str] = []
    words = list(argv[:end])
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            names.append(word)
            continue
        name, equals, value = SHORT.get(word, word.removeprefix("--")).partition("=")
        if name not in OPTIONS and name not in FLAGS:
            raise Misuse(f"exec has no flag {word!r}{_did_you_mean(name)}", next_step="duly exec --help")
        if name in SWITCHES:
            if equals:
                raise Misuse(f"--{name} takes no value")
            flags.setdefault(name, [])
        elif name in ("adhoc", "backfill") and not equals and (not words or words[0].startswith("-") or not names):
            flags.setdefault(name, [])
        else:
            if not equals and (not words or words[0].startswith("--")):
                raise Misuse(f"--{name} takes {(FLAGS | OPTIONS)[name][0]}, and nothing follows")
            value = value if equals else words.pop(0)
            if not value.strip():  # "$TENANT" of a variable that is not set must not mean all of them
                raise Misuse(f"--{name} takes {(FLAGS | OPTIONS)[name][0]}, and it is blank")
            if any("\ud800" <= char <= "\udfff" for char in value):  # how Python shows bytes that are not UTF-8
                raise Misuse(f"--{name}: {value!r} is not text in UTF-8")
            flags.setdefault(name, []).append(value)
    if not names:
        raise Misuse("exec needs a job's name", next_step=EXAMPLE)
    if len(names) > 1:
        raise Misuse(f"exec takes one job, and the command after --; what is {names[1]!r}?", next_step=EXAMPLE)
    if end < len(argv) and not argv[end + 1 :]:
        raise _no_command(["duly", "exec", *argv[:end]])
    return Given(names[0], list(argv[end + 1 :]), flags, ["duly", "exec", *argv])


def _no_command(typed: Sequence[str]) -> Misuse:
    return Misuse(
        "exec needs a command after --, or one that a configuration has for the job",
        next_step=line_with(typed, "--", "./command"),
    )


def end_of_flags(argv: Sequence[str]) -> int:
    return list(argv).index("--") if "--" in argv else len(argv)


def _did_you_mean(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*FLAGS, *OPTIONS], 1)
    return f"; did you mean --{close[0]}?" if close else ""


# -- what it means -----------------------------------------------------------------------------------------------------


def beside(given: Given, entry: JobEntry | None) -> Given:
    """What was typed, beside what a file says of the job: a command and flags that were typed win over the file's.

    Raises `Misuse` where neither has a command.
    """
    if entry is not None:
        given = replace(given, argv=given.argv or list(entry.command or ()), flags={**entry.flags, **given.flags})
    if not given.argv:
        raise _no_command(given.typed)
    return given


def declaration(given: Given, entry: JobEntry | None = None) -> Declaration:
    """What the flags, and a file for what they do not say, declare of the job. Raises `Misuse` or `ScheduleError`.

    A schedule is one thing: that of the flags takes the place of the file's, whole.
    """
    check_job_name(given.job)
    scope = given.one("scope")
    if scope is not None:
        check_scope(scope)
    said = Declaration(given.job) if entry is None else entry.declaration
    schedule = schedule_given({name: given.flags.get(name, []) for name in FLAGS}, typed=given.typed) or said.schedule
    if scope is not None and said.scopes is not None and scope not in said.scopes:
        raise UnknownScope(f"{given.job} has the scopes {', '.join(said.scopes)}, not {scope!r}; nothing was run")
    found = {**said.policies, **policies(given, said.policies)}
    check_policies(found)
    return Declaration(given.job, scope or "", schedule, found, actor(), scopes=said.scopes)


def policies(given: Given, said: Mapping[str, Value]) -> dict[str, Value]:
    """The policies that the flags name, as columns of the ledger; what is not named is left out, and keeps its value.

    `said` are those of a file.
    """
    found: dict[str, Value] = {}
    if (catch_up := given.one("catch-up")) is not None:
        from duly.schedule.catch_up import parse_catch_up

        found["catch_up"] = str(_named("catch-up", catch_up, parse_catch_up))
    if (effect := given.one("effect")) is not None:
        found["contract"] = effect
    remembers = given.one("remembers")
    is_idempotent = (effect or said.get("contract")) == "idempotent"
    is_remembered = remembers is not None or (is_idempotent and said.get("contract") == "idempotent")
    if (effect is not None or remembers is not None) and is_idempotent != is_remembered:
        raise Misuse("--remembers: an idempotent effect, and no other, says how long its destination remembers")
    if effect is not None:
        if effect not in ("transactional", "idempotent", "external"):
            raise Misuse(f"--effect: {effect!r} is none of transactional, idempotent, external")
        found["remembers"] = said.get("remembers") if is_idempotent else None
    if remembers is not None:
        found["remembers"] = None if remembers == "forever" else given.duration("remembers")
    if (clean := given.one("clean-exits")) is not None:
        found["clean_exits"] = _exit_codes(clean)
    if (retries := given.number("retries")) is not None:
        found["retries"] = retries
    if (retain := given.one("retain")) is not None:
        found["retain"] = None if retain == "forever" else given.duration("retain")
    for name in ("timeout", "lease", "grace"):
        if (micros := given.duration(name)) is not None:
            found[name] = micros
    for name in ("overlap", "ordered"):
        if (answer := given.one(name)) is not None:
            found[name] = int(_named(name, answer, _yes_or_no))
    if (owner := given.one("owner")) is not None:
        found["owner"] = owner
    return found


def _named(name: str, text: str, read: Callable[[str], T]) -> T:
    """A flag's value, read; what is wrong with it is said with the flag's name."""
    try:
        return read(text)
    except ValueError as e:
        raise Misuse(f"--{name}: {e}") from e


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise Misuse(f"{text!r} is neither yes nor no")
    return text == "yes"


def _exit_codes(text: str) -> str:
    codes = [code.strip() for code in text.split(",")]
    for code in codes:
        if not (code.isascii() and code.isdigit() and 1 <= int(code) <= 192):
            raise Misuse(f"--clean-exits: {code!r} is not an exit code between 1 and 192")
        if int(code) == UNKNOWN:
            raise Misuse("--clean-exits: 80 is how a command says that its outcome is unknown")
    return ",".join(codes)


def order_given(given: Given, hidden: Collection[str] = ()) -> Order:
    """What is to be run, and how; the child does not see the variables that are `hidden`. Raises `Misuse`, naming the flag."""
    output = None
    if (final := given.one("output")) is not None:
        from duly.work.output import Output

        output = Output(final, may_replace=given.has("replace"))
    elif given.has("replace"):
        raise Misuse("--replace goes with --output")
    settle = given.duration("settle")
    keep_output = 0
    if (size := given.one("keep-output")) is not None:
        from duly.work.kept import parse_size

        keep_output = _named("keep-output", size, parse_size)
    return Order(
        argv=given.argv,
        environment=_environment(given, hidden),
        trigger="person" if os.isatty(2) else "exec",
        settle_seconds=600.0 if settle is None else settle / SECOND,
        retry_in_place=not given.has("no-retry"),
        only_one=given.has("one"),
        chronic=given.has("chronic"),
        output=output,
        keep_output=keep_output,
    )


def log_form(typed: Sequence[str]) -> str:
    """The form of the log that is typed, where it is one; else text. Known before anything may be wrong with the rest."""
    last = "text"
    for flag, word in zip(typed, [*typed[1:], ""], strict=True):
        last = flag.partition("=")[2] if flag.startswith("--log-format=") else word if flag == "--log-format" else last
    return last if last in ("json", "logfmt") else "text"


def check_log_form(given: Given) -> None:
    """Raise `Misuse` for a form of the log that there is not."""
    form = given.one("log-format")
    if form not in (None, "text", "json", "logfmt"):
        raise Misuse(f"--log-format: {form!r} is none of text, json, logfmt")


def _environment(given: Given, hidden: Collection[str]) -> dict[str, str]:
    environment = inherited(os.environ, hidden)
    if (path := given.one("outcome-file")) is not None:
        environment["DULY_OUTCOME_FILE"] = os.path.abspath(path)
    return environment


def backfill_given(given: Given) -> int | None:
    """The number of the backfill that is meant; None for the oldest."""
    if given.has("backfill") and given.names_a_run:
        raise Misuse(
            "--backfill works the windows of a backfill; --window, --adhoc and --trigger name a run; leave one out"
        )
    return given.number("backfill", at_most=1 << 62)


def adhoc_given(given: Given) -> str:
    """The id of the run outside the schedule that is asked for; empty where none is."""
    if not given.has("adhoc"):
        return ""
    if given.has("window"):
        raise Misuse("--window names a run of the schedule, --adhoc one outside it; leave one out")
    return check_adhoc(given.one("adhoc") or uuid_text(new_attempt_id()))
