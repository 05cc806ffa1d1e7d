"""Actions: what a person says through the dashboard is what they could say in a shell, once, under their name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from duly.ledger.open import Taken
from duly.ledger.output import Intent, hold_and_record_output_or_raise
from duly.ledger.rename import rename
from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.action import Action
from duly.web.actions import ACTIONS
from duly.web.settings import Settings
from tests.books import WORD, Book
from tests.web.conftest import FORM, KEY, THE_DAY, WHO, Hand, served

WHY = "looked into it"


def test_a_failed_run_is_retried_and_whoever_did_it_is_shown_that(hand: Hand) -> None:
    hand.failed()

    answer = hand.do("retry", reason=WHY)

    assert answer.status == 303, answer
    assert hand.book.events("retried") == [(WHO, WHY, "")]
    shown = hand.browser.get(answer.headers["location"])
    assert f"{WHO}, just now: retried. {WHY}" in shown or f"{WHO}, 0s ago: retried. {WHY}" in shown


@pytest.mark.parametrize("action", ["retry", "skip"])
def test_a_form_that_is_sent_twice_is_done_once(hand: Hand, action: str) -> None:
    hand.failed()

    first, again = (hand.do(action, reason=WHY, key_="6f1c") for _ in range(2))

    assert (first.status, again.status) == (303, 303)
    assert first.headers["location"] == again.headers["location"]
    assert len(hand.book.events(f"{'retried' if action == 'retry' else 'skipped'}")) == 1


def test_a_form_that_no_ledger_answers_is_shown_as_sent_and_done_when_sent_again(
    tmp_path: Path,
) -> None:
    """It may have been done before the ledger was gone: so it keeps its key, and the attempt that it speaks of."""
    book, away = Book(tmp_path / "ledger.db", at="2026-10-06T00:10:00Z"), tmp_path / "away.db"
    with served(dashboard(book.path, Settings(allow_writes=True))) as browser:
        hand = Hand(book, browser)
        hand.failed()
        os.rename(book.path, away)
        lost = hand.do("retry", reason=WHY, attempt="1", key_="6f1c")
        os.rename(away, book.path)
        sent_again = dict(re.findall(r'<input type="hidden" name="([a-z]+)" value="([^"]*)"', lost.text))
        done = hand.do("retry", reason=WHY, **{f"{name}_": value for name, value in sent_again.items()})

    assert lost.status == 503
    assert f">{WHY}</textarea>" in lost.text
    assert sent_again == {"key": "6f1c", "attempt": "1"}
    assert done.status == 303, done
    assert book.events("retried") == [(WHO, WHY, "")]
    book.store.close()


def test_a_key_that_came_with_something_else_is_refused(hand: Hand) -> None:
    hand.failed()
    hand.do("retry", reason=WHY, key_="6f1c")

    answer = hand.do("retry", reason="another word", key_="6f1c")

    assert answer.status == 422
    assert len(hand.book.events("retried")) == 1


def test_of_two_who_resolve_one_unknown_one_wins_and_the_other_is_told(hand: Hand) -> None:
    hand.doubted()

    won = hand.do("resolve", as_="done", reason="batch 4711")
    lost = hand.do("resolve", as_="not-done", reason="I see none")

    assert won.status == 303
    assert lost.status == 409
    assert "it is completed" in lost.text
    assert "I see none" in lost.text  # what they wrote is not lost
    assert hand.state() == "completed"
    assert len(hand.book.events("resolved")) == 1


def test_what_is_said_of_an_attempt_does_not_count_for_the_next_one(hand: Hand) -> None:
    hand.doubted()

    answer = hand.do("resolve", as_="done", reason="batch 4711", attempt="7")

    assert answer.status == 409
    assert "this is said of attempt 7, and attempt 1" in answer.text
    assert hand.state() == "unknown"
    assert hand.do("resolve", as_="done", reason="batch 4711", attempt="1").status == 303


def test_a_former_name_of_a_job_still_names_its_runs(hand: Hand) -> None:
    hand.failed()
    hand.book.write(rename("export", "exports", WORD))

    assert "exports" in hand.browser.get(f"/run/{quote(KEY, safe=':')}")
    explained = hand.browser.ask(f"/api/v1/run/{quote(KEY, safe=':')}/explain").document
    assert explained["run"]["key"] == f"exports:{THE_DAY}[UTC]"
    assert hand.do("retry", reason=WHY).headers["location"].startswith("/run/exports:")


def test_the_file_that_a_run_put_in_place_is_told_of_with_its_digest(hand: Hand) -> None:
    hand.book.job(schedule=daily("UTC"))
    taken = hand.book.poke()
    assert isinstance(taken, Taken)
    hand.book.write(hold_and_record_output_or_raise(taken.claim, Intent("/srv/<1>.csv", 4711, "ab" * 32)))

    assert "was about to be put in place: <code>/srv/&lt;1&gt;.csv</code>, 4711 bytes" in hand.browser.get(
        f"/run/{quote(KEY, safe=':')}"
    )
    hand.book.complete(taken.claim)

    page = hand.browser.get(f"/run/{quote(KEY, safe=':')}")
    assert "was about to be put in place" not in page
    assert f'SHA-256 <code class="digest">{"ab" * 32}</code>' in page


def test_who_cannot_tell_yet_leaves_it_unknown_with_their_word(hand: Hand) -> None:
    hand.doubted()

    assert hand.do("resolve", as_="later", reason="they call back", again_in="2h").status == 303

    assert hand.state() == "unknown"
    assert [each[:2] for each in hand.book.events("put_off")] == [(WHO, "they call back")]


@pytest.mark.parametrize("again_in", ["9999999d", "1" * 280 + "w", "1" * 290 + "ms", "P366001D"])
def test_nobody_looks_again_after_the_end_of_the_calendar(hand: Hand, again_in: str) -> None:
    """A day that cannot be written down would keep every page from the one who has to say what happened."""
    hand.doubted()

    answer = hand.do("resolve", as_="later", reason="they call back", again_in=again_in)

    assert answer.status == 400
    assert "again_in: " in answer.text
    assert "is longer than a thousand years" in answer.text
    assert hand.book.events("put_off") == []


def test_a_run_goes_there_and_back(hand: Hand) -> None:
    hand.book.job(schedule=daily("UTC"))
    hand.book.work_all()

    assert hand.do("reopen", reason=WHY).status == 303
    assert hand.state() == "open"
    again = f"{KEY}#2"
    assert hand.do("skip", again, reason=WHY).status == 303
    assert hand.state() == "skipped"
    assert hand.do("unskip", again, reason=WHY).status == 303
    assert hand.state() == "open"
    hand.book.poke()
    assert hand.do("cancel", again, reason=WHY).status == 303
    assert [each[0] for each in hand.book.events("cancel_asked")] == [WHO]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "reason: it is required"),
        ({"reason": "…"}, "reason: it is required"),
        ({"reason": "x" * 4_001}, "reason: it has 4001 characters"),
        ({"reason": "a\0b"}, "reason: it holds what is no text"),
        ({"reason": WHY, "reasn": "x"}, "reasn: retry has no such field"),
        ({"reason": WHY, "new_payload": "perhaps"}, "new_payload: &#39;perhaps&#39; is no flag"),
        ({"reason": WHY, "attempt": "two"}, "attempt: &#39;two&#39; is not a whole number"),
        ({"reason": WHY, "key_": "a b\n"}, "key: give 1 to 255 printable characters"),
    ],
)
def test_what_cannot_be_understood_names_its_field_and_changes_nothing(
    hand: Hand, fields: dict[str, str], says: str
) -> None:
    hand.failed()

    answer = hand.do("retry", **fields)

    assert answer.status == 400
    assert says in answer.text
    assert hand.book.events("retried") == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"reason": "x"}', "application/json"),
        ("reason=%ff", FORM),
        ("reason=a&reason=b", FORM),
        ("reason=" + "x" * 70_000, FORM),
    ],
)
def test_what_is_no_form_is_refused(hand: Hand, body: str, kind: str) -> None:
    hand.failed()

    answer = hand.browser.ask(hand.path("retry"), "POST", body=body, content_type=kind)

    assert answer.status == 400
    assert hand.book.events("retried") == []


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_nothing_is_done_from_elsewhere_nor_where_nothing_may_be_changed(open_book: Book, action: Action) -> None:
    open_book.job(schedule=daily("UTC"))
    path = action.path.replace("{key:path}", quote(KEY, safe=":")).replace("{id:int}", "1")
    body = urlencode({"reason": WHY, "as": "done", "message": "a"})

    with served(dashboard(open_book.path, Settings(allow_writes=True))) as browser:
        crossed = browser.ask(path, "POST", body=body, content_type=FORM, sec_fetch_site="cross-site")
        by_origin = browser.ask(path, "POST", body=body, content_type=FORM, origin="https://evil.example")
    with served(dashboard(open_book.path, Settings())) as browser:
        only_shown = browser.ask(path, "POST", body=body, content_type=FORM, sec_fetch_site="same-origin")

    assert [crossed.status, by_origin.status, only_shown.status] == [403, 403, 403]
    assert open_book.rows("select count(*) from duly_event where by like '%dashboard%'") == [(0,)]


def test_each_form_says_what_it_does_and_the_line_for_a_shell(hand: Hand) -> None:
    hand.doubted()

    form = hand.browser.get(f"{hand.path('resolve')}?as=not-done")

    assert '<input type="radio" name="as" value="not-done" checked required>' in form
    assert '<input type="hidden" name="attempt" value="1">' in form
    assert "duly resolve export 2026-10-05 --as not-done --evidence" in form


def test_the_work_list_offers_the_retry_that_its_contract_makes_safe(hand: Hand) -> None:
    hand.failed()

    assert f'href="{hand.path("retry")}"' in hand.browser.get("/")
    with served(dashboard(hand.book.path, Settings())) as browser:
        assert hand.path("retry") not in browser.get("/")


def test_where_nothing_may_be_changed_a_form_is_the_line_for_a_shell(open_book: Book) -> None:
    open_book.job(schedule=daily("UTC"))
    with served(dashboard(open_book.path, Settings())) as browser:
        shown = browser.get(f"/run/{quote(KEY, safe=':')}/skip")

    assert "<form" not in shown
    assert "duly skip export 2026-10-05 --reason" in shown


def test_each_offer_of_a_page_leads_to_its_form(hand: Hand) -> None:
    """The page of a run offers what may be done about it, and each offer leads to a form that is there."""
    hand.doubted()

    page = hand.browser.get(f"/run/{quote(KEY, safe=':')}")

    for offer in ("resolve?as=done", "resolve?as=not-done", "resolve?as=later"):
        assert f"{hand.path(offer)}" in page, offer
        assert "<form" in hand.browser.get(hand.path(offer))
