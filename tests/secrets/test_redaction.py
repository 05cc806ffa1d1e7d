"""What a redaction hides, what it leaves, and that no text takes it long."""

from __future__ import annotations

import base64
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

import pytest

import duly
from duly.redaction import (
    LONGEST_MESSAGE,
    Redaction,
    in_few_words,
    passwords_in,
    redacted,
    secrets_of,
    shown_url,
    traceback_of,
)
from duly.work.child import _cannot_execute
from duly.work.exception import error_place
from duly.work.schedule_flags import line_with

PIN = "hunter2/a+b c"
# Put together here, or those who look for keys in repositories would find some.
AWS, GITHUB = "AKIA" + "ABCDEFGHIJKLMNOP", "ghp_" + "a1B2" * 9
TOKEN = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0.c2lnbmVk"
KEY = f"-----BEGIN RSA PRIVATE {'KEY'}-----\nMIIEpAIBAAKCAQ\n-----END RSA PRIVATE {'KEY'}-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("to postgresql://shop:pw@db/x failed", "to postgresql://shop:***@db/x failed"),
        ("amqp://a:p@ss:w@h/x", "amqp://a:***@h/x"),
        ("redis://:pw@h", "redis://:***@h"),
        ("https://tokentokentoken@example.com/x", "https://***@example.com/x"),
        ("GET /x?access_token=abc&n=1", "GET /x?access_token=***&n=1"),
        ("Authorization: Bearer abc.DEF", "Authorization: ***"),
        ("-H 'Authorization: Basic dXNlcjpwYXNz'", "-H 'Authorization: ***'"),
        ("sent Bearer abcDEF123, then", "sent Bearer ***, then"),
        ("Set-Cookie: id=abc; Path=/", "Set-Cookie: ***"),
        ('{"password": "a b\\"c", "n": 1}', '{"password": "***", "n": 1}'),
        (r'"{\"client_secret\": \"abc\"}"', r'"{\"client_secret\": \"***\"}"'),
        ("{'api_key': 'abc', 'n': 1}", "{'api_key': '***', 'n': 1}"),
        ("PGPASSWORD='a b' psql", "PGPASSWORD='***' psql"),
        ("host=db password=pw user=shop", "host=db password=*** user=shop"),
        ("--db-password pw --verbose", "--db-password *** --verbose"),
        ("['--token', 'abc']", "['--token', '***']"),
        ("curl -u shop:pw https://x", "curl -u *** https://x"),
        (f"with {AWS}.", "with ***."),
        (f"with {GITHUB}.", "with ***."),
        (f"with {TOKEN}", "with ***"),
        (f"key:\n{KEY}\nnext", "key:\n***\nnext"),
        (KEY[:50], "***"),  # its end was cut off
        (f"AAAA\n{KEY[40:]}\nnext", "***\nnext"),  # its beginning was
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "password authentication failed for user shop",
        "use basic authentication here",
        "token_env: it takes the name of a variable",
        "close:2026-11-28[UTC] attempt 1 failed: exit 3, 12ms",
        "https://example.com/a?page=2#key",
        "--token-file is not --verbose",
        "",
        "the key of Ä İ ß",
    ],
)
def test_what_looks_like_none_is_left(text: str) -> None:
    assert redacted(text) == text


def test_what_is_declared_is_hidden_in_the_forms_that_programs_write_it_in() -> None:
    redaction = Redaction([PIN])
    forms = [PIN, quote(PIN, safe=""), quote(PIN), PIN.replace(" ", "+").replace("+b", "%2Bb").replace("/", "%2F")]

    assert [redaction.of(f"<{form}>").count("***") for form in forms] == [1] * len(forms)
    for before in ("", "a", "ab", "abc:"):
        inner = base64.b64encode(f"{before}{PIN}!".encode()).decode()
        assert "***" in redaction.of(inner)
        assert len(redaction.of(inner)) < len(inner) - 10


def test_what_is_too_short_or_a_plain_word_is_no_secret() -> None:
    assert Redaction(["abc", "", "  ", "true", "None"]).of("abc is true, None") == "abc is true, None"


def test_secrets_that_overlap_leave_nothing_of_either() -> None:
    assert Redaction(["abcdef", "defghi"]).of("xabcdefghix") == "x***x"
    assert Redaction(["aaaa"]).of("baaaaaaab") == "b***b"


def test_an_environment_says_by_its_names_what_is_secret() -> None:
    environ = {
        "DB_PASSWORD": "one-1",
        "STRIPE_API_KEY": "two-2",
        "SMTP_PASS": "three-3",
        "DATABASE_URL": "postgresql://a:fo%2Fur@h/x",
        "VISITOR": "five-5",
        "DB_PASSWORD_FILE": "/run/six",
        "AWS_ACCESS_KEY_ID": "seven",
        "HOME": "/home/eight",
        "DULY_IDEMPOTENCY_KEY": "nine",
        "DULY_LEDGER": "postgresql://a:ten@h/x",
    }

    found = secrets_of(environ, ["VISITOR"])

    assert sorted(found) == ["five-5", "fo%2Fur", "fo/ur", "one-1", "ten", "three-3", "two-2"]


