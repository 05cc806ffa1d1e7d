"""What a child's end means: the table of the command line's page, cell by cell.

Each cell: exec's code now, the run's state, and the code of the next poke, which must not run anything unless it may.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.exec.stage import DAILY, Stage

CONTRACTS = {
    "transactional": ("--effect", "transactional"),
    "transactional with retries": ("--effect", "transactional", "--retries", "2"),
    "idempotent": ("--effect", "idempotent", "--remembers", "1d"),
    "idempotent for ever": ("--effect", "idempotent", "--remembers", "forever"),
    "idempotent too late": ("--effect", "idempotent", "--remembers", "30s"),
    "external": (),
    "external with retries": ("--retries", "2"),
    "external, clean": ("--clean-exits", "3,137"),
    "external, clean, with retries": ("--clean-exits", "3,137", "--retries", "2"),
}
ENDINGS = {
    "exit 0": "exit 0",
    "exit 3": "exit 3",
    "killed": "kill -9 $$",
    "exit 137": "exit 137",
    "exit 80": "exit 80",
    "time-out": ":",  # it does not come so far
}
COMPLETED, AGAIN, WAITS, UNKNOWN = ("completed", 0), ("failed", 75), ("failed", 79), ("unknown", 80)

# contract → ending → exec's code, then the run's state with the next poke's code
TABLE = {
    "transactional": {
        "exit 0": (78, WAITS),  # it must have completed itself
        "exit 3": (3, WAITS),
        "killed": (137, AGAIN),
        "exit 137": (137, AGAIN),
        "exit 80": (80, UNKNOWN),
        "time-out": (124, AGAIN),
    },
    "transactional with retries": {
        "exit 0": (78, WAITS),
        "exit 3": (3, AGAIN),
        "killed": (137, AGAIN),
        "exit 137": (137, AGAIN),
        "exit 80": (80, UNKNOWN),
        "time-out": (124, AGAIN),
    },
    "idempotent": {
        "exit 0": (0, COMPLETED),
        "exit 3": (3, WAITS),
        "killed": (137, AGAIN),
        "exit 137": (137, AGAIN),
        "exit 80": (80, UNKNOWN),
        "time-out": (124, AGAIN),
    },
    "idempotent for ever": {
        "exit 3": (3, WAITS),
        "killed": (137, AGAIN),
        "time-out": (124, AGAIN),
    },
    "idempotent too late": {
        "exit 0": (0, COMPLETED),
        "exit 3": (80, UNKNOWN),
        "killed": (80, UNKNOWN),
        "exit 137": (80, UNKNOWN),
        "exit 80": (80, UNKNOWN),
        "time-out": (80, UNKNOWN),
    },
    "external": {
        "exit 0": (0, COMPLETED),
        "exit 3": (3, WAITS),
        "killed": (80, UNKNOWN),
        "exit 137": (80, UNKNOWN),
        "exit 80": (80, UNKNOWN),
        "time-out": (80, UNKNOWN),
    },
    "external with retries": {
        "exit 3": (3, AGAIN),
        "killed": (80, UNKNOWN),  # retries do not cover them
        "exit 137": (80, UNKNOWN),
        "exit 80": (80, UNKNOWN),
        "time-out": (80, UNKNOWN),
    },
    "external, clean": {
        "exit 3": (3, WAITS),
        "killed": (137, WAITS),  # as a shell would have reported it
        "exit 137": (137, WAITS),
        "exit 80": (80, UNKNOWN),
        "time-out": (80, UNKNOWN),
    },
    "external, clean, with retries": {
        "exit 3": (3, AGAIN),
        "exit 137": (137, AGAIN),
        "time-out": (80, UNKNOWN),
    },
}
CELLS = [(contract, ending) for contract, row in TABLE.items() for ending in row]


@pytest.mark.parametrize(("contract", "ending"), CELLS, ids=[f"{c}, {e}" for c, e in CELLS])
def test_a_childs_end_means_what_its_contract_says(stage: Stage, contract: str, ending: str) -> None:
    code, (state, next_code) = TABLE[contract][ending]
    gate = stage.gate("child")
    flags = (*DAILY, *CONTRACTS[contract], "--no-retry", "--timeout", "10m")

    running = stage.start("close", *flags, command=stage.effect(f"{gate.arrive}; {gate.hold}; {ENDINGS[ending]}"))
    gate.arrived()
    if ending == "time-out":
        stage.clock.advance("11m")
    else:
        stage.clock.advance("1m")  # later than 30s, the time that one destination remembers
        gate.open()
    said = running.ended()

    assert said.code == code, said
    assert stage.state() == state
    after = stage.exec("close", *flags, command=stage.effect())
    assert after.code == next_code, after
    assert len(stage.effects()) == 1, "the next poke must not run it"


@pytest.mark.parametrize("contract", ["transactional", "idempotent"])
def test_a_vanished_attempt_is_taken_again_once_its_retry_time_has_come(stage: Stage, contract: str) -> None:
    stage.exec("close", *DAILY, *CONTRACTS[contract], command=stage.effect("kill -9 $$"))
    stage.clock.advance("2m")

    stage.exec("close", command=stage.effect())

    assert len(stage.effects()) == 2


def test_a_death_by_signal_does_not_count_against_the_retries(stage: Stage) -> None:
    flags = (*DAILY, *CONTRACTS["transactional with retries"], "--no-retry")
    for _ in range(4):
        assert stage.exec("close", *flags, command=["sh", "-c", "kill -9 $$"]).code == 137
        stage.clock.advance("1h")

    assert stage.exec("close", *flags, command=["sh", "-c", "exit 3"]).code == 3
    assert stage.exec("close", *flags).code == 75  # not 79: both retries are left


def test_retries_that_are_used_up_wait_for_a_person(stage: Stage) -> None:
    flags = (*DAILY, *CONTRACTS["external with retries"], "--no-retry")
    codes = []
    for _ in range(4):
        codes.append(stage.exec("close", *flags, command=stage.effect("exit 3")).code)
        stage.clock.advance("2h")

    assert codes == [3, 3, 3, 79]
    assert len(stage.effects()) == 3


def test_the_idempotency_key_is_the_same_for_every_attempt(stage: Stage) -> None:
    command = ["sh", "-c", f"echo $DULY_IDEMPOTENCY_KEY $DULY_ATTEMPT >> {stage.file('keys')}; kill -9 $$"]
    for _ in range(2):
        stage.exec("close", *DAILY, *CONTRACTS["idempotent"], command=command)
        stage.clock.advance("2h")

    (first, first_attempt), (second, second_attempt) = (line.split() for line in stage.effects("keys"))
    assert first == second
    assert first_attempt != second_attempt


def test_what_a_destination_remembers_counts_from_the_first_attempt(stage: Stage) -> None:
    flags = (*DAILY, "--effect", "idempotent", "--remembers", "30m")
    stage.exec("close", *flags, command=["sh", "-c", "kill -9 $$"])
    stage.clock.advance("29m")
    stage.exec("close", *flags, command=["sh", "-c", "kill -9 $$"])
    stage.clock.advance("10m")  # 39 minutes after the first, 10 after the second

    said = stage.exec("close", *flags, command=["sh", "-c", "kill -9 $$"])

    assert said.code == 80
    assert stage.state() == "unknown"


# -- a transactional command completes its run itself ------------------------------------------------------------------

COMPLETES_ITSELF = """
import os, sqlite3, sys

