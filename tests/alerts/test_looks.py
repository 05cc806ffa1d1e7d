"""What somebody is told of, and when: from the schedule and the rows, each flip once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from duly.errors import Misuse, NotAllowed, UnknownJob, UnknownScope
from duly.evidence.status import status
from duly.ledger.alerts import DIGEST_ABOVE, KINDS
from duly.ledger.looks import is_time_to_look
from duly.ledger.silence import silence, unsilence
from duly.schedule.spec import every
from duly.times import DAY, HOUR, MINUTE
from duly.work.alerts import Alerting, look
from duly.work.configuration import fields
from tests.alerts.watch import OPS, Watch
from tests.books import WORD, Book

RUN = "export:2026-10-05[UTC]"


# -- late ---------------------------------------------------------------------------------------------------------------


def test_a_line_that_nobody_ever_poked_is_late_when_its_grace_is_over(book: Book) -> None:
    """Due at midnight; a tenth of the day, but at most an hour, is its grace."""
    book.clock.set("2026-10-06T00:59:00Z")
    book.job()
    watch = Watch(book)
    assert watch.open() == []

    book.clock.set("2026-10-06T01:00:01Z")
    watch.look()

    assert book.rows("select count(*) from duly_run r join duly_series s on s.id = r.series where s.grain = 'day'") == [
        (0,)
    ]
    (document,) = watch.documents()
    assert document == {
        "schema": "duly.alert.v1",
        "kind": "late",
        "state": "raised",
        "alert": 1,
        "job": "export",
        "scope": "",
        "about": "export",
        "since": "2026-10-06T01:00:00Z",
        "at": "2026-10-06T01:00:01Z",
        "text": "export: late: 2026-10-05 never started, due 2026-10-06T00:00:00Z (grace 1h)",
        "next_step": "duly explain export 2026-10-05",
        "open": 1,
        "open_of_job": 1,
    }


def test_a_line_is_late_once_however_often_somebody_looks_and_whatever_else_becomes_late(book: Book) -> None:
    watch = Watch(book)
    book.job()

    for _ in range(3):
        watch.look()
        book.clock.advance("1d")

    assert watch.told() == [("late", "raised", "export")]
    assert watch.open() == [("late", "export")]


def test_it_is_late_until_the_window_is_complete_not_until_somebody_begins(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    claim = book.take()
    watch.look()
    assert watch.told() == [("late", "raised", "export")]

    book.complete(claim)
    watch.look()

    assert watch.told() == [("late", "recovered", "export")]
    assert watch.open() == []


def test_a_run_that_is_only_slow_is_not_late(book: Book) -> None:
    """As `status` has it: somebody has come for it, and in time."""
    book.clock.set("2026-10-06T00:10:00Z")
    book.job(lease=DAY)
    watch = Watch(book)
    book.take()

    book.clock.set("2026-10-06T04:00:00Z")
    watch.look()

    assert watch.open() == []


@pytest.mark.parametrize("stop", ["pause", "skip"])
def test_what_a_person_has_decided_is_not_late(stop: str, book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()

    book.pause() if stop == "pause" else book.skip()
    watch.look()

    assert watch.told() == [("late", "raised", "export"), ("late", "recovered", "export")]


def test_each_scope_is_late_by_itself(book: Book) -> None:
    watch = Watch(book)
    book.job()
    for scope in ("acme", "globex"):
        book.declare("export", scope)
    book.complete(book.take(scope="acme"))

    watch.look()

    assert watch.open() == [("late", "export"), ("late", "globex/export")]


def test_a_day_that_is_missed_while_nobody_looks_and_made_good_is_no_news(book: Book) -> None:
    watch = Watch(book)
    book.job()
    book.complete(book.take())

    watch.look()

    assert watch.told() == []


# -- runs ---------------------------------------------------------------------------------------------------------------


def test_a_run_that_waits_for_a_person_is_told_until_somebody_has_retried_it(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    book.fail(book.take(), retry_in=None)
    watch.look()
    assert watch.told() == [("failed", "raised", RUN)]

    book.retry(book.find()[1])
    watch.look()

    assert watch.told() == [("failed", "recovered", RUN)]


def test_a_run_that_is_retried_by_policy_is_nobodys_business(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    book.fail(book.take(), retry_in=MINUTE)

    watch.look()

    assert watch.told() == []


def test_an_outcome_that_nobody_knows_is_told(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    book.doubt(book.take())
    watch.look()

    book.lapse()
    book.resolve(book.find()[1], done=True)
    watch.look()

    assert watch.told() == [("unknown", "raised", RUN), ("unknown", "recovered", RUN)]


def test_an_attempt_that_vanished_and_that_nobody_came_to_judge_is_unknown_all_the_same(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job(contract="external", retries=None)
    watch = Watch(book)
    book.take()
    book.lapse()

    watch.look()

    assert watch.open() == [("unknown", RUN)]


def test_an_attempt_that_was_taken_over_is_told_once(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    book.take()
    book.lapse()
    book.take()

    for _ in range(2):
        watch.look()

    assert watch.told() == [("superseded", "noted", RUN)]
    assert watch.open() == []


def test_what_had_happened_before_the_first_look_is_no_news(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    book.take()
    book.lapse()
    book.take()
    book.clock.advance("1s")
    watch = Watch(book)

    watch.look()

    assert watch.alerts() == []


def test_a_drift_is_told_once_for_a_run(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    book.complete(book.take())
    run = book.find()[1]
    for _ in range(2):
        book.amend(
            "insert into duly_event (at, kind, series, nominal, revision, by, reason, detail, before, after)"
            " values (?, ?, ?, ?, ?, '', '', ?, '', '')",
            book.store.now(), "tz_drift", run.series, run.nominal, run.revision, "end 2026 is stored",
        )  # fmt: skip
        watch.look()

    assert watch.told() == [("drift", "noted", RUN)]


# -- messages -----------------------------------------------------------------------------------------------------------


def test_messages_that_nothing_delivers_are_told_by_destination(book: Book) -> None:
    book.clock.set("2026-10-06T00:10:00Z")
    book.job()
    watch = Watch(book)
    watch.refused_message()
    watch.look()

    book.amend("update duly_message set state = 'skipped' where destination = 'billing'")
    watch.look()

    assert watch.told() == [("stuck", "raised", "billing"), ("stuck", "recovered", "billing")]


def test_a_doubt_is_told_when_neither_a_sending_nor_a_probe_has_settled_it(book: Book) -> None:
    book.job()
    watch = Watch(book)
    watch.refused_message()
    book.amend(
        "update duly_message set state = 'unknown', first_sent_at = ? where destination = 'billing'", book.store.now()
    )
    watch.look()
    assert watch.open() == []

    book.clock.advance("16m")
    watch.look()

    assert watch.open() == [("stuck", "billing")]


def test_alerts_that_are_stuck_themselves_are_one_more_alert_and_no_more(book: Book) -> None:
    book.job()
    watch = Watch(book)
    watch.look()
    book.amend("update duly_message set state = 'refused'")

    for _ in range(3):
        watch.look()
        book.amend("update duly_message set state = 'refused'")

    assert watch.open() == [("late", "export"), ("stuck", "ops")]
    assert len(watch.documents()) == 2


# -- status says the same -----------------------------------------------------------------------------------------------


def test_what_is_told_is_what_status_says_needs_a_person(book: Book) -> None:
    """A ledger with a gap of each kind."""
    watch = Watch(book)
    names = ("missed", "opened", "failed", "unknown", "paused", "done", "slow", "skipped", "vanished", "retrying")
    for name in names:
        book.job(name, retries=None, contract="external" if name == "vanished" else "transactional")
    book.fail(book.take(job="failed"), retry_in=None)
    book.fail(book.take(job="retrying"), retry_in=10 * HOUR)
    book.doubt(book.take(job="unknown"))
    book.release(book.take(job="opened"))
    book.pause("paused")
    book.complete(book.take(job="done"))
    book.skip(job="skipped")
    book.take(job="vanished")
    book.clock.advance("2h")
    book.take(job="slow")

    watch.look()

    seen = book.store.read(status())
    needs = {window.key.job for window in seen.needs} | {each.known.job.name for each in seen.unopened}
    assert needs == {"missed", "opened", "failed", "unknown", "vanished"}
    assert {alert.job for alert in watch.alerts()} == needs


def test_the_alerts_own_job_is_never_in_need(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    book.complete(book.take())
    watch.look()
    book.amend("update duly_message set state = 'delivered'")
    book.clock.advance("9h")

    seen = book.store.read(status())

    assert [w for w in (*seen.needs, *seen.running, *seen.waiting) if w.key.job == "duly.alerts"] == []
    assert [each for each in seen.unopened if each.known.job.name == "duly.alerts"] == []


# -- the first look, and storms ------------------------------------------------------------------------------------------


def test_the_first_look_says_in_one_message_how_much_there_is(book: Book) -> None:
    for name in ("a", "b", "c"):
        book.job(name)
    book.fail(book.take(job="c"), retry_in=None)

    watch = Watch(book)

    (document,) = watch.documents()
    assert (document["kind"], document["state"]) == ("several", "raised")
    assert document["counts"] == [
        {"kind": "failed", "state": "raised", "alerts": 1},
        {"kind": "late", "state": "raised", "alerts": 2},
    ]
    assert document["text"] == "as of the first look: 1 failed, 2 late"
    watch.look()
    assert watch.told() == []


def test_the_first_look_at_a_ledger_that_is_well_says_nothing(book: Book) -> None:
    assert Watch(book).told() == []


def test_what_the_first_look_saw_is_told_when_it_is_over(book: Book) -> None:
    book.job()
    watch = Watch(book)
    book.complete(book.take())
    watch.look()

    assert watch.told()[1:] == [("late", "recovered", "export")]


def test_many_at_once_are_one_message_and_each_is_on_record(book: Book) -> None:
    watch = Watch(book)
    for number in range(DIGEST_ABOVE + 1):
        book.job(f"job-{number:02}")

    watch.look()

    (document,) = watch.documents()
    assert document["counts"] == [{"kind": "late", "state": "raised", "alerts": DIGEST_ABOVE + 1}]
    assert len(watch.open()) == DIGEST_ABOVE + 1
    assert {alert.told for alert in watch.alerts()} == {"open"}


def test_as_many_as_may_be_are_a_message_each(book: Book) -> None:
    watch = Watch(book)
    for number in range(DIGEST_ABOVE):
        book.job(f"job-{number:02}")

    watch.look()

    assert len(watch.documents()) == DIGEST_ABOVE


# -- two who look --------------------------------------------------------------------------------------------------------


def test_of_two_who_look_at_once_one_writes(book: Book) -> None:
    watch = Watch(book)
    book.job()
    first, second = watch.begin(), watch.begin()

    looked = [watch.record(first), watch.record(second)]

    assert looked[0] is None
    assert watch.told() == [("late", "raised", "export")]


def test_a_look_that_was_stopped_and_goes_on_after_another_writes_nothing(book: Book) -> None:
    """What it has seen is not so any more."""
    watch = Watch(book)
    book.job()
    begun = watch.begin()
    watch.look()
    book.complete(book.take())
    watch.look()

    assert watch.record(begun) is None
    assert watch.told() == [("late", "raised", "export"), ("late", "recovered", "export")]


def test_of_many_who_look_at_once_somebody_tells_it_once(book: Book) -> None:
    watch = Watch(book)
    book.job()
    many = 6
    start = Barrier(many)

    def looks() -> None:
        start.wait()
        look(book.store, OPS, every=0)
        book.store.close()

    with ThreadPoolExecutor(many) as pool:
        for ended in [pool.submit(looks) for _ in range(many)]:
            ended.result()
    watch.look()

    assert watch.told() == [("late", "raised", "export")]


def test_a_ledger_that_went_back_gives_no_key_again(book: Book) -> None:
    """Its numbers come again, and a receiver that remembers keys is to take the next alert for a new one."""
    watch = Watch(book)
    book.job()
    watch.look()
    before = book.rows("select idempotency_key from duly_message")
    for table in ("duly_message_body", "duly_message", "duly_alert"):
        book.amend(f"delete from {table}")
    book.amend("delete from duly_attempt")
    book.amend("delete from duly_run")
    book.clock.advance("1m")

    watch.look()

    assert len(before) == len(book.rows("select idempotency_key from duly_message")) == 1
    assert before != book.rows("select idempotency_key from duly_message")


def test_one_look_is_written_once(book: Book) -> None:
    watch = Watch(book)
    book.job()
    begun = watch.begin()

    assert watch.record(begun) is not None
    book.complete(book.take())
    assert watch.record(begun) is None


def test_a_look_that_was_killed_before_it_wrote_has_found_nothing_and_the_next_one_does(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.begin()

    watch.look()

    assert watch.told() == [("late", "raised", "export")]


def test_nobody_looks_twice_within_a_minute(book: Book) -> None:
    assert book.store.read(is_time_to_look(MINUTE))
    assert look(book.store, OPS) is not None

    book.clock.advance("59s")
    assert not book.store.read(is_time_to_look(MINUTE))
    assert look(book.store, OPS) is None
    book.clock.advance("1s")

    assert book.store.read(is_time_to_look(MINUTE))
    assert look(book.store, OPS) is not None


def test_a_clock_that_was_set_back_does_not_keep_anybody_from_looking(book: Book) -> None:
    look(book.store, OPS)
    book.clock.set("2026-10-05T03:00:00Z")

    assert book.store.read(is_time_to_look(MINUTE))
    assert look(book.store, OPS) is not None


# -- silences ------------------------------------------------------------------------------------------------------------


def test_a_silence_keeps_quiet_and_what_is_still_so_afterwards_is_told(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.silence()
    watch.look()
    assert (watch.told(), watch.open()) == ([], [("late", "export")])

    book.clock.advance("1d")
    watch.look()

    assert watch.told() == [("late", "raised", "export")]


def test_what_began_and_ended_in_silence_is_never_told(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.silence()
    watch.look()
    book.complete(book.take())
    watch.look()
    watch.unsilence()

    watch.look()

    assert watch.told() == []
    assert [(alert.kind, alert.state) for alert in watch.alerts()] == [("late", "recovered")]


def test_the_end_of_what_was_told_before_a_silence_is_told_after_it(book: Book) -> None:
    """Else a check would stay down for ever."""
    watch = Watch(book)
    book.job()
    watch.look()
    watch.silence()
    book.complete(book.take())
    watch.look()
    assert watch.told() == [("late", "raised", "export")]

    watch.unsilence()
    watch.look()

    assert watch.told() == [("late", "recovered", "export")]


def test_that_it_was_over_is_no_news_where_it_is_so_again(book: Book) -> None:
    """The last word has to be what is so."""
    watch = Watch(book)
    book.job()
    watch.look()
    watch.silence()
    book.complete(book.take())
    watch.look()
    book.clock.advance("1d1h")  # the silence is over, and the next window late
    assert watch.told() == [("late", "raised", "export")]

    watch.look()
    watch.look()

    assert watch.told() == [("late", "raised", "export")]
    assert [(alert.state, alert.told) for alert in watch.alerts()] == [("open", "open"), ("recovered", "recovered")]


def test_what_has_not_left_yet_is_not_overtaken_by_what_is_told_next(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    book.complete(book.take())
    watch.look()
    book.clock.advance("1d1h")

    runs = book.rows("select count(distinct m.nominal), count(*) from duly_message m")
    watch.look()

    assert runs == [(1, 2)]
    assert book.rows("select count(distinct m.nominal), count(*) from duly_message m") == [(1, 3)]
    assert [each[1] for each in watch.told()] == ["raised", "recovered", "raised"]


@pytest.mark.parametrize("state", ["refused", "dead", "unknown"])
def test_what_waits_for_a_person_holds_no_other_message_up(book: Book, state: str) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    book.amend("update duly_message set state = ?, due_at = null", state)
    book.complete(book.take())

    watch.look()

    assert ("late", "recovered", "export") in watch.told()
    assert book.rows("select count(*) from duly_message where state = 'pending' and due_at is null") == [(0,)]


def test_a_silence_is_of_its_job_and_kind(book: Book) -> None:
    watch = Watch(book)
    for name in ("export", "other"):
        book.job(name)
    watch.silence("export", "late")
    watch.look()
    assert watch.told() == [("late", "raised", "other")]

    for name in ("export", "other"):
        book.fail(book.take(job=name), retry_in=None)
    watch.look()

    assert sorted(watch.told()) == [
        ("failed", "raised", "export:2026-10-05[UTC]"),
        ("failed", "raised", "other:2026-10-05[UTC]"),
    ]


def test_a_silence_names_a_job_that_there_is_and_a_time_to_come(book: Book) -> None:
    book.job()
    later = book.store.now() + 1

    with pytest.raises(UnknownJob):
        book.write(silence("exprot", None, None, WORD, until=later))
    with pytest.raises(UnknownScope):
        book.write(silence("export", "acme", None, WORD, until=later))
    with pytest.raises(Misuse):
        book.write(silence("export", None, None, WORD, until=later - 1))
    with pytest.raises(NotAllowed):
        book.write(unsilence("export", None, None, WORD))


# -- who is told ---------------------------------------------------------------------------------------------------------


def test_each_destination_is_told_of_its_own(book: Book) -> None:
    watch = Watch(book, Alerting(to=("ops", "chat"), kinds=("failed",), on_late={"export": "pager"}))
    for name in ("export", "other"):
        book.job(name)
    book.fail(book.take(job="other"), retry_in=None)

    watch.look()

    found = book.rows("select destination, name from duly_message order by destination")
    assert found == [
        ("chat", "other:2026-10-05[UTC]: failed"),
        ("ops", "other:2026-10-05[UTC]: failed"),
        ("pager", "export: late"),
    ]


def test_what_nobody_was_told_is_told_when_somebody_wants_to_know(book: Book) -> None:
    watch = Watch(book, Alerting(to=("ops",), kinds=("failed",)))
    book.job()
    watch.look()
    assert watch.told() == []

    watch.alerting = OPS
    watch.look()

    assert watch.told() == [("late", "raised", "export")]


def test_what_ends_an_alert_waits_for_what_began_it(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    book.complete(book.take())

    watch.look()

    found = book.rows("select nominal, number, name, due_at is null from duly_message order by number")
    assert [(number, name, bool(waits)) for _, number, name, waits in found] == [
        (1, "export: late", False),
        (2, "export: late, recovered", True),
    ]


def test_where_that_has_left_it_goes_by_itself(book: Book) -> None:
    watch = Watch(book)
    book.job()
    watch.look()
    book.amend("update duly_message set state = 'delivered'")
    book.complete(book.take())

    watch.look()

    assert watch.told() == [("late", "raised", "export"), ("late", "recovered", "export")]
    assert book.rows("select count(distinct nominal) from duly_message") == [(2,)]


def test_a_mail_is_read_by_people(book: Book) -> None:
    watch = Watch(book, Alerting(to=("post",), mail=("post",)))
    book.job()

    watch.look()

    ((name, kind, body),) = book.rows(
        "select m.name, b.content_type, b.body from duly_message m join duly_message_body b on b.series = m.series"
    )
    assert (name, kind) == ("export: late", "text/plain; charset=utf-8")
    assert bytes(body).decode() == (
        "export: late: 2026-10-05 never started, due 2026-10-06T00:00:00Z (grace 1h)\n\n"
        "since   2026-10-06T01:00:00Z\ntold    2026-10-06T03:00:00Z\nopen    1 alert\n\n"
        "next:   duly explain export 2026-10-05\n"
    )


def test_a_destination_with_a_long_name_is_told_too(book: Book) -> None:
    names = tuple(f"{'x' * 99}{end}" for end in "ab")
    watch = Watch(book, Alerting(to=names))
    book.job()

    watch.look()

    assert book.rows("select destination from duly_message order by destination") == [(name,) for name in names]


def test_a_job_that_was_renamed_is_late_under_its_name_and_not_anew(book: Book) -> None:
    from duly.ledger.rename import rename

    watch = Watch(book)
    book.job()
    watch.look()
    watch.documents()

    book.write(rename("export", "ship", WORD))
    watch.look()

    assert watch.told() == []
    assert [alert.job for alert in watch.alerts()] == ["ship"]


def test_an_every_minute_job_asleep_for_a_year_is_one_alert(book: Book) -> None:
    watch = Watch(book)
    book.job(schedule=every("1m"))
    book.clock.advance("365d")

    watch.look()

    (document,) = watch.documents()
    assert document["text"].endswith("; 999 windows or more are late")


def test_the_kinds_that_a_file_may_name_are_those_there_are() -> None:
    assert fields.KINDS == KINDS
