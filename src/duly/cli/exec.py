"""duly exec JOB -- COMMAND: what cron, a timer, a Pod or a person calls. A trigger is a poke: what is owed is worked."""

from __future__ import annotations

import os
import sys

from duly.cli.codes import (
    CONFIGURATION,
    DONE,
    INTERRUPTED,
    OUR_BUG,
    TRY_AGAIN,
    UNKNOWN,
    USAGE,
    WAITS_FOR_A_PERSON,
    code_of,
)
from duly.cli.complain import complain, in_same_ledger, say
from duly.cli.ledgers import open_or_make_ledger
from duly.cli.schedule_flags import FLAGS, host_zone, line_with, schedule_given
from duly.errors import (
    DulyError,
    LedgerCorrupt,
    LedgerForbidden,
    LedgerUnavailable,
    LedgerUnwritable,
    Misuse,
    NoLedger,
    NoSchedule,
    NotAllowed,
    OutcomeUnknown,
    RunFailed,
    RunSkipped,
    ScheduleChanged,
    UnknownJob,
)
from duly.ledger import states
from duly.ledger.address import key_of, scopes_of
from duly.ledger.named import words_of
from duly.ledger.register import Declaration, check_policies
from duly.records import record, replace
from duly.schedule.keys import check_adhoc, check_job_name, check_scope
from duly.times import DAY, SECOND, duration_text, instant_text, parse_duration
from duly.work.child import Signals
from duly.work.identity import actor, new_attempt_id, uuid_text
from duly.work.poke import Order, Poke, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from duly.ledger.ask import Value
    from duly.ledger.records import AlreadyCompleted, Busy, NotDue, Run
    from duly.schedule.keys import RunKey
    from duly.store.protocol import Store
    from duly.work.command import Briefing

    T = TypeVar("T")

HELP = "wrap a command: what cron, systemd and Kubernetes call"

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
    "overlap": ("yes|no", "whether runs of one job and scope may overlap (no)"),
    "ordered": ("yes|no", "whether a run waits until the one before it is settled (no)"),
    "owner": ("NAME", "who is asked about this job"),
    "window": ("W", "work this window, as 2026-11-28 or 2026-11-28T14"),
    "adhoc": ("[ID]", "run outside the schedule; prints its id, and a retry passes it back"),
    "one": ("", "stop after one run"),
    "output": ("FILE", "the command writes to $DULY_OUTPUT; moved to FILE when it ends with 0"),
    "replace": ("", "with --output: overwrite what is there"),
    "chronic": ("", "show the command's output only if it fails"),
    "outcome-file": ("PATH", "write how it ended to PATH, as one JSON object"),
    "exit-duplicate": ("N", "exit with N instead of 0 when nothing had to be done (Airflow: 99)"),
    "settle": ("TIME", "how long to try to write down how the command ended (10m)"),
    "busy-timeout": ("TIME", "how long to wait for a busy ledger (10s)"),
    "ledger": ("URL", "the ledger, as sqlite:////var/lib/duly/ledger.db"),
    "verbose": ("", "-v: say what is done also when all is well"),
    "quiet": ("", "-q: say nothing but errors"),
}
SHORT = {"-v": "verbose", "-q": "quiet"}
SWITCHES = tuple(name for name, (takes, _) in OPTIONS.items() if not takes)
EXAMPLE = "duly exec close-day --period daily --zone Europe/Paris --at 02:30 -- ./close.sh --day {date}"


@record
class Given:
    """What was typed: the job, the command, and each flag's values as written."""

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
        return self.has("window") or self.has("adhoc")

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


def run(argv: Sequence[str]) -> int:
    """Run `duly exec` with these arguments; answer its exit code."""
    _open_closed_descriptors()
    typed = argv[: _end_of_flags(argv)]
    if not argv or "-h" in typed or "--help" in typed:
        print(usage())
        return DONE if argv else USAGE
    teller = Teller(loud=_is_loud(typed), quiet="-q" in typed or "--quiet" in typed, typed=typed)
    try:
        return _run(parse(argv), teller)
    except DulyError as e:
        complain(e, ["duly", "exec", *argv])
        return _code_of(e)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:
        from traceback import print_exc

        print_exc()
        _say("this is a bug of duly's; what the ledger holds is told by:")
        _try("duly status")
        return OUR_BUG


