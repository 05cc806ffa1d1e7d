"""Complete through: held against a walk over every window of a line, whatever was edited, worked, named, skipped and pruned."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from duly.errors import NotAllowed
from duly.evidence.complete_through import complete_through, completeness_of
from duly.evidence.verdict import COMPLETE, PRUNED, SKIPPED, lines, windows_of_line
from duly.ledger.address import Addressed, by_key, key_of
from duly.ledger.ask import Statement
from duly.ledger.ask import every as all_rows
from duly.ledger.bounds import is_before_start
from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.forget import forget_batch, forgettable, raise_horizon
from duly.ledger.messages import skip_message
from duly.ledger.open import Taken
from duly.ledger.records import Known, RunId, Series
from duly.ledger.resolve import unskip
from duly.ledger.roster import add_scopes, retire_scopes
from duly.ledger.send import Letter
from duly.ledger.spells import SERIES_OF_LINE, spells_of_line, tiles_after
from duly.records import replace
from duly.schedule.calendar import make_calendar
from duly.schedule.spec import daily, every, hourly
from duly.times import DAY, HOUR, MINUTE, instant_text, parse_instant
from tests.books import WORD, Book
from tests.ledger.test_tiling import BEGINNINGS, SCHEDULES, Line, edits, named, pokes, shelf, waits


async def walked(known: Known, instant: int) -> int | None:
    """The same, by looking at every window of the line, one by one."""
    line = known.line
    assert line is not None
    assert line.starts is not None
    edge = None
    near = 40 * DAY if known.version is not None and known.version.grain.startswith(("month", "week")) else 2 * DAY
    tiles = tiles_after(await spells_of_line(known), line.starts - near)
    owed = (placed for placed in tiles if not is_before_start(known, placed.occurrence))
    while placed := list(islice(owed, 40)):
        for window in await windows_of_line(known, placed, instant):
            occurrence = window.occurrence
            assert occurrence is not None
            start, end = window.bounds or (occurrence.start, occurrence.start if window.row else occurrence.end)
            edge = start if edge is None else edge
            is_told = window.row is not None or occurrence.due <= instant
            if window.verdict.word not in (COMPLETE, SKIPPED, PRUNED) or not is_told:
                return edge
            edge = max(edge, end)
    return edge


def through(book: Book, job: str = "export") -> str:
    """What is said of the only line of a job, as text, and the same by looking at every window."""
    (known,) = book.store.read(lines(job))
    instant = book.clock.now()
    found = book.store.read(complete_through(known, instant))
    assert found == book.store.read(walked(known, instant))
    return "" if found is None else instant_text(found)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """At three in the morning of 2026-10-06."""
    return Book(tmp_path / "jobs.db")


def work(book: Book, many: int = 1, *, job: str = "export") -> None:
    for _ in range(many):
        taken = book.poke(job)
        assert isinstance(taken, Taken)
        book.complete(taken.claim)


def test_it_is_the_end_of_what_is_done_without_a_gap(book: Book) -> None:
    book.job()
    assert through(book) == "2026-10-05T00:00:00Z"  # nothing is done: where the first window starts
    work(book)
    assert through(book) == "2026-10-06T00:00:00Z"

    book.clock.set("2026-10-09T03:00:00Z")
    assert through(book) == "2026-10-06T00:00:00Z"  # nobody came for three windows
    work(book)
    assert through(book) == "2026-10-07T00:00:00Z"
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=None)
    work(book)

    assert through(book) == "2026-10-07T00:00:00Z"  # whatever is done after the one that failed
    (known,) = book.store.read(lines("export"))
    last = book.store.read(completeness_of(known, book.clock.now())).last
    assert last is not None
    assert (instant_text(last.window_end), last.took) == ("2026-10-09T00:00:00Z", 0)
    book.skip("2026-10-07")
    assert through(book) == "2026-10-09T00:00:00Z"


def test_a_message_that_is_not_delivered_holds_it(book: Book) -> None:
    book.job()
    claim = book.take()
    letter = Letter("crm", "totals", "text/plain", b"1")
    book.write(complete_or_raise(claim, Left(letters=((letter, "0" * 36),))))

    assert through(book) == "2026-10-05T00:00:00Z"
    assert book.store.read(completeness_of(book.store.read(lines("export"))[0], book.clock.now())).last is None
    book.write(skip_message(claim.run, "totals", WORD))
    assert through(book) == "2026-10-06T00:00:00Z"


def test_windows_that_were_only_ever_named_count_as_well(book: Book) -> None:
    """No poke opens them, so that the line does not remember how far they are there."""
    book.job("rates", every("5m"), overlap=1)
    begins = parse_instant("2026-10-06T03:00:00Z")
    book.clock.set(begins + 30 * MINUTE * 24)
    for number in range(24 * 6):
        if number != 100:
            book.complete(book.take(instant_text(begins + number * 5 * MINUTE), job="rates"))

    assert through(book, "rates") == instant_text(begins + 99 * 5 * MINUTE)
    book.complete(book.take(instant_text(begins + 500 * MINUTE), job="rates"))
    assert through(book, "rates") == instant_text(begins + 143 * 5 * MINUTE)


def test_a_night_of_25_hours_is_one_window(book: Book) -> None:
    book.clock.set("2026-10-25T12:00:00Z")
    book.job("close", daily("Europe/Berlin"))
    book.job("hours", hourly("Europe/Berlin"))
    work(book, job="close")
    work(book, job="hours")

    book.clock.set("2026-10-26T00:30:00Z")
    work(book, job="close")
    assert through(book, "close") == "2026-10-25T23:00:00Z"
    book.clock.set("2026-10-26T12:00:00Z")
    assert through(book, "hours") == "2026-10-25T12:00:00Z"
    work(book, 24, job="hours")
    assert through(book, "hours") == "2026-10-26T12:00:00Z"


def test_days_off_are_passed_when_they_have_come_due_and_no_sooner(book: Book) -> None:
    off = make_calendar("shop", "sat sun")
    book.clock.set("2026-10-09T03:00:00Z")  # a Friday
    book.job("close", daily("UTC").on(off, "skip"))
    work(book, job="close")

    assert through(book, "close") == "2026-10-09T00:00:00Z"
    book.clock.set("2026-10-10T03:00:00Z")
    work(book, job="close")
    assert through(book, "close") == "2026-10-10T00:00:00Z"
    book.clock.set("2026-10-12T03:00:00Z")
    assert through(book, "close") == "2026-10-12T00:00:00Z"


def test_a_line_that_has_ended_is_complete_through_its_last_window(book: Book) -> None:
    book.job()
    work(book)
    book.clock.set("2026-10-07T03:00:00Z")
    book.write(retire_scopes("export", [""], WORD))
    assert through(book) == "2026-10-06T00:00:00Z"
    work(book)

    book.clock.set("2026-12-01T03:00:00Z")
    assert through(book) == "2026-10-07T00:00:00Z"
    book.write(add_scopes("export", [""], WORD))
    assert through(book) == "2026-11-30T00:00:00Z"


def test_without_a_schedule_nothing_is_said(book: Book) -> None:
    book.once("import:adhoc-1")

    (known,) = book.store.read(lines("import"))
    assert book.store.read(complete_through(known, book.clock.now())) is None


# -- the law ------------------------------------------------------------------------------------------------------------

ROWS_OF = Statement(
    "rows_of",
    """
