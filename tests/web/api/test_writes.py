"""Writes: what a program asks for is done once for its key, as the command line does it, or refused and not done."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import quote

import pytest

from duly.cli import main
from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.schedule.spec import daily
from duly.times import MINUTE
from duly.web import dashboard
from duly.web.action import Action
from duly.web.actions import ACTIONS
from duly.web.api import PREFIX
from duly.web.credentials import Credentials
from duly.web.settings import Settings
from tests.books import Book
from tests.outbox.post import LAST_TRY, Post
from tests.outbox.post import UNKNOWN as UNKNOWN_SENDING
from tests.web.api.conftest import Asker, fits, is_problem
from tests.web.conftest import Answer, served

KEY = "export:2026-10-05[UTC]"
WHY = "looked into it"
WHO = "somebody on this machine (dashboard)"


def failed(book: Book) -> None:
    """A run that has failed for good."""
    book.job(schedule=daily("UTC"), retries=0)
    claim = book.take()
    book.write(fail_or_raise(claim, Ending("failed", "disk full", retry=False), retry_in=None, error="x"))


def doubted(book: Book) -> None:
    """A run of which nobody knows whether it happened."""
    book.job(schedule=daily("UTC"), contract="external")
    book.doubt(book.take())
    book.clock.advance(MINUTE)


def completed(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.work_all()


def running(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.take()


def skipped(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.skip("2026-10-05")


def of_message(book: Book, said: Any) -> None:
    """A completed run with a message of which a relay has said something."""
    post = Post(book)
    post.sent("bill")
    post.report(post.take_one(), said)


def state(book: Book) -> str:
    ((found,),) = book.rows("select state from duly_run order by nominal desc, revision desc limit 1")
    return str(found)


def of_the_message(book: Book) -> str:
    ((found,),) = book.rows("select state from duly_message")
    return str(found)


# -- each action -----------------------------------------------------------------------------------------------------------


OF_RUN: list[tuple[Any, str, dict[str, Any], str, str]] = [
    (failed, "retry", {"new_payload": True}, "failed", "retried"),
    (failed, "skip", {}, "skipped", "skipped"),
    (skipped, "unskip", {}, "open", "unskipped"),
    (running, "cancel", {"attempt": 1}, "running", "cancel_asked"),
    (completed, "reopen", {}, "open", "reopened"),
    (doubted, "resolve", {"as_": "done"}, "completed", "resolved"),
    (doubted, "resolve", {"as_": "not-done"}, "failed", "resolved"),
    (doubted, "resolve", {"as_": "later", "again_in": "2h"}, "unknown", "put_off"),
]

OF_MESSAGE: list[tuple[Any, str, dict[str, Any], str]] = [
    (UNKNOWN_SENDING, "resolve-message", {"as_": "done"}, "delivered"),
    (UNKNOWN_SENDING, "resolve-message", {"as_": "later"}, "unknown"),
    (LAST_TRY, "retry-message", {}, "pending"),
    (LAST_TRY, "skip-message", {}, "skipped"),
]


@pytest.mark.parametrize(("given", "action", "fields", "after", "event"), OF_RUN)
def test_each_action_on_a_run_does_what_it_says(
    hand: Asker, given: Any, action: str, fields: dict[str, Any], after: str, event: str
) -> None:
    given(hand.book)

    answer = hand.do(action, KEY, reason=WHY, **fields)

    assert answer.status == 200, answer
    fits(answer.document, "duly.change.v1")
    assert answer.document["dry_run"] is False
    assert state(hand.book) == after
    assert [each[:2] for each in hand.book.events(event)] == [(WHO, WHY)]
    leads = answer.headers["location"]
    assert leads.startswith(f"{PREFIX}/run/export")
    assert hand.get(leads)["run"]["key"] == answer.document["after"]["key"]


@pytest.mark.parametrize(("said", "action", "fields", "after"), OF_MESSAGE)
def test_each_action_on_a_message_does_what_it_says(
    hand: Asker, said: Any, action: str, fields: dict[str, Any], after: str
) -> None:
    of_message(hand.book, said)

    answer = hand.do(action, KEY, reason=WHY, message="bill", **fields)

    assert answer.status == 200, answer
    fits(answer.document, "duly.message_change.v1")
    assert of_the_message(hand.book) == after
    assert hand.get(answer.headers["location"])["messages"][0]["state"] == after


ASKED: dict[str, Any] = {"job": "export", "range": "2026-10-01..2026-10-03", "expect": 2}


def test_a_backfill_is_started_paused_resumed_and_cancelled(hand: Asker) -> None:
    hand.book.job(schedule=daily("UTC"))

    started = hand.post("/backfill/start", **ASKED, reason=WHY)

    assert started.status == 200, started
    fits(started.document, "duly.backfill_started.v1")
    path = started.headers["location"]
    assert path == f"{PREFIX}/backfill/{started.document['id']}"
    for verb, became in ON_A_BACKFILL:
        changed = hand.post(f"{path}/{verb}", with_key=verb, reason=WHY)
        assert changed.status == 200, changed
        fits(changed.document, "duly.backfill.v1")
        assert changed.document["state"] == hand.get(path)["state"] == became
    ((state, by, said),) = hand.book.rows("select state, said_by, said from duly_backfill")
    assert (state, by, said) == ("cancelled", WHO, WHY)


ON_A_BACKFILL = (("pause", "paused"), ("resume", "active"), ("cancel", "cancelled"))


def test_a_backfill_of_another_size_than_expected_is_not_started(hand: Asker) -> None:
    hand.book.job(schedule=daily("UTC"))

    tried = hand.post("/backfill/start?dry_run=true", **ASKED, reason=WHY)
    refused = hand.post("/backfill/start", **{**ASKED, "expect": 3}, reason=WHY)

    assert (tried.status, tried.document["to_do"], tried.document["dry_run"]) == (200, 2, True)
    assert (refused.status, refused.document["field"]) == (400, "expect"), refused
    unread = hand.post("/backfill/start", **{**ASKED, "range": "soon"}, reason=WHY)
    assert (unread.status, unread.document.get("field")) == (400, "range"), unread
    assert hand.book.rows("select count(*) from duly_backfill") == [(0,)]


def test_each_action_is_told_of_here() -> None:
    told = {action for _, action, *_ in (*OF_RUN, *OF_MESSAGE)}
    told |= {"start-backfill", *(f"{verb}-backfill" for verb, _ in ON_A_BACKFILL)}

    assert told == {action.name for action in ACTIONS}


def test_the_answer_is_the_command_lines(hand: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    failed(hand.book)
    line = ["retry", "export", "2026-10-05", "--reason", WHY, "--dry-run", "--json", "--ledger", hand.book.path]
    assert main(line) == 0
    theirs = json.loads(capsys.readouterr().out)

    ours = hand.do("retry", KEY, reason=WHY, query="?dry_run=true").document

    assert ours == theirs


def test_what_is_only_tried_changes_nothing_and_uses_no_key_up(hand: Asker) -> None:
    failed(hand.book)

    tried = hand.do("retry", KEY, reason=WHY, query="?dry_run=true")

    assert (tried.status, tried.document["dry_run"]) == (200, True)
    assert "location" not in tried.headers
    assert hand.book.events("retried") == []
    assert hand.book.rows("select count(*) from duly_received") == [(0,)]
    done = hand.do("retry", KEY, reason=WHY)
    assert "idempotent-replayed" not in done.headers
    assert len(hand.book.events("retried")) == 1


# -- the key -----------------------------------------------------------------------------------------------------------------


def test_a_change_without_a_key_is_refused(hand: Asker) -> None:
    failed(hand.book)

    for query in ("", "?dry_run=true"):
        answer = hand.ask(
            f"/run/{quote(KEY, safe='')}/retry{query}",
            "POST",
            body=json.dumps({"reason": WHY}),
            content_type="application/json",
        )
        assert (answer.status, answer.document["code"]) == (400, "key-missing")
        assert answer.document["field"] == "Idempotency-Key"
    assert hand.book.events("retried") == []


@pytest.mark.parametrize("key", ['"', '"a b"', "a,b", '"' + "x" * 256 + '"', '"ü"', '"a", "b"'])
def test_what_is_no_key_is_refused(hand: Asker, key: str) -> None:
    failed(hand.book)

    answer = hand.ask(
        f"/run/{quote(KEY, safe='')}/retry",
        "POST",
        body=json.dumps({"reason": WHY}),
        content_type="application/json",
        idempotency_key=key,
    )

    assert (answer.status, answer.document["code"]) == (400, "key-invalid")


def test_who_asks_again_is_told_what_was_done_and_nothing_is_done_again(hand: Asker) -> None:
    failed(hand.book)

    first, again = (hand.do("retry", KEY, reason=WHY) for _ in range(2))

    assert (first.status, again.status) == (200, 200)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (again.text, again.headers["location"]) == (first.text, first.headers["location"])
    assert len(hand.book.events("retried")) == 1


@pytest.mark.parametrize("change", ["field", "action", "run"])
def test_a_key_that_came_with_something_else_is_refused(hand: Asker, change: str) -> None:
    failed(hand.book)
    hand.do("retry", KEY, reason=WHY)

    answer = hand.do(
        "skip" if change == "action" else "retry",
        "export:2026-10-04[UTC]" if change == "run" else KEY,
        reason="another word" if change == "field" else WHY,
    )

    assert (answer.status, answer.document["code"]) == (422, "payload-differs")
    assert len(hand.book.events("retried")) == 1
    assert hand.book.events("skipped") == []


def test_what_was_refused_may_be_asked_again_under_the_same_key(hand: Asker) -> None:
    """Only what was done is kept: a refusal was nothing."""
    running(hand.book)
    assert hand.do("retry", KEY, reason=WHY).status == 409
    hand.book.amend("update duly_run set state = 'failed', retry_at = null")

    assert hand.do("retry", KEY, reason=WHY).status == 200


def test_of_many_requests_at_once_with_one_key_one_has_an_effect(hand: Asker) -> None:
    completed(hand.book)
    ready, answers = threading.Barrier(8), []

    def ask() -> None:
        ready.wait()
        answers.append(hand.do("reopen", KEY, reason=WHY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    done = [answer for answer in answers if answer.status == 200]
    assert {answer.status for answer in answers} <= {200, 409}
    assert len({answer.text for answer in done}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in done) == 1
    for answer in answers:
        assert answer.status == 200 or (answer.document["code"], answer.headers["retry-after"]) == ("in-progress", "1")
    assert len(hand.book.events("reopened")) == 1
    assert hand.do("reopen", KEY, reason=WHY).headers["idempotent-replayed"] == "true"


def test_while_another_server_works_a_key_it_is_in_progress(hand: Asker) -> None:
    """On PostgreSQL two transactions may be at one key; on SQLite one writer waits for the other."""
    from duly.ledger.receive import receive
    from duly.web.action import Given
    from duly.web.writing import delivery
    from tests.books import PostgresBook

    failed(hand.book)
    retry = next(action for action in ACTIONS if action.name == "retry")
    if not isinstance(hand.book, PostgresBook):
        pytest.skip("one writer at a time")
    other = hand.book.open()
    try:

        async def hold() -> Answer:
            await receive(delivery(retry, Given({"key": KEY}, {"reason": WHY}, ""), "6f1c"))
            return hand.do("retry", KEY, reason=WHY)

        meanwhile = other.write(hold())
    finally:
        other.close()

    assert (meanwhile.status, meanwhile.document["code"]) == (409, "in-progress")
    assert hand.book.events("retried") == []


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_what_the_ledger_does_not_allow_is_a_conflict(hand: Asker) -> None:
    doubted(hand.book)

    assert hand.do("retry", KEY, reason=WHY).document["code"] == "not-allowed"
    answer = hand.do("resolve", KEY, as_="done", reason=WHY, attempt=7)
    assert (answer.status, answer.document["code"], answer.document["field"]) == (409, "not-allowed", "attempt")
    assert state(hand.book) == "unknown"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({}, "reason", "it is required"),
        ({"reason": " …"}, "reason", "says nothing"),
        ({"reason": "x" * 4_001}, "reason", "4001 characters"),
        ({"reason": "a\0b"}, "reason", "what is no text"),
        ({"reason": "\ud800"}, "reason", "what is no text"),
        ({"reason": 7}, "reason", "7 is no text"),
        ({"reason": None}, "reason", "None is no text"),
        ({"reason": WHY, "new_payload": "true"}, "new_payload", "neither true nor false"),
        ({"reason": WHY, "attempt": "1"}, "attempt", "not a whole number"),
        ({"reason": WHY, "attempt": True}, "attempt", "not a whole number"),
        ({"reason": WHY, "attempt": 1.5}, "attempt", "not a whole number"),
        ({"reason": WHY, "attempt": 0}, "attempt", "not a whole number"),
        ({"reason": WHY, "reasn": "x"}, "reasn", "there is no such field here"),
        ({"reason": WHY, "\ud800\0": "x"}, "\ud800\0", "there is no such field here"),
    ],
)
def test_what_cannot_be_understood_names_its_field_and_changes_nothing(
    hand: Asker, fields: dict[str, Any], field: str, says: str
) -> None:
    failed(hand.book)

    answer = hand.do("retry", KEY, **fields)

    assert answer.status == 400, answer
    assert answer.document["field"] == field
    assert says in answer.document["detail"]
    assert hand.book.events("retried") == []


@pytest.mark.parametrize(
    ("body", "kind", "status", "says"),
    [
        (b'{"reason": "x"}', "text/plain", 415, "send application/json"),
        (b'{"reason": "x"}', "", 415, "send application/json"),
        (b'{"reason": "x"}', "application/json; charset=latin-1", 415, "in UTF-8"),
        (b"reason=x", "application/x-www-form-urlencoded", 415, "send application/json"),
        (b'{"reason": "' + b"x" * 64_000 + b'"}', "application/json", 413, "64000 bytes are read"),
        (b"", "application/json", 400, "it is no JSON"),
        (b"{", "application/json", 400, "it is no JSON"),
        (b'{"reason": "\xff"}', "application/json", 400, "it is no JSON in UTF-8"),
        (b"[1]", "application/json", 400, "send an object"),
        (b'{"reason": "a", "reason": "b"}', "application/json", 400, "'reason' is given twice"),
        (b'{"reason": NaN}', "application/json", 400, "NaN is no number"),
        (b'{"attempt": 1e999}', "application/json", 400, "attempt"),
        (b'{"attempt": ' + b"9" * 5_000 + b"}", "application/json", 400, "it is no JSON"),
        (b"[" * 60_000, "application/json", 400, "it is no JSON"),
    ],
)
def test_what_is_no_body_is_refused(hand: Asker, body: bytes, kind: str, status: int, says: str) -> None:
    failed(hand.book)

    answer = hand.ask(
        f"/run/{quote(KEY, safe='')}/retry",
        "POST",
        body=body,  # type: ignore[arg-type]
        idempotency_key='"1"',
        **({"content_type": kind} if kind else {}),
    )

    assert answer.status == status, answer
    assert says in answer.document["detail"]
    assert hand.book.events("retried") == []


def test_a_method_that_is_not_for_an_action_is_told_which_is(hand: Asker) -> None:
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "GET"):
        answer = hand.ask(f"/run/{quote(KEY, safe='')}/retry", method)
        assert (answer.status, answer.headers["allow"]) == (405, "POST"), method


def test_a_bug_is_told_of_without_a_word_of_it(hand: Asker, caplog: pytest.LogCaptureFixture) -> None:
    failed(hand.book)
    hand.book.amend("update duly_run set due = 9000000000000000000")  # there is no calendar for the year 287,000

    answer = hand.ask(f"/run/{quote(KEY, safe='')}/explain")

    assert (answer.status, answer.document["code"]) == (500, "bug"), answer
    assert answer.document["detail"] == "Something went wrong that nobody foresaw; the server's log says where."
    assert "Traceback" in caplog.text


def test_a_ledger_that_cannot_be_read_is_said_so(open_book: Book) -> None:
    with served(dashboard(f"{open_book.path}-gone", Settings())) as browser:
        answer = browser.ask(f"{PREFIX}/jobs")

    is_problem(answer)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "jobs" not in answer.document


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_nothing_is_done_from_elsewhere_nor_where_nothing_may_be_changed(open_book: Book, action: Action) -> None:
    open_book.job(schedule=daily("UTC"))
    path = PREFIX + action.path.replace("{key:path}", quote(KEY, safe=":")).replace("{id:int}", "1")
    body = json.dumps({"reason": WHY})
    sent = {"content_type": "application/json", "idempotency_key": '"1"'}
    token = "correct-horse-battery-staple"

    with served(dashboard(open_book.path, Settings(allow_writes=True))) as browser:
        crossed = browser.ask(path, "POST", body=body, sec_fetch_site="cross-site", **sent)
        by_origin = browser.ask(path, "POST", body=body, origin="https://evil.example", **sent)
        by_host = browser.ask(path, "POST", body=body, Host="evil.example", **sent)
    with served(dashboard(open_book.path, Settings())) as browser:
        only_shown = browser.ask(path, "POST", body=body, **sent)
    asks = Settings(allow_writes=True, credentials=Credentials(token, ()))
    with served(dashboard(open_book.path, asks)) as browser:
        nobody = browser.ask(path, "POST", body=body, **sent)
        known = browser.ask(path, "POST", body="{}", Authorization=f"Bearer {token}", **sent)

    answers = [crossed, by_origin, by_host, only_shown, nobody]
    assert [answer.status for answer in answers] == [403, 403, 421, 403, 401]
    for answer in answers:
        is_problem(answer)
    assert nobody.headers["www-authenticate"].startswith("Basic realm=")
    assert known.status == 400, known
    assert open_book.rows("select count(*) from duly_event where by like '%dashboard%'") == [(0,)]
