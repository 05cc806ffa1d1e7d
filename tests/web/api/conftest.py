"""Somebody who asks the API of a ledger, as a program does; and a ledger in which there is some of everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest

from duly.evidence.documents.schemas import SCHEMAS, closed
from duly.ledger.pause import pause
from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.api import PREFIX
from duly.web.settings import Settings
from tests.books import EACH_DATABASE, WORD, Book, book_on
from tests.outbox.post import DELIVERED, Post
from tests.outbox.post import UNKNOWN as UNKNOWN_SENDING
from tests.web.conftest import Answer, Browser, night, served

FAILED, UNKNOWN = "export:2026-10-24[Europe/Berlin]", "pay:2026-10-24[UTC]"


class Asker:
    """Asks the API, and holds every answer against what is said of it."""

    def __init__(self, book: Book, browser: Browser) -> None:
        self.book = book
        self.browser = browser

    def ask(self, path: str, method: str = "GET", *, body: str | None = None, **headers: str) -> Answer:
        """The answer to a request; a path is below the API's, or the whole of one."""
        whole = path if path.startswith("/api") else PREFIX + path
        answer = self.browser.ask(whole, method, body=body, **headers)
        if answer.status != 200:
            is_problem(answer)
        return answer

    def get(self, path: str) -> Any:
        """The document at a path, which is as its schema says."""
        answer = self.ask(path)
        assert answer.status == 200, answer
        document = answer.document
        if document["schema"] in SCHEMAS:
            fits({name: value for name, value in document.items() if name != "next"}, document["schema"])
        return document

    def all_of(self, path: str, name: str, *, limit: int) -> list[Any]:
        """The members of a list, followed to its end."""
        found: list[Any] = []
        where: str | None = f"{path}{'&' if '?' in path else '?'}limit={limit}"
        while where is not None:
            document = self.get(where)
            found += document[name]
            where = document["next"]
        return found

    def do(self, action: str, key: str = FAILED, *, with_key: str = "6f1c", query: str = "", **fields: Any) -> Answer:
        """Ask for an action on a run."""
        return self.post(f"/run/{quote(key, safe='')}/{action}{query}", with_key=with_key, **fields)

    def post(self, path: str, *, with_key: str = "6f1c", **fields: Any) -> Answer:
        """Ask for a change; a field that Python has a word for is given with a dash below."""
        body = json.dumps({name.rstrip("_"): value for name, value in fields.items()})
        return self.ask(path, "POST", body=body, content_type="application/json", idempotency_key=f'"{with_key}"')


def fits(document: Any, schema: str) -> None:
    """Whether a document is as its schema says, and has no field that it does not."""
    whole = {"$ref": f"#/components/schemas/{schema}", "components": {"schemas": closed(SCHEMAS)}}
    jsonschema.Draft202012Validator(whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(
        document
    )


def is_problem(answer: Answer) -> None:
    """Whether an answer is a problem as RFC 9457 has it."""
    assert answer.headers["content-type"] == "application/problem+json", answer
    document = answer.document
    assert document["status"] == answer.status, answer
    assert {"type", "title", "status", "detail", "code"} <= document.keys(), answer


def some_of_everything(book: Book) -> None:
    """The night of the dashboard's stories; messages, one delivered and others not; two backfills; a pause; a run by hand."""
    night(book)
    post = Post(book)
    book.job("invoice", daily("UTC"), scopes=("acme", "b/c"))
    for scope in ("acme", "b/c"):
        post.complete(book.take("2026-10-25", job="invoice", scope=scope), f"bill-{scope[0]}", f"note-{scope[0]}")
    for said in (DELIVERED, UNKNOWN_SENDING):
        (parcel,) = post.take(1)
        post.report(parcel, said)
    for scope in ("acme", "b/c"):
        book.backfill("2026-10-20", "2026-10-24", job="invoice", scope=scope)
    book.claim_backfill("invoice", scope="acme")
    book.ask_adhoc("by-hand", job="export")
    book.write(pause("backup", None, WORD, until=None))


@pytest.fixture(scope="module", params=EACH_DATABASE)
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    """Some of everything, once for the stories of a file: they only look."""
    with book_on(request, tmp_path_factory.mktemp("all"), at="2026-10-23T00:00:00Z") as book:
        some_of_everything(book)
        yield book


@pytest.fixture(scope="module")
def api(ledger: Book) -> Iterator[Asker]:
    """The API of it, which only looks."""
    with served(dashboard(ledger.path, Settings())) as browser:
        yield Asker(ledger, browser)


@pytest.fixture
def hand(open_book: Book) -> Iterator[Asker]:
    """Somebody who may change a ledger of its own for each story."""
    with served(dashboard(open_book.path, Settings(allow_writes=True))) as browser:
        yield Asker(open_book, browser)
