"""The page of the API: its commands run, and its tables have every path, field and status that there is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.action import ATTEMPT
from duly.web.actions import ACTIONS
from duly.web.api.problems import REASONS
from duly.web.api.reads import READS
from duly.web.settings import Settings
from tests.books import Book
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks
from tests.web.conftest import served

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def _written(path: str) -> str:
    """A path as the page writes it."""
    return path.replace("{name}", "NAME").replace("{key:path}", "KEY").replace("{id:int}", "ID")


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger.db", at="2026-10-04T00:00:00Z")
    book.job(schedule=daily("UTC"), retries=0)
    book.clock.set("2026-10-06T03:00:00Z")
    failed = Ending("failed", "disk full", retry=False)
    book.write(fail_or_raise(book.take("2026-10-05"), failed, retry_in=None, error="disk full"))

    with served(dashboard(book.path, Settings(allow_writes=True))) as browser:
        script = "\n".join(blocks(PAGE, "sh")).replace("127.0.0.1:8327", f"127.0.0.1:{browser.port}")
        said = subprocess.run(
            ["sh", "-e", "-c", script], cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=False
        )
    book.store.close()

    assert said.returncode == 0, said.stderr + said.stdout
    assert '"schema": "duly.status.v1"' in said.stdout
    assert 'first.json:      "window": "2026-10-05"' in said.stdout
    assert 'second.json:      "window": "2026-10-04"' in said.stdout
    assert said.stdout.count('"schema": "duly.change.v1"') == 3
    assert "location: /api/v1/run/export:2026-10-05%5BUTC%5D" in said.stdout
    assert '"code": "not-understood", "field": "stat"' in said.stdout
    assert '"code": "payload-differs"' in said.stdout
    assert book.rows("select count(*) from duly_event where kind = 'retried'") == [(1,)]


def test_every_read_is_in_the_table_with_its_schema() -> None:
    rows = re.findall(r"^\| `(/[^`]+)` \| `(duly\.\w+\.v1)` \|", PAGE, re.MULTILINE)

    assert sorted(rows) == sorted((_written(read.path), read.answers) for read in READS)


def test_every_action_is_in_the_table_with_its_fields() -> None:
    rows = re.findall(
        r"^\| `(/(?:run|backfill)/[^|]+) \| (.+) \|$", PAGE.partition("## What can be changed")[2], re.MULTILINE
    )
    told: dict[str, set[str]] = {}
    for paths, fields in rows:
        first, *others = re.findall(r"[\w/-]+", paths)
        root = first.rpartition("/")[0]
        for path in (first, *(f"{root}/{name}" for name in others)):
            told[path] = set(re.findall(r"`(\w+)`", fields)) - {"done", "later"}
    for path in ("/run/KEY/resolve-message",):
        told[path] |= told["/run/KEY/resolve"]

    assert told == {
        _written(action.path): {field.name for field in action.fields if field != ATTEMPT} for action in ACTIONS
    }


def test_every_status_has_its_line() -> None:
    table = PAGE.partition("| status | when |")[2]

    assert {
        int(each) for each in re.findall(r"\b([45]\d\d)\b", "".join(re.findall(r"^\| [\d, ]+ \|", table, re.M)))
    } == set(REASONS)
