"""A transactional command in psql: it writes its effect and completes its run in one transaction, and duly looks on."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
import pytest

from duly.testing.clock import HandClock
from tests.exec.stage import AT, DAILY, Stage, until
from tests.servers import Server

pytestmark = pytest.mark.skipif(
    shutil.which("psql") is None, reason="psql is not installed: no command in psql completes a run here"
)

CLOSE = (*DAILY, "--effect", "transactional")
EXPORT = "insert into export values (:'day', :attempt);"
COMPLETE = "select duly.complete(:'id', :attempt);"


class Shop(Stage):
    """A stage whose ledger is in the database of the business."""

    def __init__(self, folder: Path, url: str) -> None:  # in another place than a file's
        self.folder, self.path = folder, url
        self.clock = HandClock(url, at=AT)
        self._running, self._gates = [], []
        with psycopg.connect(url) as connection:
            connection.execute("create table export (day text, attempt int)")

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.path) as connection:
            return connection.execute(cast(LiteralString, sql.replace("duly_", "duly."))).fetchall()  # type: ignore[redundant-cast]

    @property
    def exported(self) -> list[tuple[str, int]]:
        """The day of each effect, and the attempt that made it."""
        return self.rows("select day, attempt from export")

    def script(self, *lines: str) -> list[str]:
        """A command: psql with a script that knows the day and the attempt, and then its exit code in a file."""
        script = self.file("close.sql")
        script.write_text("\n".join(lines))
        variables = '-v day="$DULY_DATE" -v id="$DULY_ATTEMPT_ID" -v attempt="$DULY_ATTEMPT"'
        call = f"psql -X -q -v ON_ERROR_STOP=1 {variables} -f {shlex.quote(str(script))} {shlex.quote(self.path)}"
        return ["sh", "-c", f'{call}; ended=$?; echo $ended > "$0.$DULY_ATTEMPT"; exit $ended', str(self.file("code"))]

    def code_of(self, attempt: int) -> str:
        """The exit code of an attempt's psql, or nothing while it goes on."""
        path = self.file(f"code.{attempt}")
        return path.read_text().strip() if path.exists() else ""


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Iterator[Shop]:
    with server.ledger() as url:
        shop = Shop(tmp_path, url)
        yield shop
        shop.close()


def test_the_effect_is_committed_and_the_run_is_complete(shop: Shop) -> None:
    command = shop.script("begin;", EXPORT, COMPLETE, "commit;")

    said = [shop.exec("close", *CLOSE, command=command) for _ in range(2)]  # the second is a duplicate

    assert [each.code for each in said] == [0, 0], said
    assert shop.exported == [("2026-11-28", 1)]
    assert (shop.state(), shop.outcomes()) == ("completed", ["completed"])


def test_a_script_that_rolls_back_leaves_neither_effect_nor_completion(shop: Shop) -> None:
    said = shop.exec("close", *CLOSE, command=shop.script("begin;", EXPORT, COMPLETE, "rollback;"))

    assert said.code == 78  # it ended well and did not complete its run
    assert shop.exported == []
    assert (shop.state(), shop.outcomes()) == ("failed", ["failed"])


def test_a_script_that_fails_before_its_commit_leaves_neither_effect_nor_completion(shop: Shop) -> None:
    said = shop.exec("close", *CLOSE, command=shop.script("begin;", EXPORT, COMPLETE, "select 1 / 0;", "commit;"))

    assert said.code == 3  # psql's, for a script that met an error
    assert shop.exported == []
    assert (shop.state(), shop.outcomes()) == ("failed", ["failed"])


def test_a_script_whose_run_was_taken_over_fails_and_keeps_nothing(shop: Shop) -> None:
    gate = shop.gate("orphan")
    meets = shop.script("begin;", EXPORT, f"\\! {gate.shell}", COMPLETE, "commit;")
    wrapper = shop.start("close", *CLOSE, command=meets)
    gate.arrived()
    wrapper.kill()  # its psql lives on, in its transaction
    shop.clock.advance("5m")

    taken_over = shop.start("close", *CLOSE, command=meets)
    gate.arrived()
    gate.open(2)
    said = taken_over.ended()

    assert said.code == 0, said
    until(lambda: shop.code_of(1), "the psql of the orphan ended")
    assert (shop.code_of(1), shop.code_of(2)) == ("3", "0")
    assert shop.exported == [("2026-11-28", 2)]
    assert shop.state() == "completed"
    assert shop.outcomes() == ["lost", "completed"]
