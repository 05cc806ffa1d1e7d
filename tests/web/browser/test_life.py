"""Life in a browser: an open page shows what happens without being asked for again, and says when it cannot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from duly.times import DAY
from tests.web.browser.conftest import Night, Open, walk

FAILED = "/run/export:2026-10-24%5BEurope%2FBerlin%5D"


def chip(page: Any, word: str) -> None:
    """Wait until the chip says a word."""
    page.wait_for_selector(f".chip-life[data-is={word}]")


def seen(page: Any, is_seen: bool) -> None:
    """Tell the page what a browser tells one that is put away, or fetched. Playwright has each tab be in front, always."""
    page.evaluate(
        """is_seen => {
            Object.defineProperty(document, "hidden", { value: !is_seen, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_seen,
    )


def test_a_run_that_completes_is_seen_on_a_page_that_is_open(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    opened = tab(dashboard.url + FAILED)
    page = opened.page
    chip(page, "live")
    page.evaluate("window.isTheSame = true")
    assert page.locator("h1").inner_text().endswith("failed")

    book.retry(book.find("2026-10-24")[1])
    book.work_all("export")

    page.wait_for_selector("h1 .chip.s-complete")
    assert page.evaluate("window.isTheSame") is True, "it was not loaded again"
    assert opened.complaints == []


def test_what_somebody_is_at_stays_when_the_page_is_read_again(going_on: Night, tab: Open) -> None:
    """The focus, by the line that it is in, and how far the grid was moved."""
    book, dashboard = going_on
    opened = tab(f"{dashboard.url}/grid?from=2026-10-01&n=60")
    page = opened.page
    chip(page, "live")
    page.focus("td[tabindex='0']")
    walk(page, "ArrowDown", "export, 2026-10-26")
    walk(page, "ArrowLeft", "export, 2026-10-24: failed")
    moved = page.evaluate("document.querySelector('.scroller').scrollLeft = 333")

    book.retry(book.find("2026-10-24")[1])
    book.work_all("export")

    page.wait_for_selector("tr#of-\\%2Fexport:not(:has(td.s-failed))")
    assert page.evaluate("document.activeElement.closest('tr').id") == "of-%2Fexport"
    assert page.evaluate("document.activeElement.tagName") == "TD"
    assert page.locator("table.grid td[tabindex='0']").count() == 1
    assert page.locator("table.grid td a:not([tabindex='-1'])").count() == 0
    assert page.evaluate("document.querySelector('.scroller').scrollLeft") == moved
    assert opened.complaints == []


def test_what_was_typed_and_not_sent_stays(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    page = tab(dashboard.url).page
    chip(page, "live")
    page.type("input[name=job]", "expo")
    page.keyboard.press("Shift+Home")

    book.work_all("rates")

    page.wait_for_selector("h1:has-text('2 periods need you')")
    assert page.input_value("input[name=job]") == "expo"
    assert page.evaluate("document.activeElement.name") == "job"
    assert page.evaluate("getSelection().toString()") == "expo"


def test_a_server_that_died_makes_the_page_stale_and_its_return_live(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    page = tab(dashboard.url).page
    chip(page, "live")

    dashboard.kill()
    chip(page, "stale")
    assert page.locator("h1").inner_text() == "5 periods need you", "what was so is still shown"
    assert "this is what was so at" in page.get_attribute(".chip-life", "title")
    book.work_all("rates")
    dashboard.start()

    chip(page, "live")
    page.wait_for_selector("h1:has-text('2 periods need you')")
    assert page.title() == "(2) Now · duly"


def test_a_ledger_that_is_away_makes_the_page_stale(going_on: Night, tab: Open, tmp_path: Path) -> None:
    book, dashboard = going_on
    page = tab(dashboard.url).page
    chip(page, "live")

    book.store.close()
    os.rename(book.path, tmp_path / "aside.db")
    chip(page, "stale")
    assert "the server answers 503" in page.get_attribute(".chip-life", "title")
    os.rename(tmp_path / "aside.db", book.path)

    chip(page, "live")


def test_a_page_that_is_paused_hears_and_asks_nothing(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    page = tab(dashboard.url).page
    chip(page, "live")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.click(".chip-life")
    chip(page, "paused")
    book.work_all("rates")
    page.reload()
    chip(page, "paused")
    asked.clear()
    before = page.locator("h1").inner_text()
    book.work_all("pay")
    book.clock.advance(DAY)
    assert dashboard.ask("/").status == 200
    assert asked == []
    assert page.locator("h1").inner_text() == before

    page.click(".chip-life")
    chip(page, "live")
    page.wait_for_function("before => document.querySelector('h1').innerText !== before", arg=before)


def test_a_tab_that_nobody_sees_is_paused(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    page = tab(dashboard.url).page
    chip(page, "live")

    seen(page, False)
    chip(page, "paused")
    book.work_all("rates")
    seen(page, True)

    page.wait_for_selector("h1:has-text('2 periods need you')")
    chip(page, "live")


def test_time_alone_is_a_reason_to_read_again(going_on: Night, tab: Open) -> None:
    """A window becomes late without anything being written."""
    _, dashboard = going_on
    page = tab(dashboard.url).page
    page.clock.install()
    page.reload()
    chip(page, "live")

    with page.expect_response(lambda answer: answer.url == f"{dashboard.url}/") as read:
        page.clock.fast_forward(60_000)

    assert read.value.status == 200


def test_where_no_stream_is_to_be_had_the_page_asks_now_and_then(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    opened = tab("about:blank")
    page = opened.page
    page.route("**/life", lambda route: route.fulfill(status=503))
    page.clock.install()
    page.goto(dashboard.url)
    chip(page, "live")

    book.work_all("rates")
    with page.expect_response(lambda answer: answer.url == f"{dashboard.url}/"):
        page.clock.fast_forward(15_000)

    page.wait_for_selector("h1:has-text('2 periods need you')")
    chip(page, "live")


def test_a_page_that_reads_no_ledger_has_nothing_to_hear(going_on: Night, tab: Open) -> None:
    opened = tab(f"{going_on.dashboard.url}/lab?cron=30+2+*+*+*&zone=UTC")

    assert opened.page.locator(".life").count() == 0
    assert (
        opened.page.evaluate("performance.getEntriesByType('resource').some(each => each.name.endsWith('/life'))")
        is False
    )
    assert opened.complaints == []


def test_without_a_script_there_is_a_link_to_reload(going_on: Night, tab: Open) -> None:
    book, dashboard = going_on
    page = tab(f"{dashboard.url}/?job=rates", java_script_enabled=False).page
    assert page.locator("h1").inner_text() == "3 periods need you"

    book.work_all("rates")
    page.click("a:text-is('reload')")

    assert page.url == f"{dashboard.url}/?job=rates"
    assert page.locator("h1").inner_text() != "3 periods need you"
