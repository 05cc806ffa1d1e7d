"""What the page about receiving shows is what happens: each section is a program, and what it sells is sold once."""

from __future__ import annotations

import re
import sqlite3
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
from io import BytesIO
from wsgiref.util import setup_testing_defaults

told = []
for _ in range(3):
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/orders", "CONTENT_LENGTH": "4", "wsgi.input": BytesIO(b"lamp"),
               "HTTP_IDEMPOTENCY_KEY": f'"{key}"', "HTTP_DULY_FIRST_SENT": "2026-10-05T00:00:00Z"}
    setup_testing_defaults(environ)
    body = b"".join(application(environ, lambda status, headers: told.append((status[:3], dict(headers)))))
    assert body == b"sold lamp"
assert [(status, headers.get("Idempotent-Replayed")) for status, headers in told] == [
    ("201", None), ("201", "true"), ("201", "true")], told
""",
    "ASGI": """
import asyncio

told = []

async def receive():
    return {"type": "http.request", "body": b"lamp", "more_body": False}

async def send(message):
    told.append(message)

scope = {"type": "http", "method": "POST", "path": "/orders", "query_string": b"", "headers": [
    (b"idempotency-key", f'"{key}"'.encode()), (b"duly-first-sent", b"2026-10-05T00:00:00Z")]}

async def ask():
    for _ in range(3):
        await application(scope, receive, send)

asyncio.run(ask())
starts = [dict(message["headers"]) for message in told if message["type"] == "http.response.start"]
assert [start.get(b"idempotent-replayed") for start in starts] == [None, b"true", b"true"], told
assert [message["body"] for message in told if message["type"] == "http.response.body"] == [b"sold lamp"] * 3
""",
    "Django": """
from django.test import Client

told = [Client().post("/orders", "lamp", content_type="text/plain", headers={
    "Idempotency-Key": f'"{key}"', "Duly-First-Sent": "2026-10-05T00:00:00Z"}) for _ in range(3)]
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


@pytest.mark.parametrize("title", sorted(PROGRAMS))
def test_a_program_sells_once_what_it_is_sent(title: str, tmp_path: Path) -> None:
    program = PROGRAMS[title]
    if title == "Django":
        program = PROJECT + program + URLS

    run("\n".join([BEFORE, program, ASKED_BY.get(title, "")]), tmp_path)

    connection = sqlite3.connect(tmp_path / "shop.db")
    assert connection.execute("select sku from sold").fetchall() == [("lamp",)]
    connection.close()


def test_each_way_in_has_a_program() -> None:
    assert PROGRAMS.keys() >= {
        *ASKED_BY,
        "In a transaction of yours",
        "In an event loop",
        "How long a key is remembered",
    }
