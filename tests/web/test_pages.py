"""Pages, through a real server, on each database: what somebody sees who is woken at three."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import quote

import pytest

from duly.cli import main
from duly.web import dashboard
from duly.web.paths import run_path
from tests.books import Book
from tests.web.conftest import Browser, served

FAILED, UNKNOWN = "export:2026-10-24[Europe/Berlin]", "pay:2026-10-24[UTC]"


def words(page: str) -> str:
    """A page as it is read: without its marks, and with one blank between words."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


# -- now ----------------------------------------------------------------------------------------------------------------


def test_the_first_page_says_what_needs_somebody_and_what_is_safe(browser: Browser) -> None:
    page = browser.get("/")

    read = words(page)
    assert "5 periods need you" in read  # failed, unknown, and three hours of rates
    assert "? 1 unknown" in read
    assert "✗ 1 failed" in read
    assert "– 3 missing" in read
    rows = re.findall(r"<tr[^>]*>\s*<td><span class=\"chip.*?</tr>", page, re.DOTALL)
    assert [words(row).split()[1] for row in rows[:3]] == ["unknown", "failed", "missing"], "by age and importance"
    assert "duly explain pay 2026-10-24" in words(rows[0])
    assert "find out whether it happened, then say so" in words(rows[0])


def test_a_row_leads_to_its_run(browser: Browser) -> None:
    page = browser.get("/")

    assert f'href="{run_path(FAILED)}"' in page
    assert browser.ask(run_path(FAILED)).status == 200


def test_what_is_shown_can_be_narrowed_by_the_url(browser: Browser) -> None:
    page = words(browser.get("/?state=failed"))

    assert "export 2026-10-24" in page
    assert "pay 2026-10-24" not in page
    assert "duly status pay" in words(browser.get("/?job=pay")), "the line to type has the filter, too"


@pytest.mark.parametrize(
    ("query", "jobs"), [("state=failed", {"export"}), ("owner=treasury", {"pay", "rates"}), ("state=late", set())]
)
def test_what_is_narrowed_by_the_url_is_narrowed_for_programs_too(browser: Browser, query: str, jobs: set[str]) -> None:
    assert {each["job"] for each in browser.ask(f"/now.json?{query}").document["needs"]} == jobs
    assert {row["job"] for row in csv.DictReader(io.StringIO(browser.get(f"/now.csv?{query}")))} == jobs


def test_nothing_in_sight_is_proven_to_be_complete(quiet: Book) -> None:
    with served(dashboard(quiet.path)) as browser:
        page = words(browser.get("/"))

    assert "The one period due in the last 24 h is complete" in page
    assert "Counted from the schedules of 1 line against the rows of the ledger, up to Wed 7 Oct 00:10Z" in page


def test_a_ledger_without_a_job_is_not_called_complete(tmp_path_factory: pytest.TempPathFactory) -> None:
    book = Book(tmp_path_factory.mktemp("new") / "ledger.db")

    with served(dashboard(book.path)) as browser:
        page = words(browser.get("/"))

    assert "This ledger has no job yet" in page
    assert "complete" not in page.partition("Skip")[2].partition("the same in a shell")[0].replace(
        "completed in 24 h", ""
    )


def test_a_skipped_period_is_not_counted_as_complete(quiet: Book) -> None:
    quiet.clock.set("2026-10-08T00:00:30Z")
    quiet.skip("2026-10-07")

    with served(dashboard(quiet.path)) as browser:
        page = words(browser.get("/"))

    assert "0 of the 1 periods due in the last 24 h are complete, 1 skipped" in page


# -- grid ---------------------------------------------------------------------------------------------------------------


