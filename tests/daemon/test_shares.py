"""Shares: who is worked next, and how many at once. No ledger, no thread, no clock."""

from __future__ import annotations

from duly.ledger.ripe import Ripe
from duly.work.daemon.shares import Shares


def live(job: str, scope: str = "") -> Ripe:
    return Ripe(job, scope, 0, 1, 0)


def behind(job: str, windows: int, *, overlap: int = 0) -> Ripe:
    return Ripe(job, "", overlap, windows, 0)


def given(shares: Shares) -> list[str]:
    """Everything that is given a place now."""
    names = []
    while (ripe := shares.next()) is not None:
        names.append(ripe.job)
    return names


def test_no_more_than_the_places_are_given_and_one_that_comes_free_is_given_again() -> None:
    shares = Shares(places=2, per_job=2)
    shares.replace([live("a"), live("b"), live("c")])

    assert given(shares) == ["a", "b"]
    shares.done(live("a"), worked=1)
    assert given(shares) == ["c"]
    assert shares.working == 2


def test_of_one_job_no_more_than_its_share_are_worked_and_others_pass_it() -> None:
    shares = Shares(places=4, per_job=2)
    shares.replace([live("a", "1"), live("a", "2"), live("a", "3"), live("b")])

    assert given(shares) == ["a", "a", "b"]


def test_a_line_is_worked_once_at_a_time_unless_its_runs_may_overlap() -> None:
    shares = Shares(places=8, per_job=8)
    shares.replace([behind("one", 5), behind("many", 5, overlap=1)])

    assert sorted(given(shares)) == ["many"] * 5 + ["one"]


def test_what_is_in_hand_is_not_given_again_by_a_later_look() -> None:
    shares = Shares(places=4, per_job=4)
    shares.replace([live("a")])
    assert given(shares) == ["a"]

    shares.replace([live("a"), live("b")])

    assert given(shares) == ["b"]


def test_live_work_passes_what_is_behind() -> None:
    shares = Shares(places=4, per_job=4)
    shares.replace([behind("old", 100), live("new")])

    assert given(shares) == ["new", "old"]


def test_what_is_behind_leaves_places_for_what_comes_due() -> None:
    shares = Shares(places=4, per_job=4)
    shares.replace([behind(name, 100) for name in "abcdef"])
    assert given(shares) == ["a", "b", "c"]

    shares.replace([live("new"), *(behind(name, 100) for name in "def")])

    assert given(shares) == ["new"]


def test_a_daemon_with_one_place_catches_up_too() -> None:
    shares = Shares(places=1, per_job=1)
    shares.replace([behind("old", 3)])

    assert given(shares) == ["old"]


def test_what_is_behind_is_not_starved_by_live_work_without_end() -> None:
    shares = Shares(places=1, per_job=1)
    worked: list[str] = []
    for turn in range(40):
        shares.replace([live(f"live-{turn}"), behind("old", 100)])
        ripe = shares.next()
        assert ripe is not None
        worked.append(ripe.job)
        shares.done(ripe, worked=0)

    assert worked.count("old") == 10


def test_a_line_that_has_more_waits_behind_the_others() -> None:
    shares = Shares(places=2, per_job=2)
    shares.replace([behind("a", 2), behind("b", 2)])
    assert given(shares) == ["a"]

    shares.done(behind("a", 2), worked=1)

    assert given(shares) == ["b"]
    shares.done(behind("b", 2), worked=0)
    assert given(shares) == ["a"]
