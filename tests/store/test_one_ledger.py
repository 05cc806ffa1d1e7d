"""One ledger is one ledger: by whatever name it is reached, and for exactly those who may write it."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import duly
from duly.errors import NoLedger
from duly.store.lock import WriterLock
from duly.testing.clock import HandClock


def test_a_link_to_a_ledger_has_the_ledgers_own_locks(tmp_path: Path) -> None:
    clock = HandClock(str(tmp_path / "real.db"), at="2026-10-06T03:00:00Z")
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    claim = duly.sqlite(tmp_path / "link.db").take("close:2026-10-05[UTC]")
    assert claim
    clock.advance("1d")  # its lease is over, its process alive

    assert isinstance(duly.sqlite(tmp_path / "real.db").take("close:2026-10-05[UTC]"), duly.Busy)
    assert sorted(path.name for path in tmp_path.glob("*-lock")) == ["real.db-lock"]


def test_a_ledger_that_is_only_attached_is_none(tmp_path: Path) -> None:
    duly.sqlite(tmp_path / "ledger.db")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("attach ? as other", (str(tmp_path / "ledger.db"),))

        with pytest.raises(NoLedger):
            duly.once(connection, "close:2026-10-05[UTC]")


@pytest.mark.parametrize(("mode", "lock"), [(0o600, 0o600), (0o640, 0o600), (0o660, 0o660), (0o644, 0o600)])
def test_the_lock_is_for_those_who_may_write_the_ledger(tmp_path: Path, mode: int, lock: int) -> None:
    path = tmp_path / "jobs.db"
    path.touch()
    path.chmod(mode)

    duly.sqlite(path)

    assert stat.S_IMODE(os.stat(f"{path}-lock").st_mode) == lock


def test_an_interrupt_while_waiting_for_the_lock_leaves_it_to_others(tmp_path: Path) -> None:
    held, mine = WriterLock(str(tmp_path / "jobs.db")), WriterLock(str(tmp_path / "jobs.db"))
    assert held.acquire(1)
    program = (
        "import os, sys\n"
        "from duly.store.lock import WriterLock\n"
        "lock = WriterLock(sys.argv[1])\n"
        "print('waiting', flush=True)\n"
        "try:\n"
        "    lock.acquire(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "    sys.stdin.read()\n"  # it lives on
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "jobs.db")], stdin=-1, stdout=-1, text=True
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdin is not None
        assert waiting.stdout.readline() == "waiting\n"
        while "flock" not in "".join(path.read_text() for path in Path(f"/proc/{waiting.pid}/task").glob("*/wchan")):
            if len(list(Path(f"/proc/{waiting.pid}/task").iterdir())) > 1:
                break  # a kernel that does not tell where a thread sleeps: its waiting thread is there
        waiting.send_signal(signal.SIGINT)
        assert waiting.stdout.readline() == "interrupted\n"

        held.release()

        assert mine.acquire(30)
        waiting.stdin.close()
    mine.close()
    held.close()


def test_a_job_in_any_language_completes_its_run_in_its_own_transaction(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    claim = duly.sqlite(path).take("export:2026-10-05[UTC]")
    assert claim
    insert = "insert into duly_complete (attempt_id, attempt) values (?, ?)"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table export (day text)")
        connection.execute("insert into export values ('2026-10-05')")
        connection.execute(insert, (claim.run.attempt_id, str(claim.run.attempt)))
        connection.commit()

        connection.execute("insert into export values ('again')")
        with pytest.raises(sqlite3.IntegrityError, match="nothing was committed"):
            connection.execute(insert, (claim.run.attempt_id, str(claim.run.attempt)))
        connection.commit()

        assert connection.execute("select day from export").fetchall() == [("2026-10-05",)]
        assert connection.execute("select outcome from duly_attempt").fetchall() == [("completed",)]
        assert connection.execute("select state from duly_run").fetchall() == [("completed",)]