def _open_closed_descriptors() -> None:
    """Standard input, output and error that came closed become /dev/null: else the ledger's files would take their place."""
    for descriptor, mode in enumerate("rww"):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        name = ("stdin", "stdout", "stderr")[descriptor]
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  for good


def _is_loud(typed: Sequence[str]) -> bool:
    return "-v" in typed or "--verbose" in typed or os.isatty(2)


def _run(given: Given, teller: Teller) -> int:
    """Understand all that was typed, before the ledger is touched; then poke, and write down how it went."""
    declared = declaration(given)
    order = _order(given)
    adhoc = _adhoc(given)
    duplicate = given.number("exit-duplicate", at_most=255)
    busy = given.duration("busy-timeout")
    _forget_outcome(given)
    reports: list[Report] = []
    signals = Signals()
    try:
        store = open_or_make_ledger(given.one("ledger"), None if busy is None else busy / SECOND)
        for_all = Pokes(given, store, declared, order, signals, teller, reports)
        code, why = for_all.work_owed() if not given.names_a_run else for_all.work_named(adhoc)
    except DulyError as e:
        e.next_step = e.next_step or _next_step(given, e)
        _write_outcome(given, reports, _code_of(e), str(e))
        raise
    finally:
        signals.restore()
    if code == 0 and not reports and duplicate is not None:
        code = duplicate
    _write_outcome(given, reports, code, why)
    return code


# -- what was typed -----------------------------------------------------------------------------------------------------


def parse(argv: Sequence[str]) -> Given:
    """The arguments of exec, `JOB [flags] -- COMMAND…`. Raises `Misuse`. By hand: argparse would double the start."""
    end = _end_of_flags(argv)
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
        elif name == "adhoc" and not equals and (not words or words[0].startswith("-") or not names):
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
    if end == len(argv) or not argv[end + 1 :]:
        raise Misuse(
            "exec needs a command after --", next_step=line_with(["duly", "exec", *argv[:end]], "--", "./command")
        )
    return Given(names[0], list(argv[end + 1 :]), flags, ["duly", "exec", *argv])


def _end_of_flags(argv: Sequence[str]) -> int:
    return list(argv).index("--") if "--" in argv else len(argv)


def _did_you_mean(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*FLAGS, *OPTIONS], 1)
    return f"; did you mean --{close[0]}?" if close else ""


def declaration(given: Given) -> Declaration:
    """What the flags declare of the job. Raises `Misuse` or `ScheduleError`, naming the flag."""
    check_job_name(given.job)
    scope = given.one("scope")
    if scope is not None:
        check_scope(scope)
    schedule = schedule_given({name: given.flags.get(name, []) for name in FLAGS}, typed=given.typed)
    return Declaration(given.job, scope or "", schedule, policies(given), actor())


def policies(given: Given) -> dict[str, Value]:
    """The policies that the flags name, as columns of the ledger; what is not named is left out, and keeps its value."""
    found: dict[str, Value] = {}
    if (catch_up := given.one("catch-up")) is not None:
        from duly.schedule.catch_up import parse_catch_up

        found["catch_up"] = str(_named("catch-up", catch_up, parse_catch_up))
    if (effect := given.one("effect")) is not None:
        found["contract"] = effect
    remembers = given.one("remembers")
    if (effect == "idempotent") != (remembers is not None):
        raise Misuse("--remembers: an idempotent effect, and no other, says how long its destination remembers")
    if effect is not None:
        if effect not in ("transactional", "idempotent", "external"):
            raise Misuse(f"--effect: {effect!r} is none of transactional, idempotent, external")
        found["remembers"] = None if remembers in (None, "forever") else given.duration("remembers")
    if (clean := given.one("clean-exits")) is not None:
        found["clean_exits"] = _exit_codes(clean)
    if (retries := given.number("retries")) is not None:
        found["retries"] = retries
    for name in ("timeout", "lease", "grace"):
        if (micros := given.duration(name)) is not None:
            found[name] = micros
    for name in ("overlap", "ordered"):
        if (answer := given.one(name)) is not None:
            found[name] = int(_named(name, answer, _yes_or_no))
    if (owner := given.one("owner")) is not None:
        found["owner"] = owner
    check_policies(found)
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


