"""In a zone whose rules may change a claim from memory leaves what a claim from the beginning leaves, to the last column.

Each story is told twice, on two ledgers: by somebody who knows nothing, and by somebody who remembers the line, and goes back
to the beginning where nothing was claimed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from duly.ledger.named import Named
from duly.ledger.open import Taken
from duly.ledger.records import Claim, Claimer
from duly.ledger.remembered import Remembered, claim_remembered, recall
from duly.ledger.versions import apply
from duly.schedule.calendar import make_calendar
from duly.schedule.keys import nominal_text
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule, cron, daily, hourly, monthly, weekly
from duly.testing.releases import reading
from duly.times import DAY, HOUR, parse_instant
from duly.work.identity import new_attempt_id
from tests.books import Book, PostgresBook
from tests.ledger.test_remembered import memory_of
from tests.servers import Server


class Pair:
    """Two ledgers of one job. In the second a window is claimed from memory where that can be."""

    def __init__(self, plain: Book, quick: Book) -> None:
        self.books = plain, quick
        self.plain, self.quick = self.books
        self.from_memory = 0
        self.remembered: Remembered | None = None

    def job(self, schedule: Schedule, at: int) -> None:
        self.move_to(at)
        for book in self.books:
            book.job(schedule=schedule)
        self.remembered = memory_of(self.quick)

    def move_to(self, instant: int) -> None:
        for book in self.books:
            book.clock.set(instant)

    def work(self, window: str) -> None:
        """Take a window and, if it is given, complete it."""
        attempt = new_attempt_id()
        answer = self.plain.ask(window, attempt=attempt)
        again = self._from_memory(window, attempt)
        if again is None:
            again = self.quick.ask(window, attempt=attempt)
        assert (type(again), str(again)) == (type(answer), str(answer))
        if isinstance(answer, Claim) and isinstance(again, Claim):
            self.plain.complete(answer)
            self.quick.complete(again)

    def _from_memory(self, window: str, attempt: bytes) -> object:
        assert self.remembered is not None
        at = recall(self.remembered, window)
        if at is None:
            return None
        claim = claim_remembered(at, Claimer(attempt, "host/1@1+a", "test"))
        named: Named | None = self.quick.store.claim_at_once(claim)
        if named is None:
            return None
        self.from_memory += isinstance(named.answer, Claim)
        return named.answer

    def work_next(self) -> None:
        """Poke, and complete what is given. Its attempt is told again, for whoever compares."""
        for book in self.books:
            taken = book.poke()
            if isinstance(taken, Taken):
                book.complete(taken.claim)
                for table in ("duly_run", "duly_attempt", "duly_event"):
                    book.amend(
                        f"update {table} set attempt_id = ? where attempt_id = ?", b"poke", taken.claim.attempt_id
                    )

    def differences(self) -> list[tuple[object, object]]:
        """Rows of the two ledgers that are not the same."""
        told: list[tuple[object, object]] = []
        for table, by in _TABLES:
            one, other = (book.rows(f"select * from {table} order by {by}") for book in self.books)
            told += [(a, b) for a, b in zip(one, other, strict=False) if a != b]
            assert len(one) == len(other), table
        return told

    def names_of_rules(self) -> int:
        """How many different rules the ledger knows."""
        return len(self.plain.rows("select id from duly_zone_facts"))


_TABLES = (
    *(("duly_run", "nominal, revision"), ("duly_attempt", "nominal, number"), ("duly_zone_facts", "id")),
    *(("duly_line", "id"), ("duly_series", "id"), ("duly_skipped", "from_nominal"), ("duly_event", "id")),
)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Book(tmp_path / "plain.db"), Book(tmp_path / "quick.db"))


@pytest.fixture
def pair_on_postgres(server: Server) -> Iterator[Pair]:
    urls = server.new_database(), server.new_database()
    yield Pair(*map(PostgresBook, urls))
    for url in urls:
        server.drop(url)


def windows(schedule: Schedule, since: int, until: int) -> list[Occurrence]:
    return list(takewhile(lambda o: o.due <= until, schedule.after(since)))


def name_of(schedule: Schedule, occurrence: Occurrence) -> str:
    return nominal_text(schedule.grain, occurrence.nominal, schedule.zone)


# -- a night in which clocks are moved ----------------------------------------------------------------------------------

# 2026: when the clocks of a zone go forward, and when they go back (tzdata 2026f).
NIGHTS = {
    "Europe/Paris": ("2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"),
    "America/New_York": ("2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"),
    "Asia/Beirut": ("2026-03-28T22:00:00Z", "2026-10-24T21:00:00Z"),  # at midnight, to 01:00 and from it
    "America/Santiago": ("2026-09-06T04:00:00Z", "2026-04-05T03:00:00Z"),  # the same, in the south
    "Australia/Lord_Howe": ("2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z"),  # by half an hour
}


def grains(zone: str) -> dict[str, Schedule]:
    return {
        "daily": daily(zone),
        "daily, worked at half past two": daily(zone, at="02:30"),
        "days from six": daily(zone, offset="06:00"),
        "daily, worked on business days": daily(zone).on(make_calendar("works", "sat sun"), "next"),
        "hourly": hourly(zone),
        "a fire a day": cron("30 2 * * *", zone=zone),
        "a fire at midnight": cron("0 0 * * *", zone=zone),
        "every 20 minutes": cron("*/20 * * * *", zone=zone),
    }


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("zone", NIGHTS)
@pytest.mark.parametrize("grain", grains("UTC"))
def test_over_a_night_in_which_clocks_are_moved(pair: Pair, zone: str, grain: str, back: bool) -> None:
    work_over(pair, parse_instant(NIGHTS[zone][back]), grains(zone)[grain])


@pytest.mark.parametrize("zone", NIGHTS)
@pytest.mark.parametrize("grain", ["daily", "hourly", "a fire at midnight"])
def test_in_any_order(pair: Pair, zone: str, grain: str) -> None:
    """Beside each window lie others that have their rows, on one side or on both, or have none yet."""
    work_over(pair, parse_instant(NIGHTS[zone][1]), grains(zone)[grain], order=random.Random(f"{zone} {grain}"))


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("grain", grains("UTC"))
def test_on_postgres(pair_on_postgres: Pair, grain: str, back: bool) -> None:
    night = parse_instant(NIGHTS["Europe/Paris"][back])
    work_over(pair_on_postgres, night, grains("Europe/Paris")[grain], order=random.Random(grain) if back else None)


def work_over(pair: Pair, night: int, schedule: Schedule, *, order: random.Random | None = None) -> None:
    """Only the first window around which the rules mean something new is claimed from the beginning."""
    names = [name_of(schedule, o) for o in windows(schedule, night - 60 * HOUR, night + 60 * HOUR)]
    if len(names) > 150:
        names = names[len(names) // 4 : -len(names) // 4]
    if order is not None:
        order.shuffle(names)
    pair.job(schedule, night + 3 * DAY)

    for name in names:
        pair.work(name)

    assert pair.differences() == []
    assert pair.from_memory == len(names) - pair.names_of_rules() > 0


@pytest.mark.parametrize("make", [weekly, monthly], ids=["weekly", "monthly"])
def test_of_longer_periods(pair: Pair, make: Callable[[str], Schedule]) -> None:
    schedule = make("Europe/Paris")
    since, until = parse_instant("2025-11-01T00:00:00Z"), parse_instant("2026-12-02T00:00:00Z")
    names = [name_of(schedule, o) for o in windows(schedule, since, until)]
    pair.job(schedule, until)

    for name in names:
        pair.work(name)

    assert pair.differences() == []
    assert pair.from_memory == len(names) - pair.names_of_rules() > len(names) / 2


def test_after_an_edit_under_the_new_version(pair: Pair) -> None:
    """Windows near the seam are claimed from the beginning; those further on as if there had been none."""
    edit = parse_instant("2026-10-20T10:00:00Z")
    old, new = daily("Europe/Paris"), daily("Europe/Paris", at="06:00")
    pair.job(old, edit)
    pair.work_next()
    for book in pair.books:
        book.write(apply("export", new, by="ops@example", reason="later"))
        book.adopt("export", new)
    pair.remembered = memory_of(pair.quick)
    names = [name_of(new, o) for o in windows(new, edit - 3 * DAY, edit + 9 * DAY)]
    pair.move_to(edit + 12 * DAY)

    for name in names:
        pair.work(name)

    assert pair.differences() == []
    assert 0 < pair.from_memory < len(names)


# -- under any rules ----------------------------------------------------------------------------------------------------

# Ten days around a change that the releases do not agree on.
DISPUTED = {
    "Asia/Beirut": "2023-03-21T05:00:00Z",
    "America/Mexico_City": "2022-10-25T05:00:00Z",
    "Asia/Amman": "2022-10-24T05:00:00Z",
    "Africa/Cairo": "2023-04-24T05:00:00Z",
    "America/Asuncion": "2025-03-19T05:00:00Z",
}


STORIES = 4  # of each zone and grain


@pytest.mark.parametrize("zone", DISPUTED)
@pytest.mark.parametrize("grain", ["daily", "hourly", "a fire at midnight"])
def test_under_the_rules_of_whatever_release_a_host_has(
    tmp_path: Path, releases: dict[str, Path], zone: str, grain: str
) -> None:
    """Hosts poke, name windows as they have them, and skip some, in any order; memory is older than all of it."""
    hosts = [releases[version] for version in releases if version >= "2022"]
    schedule = grains(zone)[grain]
    start = parse_instant(DISPUTED[zone])
    claimed = 0
    for seed in range(STORIES):
        chance = random.Random(f"{zone} {grain} {seed}")
        pair = Pair(Book(tmp_path / f"plain{seed}.db"), Book(tmp_path / f"quick{seed}.db"))
        with reading(hosts[0]):
            pair.job(schedule, start)

        now = start
        while now < start + 10 * DAY:
            now += chance.choice((0, HOUR // 3, HOUR, 5 * HOUR, 20 * HOUR))
            pair.move_to(now)
            with reading(chance.choice(hosts)):
                match chance.randrange(8):
                    case 0:
                        pair.work_next()
                    case 1:
                        skip_one(pair, name_of(schedule, chance.choice(windows(schedule, now - DAY, now + DAY))))
                    case _:
                        pair.work(name_of(schedule, chance.choice(windows(schedule, now - 2 * DAY, now))))

        assert pair.differences() == [], seed
        assert_nothing_overlaps(pair.quick)
        claimed += pair.from_memory

    assert claimed > 0


def assert_nothing_overlaps(book: Book) -> None:
    spans = book.rows(
        "select window_start, window_end from duly_run where window_start is not null and revision = 1 order by window_start"
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def skip_one(pair: Pair, window: str) -> None:
    told = []
    for book in pair.books:
        try:
            told.append(str(book.skip(window)))
        except Exception as e:
            told.append(str(e))
    assert told[0] == told[1]
