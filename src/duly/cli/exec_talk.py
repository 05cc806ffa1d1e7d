"""What exec says on stderr: nothing when all is well, unless on a terminal or asked to (cron mails what is said)."""

from __future__ import annotations

from duly.cli.codes import TRY_AGAIN, UNKNOWN, WAITS_FOR_A_PERSON
from duly.cli.complain import complain, in_same_ledger, said_of, say
from duly.ledger import states
from duly.times import SECOND, duration_text, instant_text
from duly.work.poke import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.errors import DulyError
    from duly.ledger.records import Run
    from duly.ledger.register import Declaration
    from duly.schedule.keys import RunKey
    from duly.work.command import Briefing
    from duly.work.probe import Probed


class Teller:
    """Who says it. `loud` where it is said also that all is well, `quiet` where nothing but errors is.

    `form`: text is for people. As json or logfmt each attempt has one line when it has ended, whatever else is said.
    """

    def __init__(self, *, loud: bool, quiet: bool, typed: Sequence[str], form: str = "text") -> None:
        self._loud = loud and not quiet
        self._quiet = quiet
        self._typed = typed
        self._form = form

    def _say(self, text: str, run: str | None = None) -> None:
        if self._form == "text":
            say(f"duly: {text}")
            return
        from duly.cli.exec_log import note

        note(self._form, text, run=run)

    def _try(self, line: str) -> None:
        """One step to take, in the ledger that was meant."""
        if self._form == "text":
            say(f"  try: {in_same_ledger(line, self._typed)}")

    def complain(self, error: DulyError, typed: Sequence[str]) -> None:
        """Say what is wrong, and what to type next."""
        if self._form == "text":
            complain(error, typed)
            return
        from duly.cli.exec_log import note

        text, then = said_of(error, typed)
        note(self._form, text, level="error", next_step=then)

    def tell(self, what: Briefing | Report) -> None:
        """Say that an attempt starts, or how it ended."""
        if isinstance(what, Report):
            if self._form != "text":
                from duly.cli.exec_log import attempt

                attempt(self._form, what)
                return
            self._ended(what)
        elif self._form != "text":
            return  # one line for each attempt, when it has ended
        elif self._loud:
            from duly.ledger.named import words_of

            zone = f" [{what.key.zone}]" if what.key.zone else ""
            self._say(f"{words_of(what.key)}{zone}  attempt {what.claim.number}")

    def _ended(self, report: Report) -> None:
        if report.state == states.COMPLETED:
            if self._loud:
                self._say(f"completed in {_took(report.took)}")
            return
        from duly.ledger.named import step, words_of

        again = (
            ""
            if report.retry_in is None
            else f"; may be retried in {duration_text(report.retry_in // SECOND * SECOND)}"
        )
        self._say(f"{words_of(report.key)}: {_state_in_words(report)} ({report.cause}){again}")
        if report.state == states.UNKNOWN:
            self._try(step("resolve", report.key))
        elif report.state == states.FAILED and report.retry_in is None:
            self._try(step("retry", report.key))

    def adhoc(self, job: str, adhoc: str) -> None:
        """Say which id a run outside the schedule was given."""
        self._say(f"{job} adhoc-{adhoc}; a retry passes --adhoc {adhoc} back")

    def nothing_owed(self, job: str, ended: int | None) -> None:
        """Say that there was nothing to do; `ended` where the line was retired."""
        if self._loud:
            self._say(f"{job}: nothing owed" + ("" if ended is None else f"; it was retired at {instant_text(ended)}"))

    def paused(self, line: Declaration, words: str) -> None:
        """Say that nothing of a line is started, and since when it is so."""
        if self._loud:
            scope = f" of {line.scope}" if line.scope else ""
            self._say(f"{line.job}{scope}: {words}; nothing was run")

    def backfill(self, job: str, said: str, then: str = "") -> None:
        """Say why no window of a backfill was worked."""
        if self._loud or then:
            self._say(f"{job}: {said}")
            if then:
                self._try(then)

    def probed(self, probed: Probed) -> None:
        """Say what a probe said of a run, and what has come of it."""
        if self._loud:
            self._say(f"{probed.run}: its probe says that {probed.said}; it is {probed.state}")

    def standing(self, standing: Run, key: RunKey, code: int, why: str) -> None:
        """Say why the newest run was not worked."""
        if self._quiet and code == TRY_AGAIN:
            return
        from duly.ledger.named import step, words_of

        since = (
            "" if standing.started_at is None else f", attempt {standing.fence} of {instant_text(standing.started_at)}"
        )
        self._say(f"{words_of(key)}: nothing was run: {why}{since}", str(key))
        verb = {UNKNOWN: "resolve", WAITS_FOR_A_PERSON: "retry"}.get(code, "explain")
        self._try(step(verb, key))

    def refused(self, error: DulyError, code: int) -> None:
        """Say why a named run may not be worked."""
        if self._loud or code:
            self._say(str(error))
            if error.next_step:
                self._try(error.next_step)

    def not_worked(self, job: str, code: int, why: str) -> None:
        """Say why a named run was not worked."""
        if self._loud or (code and not self._quiet):
            self._say(f"{job}: nothing was run: {why}")


def _state_in_words(report: Report) -> str:
    words = {states.UNKNOWN: "outcome unknown", states.OPEN: "nothing was run", states.RUNNING: "taken over"}
    return words.get(report.state, report.state)


def _took(micros: int) -> str:
    return duration_text(micros // SECOND * SECOND) if micros >= SECOND else duration_text(micros)
