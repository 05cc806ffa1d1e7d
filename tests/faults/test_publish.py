"""A file that a function publishes is there whole or not at all, and once, whatever kills whom when: on each database."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.errors import Misuse
from tests.books import LATE
from tests.faults.account import DAY, KEY, Account

# A job that stops at each point at which its file is put in place. What is done between the points is not changed.
STOPPING = """
import os
from pathlib import Path

import duly.work.output as output

link, finish, discard = os.link, output.Place.finish, output.Place.discard
flushed = []

def stopping_finish(place):
    intent = finish(place)
    if not flushed:
        flushed.append(place)
        stop("flushed")
    return intent

def stopping_link(*names):
    stop("before the link")
    link(*names)
    stop("after the link")

output.Place.finish, os.link = stopping_finish, stopping_link

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, overlap=True{settings})
def credit(run):
    {effect}
    path = run.publish({final!r}, replace={replace})
    path.write_text("who")
    stop("half")
    path.write_text("whole")

{before}
credit.run("2026-10-05")
stop("done")
"""
POINTS = ("half", "flushed", "before the link", "after the link", "done")
CREDITS = """run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")"""

RETRIES = ", retries=1000, retry_delay=0"

Effect = Callable[[duly.Run[Any]], object]


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def account(request: pytest.FixtureRequest) -> Account:
    """An account on each database."""
    found: Account = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def final(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    folder.mkdir()
    return folder / "report.csv"


def stopped_at(
    account: Account,
    last: str,
    final: Path,
    *,
    effect: str = "pass",
    settings: str = RETRIES,
    replace: bool = False,
    before: str = "",
) -> Any:
    """A worker that gets as far as this point, and waits there."""
    script = STOPPING.format(effect=effect, settings=settings, final=str(final), replace=replace, before=before)
    worker = account.worker(script)
    for point in POINTS:
        worker.reaches(point)
        if point == last:
            break
        worker.go_on()
    return worker


def killed_at(account: Account, last: str, final: Path, **settings: Any) -> None:
    stopped_at(account, last, final, **settings).kill()
    account.clock.advance(LATE)


class Publishing:
    """The same job in this process; it counts how often it is called."""

    def __init__(self, account: Account, final: Path, does: Effect = lambda run: None, **settings: Any) -> None:
        self.calls = 0
        self._replace = settings.pop("replace", False)
        opened = {"busy_seconds": settings.pop("busy_seconds")} if "busy_seconds" in settings else {}
        if "effect" not in settings:
            settings = {"retries": 1000, "retry_delay": 0, **settings}

        @account.ledger(**opened).job(
            "credit",
            duly.daily("UTC"),
            **{"catch_up": duly.EACH, "overlap": True, **settings},
        )
        def credit(run: duly.Run[Any]) -> None:
            self.calls += 1
            does(run)
            run.publish(final, replace=self._replace).write_text("again")

        self.job = credit


def credits(run: duly.Run[Any]) -> None:
    run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")


def temporaries(final: Path) -> list[str]:
    return [name for name in os.listdir(final.parent) if name.startswith(".")]


def outputs(account: Account) -> list[Any]:
    return account.book.rows("select path, size, sha256 from duly_output")


# -- all goes well -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [lambda run: None, credits])
def test_the_file_is_there_with_the_completion_and_on_record(account: Account, final: Path, effect: Effect) -> None:
    assert Publishing(account, final, effect).job.run(DAY) == duly.Completed(KEY, 1)

    assert final.read_text() == "again"
    assert final.stat().st_nlink == 1
    assert temporaries(final) == []
    assert outputs(account) == [(str(final), 5, sha256(b"again").hexdigest())]
    assert account.book.rows("select body from duly_text where kind = 'output'") == [(str(final),)]


def test_it_is_not_there_before(account: Account, final: Path) -> None:
    worker = stopped_at(account, "before the link", final)

    assert not final.exists()
    worker.go_on()
    worker.reaches("after the link")
    assert final.read_text() == "whole"
    worker.kill()


def test_with_a_result_or_a_message_it_goes_along(account: Account, final: Path) -> None:
    def effect(run: duly.Run[Any]) -> None:
        run.result = {"rows": 3}

    Publishing(account, final, effect).job.run(DAY)

    assert account.ledger().result("credit", DAY) == {"rows": 3}
    assert final.read_text() == "again"
    assert temporaries(final) == []


# -- killed at each point ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["half", "flushed", "before the link"])
def test_killed_before_the_link_there_is_no_file_and_it_is_done_again(
    account: Account, final: Path, point: str
) -> None:
    killed_at(account, point, final)
    assert not final.exists()

    again = Publishing(account, final)

    assert again.job.run(DAY) == duly.Completed(KEY, 2)
    assert (again.calls, final.read_text(), temporaries(final)) == (1, "again", [])


@pytest.mark.parametrize("contract", [{}, {"effect": "idempotent", "remembers": "1h"}])
def test_killed_between_link_and_commit_the_next_attempt_completes_and_calls_nothing(
    account: Account, final: Path, contract: dict[str, Any]
) -> None:
    said = "".join(f", {name}={value!r}" for name, value in contract.items())
    killed_at(account, "after the link", final, settings=said or RETRIES)
    assert account.history() == [(1, "running")]

    again = Publishing(account, final, **contract)

    assert again.job.run(DAY) == duly.Completed(KEY, 2)
    assert (again.calls, final.read_text(), temporaries(final)) == (0, "whole", [])


def test_killed_so_catching_up_completes_it_too(account: Account, final: Path) -> None:
    killed_at(account, "after the link", final)
    again = Publishing(account, final)

    (first, *_) = again.job.catch_up()

    assert (first.key, final.read_text()) == (KEY, "whole")


@pytest.mark.parametrize("how", ["run", "take", "catch_up"])
def test_an_external_run_that_is_killed_so_is_known_by_its_file(account: Account, final: Path, how: str) -> None:
    killed_at(account, "after the link", final, settings=', effect="external"')
    again = Publishing(account, final, effect="external")

    if how == "run":
        assert isinstance(again.job.run(DAY), duly.AlreadyCompleted)
    elif how == "take":
        assert isinstance(account.ledger().take("credit", DAY), duly.AlreadyCompleted)
    else:
        assert [done.key for done in again.job.catch_up()] == [KEY]

    assert (again.calls, final.read_text(), temporaries(final)) == (0, "whole", [])
    assert account.history() == [(1, "completed")]


@pytest.mark.parametrize("effect", [CREDITS, "run.result = 7"])
def test_an_external_run_that_left_more_than_its_file_stays_unknown(account: Account, final: Path, effect: str) -> None:
    killed_at(account, "after the link", final, settings=', effect="external"', effect=effect)

    with pytest.raises(duly.OutcomeUnknown):
        Publishing(account, final, effect="external").job.run(DAY)


def test_killed_with_rows_uncommitted_the_work_is_done_again_and_its_file_replaced(
    account: Account, final: Path
) -> None:
    killed_at(account, "after the link", final, effect=CREDITS)
    assert (account.days, final.read_text()) == ([], "whole")

    again = Publishing(account, final, credits)

    assert again.job.run(DAY) == duly.Completed(KEY, 2)
    assert (again.calls, account.days, final.read_text(), temporaries(final)) == (1, [DAY], "again", [])


def test_killed_with_a_result_unwritten_the_work_is_done_again(account: Account, final: Path) -> None:
    killed_at(account, "after the link", final, effect="run.result = 7")

    again = Publishing(account, final)

    assert again.job.run(DAY) == duly.Completed(KEY, 2)
    assert (again.calls, final.read_text()) == (1, "again")


def test_what_was_on_record_of_a_file_says_nothing_of_the_same_file_with_rows(account: Account, final: Path) -> None:
    killed_at(account, "before the link", final)
    killed_at(account, "after the link", final, effect=CREDITS)

    again = Publishing(account, final, credits)
    again.job.run(DAY)

    assert (again.calls, account.days, final.read_text()) == (1, [DAY], "again")


def test_killed_after_the_commit_it_is_done(account: Account, final: Path) -> None:
    killed_at(account, "done", final, effect=CREDITS)

    again = Publishing(account, final, credits)

    assert isinstance(again.job.run(DAY), duly.AlreadyCompleted)
    assert (again.calls, account.days, final.read_text()) == (0, [DAY], "whole")


@pytest.mark.parametrize("found", ["other", "wholly other"])
def test_a_file_with_another_digest_proves_nothing(account: Account, final: Path, found: str) -> None:
    killed_at(account, "after the link", final)
    final.unlink()
    final.write_text(found)

    again = Publishing(account, final)

    with pytest.raises(duly.OutputRefused, match="is there already"):
        again.job.run(DAY)
    assert (again.calls, final.read_text()) == (1, found)


# -- superseded --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("effect", ["pass", CREDITS], ids=["alone", "with-rows"])
def test_a_superseded_attempt_never_overwrites(account: Account, final: Path, replace: bool, effect: str) -> None:
    if "://" not in account.url:
        pytest.skip("on one host an attempt that lives is not superseded")
    worker = stopped_at(account, "flushed", final, effect=effect, replace=replace)
    os.kill(worker.process.pid, signal.SIGSTOP)  # it renews nothing
    account.clock.advance(LATE)
    assert Publishing(account, final, replace=replace).job.run(DAY) == duly.Completed(KEY, 2)

    os.kill(worker.process.pid, signal.SIGCONT)
    _, complaint = worker.process.communicate("\n" * 9, timeout=30)

    assert "ClaimLost" in complaint
    assert (final.read_text(), account.days, temporaries(final)) == ("again", [], [])


def superseded(account: Account) -> tuple[duly.Claim, duly.Claim]:
    """The second attempt at a run, that has lost it and does not know, and the third, which has it."""
    if "://" not in account.url:
        pytest.skip("on one host an attempt that lives is not superseded")
    ledger = account.ledger()
    settings: dict[str, Any] = {"effect": "idempotent", "remembers": "forever", "retries": 9, "retry_delay": 0}
    ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, **settings)(lambda run: None).run("2026-10-01")
    first = ledger.take("credit", DAY)
    assert isinstance(first, duly.Claim)
    first.fail("a trouble")
    stale = ledger.take("credit", DAY)
    account.clock.advance(LATE)
    holder = ledger.take("credit", DAY)
    assert isinstance(stale, duly.Claim)
    assert isinstance(holder, duly.Claim)
    return stale, holder