with sqlite3.connect(sys.argv[1], timeout=30) as connection:
    attempt = os.environ["DULY_ATTEMPT_ID"], os.environ["DULY_ATTEMPT"]
    connection.execute("insert into duly_complete (attempt_id, attempt) values (?, ?)", attempt)
"""


def completes_itself(stage: Stage, then: str = "") -> list[str]:
    script = stage.file("completes.py")
    script.write_text(COMPLETES_ITSELF)
    return ["sh", "-c", f"{sys.executable} {script} {stage.path} && {{ {then or ':'}; }}"]


def test_a_transactional_command_that_completed_itself_is_complete(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--effect", "transactional", command=completes_itself(stage))

    assert said.code == 0, said
    assert stage.state() == "completed"
    assert stage.outcomes() == ["completed"]


@pytest.mark.parametrize(("then", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_a_command_that_completed_itself_and_then_failed_is_not_said_to_be_taken_over(
    stage: Stage, then: str, code: int
) -> None:
    said = stage.exec("close", *DAILY, "--effect", "transactional", command=completes_itself(stage, then))

    assert said.code == code, said
    assert "took the run over" not in said.talk
    assert stage.state() == "completed"
    assert stage.exec("close").code == 0


def test_a_command_that_completed_itself_may_go_on_for_many_leases(stage: Stage) -> None:
    gate = stage.gate("afterwards")
    running = stage.start(
        "close", *DAILY, "--effect", "transactional", command=completes_itself(stage, f"{gate.shell}; {gate.shell}")
    )
    gate.arrived()
    for _ in range(5):
        stage.clock.advance("1m")
    gate.open()
    gate.arrived()  # a heartbeat may have come in between
    gate.open()

    said = running.ended()

    assert said.code == 0, said
    assert stage.state() == "completed"


# -- cannot execute -----------------------------------------------------------------------------------------------------


def not_executable(folder: Path) -> str:
    path = folder / "plain.txt"
    path.write_text("not a program\n")
    return str(path)


@pytest.mark.parametrize("contract", ["transactional", "idempotent", "external", "external with retries"])
@pytest.mark.parametrize("code", [126, 127])
def test_what_cannot_be_executed_gives_its_claim_back_and_is_taken_again(
    stage: Stage, contract: str, code: int
) -> None:
    flags = (*DAILY, *CONTRACTS[contract])
    command = "/no/such/command" if code == 127 else not_executable(stage.folder)

    said = stage.exec("close", *flags, command=[command])

    assert said.code == code, said
    assert command in said.talk
    assert stage.state() == "open"
    assert stage.outcomes() == ["released"]
    stage.exec("close", *flags, command=stage.effect())
    assert len(stage.effects()) == 1


def test_a_command_without_a_name_is_not_found(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=[""])

    assert said.code == 127, said
    assert stage.state() == "open"


def test_a_command_line_that_is_too_long_cannot_be_executed(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["true", *["{run.key}" * 1000] * 100])

    assert said.code == 126, said
    assert stage.state() == "open"


def test_a_folder_cannot_be_executed(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=[str(stage.folder)])

    assert said.code == 126, said
