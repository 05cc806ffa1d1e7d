"""`duly.once`: a run completed in a transaction of the caller's, in every mode that the sqlite3 module has for them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.errors import KeyInvalid, NameInvalid, UnknownRun
from duly.ledger.records import Claim
from tests.books import let_die
from tests.work.bank import Bank, Worker, add_ten

KEY = "credit:2026-09-13[UTC]"


# -- what it answers ----------------------------------------------------------------------------------------------------


def test_it_answers_true_once(bank: Bank) -> None:
    with bank.connected() as connection:
        first = duly.once(connection, KEY)
        again = duly.once(connection, KEY)
        connection.commit()

    assert (first, again) == (True, False)
    assert bank.history() == [(1, "completed")]


def test_a_failed_run_that_may_be_retried_is_completed_by_it(bank: Bank) -> None:
    bank.job("credit")
    bank.fail(bank.take("2026-09-13", job="credit"), retry_in=10**12)

    with bank.connected() as connection, connection:
        assert duly.once(connection, KEY)

    assert bank.history() == [(1, "failed"), (2, "completed")]


def test_a_run_whose_transactional_holder_vanished_is_completed_by_it(bank: Bank) -> None:
    bank.job("credit")
    lost = bank.take("2026-09-13", job="credit")
    bank.lapse()

    with bank.connected() as connection, connection:
        assert duly.once(connection, KEY)

    assert bank.history() == [(1, "lost"), (2, "completed")]
    with pytest.raises(duly.ClaimLost):
        bank.complete(lost)


def running(bank: Bank) -> None:
    bank.take("2026-09-13", job="credit", payload="json1:x")


def lapsed(bank: Bank) -> None:
    running(bank)
    bank.amend("update duly_run set contract = 'external'")
    bank.lapse()


def unknown(bank: Bank) -> None:
    bank.doubt(bank.take("2026-09-13", job="credit"))


def waiting(bank: Bank) -> None:
    bank.fail(bank.take("2026-09-13", job="credit"), retry_in=None)


def skipped(bank: Bank) -> None:
    bank.skip("2026-09-13", job="credit")


def in_a_skipped_range(bank: Bank) -> None:
    _, run, _ = bank.find("2026-09-13", job="credit")
    bank.amend(
        "insert into duly_skipped values (?, ?, ?, 'a month off', 0, 'ops')", run.series, run.nominal, run.nominal + 2
    )


def forgotten(bank: Bank) -> None:
    _, run, _ = bank.find("2026-09-13", job="credit")
    bank.amend("update duly_series set horizon = ?", run.nominal + 1)


@pytest.mark.parametrize(
    ("arrange", "refusal"),
    [
        (running, duly.RunBusy),
        (lapsed, duly.OutcomeUnknown),
        (unknown, duly.OutcomeUnknown),
        (waiting, duly.RunFailed),
        (skipped, duly.RunSkipped),
        (in_a_skipped_range, duly.RunSkipped),
        (forgotten, duly.BelowHorizon),
    ],
)
def test_where_the_effect_must_not_be_done_it_raises_and_leaves_the_transaction_whole(
    bank: Bank, arrange: Callable[[Bank], None], refusal: type[duly.Refused]
) -> None:
    bank.job("credit")
    arrange(bank)
    before = bank.rows("select * from duly_run")

    with bank.connected() as connection:
        connection.execute("insert into export values ('mine')")
        with pytest.raises(refusal):
            duly.once(connection, KEY)
        connection.commit()

    assert bank.rows("select day from export") == [("mine",)]
    assert bank.rows("select * from duly_run") == before


def test_the_same_key_with_another_payload_is_refused_in_every_state(bank: Bank) -> None:
    with bank.connected() as connection:
        assert duly.once(connection, KEY, payload={"format": "csv", "rows": [1, 2.5, None]})
        connection.commit()

        assert not duly.once(connection, KEY, payload={"rows": [1, 2.5, None], "format": "csv"})
        assert not duly.once(connection, KEY)
        with pytest.raises(duly.PayloadConflict):
            duly.once(connection, KEY, payload={"format": "xml"})


def test_a_window_off_the_schedule_is_refused_where_one_is_known(bank: Bank) -> None:
    bank.job("credit")

    with bank.connected() as connection:
        with pytest.raises(duly.WindowInvalid, match=r"day in UTC, not by day in Europe/Berlin"):
            duly.once(connection, "credit:2026-09-13[Europe/Berlin]")
        with pytest.raises(duly.WindowInvalid, match="not by fire"):
            duly.once(connection, "credit:2026-09-13T00:00:00Z")


def test_it_knows_the_window_where_a_schedule_is_known(bank: Bank) -> None:
    bank.job("credit")

    with bank.connected() as connection, connection:
        duly.once(connection, KEY)

    assert bank.rows("select window_start, window_end, due from duly_run_readable") == [
        ("2026-09-13T00:00:00Z", "2026-09-14T00:00:00Z", "2026-09-14T00:00:00Z")
    ]


def test_a_window_completed_by_it_is_not_owed(bank: Bank) -> None:
    bank.job("credit")
    with bank.connected() as connection, connection:
        duly.once(connection, "credit:2026-09-14[UTC]")

    assert bank.work_all("credit") == []


def test_it_ignores_overlap(bank: Bank) -> None:
    bank.job("credit")
    bank.take("2026-09-12", job="credit")

    with bank.connected() as connection, connection:
        assert duly.once(connection, KEY)


def test_a_revision_that_nobody_opened_does_not_exist(bank: Bank) -> None:
    with bank.connected() as connection:
        assert duly.once(connection, KEY)
        with pytest.raises(UnknownRun):
            duly.once(connection, KEY + "#2")
        connection.commit()

    assert bank.completed == 1


@pytest.mark.parametrize(
    "key", ["credit", "credit:yesterday[UTC]", "credit:2026-09-13", ":2026-09-13[UTC]", "a b:2026[UTC]"]
)
def test_what_is_no_key_is_refused_before_anything_is_written(bank: Bank, key: str) -> None:
    with bank.connected() as connection:
        with pytest.raises((KeyInvalid, NameInvalid)):
            duly.once(connection, key)
        assert not connection.in_transaction


def test_a_run_outside_the_schedule_has_an_id_that_a_retry_passes_back(bank: Bank) -> None:
    with bank.connected() as connection:
        assert duly.once(connection, "credit:adhoc-repair-7")
        assert not duly.once(connection, "credit:adhoc-repair-7")
        assert duly.once(connection, "credit:adhoc-repair-8")


# -- transaction modes --------------------------------------------------------------------------------------------------


def credit(connection: sqlite3.Connection) -> bool:
    if duly.once(connection, KEY):
        add_ten(connection)
        return True
    return False


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_where_the_driver_begins_transactions_the_caller_just_commits(bank: Bank, level: Any) -> None:
    with bank.connected(isolation_level=level) as connection:
        assert credit(connection)
        assert connection.in_transaction
        connection.rollback()
        assert (bank.units, bank.completed) == (0, 0)

        assert credit(connection)
        connection.commit()
        assert not credit(connection)
        connection.commit()

    assert (bank.units, bank.completed) == (10, 1)


@pytest.mark.parametrize("begin", ["begin", "begin immediate", "begin exclusive", "savepoint mine"])
def test_where_the_caller_begins_transactions_it_is_part_of_them(bank: Bank, begin: str) -> None:
    with bank.connected(isolation_level=None) as connection:
        connection.execute(begin)
        assert credit(connection)
        connection.execute("rollback" if begin != "savepoint mine" else "rollback to mine")
        assert (bank.units, bank.completed) == (0, 0)
        if connection.in_transaction:
            connection.execute("release mine")

        connection.execute(begin)
        assert credit(connection)
        connection.execute("commit" if begin != "savepoint mine" else "release mine")

    assert (bank.units, bank.completed) == (10, 1)


def test_without_a_transaction_it_is_refused_and_nothing_is_written(bank: Bank) -> None:
    with bank.connected(isolation_level=None) as connection, bank.no_commit(), pytest.raises(duly.NoTransaction):
        credit(connection)

    assert bank.rows("select * from duly_run") == []


@pytest.mark.parametrize(
    "act",
    [
        lambda c: setattr(c, "row_factory", sqlite3.Row),
        lambda c: setattr(c, "row_factory", as_dict),
        lambda c: setattr(c, "text_factory", bytes),
        lambda c: setattr(c, "text_factory", str.encode),
    ],
    ids=["rows", "dicts", "bytes", "nonsense"],
)
def test_how_the_caller_wants_rows_and_text_is_none_of_its_business(
    bank: Bank, act: Callable[[sqlite3.Connection], None]
) -> None:
    with bank.connected() as connection:
        act(connection)
        factories = connection.row_factory, connection.text_factory
        assert credit(connection)
        assert not credit(connection)
        assert (connection.row_factory, connection.text_factory) == factories
        connection.commit()

    assert (bank.units, bank.completed) == (10, 1)


@pytest.mark.parametrize("factory", [str, bytes, str.encode])
def test_a_holder_that_shows_a_pulse_is_busy_whatever_the_callers_text_is(bank: Bank, factory: Any) -> None:
    bank.job("credit")
    claim = bank.take("2026-09-13", job="credit")
    pulse = bank.hold_pulse(claim)
    bank.lapse()

    with bank.connected() as connection:
        connection.text_factory = factory
        with pytest.raises(duly.RunBusy):
            duly.once(connection, KEY)

    let_die(pulse)


@pytest.mark.parametrize("factory", [str, bytes, str.encode])
def test_a_claim_is_completed_whatever_the_callers_text_is(bank: Bank, factory: Any) -> None:
    claim = bank.ledger.take(KEY)
    assert isinstance(claim, duly.Claim)

    with bank.connected() as connection, connection:
        connection.text_factory = factory
        claim.complete(connection)
        add_ten(connection)
    claim.close()

    assert (bank.units, bank.completed) == (10, 1)


def as_dict(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def other_pythons() -> list[str]:
    """Interpreters from Python 3.12 on, where connections have an `autocommit`."""
    found = [sys.executable] if sys.version_info >= (3, 12) else []
    for folder in ("/usr/bin", "/usr/local/bin", *map(str, Path.home().glob(".pyenv/versions/*/bin"))):
        found += [str(p) for p in Path(folder).glob("python3.1[2-9]")]
    return sorted({str(Path(p).resolve()): p for p in found}.values())


AUTOCOMMIT = """
def credit(connection):
    if duly.once(connection, "credit:2026-09-13[UTC]"):
        connection.execute("update balance set units = units + 10")
        return True
    return False

