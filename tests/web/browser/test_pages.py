"""Each page in a browser: quiet, and readable by everybody, in light and dark, large and small, with a script and without."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browser.conftest import Dashboard, Open, here, walk
from tests.web.browser.pages import PAGES, Shown

EACH_PAGE = pytest.mark.parametrize("shown_page", PAGES, ids=[page.name for page in PAGES])


def violations(page: Any) -> list[str]:
    """What axe finds of what is against the accessibility guidelines."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]


@EACH_PAGE
def test_nobody_is_shut_out_in_light_or_in_dark(shown: Dashboard, tab: Open, shown_page: Shown) -> None:
    opened = tab(shown.url + shown_page.path, reduced_motion="reduce")

    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        assert violations(opened.page) == []


@EACH_PAGE
def test_a_page_is_quiet_and_moves_nothing_of_itself(shown: Dashboard, tab: Open, shown_page: Shown) -> None:
    """Neither the policy for scripts and styles nor anything else has a reason to complain."""
    opened = tab(shown.url + shown_page.path, reduced_motion="reduce")
    opened.page.wait_for_load_state("load")
    moving = opened.page.evaluate(
        """() => [...document.querySelectorAll("*")].filter(each => {
            const style = getComputedStyle(each);
            return style.animationName !== "none" || style.transitionDuration !== "0s";
        }).map(each => each.outerHTML.slice(0, 100))"""
    )

    if shown_page.status != 200:  # which a browser says of each such answer
        assert f"responded with a status of {shown_page.status}" in opened.complaints.pop()
    assert opened.complaints == []
    assert moving == []


@EACH_PAGE
@pytest.mark.parametrize("width", [640, 320], ids=["twice as large", "four times as large"])
def test_a_page_that_is_made_larger_is_read_downwards_only(
    shown: Dashboard, tab: Open, shown_page: Shown, width: int
) -> None:
    """As many points as a window of 1,280 has at 200 %, and at 400 %."""
    page = tab(shown.url + shown_page.path, viewport={"width": width, "height": 400}).page

    wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]


@EACH_PAGE
def test_a_page_says_the_same_without_a_script(shown: Dashboard, tab: Open, shown_page: Shown) -> None:
    with_one = tab(shown.url + shown_page.path).page
    without = tab(shown.url + shown_page.path, java_script_enabled=False).page

    for what in ("h1", "h2", "main table:not(.u-legend) tbody", "dl.facts"):
        said = [text.split() for text in with_one.locator(what).all_inner_texts()]
        read = [text.split() for text in without.locator(what).all_inner_texts()]
        assert read == [[word for word in text if word != "copy"] for text in said], what
    assert without.locator("button.copy").first.is_hidden(), "it could do nothing"


# -- the grid by keys ---------------------------------------------------------------------------------------------------

GRID = "/grid?from=2026-10-08&n=20"


def test_the_grid_is_one_stop_and_walked_by_arrows(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID).page
    page.focus("nav[aria-label=Time] a[rel=next]")

    page.keyboard.press("Tab")
    assert here(page).startswith("db/backup, 2026-10-26: ")
    for key, says in (
        ("ArrowLeft", "db/backup, 2026-10-25: 25 hours long: the clocks are set back"),
        ("ArrowRight", "db/backup, 2026-10-26: complete"),
        ("ArrowDown", "files/backup, 2026-10-26: failed: exit 1"),
        ("Home", "files/backup, 2026-10-08: complete"),
        ("ArrowLeft", "files/backup: Enter opens the job"),
        ("ArrowRight", "files/backup, 2026-10-08: complete"),
        ("End", "files/backup, 2026-10-27: coming"),
        ("ArrowRight", "files/backup, 2026-10-27: coming"),
        ("ArrowUp", "db/backup, 2026-10-27: coming"),
        ("ArrowUp", "db/backup, 2026-10-27: coming"),
    ):
        page.keyboard.press(key)
        assert here(page).startswith(says), key
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('table')") is None, "the grid is one stop"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") == "TD"


def test_a_period_that_is_longer_is_one_cell(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID).page
    page.focus("td[tabindex='0']")
    page.keyboard.press("Home")
    walk(page, "ArrowDown", "reports")

    page.keyboard.press("ArrowRight")

    assert here(page).startswith("reports, 2026-10-12 to 2026-10-18: complete")


