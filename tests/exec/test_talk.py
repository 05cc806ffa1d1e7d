"""What exec says and writes: nothing when all is well, for cron mails what is said; and an outcome as a file for machines."""

from __future__ import annotations

import os
import shlex

import pytest

from tests.exec.stage import DAILY, Stage, outcome_of
from tests.next_steps import filled

NOISY = "echo to out; echo to err >&2"


def test_a_run_that_completes_is_silent(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["true"])

    assert (said.code, said.out, said.talk) == (0, "", "")


def test_verbose_says_which_run_and_how_it_ended(stage: Stage) -> None:
    for flag, day in (("-v", "2026-11-28"), ("--verbose", "2026-11-29")):
        said = stage.exec("close", *DAILY, flag, command=["true"])

        assert said.out == ""
        first, second = said.talk.splitlines()
        assert first == f"duly: close {day} [UTC]  attempt 1"
        assert second.startswith("duly: completed in ")
        stage.clock.advance("1d")


def test_a_failure_is_said_with_one_next_step(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["sh", "-c", "exit 3"])

    assert said.talk.splitlines() == [
        "duly: close 2026-11-28: failed (exit 3)",
        "  try: duly retry close 2026-11-28 --reason '…'",
    ]


def test_an_unknown_outcome_is_said_with_one_next_step(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["sh", "-c", "exit 80"])

    assert said.talk.splitlines() == [
        "duly: close 2026-11-28: outcome unknown (exit 80)",
        "  try: duly resolve close 2026-11-28 --as 'done|not-done' --evidence '…'",
    ]


@pytest.mark.parametrize("ending", ["exit 3", "exit 80"])
def test_the_next_step_can_be_typed_and_tells_more(stage: Stage, ending: str) -> None:
    said = stage.exec("close", *DAILY, command=["sh", "-c", ending])
    _, step = said.talk.splitlines()[-1].split("try: duly ")

    unfilled = stage.duly(*shlex.split(step.replace("done|not-done", "done")))
    answer = stage.duly(*filled(f"duly {step}", "the provider says so"))

    assert unfilled.code == 64  # the reason, or the evidence, is a person's
    assert f"try: duly {step}".replace("'done|not-done'", "done") in unfilled.talk
    assert answer.code == 0


def test_a_code_that_was_not_the_commands_is_explained(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=["sh", "-c", "exit 80"])

    said = stage.exec("close")

    assert said.talk.splitlines()[0].startswith(
        "duly: close 2026-11-28: nothing was run: outcome unknown, attempt 1 of "
    )


