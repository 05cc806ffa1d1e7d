"""Claims: the right to work a run, for code that makes its own transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Thread

import pytest

import duly
from duly.errors import Misuse, UnknownScope
from tests.books import LATE, LEASE
from tests.work.bank import Bank, add_ten, until

KEY = "export:2026-09-13[UTC]"


def take(bank: Bank, key: str = KEY) -> duly.Claim:
    claim = bank.ledger.take(key)
    assert isinstance(claim, duly.Claim)
    return claim


def test_a_claim_completes_in_the_callers_transaction(bank: Bank) -> None:
    with take(bank) as claim, bank.connected() as connection:
        add_ten(connection)
        assert claim.complete(connection, output="s3://exports/2026-09-13.csv") == duly.Completed(KEY, 1)
        assert bank.completed == 0  # nothing is, until the caller commits
        connection.commit()

    assert (bank.units, bank.completed) == (10, 1)
    assert bank.rows("select kind, body from duly_text") == [("output", "s3://exports/2026-09-13.csv")]


def test_a_claim_completes_in_a_transaction_of_its_own_where_there_is_no_other(bank: Bank) -> None:
    with take(bank) as claim:
        claim.complete()

    assert bank.history() == [(1, "completed")]


def test_a_completion_that_the_caller_rolls_back_did_not_happen(bank: Bank) -> None:
    with take(bank) as claim, bank.connected() as connection:
        add_ten(connection)
        claim.complete(connection)
        connection.rollback()
        assert bank.completed == 0

        add_ten(connection)
        claim.complete(connection)
        connection.commit()

    assert (bank.units, bank.completed) == (10, 1)


def test_the_caller_may_commit_after_the_block(bank: Bank) -> None:
    with bank.connected() as connection:
        with take(bank) as claim:
            add_ten(connection)
            claim.complete(connection)
        connection.commit()

    assert (bank.units, bank.completed) == (10, 1)


def test_what_the_window_is_comes_with_the_claim(bank: Bank) -> None:
    bank.job()

    with take(bank) as claim:
        start, end = claim.window
        claim.release()

    assert (start.isoformat(), end.isoformat()) == ("2026-09-13T00:00:00+00:00", "2026-09-14T00:00:00+00:00")
    assert (claim.run.label, str(claim.run.date)) == ("2026-09-13", "2026-09-13")


def test_a_claim_is_true_and_every_other_answer_is_false(bank: Bank) -> None:
    bank.job()

    claim = take(bank)
    busy, early = bank.ledger.take(KEY), bank.ledger.take("export", "2026-09-30", scope="acme")
    claim.complete()
    duplicate = bank.ledger.take(KEY)
    claim.close()

    assert claim
    assert not busy
    assert not early
    assert not duplicate
    assert [type(answer) for answer in (busy, early, duplicate)] == [duly.Busy, duly.NotDue, duly.AlreadyCompleted]


# -- how a block ends ---------------------------------------------------------------------------------------------------


def leave(claim: duly.Claim, error: Exception | None = None) -> None:
    with claim:
        if error is not None:
            raise error


def test_a_block_left_without_completing_is_unknown_where_the_effect_is_external(bank: Bank) -> None:
    leave(take(bank))

    assert bank.rows("select state, cause from duly_run") == [("unknown", "left without completing")]


def test_a_block_left_without_completing_is_failed_where_it_is_not(bank: Bank) -> None:
    bank.job()

    leave(take(bank))

    assert bank.rows("select state, cause from duly_run") == [("failed", "left without completing")]


def test_an_exception_fails_an_external_attempt_and_waits_for_a_person(bank: Bank) -> None:
    with pytest.raises(ZeroDivisionError):
        leave(take(bank), ZeroDivisionError())

    assert bank.rows("select state, retry_at, cause from duly_run") == [("failed", None, "ZeroDivisionError")]


def test_an_exception_fails_a_transactional_attempt_which_is_retried_by_policy(bank: Bank) -> None:
    bank.job(retries=1, retry_delay=LEASE)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            leave(take(bank), ZeroDivisionError())
        bank.clock.advance(LATE)

    with pytest.raises(duly.RunFailed):
        bank.ledger.take(KEY)

    assert bank.history() == [(1, "failed"), (2, "failed")]


def test_an_exception_after_the_commit_leaves_the_run_completed(bank: Bank) -> None:
    def work() -> None:
        with take(bank) as claim, bank.connected() as connection:
            claim.complete(connection)
            connection.commit()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert bank.history() == [(1, "completed")]


def test_an_exception_between_completion_and_commit_fails_the_attempt(bank: Bank) -> None:
    bank.job()

    def work() -> None:
        with take(bank) as claim, bank.connected() as connection, connection:
            add_ten(connection)
            claim.complete(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert (bank.units, bank.history()) == (0, [(1, "failed")])


@pytest.mark.parametrize(("word", "state"), [("fail", "failed"), ("doubt", "unknown"), ("release", "open")])
def test_an_attempt_may_say_itself_how_it_ended(bank: Bank, word: str, state: str) -> None:
    with take(bank) as claim:
        if word == "release":
            claim.release()
        else:
            getattr(claim, word)("the provider said 503")

    assert bank.rows("select state from duly_run") == [(state,)]


def test_an_attempt_that_has_said_its_word_renews_no_more(bank: Bank) -> None:
    with take(bank) as claim:
        claim.doubt("time-out at the provider")
        assert bank.rows("select state from duly_run") == [("unknown",)]

        bank.clock.advance(LATE)
        bank.write(resolve_when_it_can_be(bank))

        assert bank.rows("select state from duly_run") == [("completed",)]
        assert not claim.superseded


async def resolve_when_it_can_be(bank: Bank) -> None:
    """A person answers at once: nothing of the doubting attempt stands in the way, neither lease nor lock."""
    from duly.ledger.address import by_key
    from duly.ledger.resolve import Word, resolve
    from duly.schedule.keys import parse_key

    addressed = await by_key(parse_key(KEY))
    await resolve(addressed.run, Word("ops", "asked the provider"), done=True)


def test_a_claim_taken_over_tells_so_and_commits_nothing(bank: Bank) -> None:
    bank.job()
    stale = take(bank)
    stale.close()  # as when its process sleeps: no renewal, no lock
    bank.clock.advance(LATE)
    successor = take(bank)

    with bank.connected() as connection:
        add_ten(connection)
        with pytest.raises(duly.ClaimLost):
            stale.complete(connection)
        connection.commit()
        add_ten(connection)
        successor.complete(connection)
        connection.commit()
    successor.close()

    assert bank.units == 10
    assert bank.history() == [(1, "lost"), (2, "completed")]


def test_a_block_that_was_taken_over_ends_with_claim_lost(bank: Bank) -> None:
    bank.job()
    stale = take(bank)
    stale.close()
    bank.clock.advance(LATE)
    successor = take(bank)

    with pytest.raises(duly.ClaimLost):
        leave(stale)
    with pytest.raises(ZeroDivisionError) as caught:
        leave(stale, ZeroDivisionError())

    assert "had taken export:2026-09-13[UTC] over" in "".join(caught.value.__notes__)
    successor.release()


# -- leases -------------------------------------------------------------------------------------------------------------


def test_a_block_that_takes_long_keeps_its_lease(bank: Bank) -> None:
    bank.job()
    rival = duly.sqlite(bank.path)

    with take(bank) as claim:
        for _ in range(6):
            bank.clock.advance(LEASE // 2)
            until(lambda: lease_of(bank) > bank.clock.now() + LEASE // 2)
            assert isinstance(rival.take(KEY), duly.Busy)
        claim.complete()

    assert bank.history() == [(1, "completed")]
    rival.close()


def lease_of(bank: Bank) -> int:
    found: int = bank.rows(
        "select coalesce(max(n.until), max(r.lease_until)) from duly_run r left join duly_renewal n using (series, nominal)"
    )[0][0]
    return found


def test_an_attempt_that_was_superseded_is_told(bank: Bank) -> None:
    bank.job()
    claim = take(bank)

    def work() -> None:
        with claim:
            assert not claim.superseded
            bank.amend("update duly_run set fence = fence + 1, attempt_id = x'00112233445566778899aabbccddeeff'")
            bank.clock.advance(LEASE // 2)
            until(lambda: claim.superseded)
            claim.complete()  # it goes on all the same

    with pytest.raises(duly.ClaimLost):
        work()

    assert bank.completed == 0


def test_a_claim_completed_by_the_caller_is_not_superseded(bank: Bank) -> None:
    bank.job()
    with take(bank) as claim, bank.connected() as connection:
        claim.complete(connection)
        connection.commit()
        bank.clock.advance(LEASE // 2)
        until(lambda: bank.ledger._keeper._thread is None)  # its renewal was refused, and it has nothing left to keep

        assert not claim.superseded


# -- what is asked for --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "settings"),
    [
        ("export", {}),
        ("export", {"window": "2026-09-13", "adhoc": "x"}),
        (KEY, {"window": "2026-09-13"}),
        (KEY, {"adhoc": "x"}),
        (KEY, {"scope": "acme"}),
        ("not a name", {"window": "2026-09-13"}),
        ("export", {"window": "2026-09-13", "scope": " blank "}),
        ("export", {"window": "2026-09-13", "wait": "soon"}),
        ("export", {"window": "someday"}),
    ],
)
def test_what_names_no_run_is_refused(bank: Bank, job: str, settings: dict[str, str]) -> None:
    bank.job()

    with pytest.raises(Misuse):
        bank.ledger.take(job, **settings)


def test_a_job_that_nobody_registered_is_unknown_by_name(bank: Bank) -> None:
    with pytest.raises(duly.UnknownJob, match="nightly"):
        bank.ledger.take("nightly", "2026-09-13")


def test_a_closed_roster_is_closed_to_claims(bank: Bank) -> None:
    bank.job()
    bank.job(roster="closed")

    with pytest.raises(UnknownScope):
        bank.ledger.take("export", "2026-09-13", scope="acme")


def test_whoever_waits_gets_the_run_when_it_is_given_back(bank: Bank) -> None:
    bank.job()
    holder = take(bank)
    got: list[object] = []

    def rival() -> None:
        ledger = duly.sqlite(bank.path)
        claim = ledger.take(KEY, wait="1h")
        got.append(claim)
        assert isinstance(claim, duly.Claim)
        claim.complete()
        claim.close()
        ledger.close()

    waiting = Thread(target=rival)
    waiting.start()
    holder.release()
    waiting.join()

    assert isinstance(got[0], duly.Claim)
    assert bank.history() == [(1, "released"), (2, "completed")]


def test_whoever_waits_too_long_is_told_that_it_is_busy(bank: Bank) -> None:
    bank.job()
    holder = take(bank)
    got: list[object] = []
    waiting = Thread(target=lambda: got.append(duly.sqlite(bank.path).take(KEY, wait="10m")))
    waiting.start()
    while waiting.is_alive():
        bank.clock.advance("1m")
        waiting.join(0.001)

    assert isinstance(got[0], duly.Busy)
    holder.release()


def test_a_connection_without_a_transaction_is_refused_before_anything_is_written(bank: Bank) -> None:
    with take(bank) as claim, bank.connected(isolation_level=None) as connection:
        with pytest.raises(duly.NoTransaction):
            claim.complete(connection)
        assert bank.rows("select state from duly_run") == [("running",)]
        claim.release()


def test_a_claim_is_completed_beside_its_effect_by_row_factories_of_any_kind(bank: Bank) -> None:
    with take(bank) as claim, bank.connected() as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("insert into export values ('x')")
        claim.complete(connection)
        connection.commit()

    assert bank.completed == 1


def test_an_exception_of_the_block_is_raised_where_the_ledger_cannot_be_told_of_it(bank: Bank) -> None:
    def work(claim: duly.Claim) -> None:
        with claim:
            Path(bank.path).rename(bank.path + ".gone")
            raise ConnectionError("the provider is away")

    with pytest.raises(ConnectionError) as raised:
        work(take(bank))

    assert any("could not be recorded" in note for note in raised.value.__notes__)
