"""The writer lock and the pulses, which share one file beside the ledger. Real processes, stopped and killed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from time import monotonic

import pytest

import duly
from duly.errors import LedgerUnwritable
from duly.store.lock import HAS_PULSE, WriterLock, begin_pulse, has_pulse, holders_of_pulse, lock_path
from duly.store.sqlite import SqliteStore
from duly.work.identity import new_attempt_id
from tests.exec.stage import until
from tests.work.bank import Bank, Worker


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank.db")


# -- the writer lock ----------------------------------------------------------------------------------------------------

HOLDING = """
from duly.store.lock import WriterLock

lock = WriterLock(path)
assert lock.acquire(10)
stop("holding")
lock.release()
stop("let go")
"""


def test_a_stopped_holder_makes_the_ledger_busy_after_the_time_out_and_not_before(bank: Bank) -> None:
    ledger = duly.sqlite(bank.path, busy_seconds=0.2)
    credit = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    holder = Worker(bank, HOLDING)
    holder.reaches("holding")
    os.kill(holder.process.pid, signal.SIGSTOP)
    began = monotonic()

    with pytest.raises(duly.LedgerBusy, match="stayed busy"):
        credit.run("2026-09-13")

    assert 0.2 <= monotonic() - began < 10
    holder.kill()
    assert credit.run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)
    ledger.close()


def test_the_lock_is_had_as_soon_as_its_holder_lets_go(bank: Bank) -> None:
    holder = Worker(bank, HOLDING)
    holder.reaches("holding")
    lock = WriterLock(bank.path)
    assert not lock.acquire(0)
    holder.go_on()

    assert lock.acquire(60)

    lock.release()
    lock.close()
    holder.reaches("let go")
    holder.go_on()
    holder.ends()


@pytest.mark.skipif(not HAS_PULSE, reason="who waits is next by a lock that only Linux has")
def test_nobody_has_two_turns_in_a_row_while_another_waits(bank: Bank) -> None:
    turns: list[str] = []

    def take_turns(name: str) -> None:
        lock = WriterLock(bank.path)
        for _ in range(20):
            assert lock.acquire(60)
            turns.append(name)
            if len(turns) < 40:
                until(lambda: is_waited_for(lock_path(bank.path)), "the other waits")
            lock.release()
        lock.close()

    threads = [threading.Thread(target=take_turns, args=(name,)) for name in ("ana", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert turns in (["ana", "ben"] * 20, ["ben", "ana"] * 20)


WAITING = """
from duly.store.lock import WriterLock

stop("about to wait")
assert WriterLock(path).acquire(60)
"""


@pytest.mark.skipif(not HAS_PULSE, reason="who waits is next by a lock that only Linux has")
def test_one_that_is_next_and_was_stopped_is_passed_by(bank: Bank) -> None:
    holder, following = Worker(bank, HOLDING), Worker(bank, WAITING)
    holder.reaches("holding")
    following.reaches("about to wait")
    following.go_on()
    until(lambda: is_waited_for(lock_path(bank.path)), "the other waits")
    os.kill(following.process.pid, signal.SIGSTOP)
    until(lambda: stands_still(following.process.pid), "it stands still")
    holder.go_on()
    holder.reaches("let go")
    lock, began = WriterLock(bank.path), monotonic()
    seen = []

    for _ in range(4):
        assert lock.acquire(60)
        lock.release()
        seen.append((len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))))

    assert monotonic() - began < 30, "it is not waited for until half of the patience is over"
    assert seen == seen[:1] * 4, "one thread waits to be next, and not one for each turn"
    following.kill()
    until(lambda: lock._next is None or lock._next.is_over, "it is next, and lets go")
    assert lock.acquire(60)
    lock.close()
    holder.go_on()
    holder.ends()


def stands_still(pid: int) -> bool:
    """Whether all threads of a process are stopped; the one that waits hears of it last."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


