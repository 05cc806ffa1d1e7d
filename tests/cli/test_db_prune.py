"""duly db prune: what was settled for longer than its job says is forgotten, and nothing that has to be remembered."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly as library
from duly.cli.dispatch import dispatch
from duly.errors import BelowHorizon, LedgerBusy
from duly.ledger.ask import Statement, count, one
from duly.ledger.forget import RAISE_HORIZON, Batch, forget_batch, prospects
from duly.ledger.receive import APPLY, Delivery, receive
from duly.ledger.records import AlreadyCompleted, Claim, Series
from duly.ledger.register import find
from duly.ledger.versions import apply
from duly.records import replace
from duly.schedule.spec import cron, daily
from duly.times import DAY, HOUR, SECOND, parse_instant
from duly.work.prune import Pace, prune_series
from tests.books import Book, PostgresBook
from tests.exec.test_terminal import Terminal
from tests.servers import Server


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    if request.param == "sqlite":
        yield Book(tmp_path / "jobs.db")
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield PostgresBook(url)


@pytest.fixture
def on_postgres(server: Server) -> Iterator[PostgresBook]:
    with server.ledger() as url:
        yield PostgresBook(url)


class Said:
    def __init__(self, code: int, out: str, talk: str) -> None:
        self.code = code
        self.out = out
        self.talk = talk

    @property
    def series(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)["series"]
        return found


@pytest.fixture
def prune(book: Book, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The command line, in this process."""
    monkeypatch.setenv("DULY_LEDGER", book.path)

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = dispatch(["db", "prune", *words])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


def works_for(book: Book, days: int, job: str = "export") -> None:
    for _ in range(days):
        book.work_all(job)
        book.clock.advance(DAY)


def days_of(book: Book, job: str = "export") -> list[str]:
    return [day[:10] for day, _ in book.runs(job)]


# -- the policy ---------------------------------------------------------------------------------------------------------


def test_a_job_is_pruned_by_what_it_says_of_itself(book: Book, prune: Callable[..., Said]) -> None:
    book.job(retain=3 * DAY)
    book.job("kept", cron("0 6 * * *", zone="UTC"))
    works_for(book, 6)
    book.work_all("kept")

    said = prune("--yes", "--json")

    assert said.code == 0, said.talk
    (found,) = said.series
    assert (found["job"], found["windows"], found["runs"], found["attempts"]) == ("export", 4, 4, 4)
    assert found["horizon"] == "2026-10-09"
    assert days_of(book) == ["2026-10-09", "2026-10-10"]
    assert isinstance(book.ask("2026-10-07"), BelowHorizon)
    assert [by for by, _, _ in book.events("below_horizon")] == ["host/1@1+a"]


def test_a_dry_run_says_what_would_go_and_forgets_nothing(book: Book, prune: Callable[..., Said]) -> None:
    book.job(retain=3 * DAY)
    works_for(book, 6)
    book.reopen(book.find("2026-10-05")[1])
    book.complete(book.take("2026-10-05"))
    book.clock.advance(4 * DAY)

    with book.no_commit():
        dry = prune("--dry-run", "--json")
    done = prune("--yes", "--json")

    assert dry.series == done.series
    (found,) = dry.series
    assert (found["windows"], found["runs"], found["attempts"], found["messages"]) == (5, 6, 6, 0)
    assert days_of(book) == ["2026-10-10"]  # the newest: by it the line is judged


def test_nothing_goes_without_a_word(book: Book, prune: Callable[..., Said]) -> None:
    book.job(retain=3 * DAY)
    works_for(book, 6)

    said = prune()

    assert said.code == 64
    assert said.talk.endswith("try: duly db prune --yes\n")
    assert len(days_of(book)) == 6


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 1), ("n", 64, 6)])
def test_on_a_terminal_it_asks_and_says_how_far_it_is(tmp_path: Path, answer: str, code: int, left: int) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job(retain=DAY)
    works_for(book, 6)
    words = ("-m", "duly", "db", "prune", "--batch", "2")
    terminal = Terminal(sys.executable, *words, DULY_LEDGER=book.path, TERM="xterm", NO_COLOR="")
    try:
        terminal.shows("forget 5 runs and 0 skipped ranges for good? [y/N] ")
        terminal.type(f"{answer}\n")
        assert terminal.ended() == code
    finally:
        terminal.close()

    assert ("export: [####################] 5/5 runs forgotten" in terminal.shown) == (answer == "y")
    assert len(days_of(book)) == left


