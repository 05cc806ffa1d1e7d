"""Messages: sent if their run completes, in order, by one attempt at a time; and what is not known is not believed."""

from __future__ import annotations

import pytest

from duly.errors import ClaimLost, NotAllowed
from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.forget import forgettable, raise_horizon
from duly.ledger.message_states import DEAD, DELIVERED, PENDING, REFUSED, SENDING, SKIPPED, UNKNOWN
from duly.ledger.open import Idle, Taken
from duly.ledger.put_off import put_off_message
from duly.ledger.records import Busy
from duly.ledger.register import find
from duly.ledger.restore import doubt_since
from duly.ledger.send import Letter
from duly.times import DAY, HOUR, SECOND
from tests.books import LATE, WORD, Book, let_die
from tests.outbox import post as said
from tests.outbox.post import FOREVER, LEASE, PROBE_AFTER, Post

# -- sending ------------------------------------------------------------------------------------------------------------


def test_a_stale_attempt_sends_nothing(book: Book) -> None:
    post = Post(book)
    book.job()
    stale = book.take()
    book.lapse()
    current = book.take()
    post.complete(current, "a")

    with pytest.raises(ClaimLost):
        book.write(complete_or_raise(stale, Left(letters=[(Letter("billing", "b", "text/plain", b"again"), "key")])))

    assert post.states(current.run) == {"a": PENDING}


def test_a_run_that_fails_has_no_messages(book: Book) -> None:
    book.job()
    book.fail(book.take())

    assert book.rows("select count(*) from duly_message") == [(0,)]


def test_the_messages_of_a_run_go_one_after_the_other(book: Book) -> None:
    post = Post(book)
    post.sent("c", "a", "b")

    assert [parcel.name for parcel in post.take()] == ["c"]
    assert post.take() == []


