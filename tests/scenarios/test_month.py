"""A month of twenty jobs over three scopes: whatever view is asked, it tells the same truth, and the test knows it by itself.

Gaps, failures, doubts, messages that nobody delivers, a night of twenty-five hours and a part that was pruned are planted, and
written down in a plain table as they are. Nothing of duly's is asked what a window is, when it is due, or what it is called.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import duly
from duly.evidence import check
from duly.evidence.chain import Chain
from duly.evidence.complete_through import complete_lines
from duly.evidence.conditions import conditions
from duly.evidence.export import Wanted, export
from duly.evidence.grid import grid
from duly.evidence.metrics import snapshot
from duly.evidence.status import status
from duly.evidence.verdict import window_of
from duly.ledger.address import by_window
from duly.ledger.ask import now
from duly.ledger.open import Taken
from duly.ledger.resolve import Word, skip
from duly.schedule.spec import daily
from tests.books import Book, PostgresBook
from tests.outbox.post import Post
from tests.servers import Server

SCOPES = ("acme", "beta", "gamma")
ZONES = ("Europe/Berlin", "UTC", "America/New_York", "Asia/Tokyo")
FIRST, AFTER = date(2026, 10, 1), date(2026, 11, 1)
END = "2026-11-01T12:00:00Z"
PRUNED_JOB, PRUNED_DAYS = "job00", 9  # of its first lines so many days are forgotten
GRACE = timedelta(hours=1)  # a tenth of a day, and at most an hour

DONE, SKIPPED, FAILED, UNKNOWN = "complete", "skipped", "failed", "unknown"
UNDELIVERED, MISSING, PRUNED = "undelivered", "missing", "pruned"
CODES = {DONE: 0, SKIPPED: 0, FAILED: 1, UNKNOWN: 1, MISSING: 1, UNDELIVERED: 1, PRUNED: 2}

Line = tuple[str, str]


class Month:
    """A ledger, and beside it the truth: of each line, what became of each of its days."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.truth: dict[Line, dict[date, str]] = {}
        self.zones: dict[str, str] = {}
        chance = random.Random(20261001)
        for number in range(20):
            job = f"job{number:02}"
            self.zones[job] = ZONES[number % len(ZONES)]
            scopes = SCOPES if number < 4 else (SCOPES[number % 3],)
            book.job(job, daily(self.zones[job]), scopes=scopes, contract="external")
            for scope in scopes:
                # Somebody stopped its scheduler on some day, and nothing said so.
                dead = (
                    AFTER if job == PRUNED_JOB or chance.random() < 0.7 else FIRST + timedelta(chance.randrange(5, 31))
                )
                self.truth[job, scope] = {
                    day: MISSING if day >= dead else self._planned(job, day, chance) for day in days()
                }
        self._live()
        self._prune()

    def _planned(self, job: str, day: date, chance: random.Random) -> str:
        if job == PRUNED_JOB and day < FIRST + timedelta(PRUNED_DAYS + 1):
            return DONE
        return chance.choices([DONE, SKIPPED, FAILED, UNKNOWN, UNDELIVERED], [80, 5, 5, 5, 5])[0]

    def _live(self) -> None:
        """Each day at noon in UTC its line works the day before, and nothing else."""
        for day in days():
            self.book.clock.set(f"{day + timedelta(1)}T12:00:00Z")
            for (job, scope), truth in self.truth.items():
                self._work(job, scope, day, truth[day])
        self.book.clock.set(END)

    def _work(self, job: str, scope: str, day: date, what: str) -> None:
        book = self.book
        if what == MISSING:
            return
        if what == SKIPPED:
            book.write(_skip(job, scope, str(day)))
            return
        taken = book.poke(job, scope=scope)  # as cron does: the ledger says which day it is
        assert isinstance(taken, Taken)
        assert f"{job}:{day}[" in str(taken.key)
        claim = taken.claim
        match what:
            case "complete":
                book.complete(claim)
            case "failed":
                book.fail(claim, retry_in=None)
            case "unknown":
                book.doubt(claim)
            case "undelivered":
                Post(book).complete(claim, f"{job}-{scope}-{day}")

    def _prune(self) -> None:
        ledger: duly.Ledger[Any]
        ledger = duly.postgres(self.book.path) if isinstance(self.book, PostgresBook) else duly.sqlite(self.book.path)
        kept_from = FIRST + timedelta(PRUNED_DAYS)
        settled = datetime(kept_from.year, kept_from.month, kept_from.day + 1, 12, tzinfo=UTC)
        age = datetime.fromisoformat(END) - settled
        ledger.prune(PRUNED_JOB, older_than=int(age.total_seconds() * 1_000_000) + 1)
        ledger.close()
        for scope in SCOPES:
            for day in days()[:PRUNED_DAYS]:
                assert self.truth[PRUNED_JOB, scope][day] == DONE
                self.truth[PRUNED_JOB, scope][day] = PRUNED

    def bounds(self, job: str, day: date) -> tuple[datetime, datetime]:
        zone = ZoneInfo(self.zones[job])
        begins = [datetime(d.year, d.month, d.day, tzinfo=zone).astimezone(UTC) for d in (day, day + timedelta(1))]
        return begins[0], begins[1]

    def counted(self, *words: str) -> Counter[tuple[str, str, str]]:
        return Counter(
            (job, scope, word) for (job, scope), truth in self.truth.items() for word in truth.values() if word in words
        )


