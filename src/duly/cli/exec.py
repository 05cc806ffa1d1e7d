"""duly exec JOB -- COMMAND: what cron, a timer, a Pod or a person calls. A trigger is a poke: what is owed is worked.

What was typed is understood by `exec_flags`, what is said is said by `exec_talk`; here are the pokes, and the exit code.
"""

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
from duly.cli.complain import say
from duly.cli.exec_flags import (
    adhoc_given,
    backfill_given,
    beside,
    check_log_form,
    declaration,
    end_of_flags,
    log_form,
    order_given,
    parse,
)
from duly.cli.exec_talk import Teller
from duly.cli.ledgers import configured, open_or_make_ledger
from duly.errors import (
    AGAIN,
    DECIDED,
    ConfigurationInvalid,
    DulyError,
    LedgerUnavailable,
    LedgerWentBack,
    Misuse,
    NoLedger,
    NoSchedule,
    NotAllowed,
    OutcomeUnknown,
    Retired,
    RunFailed,
    RunPaused,
    RunSkipped,
    ScheduleChanged,
    UnknownJob,
    meaning_of,
)
from duly.ledger import states
from duly.ledger.records import pause_words
from duly.ledger.scopes import scopes_of, scopes_to_work
from duly.records import record, replace
from duly.schedule.written import FLAGS
from duly.times import SECOND, instant_text
from duly.work.child import Signals
from duly.work.poke import Poke
from duly.work.schedule_flags import host_zone, line_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from duly.cli.exec_flags import Given
    from duly.ledger.records import AlreadyCompleted, Busy, NotDue, Run
    from duly.ledger.register import Declaration
    from duly.store.protocol import Store
    from duly.work.configuration import Layers
    from duly.work.poke import Order, Report
    from duly.work.probe import CommandProbe

HELP = "wrap a command: what cron, systemd and Kubernetes call"


def run(argv: Sequence[str]) -> int:
    """Run `duly exec` with these arguments; answer its exit code."""
    _open_closed_descriptors()
    typed = argv[: end_of_flags(argv)]
    if not argv or "-h" in typed or "--help" in typed:
        from duly.cli.exec_help import usage

        print(usage())
        return DONE if argv else USAGE
    quiet = "-q" in typed or "--quiet" in typed
    teller = Teller(loud=_is_loud(typed), quiet=quiet, typed=typed, form=log_form(typed))
    try:
        return _run(parse(argv), teller)
    except DulyError as e:
        teller.complain(e, ["duly", "exec", *argv])
        return _code_of(e)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as e:
        from duly.redaction import traceback_of

        say(traceback_of(e))
        say("duly: this is a bug of duly's; what the ledger holds is told by:\n  try: duly status")
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
    if (config := given.one("config")) is not None:
        os.environ["DULY_CONFIG"] = os.path.abspath(config)
    layers = configured()
    entry = ledger = None
    if layers is not None:
        ledger = layers.ledger()
        entry = layers.job(given.job) if given.argv else layers.job_or_raise(given.job)
    check_log_form(given)
    declared = declaration(given, entry)
    given = beside(given, entry)
    order = order_given(given, () if ledger is None else ledger.hidden)
    if order.keep_output:
        from duly.cli.secrets import redaction

        order = replace(order, redaction=redaction(layers, given.one("ledger")))
    backfill = backfill_given(given)
    firing = None
    if given.has("trigger"):
        from duly.cli.exec_trigger import firing_given
        from duly.trigger import trigger_words

        firing = firing_given(given, os.environ)
        order = replace(order, trigger=trigger_words(firing))
    adhoc = adhoc_given(given)
    duplicate = given.number("exit-duplicate", at_most=255)
    busy = given.duration("busy-timeout")
    _forget_outcome(given)
    reports: list[Report] = []
    signals = Signals()
    try:
        store = open_or_make_ledger(given.one("ledger"), None if busy is None else busy / SECOND, layers)
        if firing is not None:
            from duly.cli.exec_trigger import named_by

            given = named_by(firing, given, declared, store)
            adhoc = adhoc_given(given)
        probe = None if entry is None else entry.probe(order.environment)
        for_all = Pokes(given, store, declared, order, signals, teller, reports, probe)
        if given.has("backfill"):
            from duly.cli.exec_backfill import work_backfill

            code, why = work_backfill(for_all, backfill)
        else:
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
    sent = any(report.sent for report in reports)
    if layers is not None and not signals.asked_to_end and _is_time_to_look(layers, store):
        from duly.cli.exec_look import look_and_deliver

        look_and_deliver(store, layers, everything=sent)
    elif sent:
        from duly.cli.exec_deliver import deliver

        deliver(store)
    return code


