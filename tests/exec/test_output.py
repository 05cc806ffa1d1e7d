"""--output: a file that is there whole or not at all, and only once, whatever kills whom when."""

from __future__ import annotations

import os
import signal
import stat
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from duly.ledger.output import Intent, record_output_or_raise
from duly.ledger.records import Claim, RunId
from duly.store.sqlite import SqliteStore
from tests.exec.stage import DAILY, Stage
from tests.exec.test_endings import CONTRACTS

WRITES = 'printf whole > "$DULY_OUTPUT"'


def temporaries(stage: Stage) -> list[str]:
    return [name for name in os.listdir(stage.folder) if name.startswith(".")]


def test_the_file_appears_whole_when_the_command_has_ended_well(stage: Stage) -> None:
    gate = stage.gate("child")
    final = stage.file("report.csv")
    running = stage.start(
        "close",
        *DAILY,
        "--output",
        str(final),
        command=["sh", "-c", f"printf who > $DULY_OUTPUT; {gate.shell}; printf le >> $DULY_OUTPUT"],
    )
    gate.arrived()

    assert not final.exists()
    assert len(temporaries(stage)) == 1
    gate.open()

    assert running.ended().code == 0
    assert final.read_text() == "whole"
    assert final.stat().st_nlink == 1
    assert temporaries(stage) == []


def test_a_duplicate_neither_runs_nor_touches_the_file(stage: Stage) -> None:
    final = stage.file("report.csv")
    stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", WRITES])
    before = final.stat()

    assert stage.exec("close", "--output", str(final), command=["false"]).code == 0

    assert final.stat().st_ino == before.st_ino


def test_what_is_there_is_not_overwritten_and_nothing_is_run(stage: Stage) -> None:
    final = stage.file("report.csv")
    final.write_text("precious")

    said = stage.exec("close", *DAILY, "--output", str(final), command=stage.effect(WRITES))

    assert said.code == 73
    assert "--replace" in said.talk
    assert final.read_text() == "precious"
    assert stage.effects() == []
    assert stage.state() == "open"
    assert temporaries(stage) == []


def test_what_appears_meanwhile_is_not_overwritten(stage: Stage) -> None:
    final = stage.file("report.csv")

    said = stage.exec(
        "close", *DAILY, "--output", str(final), command=["sh", "-c", f"{WRITES}; printf rival > {final}"]
    )

    assert said.code == 73
    assert final.read_text() == "rival"
    assert stage.state() == "failed"
    assert temporaries(stage) == []


def test_a_link_that_leads_nowhere_is_not_followed_nor_replaced(stage: Stage) -> None:
    final = stage.file("report.csv")
    final.symlink_to(stage.file("elsewhere"))

    assert stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", WRITES]).code == 73
    assert not stage.file("elsewhere").exists()


def test_replace_overwrites(stage: Stage) -> None:
    final = stage.file("report.csv")
    final.write_text("old")

    said = stage.exec("close", *DAILY, "--output", str(final), "--replace", command=["sh", "-c", WRITES])

    assert said.code == 0
    assert final.read_text() == "whole"
    assert temporaries(stage) == []


def test_a_folder_or_a_pipe_is_not_replaced_and_nothing_is_run(stage: Stage) -> None:
    folder, pipe = stage.file("folder"), stage.file("pipe")
    folder.mkdir()
    os.mkfifo(pipe)

    for final in (folder, pipe):
        said = stage.exec("close", *DAILY, "--output", str(final), "--replace", command=stage.effect(WRITES))
        assert said.code == 73, said

    assert stage.effects() == []
    assert folder.is_dir()
    assert pipe.is_fifo()


@pytest.mark.parametrize("makes", ["mkfifo", "mkdir", "ln -s /etc/passwd"])
def test_what_is_no_file_is_no_output(stage: Stage, makes: str) -> None:
    final = stage.file("report.csv")

    said = stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", f'{makes} "$DULY_OUTPUT"'])

    assert said.code == 73
    assert not os.path.lexists(final)


def test_a_name_as_long_as_a_name_may_be(stage: Stage) -> None:
    final = stage.file("ä" * 127)

    said = stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", WRITES])

    assert said.code == 0, said
    assert final.read_text() == "whole"
    assert temporaries(stage) == []


@pytest.mark.parametrize("ending", ["exit 3", "exit 80", "kill -9 $$"])
def test_a_command_that_does_not_end_well_leaves_no_file_and_no_temporary(stage: Stage, ending: str) -> None:
    final = stage.file("report.csv")

    stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", f"{WRITES}; {ending}"])

    assert not final.exists()
    assert temporaries(stage) == []


def test_a_time_out_leaves_no_file_and_no_temporary(stage: Stage) -> None:
    final = stage.file("report.csv")
    gate = stage.gate("child")
    running = stage.start(
        "close", *DAILY, "--timeout", "1m", "--output", str(final), command=["sh", "-c", f"{WRITES}; {gate.shell}"]
    )
    gate.arrived()

    stage.clock.advance("2m")

    assert running.ended().code == 80
    assert not final.exists()
    assert temporaries(stage) == []