def days() -> list[date]:
    return [FIRST + timedelta(n) for n in range((AFTER - FIRST).days)]


async def _skip(job: str, scope: str, day: str) -> object:
    found = await by_window(job, scope, day)
    return await skip(found.known, found.run, found.occurrence, Word("ops@example", "a holiday"))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def month(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    if request.param == "sqlite":
        yield Month(Book(tmp_path_factory.mktemp("month") / "jobs.db", at="2026-10-02T12:00:00Z"))
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield Month(PostgresBook(url, at="2026-10-02T12:00:00Z"))


def test_all_kinds_are_planted(month: Month) -> None:
    assert {word for truth in month.truth.values() for word in truth.values()} == set(CODES)
    assert len(month.truth) == 28


def test_each_window_is_judged_as_it_is(month: Month) -> None:
    async def judged(job: str, scope: str, day: date) -> tuple[str, int]:
        window = await window_of(await by_window(job, scope, str(day)), await now())
        return window.verdict.word, check.answer_of(window.verdict)

    for (job, scope), truth in month.truth.items():
        for day in (*days()[:3], *days()[-3:], date(2026, 10, 24), date(2026, 10, 25), date(2026, 10, 26)):
            word = truth[day]
            assert month.book.store.read(judged(job, scope, day)) == (word, CODES[word]), (job, scope, day)


def test_the_grid_shows_it(month: Month) -> None:
    seen = month.book.store.read(grid(columns=31))

    assert len(seen.lines) == len(month.truth)
    for line in seen.lines:
        assert line.known.line is not None
        truth = month.truth[line.known.job.name, line.known.line.scope]
        assert [window.verdict.word for window in line.windows] == [truth[day] for day in days()], line.known.job.name


def test_the_metrics_count_it(month: Month) -> None:
    seen = month.book.store.read(snapshot())

    counted = {(s.job, s.scope, word): many for s in seen.lines for word, many in s.windows.items() if many}
    assert counted == month.counted(FAILED, UNKNOWN, UNDELIVERED, MISSING)
    undelivered = sum(month.counted(UNDELIVERED).values())
    assert [(m.destination, m.state, m.messages) for m in seen.messages] == [("billing", "pending", undelivered)]


def test_status_names_what_needs_a_person(month: Month) -> None:
    seen = month.book.store.read(status())

    needs = Counter(
        (w.known.job.name, w.known.line.scope, w.verdict.word) for w in seen.needs if w.known.line is not None
    )
    assert needs == month.counted(FAILED, UNKNOWN)
    missing = {
        (u.known.job.name, u.known.line.scope, MISSING): len(u.windows)
        for u in seen.unopened
        if u.known.line is not None
    }
    assert missing == month.counted(MISSING)


def test_the_export_says_how_each_owed_window_ended_and_when_it_was(month: Month) -> None:
    chain, told = Chain(), []

    def write(fields: dict[str, Any]) -> None:
        told.append(fields)
        chain.line(fields)

    month.book.store.read(export(Wanted(f"{FIRST}..{AFTER}"), write))

    seen = {(w["job"], w["scope"], str(w["key"]).split(":")[1][:10]): w for w in told if w["kind"] == "window"}
    for (job, scope), truth in month.truth.items():
        for day, word in truth.items():
            window = seen.pop((job, scope, str(day)))
            assert window["state"] == word, (job, scope, day)
            if word != PRUNED:
                assert lasted(window) == month.bounds(job, day)
    assert seen == {}
    berlin = [w for w in told if w.get("zone") == "Europe/Berlin" and "2026-10-25" in str(w.get("key"))]
    assert berlin
    for window in berlin:
        began, ended = lasted(window)
        assert ended - began == timedelta(hours=25)


def test_how_far_each_line_is_complete_without_a_gap(month: Month) -> None:
    for line in month.book.store.read(complete_lines()):
        assert line.known.line is not None
        job, scope = line.known.job.name, line.known.line.scope
        truth = month.truth[job, scope]
        gap = next((day for day in days() if truth[day] not in (DONE, SKIPPED, PRUNED)), AFTER)
        done = [day for day in days() if truth[day] == DONE]

        assert line.completeness.through == micros(month.bounds(job, gap)[0]), (job, scope, gap)
        assert line.completeness.last is not None
        assert line.completeness.last.window_end == micros(month.bounds(job, done[-1])[1])


def test_alerts_are_of_the_lines_that_nobody_works_and_of_the_runs_that_wait(month: Month) -> None:
    seen = [each for each in month.book.store.read(conditions(0)) if each.raises]

    late = {each.about for each in seen if each.kind == "late"}
    assert late == {f"{scope}/{job}" for (job, scope), truth in month.truth.items() if MISSING in truth.values()}
    for word in (FAILED, UNKNOWN):
        assert sorted(each.about for each in seen if each.kind == word) == sorted(
            f"{scope}/{job}:{day}[{month.zones[job]}]"
            for (job, scope), truth in month.truth.items()
            for day, what in truth.items()
            if what == word
        )
    assert {each.kind for each in seen} == {"late", FAILED, UNKNOWN}


def lasted(window: dict[str, Any]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(window["window_start"]), datetime.fromisoformat(window["window_end"])


def micros(at: datetime) -> int:
    return round(at.timestamp()) * 1_000_000
