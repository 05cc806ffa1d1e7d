"""Explore: which histories of a race are told.

All, for two actors: at each point the other might go on instead, and each such turn is told. Of histories that differ only in
the order of points that are independent (two looks; a look and a write that is not committed) one is told: nobody, and no
row, can tell them apart. (Known as sleep sets: P. Godefroid, "Partial-Order Methods for the Verification of Concurrent
Systems", 1996.) With three actors, or with faults, a seeded sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeVar

from duly.testing.histories.invariants import INVARIANTS, Invariant
from duly.testing.histories.play import CLOCK, Actor, Choice, History, Moment, Race, choices_text, parse_choices, play
from duly.testing.histories.points import Commit, Rollback, independent
from duly.testing.histories.stage import Stage

T = TypeVar("T")

FAULT, JUMP, TURN = 0.06, 0.03, 0.4  # how often, at a step of a sample


class HistoryFailed(AssertionError):
    """A history broke an invariant; its story says how, and how it is told again."""


def check(history: History, invariants: Iterable[Invariant] = INVARIANTS, *, again: str = "") -> History:
    """Raise `HistoryFailed`, with the story, where an invariant is broken. `again`: the command that replays choices."""
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
    to_tell: list[_Turn] = [_Turn([], frozenset())]
    while to_tell:
        history = play(race, stage, made, _Depth(to_tell.pop(), to_tell, reduced=reduced, alike=alike))
        if history is not None:
            yield history


class _Turn:
    """Choices to begin with, and who need not go on after them: what it would do there has been told elsewhere."""

    def __init__(self, choices: list[Choice], asleep: frozenset[str]) -> None:
        self.choices = choices
        self.asleep = asleep


class _Depth:
    """Follow a turn, then go on with whoever went last; leave each other turn to be told later."""

    def __init__(self, turn: _Turn, to_tell: list[_Turn], *, reduced: bool, alike: bool) -> None:
        self._begin = turn.choices
        self._asleep = turn.asleep
        self._to_tell = to_tell
        self._reduced = reduced
        self._alike = alike

    def __call__(self, moment: Moment) -> Choice | None:
        place = len(moment.choices)
        if place < len(self._begin):
            return self._begin[place]
        awake = [a for a in moment.ready if a.name not in self._asleep and not self._is_mirrored(a, moment)]
        turns = sorted(awake, key=lambda a: a.name != moment.last)
        if not turns:
            return None
        asleep, follow = self._asleep, frozenset[str]()
        for number, actor in enumerate(turns):
            still = frozenset(name for name in asleep if self._sleeps_on(name, actor, moment.actors))
            if number == 0:
                follow = still
            else:
                self._to_tell.append(_Turn([*moment.choices, Choice(actor.name)], still))
            asleep |= {actor.name}
        self._asleep = follow
        return Choice(turns[0].name)

    def _is_mirrored(self, actor: Actor, moment: Moment) -> bool:
        """Whether this step is told with the names of two actors exchanged."""
        ends = isinstance(actor.point, Commit | Rollback)
        return self._alike and not moment.transactions and ends and actor.name != "a"

    def _sleeps_on(self, name: str, actor: Actor, actors: list[Actor]) -> bool:
        if not self._reduced:
            return False
        sleeper = next(a for a in actors if a.name == name)
        return sleeper.point is not None and independent(sleeper.footprint, actor.footprint)


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