select r.series, r.nominal, r.revision, r.state
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where j.name = :name
 order by r.series, r.nominal, r.revision
""",
)

people = st.tuples(st.sampled_from(["send", "reopen", "unskip", "prune", "retire", "add"]), st.integers(0, 5))
histories = st.tuples(
    st.sampled_from(BEGINNINGS),
    st.integers(0, len(SCHEDULES) - 1),
    st.sampled_from(["each", "latest"]),
    st.lists(st.one_of(waits, waits, edits, pokes, pokes, named, people), min_size=4, max_size=14),
)


# What was found once: a window that had begun when the schedule was edited, and was skipped when its line ended.
OPEN_WHEN_IT_ENDED: tuple[int, int, str, list[tuple[str, Any]]] = (
    BEGINNINGS[0],
    0,
    "each",
    [("wait", 20 * MINUTE), ("edit", 1), ("complete", 1), ("retire", 0)],
)


class Told(Line):
    """The line of one history, to which people do more."""

    def step(self, what: str, value: Any) -> None:
        book = self.book
        try:
            match what:
                case "send":
                    self._send()
                case "reopen" | "unskip":
                    self._say(what, value)
                case "prune":
                    self._prune()
                case "retire":
                    book.write(retire_scopes(self.name, [""], WORD))
                case "add":
                    book.write(add_scopes(self.name, [""], WORD))
                case _:
                    super().step(what, value)
        except NotAllowed:
            return

    def _send(self) -> None:
        taken = self.book.poke(self.name)
        if isinstance(taken, Taken):
            letter = Letter("crm", "totals", "text/plain", b"1")
            key = f"{taken.claim.attempt_id.hex():0>36}"
            self.book.write(complete_or_raise(taken.claim, Left(letters=((letter, key),))))

    def _say(self, what: str, which: int) -> None:
        state = {"reopen": "completed", "unskip": "skipped"}[what]
        found = self.book.store.read(all_rows(ROWS_OF, lambda *row: row, name=self.name))
        runs = [RunId(*row[:3]) for row in found if row[3] == state]
        if runs:
            run = runs[which % len(runs)]
            if what == "reopen":
                self.book.reopen(run)
                return
            at = self.book.store.read(addressed(run))
            self.book.write(unskip(at.known, at.run, at.occurrence, WORD))

    def _prune(self) -> None:
        book, known = self.book, self.known
        assert known.line is not None
        for series in book.store.read(all_rows(SERIES_OF_LINE, Series, line=known.line.id)):
            settled_by = book.clock.now() - 2 * HOUR
            found = book.store.read(forgettable(known, series, settled_by=settled_by))
            if found is not None:
                horizon = book.write(raise_horizon(found, by="ops@example", reason="two hours are enough"))
                series = replace(series, horizon=horizon)
                while not book.write(forget_batch(series, 100, settled_by=settled_by)).is_last:
                    pass


async def addressed(run: RunId) -> Addressed:
    return await by_key(await key_of(run))


@pytest.mark.parametrize(("database", "many"), [("sqlite", 25), ("postgres", 3)], ids=["sqlite", "postgres"])
def test_it_is_what_a_walk_over_every_window_finds(
    database: str, many: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with shelf(database, request, tmp_path) as book:

        @example(OPEN_WHEN_IT_ENDED)
        @settings(max_examples=many, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(histories)
        def law(history: tuple[int, int, str, list[tuple[str, Any]]]) -> None:
            begins, schedule, catch_up, steps = history
            book.clock.set(begins)
            line = Told(book, SCHEDULES[schedule], catch_up)
            for step in steps:
                line.let_go()
                line.step(*step)
                through(book, line.name)

        law()