# autocommit=False: the driver assumes that a transaction is always open.
connection = sqlite3.connect(path, autocommit=False)
assert credit(connection)
connection.rollback()
assert credit(connection)
connection.commit()
assert not credit(connection)
connection.commit()
claim = ledger.take("credit", "2026-09-14")
assert claim, claim
claim.complete(connection)
connection.execute("update balance set units = units + 10")
connection.commit()
try:
    claim.complete(connection)
except duly.ClaimLost:
    pass
else:
    raise AssertionError("completed twice")
connection.execute("insert into export values ('after')")  # the driver and duly agree that a transaction is open
connection.commit()
connection.close()

# autocommit=True: each statement commits by itself, unless the caller begins.
connection = sqlite3.connect(path, autocommit=True)
try:
    duly.once(connection, "credit:2026-09-12[UTC]")
except duly.NoTransaction:
    pass
else:
    raise AssertionError("the marker would have committed alone")
connection.execute("begin")
assert duly.once(connection, "credit:2026-09-12[UTC]")
connection.execute("update balance set units = units + 10")
connection.execute("commit")
connection.close()

# the mode of old, by its new name
connection = sqlite3.connect(path, autocommit=sqlite3.LEGACY_TRANSACTION_CONTROL)
assert duly.once(connection, "credit:2026-09-11[UTC]")
connection.execute("update balance set units = units + 10")
connection.commit()
connection.close()
ledger.close()
print("done")
"""


@pytest.mark.parametrize("python", other_pythons() or [None])
def test_every_autocommit_mode_of_newer_pythons(bank: Bank, python: str | None) -> None:
    if python is None:
        pytest.skip("NO PYTHON 3.12 OR LATER ON THIS HOST: the modes of sqlite3's autocommit are not tested")
    bank.job("credit")

    assert Worker(bank, AUTOCOMMIT, python=python).ends() == "done"

    assert (bank.units, bank.completed) == (40, 4)
    assert bank.rows("select day from export") == [("after",)]


# -- other databases ----------------------------------------------------------------------------------------------------


def test_a_database_without_a_ledger_is_named_with_the_call_that_makes_one(bank: Bank, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection, pytest.raises(duly.NoLedger, match=r"duly\.sqlite"):
        duly.once(connection, KEY)
    connection.close()


def test_a_claim_is_not_completed_in_another_ledger(bank: Bank, tmp_path: Path) -> None:
    other = Bank(tmp_path / "other.db")
    claim = bank.ledger.take(KEY)
    assert isinstance(claim, duly.Claim)

    with other.connected() as connection:
        with pytest.raises(duly.WrongLedger, match=r"bank\.db"):
            claim.complete(connection)
        assert not connection.in_transaction
    with sqlite3.connect(":memory:") as memory, pytest.raises(duly.WrongLedger):
        claim.complete(memory)
    memory.close()
    claim.close()

    assert other.rows("select * from duly_run") == []
    assert bank.completed == 0


def test_a_ledger_in_memory_is_as_good_for_once(bank: Bank) -> None:
    memory = sqlite3.connect(":memory:")
    with bank.connected() as connection:
        connection.backup(memory)

    assert duly.once(memory, KEY)
    assert not duly.once(memory, KEY)

    memory.close()


def test_a_ledger_in_memory_leaves_no_file_behind(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.job("credit")
    running(bank)
    bank.lapse()
    memory = sqlite3.connect(":memory:")
    with bank.connected() as connection:
        connection.backup(memory)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    assert duly.once(memory, KEY)

    memory.close()
    assert list(Path().iterdir()) == []


def test_a_link_to_the_ledger_is_the_ledger(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(bank.path)
    claim = bank.ledger.take(KEY)
    assert isinstance(claim, duly.Claim)

    connection = sqlite3.connect(tmp_path / "link.db")
    claim.complete(connection)
    connection.commit()
    connection.close()
    claim.close()

    assert bank.completed == 1


# -- in each other's way ------------------------------------------------------------------------------------------------


def test_a_transaction_that_has_read_and_lost_its_snapshot_is_a_conflict_with_advice(bank: Bank) -> None:
    with bank.connected(isolation_level=None) as connection:
        connection.execute("begin")
        connection.execute("select units from balance").fetchall()
        bank.amend("insert into export values ('meanwhile')")

        with pytest.raises(duly.Conflict, match="BEGIN IMMEDIATE") as caught:
            credit(connection)
        connection.execute("rollback")

    assert not isinstance(caught.value, duly.Refused)
    assert (bank.units, bank.completed) == (0, 0)


def test_a_transaction_that_has_read_and_kept_its_snapshot_may_go_on(bank: Bank) -> None:
    with bank.connected(isolation_level=None) as connection:
        connection.execute("begin")
        connection.execute("select units from balance").fetchall()
        assert credit(connection)
        connection.execute("commit")

    assert (bank.units, bank.completed) == (10, 1)


def test_a_database_that_others_write_is_busy_and_never_a_duplicate(bank: Bank) -> None:
    with bank.connected() as holder, bank.connected(timeout=0) as connection:
        holder.execute("begin immediate")

        with pytest.raises(duly.LedgerBusy):
            duly.once(connection, KEY)

        holder.rollback()
        assert duly.once(connection, KEY)


def test_a_rival_waits_for_the_first_and_then_is_the_duplicate(bank: Bank) -> None:
    script = """