def test_the_reason_of_a_run_that_stands_is_its_own(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each", "--effect", "transactional", command=["true"])
    stage.duly("retry", "close", "2026-11-28", "--reason", "again")
    stage.clock.set("2026-11-30T12:00:00Z")
    stage.exec("close", "--window", "2026-11-29", command=["sh", "-c", "exit 80"])

    said = stage.exec("close", command=["sh", "-c", "exit 3"])

    assert said.code == 3
    assert "nothing was run: outcome unknown" in said.talk


def test_quiet_says_nothing_of_what_will_pass(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--retries", "1", "--no-retry", command=["sh", "-c", "exit 3"])

    for flag in ("-q", "--quiet"):
        said = stage.exec("close", flag)
        assert (said.code, said.talk) == (75, "")


def test_quiet_still_says_what_needs_a_person(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "-q", command=["sh", "-c", "exit 3"])
    assert "failed" in said.talk

    said = stage.exec("close", "-q")
    assert said.code == 79
    assert "waits for a person" in said.talk


def test_nothing_of_ours_is_on_standard_output(stage: Stage) -> None:
    said = stage.exec("load", "--adhoc", "-v", command=["echo", "data"])

    assert said.out == "data\n"


def test_a_login_name_that_is_no_text_stops_nothing(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, environ={"LOGNAME": "\udcff", "SUDO_USER": ""})

    assert said.code == 0, said


# -- chronic ------------------------------------------------------------------------------------------------------------


def test_chronic_shows_nothing_of_a_run_that_completes(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--chronic", command=["sh", "-c", NOISY])

    assert (said.code, said.out, said.talk) == (0, "", "")


@pytest.mark.parametrize("ending", ["exit 3", "exit 80", "kill -9 $$"])
def test_chronic_shows_all_of_a_run_that_does_not(stage: Stage, ending: str) -> None:
    said = stage.exec("close", *DAILY, "--chronic", command=["sh", "-c", f"{NOISY}; {ending}"])

    assert said.out == "to out\nto err\n"
    assert "duly: close 2026-11-28: " in said.talk


def test_chronic_shows_the_output_of_a_command_that_was_timed_out_and_then_ended_with_0(stage: Stage) -> None:
    gate = stage.gate("child")
    words = f"{NOISY}; {gate.heeding('TERM', 'exit 0')}"
    running = stage.start("close", *DAILY, "--chronic", "--timeout", "1m", command=["sh", "-c", words])
    gate.arrived()

    stage.clock.advance("2m")

    assert running.ended().out == "to out\nto err\n"


def test_chronic_shows_output_larger_than_a_pipe_holds(stage: Stage) -> None:
    said = stage.exec(
        "close", *DAILY, "--chronic", command=["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 3"]
    )

    assert said.code == 3
    assert len(said.out) == 1_000_000


def test_chronic_whose_reader_has_gone_still_writes_down_how_it_ended(stage: Stage) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        running = stage.start("close", *DAILY, "--chronic", command=["sh", "-c", f"{NOISY}; exit 3"], stdout=write)
        said = running.ended()
    finally:
        os.close(write)

    assert said.code == 3
    assert stage.state() == "failed"


def test_chronic_leaves_standard_input_to_the_command(stage: Stage) -> None:
    running = stage.start("close", *DAILY, "--chronic", command=["sh", "-c", "read word; test $word = yes"], stdin=-1)
    running.process.communicate("yes\n", timeout=30)

    assert running.process.returncode == 0


# -- the outcome file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 3, 75, 79, 80])
def test_the_outcome_file_tells_a_childs_code_from_ours(stage: Stage, code: int) -> None:
    path = stage.file("outcome.json")

    said = stage.exec("close", *DAILY, "--outcome-file", str(path), command=["sh", "-c", f"exit {code}"])

    state = {0: "completed", 80: "unknown"}.get(code, "failed")
    assert said.code == code
    assert outcome_of(path) == {
        "schema": "duly.outcome.v1",
        "job": "close",
        "code": code,
        "reason": "completed" if code == 0 else f"exit {code}",
        "runs": [
            {
                "run": "close:2026-11-28[UTC]",
                "attempt": 1,
                "code": code,
                "state": state,
                "cause": f"exit {code}",
            }
        ],
    }


def test_the_outcome_of_a_poke_that_ran_nothing_says_why(stage: Stage) -> None:
    path = stage.file("outcome.json")
    stage.exec("close", *DAILY, command=["sh", "-c", "exit 3"])

    stage.exec("close", "--outcome-file", str(path))

    outcome = outcome_of(path)
    assert (outcome["code"], outcome["reason"], outcome["runs"]) == (79, "failed, waits for a person", [])


def test_the_outcome_of_a_duplicate(stage: Stage) -> None:
    path = stage.file("outcome.json")
    stage.exec("close", *DAILY)

    stage.exec("close", "--outcome-file", str(path))

    assert (outcome_of(path)["code"], outcome_of(path)["reason"]) == (0, "nothing owed")


def test_an_outcome_is_written_when_the_ledger_cannot_be_reached(stage: Stage) -> None:
    path = stage.file("outcome.json")
    ledger = stage.file("no-folder") / "ledger.db"

    said = stage.exec("close", *DAILY, "--outcome-file", str(path), "--ledger", str(ledger))

    assert outcome_of(path)["code"] == said.code != 0


def test_what_an_earlier_call_wrote_is_gone_while_this_one_works(stage: Stage) -> None:
    path = stage.file("outcome.json")
    path.write_text("of yesterday")
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, "--outcome-file", str(path), command=["sh", "-c", gate.shell])
    gate.arrived()

    assert not path.exists()
    running.kill()


def test_an_outcome_file_without_a_folder_is_refused_before_anything_is_run(stage: Stage) -> None:
    path = stage.file("no-folder") / "outcome.json"

    said = stage.exec("close", *DAILY, "--outcome-file", str(path), command=stage.effect())

    assert said.code == 64
    assert stage.effects() == []


def test_an_outcome_file_that_can_no_longer_be_written_does_not_change_the_code(stage: Stage) -> None:
    folder = stage.file("out")
    folder.mkdir()
    path = folder / "outcome.json"

    said = stage.exec("close", *DAILY, "--outcome-file", str(path), command=["rmdir", str(folder)])

    assert said.code == 0
    assert "cannot be written" in said.talk
    assert stage.state() == "completed"


def test_the_command_knows_where_the_outcome_will_be(stage: Stage) -> None:
    words = ("--outcome-file", "outcome.json")
    running = stage.start("close", *DAILY, *words, command=["sh", "-c", "echo $DULY_OUTCOME_FILE"], cwd=stage.folder)

    assert running.ended().out.strip() == str(stage.file("outcome.json"))
    assert outcome_of(stage.file("outcome.json"))["code"] == 0


# -- another code for a duplicate --------------------------------------------------------------------------------------


def test_a_duplicate_may_have_a_code_of_its_own(stage: Stage) -> None:
    assert stage.exec("close", *DAILY, "--exit-duplicate", "99").code == 0
    assert stage.exec("close", "--exit-duplicate", "99").code == 99
    assert stage.exec("close", "--window", "2026-11-28", "--exit-duplicate", "99").code == 99


def test_a_run_that_waits_is_no_duplicate(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=["false"])

    assert stage.exec("close", "--exit-duplicate", "99").code == 79