def test_a_job_is_kept_for_ever_unless_something_else_is_said(book: Book, prune: Callable[..., Said]) -> None:
    book.job()
    works_for(book, 6)

    assert (prune("--yes").code, len(days_of(book))) == (0, 6)
    refused = prune("export", "--yes")
    assert refused.code == 64
    assert "duly db prune export --older-than 400d --dry-run" in refused.talk

    assert prune("export", "--older-than", "2d", "--yes").code == 0
    assert days_of(book) == ["2026-10-10"]


def test_the_newest_window_stays_however_old(book: Book, prune: Callable[..., Said]) -> None:
    """By it the line is judged: `check` would else have nothing to look at until the next one."""
    book.job(retain=DAY)
    works_for(book, 2)
    book.declare()
    book.amend("update duly_line set ends = opened_until, next_due = null")
    book.clock.advance(400 * DAY)

    prune("--yes")

    assert days_of(book) == ["2026-10-06"]


def test_how_long_runs_are_kept_is_shown_and_taken_back(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    def shown() -> str:
        capsys.readouterr()
        assert dispatch(["jobs", "show", "export", "--ledger", book.path]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("retain")]
        return line.split()[1]

    book.job()
    assert shown() == "forever"

    ledger = library.postgres(book.path) if isinstance(book, PostgresBook) else library.sqlite(book.path)
    for retain, then in (("90d", "90d"), (None, "90d"), (HOUR, "1h"), ("forever", "forever")):
        ledger.job("export", daily("UTC"), catch_up=library.EACH, retain=retain)(lambda run: None).catch_up()
        assert shown() == then
    ledger.close()


def test_what_was_never_on_record_may_yet_be_asked_for_however_old_it_is(
    book: Book, prune: Callable[..., Said]
) -> None:
    book.job(retain=DAY)
    works_for(book, 1)

    prune("--yes")

    assert isinstance(book.ask("2025-01-01"), Claim)


# -- what has to be remembered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        ({"catch_up": "each max_age=30d"}, "its catch-up policy works windows that came due up to 30d ago"),
        ({"contract": "idempotent", "remembers": 7 * DAY}, "its destination remembers what it was sent for 7d"),
        ({"retain": 10 * DAY}, "it is to be kept for 10d (retain)"),
    ],
    ids=["catch-up", "remembers", "retain"],
)
def test_what_a_policy_still_needs_is_refused(
    book: Book, prune: Callable[..., Said], policies: dict[str, Any], why: str
) -> None:
    book.job(**policies)
    works_for(book, 6)

    named = prune("export", "--older-than", "2d", "--yes")
    all_of_them = prune("--older-than", "2d", "--yes")

    assert (named.code, all_of_them.code) == (64, 78)
    assert f"{why}, and 2d is less" in named.talk
    assert f"{why}, and 2d is less" in all_of_them.talk
    assert len(days_of(book)) == 6


@pytest.mark.parametrize(
    ("policies", "retain"),
    [
        ({"catch_up": "each max_age=2d"}, "2d"),
        ({"contract": "idempotent", "remembers": 2 * DAY}, "2d"),
        ({"contract": "idempotent", "remembers": None}, "1h"),  # which deduplicates for ever without our help
        ({"retain": 2 * DAY}, "2d"),
    ],
)
def test_what_is_no_shorter_than_a_policy_needs_is_allowed(
    book: Book, prune: Callable[..., Said], policies: dict[str, Any], retain: str
) -> None:
    book.job(**policies)
    works_for(book, 6)

    assert prune("export", "--older-than", retain, "--yes").code == 0
    assert len(days_of(book)) < 6


def _fails(book: Book) -> None:
    book.fail(book.take("2026-10-06"), retry_in=None)


def _waits_for_its_retry(book: Book) -> None:
    book.fail(book.take("2026-10-06"), retry_in=40 * DAY)


def _is_unknown(book: Book) -> None:
    book.doubt(book.take("2026-10-06"))


def _runs(book: Book) -> None:
    book.take("2026-10-06")


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_fails, "export:2026-10-06[UTC] is failed"),
        (_waits_for_its_retry, "export:2026-10-06[UTC] is failed"),
        (_is_unknown, "export:2026-10-06[UTC] is unknown"),
        (_runs, "export:2026-10-06[UTC] is running"),
    ],
)
def test_what_is_not_settled_holds_it_and_is_named(
    book: Book, prune: Callable[..., Said], happens: Callable[[Book], None], why: str
) -> None:
    book.job(retain=DAY, overlap=1, contract="external", lease=300 * DAY)
    book.work_all()
    book.clock.advance(DAY)
    happens(book)
    book.clock.advance(DAY)
    works_for(book, 5)
    book.clock.advance(3 * DAY)

    (found,) = prune("--yes", "--json").series

    assert (found["held"], found["runs"], found["horizon"]) == (why, 1, "2026-10-06")


