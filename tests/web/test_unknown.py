"""Unknown: what nobody knows is shown with what was sent and who looked, and three answers that lead to their forms."""

from __future__ import annotations

from html import escape

from duly.schedule.spec import daily
from duly.times import HOUR
from tests.outbox import post as said
from tests.outbox.post import Post
from tests.web.conftest import KEY, Hand


def test_that_nothing_is_unknown_is_said(hand: Hand) -> None:
    assert "No outcome is unknown" in hand.browser.get("/unknown")
    assert hand.browser.ask("/unknown.json").document["unknown"] == []


def test_a_run_in_doubt_has_three_answers_and_each_leads_to_its_form(hand: Hand) -> None:
    hand.doubted()

    page = hand.browser.get("/unknown")

    assert "One outcome is unknown" in page
    for answer in ("done", "not-done", "later"):
        assert f'href="{hand.path("resolve")}?as={answer}"' in page
        assert f'value="{answer}" checked' in hand.browser.get(f"{hand.path('resolve')}?as={answer}")


def test_who_has_looked_and_what_they_said_is_read_by_whoever_looks_next(hand: Hand) -> None:
    hand.doubted()
    hand.do("resolve", as_="later", reason="they call back at noon", again_in="2h")

    page = hand.browser.get("/unknown")

    assert "put off: they call back at noon" in page
    assert "not asked again before" in page


def test_what_is_resolved_is_not_there_any_more(hand: Hand) -> None:
    hand.doubted()
    hand.do("resolve", as_="done", reason="batch 4711")

    assert "No outcome is unknown" in hand.browser.get("/unknown")


def test_a_message_in_doubt_is_there_with_its_key_and_is_resolved_by_its_name(hand: Hand) -> None:
    post = Post(hand.book)
    run = post.sent("a/b&c", "b")
    post.report(post.take_one(), said.SaidUnknown("no answer", HOUR))
    message = post.messages(run)[0]
    assert message.state == "unknown"

    page = hand.browser.get("/unknown")

    assert escape(message.key) in page
    assert "resolve-message?as=done&amp;message=a%2Fb%26c" in page
    form = hand.browser.get(f"{hand.path('resolve-message')}?as=done&message=a%2Fb%26c")
    assert 'value="a/b&amp;c"' in form
    assert hand.do("resolve-message", as_="done", message="a/b&c", reason="their log").status == 303
    assert post.messages(run)[0].state == "delivered"
    assert "No outcome is unknown" in hand.browser.get("/unknown")


def test_one_job_is_shown_and_one_that_is_not_there_is_not_passed_over(hand: Hand) -> None:
    hand.doubted()

    assert "One outcome is unknown" in hand.browser.get("/unknown?job=export")
    assert hand.browser.ask("/unknown?job=exprt").status == 404
    assert hand.browser.ask("/unknown?jbo=export").status == 400


def test_a_run_whose_holder_has_vanished_is_in_doubt_before_anybody_takes_note(hand: Hand) -> None:
    """Its row says that it is running still; nobody knows what it did, and the first page says so as well."""
    hand.book.job(schedule=daily("UTC"), contract="external")
    hand.book.poke()
    hand.book.clock.advance(HOUR)

    page = hand.browser.get("/unknown")

    assert "One outcome is unknown" in page
    assert "vanished; what it did is not known" in page
    assert [each["key"] for each in hand.browser.ask("/unknown.json").document["unknown"]] == [KEY]
    assert hand.do("resolve", as_="later", reason="they call back", attempt="1").status == 303
    assert hand.state() == "unknown"


def test_a_run_at_work_is_not_in_doubt(hand: Hand) -> None:
    hand.book.job(schedule=daily("UTC"), contract="external")
    hand.book.poke()

    assert "No outcome is unknown" in hand.browser.get("/unknown")


def test_of_a_scope_that_is_not_there_nothing_is_said_to_be_well(hand: Hand) -> None:
    hand.book.job(schedule=daily("UTC"), scopes=("acme",))

    assert "No outcome of acme/… is unknown" in hand.browser.get("/unknown?scope=acme")
    for path in ("/unknown", "/", "/unknown.json", "/now.csv", "/api/v1/unknowns", "/api/v1/status"):
        assert hand.browser.ask(f"{path}?scope=acne").status == 404, path
