"""Play: one history of a race, step by step.

A race is what is given and what each actor does. A history is one order of their steps, with what went wrong on the way:
its *choices*, which tell it again. One step takes one actor from one point to the next, or lets it die there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from duly.errors import Conflict, LedgerUnavailable
from duly.ledger.address import key_of
from duly.ledger.ask import Ask
from duly.ledger.messages import Message
from duly.ledger.named import take_key
from duly.ledger.records import Claimer, Run
from duly.ledger.register import Declaration
from duly.ledger.states import UNSETTLED
from duly.records import record
from duly.testing.histories.hand import Hand, Script
from duly.testing.histories.points import (
    ALL_OF_IT,
    NONE,
    NOTHING,
    READ_COMMITTED,
    SERIALIZABLE,
    Begin,
    Commit,
    Footprint,
    Point,
    Rollback,
    Tables,
    Touched,
    Use,
    name_of,
    overlap,
    touched_by,
)
from duly.testing.histories.stage import (
    Ended,
    Seat,
    Seen,
    SeenMessage,
    Stage,
    advance,
    attempts_of,
    effects_of,
    look_at,
    mail_of,
)
from duly.times import MINUTE, SECOND, civil_text

T = TypeVar("T")

CRASH = "crash"  # the actor and its connection are gone before the statement
CRASH_AFTER = "crash-after"  # … after the statement, and before its answer is read
LOST_REPLY = "lost-reply"  # the commit happens, and the actor is told that the connection broke
CANCEL = "cancel"  # the operation is closed where it stands; a statement that waits is cancelled
CLOCK = "clock"  # nobody's step: the clock jumps past every lease

MOST_STEPS = 1_000
PATIENCE = 10.0  # seconds that a deadlock may take to be found


@dataclass(frozen=True)
class Race(Generic[T]):
    """What is given, and what each actor does; the actors are called a, b, c. `past_lease` is how far the clock jumps."""

    name: str
    given: Callable[[Stage], T]
    actors: tuple[Callable[[Hand, T], Script], ...]
    past_lease: int = 2 * MINUTE
    has_mail: bool = False  # messages are looked at, too


@record
class Choice:
    """Which actor makes the next step, and what goes wrong at it. The clock's own step is nobody's."""

    actor: str
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.actor}+{self.fault}" if self.actor and self.fault else self.actor or self.fault


def choices_text(choices: Iterable[Choice]) -> str:
    """Choices as one word, `3a.b+crash.clock.2a`. Pure."""
    runs: list[tuple[str, int]] = []
    for word in map(str, choices):
        times = runs.pop()[1] + 1 if runs and runs[-1][0] == word else 1
        runs.append((word, times))
    return ".".join(word if times == 1 else f"{times}{word}" for word, times in runs)


def parse_choices(text: str) -> list[Choice]:
    """What `choices_text` printed. Raises `ValueError`. Pure."""
    found: list[Choice] = []
    for part in filter(None, text.split(".")):
        match = re.fullmatch(r"(\d*)(?:(clock)|([a-z])(?:\+([\w-]+))?)", part)
        if match is None:
            raise ValueError(f"{part!r} is no choice; write them as 3a.b+crash.clock.2a")
        times, clock, actor, fault = match.groups()
        found += [Choice(actor or "", clock or fault or "")] * int(times or 1)
    return found


class Actor:
    """One script on its way, at its next point."""

    def __init__(self, name: str, script: Script, hand: Hand, seat: Seat, *, one_writer: bool) -> None:
        self.name = name
        self.hand = hand
        self.seat = seat
        self.point: Point | None = None
        self.waits = False  # its statement is under way, and another actor's lock keeps it
        self.fate = ""
        self.answer: object = None
        self.error: Exception | None = None
        self._script = script
        self._one_writer = one_writer
        self._isolation = READ_COMMITTED
        self._changes = self._locks = NONE
        self._statements = 0
        self.resume(None, None)

    @property
    def is_ready(self) -> bool:
        return self.point is not None and not self.waits

    def resume(self, reply: object, error: Exception | None) -> None:
        """Give the script the answer that it waited for, and let it go on to its next point, or its end."""
        self._note_touched()
        try:
            point = self._script.send(reply) if error is None else self._script.throw(error)
        except StopIteration as end:
            self._end("ended")
            self.answer = end.value
        except Exception as e:
            self._end(f"raised {type(e).__name__}")
            self.error = e
        else:
            if not isinstance(point, (Ask, Begin, Commit, Rollback, Use)):
                raise TypeError(f"the script of {self.name} awaited {point!r}; it may await only what its hand offers")
            self.point = point

    def _note_touched(self) -> None:
        match self.point:
            case Begin(isolation=isolation):
                self._isolation, self._changes, self._locks, self._statements = isolation, NONE, NONE, 0
            case Ask() | Use():
                touched = touched_by(self.point)
                self._changes |= touched.changes
                self._locks |= touched.locks
                self._statements += 1

    @property
    def holds(self) -> Tables:
        """The tables in which its transaction may keep others waiting."""
        return self._locks if self.seat.in_transaction else NONE

    def die(self, fate: str) -> None:
        """Close the script where it stands: nothing of it runs any more."""
        self._script.close()
        self._end(fate)

    def _end(self, fate: str) -> None:
        self.point, self.waits, self.fate = None, False, fate

    @property
    def footprint(self) -> Footprint:
        """What its next step touches."""
        match self.point:
            case Begin() if self._one_writer:
                return Footprint(ALL_OF_IT)
            case Commit() | Rollback():
                return Footprint(NOTHING, shows=self._changes, isolation=self._isolation)
            case point if self._isolation == READ_COMMITTED:
                return Footprint(touched_by(point))
            case point:
                return Footprint(self._in_snapshot(touched_by(point)), isolation=self._isolation)

    def _in_snapshot(self, touched: Touched) -> Touched:
        """Above READ COMMITTED the first statement decides what all that follow see; these may only fail or wait."""
        if not self._statements:
            return Touched(ALL_OF_IT.changes, touched.changes, touched.locks)
        return touched if self._isolation == SERIALIZABLE else Touched(NONE, touched.changes, touched.locks)


@dataclass
class Moment:
    """Where a history stands, for whoever chooses what comes next."""

    actors: list[Actor]
    choices: list[Choice]
    stage: Stage
    transactions: int = 0  # that have ended

    @property
    def ready(self) -> list[Actor]:
        """Those that can make a step. Where a transaction excludes every other, whoever is in one goes on."""
        ready = [actor for actor in self.actors if actor.is_ready]
        if self.stage.one_writer:
            return [actor for actor in ready if actor.seat.in_transaction] or ready
        return ready

    @property
    def waiting(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.waits]

    @property
    def last(self) -> str:
        """Who made the last step."""
        return self.choices[-1].actor if self.choices else ""

    def faults_at(self, actor: Actor) -> list[str]:
        """What may go wrong at an actor's next step."""
        if actor.waits:
            return [CRASH, CANCEL]
        if isinstance(actor.point, Begin):
            return [CRASH]
        if not actor.seat.in_transaction:
            return [CRASH, CANCEL]
        lost = [LOST_REPLY] if isinstance(actor.point, Commit) else []
        return [CRASH, CRASH_AFTER, CANCEL, *lost, *self.stage.sqlstates]

    @property
    def clock_may_jump(self) -> bool:
        return not (self.stage.one_writer and any(actor.seat.in_transaction for actor in self.actors))