def test_enter_opens_what_a_cell_holds(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID).page
    page.focus("td[tabindex='0']")
    page.keyboard.press("ArrowDown")

    page.keyboard.press("Enter")

    page.wait_for_url("**/run/files%2Fbackup:2026-10-26T02:30:00*")
    assert page.locator("h1").inner_text().endswith("failed")


def test_a_filter_is_sent_without_a_reload_and_stands_in_the_address(shown: Dashboard, tab: Open) -> None:
    opened = tab(shown.url + GRID)
    page = opened.page
    page.evaluate("window.isTheSame = true")

    page.select_option("select[name=owner]", "treasury")

    page.wait_for_selector("table.grid tbody tr:nth-child(2):last-child")
    assert "owner=treasury" in page.url
    assert page.evaluate("window.isTheSame") is True
    assert page.locator("td[tabindex='0']").count() == 1, "it can be walked as before"
    assert opened.complaints == []


# -- a range of the grid ------------------------------------------------------------------------------------------------

RANGE = "/backfill?job=backup&scope=files&range=2026-10-21T22%3A00%3A00Z..2026-10-24T22%3A00%3A00Z"


def begin_at(page: Any, says: str) -> None:
    """Walk to a cell of the second line."""
    page.focus("td[tabindex='0']")
    walk(page, "ArrowDown", "files/backup")
    walk(page, "ArrowLeft", says)


def offered(page: Any, url: str) -> str:
    """Where the line below the grid leads to, below the root."""
    found: str = page.locator(".readout a").evaluate("link => link.href")
    return found.removeprefix(url)


def test_shift_and_arrows_select_a_range_to_backfill(shown: Dashboard, tab: Open) -> None:
    opened = tab(shown.url + GRID)
    page = opened.page
    begin_at(page, "files/backup, 2026-10-24")

    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")

    assert here(page) == "files/backup, 2026-10-22 to 2026-10-24 selected. Backfill these"
    assert page.locator("td[data-in]").count() == 3
    assert offered(page, shown.url) == RANGE
    assert violations(page) == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Backfill these"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    assert page.locator("td[data-in]").count() == 0
    assert page.locator(".readout a").count() == 0


def test_what_was_selected_is_what_is_planned(shown: Dashboard, tab: Open) -> None:
    page = tab(f"{shown.url}/grid?unit=hour&from=2026-10-25&n=30").page
    page.focus("td[tabindex='0']")
    walk(page, "ArrowDown", "rates, 2026-10-26T03")  # through a day, which is one cell
    page.keyboard.press("ArrowLeft")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowLeft")
    assert page.locator("td[data-in]").count() == 4

    page.click("text=Backfill these")

    assert page.locator("#plan b").first.inner_text() == "4", "the three that are missing, and the one that is due"
    assert page.locator("#plan .window").all_inner_texts() == ["2026-10-25T23", "2026-10-26T02"]


def test_the_second_of_two_cells_is_clicked_with_shift(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID).page
    row = page.locator("tr[data-job=backup]").nth(1)
    begin_at(page, "files/backup, 2026-10-24")

    row.locator("td").nth(14).click(modifiers=["Shift"])

    assert offered(page, shown.url) == RANGE
    assert page.url == shown.url + GRID, "and no other page is opened"


def test_a_range_is_drawn_with_a_mouse(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID).page
    row = page.locator("tr[data-job=backup]").nth(1)

    row.locator("td").nth(16).hover()
    page.mouse.down()
    row.locator("td").nth(15).hover()
    row.locator("td").nth(14).hover()
    page.mouse.up()

    assert offered(page, shown.url) == RANGE
    assert page.url == shown.url + GRID
    row.locator("td").nth(18).click()
    page.wait_for_url("**/run/files%2Fbackup*")


def test_without_a_script_a_range_is_written(shown: Dashboard, tab: Open) -> None:
    page = tab(shown.url + GRID, java_script_enabled=False).page

    page.click("summary:text-is('Backfill a range')")
    page.fill("form.backfill input[name=job]", "backup")
    page.fill("form.backfill input[name=scope]", "files")
    page.fill("form.backfill input[name=range]", "2026-10-22..2026-10-25")
    page.click("form.backfill button")

    assert page.url == f"{shown.url}/backfill?job=backup&scope=files&range=2026-10-22..2026-10-25"