@pytest.mark.parametrize("replace", [False, True])
def test_a_superseded_attempt_clears_nothing_of_its_successor_away(
    account: Account, final: Path, replace: bool
) -> None:
    stale, holder = superseded(account)
    holder.run.publish(final, replace=replace).write_text("whole")

    stale.run.publish(final, replace=replace)

    assert len(temporaries(final)) == 1
    holder.complete()
    with pytest.raises(duly.ClaimLost):
        stale.complete()
    assert (final.read_text(), temporaries(final)) == ("whole", [])


def test_a_superseded_attempt_is_told_that_and_not_to_overwrite_what_is_there(account: Account, final: Path) -> None:
    stale, holder = superseded(account)
    holder.run.publish(final).write_text("whole")
    holder.complete()

    with pytest.raises(duly.ClaimLost):
        stale.run.publish(final)

    assert (final.read_text(), temporaries(final)) == ("whole", [])


def test_a_run_whose_file_is_being_moved_is_not_taken_over(account: Account, final: Path) -> None:
    if "://" not in account.url:
        pytest.skip("on one host an attempt that lives is not superseded")
    worker = stopped_at(account, "before the link", final, replace=False)
    os.kill(worker.process.pid, signal.SIGSTOP)
    account.clock.advance(LATE)

    with pytest.raises(duly.LedgerBusy):
        Publishing(account, final, busy_seconds=1).job.run(DAY)

    os.kill(worker.process.pid, signal.SIGCONT)
    worker.process.communicate("\n" * 9, timeout=30)
    assert (final.read_text(), account.history()) == ("whole", [(1, "completed")])


