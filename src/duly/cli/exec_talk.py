"""What exec says on stderr: nothing when all is well, unless on a terminal or asked to (cron mails what is said)."""

from __future__ import annotations

from duly.cli.codes import TRY_AGAIN, UNKNOWN, WAITS_FOR_A_PERSON
from duly.cli.complain import in_same_ledger, say
from duly.ledger import states
from duly.ledger.named import words_of
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


class Teller:
    """Who says it. `loud` where it is said also that all is well, `quiet` where nothing but errors is."""

    def __init__(self, *, loud: bool, quiet: bool, typed: Sequence[str]) -> None:
        self._loud = loud and not quiet
        self._quiet = quiet
        self._typed = typed

    def _try(self, step: str) -> None:
        """One step to take, in the ledger that was meant."""
        say(f"  try: {in_same_ledger(step, self._typed)}")

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

    def adhoc(self, job: str, adhoc: str) -> None:
        """Say which id a run outside the schedule was given."""
        _say(f"{job} adhoc-{adhoc}; a retry passes --adhoc {adhoc} back")

    def nothing_owed(self, job: str, ended: int | None) -> None:
        """Say that there was nothing to do; `ended` where the line was retired."""
        if self._loud:
            _say(f"{job}: nothing owed" + ("" if ended is None else f"; it was retired at {instant_text(ended)}"))

    def paused(self, line: Declaration, words: str) -> None:
        """Say that nothing of a line is started, and since when it is so."""
        if self._loud:
            scope = f" of {line.scope}" if line.scope else ""
            _say(f"{line.job}{scope}: {words}; nothing was run")

    def backfill(self, job: str, said: str, step: str = "") -> None:
        """Say why no window of a backfill was worked."""
        if self._loud or step:
            _say(f"{job}: {said}")
            if step:
                self._try(step)

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

    def not_worked(self, job: str, code: int, why: str) -> None:
        """Say why a named run was not worked."""
        if self._loud or (code and not self._quiet):
            _say(f"{job}: nothing was run: {why}")


def _say(text: str) -> None:
    say(f"duly: {text}")


def _state_in_words(report: Report) -> str:
    words = {states.UNKNOWN: "outcome unknown", states.OPEN: "nothing was run", states.RUNNING: "taken over"}
    return words.get(report.state, report.state)


def _took(micros: int) -> str:
    return duration_text(micros // SECOND * SECOND) if micros >= SECOND else duration_text(micros)
