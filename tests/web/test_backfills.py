"""Backfill: from a range to a plan, from its typed count to the last window."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from duly.schedule.spec import daily
from duly.times import DAY
from tests.web.conftest import FORM, WHO, Answer, Hand

RANGE = "2026-10-01..2026-10-05"
WHY = "the feed was wrong"


@pytest.fixture
def job(hand: Hand) -> Hand:
    """A daily job that is known since its first run, and of which nothing before was worked."""
    hand.book.job(schedule=daily("UTC"), overlap=1)
    hand.book.work_all()
    return hand


def start(hand: Hand, **fields: str) -> Answer:
    body = urlencode({"job": "export", "range": RANGE, "reason": WHY, **fields})
    return hand.browser.ask("/backfill/start", "POST", body=body, content_type=FORM, sec_fetch_site="same-origin")


def change(hand: Hand, verb: str, number: int = 1) -> Answer:
    return hand.browser.ask(
        f"/backfill/{number}/{verb}", "POST", body="reason=lunch", content_type=FORM, sec_fetch_site="same-origin"
    )


def test_a_plan_says_what_would_be_done_and_changes_nothing(job: Hand) -> None:
    shown = job.browser.get(f"/backfill?job=export&range={RANGE}")

    assert "<b>4 to be worked</b>" in shown
    assert '<input type="hidden" name="range" value="2026-10-01..2026-10-05">' in shown
    assert f"duly backfill start export {RANGE} --expect 4 --reason" in shown
    assert job.book.rows("select count(*) from duly_backfill") == [(0,)]


def test_from_a_range_to_the_last_window(job: Hand) -> None:
    answer = start(job, expect="4", concurrency="2")

    assert answer.status == 303, answer
    assert answer.headers["location"] == "/backfill/1"
    shown = job.browser.get("/backfill/1")
    assert '<progress max="4" value="0"' in shown
    assert WHO in shown
    job.book.work_backfill(most=1)
    assert '<progress max="4" value="1"' in job.browser.get("/backfill/1")
    job.book.work_backfill()
    assert "<b>4 of 4</b>" in job.browser.get("/backfill/1")
    assert re.search(r"4/4", job.browser.get("/backfill"))


def test_a_count_that_is_not_the_plans_starts_nothing(job: Hand) -> None:
    answer = start(job, expect="5")

    assert answer.status == 400
    assert "expect" in answer.text
    assert 'value="5"' in answer.text  # what was typed is kept
    assert job.book.rows("select count(*) from duly_backfill") == [(0,)]


def test_a_count_is_asked_for(job: Hand) -> None:
    answer = start(job)

    assert answer.status == 400
    assert "expect: it is required" in answer.text


def test_started_twice_with_one_form_it_is_one(job: Hand) -> None:
    first, again = (start(job, expect="4", key="6f1c") for _ in range(2))

    assert [first.status, again.status] == [303, 303]
    assert first.headers["location"] == again.headers["location"] == "/backfill/1"
    assert job.book.rows("select count(*) from duly_backfill") == [(1,)]


def test_it_is_paused_resumed_and_cancelled(job: Hand) -> None:
    start(job, expect="4")

    for verb, state in (("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")):
        assert change(job, verb).status == 303
        assert job.book.rows("select state, said_by, said from duly_backfill") == [(state, WHO, "lunch")]
    assert change(job, "resume").status == 409
    assert "resume …" not in job.browser.get("/backfill/1")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("job=export&range=yesterday", "is no range"),
        ("job=export&range=..2026-10-05", "has no beginning"),
        ("job=exprt&range=-3d..", "exprt"),
        ("job=export&range=-3d..&what=all&concurrency=0", "concurrency: &#39;0&#39; is not a whole number"),
        ("job=export&range=-3d..&order=sideways", "order: &#39;sideways&#39; is none of"),
        ("job=export&range=-3d..&scope=acme", "acme"),
    ],
)
def test_what_can_be_no_plan_says_why_and_keeps_what_was_typed(job: Hand, query: str, says: str) -> None:
    shown = job.browser.get(f"/backfill?{query}")

    assert "There is no plan" in shown
    assert says in shown
    assert re.search(r'name="job" value="expo?rt"', shown)


def test_what_is_there_is_listed_for_programs(job: Hand) -> None:
    start(job, expect="4")
    job.book.clock.advance(DAY)

    document = job.browser.ask("/backfills.json").document
    assert document["schema"] == "duly.backfills.v1"
    assert [(each["id"], each["range"], each["windows"]) for each in document["backfills"]] == [(1, RANGE, 4)]
    assert job.browser.get("/backfills.csv").count("\n") >= 2


def test_a_list_that_is_cut_says_so(job: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        start(job, expect="4")
        change(job, "cancel", number)
    assert "There are older ones" not in job.browser.get("/backfill")

    monkeypatch.setattr("duly.web.pages.backfills.AT_MOST", 1)

    assert "There are older ones" in job.browser.get("/backfill")
    document = job.browser.ask("/backfills.json").document
    assert ([each["id"] for each in document["backfills"]], document["more"]) == ([2], True)


def test_a_backfill_that_nobody_asked_for_is_not_there(job: Hand) -> None:
    assert job.browser.ask("/backfill/7").status == 404
    assert job.browser.ask("/backfill/seven").status == 404


def test_a_window_that_a_backfill_works_needs_nobody_for_being_old(job: Hand) -> None:
    """It was as late when somebody asked for it; else the first page calls for somebody as long as a backfill runs."""
    start(job, expect="4")
    job.book.take_of_backfill()

    shown = job.browser.get("/")

    assert "<h1>The one period due in the last 24 h is complete</h1>" in shown
    assert "running" in shown
