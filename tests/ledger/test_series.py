"""A zone or grain that changes: a new series of each line, whose windows go on where those of before end.

Facts of 2026: Berlin goes back on 25 October at 01:00Z, New York on 1 November at 06:00Z. A day of Berlin is 22:00Z to 22:00Z
before that, one of New York 04:00Z to 04:00Z.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from duly.errors import BelowHorizon, NotAllowed, OutcomeUnknown, WindowInvalid
from duly.evidence.check import newest_due
from duly.evidence.explain import explain
from duly.evidence.explain_words import sentences
from duly.evidence.grid import grid
from duly.evidence.plan import plan
from duly.evidence.status import status
from duly.evidence.verdict import window_of
from duly.ledger.address import by_key, by_window
from duly.ledger.ask import now
from duly.ledger.forget import forgettable, raise_horizon
from duly.ledger.once import once
from duly.ledger.open import Idle, Taken
from duly.ledger.records import AlreadyCompleted, Claim, Claimer, Known, NotDue
from duly.ledger.register import find
from duly.ledger.spells import known_by
from duly.ledger.versions import Applied, apply
from duly.schedule.keys import parse_key
from duly.schedule.spec import Schedule, cron, daily, every, hourly, weekly
from duly.times import DAY, HOUR, instant_text
from duly.work.identity import new_attempt_id
from tests.books import Book

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def edit(book: Book, schedule: Schedule, job: str = "export") -> Applied:
    applied = book.write(apply(job, schedule, by="ops@example", reason="they moved"))
    assert applied is not None
    book.adopt(job, schedule)
    return applied


def began(book: Book, at: str, schedule: Schedule, **policies: Any) -> None:
    """A job whose newest window is complete."""
    book.clock.set(at)
    book.job(schedule=schedule, **policies)
    book.work_all()


def tiles(book: Book, scope: str = "") -> list[tuple[str, str, str]]:
    """Zone, start and end of each window of a line that has a row, in order of time; they tile it."""
    rows = book.rows(
        """select s.zone, r.window_start, r.window_end
             from duly_run r
             join duly_series s on s.id = r.series
             join duly_line l on l.id = s.line
            where l.scope = ? and r.window_start is not null and r.revision = 1 order by r.window_start""",
        scope,
    )
    assert all(one[2] == other[1] for one, other in pairwise(rows)), rows
    return [(zone, instant_text(start), instant_text(end)) for zone, start, end in rows]


def known(book: Book) -> Known:
    found = book.store.read(find("export", ""))
    assert found is not None
    return found


# -- stories -------------------------------------------------------------------------------------------------------------


def test_a_zone_change_is_a_new_series_that_goes_on_where_the_old_one_ends(book: Book) -> None:
    """Scenario 48: completed windows stay, nothing runs again, and the first new day has the six hours that are left."""
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))

    applied = edit(book, daily(NEW_YORK))

    assert applied.changes == ["another zone, Europe/Berlin → America/New_York"]
    book.clock.set("2026-10-22T12:00:00Z")
    assert book.work_all() == [
        "export:2026-10-20[Europe/Berlin]",
        "export:2026-10-20[America/New_York]",
        "export:2026-10-21[America/New_York]",
    ]
    assert tiles(book) == [
        (BERLIN, "2026-10-18T22:00:00Z", "2026-10-19T22:00:00Z"),
        (BERLIN, "2026-10-19T22:00:00Z", "2026-10-20T22:00:00Z"),
        (NEW_YORK, "2026-10-20T22:00:00Z", "2026-10-21T04:00:00Z"),
        (NEW_YORK, "2026-10-21T04:00:00Z", "2026-10-22T04:00:00Z"),
    ]
    assert isinstance(book.poke(), Idle)


def test_days_become_weeks(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))  # a Tuesday
    edit(book, weekly("UTC"))

    book.clock.set("2026-10-26T01:00:00Z")

    assert book.work_all() == ["export:2026-10-20[UTC]", "export:2026-W43[UTC]"]
    assert tiles(book)[1:] == [
        ("UTC", "2026-10-20T00:00:00Z", "2026-10-21T00:00:00Z"),
        ("UTC", "2026-10-21T00:00:00Z", "2026-10-26T00:00:00Z"),
    ]


def test_weeks_become_days(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", weekly("UTC"))
    edit(book, daily("UTC"))

    book.clock.set("2026-10-28T01:00:00Z")

    assert book.work_all() == ["export:2026-W43[UTC]", "export:2026-10-26[UTC]", "export:2026-10-27[UTC]"]
    assert tiles(book)[-1] == ("UTC", "2026-10-27T00:00:00Z", "2026-10-28T00:00:00Z")


def test_hours_become_days_in_the_night_in_which_clocks_go_back(book: Book) -> None:
    """At 02:10, for the second time: the second pass has begun, and the 25th has 21 hours left."""
    began(book, "2026-10-25T01:10:00Z", hourly(BERLIN))
    edit(book, daily(BERLIN))

    book.clock.set("2026-10-27T12:00:00Z")

    assert book.work_all() == [
        "export:2026-10-25T02~2[Europe/Berlin]",
        "export:2026-10-25[Europe/Berlin]",
        "export:2026-10-26[Europe/Berlin]",
    ]
    assert tiles(book)[-3:] == [
        (BERLIN, "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
        (BERLIN, "2026-10-25T02:00:00Z", "2026-10-25T23:00:00Z"),
        (BERLIN, "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"),
    ]


def test_intervals_become_fires_in_the_night_in_which_clocks_go_back(book: Book) -> None:
    """The first fires have higher names than those of the second pass, which are above the horizon all the same."""
    began(book, "2026-10-25T00:10:00Z", every("35m", anchor=5 * 60 * 1_000_000))
    edit(book, cron("*/15 * * * *", zone=BERLIN))  # from 02:20 on, for the first time

    book.clock.set("2026-10-25T01:31:00Z")

    assert book.work_all()[1:] == [
        "export:2026-10-25T02:30:00[Europe/Berlin]",
        "export:2026-10-25T02:45:00[Europe/Berlin]",
        "export:2026-10-25T02:00:00~2[Europe/Berlin]",
        "export:2026-10-25T02:15:00~2[Europe/Berlin]",
        "export:2026-10-25T02:30:00~2[Europe/Berlin]",
    ]
    tiles(book)


def test_a_zone_that_returns_goes_on_in_its_series(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    edit(book, daily(BERLIN))
    book.clock.set("2026-10-25T12:00:00Z")
    book.work_all()

    edit(book, daily("UTC"))

    book.clock.set("2026-10-28T12:00:00Z")
    assert book.work_all() == [
        "export:2026-10-25[Europe/Berlin]",
        "export:2026-10-25[UTC]",  # the last hour of it
        "export:2026-10-26[UTC]",
        "export:2026-10-27[UTC]",
    ]
    tiles(book)
    assert len(book.rows("select id from duly_series")) == 2
    assert isinstance(book.ask_key("export:2026-10-19[UTC]"), AlreadyCompleted)
    with pytest.raises(WindowInvalid, match=r"did not answer for that time; version 2 did: daily in Europe/Berlin"):
        book.ask_key("export:2026-10-23[UTC]")


def test_all_lines_of_a_job_change_together(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    book.declare(scope="acme")
    edit(book, daily(NEW_YORK))

    book.clock.set("2026-10-21T12:00:00Z")
    book.work_all()
    while isinstance(taken := book.poke(scope="acme"), Taken):
        book.complete(taken.claim)

    ours = tiles(book)
    assert tiles(book, "acme")[-2:] == ours[-2:]
    assert [zone for zone, *_ in ours[-2:]] == [BERLIN, NEW_YORK]


def test_a_second_edit_before_the_first_is_in_force_leaves_no_trace_of_it(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    edit(book, daily(NEW_YORK))
    edit(book, weekly("UTC"))

    book.clock.set("2026-10-26T01:00:00Z")

    assert book.work_all() == ["export:2026-10-20[UTC]", "export:2026-W43[UTC]"]
    tiles(book)


def test_a_series_that_was_replaced_before_it_began_has_no_horizon_of_its_own(book: Book) -> None:
    """The first edit would have begun with the fire of ten, the second one begins with that of six."""
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    edit(book, cron("0 10 * * *", zone="UTC"))
    edit(book, cron("0 6 * * *", zone="UTC"))

    book.clock.set("2026-10-21T12:00:00Z")

    assert book.work_all() == ["export:2026-10-20[UTC]", "export:2026-10-21T06:00:00Z"]
    assert isinstance(book.ask_key("export:2026-10-20T06:00:00Z"), BelowHorizon)


def test_a_poke_under_latest_drops_the_last_window_of_before_for_no_older_one(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN), catch_up="latest")
    edit(book, weekly(NEW_YORK))

    book.clock.set("2026-10-22T12:00:00Z")  # no week of New York has ended

    assert book.work_all() == ["export:2026-10-20[Europe/Berlin]"]


def test_under_latest_the_window_that_came_due_last_is_the_newest_whichever_its_series(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC", at="02:30"), catch_up="latest")
    edit(book, hourly("UTC"))

    book.clock.set("2026-10-21T02:31:00Z")  # the hours of 00 and 01 are due, the day since a minute

    assert "export:2026-10-20[UTC]" in book.work_all()


# -- keys ----------------------------------------------------------------------------------------------------------------


def test_earlier_keys_of_the_new_zone_are_refused_as_below_its_horizon(book: Book) -> None:
    """Scenario 47: nothing is created before the seam."""
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily(NEW_YORK))

    assert isinstance(book.ask_key("export:2026-10-19[America/New_York]"), BelowHorizon)
    with pytest.raises(BelowHorizon):
        book.write(once(parse_key("export:2026-10-12[America/New_York]"), Claimer(new_attempt_id(), "host", "once")))

    assert [by for by, *_ in book.events("below_horizon")] == ["host/1@1+a"]
    assert not book.rows("select 1 from duly_run r join duly_series s on s.id = r.series where s.zone = ?", NEW_YORK)


def test_keys_of_the_old_zone_name_what_they_did_and_none_after_the_seam(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily(NEW_YORK))

    assert isinstance(book.ask_key("export:2026-10-19[Europe/Berlin]"), AlreadyCompleted)
    assert isinstance(book.ask_key("export:2026-10-20[Europe/Berlin]"), NotDue)
    with pytest.raises(WindowInvalid, match="did not answer for that time; version 2 did"):
        book.ask_key("export:2026-10-21[Europe/Berlin]")
    with pytest.raises(WindowInvalid, match="counts by day in America/New_York"):
        book.ask_key("export:2026-10-21[Asia/Tokyo]")


def test_a_date_of_both_zones_is_to_be_written_with_its_zone(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily(NEW_YORK))
    book.clock.set("2026-10-21T12:00:00Z")

    with pytest.raises(WindowInvalid, match=r"write 2026-10-20\[Europe/Berlin\] or 2026-10-20\[America/New_York\]"):
        book.ask("2026-10-20")
    assert book.work_all() == ["export:2026-10-20[Europe/Berlin]", "export:2026-10-20[America/New_York]"]
    with pytest.raises(WindowInvalid, match="names a window before and one after"):
        book.ask("2026-10-20")
    assert isinstance(book.ask("2026-10-20[Europe/Berlin]"), AlreadyCompleted)
    assert isinstance(book.ask("2026-10-19"), AlreadyCompleted)


def test_a_window_of_before_that_was_never_owed_can_be_named_all_the_same(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    edit(book, daily(BERLIN))

    claim = book.take("2026-10-12")

    assert book.run(claim.run).version == 1
    assert instant_text(book.run(claim.run).window_start or 0) == "2026-10-12T00:00:00Z"


# -- what is unsettled of before -----------------------------------------------------------------------------------------


def test_what_is_failed_or_unknown_of_the_old_series_stays_owed_under_its_old_keys(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN), contract="external", catch_up="latest", retries=None)
    book.clock.set("2026-10-21T00:00:00Z")
    doubted = book.poke()
    assert isinstance(doubted, Taken)
    book.doubt(doubted.claim)
    book.clock.set("2026-10-22T00:00:00Z")
    failed = book.poke()
    assert isinstance(failed, Taken)
    book.fail(failed.claim, retry_in=None)

    edit(book, daily(NEW_YORK))
    book.clock.set("2026-10-25T12:00:00Z")

    assert isinstance(book.ask_key(str(doubted.key)), OutcomeUnknown)
    needs = [(str(w.key), w.verdict.word) for w in book.store.read(status()).needs]
    assert needs[:2] == [(str(doubted.key), "unknown"), (str(failed.key), "failed")]
    book.resolve(book.find_key(str(doubted.key)), done=False)
    book.retry(book.find_key(str(failed.key)))
    assert book.work_all()[:2] == [str(doubted.key), str(failed.key)]


def test_an_attempt_that_is_at_work_completes_its_window_of_before(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    book.clock.set("2026-10-21T00:00:00Z")
    taken = book.poke()
    assert isinstance(taken, Taken)

    edit(book, daily(NEW_YORK))
    assert isinstance(book.poke(), Idle)  # runs of one line do not overlap, whichever their series
    book.complete(taken.claim)

    assert book.state(taken.run.id) == "completed"


# -- views ---------------------------------------------------------------------------------------------------------------


def said(book: Book, window: str) -> list[str]:
    async def told() -> list[str]:
        return sentences(await explain(await by_window("export", "", window)), instant_text)

    return book.store.read(told())


def test_views_say_of_both_series_what_is_true(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily(NEW_YORK))
    book.clock.set("2026-10-22T12:00:00Z")

    (line,) = book.store.read(grid(columns=4)).lines
    assert [(str(w.key), w.verdict.word) for w in line.windows] == [
        ("export:2026-10-19[Europe/Berlin]", "complete"),
        ("export:2026-10-20[Europe/Berlin]", "late"),
        ("export:2026-10-20[America/New_York]", "missing"),
        ("export:2026-10-21[America/New_York]", "missing"),
    ]
    newest = book.store.read(newest_due(known(book)))
    assert newest is not None
    assert str(newest.key) == "export:2026-10-21[America/New_York]"
    needs = book.store.read(status())
    assert [str(w.key) for w in needs.needs] == ["export:2026-10-20[Europe/Berlin]"]
    assert [str(w.key) for u in needs.unopened for w in u.windows] == [
        "export:2026-10-21[America/New_York]",
        "export:2026-10-20[America/New_York]",
    ]


def test_a_window_of_before_is_explained_with_the_change(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, weekly(NEW_YORK))

    told = " ".join(said(book, "2026-10-19"))

    assert "export is weekly in America/New_York" in told
    assert "This window belongs to version 1: daily in Europe/Berlin" in told
    assert (
        "another zone, Europe/Berlin → America/New_York, another grain, day → week; this window keeps its key" in told
    )


def test_the_first_window_of_a_version_is_marked_as_the_seam(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily(NEW_YORK))
    seam = "It is the seam: it begins where the last window of the schedule before it ends."

    assert seam in said(book, "2026-10-20[America/New_York]")  # to come, and without a row
    assert seam not in said(book, "2026-10-20[Europe/Berlin]")
    assert seam not in said(book, "2026-10-21[America/New_York]")
    book.clock.set("2026-10-22T12:00:00Z")
    book.work_all()
    assert seam in said(book, "2026-10-20[America/New_York]")


def test_a_poke_of_before_explains_what_the_next_one_skips(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN), catch_up="latest")
    edit(book, daily(NEW_YORK))
    book.clock.set("2026-10-22T12:00:00Z")

    told = " ".join(said(book, "2026-10-20[Europe/Berlin]"))

    assert (
        "the next poke skips it: catch-up latest: a newer window was due, export:2026-10-21[America/New_York]" in told
    )


# -- ahead of time, and long after ---------------------------------------------------------------------------------------


def test_a_window_skipped_ahead_gives_its_time_to_the_new_series_and_has_it_again_when_the_old_one_returns(
    book: Book,
) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    book.skip("2026-10-25")
    edit(book, daily(BERLIN))
    assert book.rows("select window_start from duly_run where state = 'skipped'") == [(None,)]

    edit(book, daily("UTC"))

    book.clock.set("2026-10-27T12:00:00Z")
    assert "export:2026-10-25[UTC]" not in book.work_all()
    assert [zone for zone, *_ in tiles(book)] == ["UTC"] * 8


def test_the_rest_of_a_week_skipped_ahead_gives_its_time_back(book: Book) -> None:
    """It is named after a Monday that lies five days before the seam where it begins."""
    began(book, "2026-10-24T12:00:00Z", daily("UTC"))
    edit(book, weekly("UTC"))
    book.skip("2026-W43")
    edit(book, daily("UTC"))

    book.clock.set("2026-10-27T12:00:00Z")

    assert book.work_all() == [f"export:2026-10-{day}[UTC]" for day in (24, 25, 26)]
    tiles(book)


def test_a_window_worked_ahead_of_its_time_keeps_it_from_another_series(book: Book) -> None:
    """`once` asks for no due time: on Tuesday somebody completed Saturday, and a zone change would give its time away."""
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    book.write(once(parse_key("export:2026-10-24[UTC]"), Claimer(new_attempt_id(), "host", "once")))

    for operation in (plan("export", daily(BERLIN)), apply("export", daily(BERLIN), by="ops@example", reason="why")):
        with pytest.raises(NotAllowed, match=r"2026-10-24\[UTC\] was worked ahead .* after 2026-10-25T00:00:00Z"):
            book.write(operation)

    edit(book, daily("UTC", at="06:00"))
    book.clock.set("2026-10-25T12:00:00Z")
    edit(book, daily(BERLIN))
    book.work_all()
    tiles(book)


def test_a_run_outside_the_schedule_is_dropped_by_no_policy(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"), catch_up="latest")
    claim = book.ask_adhoc("a1")
    assert isinstance(claim, Claim)
    book.fail(claim, retry_in=0)

    async def told() -> list[str]:
        return sentences(await explain(await by_key(parse_key("export:adhoc-a1"))), instant_text)

    assert not [sentence for sentence in book.store.read(told()) if "skips it" in sentence]


def test_a_prune_of_a_series_that_is_not_in_force_leaves_the_time_when_it_may_be(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"))
    book.skip("2026-12-24")
    edit(book, daily(BERLIN))
    book.clock.set("2026-11-20T12:00:00Z")
    book.work_all()
    utc = book.store.read(_by_utc(known(book)))
    assert utc.series is not None
    found = book.store.read(forgettable(utc, utc.series, settled_by=book.clock.now() - DAY))
    assert found is None or found.horizon <= parse_key("export:2026-10-21[UTC]").nominal
    if found is not None:
        book.write(raise_horizon(found, by="ops@example", reason="old"))

    edit(book, daily("UTC"))

    book.clock.set("2026-11-22T12:00:00Z")
    assert book.work_all()[-1] == "export:2026-11-21[UTC]"


async def _by_utc(known: Known) -> Known:
    found = await known_by(known, "UTC", "day")
    assert found is not None
    return found


async def _verdict(key: str) -> str:
    return (await window_of(await by_key(parse_key(key)), await now())).verdict.word


def verdict(book: Book, key: str) -> str:
    return book.store.read(_verdict(key))


def test_a_window_of_before_that_was_dropped_stays_skipped(book: Book) -> None:
    began(book, "2026-10-20T12:00:00Z", daily("UTC"), catch_up="latest")
    book.clock.set("2026-10-25T12:00:00Z")
    book.work_all()
    edit(book, daily(BERLIN))

    assert verdict(book, "export:2026-10-22[UTC]") == "skipped"
    assert verdict(book, "export:2026-10-12[UTC]") == "not owed"
    assert verdict(book, "export:2026-10-24[UTC]") == "complete"


def test_the_hours_of_a_seam_are_worked_by_name_between_their_neighbours(book: Book) -> None:
    """A person names the first new window before any poke opened it."""
    began(book, "2026-10-20T12:00:00Z", daily(BERLIN))
    edit(book, daily("UTC"))
    book.clock.set("2026-10-21T12:00:00Z")

    claim = book.take("2026-10-20[UTC]")

    row = book.run(claim.run)
    assert (row.window_end or 0) - (row.window_start or 0) == 2 * HOUR
    book.complete(claim)
    book.work_all()
    tiles(book)