def test_a_backfill_that_is_not_over_holds_it_and_is_named(book: Book, prune: Callable[..., Said]) -> None:
    book.job(retain=DAY)
    works_for(book, 6)
    book.backfill("2026-10-06", "2026-10-08", what=("completed",), expect=2)
    book.clock.advance(DAY)

    (found,) = prune("--yes", "--json").series

    assert found["held"] == "a backfill that is not over owes windows from export:2026-10-06[UTC] on"
    assert days_of(book)[0] == "2026-10-06"


def test_windows_that_nobody_has_worked_hold_it(book: Book, prune: Callable[..., Said]) -> None:
    """Under `each` they are owed however old they are."""
    book.job(retain=DAY)
    works_for(book, 3)
    book.clock.advance(30 * DAY)

    (found,) = prune("--yes", "--json").series

    assert found["held"].startswith("windows that came due since are not open yet")
    assert days_of(book) == ["2026-10-07"]
    assert len(book.work_all()) == 31


# -- a zone of before ---------------------------------------------------------------------------------------------------


def test_what_was_worked_in_a_zone_of_before_goes_too(book: Book, prune: Callable[..., Said]) -> None:
    book.job(retain=DAY)
    works_for(book, 3)
    book.write(apply("export", daily("Europe/Berlin"), by="ops@example", reason="they moved"))
    book.adopt("export", daily("Europe/Berlin"))
    book.clock.advance(5 * HOUR)

    prune("--yes")
    assert days_of(book)[0] == "2026-10-08"  # which nobody has worked yet

    works_for(book, 3)
    done = prune("--yes", "--json").series

    assert [(found["zone"], found["held"]) for found in done] == [("UTC", None), ("Europe/Berlin", None)]
    assert done[0]["runs"] > 0
    assert len(days_of(book)) == 1
    assert isinstance(book.ask_key("export:2026-10-06[UTC]"), BelowHorizon)


# -- outside the schedule -----------------------------------------------------------------------------------------------


def test_of_a_run_outside_the_schedule_id_and_state_stay(
    book: Book, prune: Callable[..., Said], capsys: pytest.CaptureFixture[str]
) -> None:
    book.job(retain=DAY)
    claim = book.ask_adhoc("rebuild-1")
    assert isinstance(claim, Claim)
    book.complete(claim)
    book.clock.advance(5 * DAY)

    outside = [found for found in prune("--yes", "--json").series if found["grain"] == "adhoc"]

    assert [(found["runs"], found["attempts"], found["horizon"]) for found in outside] == [(1, 1, None)]
    again = book.ask_adhoc("rebuild-1")
    assert isinstance(again, BelowHorizon)
    assert "was completed, and its record was pruned" in str(again)
    assert isinstance(book.ask_adhoc("rebuild-2"), Claim)
    assert dispatch(["explain", "export:adhoc-rebuild-1"]) == 0
    assert "it was completed long ago; its record was pruned, and it is never" in capsys.readouterr().out


# -- what hangs on no run -----------------------------------------------------------------------------------------------


def test_a_refusal_is_on_record_as_long_as_anything_and_words_of_a_job_stay(
    book: Book, prune: Callable[..., Said]
) -> None:
    book.job(retain=3 * DAY)
    works_for(book, 6)
    prune("--yes")
    book.ask("2026-10-06")  # late
    book.clock.advance(HOUR)
    works_for(book, 1)
    prune("--yes")
    assert len(book.events("below_horizon")) == 1

    works_for(book, 4)
    prune("--yes")

    assert book.events("below_horizon") == []
    assert len(book.events("job_registered")) == 1


# -- batches ------------------------------------------------------------------------------------------------------------