def test_a_command_that_wrote_nothing_has_not_done_its_work(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--output", str(stage.file("report.csv")), command=["true"])

    assert said.code == 73
    assert "wrote no file" in said.talk
    assert stage.state() == "failed"


def test_a_folder_that_is_not_there_is_73_and_nothing_is_run(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--output", str(stage.file("no") / "x.csv"), command=stage.effect())

    assert said.code == 73
    assert stage.effects() == []
    assert stage.state() == "open"


def test_placeholders_in_the_file_are_filled_in(stage: Stage) -> None:
    pattern = str(stage.file("report-{date}-{label}.csv"))
    stage.exec("close", *DAILY, "--output", pattern, command=["sh", "-c", WRITES])

    assert stage.file("report-2026-11-28-2026-11-28.csv").read_text() == "whole"


def test_a_placeholder_that_the_run_has_nothing_for_gives_the_claim_back(stage: Stage) -> None:
    said = stage.exec("load", "--adhoc", "a1", "--output", str(stage.file("{date}.csv")), command=stage.effect(WRITES))

    assert said.code == 64
    assert "{date}" in said.talk
    assert stage.effects() == []
    assert stage.state() == "open"


def test_the_file_has_the_mode_that_its_command_gave_it(stage: Stage) -> None:
    final = stage.file("report.csv")
    stage.exec("close", *DAILY, "--output", str(final), command=["sh", "-c", f"{WRITES}; chmod 640 $DULY_OUTPUT"])

    assert stat.S_IMODE(final.stat().st_mode) == 0o640


def test_an_exec_inside_an_exec_does_not_write_into_the_outer_ones_file(stage: Stage) -> None:
    says = 'echo "${DULY_OUTPUT-none} ${DULY_OUTCOME_FILE-none}"'
    ledger = stage.file("inner.db")
    inner = f"{sys.executable} -m duly exec inner --every 1d --ledger {ledger} -- sh -c '{says}'"
    said = stage.exec(
        "outer",
        *DAILY,
        "--outcome-file",
        str(stage.file("outcome.json")),
        "--output",
        str(stage.file("report.csv")),
        command=["sh", "-c", f"{WRITES}; {inner}"],
    )

    assert said.out == "none none\n", said


# -- killed between record, link and complete --------------------------------------------------------------------------


def by_hand(stage: Stage, final: Path, *, linked: bool, digest_of: bytes | None = None) -> None:
    """What an attempt leaves that was killed after it recorded its output, before or after it linked it."""
    content = b"whole"
    store = SqliteStore(stage.path, create=False)
    ((series, nominal, attempt, fence, started),) = stage.rows(
        "select series, nominal, attempt_id, fence, started_at from duly_run where state = 'running'"
    )
    claim = Claim(RunId(series, nominal), attempt, fence, started, 0, 0, "external", "", "", 0, started)
    store.write(record_output_or_raise(claim, Intent(str(final), len(content), sha256(content).hexdigest())))
    store.close()
    if linked:
        final.write_bytes(content if digest_of is None else digest_of)
        stage.file(f".{final.name}.{attempt.hex()}").write_bytes(content)  # it is removed after the link


def killed_after(stage: Stage, final: Path, *flags: str, linked: bool, found: bytes | None = None) -> None:
    gate = stage.gate("killed")
    running = stage.start("close", *DAILY, *flags, "--output", str(final), command=["sh", "-c", gate.shell])
    pid = gate.arrived()
    os.kill(running.pid, signal.SIGSTOP)
    os.killpg(pid, signal.SIGKILL)
    by_hand(stage, final, linked=linked, digest_of=found)
    running.kill()
    stage.clock.advance("5m")


@pytest.mark.parametrize("contract", ["transactional", "idempotent", "external"])
def test_killed_between_link_and_complete_the_next_exec_completes_without_running(stage: Stage, contract: str) -> None:
    final = stage.file("report.csv")
    killed_after(stage, final, *CONTRACTS[contract], linked=True)

    said = stage.exec("close", "--output", str(final), command=stage.effect("exit 9"))

    assert said.code == 0, said
    assert stage.effects() == []
    assert stage.state() == "completed"
    assert temporaries(stage) == []


def test_a_named_window_completes_so_too(stage: Stage) -> None:
    final = stage.file("report.csv")
    killed_after(stage, final, linked=True)

    said = stage.exec("close", "--window", "2026-11-28", "--output", str(final), command=stage.effect("exit 9"))

    assert said.code == 0, said
    assert stage.effects() == []
    assert stage.state() == "completed"


def test_killed_between_record_and_link_an_external_run_is_unknown(stage: Stage) -> None:
    final = stage.file("report.csv")
    killed_after(stage, final, linked=False)

    said = stage.exec("close", "--output", str(final), command=stage.effect(WRITES))

    assert said.code == 80
    assert stage.effects() == []
    assert not final.exists()


def test_killed_between_record_and_link_an_idempotent_run_is_done_again(stage: Stage) -> None:
    final = stage.file("report.csv")
    killed_after(stage, final, *CONTRACTS["idempotent"], linked=False)

    said = stage.exec("close", "--output", str(final), command=stage.effect(WRITES))

    assert said.code == 0, said
    assert final.read_text() == "whole"


@pytest.mark.parametrize("found", [b"other", b"wholly other"])
def test_a_file_with_another_digest_proves_nothing(stage: Stage, found: bytes) -> None:
    final = stage.file("report.csv")
    killed_after(stage, final, linked=True, found=found)

    said = stage.exec("close", "--output", str(final), command=stage.effect(WRITES))

    assert said.code == 80
    assert final.read_bytes() == found


def test_what_a_killed_attempt_left_beside_the_file_is_removed_by_the_next(stage: Stage) -> None:
    final = stage.file("report.csv")
    gate = stage.gate("killed")
    running = stage.start(
        "close",
        *DAILY,
        *CONTRACTS["idempotent"],
        "--output",
        str(final),
        command=["sh", "-c", f"{WRITES}; {gate.shell}"],
    )
    pid = gate.arrived()
    os.kill(running.pid, signal.SIGSTOP)
    os.killpg(pid, signal.SIGKILL)
    running.kill()
    assert len(temporaries(stage)) == 1
    stage.clock.advance("5m")

    said = stage.exec("close", "--output", str(final), command=["sh", "-c", WRITES])

    assert said.code == 0, said
    assert temporaries(stage) == []