Chooser = Callable[[Moment], Choice | None]


@record
class Line:
    """One line of a story."""

    actor: str
    what: str
    answer: str


@dataclass
class History:
    """What happened: the steps, what was committed after each of them, and how it ended."""

    race: str
    stage: str
    actors: list[Actor]
    choices: list[Choice] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    sights: list[list[Seen]] = field(default_factory=list)  # the runs after each commit; the first: what was given
    mail: list[list[SeenMessage]] = field(default_factory=list)  # the messages then, of a race that has some
    errors: list[Exception] = field(default_factory=list)  # that the database raised, injected ones apart
    attempts: list[Ended] = field(default_factory=list)
    effects: list[bytes] = field(default_factory=list)
    left: list[Seen] = field(default_factory=list)  # the runs when all actors had ended
    afterwards: list[tuple[Run, object]] = field(default_factory=list)  # what a fresh take of an unsettled run was told

    @property
    def told(self) -> list[object]:
        """All that the ledger answered, to whomever."""
        return [answer for actor in self.actors for answer in actor.hand.told]

    @property
    def _last_mail(self) -> list[Message]:
        return [seen.message for seen in self.mail[-1]] if self.mail else []

    def story(self) -> str:
        """The history in numbered lines, what each actor came to, and the rows that are left."""
        steps = [f"{n:4}  {line.actor:2} {line.what:32} {line.answer}" for n, line in enumerate(self.lines, 1)]
        ends = [f"      {a.name}  {a.fate}: {_short(a.error or a.answer)}" for a in self.actors]
        rows = [f"      {_run_text(seen.run)}" for seen in self.left]
        after = [f"      taken afresh: {_run_text(run)}: {_short(answer)}" for run, answer in self.afterwards]
        rows += [
            f"      attempt {e.attempt.number} {_id(e.attempt.attempt_id)}: {e.attempt.outcome}" for e in self.attempts
        ]
        rows += [f"      message {m.name} {m.state}, fence {m.fence}" for m in self._last_mail]
        rows += [f"      effect of {_id(attempt_id)}" for attempt_id in self.effects]
        head = f"{self.race} on {self.stage}: {choices_text(self.choices)}"
        return "\n".join([head, *steps, "      --", *ends, "      --", *rows, *after])


