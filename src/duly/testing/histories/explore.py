"""Explore: which histories of a race are told.

All, for two actors. Of histories that differ only in the order of steps that are independent (two looks; a look, and a write
that is not committed) one is told: nobody, and no row, can tell them apart. Where a step turns out to depend on an earlier
one of another actor, the turn is told, too, in which that one comes later. (Dynamic partial-order reduction: C. Flanagan and
P. Godefroid, POPL 2005; who need not go on is a sleep set: P. Godefroid, LNCS 1032, 1996.) With three actors, or with faults, a
seeded sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeVar

from duly.testing.histories.invariants import INVARIANTS, Invariant
from duly.testing.histories.play import CLOCK, Actor, Choice, History, Moment, Race, choices_text, parse_choices, play
from duly.testing.histories.points import Commit, Footprint, Rollback, independent
from duly.testing.histories.stage import Stage

T = TypeVar("T")

FAULT, JUMP, TURN = 0.06, 0.03, 0.4  # how often, at a step of a sample


class HistoryFailed(AssertionError):
    """A history broke an invariant; its story says how, and how it is told again."""


def check(history: History, invariants: Iterable[Invariant] = INVARIANTS, *, again: str = "") -> History:
    """Raise `HistoryFailed`, with the story, where an invariant is broken. `again`: the command that replays choices."""
    __tracebackhide__ = True  # pytest: the story is enough
    broken = [f"broken: {each.__name__}: {complaint}" for each in invariants for complaint in each(history)]
    if broken:
        command = (
            f"again: {again} {choices_text(history.choices)}" if again else f"again: {choices_text(history.choices)}"
        )
        raise HistoryFailed("\n".join(["", history.story(), "      --", *broken, command]))
    return history


def every_history(race: Race[T], stage: Stage, *, reduced: bool = True) -> Iterator[History]:
    """All histories of a race without faults; with `reduced` one for each order that can be told from the others.

    Where all actors do the same, the first whose transaction ends is called a.
    """
    alike = reduced and all(act is race.actors[0] for act in race.actors)
    made = stage.prepare(race.given)
    walk = _Walk(reduced=reduced, alike=alike)
    while True:
        history = play(race, stage, made, walk)
        if history is not None:
            yield history
        if not walk.turns():
            return


class _Fork:
    """Who could go on at a step of the walk, who went, and whose turn is still to be told."""

    def __init__(self, feet: dict[str, Footprint], asleep: frozenset[str]) -> None:
        self.feet = feet
        self.asleep = asleep  # what these would do here has been told elsewhere
        self.wanted: set[str] = set()
        self.went = ""
        self.before = 0  # a bit for each step of the walk that this one comes after, whatever the order

    @property
    def left(self) -> list[str]:
        return sorted(self.wanted - self.asleep - {self.went})

    def go(self, name: str) -> None:
        if self.went:
            self.asleep |= {self.went}
        self.went = name

    @property
    def foot(self) -> Footprint:
        return self.feet[self.went]


class _Walk:
    """Goes down a history, each actor as far as it can, and comes back to the last fork where a turn is left."""

    def __init__(self, *, reduced: bool, alike: bool) -> None:
        self._path: list[_Fork] = []
        self._reduced = reduced
        self._alike = alike

    def turns(self) -> bool:
        """Turn at the last fork where somebody is left; False: all has been told."""
        while self._path and not self._path[-1].left:
            self._path.pop()
        if not self._path:
            return False
        fork = self._path[-1]
        fork.go(fork.left[0])
        self._order(len(self._path) - 1)
        return True

    def __call__(self, moment: Moment) -> Choice | None:
        place = len(moment.choices)
        if place == len(self._path):
            fork = self._fork(moment)
            self._look_for_races(fork)
            awake = [name for name in fork.feet if name not in fork.asleep]
            if not awake:
                return None
            first = moment.last if moment.last in awake else awake[0]
            fork.wanted |= {first} if self._reduced and not moment.stage.one_writer else set(awake)
            fork.go(first)
            self._path.append(fork)
            self._order(place)
        return Choice(self._path[place].went)

    def _fork(self, moment: Moment) -> _Fork:
        feet = {actor.name: actor.footprint for actor in moment.ready if not self._is_mirrored(actor, moment)}
        return _Fork(feet, self._asleep())

    def _asleep(self) -> frozenset[str]:
        """Whose next step is still the one that was told elsewhere: the last step changed nothing for them."""
        if not self._path or not self._reduced:
            return frozenset()
        last = self._path[-1]
        return frozenset(n for n in last.asleep if n not in last.feet or independent(last.feet[n], last.foot))

    def _is_mirrored(self, actor: Actor, moment: Moment) -> bool:
        """Whether this step is told with the names of two actors exchanged."""
        ends = isinstance(actor.point, Commit | Rollback)
        return self._alike and not moment.transactions and ends and actor.name != "a"

    def _order(self, place: int) -> None:
        """Which earlier steps the step at a place comes after, in every order that can be told from this one."""
        step, before = self._path[place], 0
        for number, earlier in enumerate(self._path[:place]):
            if earlier.went == step.went or not independent(earlier.foot, step.foot):
                before |= earlier.before | 1 << number
        step.before = before

    def _look_for_races(self, fork: _Fork) -> None:
        """Want the turn of each actor at the last step of another that its next one depends on."""
        for name, foot in fork.feet.items():
            own = next((n for n in reversed(range(len(self._path))) if self._path[n].went == name), None)
            after = 0 if own is None else self._path[own].before | 1 << own
            for number in reversed(range(len(self._path))):
                earlier = self._path[number]
                if not after >> number & 1 and earlier.went != name and not independent(earlier.foot, foot):
                    earlier.wanted |= {name} if name in earlier.feet else set(earlier.feet)
                    break


def some_histories(
    race: Race[T], stage: Stage, seeds: Iterable[int], *, faults: int = 2
) -> Iterator[tuple[int, History]]:
    """One history for each seed, with so many faults at most and now and then a jump of the clock."""
    made = stage.prepare(race.given)
    for seed in seeds:
        random = Random(f"{race.name} {seed}")  # noqa: S311  chance, no secret
        history = play(race, stage, made, _Sample(random, faults))
        assert history is not None  # it gives up nothing
        yield seed, history


class _Sample:
    def __init__(self, random: Random, faults: int) -> None:
        self._random = random
        self._faults = faults

    def __call__(self, moment: Moment) -> Choice:
        if self._faults and moment.clock_may_jump and self._random.random() < JUMP:
            return Choice("", CLOCK)
        actor = self._pick(moment)
        if self._faults and (actor.waits or self._random.random() < FAULT):
            self._faults -= 1
            return Choice(actor.name, self._random.choice(moment.faults_at(actor)))
        return Choice(actor.name)

    def _pick(self, moment: Moment) -> Actor:
        ready = moment.ready
        if self._faults and moment.waiting and self._random.random() < FAULT:
            return self._random.choice(moment.waiting)
        same = [actor for actor in ready if actor.name == moment.last]
        return same[0] if same and self._random.random() > TURN else self._random.choice(ready)


def replay(race: Race[T], stage: Stage, choices: str) -> History:
    """Tell a history again by its choices. Where they end before it does, whoever went last goes on."""
    given = parse_choices(choices)

    def choose(moment: Moment) -> Choice:
        if len(moment.choices) < len(given):
            return given[len(moment.choices)]
        return Choice(next((a for a in moment.ready if a.name == moment.last), moment.ready[0]).name)

    history = play(race, stage, stage.prepare(race.given), choose)
    assert history is not None
    return history