def is_waited_for(path: str) -> bool:
    """Whether anybody waits for a lock of a file (proc_locks(5))."""
    inode = f":{os.stat(path).st_ino} "
    return any(" -> " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_a_killed_holder_lets_go(bank: Bank) -> None:
    holder = Worker(bank, HOLDING)
    holder.reaches("holding")
    holder.kill()
    lock = WriterLock(bank.path)

    assert lock.acquire(0)

    lock.close()


def test_a_lock_that_comes_too_late_is_let_go_at_once(bank: Bank) -> None:
    holder, late, third = WriterLock(bank.path), WriterLock(bank.path), WriterLock(bank.path)
    assert holder.acquire(0)
    for _ in range(3):
        assert not late.acquire(0.01)

    holder.release()

    assert third.acquire(60)
    for lock in (holder, late, third):
        lock.close()


def test_one_thread_of_many_has_it_at_a_time(bank: Bank) -> None:
    from threading import Thread

    inside: list[int] = []
    seen: list[int] = []

    def write() -> None:
        lock = WriterLock(bank.path)
        for _ in range(20):
            assert lock.acquire(60)
            inside.append(1)
            seen.append(len(inside))
            inside.pop()
            lock.release()
        lock.close()

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [1] * 80


FORKING = """
import os, warnings
from duly.store.lock import WriterLock

lock = WriterLock(path)
assert lock.acquire(10)
if os.fork() == 0:
    stop("the child lives")
    os._exit(0)
os.wait()
"""


def test_a_forked_child_does_not_keep_the_lock_when_its_parent_dies(bank: Bank) -> None:
    parent = Worker(bank, FORKING)
    parent.reaches("the child lives")
    parent.process.kill()
    parent.process.wait()
    lock = WriterLock(bank.path)

    assert lock.acquire(0)

    lock.close()
    parent.kill()  # its child reads the end of our pipe, and ends


# -- pulses -------------------------------------------------------------------------------------------------------------


def test_a_pulse_is_seen_while_its_descriptor_is_open(bank: Bank) -> None:
    mine, other = new_attempt_id(), new_attempt_id()
    pulse = begin_pulse(lock_path(bank.path), mine)

    assert has_pulse(lock_path(bank.path), mine)
    assert not has_pulse(lock_path(bank.path), other)
    assert holders_of_pulse(lock_path(bank.path), mine) == [os.getpid()]

    os.close(pulse)
    assert not has_pulse(lock_path(bank.path), mine)


def test_pulses_and_the_writer_lock_do_not_touch_each_other(bank: Bank) -> None:
    attempts = [new_attempt_id() for _ in range(50)]
    pulses = [begin_pulse(lock_path(bank.path), attempt) for attempt in attempts]
    lock = WriterLock(bank.path)
    assert lock.acquire(0)
    lock.close()

    assert all(has_pulse(lock_path(bank.path), attempt) for attempt in attempts)

    for pulse in pulses:
        os.close(pulse)


PULSING = """
import os
from duly.store.lock import begin_pulse, lock_path

begin_pulse(lock_path(path), bytes.fromhex("ATTEMPT"))
if os.fork() == 0:
    stop("the child lives")
    os._exit(0)
os.wait()
"""


def test_a_pulse_outlives_a_killed_parent_while_its_child_keeps_the_descriptor(bank: Bank) -> None:
    attempt = new_attempt_id()
    parent = Worker(bank, PULSING.replace("ATTEMPT", attempt.hex()))
    parent.reaches("the child lives")
    parent.process.kill()
    parent.process.wait()

    assert has_pulse(lock_path(bank.path), attempt)
    (child,) = holders_of_pulse(lock_path(bank.path), attempt)
    assert child != parent.process.pid

    parent.kill()  # its child reads the end of our pipe, and ends
    assert not has_pulse(lock_path(bank.path), attempt)


def test_a_killed_process_has_no_pulse(bank: Bank) -> None:
    bank.job("charge")
    worker = Worker(bank, 'claim = ledger.take("charge", "2026-09-13")\nstop("holding")\n')
    worker.reaches("holding")
    ((attempt,),) = bank.rows("select attempt_id from duly_run")
    assert has_pulse(lock_path(bank.path), attempt)

    worker.kill()

    assert not has_pulse(lock_path(bank.path), attempt)


def test_a_run_whose_lock_cannot_be_opened_says_so(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    lock = Path(lock_path(store.path))
    lock.unlink(missing_ok=True)
    lock.symlink_to(tmp_path / "elsewhere")  # which no writer follows

    with pytest.raises(LedgerUnwritable):
        store.owned().begin()

    store.close()
