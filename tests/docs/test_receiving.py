"""What the page about receiving shows is what happens: each section is a program, and what it sells is sold once."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.test_readme import ROOT, blocks
from tests.docs.test_transactions import run

PAGE = (ROOT / "docs" / "receiving.md").read_text(encoding="utf-8")
OPENING, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
PROGRAMS = {
    section.partition("\n")[0]: program for section in SECTIONS if (program := "\n".join(blocks(section, "python")))
}
(BEFORE,) = blocks(OPENING, "python")

# Three deliveries of one key, by whoever serves the application of a section.
ASKED_BY = {
    "WSGI": """
from datetime import UTC, datetime
from io import BytesIO
from wsgiref.util import setup_testing_defaults

told = []
first_sent = datetime.now(UTC).isoformat()
for _ in range(3):
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/orders", "CONTENT_LENGTH": "4", "wsgi.input": BytesIO(b"lamp"),
               "HTTP_IDEMPOTENCY_KEY": f'"{key}-wsgi"', "HTTP_DULY_FIRST_SENT": first_sent}
    setup_testing_defaults(environ)
    body = b"".join(application(environ, lambda status, headers: told.append((status[:3], dict(headers)))))
    assert body == b"sold lamp"
assert [(status, headers.get("Idempotent-Replayed")) for status, headers in told] == [
    ("201", None), ("201", "true"), ("201", "true")], told
""",
    "ASGI": """
import asyncio
from datetime import UTC, datetime

told = []
first_sent = datetime.now(UTC).isoformat()

async def receive():
    return {"type": "http.request", "body": b"lamp", "more_body": False}

async def send(message):
    told.append(message)

scope = {"type": "http", "method": "POST", "path": "/orders", "query_string": b"", "headers": [
    (b"idempotency-key", f'"{key}-asgi"'.encode()), (b"duly-first-sent", first_sent.encode())]}

async def ask():
    for _ in range(3):
        await application(scope, receive, send)

asyncio.run(ask())
starts = [dict(message["headers"]) for message in told if message["type"] == "http.response.start"]
assert [start.get(b"idempotent-replayed") for start in starts] == [None, b"true", b"true"], told
assert [message["body"] for message in told if message["type"] == "http.response.body"] == [b"sold lamp"] * 3
""",
    "Django": """
from datetime import UTC, datetime
from django.test import Client

first_sent = datetime.now(UTC).isoformat()
told = [Client().post("/orders", "lamp", content_type="text/plain", headers={
    "Idempotency-Key": f'"{key}-django"', "Duly-First-Sent": first_sent}) for _ in range(3)]
assert [(t.status_code, t.content, t.headers.get("Idempotent-Replayed")) for t in told] == [
    (201, b"sold lamp", None), (201, b"sold lamp", "true"), (201, b"sold lamp", "true")], told
""",
}
PROJECT = """
import sys
import django
from django.conf import settings
from django.urls import path

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}, ALLOWED_HOSTS=["*"],
                   ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.idempotency_key"])
django.setup()
"""
URLS = 'urlpatterns = [path("orders", place_order)]\n'


SOLD = {"In an event loop": "chair", "How long a key is remembered": "table"}


def program_of(title: str) -> str:
    """A section's program, with whoever asks what it serves."""
    program = PROGRAMS[title]
    if title == "Django":
        program = PROJECT + program + URLS
    return program + ASKED_BY.get(title, "")


def sold(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        return [sku for (sku,) in connection.execute("select sku from sold order by rowid")]


@pytest.mark.parametrize("title", sorted(PROGRAMS))
def test_a_program_sells_once_what_it_is_sent(title: str, tmp_path: Path) -> None:
    run("\n".join([BEFORE, program_of(title)]), tmp_path)

    assert sold(tmp_path) == [SOLD.get(title, "lamp")]


def test_so_do_all_of_them_one_after_the_other_on_one_ledger(tmp_path: Path) -> None:
    run("\n".join([BEFORE, *map(program_of, PROGRAMS)]), tmp_path)

    assert sold(tmp_path) == [SOLD.get(title, "lamp") for title in PROGRAMS]


def test_each_way_in_has_a_program() -> None:
    assert PROGRAMS.keys() >= {
        *ASKED_BY,
        "In a transaction of yours",
        "In an event loop",
        "How long a key is remembered",
    }
