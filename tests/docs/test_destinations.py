"""The page of destinations has the tables that are tested, and its examples are what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.outbox.destinations import Delivered, DidNot, Happened, destination_of
from duly.outbox.destinations.inbox import TABLE
from duly.outbox.destinations.kinds import KINDS, maker_of
from duly.outbox.destinations.settings import Settings
from tests.docs.test_readme import ROOT, blocks
from tests.outbox.destinations.table import MESSAGE, Row, printed
from tests.outbox.destinations.test_amqp import AMQP_ROWS
from tests.outbox.destinations.test_command import COMMAND_ROWS
from tests.outbox.destinations.test_healthchecks import HEALTHCHECKS_ROWS
from tests.outbox.destinations.test_http import HTTP_ROWS
from tests.outbox.destinations.test_inbox import POSTGRES_ROWS, SQLITE_ROWS
from tests.outbox.destinations.test_nats import NATS_ROWS
from tests.outbox.destinations.test_redis import REDIS_ROWS
from tests.outbox.destinations.test_smtp import SMTP_ROWS

PAGE = (ROOT / "docs" / "destinations.md").read_text(encoding="utf-8")
SECTIONS = dict(zip(*[iter(re.split(r"^##+ (.+)\n", PAGE, flags=re.MULTILINE)[1:])] * 2, strict=True))
TABLES = {
    "HTTP": HTTP_ROWS,
    "SMTP": SMTP_ROWS,
    "SQLite": SQLITE_ROWS,
    "PostgreSQL": POSTGRES_ROWS,
    "Command": COMMAND_ROWS,
    "Healthchecks": HEALTHCHECKS_ROWS,
    "AMQP": AMQP_ROWS,
    "NATS JetStream": NATS_ROWS,
    "Redis streams": REDIS_ROWS,
}
EXAMPLES = tomllib.loads("\n".join(blocks(PAGE, "toml")))["destinations"]
HEADING = dict(zip(KINDS, ["HTTP", "SMTP", "SQL inbox", *list(TABLES)[4:]], strict=True))


@pytest.mark.parametrize(("heading", "rows"), TABLES.items(), ids=TABLES)
def test_the_page_has_the_table_that_is_tested(heading: str, rows: tuple[Row, ...]) -> None:
    assert printed(rows) in SECTIONS[heading]
    assert len({row.does for row in rows}) == len(rows)


def test_there_is_an_example_of_each_kind_and_each_is_accepted() -> None:
    assert sorted(table["kind"] for table in EXAMPLES.values()) == sorted(KINDS)

    for name, table in EXAMPLES.items():
        assert destination_of(name, table).kind == table["kind"]


def test_the_example_of_a_function_is_a_probe(tmp_path: Path) -> None:
    (program,) = blocks(PAGE, "python")
    names: dict[str, Any] = {"ledger": duly.sqlite(tmp_path / "jobs.db")}
    exec(program, names)
    probe = names["ledger"].destinations.routes()["post"].make().probe

    assert probe(MESSAGE, seconds=1.0) == DidNot("they have no such key")
    names["batches_by_key"][MESSAGE.key] = 4711
    assert probe(MESSAGE, seconds=1.0) == Happened("batch 4711")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_every_field_and_no_other(kind: str) -> None:
    (example,) = (table for table in EXAMPLES.values() if table["kind"] == kind)
    settings = Settings("it", {key: value for key, value in example.items() if not key.startswith("url_")})
    maker_of(kind)(settings)
    general = named_in(SECTIONS["What every kind takes"])

    own = named_in(SECTIONS[HEADING[kind]])

    assert own == set(settings.asked) - general
    assert not own & general


def named_in(section: str) -> set[str]:
    """The keys in the first column of the tables of a section that has keys."""
    (table,) = re.findall(r"^\| key \| meaning \|\n(?:\|.*\n)+", section, flags=re.MULTILINE)
    return {key for line in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", line.split("|")[1])}


def test_the_table_of_the_inbox_is_the_one_that_is_tested() -> None:
    (shown,) = blocks(PAGE, "sql")

    assert shown == TABLE.format(table="duly_inbox", bytes="bytea", instant="timestamptz")


def test_the_command_and_its_probe_do_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for script in blocks(PAGE, "sh"):
        (tmp_path / script.splitlines()[0].removeprefix("# ")).write_text(script)
    (tmp_path / "drop").mkdir()
    monkeypatch.chdir(tmp_path)
    destination = destination_of("drop", EXAMPLES["drop"])

    before = destination.probe(MESSAGE, seconds=20)
    outcomes = [destination.deliver(MESSAGE, seconds=20) for _ in range(2)]
    after = destination.probe(MESSAGE, seconds=20)

    assert outcomes == [Delivered("exit 0")] * 2
    assert (type(before), type(after)) == (DidNot, Happened)
    assert [(each.name, each.read_bytes()) for each in (tmp_path / "drop").iterdir()] == [(MESSAGE.key, MESSAGE.body)]