def test_a_batch_that_the_ledger_gives_up_is_tried_again_and_is_smaller(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.job()
    works_for(book, 12)
    known = book.store.read(find("export", ""))
    assert known is not None
    (found,) = book.store.read(prospects(known, settled_by=book.clock.now()))
    asked: list[int] = []

    async def slow(series: Series, many: int, *, settled_by: int, after: int | None = None) -> Batch:
        asked.append(many)
        if many > 2:
            raise LedgerBusy
        return await forget_batch(series, many, settled_by=settled_by, after=after)

    monkeypatch.setattr("duly.work.prune.forget_batch", slow)

    gone = prune_series(book.store, found, by="ops@example", reason="old", batch=8, tell=lambda gone: None)

    assert (gone.runs, asked[:2]) == (11, [8, 1])
    assert days_of(book) == ["2026-10-16"]


def test_a_batch_goes_no_further_than_the_horizon_that_the_series_has(book: Book) -> None:
    """I7: whoever computed one and was not allowed to set it deletes nothing."""
    book.job()
    works_for(book, 3)
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None

    dreamt = replace(known.series, horizon=1 << 60)

    assert book.write(forget_batch(dreamt, 10, settled_by=book.clock.now())).is_last
    assert len(days_of(book)) == 3


def test_what_is_not_settled_stays_whatever_the_horizon_says(book: Book) -> None:
    book.job(overlap=1)
    book.doubt(book.take("2026-10-05"))
    book.complete(book.take("2026-10-04"))
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    book.write(count(RAISE_HORIZON, series=known.series.id, horizon=1 << 60))

    gone = [book.write(forget_batch(known.series, 10, settled_by=book.clock.now())) for _ in range(2)]

    assert [(batch.gone.runs, batch.is_last) for batch in gone] == [(1, False), (0, True)]
    assert book.runs()[0][1] == "unknown"


def test_on_a_server_no_statement_of_a_batch_takes_for_ever(on_postgres: PostgresBook) -> None:
    book = on_postgres
    book.job()
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    asked = Statement("asked", "select current_setting('statement_timeout')")

    async def batch(series: Series) -> str | None:
        await forget_batch(series, 10, settled_by=book.clock.now())
        return await one(asked, str)

    assert book.write(batch(known.series)) == "5s"
    assert book.store.read(one(asked, str)) == "0"


def test_on_a_server_nobody_who_claims_waits_for_a_batch(on_postgres: PostgresBook) -> None:
    book = on_postgres
    book.job(overlap=1)
    works_for(book, 3)
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    book.write(
        count(RAISE_HORIZON, series=known.series.id, horizon=2 * parse_instant("2026-10-07T00:00:00Z") // SECOND)
    )

    with closing(psycopg.connect(book.path)) as pruning:
        batch = book.store.run_in(pruning, forget_batch(known.series, 10, settled_by=book.clock.now()))
        assert batch.gone.runs == 2
        claim = book.ask("2026-10-08")
        assert isinstance(book.ask("2026-10-07"), AlreadyCompleted)
        pruning.rollback()

    assert isinstance(claim, Claim)
    book.complete(claim)


def test_a_pace_takes_less_when_a_batch_was_long_and_rests_as_long() -> None:
    pace = Pace(100)

    rested = [(pace.after(seconds), pace.many) for seconds in (0.2, 0.03, 0.02, 0.001, 0.001, 0.001)]

    assert rested == [(0.2, 50), (0.03, 25), (0.02, 25), (0.002, 50), (0.002, 100), (0.002, 100)]
    assert [pace.less() for _ in range(3)] == [True, True, False]


# -- keys that were received --------------------------------------------------------------------------------------------


def test_keys_go_by_what_their_source_says(book: Book, prune: Callable[..., Said]) -> None:
    for source, remembers in (("orders", 2 * DAY), ("events", None)):
        for key in ("a", "b"):
            first_sent = book.clock.now()
            delivery = Delivery(source, key, "sha256:1", first_sent, remembers, APPLY, f"{source}{key}".encode())
            book.write(receive(delivery))
    book.clock.advance(3 * DAY)

    dry = json.loads(prune("--received", "--dry-run", "--json").out)["sources"]
    asked = prune("--received")
    done = json.loads(prune("--received", "--yes", "--json").out)["sources"]

    assert [(one["key"], one["remembers"], one["keys"]) for one in dry] == [("events", None, 0), ("orders", "2d", 2)]
    assert (asked.code, asked.talk.splitlines()[-1]) == (64, "  try: duly db prune --received --yes")
    assert [(one["key"], one["keys"], one["horizon"]) for one in done] == [
        ("events", 0, None),
        ("orders", 2, "2026-10-07T03:00:00Z"),
    ]
    assert book.rows("select count(*) from duly_received") == [(2,)]