# -- not done ----------------------------------------------------------------------------------------------------------


def test_an_attempt_that_fails_leaves_no_file(account: Account, final: Path) -> None:
    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        run.publish(final).write_text("half")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        credit.run(DAY)

    assert os.listdir(final.parent) == []
    assert outputs(account) == []


def test_a_completion_that_the_database_refuses_takes_its_file_back(account: Account, final: Path) -> None:
    account.book.amend("create table parent (id integer primary key)")
    account.book.amend("create table child (id integer references parent (id) deferrable initially deferred)")

    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        run.publish(final).write_text("whole")
        if "://" not in account.url:
            run.tx.execute("pragma defer_foreign_keys = on")
        run.tx.execute("insert into child values (7)")

    if "://" not in account.url:
        pytest.skip("SQLite judges foreign keys only where a connection asks for it")
    with pytest.raises(Exception, match="child"):
        credit.run(DAY)

    assert os.listdir(final.parent) == []
    assert account.history() == [(1, "failed")]


def test_what_is_there_is_not_overwritten_unless_that_is_allowed(account: Account, final: Path) -> None:
    final.write_text("precious")

    with pytest.raises(duly.OutputRefused, match="replace=True"):
        Publishing(account, final).job.run(DAY)
    assert final.read_text() == "precious"

    assert Publishing(account, final, replace=True).job.run(DAY) == duly.Completed(KEY, 2)
    assert (final.read_text(), temporaries(final)) == ("again", [])


