"""The record of who did what: every change by a person or a policy says who, when, why, what was so and what is since."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import duly
from duly.evidence.audit import happenings, parse_place
from duly.ledger.backfill import cancel_backfill, pause_backfill, resume_backfill
from duly.ledger.forget import forgettable, raise_horizon
from duly.ledger.receive import raise_source_horizon
from duly.ledger.register import find
from duly.ledger.rename import rename
from duly.ledger.restore import doubt_since
from duly.ledger.retire import bring_back, retire_job
from duly.ledger.roster import Scope, add_scopes, enrol, retire_scopes
from duly.ledger.silence import silence, unsilence
from duly.ledger.versions import apply
from duly.schedule.catch_up import CatchUp
from duly.schedule.spec import daily
from duly.times import DAY, HOUR, parse_instant
from tests.books import WORD, Book
from tests.outbox import post as said
from tests.outbox.post import Post

PERSON, WHY = WORD.by, WORD.reason
NOW = "2026-10-06T03:00:00Z"
TOMORROW = "2026-10-07T03:00:00Z"


def after(*steps: Callable[[Book], object]) -> Callable[[Book], None]:
    """One step after the other."""

    def act(book: Book) -> None:
        for step in steps:
            step(book)

    return act


def failed(book: Book) -> None:
    book.job()
    book.fail(book.take(), retry_in=None)


def doubt(book: Book) -> None:
    book.job(contract="external")
    book.doubt(book.take())


def unknown(book: Book) -> None:
    doubt(book)
    book.lapse()


def retry(book: Book) -> None:
    failed(book)
    book.retry(book.find()[1])


def skip_failed(book: Book) -> None:
    failed(book)
    book.skip()


def skip_untouched(book: Book) -> None:
    book.job()
    book.skip()


def unskip(book: Book) -> None:
    failed(book)
    book.skip()
    book.unskip()


def cut_out_of_range(book: Book) -> None:
    catch_up(book)
    book.unskip("2026-10-06")


def reopen(book: Book) -> None:
    book.job()
    claim = book.take()
    book.complete(claim)
    book.reopen(claim.run)


def cancel_running(book: Book) -> None:
    book.job()
    book.hold_pulse(book.take()) if book.path.endswith(".db") else book.take()
    book.cancel()


def cancel_untouched(book: Book) -> None:
    book.job()
    book.cancel()


def resolve(book: Book, *, done: bool) -> None:
    unknown(book)
    book.resolve(book.find()[1], done=done)


def lapse(book: Book) -> None:
    book.job(contract="external")
    book.take()
    book.lapse()
    book.ask()


def catch_up(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(3 * DAY)
    book.poke()


def drop_row(book: Book) -> None:
    book.job(catch_up="latest")
    book.release(book.take())
    book.amend("update duly_run set asked_at = null")
    book.clock.advance(DAY)
    book.poke()


def message(book: Book, word: said.SaidRefused | said.SaidUnknown | None, act: Callable[[Post], object]) -> None:
    post = Post(book)
    post.sent("a")
    if word is not None:
        post.report(post.take_one(), word)
    act(post)


def prune(book: Book) -> None:
    book.job()
    book.work_all()
    for _ in range(4):
        book.clock.advance(DAY)
        book.work_all()
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    found = book.store.read(forgettable(known, known.series, settled_by=book.clock.now() - 2 * DAY))
    assert found is not None
    book.write(raise_horizon(found, by=PERSON, reason=WHY))


def prune_keys(book: Book) -> None:
    book.amend("insert into duly_source (name, remembers, horizon, created_at) values ('orders', 3600000000, 0, 0)")
    book.write(raise_source_horizon("orders", by=PERSON, reason=WHY))


def backfilled(book: Book) -> int:
    book.job(catch_up="latest")
    book.work_all()
    book.amend("update duly_line set starts = ?", parse_instant("2026-09-01T00:00:00Z"))
    return book.backfill("2026-10-01", "2026-10-04")


def restored(book: Book) -> None:
    book.job(contract="external")
    book.release(book.take())
    book.write(doubt_since(parse_instant("2026-10-06T02:00:00Z"), WORD))


def other_policies(book: Book) -> None:
    book.job(retries=3)
    book.job(retries=5)


def first_schedule(book: Book) -> None:
    book.job()
    book.amend("update duly_job set version = null")
    book.amend("delete from duly_version")
    book.declare()


def undeclare(book: Book, *, again: bool) -> None:
    book.job()
    for scopes in (["a", "b"], ["a"], ["a", "b"])[: 3 if again else 2]:
        book.write(enrol(book.declaration(), [Scope(name) for name in scopes]))


def paused(book: Book) -> None:
    book.job()
    book.pause()


def silenced(book: Book) -> None:
    book.job()
    book.write(silence("export", None, None, WORD, until=book.store.now() + DAY))


# What happens, the event that it leaves, who is named, why (a person's reason, or what a policy says), before and after.
CHANGES: dict[str, tuple[Callable[[Book], object], str, str, str, str, str]] = {
    "retry": (retry, "retried", PERSON, WHY, "failed, waits for a person", f"failed, tried again from {NOW}"),
    "skip, of a failed run": (skip_failed, "skipped", PERSON, WHY, "failed, waits for a person", "skipped"),
    "skip, of a window without a row": (skip_untouched, "skipped", PERSON, WHY, "absent", "skipped"),
    "unskip": (unskip, "unskipped", PERSON, WHY, "skipped", f"failed, tried again from {NOW}"),
    "unskip, out of a range": (cut_out_of_range, "unskipped", PERSON, WHY, "skipped", "open"),
    "reopen": (reopen, "reopened", PERSON, WHY, "completed", "open (revision 2)"),
    "cancel": (cancel_running, "cancel_asked", PERSON, WHY, "running", "running, asked to stop"),
    "cancel, of a run that nobody works": (cancel_untouched, "skipped", PERSON, WHY, "absent", "skipped"),
    "resolve, as done": (lambda b: resolve(b, done=True), "resolved", PERSON, WHY, "unknown", "completed"),
    "resolve, as not done": (
        *(lambda b: resolve(b, done=False), "resolved", PERSON, WHY, "unknown"),
        "failed, tried again from 2026-10-06T03:02:00Z",
    ),
    "doubt, by the attempt": (
        doubt, "unknown", "host/1@1+a", "time-out at the provider", "running", "unknown",
    ),
    "a contract, of an attempt that vanished": (
        lapse, "unknown", "duly", "its attempt vanished", "running", "unknown",
    ),
    "catch-up, of windows without rows": (
        *(catch_up, "range_skipped", "dev@example", "2026-10-06..2026-10-08: catch-up latest: a newer window was due"),
        *("absent", "skipped"),
    ),
    "catch-up, of a row": (
        drop_row, "skipped", "dev@example", "catch-up latest: a newer window was due", "open", "skipped",
    ),
    "resolve --message": (
        lambda b: message(b, said.UNKNOWN, lambda post: post.resolve(b.find()[1], done=True)),
        *("message_resolved", PERSON, WHY, "unknown", "delivered"),
    ),
    "outbox retry": (
        lambda b: message(b, said.REFUSED, lambda post: post.retry(b.find()[1])),
        *("message_retried", PERSON, WHY, "refused", "pending"),
    ),
    "outbox skip": (
        lambda b: message(b, None, lambda post: post.skip(b.find()[1])),
        *("message_skipped", PERSON, WHY, "pending", "skipped"),
    ),
    "a receiver that refuses": (
        lambda b: message(b, said.REFUSED, lambda post: None),
        *("message_refused", "host/7@7+r", "message a to billing: ", "sending", "refused"),
    ),
    "a receiver of which nobody knows": (
        lambda b: message(b, said.UNKNOWN, lambda post: None),
        *("message_unknown", "host/7@7+r", "message a to billing: ", "sending", "unknown"),
    ),
    "backfill start": (backfilled, "backfill_started", PERSON, WHY, "absent", "active"),
    "backfill pause": (
        lambda b: b.write(pause_backfill(backfilled(b), WORD)), "backfill_paused", PERSON, WHY, "active", "paused",
    ),
    "backfill resume": (
        lambda b: b.write(resume_backfill(b.write(pause_backfill(backfilled(b), WORD)).id, WORD)),
        *("backfill_resumed", PERSON, WHY, "paused", "active"),
    ),
    "backfill cancel": (
        lambda b: b.write(cancel_backfill(backfilled(b), WORD)), "backfill_cancelled", PERSON, WHY, "active", "cancelled",
    ),
    "jobs apply": (
        after(Book.job, lambda b: b.write(apply("export", daily("UTC", at="06:00"), by=PERSON, reason=WHY))),
        *("version_applied", PERSON, WHY, "version 1: daily in UTC"),
        "version 2: daily in UTC, worked at 06:00 the next morning",
    ),
    "a first schedule": (
        first_schedule, "version_applied", "dev@example", "its first", "no schedule", "version 1: daily in UTC",
    ),
    "jobs pause": (paused, "paused", PERSON, WHY, "not paused", f"paused by {PERSON}: {WHY}"),
    "jobs resume": (
        after(paused, lambda b: b.resume()), "resumed", PERSON, WHY, f"paused by {PERSON}: {WHY}", "not paused",
    ),
    "jobs resume, with a policy for once": (
        after(paused, lambda b: b.resume(policy=CatchUp("latest"))),
        *("resumed", PERSON, WHY, f"paused by {PERSON}: {WHY}", "not paused"),
    ),
    "alerts silence": (silenced, "silenced", PERSON, WHY, "told", "silenced until 2026-10-07T"),
    "alerts unsilence": (
        after(silenced, lambda b: b.write(unsilence("export", None, None, WORD))),
        *("unsilenced", PERSON, WHY, "silenced until 2026-10-07T03:00:00Z", "told"),
    ),
    "jobs rename": (
        after(Book.job, lambda b: b.write(rename("export", "invoices", WORD))),
        *("job_renamed", PERSON, WHY, "export", "invoices"),
    ),
    "jobs retire": (
        after(Book.job, lambda b: b.write(retire_job("export", WORD, skip_owed=False))),
        *("job_retired", PERSON, WHY, "not retired", f"retired at {NOW}"),
    ),
    "jobs retire --skip-owed, of a run": (
        after(failed, lambda b: b.write(retire_job("export", WORD, skip_owed=True))),
        *("skipped", PERSON, WHY, "failed, waits for a person", "skipped"),
    ),
    "jobs retire --undo": (
        after(
            Book.job,
            lambda b: b.write(retire_job("export", WORD, skip_owed=False)),
            lambda b: b.write(bring_back("export", WORD)),
        ),
        *("job_resumed", PERSON, WHY, f"retired at {NOW}", "not retired"),
    ),
    "jobs scopes add": (
        after(Book.job, lambda b: b.write(add_scopes("export", ["acme"], WORD, since="2026-10-05"))),
        *("scope_added", PERSON, WHY, "absent", "owed from 2026-10-06T00:00:00Z"),
    ),
    "jobs scopes retire": (
        after(Book.job, lambda b: b.write(retire_scopes("export", [""], WORD, at=TOMORROW))),
        *("scope_retired", PERSON, WHY, "owed from 2026-10-06T00:00:00Z"),
        f"owed from 2026-10-06T00:00:00Z until {TOMORROW}",
    ),
    "a scope that code declares no more": (
        lambda b: undeclare(b, again=False), "scope_undeclared", "dev@example", "declared in code", "declared", "not declared",
    ),
    "a scope that code declares again": (
        lambda b: undeclare(b, again=True), "scope_declared", "dev@example", "declared in code", "not declared", "declared",
    ),
    "policies that are declared": (
        other_policies, "policies_changed", "dev@example", "retries: 3 → 5", "retries = 3", "retries = 5",
    ),
    "a job that is declared first": (
        lambda b: b.job(), "job_registered", "dev@example", "daily in UTC", "absent", "catch_up = 'each'; contract = ",
    ),
    "db restored": (
        restored, "restored", PERSON, WHY, "epoch 1", "epoch 2",
    ),
    "db restored, of a run": (restored, "unknown", PERSON, WHY, "open", "unknown"),
    "prune": (prune, "horizon_raised", PERSON, WHY, "nothing was forgotten", "2026-10-08"),
    "prune, of keys that were received": (
        prune_keys, "keys_horizon_raised", PERSON, WHY, "1970-01-01T00:00:00Z", "2026-10-06T02:00:00Z",
    ),
}  # fmt: skip

# Nothing is changed by them: of the last, an attempt that did not complete its run had never sent the messages.
CHANGE_NOTHING = {
    *("below_horizon", "payload_refused", "tz_drift", "message_late_word", "probed", "messages_discarded"),
    *("put_off", "message_put_off"),
}
# Told by stories of their own: rules of zones that change (test_rules), labels (test_labels), what a daemon decides of
# a backfill (test_backfill), probes and what is given up (outbox/test_messages).
TOLD_ELSEWHERE = {
    *("window_moved", "version_labelled", "backfill_stopped", "backfill_done", "message_dead", "message_probed"),
    *("messages_doubted", "scope_resumed"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("book", ["sqlite"], indirect=True)
def test_a_change_says_who_when_why_and_what(book: Book, change: str) -> None:
    leaves_its_event(book, change)


@pytest.mark.parametrize(
    "change", ["retry", "catch-up, of windows without rows", "jobs scopes retire", "db restored", "prune"]
)
@pytest.mark.parametrize("book", ["postgres"], indirect=True)
def test_it_does_so_on_postgres(book: Book, change: str) -> None:
    leaves_its_event(book, change)


def leaves_its_event(book: Book, change: str) -> None:
    act, kind, by, why, before, after = CHANGES[change]

    act(book)

    events = book.rows(
        "select at, by, reason, detail, before, after, job from duly_event where kind = ? order by id", kind
    )
    at, who, reason, detail, was, became, job = events[-1]
    assert (who, was) == (by, before)
    assert reason == why if by == PERSON else why in f"{reason} {detail}"
    assert became.startswith(after)
    assert at == book.clock.now()
    assert (job is None) == (kind in ("restored", "keys_horizon_raised"))


def test_every_kind_of_event_is_told_of() -> None:
    source = "".join(path.read_text() for path in (Path(duly.__file__).parent / "ledger").glob("*.py"))
    kinds = set(
        re.findall(
            r"""(?:tell\(\s*|move\([^"]*?"\w+", |_tell\((?:parcel, )?|_said\(seen, |tell_of\(parcel, )"([a-z_]+)\"""",
            source,
        )
    )
    kinds |= {"cancel_asked", "scope_added", "scope_resumed"}

    assert {"retried", "message_retried", "message_dead", "backfill_paused"} <= kinds
    assert kinds - {kind for _, kind, *_ in CHANGES.values()} - CHANGE_NOTHING - TOLD_ELSEWHERE == set()


# -- the list ----------------------------------------------------------------------------------------------------------


def kinds_of(book: Book, **narrowed: object) -> list[str]:
    found = book.store.read(happenings(**{"limit": 20, **narrowed}))  # type: ignore[arg-type]
    return [one.event.kind for one in found]


def test_what_was_done_is_listed_newest_first_and_page_by_page(book: Book) -> None:
    failed(book)
    for _ in range(3):
        book.clock.advance(HOUR)
        book.skip()
        book.unskip()

    pages: list[str] = []
    page = book.store.read(happenings(limit=2))
    while page:
        pages += [one.event.kind for one in page]
        book.pause()  # what comes meanwhile is on no later page
        page = book.store.read(happenings(limit=2, before=parse_place(str(page[-1].place))))

    assert pages == [*["unskipped", "skipped"] * 3, "job_registered"]


def test_the_list_is_narrowed_by_job_who_kind_and_time(book: Book) -> None:
    failed(book)
    book.job("report")
    book.clock.advance(HOUR)
    since = book.clock.now()
    book.skip()
    book.pause("report")

    assert kinds_of(book, job="export") == ["skipped", "job_registered"]
    assert kinds_of(book, by=PERSON) == ["paused", "skipped"]
    assert kinds_of(book, kind="job_registered") == ["job_registered", "job_registered"]
    assert kinds_of(book, since=since) == ["paused", "skipped"]
    assert kinds_of(book, scope="acme") == []
    (run, _) = book.store.read(happenings(job="export", limit=2))
    assert run.key == "export:2026-10-05[UTC]"


def test_the_newest_are_read_along_an_index(book: Book) -> None:
    """A ledger with millions of events answers as soon as one with ten."""
    if not book.path.endswith(".db"):
        pytest.skip("a planner of PostgreSQL reads a small table whole, whatever index it has")
    from duly.evidence.audit import NEWEST_EVENTS, NEWEST_EVENTS_OF_JOB

    for statement, index in ((NEWEST_EVENTS, "duly_event_at"), (NEWEST_EVENTS_OF_JOB, "duly_event_job")):
        sql = re.sub(r":\w+", "1", statement.sql)
        plan = " ".join(str(row[3]) for row in book.rows(f"explain query plan {sql}"))
        assert f"SEARCH e USING INDEX {index}" in plan
        assert "TEMP B-TREE" not in plan