def play(race: Race[T], stage: Stage, made: T, choose: Chooser) -> History | None:
    """Tell one history of a race, from what `stage.prepare(race.given)` made. None: the chooser gave it up."""
    stage.restore()
    return _Play(race, stage, made).run(choose)


class _Play(Generic[T]):
    def __init__(self, race: Race[T], stage: Stage, made: T) -> None:
        self._race = race
        self._stage = stage
        actors = []
        for name, act in zip("abcdefgh", race.actors, strict=False):
            hand = Hand(name)
            actors.append(Actor(name, act(hand, made), hand, stage.seat(name), one_writer=stage.one_writer))
        self._history = History(race.name, stage.name, actors)
        self._moment = Moment(actors, self._history.choices, stage)
        self._history.sights.append(look_at(stage))

    def _look(self) -> None:
        """What is committed now."""
        self._history.sights.append(look_at(self._stage))
        if self._race.has_mail:
            self._history.mail.append(mail_of(self._stage))

    def run(self, choose: Chooser) -> History | None:
        moment = self._moment
        try:
            while any(actor.point is not None for actor in moment.actors):
                if not moment.ready:
                    self._await_deadlock()
                    continue
                choice = choose(moment)
                if choice is None:
                    return None
                self._step(choice)
                if len(moment.choices) > MOST_STEPS:
                    raise RuntimeError(f"this history has no end:\n{self._history.story()}")
        finally:
            for actor in moment.actors:
                if actor.point is not None:
                    actor.die("left")
                actor.seat.rollback()
        self._finish()
        return self._history

    def _step(self, choice: Choice) -> None:
        self._history.choices.append(choice)
        if choice.fault == CLOCK:
            self._jump()
            return
        actor = next((a for a in self._moment.actors if a.name == choice.actor and a.point is not None), None)
        if actor is None or (actor.waits and choice.fault not in (CRASH, CANCEL)):
            raise ValueError(f"{choice} cannot be chosen here:\n{self._history.story()}")
        match choice.fault:
            case "":
                self._go(actor)
            case "crash" | "crash-after" | "lost-reply" | "cancel" as fault:
                self._break(actor, fault)
            case sqlstate:
                self._note(actor, f"{_name(actor)}", f"fails with {sqlstate}")
                actor.resume(None, actor.seat.fail(sqlstate))
        self._settle()

    def _go(self, actor: Actor) -> None:
        self._start(actor)
        if actor.seat.is_over():
            self._receive(actor)
        else:
            actor.waits = True
            self._note(actor, _name(actor), "waits for a lock")

    def _start(self, actor: Actor) -> None:
        assert actor.point is not None
        others = [other.holds for other in self._moment.actors if other is not actor]
        locks = touched_by(actor.point).locks
        actor.seat.start(actor.point, alone=not any(overlap(locks, held) for held in others))

    def _receive(self, actor: Actor) -> None:
        """Let an actor have the outcome of its statement."""
        point, what = actor.point, ("… " if actor.waits else "") + _name(actor)
        reply, error = actor.seat.outcome()
        actor.waits = False
        if error is not None:
            self._history.errors.append(error)
        self._note(actor, what, _told(point, reply) if error is None else f"✗ {_short(error)}")
        self._moment.transactions += isinstance(point, Commit | Rollback)
        if isinstance(point, Commit) and error is None:
            self._look()
        actor.resume(reply, error)

    def _break(self, actor: Actor, fault: str) -> None:
        what, waited = _name(actor), actor.waits
        if fault == CANCEL and waited:
            self._note(actor, what, "is cancelled")
            actor.seat.cancel()
            return
        if fault in (CRASH_AFTER, LOST_REPLY):
            self._start(actor)
            actor.seat.is_over()
        if fault == CANCEL:
            actor.die("cancelled")
            actor.seat.rollback()
        else:
            actor.seat.crash()
        self._note(actor, what, fault)
        if isinstance(actor.point, Commit) and fault in (CRASH_AFTER, LOST_REPLY):
            self._look()
        if fault == LOST_REPLY:
            actor.resume(None, LedgerUnavailable("the connection broke while the transaction was being committed"))
        elif fault != CANCEL:
            actor.die("crashed")

    def _settle(self) -> None:
        """Let everybody go on whose lock is free now. Whoever fails by that may free others."""
        while freed := [actor for actor in self._moment.waiting if actor.seat.is_over()]:
            for actor in freed:
                self._receive(actor)

    def _await_deadlock(self) -> None:
        """Everybody waits for another: the database finds that out and lets one fail."""
        deadline = monotonic() + PATIENCE
        while not self._moment.ready and self._moment.waiting:
            if monotonic() > deadline:
                raise RuntimeError(f"all wait, and none for another actor:\n{self._history.story()}")
            self._settle()
            sleep(0.001)

    def _jump(self) -> None:
        advance(self._stage, self._race.past_lease)
        self._history.lines.append(Line("", "the clock jumps past every lease", ""))
        self._look()

    def _finish(self) -> None:
        """Look at what is left, then let the leases pass and a fresh attempt try each run that is not settled."""
        history = self._history
        history.left, history.effects = history.sights[-1], effects_of(self._stage)
        for number, seen in enumerate(history.left, 1):
            if seen.run.state in UNSETTLED:
                advance(self._stage, self._race.past_lease)
                answer = self._stage.write(_take_afresh(seen.run, number))
                history.afterwards.append((seen.run, answer))
                self._look()
        history.attempts = attempts_of(self._stage)

    def _note(self, actor: Actor, what: str, answer: str) -> None:
        self._history.lines.append(Line(actor.name, what, answer))