def cells(page: str, line: str) -> list[str]:
    """The states of a row, with what is written in each; a cell in which nothing comes due is empty."""
    (row,) = [row for row in re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", page) if line in words(row)]
    found = re.findall(r"<td(?: class=\"([^\"]*)\")?[^>]*>(.*?)</td>", row)
    states = [(re.findall(r"s-([a-z-]+)", names), words(body)) for names, body in found]
    return [f"{state[0]} {body}".strip() if state else "" for state, body in states]


def test_days_of_the_grid_are_those_of_the_wall_and_the_night_is_marked(browser: Browser) -> None:
    page = browser.get("/grid?from=2026-10-22&n=6")

    heads = re.findall(
        r"<th scope=\"col\"[^>]*title=\"([^\"]*)\"[^>]*data-from=\"([^\"]*)\" data-to=\"([^\"]*)\"", page
    )
    assert [title for title, _, _ in heads] == [
        "2026-10-22",
        "2026-10-23",
        "2026-10-24",
        "2026-10-25: 25 hours long: the clocks are set back",
        "2026-10-26",
        "2026-10-27",
    ]
    assert heads[3][1:] == ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
    export = cells(page, "export")
    assert [cell.split()[0] for cell in export] == ["complete", "complete", "failed", "complete", "coming", "coming"]


def test_what_was_before_a_line_is_not_recorded_and_never_green(browser: Browser) -> None:
    page = browser.get("/grid?from=2026-10-01&n=3")

    for line in ("export", "rates", "pay"):
        assert [cell.split()[0] for cell in cells(page, line)] == ["not-owed"] * 3
    assert "not recorded" in words(page)


def test_a_cell_of_many_windows_counts_them_and_the_worst_gives_it_its_state(browser: Browser) -> None:
    page = browser.get("/grid?from=2026-10-25&n=2")

    whole, begun = cells(page, "rates")
    assert whole == "complete ✓"
    assert begun == "missing 0 4 missing, 0 of 4 complete, 20 to come"


def test_hours_of_the_grid_have_the_hour_that_comes_twice(browser: Browser) -> None:
    page = browser.get("/grid?unit=hour&from=2026-10-25T01&n=4")

    assert [title.partition(":")[0] for title in re.findall(r"<th[^>]* title=\"(2026-10-25T[^\"]*)\"", page)] == [
        "2026-10-25T01",
        "2026-10-25T02",
        "2026-10-25T02~2",
        "2026-10-25T03",
    ]
    assert [cell.split()[0] for cell in cells(page, "rates")] == ["complete"] * 4
    assert len(cells(page, "export")) == 1, "a day spans the hours that it has"


def test_a_filter_that_the_page_does_not_have_is_refused_and_named(browser: Browser) -> None:
    answer = browser.ask("/grid?unti=hour")

    assert answer.status == 400
    assert "unti: this page has no such filter; did you mean unit?" in words(answer.text)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("/grid?unit=month", "unit: 'month' is none of day, hour, week"),
        ("/grid?n=0", "n: '0' is not a whole number from 1 to 200"),
        ("/grid?n=9&n=8", "n: it is given twice"),
        ("/grid?from=yesterday", "from: 'yesterday' cannot be read"),
        ("/grid?zone=Europe/Berln", "zone: "),
        ("/?state=broken", "state: 'broken' is none of"),
        ("/run/what", "key"),
    ],
)
def test_what_cannot_be_understood_names_its_field(browser: Browser, asked: str, says: str) -> None:
    answer = browser.ask(asked)

    assert answer.status == 400
    assert says in words(answer.text).replace("&#39;", "'")
    assert "next" in words(answer.text)


# -- a run --------------------------------------------------------------------------------------------------------------


def test_a_run_says_how_it_stands_why_and_what_may_be_done(browser: Browser) -> None:
    page = words(browser.get(run_path(UNKNOWN)))

    assert "So nothing runs it again until somebody says what happened" in page
    assert "time-out at the provider" in page
    for step in ("Find out whether it happened only looks", "It happened know first", "It did not happen know first"):
        assert step in page
    assert "duly resolve pay 2026-10-24 --as done" in page


def test_a_period_that_never_ran_has_a_page_too(browser: Browser) -> None:
    page = words(browser.get(run_path("rates:2026-10-26T01[Europe/Berlin]")))

    assert "So it is owed: the next poke works it." in page
    assert "came due" in page


def test_a_key_is_one_segment_of_the_path(browser: Browser) -> None:
    key = quote("a%26b/backup:2026-10-26T02:30:00[Europe/Berlin]".replace("%26", "&"), safe="")

    page = browser.get(f"/run/{key}")

    assert "a&amp;b/backup" in page
    assert browser.ask("/run/nobody:2026-10-24[UTC]").status == 404


# -- a job --------------------------------------------------------------------------------------------------------------


