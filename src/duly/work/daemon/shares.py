"""Shares: which of the lines that are ripe is worked next, and how many at once.

Live work comes first: lines of which one run waits. Lines that are behind, after downtime, come next, and never take all the
places, so that a run that comes due meanwhile finds one. They have a share all the same: every fourth place that is given
goes to one of them, so that a daemon that is always busy catches up in time (scenarios 52 and 53).
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TypeVar

from duly.ledger.ripe import Ripe
from duly.records import replace

T = TypeVar("T")
Line = tuple[str, str]  # job and scope

_EVERY_FOURTH = 4


class Shares:
    """The lines that wait for a place, and those that have one. Knows nothing of threads, processes or clocks.

    At most `places` runs at once, `per_job` of them of one job, and one of a line whose runs may not overlap.
    """

    def __init__(self, places: int, per_job: int) -> None:
        self.places = places
        self._per_job = per_job
        self._live: deque[Ripe] = deque()
        self._behind: deque[Ripe] = deque()
        self._lines: Counter[Line] = Counter()
        self._jobs: Counter[str] = Counter()
        self._catching_up: Counter[Line] = Counter()
        self._given = 0

    @property
    def working(self) -> int:
        """How many have a place."""
        return self._lines.total()

    @property
    def waiting(self) -> int:
        """How many lines wait for a place."""
        return len(self._live) + len(self._behind)

    def replace(self, ripe: list[Ripe]) -> None:
        """Begin anew with what a look at the ledger has found, in its order. A line that is in hand asks again by itself."""
        free = [one for one in ripe if one.overlap or line_of(one) not in self._lines]
        self._live = deque(one for one in free if one.waiting <= 1)
        self._behind = deque(one for one in free if one.waiting > 1)

    def next(self) -> Ripe | None:
        """The next line to work, which has a place from now on; None while there is none that may."""
        if self.working >= self.places:
            return None
        turns = [self._live, self._behind]
        if (self._given + 1) % _EVERY_FOURTH == 0:
            turns.reverse()
        for queue in turns:
            if queue is self._behind and not self._may_catch_up():
                continue
            found = next((one for one in queue if self._may(one)), None)
            if found is not None:
                queue.remove(found)
                return self._placed(found, is_behind=queue is self._behind)
        return None

    def done(self, ripe: Ripe, *, worked: int) -> None:
        """A line has given its place back, with so many of its runs worked. Has it more, it waits for the next place, after
        the others.
        """
        line = line_of(ripe)
        _take_from(self._lines, line)
        _take_from(self._jobs, ripe.job)
        _take_from(self._catching_up, line)
        if worked and ripe.waiting > worked and not ripe.overlap:
            self._behind.append(replace(ripe, waiting=ripe.waiting - worked))

    def _placed(self, ripe: Ripe, *, is_behind: bool) -> Ripe:
        line = line_of(ripe)
        self._given += 1
        self._lines[line] += 1
        self._jobs[ripe.job] += 1
        if is_behind:
            self._catching_up[line] += 1
            if ripe.overlap and ripe.waiting > 1:  # the next of its runs need not wait for this one
                self._behind.append(replace(ripe, waiting=ripe.waiting - 1))
        return ripe

    def _may(self, ripe: Ripe) -> bool:
        is_free = ripe.overlap or line_of(ripe) not in self._lines
        return bool(is_free) and self._jobs[ripe.job] < self._per_job

    def _may_catch_up(self) -> bool:
        spared = max(1, self.places // _EVERY_FOURTH) if self.places > 1 else 0
        return self._catching_up.total() < self.places - spared


def line_of(ripe: Ripe) -> Line:
    """The line that is ripe."""
    return ripe.job, ripe.scope


def _take_from(counter: Counter[T], key: T) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]
