"""When the rules of a zone change: keys stay, sealed windows stay, what is not sealed moves, and windows tile all the same.

The facts are Lebanon's of 2023: on 24 March release 2023b put the change of clocks off from 26 March to 21 April, on 28
March 2023c took that back. So 26 March ended at 22:00Z under 2023b, at 21:00Z under the releases before and after; and the
hour from midnight to one exists under 2023b only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from duly.errors import NotAllowed, RunSkipped
from duly.evidence.verdict import window_of, windows_of
from duly.ledger.address import by_window
from duly.ledger.open import Idle, Taken
from duly.ledger.records import AlreadyCompleted, Claim
from duly.ledger.register import find
from duly.ledger.resolve import unskip
from duly.ledger.versions import apply
from duly.ledger.windows import NO_TIME_LEFT
from duly.schedule.keys import nominal_text, parse_key
from duly.schedule.spec import Schedule, cron, daily, hourly
from duly.testing.releases import reading
from duly.times import DAY, HOUR, MINUTE, instant_text, parse_instant
from tests.books import WORD, Book

BEIRUT = "Asia/Beirut"


def windows(book: Book, job: str) -> list[tuple[int, int, int]]:
    return book.rows(
        """select r.nominal, r.window_start, r.window_end
             from duly_run r
             join duly_series s on s.id = r.series
             join duly_line l on l.id = s.line
             join duly_job j on j.id = l.job
            where j.name = ? and r.window_start is not null order by r.due""",
        job,
    )


def assert_tiled(rows: list[tuple[int, int, int]]) -> None:
    for (_, _, end), (nominal, start, _) in pairwise(rows):
        assert start == end, f"{instant_text(end)} … {instant_text(start)} before {nominal}"
    assert [nominal for nominal, _, _ in rows] == sorted({nominal for nominal, _, _ in rows})


def test_a_window_that_ended_keeps_its_bounds_and_the_next_one_starts_there(
    book: Book, releases: dict[str, Path]
) -> None:
    book.clock.set("2023-03-26T23:00:00Z")
    with reading(releases["2023b"]):
        book.job(schedule=daily(BEIRUT))
        (first,) = book.work_all()
    assert first == "export:2023-03-26[Asia/Beirut]"

    book.clock.set("2023-03-28T23:00:00Z")
    with reading(releases["2023c"]):
        assert len(book.work_all()) == 2

    bounds = [(instant_text(start), instant_text(end)) for _, start, end in windows(book, "export")]
    assert bounds == [
        ("2023-03-25T22:00:00Z", "2023-03-26T22:00:00Z"),
        ("2023-03-26T22:00:00Z", "2023-03-27T21:00:00Z"),  # 23 hours: chained to what was stored
        ("2023-03-27T21:00:00Z", "2023-03-28T21:00:00Z"),
    ]


def test_a_retry_under_other_rules_adopts_the_stored_bounds_and_records_the_disagreement(
    book: Book, releases: dict[str, Path]
) -> None:
    book.clock.set("2023-03-26T23:00:00Z")
    with reading(releases["2023b"]):
        book.job(schedule=daily(BEIRUT))
        taken = book.poke()
        assert isinstance(taken, Taken)
        book.fail(taken.claim, retry_in=HOUR)

    book.clock.advance(2 * HOUR)
    with reading(releases["2023c"]):
        again = book.poke()

    assert isinstance(again, Taken)
    assert again.key == taken.key
    assert (again.run.window_start, again.run.window_end) == (taken.run.window_start, taken.run.window_end)
    ((_, _, detail),) = book.events("tz_drift")
    assert "end 2023-03-26T22:00:00Z is stored, 2023-03-26T21:00:00Z under the rules in use" in detail
    assert "2023c" in detail


def test_the_same_rules_in_another_release_are_no_disagreement(book: Book, releases: dict[str, Path]) -> None:
    book.clock.set("2023-06-02T00:00:00Z")
    with reading(releases["2023c"]):
        book.job(schedule=daily("Europe/Berlin"))
        taken = book.poke()
        assert isinstance(taken, Taken)
        book.fail(taken.claim, retry_in=HOUR)

    book.clock.advance(2 * HOUR)
    with reading(releases["2026f"]):
        assert isinstance(book.poke(), Taken)

    assert book.events("tz_drift") == []


def begun_ahead(book: Book, schedule: Schedule, then: Schedule) -> None:
    """Open a window before it ends, as a change of schedule does."""
    book.job(schedule=schedule)
    book.work_all()
    book.write(apply("export", then, by="ops@example", reason="later"))
    book.adopt("export", then)


def test_a_window_that_is_not_sealed_moves_with_the_rules(book: Book, releases: dict[str, Path]) -> None:
    book.clock.set("2023-03-26T10:00:00Z")
    with reading(releases["2023b"]):
        begun_ahead(book, daily(BEIRUT), daily(BEIRUT, at="06:00"))
    assert instant_text(windows(book, "export")[-1][2]) == "2023-03-26T22:00:00Z"

    book.clock.set("2023-03-26T12:00:00Z")
    with reading(releases["2023c"]):
        book.poke()

    assert instant_text(windows(book, "export")[-1][2]) == "2023-03-26T21:00:00Z"
    ((_, _, detail),) = book.events("window_moved")
    assert detail.endswith("→ 2023-03-25T22:00:00Z..2023-03-26T21:00:00Z")


@pytest.mark.parametrize("by_name", [False, True])
def test_the_last_window_of_a_series_moves_with_the_rules_and_the_next_series_begins_at_its_end(
    book: Book, releases: dict[str, Path], by_name: bool
) -> None:
    book.clock.set("2023-03-26T10:00:00Z")
    with reading(releases["2023c"]):
        begun_ahead(book, daily(BEIRUT), daily("UTC"))  # from 21:00Z on
    with reading(releases["2023b"]):
        book.poke()  # the 26th ends at 22:00Z after all
        book.clock.set("2023-03-27T10:00:00Z")
        if by_name:
            book.complete(book.take("2023-03-26[UTC]"))
        book.work_all()

    rows = book.rows("select window_start, window_end from duly_run order by window_start")
    assert [(instant_text(start), instant_text(end)) for start, end in rows[1:]] == [
        ("2023-03-25T22:00:00Z", "2023-03-26T22:00:00Z"),
        ("2023-03-26T22:00:00Z", "2023-03-27T00:00:00Z"),
    ]
    assert len(book.events("window_moved")) == 1


def test_a_window_that_new_rules_no_longer_contain_is_skipped_with_its_reason(
    book: Book, releases: dict[str, Path]
) -> None:
    book.clock.set("2023-03-25T22:30:00Z")  # half past midnight, by 2023b
    with reading(releases["2023b"]):
        begun_ahead(book, hourly(BEIRUT), hourly(BEIRUT, gap="skip"))
    nominal = windows(book, "export")[-1][0]
    assert parse_key("export:2023-03-26T00[Asia/Beirut]").nominal == nominal

    with reading(releases["2023c"]):
        book.poke()

    assert book.rows("select state, cause from duly_run where nominal = ?", nominal) == [
        ("skipped", "no such time under the zone's rules of today")
    ]


# Ten days around a change that the releases do not agree on.
DISPUTED = {
    BEIRUT: "2023-03-21T05:00:00Z",
    "America/Mexico_City": "2022-10-25T05:00:00Z",
    "Asia/Amman": "2022-10-24T05:00:00Z",
    "Africa/Cairo": "2023-04-24T05:00:00Z",
    "America/Asuncion": "2025-03-19T05:00:00Z",
}


# The stories of chance are the ledger's, not a database's: all of them on SQLite, those of one zone on PostgreSQL too.
EVERYWHERE = [*(("sqlite", zone) for zone in DISPUTED), ("postgres", BEIRUT)]
WHERE_IT_WENT_WRONG = [("sqlite", BEIRUT), ("sqlite", "Africa/Cairo"), ("postgres", BEIRUT)]


@pytest.mark.parametrize(("book", "zone"), EVERYWHERE, indirect=["book"])
@pytest.mark.parametrize("make", [daily, hourly], ids=["daily", "hourly"])
def test_hosts_with_any_releases_agree_on_keys_and_bounds_and_their_windows_tile(
    book: Book, releases: dict[str, Path], zone: str, make: Callable[[str], Schedule]
) -> None:
    hosts = [releases[version] for version in releases if version >= "2022"]
    chance = random.Random(f"{zone} {make('UTC').kind}")  # the same story at each run
    start = parse_instant(DISPUTED[zone])
    book.clock.set(start)
    with reading(hosts[0]):
        book.job(schedule=make(zone))
        keys = book.work_all()

    for day in range(1, 10):
        book.clock.set(start + day * DAY)
        with reading(chance.choice(hosts)):
            keys += book.work_all()

    assert len(keys) == len(set(keys))
    assert_tiled(windows(book, "export"))


def at_odd_times(zone: str) -> list[Schedule]:
    return [
        hourly(zone),
        cron("30 */2 * * *", zone=zone),
        cron("*/20 * * * *", zone=zone),
        cron("15 0-3 * * *", zone=zone),
    ]


@pytest.mark.parametrize(("book", "zone"), EVERYWHERE, indirect=["book"])
@pytest.mark.parametrize("catch_up", ["each", "latest"])
@pytest.mark.parametrize("which", range(4), ids=["hourly", "every two hours", "every 20 minutes", "in the night"])
def test_hosts_that_poke_by_the_hour_under_any_releases_lose_no_window_and_work_no_time_twice(
    book: Book, releases: dict[str, Path], zone: str, catch_up: str, which: int
) -> None:
    hosts = [releases[version] for version in releases if version >= "2022"]
    chance = random.Random(f"{zone} {catch_up} {which}")
    schedule = at_odd_times(zone)[which]
    start = parse_instant(DISPUTED[zone]) + 3 * DAY
    until = start + 3 * DAY
    book.clock.set(start)
    with reading(hosts[0]):
        book.job(schedule=schedule, catch_up=catch_up)
        book.work_all()

    while book.clock.now() < until:
        book.clock.advance(chance.choice([20, 60, 61, 150]) * MINUTE)
        with reading(chance.choice(hosts)):
            book.work_all()
    with reading(hosts[-1]):
        book.work_all()
        assert unsettled_by_the_rules_here(book, schedule, start) == []

    rows = sorted(book.rows("select window_start, window_end from duly_run where window_start is not null"))
    assert book.rows("select opened_until from duly_line") == [(rows[-1][1],)]  # what is passed over is in a row's time
    for (_, end), (next_start, _) in pairwise(rows):
        assert end == next_start or (catch_up == "latest" and end < next_start)


def unsettled_by_the_rules_here(book: Book, schedule: Schedule, since: int) -> list[str]:
    """The windows due since then that are neither complete nor skipped, under the rules of the zone that are in use."""
    known = book.store.read(find("export", ""))
    assert known is not None
    named = list(takewhile(lambda o: o.due <= book.clock.now(), schedule.after(since)))
    judged = book.store.read(windows_of(known, named, book.clock.now()))
    return [
        f"{window.key}: {window.verdict}" for window in judged if window.verdict.word not in ("complete", "skipped")
    ]


@pytest.mark.parametrize(("book", "zone"), WHERE_IT_WENT_WRONG, indirect=["book"])
@pytest.mark.parametrize("story", [0, 1, 2, 3, 37])
def test_windows_that_are_named_while_hosts_disagree_are_not_worked_twice(
    book: Book, releases: dict[str, Path], zone: str, story: int
) -> None:
    hosts = [releases[version] for version in ("2022e", "2022g", "2023b", "2023c", "2023d")]
    chance = random.Random(f"{zone} {story}")
    start = parse_instant(DISPUTED[zone]) + 3 * DAY
    book.clock.set(start)
    with reading(hosts[0]):
        book.job(schedule=hourly(zone))
        book.work_all()

    while book.clock.now() < start + 2 * DAY:
        book.clock.advance(chance.choice([60, 90, 150]) * MINUTE)
        with reading(chance.choice(hosts)):
            if chance.random() < 0.5:
                back = chance.choice([0, 0, 1, 2, 5]) * HOUR
                newest = next(hourly(zone).before(book.clock.now() - back))
                answer = book.ask(nominal_text("hour", newest.nominal, zone))
                if isinstance(answer, Claim):
                    book.complete(answer)
            else:
                book.work_all()

    rows = sorted(book.rows("select window_start, window_end from duly_run where window_start is not null"))
    assert [pair for pair in pairwise(rows) if pair[0][1] > pair[1][0]] == []


@pytest.mark.parametrize("story", [1, 2, 9, 10, 15, 16, 19, 23, 30])
@pytest.mark.parametrize(("book", "zone"), WHERE_IT_WENT_WRONG, indirect=["book"])
def test_edits_of_a_schedule_while_hosts_disagree_lose_no_time_and_work_none_twice(
    book: Book, releases: dict[str, Path], zone: str, story: int
) -> None:
    hosts = [releases[version] for version in ("2022e", "2022g", "2023b", "2023c", "2023d")]
    chance = random.Random(f"{zone} {story}")
    lines = [cron(line, zone=zone) for line in ("*/20 * * * *", "*/30 * * * *", "15 */2 * * *", "0 * * * *")]
    start = parse_instant(DISPUTED[zone]) + 3 * DAY
    book.clock.set(start)
    with reading(hosts[0]):
        book.job(schedule=lines[0])
        book.work_all()

    while book.clock.now() < start + 2 * DAY:
        book.clock.advance(chance.choice([20, 60, 150]) * MINUTE)
        with reading(chance.choice(hosts)):
            if chance.random() < 0.2:
                line = chance.choice(lines)
                try:
                    book.write(apply("export", line, by="ops@example", reason="story"))
                except NotAllowed:  # in the hours of the change a name would be there twice
                    continue
                book.adopt("export", line)
            book.work_all()

    rows = sorted(book.rows("select window_start, window_end from duly_run where window_start is not null"))
    assert [pair for pair in pairwise(rows) if pair[0][1] != pair[1][0]] == []


def test_a_window_without_a_time_of_its_own_says_so_and_cannot_be_worked(book: Book, releases: dict[str, Path]) -> None:
    """Cairo set its clocks on at midnight of 28 April 2023, which 2022e did not know: 00:00 was worked, and is 01:00."""
    cairo = "Africa/Cairo"
    book.clock.set("2023-04-27T22:05:00Z")
    with reading(releases["2022e"]):
        book.job(schedule=hourly(cairo))
        book.work_all()
        book.clock.set("2023-04-27T23:05:00Z")
        assert book.work_all() == ["export:2023-04-28T00[Africa/Cairo]"]

    book.clock.set("2023-04-28T00:05:00Z")
    with reading(releases["2023d"]):
        assert book.work_all() == ["export:2023-04-28T02[Africa/Cairo]"]
        window = book.store.read(window_of(book.store.read(by_window("export", "", "2023-04-28T01")), book.clock.now()))
        with pytest.raises(NotAllowed, match="nothing is left to work"):
            book.unskip("2023-04-28T01")
        assert isinstance(book.ask("2023-04-28T01"), RunSkipped)
        with pytest.raises(NotAllowed, match="nothing is left to work"):
            book.unskip("2023-04-28T01")

    assert (window.verdict.word, window.verdict.note) == ("skipped", NO_TIME_LEFT)


def test_hosts_that_stay_away_for_a_week_lose_no_window_either(book: Book, releases: dict[str, Path]) -> None:
    """Beirut's week of two times: the host with 2023b stays away until after the clocks of both show the same again."""
    start = parse_instant("2023-03-25T00:00:00Z")
    book.clock.set(start)
    with reading(releases["2023c"]):
        book.job(schedule=hourly(BEIRUT))
        book.work_all()
    for hours in (30, 31, 200):
        with reading(releases["2023b" if hours == 31 else "2023c"]):
            book.clock.set(start + hours * HOUR)
            book.work_all()

    book.clock.set(start + 40 * DAY)
    with reading(releases["2023b"]):
        book.work_all()
        assert unsettled_by_the_rules_here(book, hourly(BEIRUT), start) == []
        assert isinstance(book.poke(), Idle)
    assert_tiled(windows(book, "export"))