def _is_time_to_look(layers: Layers, store: Store) -> bool:
    """Whether somebody wants to be told of alerts, and nobody has looked for a while. One read of one row."""
    try:
        every = layers.alerts_every()
        if every is None:
            return False
        from duly.ledger.looks import is_time_to_look

        return store.glance(is_time_to_look(every))
    except ConfigurationInvalid:  # whoever looks says so
        return True
    except DulyError:
        return False


def _forget_outcome(given: Given) -> None:
    if (path := given.one("outcome-file")) is not None:
        from duly.cli.exec_outcome import forget_outcome

        forget_outcome(path)


def _write_outcome(given: Given, reports: Collection[Report], code: int, why: str) -> None:
    if (path := given.one("outcome-file")) is not None:
        from duly.cli.exec_outcome import write_outcome

        write_outcome(path, given.job, reports, code, why)


def _next_step(given: Given, error: DulyError) -> str | None:
    """The line to type, where exec knows it better than the error does."""
    if isinstance(error, (UnknownJob, NoSchedule)):
        return line_with(given.typed, "--period", "daily", "--zone", host_zone())
    if isinstance(error, ScheduleChanged):
        flags = [word for name in FLAGS for value in given.flags.get(name, []) for word in (f"--{name}", value)]
        return line_with(["duly", "jobs", "plan", given.job, *flags])
    return None


