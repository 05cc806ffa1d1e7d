"""What holds of every ledger: it holds after whatever happens, and each planted corruption is found by its own truth."""

from __future__ import annotations

import pytest

from duly.ledger.receive import APPLY, Answer, Delivery, Receipt, answer_or_raise, receive
from duly.ledger.records import Claim
from duly.ledger.restore import doubt_since
from duly.ledger.truths import TRUTHS, findings
from duly.times import DAY
from tests.books import WORD, Book
from tests.outbox.post import Post


def untrue(book: Book) -> dict[str, int]:
    return {found.truth.name: found.times for found in book.store.read(findings()) if found.times}


@pytest.fixture
def eventful(book: Book) -> Book:
    """A ledger in which a little of everything has happened."""
    post = Post(book)
    book.job(overlap=1, contract="external")
    post.complete(book.take("2026-10-05"), "a", "b")
    failing = book.take("2026-10-04")
    book.fail(failing, retry_in=0)
    book.complete(book.take("2026-10-04"))
    book.reopen(book.find("2026-10-04")[1])
    book.complete(book.take("2026-10-04"))
    book.doubt(book.take("2026-10-03"))
    book.skip("2026-10-02")
    book.take("2026-10-01")
    book.fail(book.take("2026-09-30"), retry_in=None)
    resolved = book.take("2026-09-29")
    book.doubt(resolved)
    book.lapse()
    book.resolve(resolved.run, done=True)
    claim = book.ask_adhoc("rebuild-1")
    assert isinstance(claim, Claim)
    book.complete(claim)
    assert book.once("other:2026-10-05[UTC]")
    for day in range(6, 9):
        book.clock.advance(DAY)
        if day == 8:
            book.work_all()
    book.take("2026-09-28")
    receipt = book.write(receive(Delivery("orders", "a", "sha256:1", book.clock.now(), None, APPLY, b"receipt")))
    assert isinstance(receipt, Receipt)
    book.write(answer_or_raise(receipt, Answer(200, "[]", b"")))
    return book


def test_they_hold_whatever_happens(eventful: Book) -> None:
    assert untrue(eventful) == {}

    eventful.write(doubt_since(eventful.clock.now() - DAY, WORD))

    assert untrue(eventful) == {}


def test_they_hold_of_a_ledger_in_which_nothing_has_happened(book: Book) -> None:
    assert untrue(book) == {}


OF = "nominal = (select max(nominal) from duly_run where state = 'completed' and window_start is not null)"
SENT = "nominal = (select min(nominal) from duly_message)"
RUNNING = "nominal = (select max(nominal) from duly_run where state = 'running')"

PLANTED = [
    ("completions-have-attempts", f"delete from duly_attempt where outcome = 'completed' and {OF}"),
    ("completions-have-attempts", f"update duly_attempt set number = number + 7 where {OF}"),
    (
        "one-completion",
        f"""insert into duly_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome, contract,
                   owner, trigger)
            select series, nominal, revision, number - 1, attempt_id, started_at, ended_at, outcome, contract, owner, trigger
              from duly_attempt where outcome = 'completed' and {OF}""",
    ),
    ("completions-complete", f"update duly_run set state = 'failed', settled_at = null where {OF}"),
    ("settled-since", f"update duly_run set settled_at = null where {OF}"),
    ("settled-since", "update duly_run set settled_at = 1 where state = 'failed'"),
    ("settled-since", f"update duly_run set cause = 'disk full' where {OF}"),
    ("settled-since", "update duly_run set was = 'open' where state = 'failed'"),
    ("settled-since", "update duly_run set was = 'completed' where state = 'skipped'"),
    ("current-attempts", f"update duly_run set attempt_id = null where {RUNNING}"),
    ("current-attempts", f"update duly_run set lease_until = null where {RUNNING}"),
    ("current-attempts", "update duly_run set fence = 0 where state = 'unknown'"),
    ("fences", f"update duly_run set fence = 0 where {OF}"),
    ("horizons", "update duly_series set horizon = 9000000000"),
    ("one-live-revision", "update duly_run set state = 'completed' where state = 'replaced'"),
    ("one-live-revision", "update duly_run set state = 'replaced' where revision = 2"),
    ("windows-tile", "update duly_run set window_start = window_start - 1 where state = 'unknown'"),
    ("series-of-runs", "update duly_run set series = 99 where state = 'failed'"),
    ("series-of-runs", "delete from duly_adhoc"),
    ("runs-of-rows", "delete from duly_run where state = 'completed'"),
    ("messages-of-completions", f"update duly_run set state = 'failed' where {SENT}"),
    ("messages-settled-since", "update duly_message set settled_at = 1 where name = 'a'"),
    ("messages-settled-since", "update duly_message set state = 'skipped' where name = 'a'"),
    ("parts-of-messages", "delete from duly_message_body where number = 1"),
    ("parts-of-messages", "update duly_message_body set number = 70 where number = 1"),
    (
        "skipped-ranges",
        "insert into duly_skipped (series, from_nominal, to_nominal, reason, at, by) values (1, 5, 5, '', 0, '')",
    ),
    ("versions-in-force", "update duly_job set version = 2"),
    ("answers-of-keys", "delete from duly_received"),
    ("schema", "update duly_meta set value = '7' where name = 'schema'"),
]


def test_a_planted_corruption_is_found_by_its_truth(eventful: Book) -> None:
    missed = []
    for truth, corruption in PLANTED:
        with eventful.tried(corruption) as tx:
            found = {found.truth.name for found in eventful.store.run_in(tx, findings()) if found.times}
        if truth not in found:
            missed.append((truth, corruption, found))

    assert missed == []
    assert untrue(eventful) == {}


def test_each_has_a_corruption_that_it_finds() -> None:
    assert {name for name, _ in PLANTED} == {truth.name for truth in TRUTHS}


def test_what_is_found_is_named(eventful: Book) -> None:
    eventful.amend(f"delete from duly_attempt where outcome = 'completed' and {OF}")

    (found,) = [found for found in eventful.store.read(findings()) if found.times]
    (example,) = found.examples

    assert example.run is not None
    assert example.what == "completed"