def test_a_url_is_shown_as_it_may_be_typed() -> None:
    assert shown_url("postgresql://a:b@h:1/x?sslmode=require&password=c") == "postgresql://a@h:1/x?sslmode=require"
    assert shown_url("sqlite:////var/lib/duly/a@b:c.db") == "sqlite:////var/lib/duly/a@b:c.db"
    assert shown_url("/var/lib/duly.db") == "/var/lib/duly.db"
    assert passwords_in("postgresql://a:b@h/x?password=c") == ["b", "c"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2/x@127.0.0.1/db", "postgresql://u@127.0.0.1/db"),
        ("postgresql://u:hunter2?x@127.0.0.1/db", "postgresql://u@***"),
        ("host=h password=hunter2 user=u", "host=h password=*** user=u"),
        ("host=h password='hunter2 x' user=u", "host=h password=*** user=u"),
        ("postgresql://h/db?user=me@corp", "postgresql://h/db?user=me@corp"),
        ("/srv/a=b.db", "/srv/a=b.db"),
    ],
)
def test_a_password_that_was_not_escaped_is_not_shown_either(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_a_variable_that_begins_as_those_of_duly_may_be_a_secret() -> None:
    assert secrets_of({"DULY_API_TOKEN": "tok9999", "DULY_RUN_KEY": "export:2026-10-05[UTC]"}) == ["tok9999"]


def test_a_command_line_is_shown_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711")
    typed = [
        "duly",
        "exec",
        "a",
        "--ledger",
        "postgresql://u:pw@h/x",
        "--",
        "./a",
        "--password",
        "pin 1",
        "tok-4711",
        "-n",
    ]

    shown = line_with(typed, "--period", "daily")

    assert shown == "duly exec a --ledger postgresql://u@h/x --period daily -- ./a --password '***' '***' -n"


def test_a_command_that_prints_a_word_of_its_command_line_is_heard_without_it() -> None:
    redaction = Redaction().beside(["./a", "--password", "clay-harbour", "--token=fern-93", "plain"])

    assert redaction.of("clay-harbour and fern-93 are plain") == "*** and *** are plain"


def test_of_a_message_no_detail_is_kept() -> None:
    for said in (
        "duplicate key\nDETAIL:  Key (pin)=(4711) is there.\nCONTEXT:  more",
        "(psycopg.Error) duplicate key\n[SQL: insert]\n[parameters: (4711,)]",
    ):
        assert in_few_words(said).endswith("duplicate key")
    assert in_few_words("a\tb\npassword=pw") == "a b password=***"
    assert len(in_few_words("x" * 10_000)) == LONGEST_MESSAGE


def test_of_an_exception_type_and_place_are_kept_and_no_word_of_its_message(tmp_path: Path) -> None:
    ledger = duly.sqlite(tmp_path / "ledger.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST, retries=0)
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        raise ValueError("pin 4711")

    with pytest.raises(ValueError, match="4711") as raised:
        close.run("2026-01-01")

    assert error_place(raised.value).startswith("ValueError at test_redaction.py:")
    assert b"4711" not in (tmp_path / "ledger.db").read_bytes() + (tmp_path / "ledger.db-wal").read_bytes()


def test_a_traceback_shows_no_secret_and_of_a_database_no_message() -> None:
    told = ""
    try:
        try:
            connection = sqlite3.connect(":memory:")
            connection.execute("create table pin (x check (x <> 'amber'))")
            connection.execute("insert into pin values ('amber')")
        except sqlite3.IntegrityError as e:
            raise ExceptionGroup("all of it", [ValueError("password=pw at\nDETAIL: jade")]) from e
    except ExceptionGroup as e:
        told = traceback_of(e)

    assert "sqlite3.IntegrityError: SQLITE_CONSTRAINT_CHECK" in told
    assert "CHECK constraint failed" not in told
    assert "ValueError: password=***" in told
    assert "DETAIL: jade" not in told.splitlines()[-1]


def test_a_command_line_in_one_word_is_not_named() -> None:
    told = _cannot_execute("./pay --password=pw", FileNotFoundError(2, "No such file"))

    assert str(told) == "the command: No such file"


@pytest.mark.parametrize(
    "unit",
    ["a", "password", 'password="', "://a:b@", "eyJ", "-----BEGIN PRIVATE KEY-----", "-", "hunter2/a+b", " ", "--a"],
)
def test_no_text_takes_long(unit: str) -> None:
    """Ten times the text takes about ten times as long: a hundred times would be a pattern that walks back."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        took = []
        for _ in range(3):  # the least: a collector that comes by in between has nothing to do with the text
            began = time.process_time()
            Redaction([PIN]).of(text)
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(200_000) < 40 * max(seconds(20_000), 0.002)


def test_ten_megabytes_take_seconds() -> None:
    text = ("2026-11-28 12:00:00 INFO paid 4711 by card, 12.50 EUR, thank you\n" * 160_000)[:10_000_000]
    began = time.process_time()

    assert Redaction([PIN]).of(text) == text
    assert time.process_time() - began < 10