def _next_step(given: Given, error: DulyError) -> str | None:
    """The line to type, where exec knows it better than the error does."""
    if isinstance(error, (UnknownJob, NoSchedule)):
        return line_with(given.typed, "--period", "daily", "--zone", host_zone())
    if isinstance(error, ScheduleChanged):
        flags = [word for name in FLAGS for value in given.flags.get(name, []) for word in (f"--{name}", value)]
        return line_with(["duly", "jobs", "apply", given.job, *flags], "--reason", "why it changes")
    return None


def _order(given: Given) -> Order:
    output = None
    if (final := given.one("output")) is not None:
        from duly.work.output import Output

        output = Output(final, may_replace=given.has("replace"))
    elif given.has("replace"):
        raise Misuse("--replace goes with --output")
    settle = given.duration("settle")
    return Order(
        argv=given.argv,
        environment=_environment(given),
        trigger="person" if os.isatty(2) else "exec",
        settle_seconds=600.0 if settle is None else settle / SECOND,
        retry_in_place=not given.has("no-retry"),
        only_one=given.has("one"),
        chronic=given.has("chronic"),
        output=output,
    )


def _environment(given: Given) -> dict[str, str]:
    # Those of an exec around this one are about another run.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DULY_OUTCOME_FILE", "DULY_OUTPUT")
    }
    if (path := given.one("outcome-file")) is not None:
        environment["DULY_OUTCOME_FILE"] = os.path.abspath(path)
    return environment


def _adhoc(given: Given) -> str:
    """The id of the run outside the schedule that is asked for; empty where none is."""
    if not given.has("adhoc"):
        return ""
    if given.has("window"):
        raise Misuse("--window names a run of the schedule, --adhoc one outside it; leave one out")
    return check_adhoc(given.one("adhoc") or uuid_text(new_attempt_id()))


# -- poking -------------------------------------------------------------------------------------------------------------


@record
class Pokes:
    """A poke of the line that is meant, or of each line of a job with scopes when none is named."""

    given: Given
    store: Store
    declared: Declaration
    order: Order
    signals: Signals
    teller: Teller
    reports: list[Report]

    def work_owed(self) -> tuple[int, str]:
        """Work what is owed; answers exec's code and the reason in a few words."""
        standings: list[tuple[int, str]] = []
        for declared in self._lines():
            poke = self._poke(declared)
            standing = poke.work_owed()
            self.reports.extend(poke.reports.values())
            if standing is not None:
                code, why = code_of_standing(standing)
                standings.append((code, why))
                self.teller.standing(standing, self.store.read(key_of(standing.id)), code, why)
            if self.signals.end_is_wanted() or (self.order.only_one and self.reports):
                break
        if not self.reports and not standings:
            if self.signals.asked_to_end:
                return 128 + self.signals.asked_to_end, f"signal {self.signals.asked_to_end}"
            self.teller.nothing_owed(self.given.job)
        return code_of_poke(self.reports, standings)

    def work_named(self, adhoc: str) -> tuple[int, str]:
        """Work the run that `--window` or `--adhoc` names."""
        answers: list[tuple[int, str]] = []
        for declared in self._lines():
            answers += self._work_named(declared, adhoc)
            if self.signals.end_is_wanted():
                break
        return code_of_poke(self.reports, answers)

    def _work_named(self, declared: Declaration, adhoc: str) -> list[tuple[int, str]]:
        """Work it; answers why it was not."""
        from duly.ledger.named import peek_adhoc, peek_window, take_adhoc, take_window
        from duly.ledger.records import Claimer

        poke = self._poke(declared)
        onlooker = Claimer(b"", "", self.order.trigger)
        try:
            if (window := self.given.one("window")) is not None:
                glance = peek_window(declared, window, onlooker)
                answer = poke.work_named(glance, lambda claimer: take_window(declared, window, claimer))
            else:
                if not self.given.one("adhoc"):
                    _say(f"{declared.job} adhoc-{adhoc}; a retry passes --adhoc {adhoc} back")
                glance = peek_adhoc(declared, adhoc, onlooker)
                answer = poke.work_named(glance, lambda claimer: take_adhoc(declared, adhoc, claimer))
        except (RunSkipped, RunFailed, OutcomeUnknown) as e:  # about this run; another scope's may well be free
            code, why = _code_of(e), str(e)
            self.teller.refused(e, code)
            return [(code, why)]
        self.reports.extend(poke.reports.values())
        return [] if answer is None else [self.teller.answered(declared, answer)]

    def _poke(self, declared: Declaration) -> Poke:
        return Poke(self.store, declared, self.order, self.signals, self.teller.tell)

    def _lines(self) -> list[Declaration]:
        """The line that is meant; without --scope each of the job's roster, in turn."""
        roster = [] if self.declared.scope else self.store.read(scopes_of(self.declared.job))
        if not any(roster):
            return [self.declared]
        if self.given.has("adhoc") and "" not in roster:
            raise Misuse(
                f"{self.declared.job} has scopes, and a run outside its schedule belongs to one of them",
                next_step=line_with(self.given.typed, "--scope", roster[0]),
            )
        return [replace(self.declared, scope=scope) for scope in roster]