def test_the_next_message_goes_when_the_one_before_it_is_settled(book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b", "c")

    order = post.deliver()

    assert order == ["a", "b", "c"]
    assert post.tally(run).is_settled


def test_runs_do_not_wait_for_each_other(book: Book) -> None:
    post = Post(book)
    post.sent("a", "b")
    post.sent("c", window="2026-10-04")

    assert sorted(parcel.name for parcel in post.take()) == ["a", "c"]


def test_an_attempt_is_told_key_run_and_body(book: Book) -> None:
    post = Post(book)
    book.job()
    post.complete(book.take(), "a", body=b'{"units":10}')

    parcel = post.take_one()

    assert (parcel.key, parcel.run, parcel.body) == ("key-of-a", "export:2026-10-05[UTC]", b'{"units":10}')
    assert (parcel.fence, parcel.first_sent_at) == (1, book.clock.now())
    assert "units" not in repr(parcel)


# -- attempts -----------------------------------------------------------------------------------------------------------


def test_while_one_attempt_has_a_message_no_other_does(book: Book) -> None:
    post = Post(book)
    post.sent()
    post.take_one()
    book.clock.advance(LEASE - SECOND)

    assert post.take() == []


def test_an_attempt_that_was_superseded_says_nothing_of_the_message(book: Book) -> None:
    """Its word is kept as evidence."""
    post = Post(book, remembers=FOREVER)
    run = post.sent()
    stale = post.take_one()
    post.lapse()
    current = post.take_one()

    assert post.report(stale, said.REFUSED) == "too late"
    assert post.message(run).state == SENDING
    assert "refused, after another attempt" in book.events("message_late_word")[0][2]
    assert post.report(current, said.DELIVERED) == DELIVERED


def test_the_right_number_needs_the_right_attempt_as_well(book: Book) -> None:
    post = Post(book, remembers=FOREVER)
    run = post.sent()
    stale = post.take_one()
    post.lapse()
    post.take_one()
    book.amend("update duly_message set fence = 1")

    assert post.report(stale, said.DELIVERED) == "too late"
    assert post.message(run).state == SENDING


def test_an_attempts_right_id_needs_the_right_number_as_well(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    parcel = post.take_one()
    book.amend("update duly_message set fence = 2")

    assert post.report(parcel, said.DELIVERED) == "too late"
    assert post.message(run).state == SENDING


def test_what_is_surely_not_sent_is_tried_again_and_dead_at_the_last(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    assert post.report(post.take_one(), said.NOT_SENT) == PENDING
    assert post.report(post.take_one(), said.LAST_TRY) == DEAD

    assert post.take() == []
    assert post.attempts() == [
        (1, "not sent", "the connection was refused"),
        (2, "not sent", "the connection was refused"),
    ]
    assert post.message(run).waits_for_a_person


def test_a_message_that_is_stuck_holds_those_behind_it_until_a_person_skips_it(book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b")
    post.report(post.take_one(), said.REFUSED)
    assert post.take() == []

    post.skip(run)

    assert post.deliver() == ["b"]
    assert post.states(run) == {"a": SKIPPED, "b": DELIVERED}
    assert book.events("message_skipped")[0][:2] == ("ops@example", "looked into it")


def test_a_refused_message_goes_again_when_a_person_says_so(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    post.report(post.take_one(), said.REFUSED)

    post.retry(run)

    assert post.take_one().key == "key-of-a"


def test_a_word_that_is_said_twice_is_on_record_once(book: Book) -> None:
    """The reply to the first was lost, and the relay said it again."""
    post = Post(book)
    post.sent()
    parcel = post.take_one()
    post.report(parcel, said.DELIVERED)

    post.report(parcel, said.DELIVERED)

    assert book.events("message_late_word") == []
    assert post.attempts() == [(1, "delivered", "201")]


# -- unknown ------------------------------------------------------------------------------------------------------------


def test_a_receiver_that_remembers_is_sent_an_unknown_message_again_with_the_same_key(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    post.sent()
    first = post.take_one()
    post.report(first, said.UNKNOWN)

    again = post.take_one()

    assert (again.key, again.fence, again.probing) == (first.key, 2, False)
    assert again.first_sent_at == first.started_at


def test_a_receiver_that_does_not_is_never_sent_it_again(book: Book) -> None:
    post = Post(book, remembers=0)
    run = post.sent()
    post.report(post.take_one(), said.UNKNOWN)

    for _ in range(20):
        book.clock.advance(HOUR)
        for parcel in post.take():
            assert parcel.probing
            post.report(parcel, said.CANNOT_TELL)

    assert post.message(run).state == UNKNOWN
    assert post.message(run).fence == 1


def test_the_receiver_remembers_from_the_first_sending_and_not_from_the_last(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    post.sent()
    post.report(post.take_one(), said.UNKNOWN)
    book.clock.advance(HOUR // 2)
    post.report(post.take_one(), said.UNKNOWN)
    book.clock.advance(HOUR // 2)

    assert [parcel.probing for parcel in post.take()] == [True]


def test_it_is_not_sent_so_late_that_it_would_arrive_after_the_receiver_forgot(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    post.sent()
    post.report(post.take_one(), said.UNKNOWN)
    book.clock.advance(HOUR - LEASE)

    assert [parcel.probing for parcel in post.take()] == [True]


def test_a_sending_that_surely_failed_does_not_begin_that_time(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    post.sent()
    post.report(post.take_one(), said.NOT_SENT)
    book.clock.advance(HOUR // 2)
    post.report(post.take_one(), said.UNKNOWN)
    book.clock.advance(HOUR * 3 // 4)

    assert not post.take_one().probing


@pytest.mark.parametrize("word", [said.NOT_SENT, said.LAST_TRY, said.REFUSED], ids=["not sent", "last try", "refused"])
def test_what_surely_failed_after_a_doubt_leaves_the_doubt(
    word: said.SaidNotSent | said.SaidRefused, book: Book
) -> None:
    post = Post(book, remembers=FOREVER)
    run = post.sent()
    post.report(post.take_one(), said.UNKNOWN)

    assert post.report(post.take_one(), word) == UNKNOWN

    assert post.message(run).doubt_number == 1
    assert "after a sending whose outcome is not known" in (post.message(run).cause or "")


def test_a_refusal_after_a_doubt_is_not_asked_for_again(book: Book) -> None:
    post = Post(book, remembers=FOREVER)
    post.sent()
    post.report(post.take_one(), said.UNKNOWN)
    post.report(post.take_one(), said.REFUSED)
    book.clock.advance(HOUR)

    assert post.take_one().probing


def test_an_answer_that_the_receiver_keeps_is_not_asked_for_again(book: Book) -> None:
    post = Post(book, remembers=FOREVER)
    post.sent()
    post.report(post.take_one(), said.STORED)
    assert post.take() == []
    book.clock.advance(PROBE_AFTER)

    assert post.take_one().probing


def test_a_vanished_attempt_leaves_its_message_unknown(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    post.take_one()
    post.lapse()

    post.take()

    assert post.message(run).state == UNKNOWN
    assert post.attempts() == [(1, "lost", "its attempt vanished")]


def test_an_attempt_that_comes_back_after_its_lease_is_the_best_witness(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    parcel = post.take_one()
    post.lapse()
    post.take()

    assert post.report(parcel, said.NOT_SENT) == PENDING
    assert post.message(run).doubt_number is None
    assert post.attempts() == [(1, "not sent", "the connection was refused")]


def test_a_relay_that_shows_a_pulse_has_not_vanished(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    parcel = post.take_one()
    if book.path.startswith("postgresql"):
        pytest.skip("on PostgreSQL the lease alone decides")
    pulse = post.pulse(parcel)
    post.lapse()
    assert post.take() == []
    assert post.message(run).state == SENDING

    let_die(pulse)
    post.lapse()
    post.take()

    assert post.message(run).state == UNKNOWN


# -- a person -----------------------------------------------------------------------------------------------------------


def test_a_person_says_that_it_was_done_and_the_next_one_goes(book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b")
    post.report(post.take_one(), said.UNKNOWN)

    post.resolve(run, done=True)

    assert post.deliver() == ["b"]
    by, why, detail = book.events("message_resolved")[0]
    assert (by, why, detail) == ("ops@example", "looked into it", "message a to billing: done")


def test_a_person_says_that_it_was_not_and_it_goes_again(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    post.report(post.take_one(), said.UNKNOWN)

    post.resolve(run, done=False)

    assert post.take_one().fence == 2


def test_after_a_person_has_said_that_it_was_not_the_attempts_word_comes_too_late(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    parcel = post.take_one()
    post.lapse()
    post.resolve(run, done=False)

    assert post.report(parcel, said.DELIVERED) == "too late"
    assert post.message(run).state == PENDING


def test_a_message_whose_attempt_may_yet_report_is_not_resolved(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    post.take_one()

    with pytest.raises(NotAllowed, match="sending; wait for its attempt"):
        post.resolve(run, done=False)


def test_who_cannot_tell_yet_keeps_it_from_being_asked_about_or_sent_before_they_wanted(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    post.report(post.take_one(), said.UNKNOWN)

    left = book.write(put_off_message(run, "a", WORD, again_in=HOUR))

    assert (left.state, left.cause) == ("unknown", "ops@example cannot tell yet: looked into it")
    by, why, detail = book.events("message_put_off")[0]
    assert (by, why, detail[:21]) == ("ops@example", "looked into it", "message a to billing:")
    book.clock.advance(HOUR - 1)
    assert post.take() == []
    book.clock.advance(1)
    assert post.take_one().id.run == run


def test_only_an_unknown_message_is_put_off(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    with pytest.raises(NotAllowed, match="cannot put off the message 'a': it is pending"):
        book.write(put_off_message(run, "a", WORD, again_in=HOUR))


# -- probes -------------------------------------------------------------------------------------------------------------


def _doubted(post: Post) -> said.RunId:
    run = post.sent("a", "b")
    post.report(post.take_one(), said.UNKNOWN)
    return run


def test_a_probe_waits_until_the_effect_could_be_seen(book: Book) -> None:
    post = Post(book)
    _doubted(post)
    book.clock.advance(PROBE_AFTER - SECOND)
    assert post.take() == []
    book.clock.advance(SECOND)

    assert post.take_one().probing


def test_a_probe_that_found_it_settles_it(book: Book) -> None:
    post = Post(book)
    run = _doubted(post)
    book.clock.advance(PROBE_AFTER)

    assert post.report(post.take_one(), said.HAPPENED) == DELIVERED

    assert post.deliver() == ["b"]
    assert book.events("message_resolved")[0][2] == "message a to billing: done: a probe says their batch 4711"
    assert post.message(run).state == DELIVERED


def test_did_not_is_believed_twice(book: Book) -> None:
    post = Post(book)
    _doubted(post)
    book.clock.advance(PROBE_AFTER)
    assert post.report(post.take_one(), said.DID_NOT) == UNKNOWN
    assert post.take() == []
    book.clock.advance(PROBE_AFTER)

    assert post.report(post.take_one(), said.DID_NOT) == PENDING

    assert not post.take_one().probing


def test_did_not_is_believed_at_once_of_a_receiver_that_reads_its_own_writes(book: Book) -> None:
    post = Post(book)
    _doubted(post)
    book.clock.advance(PROBE_AFTER)

    assert post.report(post.take_one(), said.DID_NOT_AT_ONCE) == PENDING


def test_a_new_doubt_forgets_that_it_was_denied(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    _doubted(post)
    book.clock.advance(HOUR)
    post.report(post.take_one(), said.DID_NOT)
    post.limits = Post(book, remembers=FOREVER).limits
    book.clock.advance(PROBE_AFTER)
    post.report(post.take_one(), said.UNKNOWN)
    post.limits = Post(book).limits
    book.clock.advance(PROBE_AFTER)

    assert post.report(post.take_one(), said.DID_NOT) == UNKNOWN


def test_a_sending_that_vanished_is_a_new_doubt_too(book: Book) -> None:
    post = Post(book, remembers=HOUR)
    _doubted(post)
    book.clock.advance(HOUR)
    post.report(post.take_one(), said.DID_NOT)
    post.limits = Post(book, remembers=FOREVER).limits
    book.clock.advance(PROBE_AFTER)
    assert not post.take_one().probing
    post.lapse()
    post.take()  # finds that it has vanished, and may send it again no more than look for it
    post.limits = Post(book).limits
    book.clock.advance(LATE)
    post.take()
    book.clock.advance(PROBE_AFTER)
    probe = post.take_one()

    assert (probe.probing, post.report(probe, said.DID_NOT)) == (True, UNKNOWN)


def test_what_was_found_of_an_earlier_doubt_is_too_late(book: Book) -> None:
    post = Post(book)
    post.sent("a")
    sending = post.take_one()
    post.lapse()
    post.take()
    book.clock.advance(PROBE_AFTER)
    probe = post.take_one()
    assert probe.probing
    assert post.report(sending, said.UNKNOWN) == UNKNOWN  # it was only stopped, and is in doubt itself now

    assert post.report(probe, said.DID_NOT_AT_ONCE) == "too late"


def test_two_probes_do_not_ask_at_once(book: Book) -> None:
    """One answer would count as two."""
    post = Post(book)
    _doubted(post)
    book.clock.advance(PROBE_AFTER)
    post.take_one()

    assert post.take() == []


def test_what_a_probe_says_after_a_person_is_too_late(book: Book) -> None:
    post = Post(book)
    run = _doubted(post)
    book.clock.advance(PROBE_AFTER)
    probe = post.take_one()
    post.resolve(run, done=True)

    assert post.report(probe, said.DID_NOT_AT_ONCE) == "too late"
    assert post.message(run).state == DELIVERED


def test_an_attempt_that_may_be_alive_is_not_looked_for(book: Book) -> None:
    if book.path.startswith("postgresql"):
        pytest.skip("on PostgreSQL the lease alone decides")
    post = Post(book)
    post.sent()
    parcel = post.take_one()
    post.lapse()
    post.take()
    pulse = post.pulse(parcel)  # it was only stopped
    book.clock.advance(PROBE_AFTER)
    assert post.take() == []

    let_die(pulse)
    book.clock.advance(HOUR)

    assert post.take_one().probing


# -- what all relays share ----------------------------------------------------------------------------------------------


def _many(post: Post, days: int) -> None:
    for day in range(1, days + 1):
        post.sent("a", window=f"2026-10-0{day}")


def test_no_more_are_sent_at_once_than_the_destination_takes(book: Book) -> None:
    post = Post(book, at_once=2)
    _many(post, 3)

    first = post.take()

    assert len(first) == 2
    assert post.take() == []
    post.report(first[0], said.DELIVERED)
    assert len(post.take()) == 1


def test_no_more_are_sent_in_a_time_than_the_rate_allows(book: Book) -> None:
    post = Post(book, interval=10 * SECOND)
    _many(post, 3)

    assert [len(post.take()) for _ in range(2)] == [1, 0]
    book.clock.advance(10 * SECOND)
    assert [len(post.take()) for _ in range(2)] == [1, 0]


# -- what waits for messages --------------------------------------------------------------------------------------------


def test_a_run_is_not_reopened_before_its_messages_are_delivered(book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b")

    with pytest.raises(NotAllowed, match="0/2 delivered"):
        book.reopen(run)

    post.deliver()
    assert book.reopen(run).revision == 2


def _prune(book: Book) -> int:
    """Prune what was settled an hour ago; the horizon then."""
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    found = book.store.read(forgettable(known, known.series, settled_by=book.clock.now() - HOUR))
    return known.series.horizon if found is None else book.write(raise_horizon(found, by="ops", reason="old"))


def test_a_run_is_not_pruned_before_its_messages_are_delivered_for_as_long(book: Book) -> None:
    post = Post(book)
    book.job()
    taken = book.poke()
    assert isinstance(taken, Taken)
    run = post.complete(taken.claim, "a")
    book.clock.advance(DAY)
    book.work_all()
    book.clock.advance(2 * HOUR)
    assert _prune(book) <= run.nominal
    post.deliver()
    assert _prune(book) <= run.nominal
    book.clock.advance(2 * HOUR)

    assert _prune(book) > run.nominal


def test_in_an_ordered_job_a_run_waits_for_the_messages_of_the_one_before_it(book: Book) -> None:
    post = Post(book)
    book.job(ordered=1)
    post.complete(book.take("2026-10-04"), "a")
    waits = book.ask("2026-10-05")
    assert isinstance(waits, Busy)
    assert waits.owner == "the messages of the run before it are not delivered"
    taken = book.poke()
    assert isinstance(taken, Idle)

    post.deliver()

    assert isinstance(book.poke(), Taken)


# -- a ledger that went back in time --------------------------------------------------------------------------------------


def test_what_was_to_be_sent_when_the_ledger_went_back_may_have_been_sent_since(book: Book) -> None:
    """A receiver that remembers keys from then on is sent it again, in order; another is asked."""
    post = Post(book, remembers=2 * HOUR)
    run = post.sent("a", "b")
    whole_until = book.clock.now()
    book.clock.advance(HOUR)

    book.write(doubt_since(whole_until, WORD))

    assert post.states(run) == {"a": UNKNOWN, "b": UNKNOWN}
    first = post.take_one()
    assert (first.name, first.probing, first.first_sent_at) == ("a", False, whole_until)
    post.report(first, said.DELIVERED)
    book.clock.advance(HOUR)
    second = post.take_one()
    assert (second.name, second.probing) == ("b", True)


def test_what_is_done_again_after_the_ledger_went_back_may_have_been_sent_before(book: Book) -> None:
    """The completion was forgotten, and the message with it: not so by its receiver."""
    post = Post(book)
    book.job()
    whole_until = book.clock.now()
    book.clock.advance(HOUR)
    book.write(doubt_since(whole_until, WORD))

    run = post.complete(book.take("2026-10-05"), "a", "b")

    assert post.states(run) == {"a": UNKNOWN, "b": UNKNOWN}
    book.clock.advance(PROBE_AFTER)
    first = post.take_one()
    assert (first.name, first.probing, first.first_sent_at) == ("a", True, whole_until)
    post.report(first, said.DID_NOT_AT_ONCE)
    again = post.take_one()
    assert (again.name, again.probing) == ("a", False)
    post.report(again, said.DELIVERED)
    second = post.take_one()
    assert (second.name, second.probing) == ("b", True)


def test_what_is_done_again_goes_to_a_receiver_that_still_remembers(book: Book) -> None:
    post = Post(book, remembers=2 * HOUR)
    book.job()
    whole_until = book.clock.now()
    book.clock.advance(HOUR)
    book.write(doubt_since(whole_until, WORD))
    run = post.complete(book.take("2026-10-05"), "a")

    again = post.take_one()

    assert (again.name, again.probing, again.first_sent_at) == ("a", False, whole_until)
    assert post.report(again, said.DELIVERED) == DELIVERED
    assert post.states(run) == {"a": DELIVERED}


def test_what_came_due_after_the_ledger_went_back_is_in_no_doubt(book: Book) -> None:
    post = Post(book)
    book.job()
    book.write(doubt_since(book.clock.now(), WORD))
    book.clock.advance(24 * HOUR)

    run = post.complete(book.take("2026-10-06"), "a")

    assert post.states(run) == {"a": PENDING}
    assert post.deliver() == ["a"]


# -- what is seen -------------------------------------------------------------------------------------------------------

SECRET = b"iban DE02 1203 0000 0000 2020 51"


def test_no_view_and_no_row_but_its_own_shows_a_body(book: Book) -> None:
    post = Post(book)
    book.job()
    run = post.complete(book.take(), "a", body=SECRET)
    parcel = post.take_one()
    post.report(parcel, said.REFUSED)

    tables = ("duly_message_readable", "duly_message", "duly_message_attempt", "duly_event", "duly_run_readable")
    shown = " ".join(repr(book.rows(f"select * from {table}")) for table in tables)

    assert "DE02" not in shown + repr(parcel) + repr(post.message(run))
    assert post.message(run).state == REFUSED