connection = sqlite3.connect(path, timeout=30)
stop("ready")
applied = duly.once(connection, "credit:2026-09-13[UTC]")
connection.commit()
connection.close()
ledger.close()
print(applied)
"""
    rival = Worker(bank, script)
    rival.reaches("ready")
    with bank.connected() as connection:
        assert credit(connection)
        rival.go_on()
        connection.commit()

    assert rival.ends() == "False"
    assert (bank.units, bank.completed) == (10, 1)


def test_an_attempt_taken_over_by_it_is_closed_with_what_it_was(bank: Bank) -> None:
    bank.job("credit")
    lost = bank.take("2026-09-13", job="credit")
    assert isinstance(lost, Claim)
    bank.lapse()

    with bank.connected() as connection, connection:
        duly.once(connection, KEY)

    assert bank.rows("select number, started_at, owner, error from duly_attempt order by number")[0] == (
        1,
        lost.started_at,
        lost.owner,
        "vanished",
    )


def test_importing_duly_is_light(bank: Bank) -> None:
    heavy = "import sys, duly; print([m for m in ('sqlite3', 'zoneinfo', 'cronsim', 'json') if m in sys.modules])"

    said = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"


def test_of_a_paused_job_nothing_is_done_and_the_transaction_stays_whole(bank: Bank) -> None:
    bank.job("credit")
    bank.pause("credit")

    with bank.connected() as connection:
        connection.execute("update balance set units = units + 1")
        with pytest.raises(duly.RunPaused):
            duly.once(connection, KEY)
        assert connection.in_transaction
        connection.rollback()

    bank.resume("credit")
    with bank.connected() as connection, connection:
        assert duly.once(connection, KEY)