async def _take_afresh(run: Run, number: int) -> object:
    key = await key_of(run.id)
    claimer = Claimer(f"z{number:015}".encode(), "host/z", "afterwards")
    named = await take_key(key, Declaration(key.job, key.scope), claimer)
    return getattr(named, "answer", named)


# -- words --------------------------------------------------------------------------------------------------------------


def _name(actor: Actor) -> str:
    assert actor.point is not None
    return name_of(actor.point)


def _told(point: Point | None, reply: object) -> str:
    """An answer in a few words."""
    match point:
        case Ask(want="count"):
            return f"{reply} row{'' if reply == 1 else 's'}"
        case Ask(statement=statement) if statement is not None and statement.name.startswith("look"):
            return "no row" if not isinstance(reply, tuple) else _run_text(Run(*reply))
        case Ask(want="one"):
            return "no row" if reply is None else "a row"
        case Ask(want="every") if isinstance(reply, list):
            return f"{len(reply)} rows"
        case Commit():
            return "committed" if reply else "rolled back: the transaction had failed"
        case Ask() | Use():
            return _short(reply)
        case _:
            return ""


def _run_text(run: Run) -> str:
    name = civil_text(run.nominal >> 1)[:16] + (f"#{run.revision}" if run.revision > 1 else "")
    holder = "" if run.attempt_id is None else f" {_id(run.attempt_id)}"
    lease = "" if run.lease_until is None else f", lease until {civil_text(run.lease_until // SECOND)[11:]}"
    return f"{name} {run.state}, fence {run.fence}{holder}{lease}"


def _id(attempt_id: bytes) -> str:
    """An attempt's id; those of the kit can be read."""
    text = attempt_id.decode("ascii", "replace")
    return f"{text[0]}{int(text[1:])}" if text[1:].isdigit() else attempt_id.hex()[-6:]


def _short(value: Any) -> str:
    if isinstance(value, Exception):
        state = getattr(value.__cause__, "sqlstate", None) if isinstance(value, Conflict) else None
        return f"{type(value).__name__}{f' ({state})' if state else ''}: {value}"[:110]
    return repr(value)[:110]
