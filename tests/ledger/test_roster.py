"""The roster on each database: ends, beginnings, what code declares of them, and names that were given up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from duly.errors import JobRenamed, Misuse, NotAllowed, Refused, Retired, RunSkipped
from duly.ledger.named import Named, take_window
from duly.ledger.once import once
from duly.ledger.open import Idle
from duly.ledger.records import Claim, Claimer, Known
from duly.ledger.register import Declaration, declare
from duly.ledger.remembered import claim_remembered, recall, remember
from duly.ledger.rename import rename
from duly.ledger.retire import bring_back, retire_job
from duly.ledger.ripe import outlook
from duly.ledger.roster import Change, Scope, add_scopes, differs, enrol, lines_of, retire_scopes, scope_of
from duly.ledger.versions import apply
from duly.records import replace
from duly.schedule.keys import parse_key
from duly.schedule.spec import Schedule, cron, daily
from duly.times import SECOND, parse_instant
from duly.work.identity import new_attempt_id
from tests.books import WORD, Book

DAY, NEXT_DAY = "2026-10-04", "2026-10-05"
BETWEEN = "2026-10-05T12:00:00Z"  # DAY is due before it, NEXT_DAY after it


def add(book: Book, *scopes: str, since: str | None = None, until: str | None = None) -> list[Change]:
    return book.write(add_scopes("export", scopes, WORD, since=since, until=until))


def retire(book: Book, *scopes: str, at: str | None = None, skip_owed: bool = False) -> list[Change]:
    return book.write(retire_scopes("export", scopes or ("",), WORD, at=at, skip_owed=skip_owed))


def claimer() -> Claimer:
    return Claimer(new_attempt_id(), "host/1@1+a", "test")


def bounds(book: Book) -> dict[str, tuple[int | None, int | None]]:
    return {line.scope: (line.starts, line.ends) for line in book.store.read(lines_of("export"))}


def events(book: Book) -> list[tuple[str, str]]:
    return book.rows("select kind, detail from duly_event where kind like 'scope_%' or kind like 'job_re%' order by id")


# -- whoever claims after an end ----------------------------------------------------------------------------------------


def test_no_way_leads_to_a_window_that_comes_due_after_the_end(book: Book) -> None:
    book.job()
    retire(book, at=BETWEEN)

    assert isinstance(book.ask(NEXT_DAY), Retired)
    assert isinstance(book.ask_key(f"export:{NEXT_DAY}[UTC]"), Retired)
    assert isinstance(book.ask_adhoc("a1"), Retired)
    assert isinstance(book.poke(), Idle)
    with pytest.raises(Retired):
        book.write(once(parse_key(f"export:{NEXT_DAY}[UTC]"), claimer()))
    assert book.rows("select * from duly_run") == []


@pytest.mark.parametrize("window", [NEXT_DAY, "2026-10-09"])
def test_no_word_of_a_person_opens_a_window_that_comes_due_after_the_end(book: Book, window: str) -> None:
    book.job()
    retire(book, at=BETWEEN)
    before = book.everything()

    for say in (book.skip, book.cancel):
        with pytest.raises(Retired, match="what comes due from then on is not owed"):
            say(window)

    assert book.everything() == before
    book.clock.advance("5d")
    assert book.work_all() == []


def test_a_window_in_a_skipped_range_after_the_end_is_not_unskipped(book: Book) -> None:
    book.job()
    book.work_all()
    retire(book)
    book.clock.advance("4d")
    add(book, "")
    retire(book, at="2026-10-07")
    before = book.everything()

    with pytest.raises(Retired):
        book.unskip("2026-10-07")
    assert book.everything() == before
    assert book.unskip("2026-10-06").state == "open"


def test_a_run_that_was_opened_before_the_end_may_still_be_skipped_and_unskipped(book: Book) -> None:
    book.job()
    claim = book.take(NEXT_DAY)
    book.release(claim)
    retire(book, at=BETWEEN)

    assert book.state(claim.run) == "skipped"
    assert book.unskip(NEXT_DAY).state == "open"
    assert book.cancel(NEXT_DAY).state == "skipped"


def test_a_window_that_came_due_before_the_end_can_be_named(book: Book) -> None:
    book.job()
    retire(book, at=BETWEEN)

    assert isinstance(book.ask(DAY), Claim)
    assert book.write(once(parse_key("export:2026-10-03[UTC]"), claimer()))


def test_a_run_that_was_taken_before_the_end_is_completed_after_it(book: Book) -> None:
    book.job()
    claim = book.take(NEXT_DAY)

    (change,) = retire(book, at=BETWEEN, skip_owed=True)

    assert change.ended is not None
    assert [run.state for run in change.ended.owed] == ["running"]
    book.complete(claim)
    assert book.attempts(claim.run) == [(1, "completed")]


def test_a_claim_from_memory_notices_that_the_scope_was_retired(book: Book) -> None:
    book.job()
    known = book.declare()
    assert isinstance(known, Known)
    remembered = remember(known, book.declaration())
    assert remembered is not None
    place = recall(remembered, NEXT_DAY)
    assert place is not None
    retire(book, at=BETWEEN)

    assert book.write(claim_remembered(place, claimer())) is None
    assert book.rows("select * from duly_run") == []


def test_a_window_after_an_end_to_come_is_not_claimed_from_memory(book: Book) -> None:
    """The end lay ahead when the line was remembered, and nothing has changed since but the hour."""
    book.job()
    retire(book, at="2026-10-06")
    known = book.declare()
    assert isinstance(known, Known)
    remembered = remember(known, book.declaration())
    assert remembered is not None

    assert recall(remembered, NEXT_DAY) is not None
    assert recall(remembered, "2026-10-06") is None


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_scope_that_is_resumed_owes_nothing_for_the_time_between(book: Book, zone: str) -> None:
    book.job(schedule=daily(zone))
    assert book.work_all() == [f"export:2026-10-05[{zone}]"]
    retire(book)
    book.clock.advance("4d")

    add(book, "")

    assert book.work_all() == [f"export:2026-10-09[{zone}]"]
    assert book.ranges() == [("2026-10-06", "2026-10-09")]
    assert isinstance(book.ask("2026-10-07"), RunSkipped)
    book.clock.advance("1d")
    assert book.work_all() == [f"export:2026-10-10[{zone}]"]


def test_a_job_that_comes_back_can_be_claimed_again(book: Book) -> None:
    book.job()
    book.write(retire_job("export", WORD, skip_owed=True))
    book.clock.advance("3d")
    assert isinstance(book.ask("2026-10-06"), Retired)

    book.write(bring_back("export", WORD, since="2026-10-07"))

    assert book.work_all() == ["export:2026-10-07[UTC]", "export:2026-10-08[UTC]"]
    assert not isinstance(book.ask("2026-10-06"), Claim)
    assert [kind for kind, _ in events(book)] == ["job_registered", "job_retired", "job_resumed"]


def test_an_end_of_a_scope_that_is_on_the_roster_is_not_dropped_in_silence(book: Book) -> None:
    book.job()
    add(book, "acme")

    with pytest.raises(NotAllowed, match="is on the roster of export already, and has no end") as refused:
        add(book, "globex", "acme", until="2026-10-20")

    assert "duly jobs scopes retire export acme --at 2026-10-21T00:00:00Z" in (refused.value.next_step or "")
    assert [*bounds(book)] == ["", "acme"]
    assert [change.what for change in add(book, "acme")] == ["unchanged"]
    add(book, "initech", until="2026-10-20")
    add(book, "initech", until="2026-10-25")
    assert bounds(book)["initech"][1] == parse_instant("2026-10-26T00:00:00Z")


def test_what_is_said_of_the_roster_is_on_record(book: Book) -> None:
    book.job()
    add(book, "acme")
    retire(book, "acme", at=BETWEEN)
    add(book, "acme", since="2026-10-05", until="2026-10-07")

    assert events(book)[1:] == [
        ("scope_added", "acme"),
        ("scope_retired", f"acme at {BETWEEN}"),
        ("scope_resumed", "acme from 2026-10-06T00:00:00Z until 2026-10-08T00:00:00Z"),
    ]
    assert book.events("scope_retired")[0][:2] == (WORD.by, WORD.reason)


# -- another schedule after an end --------------------------------------------------------------------------------------


def edit(book: Book, schedule: Schedule) -> None:
    book.write(apply("export", schedule, by=WORD.by, reason="other times"))
    book.adopt("export", schedule)


@pytest.mark.parametrize("schedule", [daily("Europe/Berlin"), daily("UTC", at="02:30")])
def test_a_retired_line_is_not_ripe_again_under_another_schedule(book: Book, schedule: Schedule) -> None:
    book.job()
    book.work_all()
    retire(book)

    edit(book, schedule)

    assert book.rows("select next_due from duly_line") == [(None,)]
    book.clock.advance("4d")
    assert book.store.read(outlook()).ripe == []


AT_9 = parse_instant("2026-10-09T12:00:00Z")
ZONES_AND_TIMES = [daily("Europe/Berlin"), daily("UTC", at="02:30"), cron("0 */6 * * *", zone="UTC")]


def gaps(book: Book, series: int, first: str, last: str) -> list[str]:
    """Days of a series, from first to last, that have neither a row nor a skipped range."""
    days = [f"2026-10-{day:02}" for day in range(int(first[-2:]), int(last[-2:]) + 1)]
    names = {day: 2 * (parse_instant(f"{day}T00:00:00Z") // SECOND) for day in days}
    rows = {nominal for (nominal,) in book.rows("select nominal from duly_run where series = ?", series)}
    ranges = book.rows("select from_nominal, to_nominal from duly_skipped where series = ?", series)
    return [day for day, name in names.items() if name not in rows and not any(a <= name < b for a, b in ranges)]


@pytest.mark.parametrize("schedule", ZONES_AND_TIMES)
def test_what_came_due_under_the_schedule_of_before_is_skipped_with_a_reason(book: Book, schedule: Schedule) -> None:
    book.job()
    book.work_all()
    book.write(retire_job("export", WORD, skip_owed=False))
    book.clock.advance("4d")
    edit(book, schedule)  # from the 11th on
    book.clock.advance("3d")

    book.write(bring_back("export", WORD))

    (series,) = book.rows("select min(id) from duly_series")[0]
    assert gaps(book, series, "2026-10-05", "2026-10-10") == []
    for day in ("2026-10-06", "2026-10-10"):
        assert isinstance(book.ask_key(f"export:{day}[UTC]"), RunSkipped)
    assert len(book.work_all()) == 1


@pytest.mark.parametrize("schedule", ZONES_AND_TIMES)
def test_a_job_that_comes_back_at_once_owes_what_the_schedule_of_before_still_has(
    book: Book, schedule: Schedule
) -> None:
    """The new schedule has no window that is due. So the newest of before is owed again, and the one that has begun."""
    book.job()
    book.work_all()
    book.write(retire_job("export", WORD, skip_owed=False))
    book.clock.advance("4d")
    edit(book, schedule)

    book.write(bring_back("export", WORD))

    (series,) = book.rows("select min(id) from duly_series")[0]
    assert gaps(book, series, "2026-10-05", "2026-10-10") == []
    assert [reason for reason in book.reasons() if "not on the roster then" not in reason] == []
    assert book.work_all() == ["export:2026-10-09[UTC]"]
    book.clock.set("2026-10-11T06:00:00Z")
    assert book.work_all()[0] == "export:2026-10-10[UTC]"
    book.clock.advance("1d")
    book.work_all()
    spans = book.rows("select window_start, window_end from duly_run where window_end > ? order by window_start", AT_9)
    assert all(one[1] == other[0] for one, other in pairwise(spans))


# -- what code declares -------------------------------------------------------------------------------------------------


def enrolled(book: Book, *scopes: str | Scope) -> list[str]:
    roster = [scope_of(scope) for scope in scopes]
    declared = replace(
        Declaration("export", "", daily("UTC"), {"roster": "closed", "catch_up": "each"}, "dev@example"),
        scopes=tuple(scope.name for scope in roster),
    )
    done = book.write(enrol(declared, roster))
    assert not isinstance(done, (Refused, Misuse))
    assert not book.store.read(differs(declared, roster))
    return done


def test_every_scope_that_is_declared_is_on_the_roster_at_once(book: Book) -> None:
    assert enrolled(book, "globex", Scope("acme", since="2026-10-01", until="2026-11-01")) == ["acme", "globex"]

    day = 86_400_000_000
    assert bounds(book)["globex"] == (book.clock.now() // day * day, None)
    starts, ends = bounds(book)["acme"]
    assert starts is not None
    assert ends is not None
    assert ((ends - starts) // day, book.rows("select roster from duly_job")) == (31, [("closed",)])
    assert enrolled(book, "globex", Scope("acme", since="2026-10-01", until="2026-11-01")) == []


def test_a_scope_that_code_no_longer_names_is_noted_and_not_retired(book: Book) -> None:
    enrolled(book, "acme", "globex")

    assert enrolled(book, "acme") == ["globex"]
    assert bounds(book)["globex"][1] is None
    assert book.rows("select scope from duly_line where undeclared_at is not null") == [("globex",)]

    assert enrolled(book, "acme", "globex") == ["globex"]
    assert book.rows("select scope from duly_line where undeclared_at is not null") == []
    assert events(book)[-2:] == [("scope_undeclared", "globex"), ("scope_declared", "globex")]


def test_code_moves_an_end_that_lies_ahead_and_brings_nobody_back(book: Book) -> None:
    enrolled(book, "acme")
    enrolled(book, Scope("acme", until="2026-10-20"))
    enrolled(book, Scope("acme", until="2026-10-08"))
    before = bounds(book)
    book.clock.advance("5d")

    assert enrolled(book, Scope("acme", until="2026-12-31")) == []
    assert enrolled(book, "acme") == []
    assert bounds(book) == before


def test_a_scope_that_a_person_retired_stays_retired_whatever_code_says(book: Book) -> None:
    enrolled(book, "acme")
    retire(book, "acme")

    assert enrolled(book, "acme") == []
    book.clock.advance("1d")
    named = book.write(take_window(Declaration("export", "acme"), "2026-10-06", claimer()))
    assert isinstance(named, Named)
    assert isinstance(named.answer, Retired)
    assert bounds(book)["acme"][1] is not None


# -- names --------------------------------------------------------------------------------------------------------------


def test_no_way_leads_to_a_job_by_a_name_that_it_gave_up(book: Book) -> None:
    book.job()
    book.write(rename("export", "report", WORD))

    assert isinstance(book.declare(), JobRenamed)
    assert isinstance(book.ask(DAY), JobRenamed)
    assert isinstance(book.ask_key(f"export:{DAY}[UTC]"), JobRenamed)
    assert isinstance(book.ask_adhoc("a1"), JobRenamed)
    assert isinstance(book.poke(), JobRenamed)
    with pytest.raises(JobRenamed, match="Declare it as report"):
        book.write(once(parse_key(f"export:{DAY}[UTC]"), claimer()))
    with pytest.raises(JobRenamed):
        retire(book)
    assert book.rows("select name, first_name from duly_job") == [("report", "export")]


def test_old_keys_find_the_run(book: Book) -> None:
    book.job()
    claim = book.take(DAY)
    book.complete(claim)
    book.write(rename("export", "report", WORD))

    assert book.find_key(f"export:{DAY}[UTC]") == book.find_key(f"report:{DAY}[UTC]") == claim.run


def test_a_claim_from_memory_notices_a_new_name(book: Book) -> None:
    book.job()
    known = book.declare()
    assert isinstance(known, Known)
    remembered = remember(known, book.declaration())
    assert remembered is not None
    place = recall(remembered, NEXT_DAY)
    assert place is not None
    book.write(rename("export", "report", WORD))

    assert book.write(claim_remembered(place, claimer())) is None
    assert book.rows("select * from duly_run") == []


def test_a_name_that_was_given_up_is_no_other_jobs(book: Book) -> None:
    book.job()
    book.job("other")
    book.write(rename("export", "report", WORD))

    for taken in ("export", "report"):
        with pytest.raises(NotAllowed):
            book.write(rename("other", taken, WORD))
    book.write(rename("report", "export", WORD))
    assert book.rows("select name from duly_former_name") == [("report",)]
    assert isinstance(book.write(declare(book.declaration())), Known)
