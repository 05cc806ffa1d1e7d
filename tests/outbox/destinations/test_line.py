"""Deadlines: what cuts a line off, and what leaves it alone."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from time import monotonic

from duly.outbox.destinations.line import Deadline, Watch

LATE = 20.0


def test_alarms_ring_when_it_is_their_time_whatever_was_set_first() -> None:
    watch, rung, done = Watch(), list[str](), threading.Event()
    now = monotonic()

    watch.set(now + 0.2, done.set)
    watch.set(now + 0.1, lambda: rung.append("second"))
    watch.set(now, lambda: rung.append("first"))

    assert done.wait(LATE)
    assert rung == ["first", "second"]


def test_one_that_was_turned_off_does_not_ring() -> None:
    watch, rung, done = Watch(), list[str](), threading.Event()
    now = monotonic()

    off = watch.set(now + 0.05, lambda: rung.append("off"))
    off.off()
    watch.set(now + 0.1, done.set)

    assert done.wait(LATE)
    assert rung == []


def test_when_an_alarm_is_off_nothing_of_it_is_being_done() -> None:
    watch, begun, may_end, ended = Watch(), threading.Event(), threading.Event(), list[bool]()

    def do() -> None:
        begun.set()
        may_end.wait(LATE)
        ended.append(True)

    alarm = watch.set(monotonic(), do)
    assert begun.wait(LATE)
    threading.Timer(0.05, may_end.set).start()
    alarm.off()

    assert ended == [True]


def test_a_line_that_is_used_again_is_not_cut_off_by_the_deadline_of_before() -> None:
    here, there = socket.socketpair()
    with here, there:
        soon = Deadline(0.05)
        with soon.over(lambda: here):
            pass
        with Deadline(0.3).over(lambda: here):
            heard = here.recv(1)  # until the second deadline

    assert heard == b""
    assert not soon.passed
    assert soon.is_over


def test_a_child_of_a_fork_has_deadlines_too() -> None:
    told = """
import os, threading
from time import monotonic
from duly.outbox.destinations import line
line._watch.set(monotonic() + 60, print)
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
rung = threading.Event()
line._watch.set(monotonic(), rung.set)
os._exit(0 if rung.wait(20) else 3)
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", told], check=False, timeout=60).returncode == 0
