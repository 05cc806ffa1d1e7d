"""What is done through the dashboard, as somebody does it in a browser: with and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book
from tests.web.browser.conftest import Night, Open, dashboard_of, walk
from tests.web.conftest import WHO, night

UNKNOWN = "/run/pay:2026-10-24%5BUTC%5D"
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with a script", "without"])


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Night]:
    """The night, at a dashboard that allows changes."""
    book = Book(tmp_path / "ledger.db", at="2026-10-23T00:00:00Z")
    night(book)
    with dashboard_of(book.path, "--allow-writes") as dashboard:
        yield Night(book, dashboard)
    book.store.close()


@SCRIPTS
def test_of_two_tabs_that_resolve_one_unknown_one_wins_and_the_other_is_told(
    changed: Night, tab: Open, scripts: bool
) -> None:
    book, dashboard = changed
    tabs = [tab(f"{dashboard.url}/unknown", java_script_enabled=scripts) for _ in range(2)]
    for each, answer in zip(tabs, ("It happened …", "It did not …"), strict=True):
        each.page.click(f"text={answer}")
        each.page.fill("textarea[name=reason]", f"their log: {answer}")

    for each in tabs:
        each.page.click("button.do")

    won, lost = (each.page for each in tabs)
    assert won.url == dashboard.url + UNKNOWN
    assert won.locator("h1").inner_text().endswith("complete")
    assert won.locator(".latest").inner_text().startswith(WHO)
    assert lost.locator("[role=alert] h2").inner_text() == "Nothing was changed"
    assert "it is completed" in lost.locator("[role=alert]").inner_text()
    assert lost.input_value("textarea[name=reason]") == "their log: It did not …", "what was written is not lost"
    assert len(book.events("resolved")) == 1
    lost.click("text=See how it stands now")
    assert lost.locator("h1").inner_text().endswith("complete")


def test_from_a_range_that_is_selected_to_a_backfill_that_is_done(changed: Night, tab: Open) -> None:
    book, dashboard = changed
    opened = tab(f"{dashboard.url}/grid?unit=hour&from=2026-10-25&n=30")
    page = opened.page
    page.focus("td[tabindex='0']")
    walk(page, "ArrowDown", "rates, ")
    walk(page, "ArrowLeft", "rates, 2026-10-26T00")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    page.click("text=Backfill these")
    many = page.locator("#plan b").first.inner_text()

    page.fill("#plan input[name=expect]", many)
    page.fill("#plan textarea[name=reason]", "the feed was wrong")
    page.click("button.do")

    page.wait_for_url("**/backfill/1")
    assert page.locator(".bar b").inner_text() == f"0 of {many}"
    page.wait_for_selector(".chip-life[data-is=live]")
    assert book.work_backfill("rates")  # its workers take its windows and those that come due by turns
    book.work_all("rates")
    book.work_backfill("rates")
    page.wait_for_selector(".bar b:text-is('1 of 1')")  # seen without a reload; the others were worked as they came due
    page.wait_for_selector("h1 .chip.s-complete")
    assert opened.complaints == []


@SCRIPTS
def test_what_cannot_be_done_yet_keeps_what_was_typed(changed: Night, tab: Open, scripts: bool) -> None:
    book, dashboard = changed
    page = tab(dashboard.url + UNKNOWN + "/resolve?as=later", java_script_enabled=scripts).page
    page.fill("textarea[name=reason]", "they call back")
    page.fill("input[name=again_in]", "soon")

    page.click("button.do")

    assert "again_in: 'soon' is not a duration" in page.locator("[role=alert]").inner_text()
    assert page.input_value("textarea[name=reason]") == "they call back"
    page.fill("input[name=again_in]", "2h")
    page.click("button.do")
    assert page.url == dashboard.url + UNKNOWN
    assert [each[:2] for each in book.events("put_off")] == [(WHO, "they call back")]


def test_a_button_that_is_pressed_twice_does_it_once(changed: Night, tab: Open) -> None:
    book, dashboard = changed
    page = tab(f"{dashboard.url}/backfill?job=rates&range=2026-10-26..").page
    many = page.locator("#plan b").first.inner_text()
    page.fill("#plan input[name=expect]", many)
    page.fill("#plan textarea[name=reason]", "the feed was wrong")

    page.dblclick("button.do")

    page.wait_for_url("**/backfill/1")
    assert book.rows("select count(*) from duly_backfill") == [(1,)]
