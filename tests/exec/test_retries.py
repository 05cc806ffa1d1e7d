"""Retries wait in place until the deadline; a time-out ends a whole pipeline, and is judged by contract."""

from __future__ import annotations

from itertools import pairwise

import pytest

from duly.times import parse_instant
from tests.exec.stage import DAILY, Stage, is_alive, state_of, until


def failing_until(stage: Stage, attempt: int, code: int = 10) -> list[str]:
    """A command that fails with 10 + its attempt's number, until an attempt that works."""
    return stage.effect(f'[ "$DULY_ATTEMPT" -ge {attempt} ] || exit $(({code} + DULY_ATTEMPT))')


def test_retries_wait_in_place_and_the_code_is_the_last_attempts(stage: Stage) -> None:
    running = stage.start("close", *DAILY, "--retries", "3", command=failing_until(stage, 3))

    said = stage.step_until_over(running, by="10s")

    assert said.code == 0
    assert len(stage.effects()) == 3
    assert stage.outcomes() == ["failed", "failed", "completed"]
    assert stage.state() == "completed"


def test_retries_that_are_used_up_answer_with_the_last_attempts_code(stage: Stage) -> None:
    running = stage.start("close", *DAILY, "--retries", "2", command=failing_until(stage, 9))

    said = stage.step_until_over(running, by="10s")

    assert said.code == 13
    assert len(stage.effects()) == 3
    assert stage.exec("close", command=stage.effect()).code == 79


def test_the_wait_doubles_from_a_minute_and_lies_between_half_of_it_and_the_whole(stage: Stage) -> None:
    running = stage.start("close", *DAILY, "--retries", "3", command=failing_until(stage, 4))
    stage.step_until_over(running, by="1s")

    started = [at // 1_000_000 for (at,) in stage.rows("select started_at from duly_attempt order by number")]
    waits = [after - before for before, after in pairwise(started)]
    assert 30 <= waits[0] <= 70  # and a few steps of the clock
    assert 60 <= waits[1] <= 130
    assert 120 <= waits[2] <= 250


def test_no_retry_leaves_it_to_whoever_calls(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--retries", "3", "--no-retry", command=failing_until(stage, 3))

    assert said.code == 11
    assert len(stage.effects()) == 1
    assert stage.exec("close", "--no-retry").code == 75


def test_retries_end_with_the_time_that_the_claim_has(stage: Stage) -> None:
    running = stage.start(
        "close", *DAILY, "--retries", "50", "--timeout", "2m", command=failing_until(stage, 99), stdin=None
    )

    said = stage.step_until_over(running, by="5s")

    assert 12 <= said.code <= 14
    assert len(stage.effects()) < 6
    assert stage.state() == "failed"


def test_without_a_time_out_retries_end_with_the_next_due_time(stage: Stage) -> None:
    running = stage.start("tick", "--every", "5m", "--retries", "50", command=failing_until(stage, 99))

    stage.step_until_over(running, by="5s")

    ((last,),) = stage.rows("select max(started_at) from duly_attempt")
    assert last < parse_instant("2026-11-29T12:05:30Z")  # and a few steps that the clock was ahead of exec
    assert len(stage.effects()) < 9


def test_a_retry_whose_time_was_slept_through_is_left_to_the_next_poke(stage: Stage) -> None:
    running = stage.start("tick", "--every", "1h", "--retries", "5", command=stage.effect("exit 4"))
    until(lambda: "failed" in stage.states().values(), "the first attempt has failed")

    stage.clock.advance("3h")  # as if the host had been suspended

    assert running.ended().code == 4
    assert len(stage.effects()) == 1


def test_a_retry_in_place_goes_on_with_the_next_owed_run_afterwards(stage: Stage) -> None:
    flags = (*DAILY, "--catch-up", "each", "--retries", "1")
    stage.exec("close", *flags, command=stage.effect())
    stage.clock.set("2026-12-01T12:00:00Z")

    running = stage.start("close", command=stage.effect('[ "$DULY_DATE" != 2026-11-29 ] || exit 4'))
    said = stage.step_until_over(running, by="10s")

    assert said.code == 4
    days = [key[6:16] for key in stage.effects()[1:]]
    assert days == ["2026-11-29", "2026-11-29", "2026-11-30"]


# -- time-outs ----------------------------------------------------------------------------------------------------------


def test_a_time_out_ends_the_child_with_term(stage: Stage) -> None:
    gate = stage.gate("child")
    command = stage.effect(gate.heeding("TERM", f"echo bye >> {stage.file('byes')}; exit 9"))
    running = stage.start("close", *DAILY, "--effect", "transactional", "--timeout", "5m", command=command)
    gate.arrived()

    stage.clock.advance("6m")
    said = running.ended()

    assert said.code == 124
    assert stage.effects("byes") == ["bye"]
    assert stage.state() == "failed"
    assert "timed out after 5m" in said.talk


def test_a_child_that_ignores_term_is_killed_after_a_while(stage: Stage) -> None:
    gate = stage.gate("child")
    command = stage.effect(f"trap '' TERM; {gate.shell}")
    running = stage.start("close", *DAILY, "--effect", "transactional", "--timeout", "5m", command=command)
    pid = gate.arrived()

    stage.clock.advance("6m")
    said = stage.step_until_over(running, by="1s")

    assert said.code == 124
    assert not is_alive(pid)


def test_a_time_out_reaches_a_whole_pipeline(stage: Stage) -> None:
    gate = stage.gate("left")
    other = stage.gate("right")
    pipeline = 'sh -c "$1" | sh -c "$2" | tail -f /dev/null'
    command = ["sh", "-c", pipeline, "pipeline", gate.shell, other.shell]
    running = stage.start("close", *DAILY, "--timeout", "5m", command=command)
    pids = gate.arrived(), other.arrived()

    stage.clock.advance("6m")

    assert running.ended().code == 80  # external: nobody knows
    until(lambda: not any(map(is_alive, pids)), "the pipeline is gone")


def test_what_outlives_a_timed_out_child_in_its_pipeline_is_killed_too(stage: Stage) -> None:
    gate = stage.gate("grandchild")
    stubborn = f"trap '' TERM; {gate.shell}"
    command = ["sh", "-c", 'sh -c "$1" & wait', "parent", stubborn]
    running = stage.start("close", *DAILY, "--effect", "transactional", "--timeout", "5m", command=command)
    pid = gate.arrived()

    stage.clock.advance("6m")
    said = stage.step_until_over(running, by="1s")

    assert said.code == 124
    until(lambda: not is_alive(pid), "the grandchild is gone")


def test_a_child_that_is_stopped_is_ended_by_its_time_out_all_the_same(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start(
        "close",
        *DAILY,
        "--effect",
        "transactional",
        "--timeout",
        "5m",
        command=["sh", "-c", f"{gate.arrive}; kill -STOP $$"],
    )
    pid = gate.arrived()
    until(lambda: state_of(pid) == "T", "the child has stopped")

    stage.clock.advance("6m")

    assert running.ended().code == 124


@pytest.mark.parametrize(("effect", "code"), [("transactional", 124), ("external", 80)])
def test_a_child_that_ends_with_0_because_it_was_told_to_stop_has_not_done_its_work(
    stage: Stage, effect: str, code: int
) -> None:
    gate = stage.gate("child")
    command = stage.effect(gate.heeding("TERM", "exit 0"))
    running = stage.start("close", *DAILY, "--effect", effect, "--timeout", "5m", command=command)
    gate.arrived()

    stage.clock.advance("6m")

    assert running.ended().code == code
    assert stage.state() != "completed"
