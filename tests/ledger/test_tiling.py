"""The tiling law, through the ledger: whatever is edited, poked, named, failed and skipped in whichever order, the windows of a
line tile time, what is complete stays so, and no schedule makes a window from before it was in force.

Hypothesis draws histories; each is told of a job of its own, in one ledger, on each database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from duly.errors import Misuse, NotAllowed, Refused
from duly.evidence.explain import explain
from duly.evidence.explain_words import sentences
from duly.evidence.grid import grid
from duly.evidence.plan import plan
from duly.evidence.status import status
from duly.evidence.verdict import windows_of_line
from duly.ledger.address import by_key
from duly.ledger.ask import Statement
from duly.ledger.ask import every as all_rows
from duly.ledger.once import once
from duly.ledger.open import Taken
from duly.ledger.records import Claim, Claimer, Known
from duly.ledger.register import find
from duly.ledger.resolve import skip
from duly.ledger.spells import Placed, placed_after, placed_before, spells_of_line, tiles_after
from duly.ledger.versions import apply
from duly.records import record
from duly.schedule.keys import parse_key
from duly.schedule.spec import Schedule, cron, daily, every, hourly, monthly, weekly
from duly.times import DAY, HOUR, MINUTE, instant_text, parse_instant
from duly.work.identity import new_attempt_id
from tests.books import WORD, Book, PostgresBook
from tests.servers import Server

Step: TypeAlias = tuple[str, Any]

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
SCHEDULES: tuple[Schedule, ...] = (
    *(daily(zone) for zone in ("UTC", BERLIN, NEW_YORK, "Asia/Kolkata", "Pacific/Kiritimati", LORD_HOWE)),
    daily(BERLIN, at="02:30"),
    daily("UTC", offset="06:00"),
    weekly(BERLIN),
    weekly("UTC", offset="wed"),
    monthly(NEW_YORK),
    hourly(BERLIN),
    cron("30 2 * * *", "0 14 * * *", zone=BERLIN),
    cron("30 */4 * * *", zone=LORD_HOWE),
    cron("0 6 * * *", zone="UTC"),
    every("6h"),
    every("9h", anchor=HOUR),
)
# Around nights in which clocks are moved: Berlin's, New York's and Lord Howe's (by half an hour, on 4 October).
BEGINNINGS = tuple(
    parse_instant(text) for text in ("2026-10-02T12:00:00Z", "2026-10-23T20:40:00Z", "2026-10-31T03:00:00Z")
)

edits = st.tuples(st.just("edit"), st.integers(0, len(SCHEDULES) - 1))
waits = st.tuples(st.just("wait"), st.sampled_from([20 * MINUTE, HOUR, 5 * HOUR, 11 * HOUR, DAY, 50 * HOUR]))
pokes = st.tuples(st.sampled_from(["complete", "fail", "doubt", "hold"]), st.integers(1, 3))
named = st.tuples(st.sampled_from(["name", "skip", "once"]), st.integers(-3, 3))
histories = st.tuples(
    st.sampled_from(BEGINNINGS),
    st.integers(0, len(SCHEDULES) - 1),
    st.sampled_from(["each", "latest"]),
    st.lists(st.one_of(waits, waits, edits, edits, pokes, named), min_size=4, max_size=14),
)


ROWS = Statement(
    "rows",
    """