def test_a_job_has_its_schedule_windows_policies_and_how_long_it_took(browser: Browser) -> None:
    page = words(browser.get("/job/export"))

    assert "daily in Europe/Berlin" in page
    assert "2026-10-24 failed" in page
    assert "Comes due next" in page
    assert "Of the last 3 completed runs half took no longer than" in page
    assert "contract external" in page


def test_the_windows_of_a_cell_are_listed_on_the_page_of_its_job(browser: Browser) -> None:
    page = words(browser.get("/job/rates?since=2026-10-25T23:00:00Z&until=2026-10-26T23:00:00Z"))

    assert "missing 2026-10-26T00" in page
    assert "coming 2026-10-26T23" in page


def test_a_job_that_is_not_there_is_said_so(browser: Browser) -> None:
    answer = browser.ask("/job/exprot")

    assert answer.status == 404
    assert "the ledger knows no job" in words(answer.text)
    assert "duly jobs list" in words(answer.text)


# -- beside the pages ---------------------------------------------------------------------------------------------------


def test_documents_have_the_shapes_of_the_command_line(
    browser: Browser, book: Book, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    def told(*line: str) -> dict[str, object]:
        assert main([*line, "--json", "--ledger", book.path]) == 0
        said: dict[str, object] = json.loads(capsys.readouterr().out)
        return said

    assert browser.ask("/now.json").document == told("status")
    theirs, ours = browser.ask("/job/export/job.json").document, told("jobs", "show", "export")
    assert {name: theirs[name] for name in ours} == ours
    theirs, ours = browser.ask("/job/export/runs.json").document, told("runs", "export")
    assert theirs == ours
    theirs, ours = browser.ask(f"{run_path(FAILED)}/explain.json").document, told("explain", "export", "2026-10-24")
    assert {**theirs, "next_step": None} == {**ours, "next_step": None}  # ours names the ledger that was typed


def test_tables_hold_what_documents_do(browser: Browser) -> None:
    for beside in ("/now", "/grid", "/job/export/runs", "/job/export/periods", "/job/export/durations"):
        document = browser.ask(f"{beside}.json").document
        answer = browser.ask(f"{beside}.csv")
        (records,) = [document[name] for name in ("needs", "cells", "runs", "periods") if name in document]
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert len(list(csv.DictReader(io.StringIO(answer.text)))) == len(records) > 0


def test_a_link_keeps_what_the_page_is_narrowed_to_and_how_times_are_written(browser: Browser) -> None:
    assert 'href="/job/backup/job.json?scope=a%26b"' in browser.get("/job/backup?scope=a%26b")
    assert '<a href="/?time=utc">Show all</a>' in browser.get("/?owner=nobody&time=utc")
    assert '<a href="/grid?time=utc">Show all</a>' in browser.get("/grid?owner=nobody&time=utc")


def test_how_long_runs_took_is_told_of_the_scope_that_was_looked_at(browser: Browser) -> None:
    assert "completed runs of a&amp;b half took" in browser.get("/job/backup")
    assert "completed runs half took" in browser.get("/job/backup?scope=a%26b")
    assert browser.ask("/job/backup/durations.json").document["scope"] == "a&b"


def test_the_line_for_a_shell_names_a_job_only_where_the_filter_is_the_whole_name(browser: Browser) -> None:
    assert "duly status export --grid" in browser.get("/grid?job=export")
    assert "duly status --grid" in browser.get("/grid?job=exp")


def test_times_are_in_the_zone_of_the_job_with_utc_at_hand(browser: Browser) -> None:
    local, utc = browser.get(run_path(FAILED)), browser.get(run_path(FAILED) + "?time=utc")

    assert (
        '<time datetime="2026-10-24T22:00:00Z" title="2026-10-24T22:00:00Z UTC, 1d5h ago">Sun 25 Oct 00:00+02:00</time>'
        in local
    )
    assert '<time datetime="2026-10-24T22:00:00Z" title="Sun 25 Oct 00:00+02:00">Sat 24 Oct 22:00Z</time>' in utc
    assert 'href="/?time=utc"' in utc, "what was chosen is kept"


def test_nothing_is_written_by_looking(browser: Browser, book: Book) -> None:
    with book.no_commit():
        for path in ("/", "/grid", "/job/export", run_path(FAILED), run_path(UNKNOWN), "/now.json", "/grid.csv"):
            browser.get(path)