# -- codes --------------------------------------------------------------------------------------------------------------


def code_of_poke(reports: Collection[Report], others: Collection[tuple[int, str]]) -> tuple[int, str]:
    """exec's code, with the reason in a few words: the first that is not 0, of the runs worked, then of those that were not."""
    for report in reports:
        if report.code:
            return report.code, report.cause
    for code, why in others:
        if code:
            return code, why
    if reports:
        return DONE, "completed"
    return next(iter(others), (0, "nothing owed"))


def code_of_standing(standing: Run) -> tuple[int, str]:
    """The code of a run that was not worked, and why it was not."""
    match standing.state:
        case states.UNKNOWN:
            return UNKNOWN, "outcome unknown"
        case states.FAILED if standing.retry_at is None:
            return WAITS_FOR_A_PERSON, "failed, waits for a person"
        case states.FAILED:
            return TRY_AGAIN, "failed, its retry time has not come"
    return TRY_AGAIN, "another attempt holds it"


def _code_of(error: DulyError) -> int:
    """exec's code of an error: an unreachable ledger is worth another try by whatever called."""
    if isinstance(error, RunSkipped):
        return 0
    if isinstance(error, NoLedger):  # its tables are made by a person, once
        return CONFIGURATION
    if isinstance(error, LedgerUnavailable) and not isinstance(
        error, (LedgerUnwritable, LedgerCorrupt, LedgerForbidden)
    ):
        return TRY_AGAIN
    if isinstance(error, NotAllowed):
        return USAGE
    return code_of(error)


def _forget_outcome(given: Given) -> None:
    """Remove what an earlier call wrote: if this one is killed, that must not be taken for its outcome."""
    if (path := given.one("outcome-file")) is None:
        return
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise Misuse(f"--outcome-file: there is no folder {os.path.dirname(path)}")
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as e:
        raise Misuse(f"--outcome-file: {path} cannot be written: {e.strerror}") from e


def _write_outcome(given: Given, reports: Collection[Report], code: int, why: str) -> None:
    """The outcome as one JSON object, for callers who must tell duly's own codes from a child's."""
    if (path := given.one("outcome-file")) is None:
        return
    import json

    runs = [
        {"run": str(r.key), "attempt": r.number, "code": r.code, "state": r.state, "cause": r.cause} for r in reports
    ]
    outcome = {"schema": "duly.outcome.v1", "job": given.job, "code": code, "reason": why, "runs": runs}
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "x", encoding="utf-8") as f:  # "x": never through a link that somebody laid there
            json.dump(outcome, f)
            f.write("\n")
        os.replace(temporary, path)
    except OSError as e:  # the code tells the most of it
        _say(f"--outcome-file: {path} cannot be written: {e.strerror}")


