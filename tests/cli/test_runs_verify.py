"""duly runs verify: is there what the ledger says is there?"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import duly
from tests.story import Said, Story

Run = duly.Run[sqlite3.Connection]
DAYS = ("2026-11-17", "2026-11-18", "2026-11-19")


class Exports:
    """A job that published a file for each of three days, and sent a message with one."""

    def __init__(self, folder: Path) -> None:
        self.story = Story(folder, at="2026-11-20T08:00:00Z")
        self.folder = folder
        ledger = duly.sqlite(self.story.path)
        ledger.destination("billing")

        @ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)
        def export(run: Run) -> None:
            run.publish(folder / f"{run.label}.csv").write_text("whole")
            if run.label == DAYS[0]:
                run.send("billing", {"units": 10})

        for day in DAYS:
            export.run(day)
        ledger.close()

    def file(self, day: str) -> Path:
        return self.folder / f"{day}.csv"

    def verify(self, *words: str) -> Said:
        return self.story.duly("runs", "verify", *words)

    def amend(self, sql: str) -> None:
        with closing(sqlite3.connect(self.story.path)) as connection, connection:
            connection.execute(sql)


@pytest.fixture
def exports(tmp_path: Path) -> Exports:
    return Exports(tmp_path)


def test_what_is_there_is_there(exports: Exports) -> None:
    said = exports.verify("export", DAYS[2])

    assert said.code == 0
    assert said.out.split() == ["✓", "export", DAYS[2], f"{exports.file(DAYS[2])},", "5", "bytes"]
    assert "1 completed run looked at; all is there" in said.talk


def test_a_file_that_is_gone_is_found_with_what_to_type(exports: Exports) -> None:
    exports.file(DAYS[2]).unlink()

    said = exports.verify("export", DAYS[2])

    assert said.code == 1
    assert f"{exports.file(DAYS[2])} is not there" in said.out
    assert f"duly reopen export {DAYS[2]} --reason" in said.out


@pytest.mark.parametrize(
    ("content", "found"), [("longer than it was", "has 18 bytes, and not 5"), ("other", "has another digest")]
)
def test_a_file_that_is_another_is_found(exports: Exports, content: str, found: str) -> None:
    exports.file(DAYS[1]).write_text(content)

    said = exports.verify("export", DAYS[1])

    assert said.code == 1
    assert found in said.out


def test_a_folder_in_its_place_is_no_file(exports: Exports) -> None:
    exports.file(DAYS[1]).unlink()
    exports.file(DAYS[1]).mkdir()

    assert "is no file" in exports.verify("export", DAYS[1]).out


def test_messages_that_are_not_delivered_are_found(exports: Exports) -> None:
    said = exports.verify("export", DAYS[0])

    assert said.code == 1
    assert "0/1 delivered" in said.out
    assert f"duly outbox show export {DAYS[0]}" in said.out


@pytest.mark.parametrize("changed", ["number = 7", "attempt_id = x'01'", "outcome = 'failed'"])
def test_a_completion_without_its_attempt_is_found(exports: Exports, changed: str) -> None:
    exports.amend(f"update duly_attempt set {changed} where nominal = (select max(nominal) from duly_attempt)")

    said = exports.verify("export", DAYS[2])

    assert said.code == 1
    assert "attempt that completed it is not on record" in said.out


def test_a_run_that_is_not_complete_is_not_there(exports: Exports) -> None:
    exports.amend(
        "update duly_run set state = 'failed', settled_at = null where nominal = (select max(nominal) from duly_run)"
    )

    said = exports.verify("export", DAYS[2])

    assert said.code == 1
    assert "it is not complete but failed" in said.out
    assert f"duly retry export {DAYS[2]}" in said.out


def test_a_job_a_range_several_keys_and_the_whole_ledger(exports: Exports) -> None:
    def days(*words: str) -> list[str]:
        return [one["window"] for one in exports.verify(*words, "--json").document["runs"]]

    assert days() == days("export") == list(reversed(DAYS))
    assert days("export", "-n", "1") == [DAYS[2]]
    assert days("export", f"{DAYS[0]}..{DAYS[2]}") == [DAYS[1], DAYS[0]]
    assert days("export", f"{DAYS[1]}..") == [DAYS[2], DAYS[1]]
    assert days(f"export:{DAYS[0]}[UTC]", f"export:{DAYS[2]}[UTC]") == [DAYS[0], DAYS[2]]


def test_it_is_told_to_programs(exports: Exports) -> None:
    exports.file(DAYS[2]).unlink()

    document = exports.verify("export", "--json").document

    assert (document["schema"], document["looked_at"], document["wrong"]) == ("duly.verify.v1", 3, 2)
    newest, middle, oldest = document["runs"]
    assert (newest["verified"], newest["output"], newest["size"]) == (False, str(exports.file(DAYS[2])), 5)
    assert [found["kind"] for found in newest["findings"]] == ["output"]
    assert newest["findings"][0]["next_step"].startswith("duly reopen export")
    assert (middle["verified"], middle["findings"], middle["left_over"]) == (True, [], [])
    assert [found["kind"] for found in oldest["findings"]] == ["messages"]
    assert exports.verify("export", "--format", "keys").out.splitlines()[0] == f"export:{DAYS[2]}[UTC]"
    assert "is not there" in exports.verify("export", "--format", "csv").out


def test_what_a_killed_attempt_left_beside_is_told_and_does_no_harm(exports: Exports) -> None:
    ((attempt,),) = exports.story.store.read(_attempt_of_newest())
    beside = exports.folder / f".{DAYS[2]}.csv.{attempt.hex()}"
    os.link(exports.file(DAYS[2]), beside)

    said = exports.verify("export", DAYS[2])

    assert said.code == 0
    assert f"rm {beside}" in said.out


async def _attempt_of_newest() -> list[tuple[bytes]]:
    from duly.ledger.ask import Statement, every

    newest = Statement("newest_attempt", "select attempt_id from duly_run order by nominal desc limit 1")
    return await every(newest, lambda *row: row)


def test_an_output_that_is_no_file_of_ours_is_not_looked_at(exports: Exports) -> None:
    ledger = duly.sqlite(exports.story.path)

    @ledger.job("load", duly.daily("UTC"), catch_up=duly.EACH)
    def load(run: Run) -> None:
        run.output = "s3://exports/x.csv"

    load.run(DAYS[2])
    ledger.close()

    said = exports.verify("load")

    assert (said.code, "s3://exports/x.csv, which is not looked at" in said.out) == (0, True)


def test_a_run_that_never_was_is_a_slip_of_the_pen(exports: Exports) -> None:
    said = exports.verify("export", "2026-11-01")

    assert said.code == 64
    assert "duly explain export 2026-11-01" in said.talk