select r.series, r.nominal, r.state, r.window_start, r.window_end, r.version, r.settled_at, s.zone, s.grain
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where j.name = :name
""",
)


@record
class Row:
    """What is stored of a window."""

    series: int
    nominal: int
    state: str
    start: int | None
    end: int | None
    version: int
    settled_at: int | None
    zone: str
    grain: str


def _spans(rows: list[Row]) -> list[tuple[int, int]]:
    return sorted((row.start, row.end) for row in rows if row.start is not None and row.end is not None)


# What was found once: a version in between that was never in force, with a first window later than that of the next.
NEVER_IN_FORCE: tuple[int, int, str, list[Step]] = (
    BEGINNINGS[0],
    0,
    "each",
    [("wait", 20 * MINUTE), ("edit", 16), ("edit", 14), ("wait", 50 * HOUR)],
)


# And a window skipped ahead, named after a day long before the seam where it begins, of a version that was never in force.
SKIPPED_AHEAD: tuple[int, int, str, list[Step]] = (
    BEGINNINGS[0],
    0,
    "each",
    [("wait", 20 * MINUTE), ("edit", 8), ("skip", 1), ("edit", 0)],
)


class Line:
    """The line of one history: a job of its own in the book."""

    numbers = count()

    def __init__(self, book: Book, schedule: Schedule, catch_up: str) -> None:
        self.book = book
        self.name = f"job-{next(self.numbers)}"
        book.job(self.name, schedule, catch_up=catch_up, contract="external", retries=None)
        self.each = catch_up == "each"
        self.complete: dict[tuple[int, int], Row] = {}
        self.held: list[Claim] = []
        self.first = min(self.spans(), default=(0, 0))[0]

    @property
    def known(self) -> Known:
        found = self.book.store.read(find(self.name, ""))
        assert found is not None
        return found

    def rows(self) -> list[Row]:
        return self.book.store.read(all_rows(ROWS, Row, name=self.name))

    def spans(self) -> list[tuple[int, int]]:
        return _spans(self.rows())

    # -- what happens ---------------------------------------------------------------------------------------------------

    def step(self, what: str, value: Any) -> None:
        match what:
            case "wait":
                self.book.clock.advance(value)
            case "edit":
                self._edit(SCHEDULES[value])
            case "name" | "skip" | "once":
                self._name(what, value)
            case _:
                self._poke(what, value)

    def _edit(self, schedule: Schedule) -> None:
        book = self.book
        try:
            planned = book.store.read(plan(self.name, schedule))
            applied = book.write(apply(self.name, schedule, by="ops@example", reason="story"))
        except NotAllowed:  # in the hours of a change of clocks a name would be there twice
            return
        book.adopt(self.name, schedule)
        assert planned.seam == (None if applied is None else applied.since)

    def _poke(self, how: str, times: int) -> None:
        book = self.book
        for _ in range(times):
            taken = book.poke(self.name)
            if not isinstance(taken, Taken):
                return
            if how == "complete":
                book.complete(taken.claim)
            elif how == "fail":
                book.fail(taken.claim, retry_in=None)
            elif how == "doubt":
                book.doubt(taken.claim)
            else:
                self.held.append(taken.claim)  # at work, until something else of the line is to be
                return

    def _name(self, what: str, which: int) -> None:
        """Work, or skip, the window that is so many before or after now, by its name. `once` does not wait for its end."""
        placed = self._near(which)
        if placed is None or (what == "once" and placed.occurrence.start > self.book.clock.now()):
            return
        book = self.book
        key = f"{self.name}:{placed.name}"
        try:
            if what == "skip":
                found = book.store.read(by_key(parse_key(key)))
                book.write(skip(found.known, found.run, found.occurrence, WORD))
                return
            if what == "once":
                book.write(once(parse_key(key), Claimer(new_attempt_id(), "host", "once")))
                return
            answer = book.ask_key(key)
        except (Refused, Misuse):
            return
        if isinstance(answer, Claim):
            book.complete(answer)

    def _near(self, which: int) -> Placed | None:
        spells, now = self.book.store.read(spells_of_line(self.known)), self.book.clock.now()
        near = placed_before(spells, now) if which < 0 else placed_after(spells, now)
        return next(islice(near, abs(which), None), None)

    def let_go(self) -> None:
        """Whoever is at work completes."""
        for claim in self.held:
            self.book.complete(claim)
        self.held.clear()

    # -- what holds -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        rows, known = self.rows(), self.known
        self._check_that_time_is_tiled(rows, known)
        self._check_that_what_is_complete_stays(rows)
        self._check_versions(rows, known)

    def _check_that_time_is_tiled(self, rows: list[Row], known: Known) -> None:
        line = known.line
        assert line is not None
        assert line.opened_until is not None
        for (start, end), (next_start, next_end) in pairwise(_spans(rows)):
            told = f"{instant_text(start)}..{instant_text(end)}, {instant_text(next_start)}..{instant_text(next_end)}"
            assert end <= next_start, f"overlap: {told}"
            if self.each and self.first <= start and next_end <= line.opened_until:
                assert end == next_start, f"gap: {told}"

    def _check_that_what_is_complete_stays(self, rows: list[Row]) -> None:
        now = {(row.series, row.nominal): row for row in rows}
        for run, row in self.complete.items():
            assert now[run] == row
        self.complete = {run: row for run, row in now.items() if row.state == "completed"}

    def _check_versions(self, rows: list[Row], known: Known) -> None:
        """Each stored window is the one that its version has, between the seams before it and after it."""
        versions = {spell.version: spell for spell in self.book.store.read(spells_of_line(known))}
        for row in rows:
            if row.start is None:
                continue
            spell = versions[row.version]
            assert spell.series == (row.zone, row.grain)
            found = spell.find(row.nominal)
            assert found is not None, "no window from outside the time for which its version answers"
            assert (found.start, found.end) == (row.start, row.end)

    def finish(self) -> None:
        """Work all that is owed; then nothing is missing, in no series, and every view says so."""
        book = self.book
        self.let_go()
        self.check()
        while isinstance(taken := book.poke(self.name), Taken):
            book.complete(taken.claim)
        self.check()
        known, now = self.known, book.clock.now()
        spells = book.store.read(spells_of_line(known))
        past = list(islice(placed_before(spells, now), 60))
        words = {w.verdict.word for w in book.store.read(windows_of_line(known, past, now))}
        assert words <= {"complete", "skipped", "failed", "unknown", "not owed"}
        assert not book.store.read(status(self.name)).unopened
        (line,) = book.store.read(grid(self.name, columns=5)).lines
        for window in line.windows:
            told = book.store.read(_explained(str(window.key)))
            assert told
        bounds = [placed.occurrence for placed in islice(tiles_after(spells, now - 3 * DAY), 20)]
        assert all(one.end == other.start for one, other in pairwise(bounds))


async def _explained(key: str) -> list[str]:
    return sentences(await explain(await by_key(parse_key(key))), instant_text)


@contextmanager
def shelf(database: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Book]:
    """One ledger for all histories: each has a job of its own."""
    if database == "sqlite":
        yield Book(folder / "jobs.db")
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield PostgresBook(url)


def tell(book: Book, history: tuple[int, int, str, list[Step]]) -> None:
    begins, schedule, catch_up, steps = history
    book.clock.set(begins)
    line = Line(book, SCHEDULES[schedule], catch_up)
    line.step("complete", 1)
    line.first = min(line.spans(), default=(0, 0))[0]
    for step in steps:
        if step[0] in ("complete", "fail", "doubt", "name", "once"):
            line.let_go()
        line.step(*step)
        line.check()
    line.finish()


@pytest.mark.parametrize(("database", "many"), [("sqlite", 20), ("postgres", 5)], ids=["sqlite", "postgres"])
def test_windows_tile_time_whatever_is_edited_and_worked(
    database: str, many: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with shelf(database, request, tmp_path) as book:

        @example(NEVER_IN_FORCE)
        @example(SKIPPED_AHEAD)
        @settings(max_examples=many, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(histories)
        def law(history: tuple[int, int, str, list[Step]]) -> None:
            tell(book, history)

        law()
