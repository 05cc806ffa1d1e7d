"""Keepers of leases: none waits for another, and a fork waits for all of them."""

from __future__ import annotations

import threading

from duly.work.keeper import _Inside

PATIENCE = 30


def test_one_that_waits_for_its_database_keeps_no_other_out() -> None:
    inside, go_on = _Inside(), threading.Event()

    def waits() -> None:
        with inside:
            go_on.wait(PATIENCE)

    waiting = threading.Thread(target=waits)
    waiting.start()
    while not inside.many:
        pass

    def passes() -> None:
        with inside:
            pass

    other = threading.Thread(target=passes, daemon=True)
    other.start()
    other.join(PATIENCE)

    assert not other.is_alive(), "it waits for a ledger that is none of its business"
    go_on.set()
    waiting.join(PATIENCE)
    assert inside.many == 0


def test_a_fork_waits_for_whoever_is_inside_and_nobody_comes_in_meanwhile() -> None:
    inside = _Inside()
    told: list[str] = []

    def forks() -> None:
        inside.before_fork()
        told.append("forked")
        inside.after_fork()

    def comes() -> None:
        with inside:
            told.append("came in")

    with inside:
        forking = threading.Thread(target=forks)
        forking.start()
        while not inside.is_forking:
            pass
        assert told == []
        late = threading.Thread(target=comes)
        late.start()
    forking.join(PATIENCE)
    late.join(PATIENCE)

    assert told == ["forked", "came in"]
