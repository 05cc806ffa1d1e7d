"""Backfills in words: what one leaves out, how far it is, the line to type that works it."""

from __future__ import annotations

from duly.evidence import verdict
from duly.ledger import backfill_states as backfills
from duly.schedule.keys import nominal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.backfill import Progress
    from duly.ledger.backfill import Plan
    from duly.ledger.records import Known

# The sign of a state, and the word of a window that has the same colour.
SIGNS = {
    backfills.ACTIVE: ("▶", verdict.RUNNING),
    backfills.PAUSED: ("○", verdict.DUE),
    backfills.STOPPED: ("✗", verdict.FAILED),
    backfills.CANCELLED: ("»", verdict.SKIPPED),
    backfills.DONE: ("✓", verdict.COMPLETE),
}


def line_of(known: Known) -> str:
    """The name of a line, as `acme/invoice`."""
    scope = "" if known.line is None else known.line.scope
    return f"{scope}/{known.job.name}" if scope else known.job.name


def window_text(known: Known, nominal: int) -> str:
    """The name of a window of the line's series."""
    assert known.series is not None
    return nominal_text(known.series.grain, nominal, known.series.zone)


def left_out(planned: Plan) -> str:
    """What of a range is not worked, as `; 3 are not due yet and are left out`. Pure."""
    future = f"; {planned.future} are not due yet and are left out" if planned.future else ""
    ended = f"; {planned.not_owed} come due after the line ended, and are not owed" if planned.not_owed else ""
    before = f"; {planned.before.words(planned.known)}" if planned.before is not None else ""
    return future + ended + before


def why_one_at_a_time(planned: Plan) -> str:
    """Why windows are worked one at a time, whatever was asked for; empty where they are not. Pure."""
    if planned.at_a_time >= planned.asked.concurrency:
        return ""
    why = "runs of this job may not overlap" if not planned.known.job.overlap else "this job is ordered"
    return f"{why}: so they are worked one at a time, whatever the concurrency"


def works(found: Progress) -> str:
    """The command that works it, as a person would type it, up to what it runs."""
    from shlex import join

    scope = ["--scope", found.owner.scope] if found.owner.scope else []
    return join(["duly", "exec", found.owner.job, *scope, "--backfill"])


def numbers(found: Progress) -> str:
    """As `212/365  4 running  1 failed`. Pure."""
    return f"{found.done}/{found.total}{others(found)}"


def others(found: Progress) -> str:
    """As `  4 running  1 failed`. Pure."""
    counted = {
        "running": found.running,
        "failed": found.failed,
        "unknown": found.unknown,
        "to be tried again": found.waiting,
    }
    return "".join(f"  {number} {word}" for word, number in counted.items() if number)