# -- talk ---------------------------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    say(f"duly: {text}")


def _try(command: str) -> None:
    say(f"  try: {command}")


class Teller:
    """What is said on stderr: nothing when all is well, unless on a terminal or asked to (cron mails what is said)."""

    def __init__(self, *, loud: bool, quiet: bool, typed: Sequence[str]) -> None:
        self._loud = loud and not quiet
        self._quiet = quiet
        self._typed = typed

    def _try(self, step: str) -> None:
        """One step to take, in the ledger that was meant."""
        _try(in_same_ledger(step, self._typed))

    def tell(self, what: Briefing | Report) -> None:
        """Say that an attempt starts, or how it ended."""
        if isinstance(what, Report):
            self._ended(what)
        elif self._loud:
            zone = f" [{what.key.zone}]" if what.key.zone else ""
            _say(f"{words_of(what.key)}{zone}  attempt {what.claim.number}")

    def _ended(self, report: Report) -> None:
        if report.state == states.COMPLETED:
            if self._loud:
                _say(f"completed in {_took(report.took)}")
            return
        again = (
            ""
            if report.retry_in is None
            else f"; may be retried in {duration_text(report.retry_in // SECOND * SECOND)}"
        )
        _say(f"{words_of(report.key)}: {_state_in_words(report)} ({report.cause}){again}")
        if report.state == states.UNKNOWN:
            self._try(f"duly resolve {words_of(report.key)}")
        elif report.state == states.FAILED and report.retry_in is None:
            self._try(f"duly retry {words_of(report.key)}")

    def nothing_owed(self, job: str) -> None:
        if self._loud:
            _say(f"{job}: nothing owed")

    def standing(self, standing: Run, key: RunKey, code: int, why: str) -> None:
        """Say why the newest run was not worked."""
        if self._quiet and code == TRY_AGAIN:
            return
        since = (
            "" if standing.started_at is None else f", attempt {standing.fence} of {instant_text(standing.started_at)}"
        )
        _say(f"{words_of(key)}: nothing was run: {why}{since}")
        verb = {UNKNOWN: "resolve", WAITS_FOR_A_PERSON: "retry"}.get(code, "explain")
        self._try(f"duly {verb} {words_of(key)}")

    def refused(self, error: DulyError, code: int) -> None:
        """Say why a named run may not be worked."""
        if self._loud or code:
            _say(str(error))
            if error.next_step:
                self._try(error.next_step)

    def answered(self, declared: Declaration, answer: AlreadyCompleted | Busy | NotDue) -> tuple[int, str]:
        """The code and reason of a named run that was not worked."""
        from duly.ledger import records

        if isinstance(answer, records.AlreadyCompleted):
            code, why = 0, f"already completed at {instant_text(answer.settled_at)}"
        elif isinstance(answer, records.Busy):
            code, why = TRY_AGAIN, f"another attempt holds it until {instant_text(answer.until)}"
        else:
            code, why = TRY_AGAIN, f"not due before {instant_text(answer.due)}"
        if self._loud or (code and not self._quiet):
            _say(f"{declared.job}: nothing was run: {why}")
        return code, why


def _state_in_words(report: Report) -> str:
    words = {states.UNKNOWN: "outcome unknown", states.OPEN: "nothing was run", states.RUNNING: "taken over"}
    return words.get(report.state, report.state)


def _took(micros: int) -> str:
    return duration_text(micros // SECOND * SECOND) if micros >= SECOND else duration_text(micros)


def usage() -> str:
    """The help of exec, from the tables of its flags."""
    lines = [
        "usage: duly exec JOB [flags] -- COMMAND…",
        "",
        HELP,
        "A trigger is a poke: exec asks the ledger what is owed, and works it, oldest first, each run at most once.",
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