def test_windows_named_under_other_rules_are_not_worked_over(book: Book, releases: dict[str, Path]) -> None:
    """Under 2023b the hour from midnight exists, under 2023c it does not: the one before it must not take its time."""
    book.clock.set("2023-03-25T20:05:00Z")
    with reading(releases["2023b"]):
        book.job(schedule=hourly(BEIRUT))
        book.work_all()
        book.clock.set("2023-03-26T00:05:00Z")
        for name in ("2023-03-26T00", "2023-03-26T01"):
            book.complete(book.take(name))

    with reading(releases["2023c"]):
        book.work_all()

    assert_tiled(windows(book, "export"))


def test_a_window_that_was_voided_cannot_be_brought_back(book: Book, releases: dict[str, Path]) -> None:
    book.clock.set("2023-03-25T22:30:00Z")
    with reading(releases["2023b"]):
        begun_ahead(book, hourly(BEIRUT), hourly(BEIRUT, gap="skip"))
    with reading(releases["2023c"]):
        book.poke()
        found = book.store.read(by_window("export", "", "2023-03-26T00"))

        with pytest.raises(NotAllowed, match="nothing is left to work"):
            book.write(unskip(found.known, found.run, found.occurrence, WORD))

        book.clock.advance(3 * HOUR)
        assert book.work_all() != []
    assert_tiled(windows(book, "export"))


def test_a_window_that_the_rules_of_today_do_not_name_is_found_by_its_name(
    book: Book, releases: dict[str, Path]
) -> None:
    book.clock.set("2023-03-25T22:30:00Z")
    with reading(releases["2023b"]):
        book.job(schedule=hourly(BEIRUT, gap="skip"))
        book.clock.set("2023-03-25T23:00:00Z")
        assert book.work_all() == ["export:2023-03-25T23[Asia/Beirut]", "export:2023-03-26T00[Asia/Beirut]"]

    with reading(releases["2023c"]):
        found = book.store.read(by_window("export", "", "2023-03-26T00"))
        window = book.store.read(window_of(found, book.clock.now()))
        assert isinstance(book.ask("2023-03-26T00"), AlreadyCompleted)

    assert (str(window.key), window.verdict.word) == ("export:2023-03-26T00[Asia/Beirut]", "complete")
