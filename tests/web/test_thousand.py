"""The dashboard of a ledger with a thousand jobs, on each database: every page answers, no longer than a page is, and what it
asks of the database is counted.
"""

from __future__ import annotations

import gzip
import re
import types
from collections.abc import Generator, Iterator
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from duly.ledger.ask import Ask
from duly.store.protocol import Store
from duly.web import dashboard
from duly.web.reading import Reader
from tests.books import EACH_DATABASE, book_on
from tests.web.conftest import Browser, served
from tests.web.seeded import DENSE, HOURS, seed

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

JOBS, DENSE_ONES = 1_000, 100
GRID = f"/grid?job={DENSE}&unit=hour&n={HOURS}"


class Counting:
    """A store that notes the name of each statement that an operation asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[str] = []

    def read(self, operation: Operation[Any]) -> Any:
        return self._store.read(self._noted(operation))

    @types.coroutine
    def _noted(self, operation: Operation[Any]) -> Generator[Ask, Any, Any]:
        answer: Any = None
        while True:
            try:
                ask = operation.send(answer)
            except StopIteration as end:
                return end.value
            if ask.statement is not None:
                self.asked.append(ask.statement.name)
            answer = yield ask

    def stamp(self) -> str:
        return self._store.stamp()

    def close(self) -> None:
        self._store.close()


class Thousand:
    """The dashboard of the ledger, and what its last page asked."""

    def __init__(self, browser: Browser, counting: Counting) -> None:
        self.browser = browser
        self._counting = counting

    def page(self, path: str) -> str:
        self._counting.asked.clear()
        return self.browser.get(path)

    def asked(self, path: str) -> list[str]:
        """The statements that a page takes."""
        self.page(path)
        return list(self._counting.asked)


@pytest.fixture(scope="module", params=EACH_DATABASE)
def thousand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Thousand]:
    with book_on(request, tmp_path_factory.mktemp("thousand")) as book:
        seed(book, jobs=JOBS, dense=DENSE_ONES)
        counting = Counting(book.open())  # type: ignore[arg-type, unused-ignore]
        with served(dashboard(Reader(lambda: counting, keeps=True, threads=1))) as browser:  # type: ignore[arg-type, return-value]
            yield Thousand(browser, counting)
        counting.close()


# -- the grid -----------------------------------------------------------------------------------------------------------


def test_a_grid_of_a_hundred_lines_asks_no_more_than_one_of_ten(thousand: Thousand) -> None:
    """Among ten there is a line of each kind: well, failed, missing, running, unknown, under a backfill."""
    ten, hundred = thousand.asked(f"{GRID}&rows=10"), thousand.asked(f"{GRID}&rows=100")

    assert sorted(ten) == sorted(hundred)
    assert len(hundred) == len(set(hundred)), "each is asked once"
    assert len(hundred) <= 12, hundred


@pytest.mark.parametrize("unit", ["hour", "day", "week"])
def test_whatever_the_pieces_are_each_statement_is_asked_once(thousand: Thousand, unit: str) -> None:
    asked = thousand.asked(f"/grid?unit={unit}&rows=200")

    assert len(asked) == len(set(asked)), asked


def test_a_hundred_lines_of_four_days_are_one_page_of_less_than_200_kb(thousand: Thousand) -> None:
    path = f"{GRID}&rows=100"
    connection = HTTPConnection("127.0.0.1", thousand.browser.port, timeout=60)
    connection.request("GET", path, headers={"Host": "localhost", "Accept-Encoding": "gzip"})
    sent = connection.getresponse().read()
    connection.close()

    page = gzip.decompress(sent).decode()
    assert len(sent) < 200_000
    assert page.count('<th scope="row">') == 100
    assert "s-failed" in page
    assert "s-missing" in page
    assert "s-unknown" in page
    assert "s-running" in page


def test_rows_are_paged_and_no_line_is_lost(thousand: Thousand) -> None:
    named: list[str] = []
    for number in range(1, 6):
        page = thousand.page(f"/grid?rows=200&page={number}")
        named += re.findall(r'<th scope="row"><a href="/job/([^"?]+)', page)
        assert f"page {number} of 5" in page

    assert len(named) == len(set(named)) == JOBS
    assert named == sorted(named)


# -- every other page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "statements", "size"),
    [
        ("/", 250, 120_000),
        ("/?job=hourly-0007", 40, 30_000),
        ("/grid", 12, 250_000),
        ("/job/hourly-0000", 40, 60_000),
        ("/job/hourly-0009?since=2026-10-20&until=2026-10-27", 40, 150_000),
        ("/job/nightly-0900", 40, 60_000),
        ("/run/hourly-0004:2026-10-25T19%5BUTC%5D", 40, 30_000),
        ("/lab?every=1h", 0, 30_000),
    ],
)
def test_every_page_answers_with_so_many_statements_and_no_more_than_a_page(
    thousand: Thousand, path: str, statements: int, size: int
) -> None:
    page = thousand.page(path)

    assert len(page) < size
    assert len(thousand.asked(path)) <= statements, thousand.asked(path)


def test_what_needs_somebody_is_told_of_a_thousand_jobs(thousand: Thousand) -> None:
    page = thousand.page("/")

    assert page.count('<tr id="') + page.count("<tr>") < 400, "a list of thousands is no list"
    assert re.search(r"\? \d+ unknown", " ".join(re.sub(r"<[^>]+>", " ", page).split()))
