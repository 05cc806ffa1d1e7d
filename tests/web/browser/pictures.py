"""Pictures of the pages for the docs: `make pictures`, or `python -m tests.web.browser.pictures FOLDER [NAME…]`.

They are of real pages of a real ledger, whose clock stands; what they show is written in `shop.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tests.web.browser.conftest import CHROMIUM, QUIET, dashboard_of
from tests.web.browser.pages import PAGES, SCHEMES
from tests.web.browser.shop import shop

WIDTH = 1280


def draw(folder: Path, names: list[str]) -> None:
    """Draw the pictures into a folder; all of them, or those of some pages, these in both colour schemes."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made, sync_playwright() as driver:
        book = shop(Path(made) / "ledger.db")
        book.store.close()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        with dashboard_of(book.path, "--allow-writes", named=False) as dashboard:
            for page in PAGES:
                wanted = page.pictures if not names else SCHEMES if page.name in names else ()
                for scheme in wanted:
                    tab = browser.new_page(
                        viewport={"width": WIDTH, "height": page.height}, color_scheme=scheme, reduced_motion="reduce"
                    )
                    tab.goto(dashboard.url + page.path)
                    tab.wait_for_timeout(500)  # until the chip and the plot are there
                    suffix = "" if scheme == "light" else f"-{scheme}"
                    tab.screenshot(path=folder / f"{page.name}{suffix}.png")
                    tab.close()
        browser.close()
    if shutil.which("pngquant"):  # a third of the size, and nobody sees it
        drawn = sorted(str(path) for path in folder.glob("*.png"))
        subprocess.run(["pngquant", "--force", "--ext", ".png", "--strip", "--speed", "1", "64", *drawn], check=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2:])
