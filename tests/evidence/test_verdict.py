"""Verdicts and answers as pure values: what is said of a window in each state, on time and late."""

from __future__ import annotations

import pytest

from duly.evidence import verdict
from duly.evidence.check import CANNOT_TELL, COMPLETE, NOT_COMPLETE, NOT_YET, answer_of, worst
from duly.evidence.next import Range, clock_note, parse_range
from duly.evidence.verdict import Verdict, judge_row
from duly.ledger import states
from duly.ledger.policy import grace_of
from duly.ledger.records import Job, Run
from duly.ledger.register import DEFAULTS
from duly.records import replace
from duly.schedule.spec import cron, daily, every
from duly.times import DAY, HOUR, MINUTE, parse_instant

DUE = parse_instant("2026-11-20T00:00:00Z")
JOB = Job(1, "close-day", "close-day", **{**DEFAULTS, "version": 1, "retired_at": None, "edition": 1})  # type: ignore[arg-type]  # by column
RUN = Run(
    *(1, 2 * (DUE - DAY) // 1_000_000, 1, states.OPEN, 0, DUE, DUE - DAY, DUE, "exact", 1, DUE, None, 0, None),
    *(None, None, None, None, None, None, None, None, None, None, None, None, None),
)


def run(state: str, **changes: object) -> Run:
    attempt = {"fence": 1, "attempt_id": b"1" * 16, "started_at": DUE, "lease_until": DUE + HOUR, "owner": "host"}
    return replace(RUN, **{"state": state, "contract": "external", **attempt, **changes})


@pytest.mark.parametrize(
    ("row", "holder_gone", "word", "late_word", "needs", "needs_when_late"),
    [
        (RUN, False, verdict.DUE, verdict.LATE, False, True),
        (run(states.RUNNING), False, verdict.RUNNING, verdict.RUNNING, False, False),
        (run(states.RUNNING), True, verdict.UNKNOWN, verdict.UNKNOWN, True, True),
        (run(states.UNKNOWN), False, verdict.UNKNOWN, verdict.UNKNOWN, True, True),
        (run(states.FAILED), False, verdict.FAILED, verdict.FAILED, True, True),
        (run(states.FAILED, retry_at=DUE + MINUTE), False, verdict.RETRYING, verdict.RETRYING, False, True),
        (run(states.COMPLETED), False, verdict.COMPLETE, verdict.COMPLETE, False, False),
        (run(states.SKIPPED), False, verdict.SKIPPED, verdict.SKIPPED, False, False),
        (run(states.REPLACED), False, verdict.COMPLETE, verdict.COMPLETE, False, False),
    ],
    ids=lambda value: value.state if isinstance(value, Run) else str(value),
)
def test_each_state_has_its_word_and_lateness_its_own(
    row: Run, holder_gone: bool, word: str, late_word: str, needs: bool, needs_when_late: bool
) -> None:
    on_time = judge_row(JOB, row, DUE + HOUR, holder_gone=holder_gone)
    late = judge_row(JOB, row, DUE + 3 * HOUR, holder_gone=holder_gone)

    assert (on_time.word, on_time.needs_a_person) == (word, needs)
    assert (late.word, late.needs_a_person) == (late_word, needs_when_late)


def test_every_state_of_the_ledger_is_judged() -> None:
    words = {judge_row(JOB, run(state), DUE, holder_gone=False).word for state in states.STATES}

    assert words <= set(verdict.WORDS)


def test_a_vanished_attempt_is_judged_by_its_contract() -> None:
    row = run(states.RUNNING, contract="transactional")

    assert judge_row(JOB, row, DUE + MINUTE, holder_gone=True).word == verdict.RETRYING


@pytest.mark.parametrize(
    ("period", "grace"), [(10 * MINUTE, MINUTE), (HOUR, 6 * MINUTE), (DAY, HOUR), (31 * DAY, HOUR)]
)
def test_grace_is_a_tenth_of_the_period_and_at_most_an_hour(period: int, grace: int) -> None:
    assert grace_of(JOB, (0, period)) == grace
    assert grace_of(replace(JOB, grace=5), (0, period)) == 5


@pytest.mark.parametrize(
    ("word", "on_time", "late"),
    [
        (verdict.COMPLETE, COMPLETE, COMPLETE),
        (verdict.SKIPPED, COMPLETE, COMPLETE),
        (verdict.RUNNING, NOT_YET, NOT_COMPLETE),
        (verdict.RETRYING, NOT_YET, NOT_COMPLETE),
        (verdict.DUE, NOT_YET, NOT_COMPLETE),
        (verdict.COMING, NOT_YET, NOT_COMPLETE),
        (verdict.UNKNOWN, NOT_COMPLETE, NOT_COMPLETE),
        (verdict.FAILED, NOT_COMPLETE, NOT_COMPLETE),
        (verdict.LATE, NOT_COMPLETE, NOT_COMPLETE),
        (verdict.MISSING, NOT_COMPLETE, NOT_COMPLETE),
        (verdict.PRUNED, CANNOT_TELL, CANNOT_TELL),
        (verdict.NOT_OWED, CANNOT_TELL, CANNOT_TELL),
    ],
)
def test_every_word_is_an_answer(word: str, on_time: int, late: int) -> None:
    assert answer_of(Verdict(word)) == on_time
    assert answer_of(Verdict(word, late=True)) == late


def test_the_worst_answer_wins() -> None:
    assert worst([COMPLETE, NOT_YET, CANNOT_TELL, NOT_COMPLETE]) == NOT_COMPLETE
    assert worst([COMPLETE, NOT_YET, CANNOT_TELL]) == CANNOT_TELL
    assert worst([COMPLETE, NOT_YET]) == NOT_YET
    assert worst([COMPLETE]) == COMPLETE


NOW = parse_instant("2026-11-20T08:30:00Z")


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2026-11..2026-12", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("2026-W47..", "2026-11-16T00:00:00Z", None),
        ("..2026-11-20T14", None, "2026-11-20T14:00:00Z"),
        ("-1d..+1h30m", "2026-11-19T09:30:00Z", "2026-11-20T11:00:00Z"),
        ("2026-11-20T08:00:00Z..", "2026-11-20T09:00:00Z", None),
        ("..", None, None),
    ],
)
def test_a_range_is_read_in_the_wall_clock_of_the_zone(text: str, begin: str | None, end: str | None) -> None:
    def civil(clock: str | None) -> int | None:
        return None if clock is None else parse_instant(clock) // 1_000_000

    assert parse_range(text, "Europe/Paris", NOW) == Range(civil(begin), civil(end))


def test_most_nights_need_no_note() -> None:
    for schedule in (daily("Europe/Paris", at="02:30"), cron("30 2 * * *", zone="Europe/Paris"), every("1h")):
        assert clock_note(schedule, next(schedule.after(NOW))) == ""