def test_what_appears_meanwhile_is_not_overwritten(account: Account, final: Path) -> None:
    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        credits(run)
        run.publish(final).write_text("whole")
        final.write_text("rival")

    with pytest.raises(duly.OutputRefused, match="is there already"):
        credit.run(DAY)

    assert (final.read_text(), account.days, temporaries(final)) == ("rival", [], [])


def test_a_file_that_was_never_written_is_not_done(account: Account, final: Path) -> None:
    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        run.publish(final)

    with pytest.raises(duly.OutputRefused, match="nothing was written"):
        credit.run(DAY)

    assert account.history() == [(1, "failed")]


def test_a_folder_that_is_not_there_is_said_at_once(account: Account, final: Path) -> None:
    with pytest.raises(duly.OutputRefused, match="no folder"):
        Publishing(account, final.parent / "no" / "x.csv").job.run(DAY)


@pytest.mark.parametrize("settings", [{"inline": True}, {"inline": True, "group": 5}])
def test_inline_runs_and_groups_are_refused(account: Account, final: Path, settings: dict[str, Any]) -> None:
    publishing = Publishing(account, final, **settings)
    publishing.job.lines()

    with pytest.raises((Misuse, ExceptionGroup)) as refused:
        publishing.job.catch_up() if "group" in settings else publishing.job.run(DAY)

    assert "inline" in repr(refused.value)
    assert os.listdir(final.parent) == []


def test_a_run_has_one_file(account: Account, final: Path) -> None:
    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        assert run.publish(final) == run.publish(str(final))
        run.publish(final.with_name("second.csv"))

    with pytest.raises(Misuse, match="one file"):
        credit.run(DAY)

    assert os.listdir(final.parent) == []


@pytest.mark.parametrize("path", ["", "exports/", b"x", None, "a\0b"])
def test_what_is_no_path_is_refused(account: Account, final: Path, path: Any) -> None:
    @account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        run.publish(path)

    with pytest.raises(Misuse, match="publish"):
        credit.run(DAY)


# -- claims ------------------------------------------------------------------------------------------------------------


def test_a_claim_publishes_with_its_completion(account: Account, final: Path) -> None:
    ledger = account.ledger()
    account.credit(ledger).lines()
    claim = ledger.take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim:
        claim.run.publish(final).write_text("whole")
        claim.complete()

    assert (final.read_text(), temporaries(final)) == ("whole", [])


def test_a_claim_that_is_left_leaves_no_file(account: Account, final: Path) -> None:
    ledger = account.ledger()
    account.credit(ledger).lines()
    claim = ledger.take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim:
        claim.run.publish(final).write_text("whole")

    assert os.listdir(final.parent) == []
