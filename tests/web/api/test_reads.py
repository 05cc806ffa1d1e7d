"""Reads: the API says what the command line says of the same ledger, piece by piece where it is long."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from duly.cli import main
from duly.evidence.verdict import WORDS
from duly.web.api import PREFIX
from duly.web.api.reads import READS
from tests.books import Book
from tests.web.api.conftest import FAILED, UNKNOWN, Asker


class Shell:
    """The command line on the same ledger."""

    def __init__(self, book: Book, capsys: pytest.CaptureFixture[str]) -> None:
        self._book = book
        self._capsys = capsys

    def __call__(self, *line: str) -> dict[str, Any]:
        assert main([*line, "--json", "--ledger", self._book.path]) == 0
        said: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return said


@pytest.fixture
def told(ledger: Book, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(ledger, capsys)


def key_of(record: dict[str, Any]) -> str:
    return str(record["key"])


def in_path(key: str) -> str:
    return quote(key, safe="")


def test_what_needs_somebody_is_what_status_says(api: Asker, told: Shell) -> None:
    assert api.get("/status") == told("status")
    assert api.get("/status?job=export") == told("status", "export")
    assert api.get("/status?scope=acme") == told("status", "--scope", "acme")


def test_jobs_are_those_of_the_command_line(api: Asker, told: Shell) -> None:
    theirs = told("jobs", "list")["jobs"]

    assert api.all_of("/jobs", "jobs", limit=2) == theirs
    assert len(theirs) == 5


def test_a_job_is_told_of_as_in_a_shell(api: Asker, told: Shell) -> None:
    ours, theirs = api.get("/job/invoice"), told("jobs", "show", "invoice")

    assert {name: ours[name] for name in theirs} == theirs


@pytest.mark.parametrize("job", ["export", "pay", "rates", "invoice", "backup"])
@pytest.mark.parametrize("limit", [1, 2, 50])
def test_windows_are_those_of_the_grid_in_a_shell(api: Asker, told: Shell, job: str, limit: int) -> None:
    theirs = told("status", job, "--grid", "-n", "500")["periods"]

    ours = api.all_of(f"/job/{job}/windows", "periods", limit=limit)

    assert sorted(ours, key=key_of) == sorted(theirs, key=key_of)
    assert len({key_of(each) for each in ours}) == len(ours) > 0


def test_windows_of_a_line_come_the_newest_first(api: Asker) -> None:
    due = [each["due"] for each in api.all_of("/job/rates/windows", "periods", limit=3)]

    assert due == sorted(due, reverse=True)


@pytest.mark.parametrize("asked", [(), ("export",), ("invoice",), ("rates",)])
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_runs_are_those_of_the_command_line(api: Asker, told: Shell, asked: tuple[str, ...], limit: int) -> None:
    theirs = told("runs", *asked, "-n", "500")["runs"]

    ours = api.all_of(f"/runs{''.join(f'?job={job}' for job in asked)}", "runs", limit=limit)

    assert sorted(ours, key=key_of) == sorted(theirs, key=key_of)
    assert len({key_of(each) for each in ours}) == len(ours) > 0


def test_runs_of_a_state_are_those_of_the_command_line(api: Asker, told: Shell) -> None:
    for state in ("failed", "unknown", "completed", "running"):
        theirs = told("runs", "--state", state, "-n", "500")["runs"]
        ours = api.all_of(f"/runs?state={state}", "runs", limit=2)
        assert sorted(ours, key=key_of) == sorted(theirs, key=key_of), state
        assert ours, state


def test_unknowns_are_those_that_status_counts(api: Asker, told: Shell) -> None:
    theirs = [each for each in told("status")["needs"] if each["state"] == "unknown"]

    ours = api.all_of("/unknowns", "runs", limit=1)

    assert sorted(ours, key=key_of) == sorted(theirs, key=key_of)
    assert [key_of(each) for each in ours] == [UNKNOWN]


def test_a_run_is_told_of_as_in_a_shell(api: Asker, told: Shell) -> None:
    assert api.get(f"/run/{in_path(FAILED)}") == told("runs", "show", FAILED)
    ours, theirs = api.get(f"/run/{in_path(FAILED)}/explain"), told("explain", FAILED)
    assert {**ours, "next_step": None} == {**theirs, "next_step": None}  # theirs names the ledger that was typed
    key = "b%2Fc/invoice:2026-10-25[UTC]"
    assert api.get(f"/run/{in_path(key)}/messages") == told("outbox", "show", key)


def test_a_window_without_a_row_is_explained_and_is_no_run(api: Asker) -> None:
    key = in_path("rates:2026-10-26T03[Europe/Berlin]")

    assert api.get(f"/run/{key}/explain")["run"]["state"] in WORDS
    assert api.ask(f"/run/{key}").document["code"] == "unknown-run"


def test_messages_are_those_of_the_command_line(api: Asker, told: Shell) -> None:
    theirs = told("outbox", "list")["messages"]

    ours = api.all_of("/messages", "messages", limit=1)

    assert sorted(ours, key=lambda each: each["name"]) == sorted(theirs, key=lambda each: each["name"])
    assert len(ours) == 3
    assert [each["state"] for each in api.get("/messages?state=unknown&to=billing")["messages"]] == ["unknown"]
    assert api.get("/messages?to=nobody")["messages"] == []


def test_backfills_are_those_of_the_command_line(api: Asker, told: Shell) -> None:
    assert api.all_of("/backfills", "backfills", limit=1) == told("backfill", "list")["backfills"]
    assert api.get("/backfill/1") == told("backfill", "show", "1")
    assert api.all_of("/backfills?job=invoice&scope=acme", "backfills", limit=5)[0]["scope"] == "acme"


@pytest.mark.parametrize("limit", [1, 4, 50])
def test_the_grid_is_that_of_the_page(api: Asker, limit: int) -> None:
    page = api.browser.ask("/grid.json?unit=day&from=2026-10-20&n=7").document

    document = api.get("/grid?unit=day&from=2026-10-20&n=7")
    cells = api.all_of("/grid?unit=day&from=2026-10-20&n=7", "cells", limit=limit)

    assert cells == page["cells"]
    assert {name: document[name] for name in ("unit", "zone", "pieces", "lines")} == {
        name: page[name] for name in ("unit", "zone", "pieces", "lines")
    }


def test_every_read_is_told_of_in_these_stories(api: Asker) -> None:
    """Each has a document that fits its schema, whatever else is said of it above."""
    paths = {
        "/job/{name}/windows": "/job/export/windows",
        "/job/{name}": "/job/export",
        "/run/{key:path}/explain": f"/run/{in_path(FAILED)}/explain",
        "/run/{key:path}/messages": f"/run/{in_path(FAILED)}/messages",
        "/run/{key:path}": f"/run/{in_path(FAILED)}",
        "/backfill/{id:int}": "/backfill/2",
    }

    for read in READS:
        assert api.get(paths.get(read.path, read.path))["schema"] == read.answers


def test_the_next_batch_is_named_in_a_header_as_well_and_keeps_the_question(api: Asker) -> None:
    answer = api.ask("/runs?job=export&limit=1&state=completed")
    there = answer.document["next"]

    assert answer.headers["link"] == f'<{there}>; rel="next"'
    assert there.startswith(f"{PREFIX}/runs?job=export&limit=1&state=completed&after=")
    last = api.ask("/runs?job=export&limit=200")
    assert last.document["next"] is None
    assert "link" not in last.headers


@pytest.mark.parametrize(
    ("path", "status", "field", "says"),
    [
        ("/runs?limt=1", 400, "limt", "there is no such parameter here"),
        ("/runs?limit=0", 400, "limit", "is not a whole number from 1 to 200"),
        ("/runs?limit=1&limit=2", 400, "limit", "given twice"),
        ("/runs?limit=1000000000000000000000", 400, "limit", "is not a whole number"),
        ("/runs?after=x", 400, "after", "is not written so"),
        ("/runs?state=well", 400, "state", "is none of open, running"),
        ("/runs?job=", 400, "job", "is not written so"),
        ("/runs?job=exprot", 404, None, "knows no job 'exprot'"),
        ("/runs?job=export&scope=x", 404, None, "no scope 'x'"),
        ("/status?time=utc", 400, "time", "there is no such parameter"),
        ("/status?scope=a%00b", 400, "scope", "what is no text"),
        ("/openapi.json?x=1", 400, "x", "there is none"),
        ("/grid?from=2026-02-30", 400, "from", "is no day"),
        ("/grid?from=2026-10-05%0A", 400, "from", "is no day"),
        ("/grid?zone=Mars/Base", 400, "zone", "zone"),
        ("/grid?retired=1", 400, "retired", "neither true nor false"),
        ("/job/exprot", 404, None, "knows no job"),
        ("/job/ex%00port", 404, None, "knows no job"),
        ("/job/export/windows?scope=x", 404, None, "no scope 'x'"),
        ("/run/export", 404, None, "write JOB:WINDOW[ZONE]"),
        ("/run/export%00:2026-10-05%5BUTC%5D", 404, None, "is not a job name"),
        ("/run/export:2026-10-24T02:00:00Z/explain", 404, None, "export counts by day"),
        ("/run/export:2026-10-24%5BEurope/Berlin%5D%237/messages", 404, None, ""),
        ("/backfill/9", 404, None, "no backfill"),
        ("/backfill/99999999999999999999", 404, None, "no backfill"),
        ("/backfill/x", 404, None, "no backfill"),
        ("/nothing", 404, None, "There is no such page"),
        ("/", 404, None, "There is no such page"),
    ],
)
def test_what_cannot_be_answered_is_a_problem_that_names_its_field(
    api: Asker, path: str, status: int, field: str | None, says: str
) -> None:
    answer = api.ask(path)

    assert answer.status == status, answer
    assert answer.document.get("field") == field
    assert says in answer.document["detail"]


def test_a_method_that_is_not_for_a_path_is_told_which_is(api: Asker) -> None:
    for path, method, allowed in (
        ("/runs", "OPTIONS", "GET, HEAD"),
        ("/openapi.json", "OPTIONS", "GET, HEAD"),
        (f"/run/{in_path(FAILED)}/retry", "GET", "POST"),
        (f"/run/{in_path(FAILED)}/retry", "HEAD", "POST"),
    ):
        answer = api.browser.ask(PREFIX + path, method)
        assert (answer.status, answer.headers["allow"]) == (405, allowed), (path, method)


def test_a_head_is_a_get_without_its_body(api: Asker) -> None:
    answer = api.browser.ask(f"{PREFIX}/runs", "HEAD")

    assert (answer.status, answer.text) == (200, "")


def test_nothing_is_written_by_reading(api: Asker, ledger: Book) -> None:
    with ledger.no_commit():
        for path in (
            "/status",
            "/jobs",
            "/runs",
            "/unknowns",
            "/messages",
            "/backfills",
            "/grid",
            "/job/rates/windows",
        ):
            api.get(path)