# -- poking ------------------------------------------------------------------------------------------------------------


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
    probe: CommandProbe | None

    def ask_probe(self, declared: Declaration) -> None:
        """Ask about the runs of a line whose outcome is unknown, where the job has a probe."""
        if self.probe is not None:
            from duly.work.probe import ask_about_all

            for probed in ask_about_all(
                self.store, declared.job, declared.scope, self.probe, is_over=self.signals.end_is_wanted
            ):
                self.teller.probed(probed)

    def work_owed(self) -> tuple[int, str]:
        """Work what is owed; answers exec's code and the reason in a few words."""
        standings: list[tuple[int, str]] = []
        paused = ""
        lines = self.lines()
        ended = None if lines else self._ended_at()
        for declared in lines:
            self.ask_probe(declared)
            poke = self.poke(declared)
            standing = poke.work_owed()
            self.reports.extend(poke.reports.values())
            ended = poke.ended_at
            if poke.paused is not None:
                paused = pause_words(poke.paused)
                self.teller.paused(declared, paused)
            if standing is not None:
                code, why = code_of_standing(standing)
                standings.append((code, why))
                from duly.ledger.address import key_of

                self.teller.standing(standing, self.store.read(key_of(standing.id)), code, why)
            if self.signals.end_is_wanted() or (self.order.only_one and self.reports):
                break
        if not self.reports and not standings:
            if self.signals.asked_to_end:
                return 128 + self.signals.asked_to_end, f"signal {self.signals.asked_to_end}"
            if paused:
                return DONE, paused
            self.teller.nothing_owed(self.given.job, ended)
        return code_of_poke(self.reports, standings)

    def work_named(self, adhoc: str) -> tuple[int, str]:
        """Work the run that `--window` or `--adhoc` names."""
        answers: list[tuple[int, str]] = []
        for declared in self.lines():
            answers += self._work_named(declared, adhoc)
            if self.signals.end_is_wanted():
                break
        return code_of_poke(self.reports, answers)

    def _work_named(self, declared: Declaration, adhoc: str) -> list[tuple[int, str]]:
        """Work it; answers why it was not."""
        from duly.ledger.named import peek_adhoc, peek_window, take_adhoc, take_window
        from duly.work.attempt import onlooker

        self.ask_probe(declared)
        poke = self.poke(declared)
        looking = onlooker(self.order.trigger)
        try:
            if (window := self.given.one("window")) is not None:
                glance = peek_window(declared, window, looking)
                answer = poke.work_named(glance, lambda claimer: take_window(declared, window, claimer))
            else:
                if not self.given.one("adhoc"):
                    self.teller.adhoc(declared.job, adhoc)
                glance = peek_adhoc(declared, adhoc, looking)
                answer = poke.work_named(glance, lambda claimer: take_adhoc(declared, adhoc, claimer))
        except (
            RunPaused,
            RunSkipped,
            RunFailed,
            OutcomeUnknown,
            Retired,
        ) as e:  # about this run; another scope's may well be free
            code, why = _code_of(e), str(e)
            self.teller.refused(e, code)
            return [(code, why)]
        self.reports.extend(poke.reports.values())
        if answer is None:
            return []
        code, why = code_of_answer(answer)
        self.teller.not_worked(declared.job, code, why)
        return [(code, why)]

    def _ended_at(self) -> int | None:
        """When the last line of a job ended, of which nothing is owed any more."""
        from duly.ledger.roster import lines_of

        return max(
            (line.ends for line in self.store.read(lines_of(self.given.job)) if line.ends is not None), default=None
        )

    def poke(self, declared: Declaration) -> Poke:
        return Poke(self.store, declared, self.order, self.signals, self.teller.tell)

    def lines(self) -> list[Declaration]:
        """The line that is meant; without --scope each of the job's roster, in turn."""
        if self.declared.scope:
            return [self.declared]
        if self.declared.scopes:  # a file says which there are
            roster = list(self.declared.scopes)
        elif self.given.names_a_run:  # of a retired scope too: it is told that it is one
            roster = self.store.read(scopes_of(self.declared.job)) or [""]
        else:
            roster = self.store.read(scopes_to_work(self.declared.job))
        if self.given.has("adhoc") and "" not in roster:
            raise Misuse(
                f"{self.declared.job} has scopes, and a run outside its schedule belongs to one of them",
                next_step=line_with(self.given.typed, "--scope", roster[0]),
            )
        return [replace(self.declared, scope=scope) for scope in roster]


# -- codes -------------------------------------------------------------------------------------------------------------


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
        case states.COMPLETED:  # the one before it, of an ordered job
            return TRY_AGAIN, "its messages are not delivered yet"
    return TRY_AGAIN, "another attempt holds it"


def code_of_answer(answer: AlreadyCompleted | Busy | NotDue) -> tuple[int, str]:
    """The code of a named run that was not worked, and why it was not."""
    from duly.ledger import records

    match answer:
        case records.AlreadyCompleted():
            return DONE, f"already completed at {instant_text(answer.settled_at)}"
        case records.Busy():
            return TRY_AGAIN, f"another attempt holds it until {instant_text(answer.until)}"
        case records.NotDue():
            return TRY_AGAIN, f"not due before {instant_text(answer.due)}"


def _code_of(error: DulyError) -> int:
    """exec's code of an error: an unreachable ledger is worth another try by whatever called."""
    if meaning_of(error) == DECIDED:
        return DONE
    if isinstance(error, NoLedger):  # its tables are made by a person, once
        return CONFIGURATION
    if isinstance(error, LedgerWentBack) or (isinstance(error, LedgerUnavailable) and meaning_of(error) == AGAIN):
        return TRY_AGAIN  # of one that went back the next process knows nothing, and asks anew
    if isinstance(error, NotAllowed):
        return USAGE
    return code_of(error)
