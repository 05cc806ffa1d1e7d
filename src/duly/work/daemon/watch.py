"""Watch: looks at the ledger for lines that are ripe, and gives them to the crew until it is told to stop.

It looks again when the next window comes due by the ledger's note, when an attempt has ended and nothing else waits, when
it is woken, and every few seconds all the same. Nothing depends on any of these: a look that comes late finds what an
earlier one would have, and one that comes twice finds nothing to do. So no jump of a clock makes a loop or a duplicate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from random import shuffle
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from duly.errors import DulyError, Misuse, Refused
from duly.ledger.open import Idle
from duly.ledger.ripe import Outlook, Ripe, outlook
from duly.records import record
from duly.times import SECOND
from duly.work.daemon.bell import Bell
from duly.work.daemon.crew import Elsewhere, Hand, NotBegun
from duly.work.daemon.shares import Line, Shares, line_of
from duly.work.waiting import LOOK_SECONDS

if TYPE_CHECKING:
    from duly.store.protocol import Store
    from duly.work.daemon.crew import Answer
    from duly.work.daemon.systemd import Notifier

# Every line is poked so often, whatever the look says: the rules of a zone may have changed on this host.
SWEEP_SECONDS = 600.0

# How long a line is left alone after an attempt that could not begin, or an error of the ledger's: doubling up to the last.
FIRST_REST, LAST_REST = 0.5, 60.0

# And after a poke that found nothing to do, though the look said otherwise: others were there first, or hold the line.
IDLE_REST = 0.05


@record
class Limits:
    """How much a daemon works at once, and how often it looks at the ledger when nothing is known to come, in seconds."""

    places: int
    per_job: int
    poll: float


class Daemon:
    """Works the jobs of its crew until it is told to stop. `tell` is called with a line for the log, `ended` after an attempt:
    it may have left messages.
    """

    def __init__(
        self,
        store: Store,
        hands: list[Hand],
        limits: Limits,
        notifier: Notifier,
        tell: Callable[[str], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._hands = {hand.name: hand for hand in hands}
        self._limits = limits
        self._notifier = notifier
        self._tell = tell
        self._ended = ended
        self._shares = Shares(limits.places, limits.per_job)
        self._bell = Bell()
        self._returned: deque[tuple[Ripe, Future[Answer]]] = deque()
        self._rests: dict[tuple[Line, bool], _Rest] = {}
        self._refused: dict[str, Hand] = {}  # what the ledger does not take as it is declared, or could not be asked
        self._strangers: set[str] = set()  # jobs that have work, and are not ours
        self._seen = Outlook([], None)
        self._looked = 0.0
        self._tried = monotonic()  # to register what was refused
        self._look_again = True  # whatever was seen has changed
        self._stops = 0

    # -- told from outside -----------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look at the ledger now. May be called in any thread."""
        self._look_again = True
        self._bell.ring()

    def stop(self) -> None:
        """Begin nothing more, and return when what is being attempted has ended. Again: end that too; a third time: at once.

        May be called in a signal's handler.
        """
        self._stops += 1
        self._bell.ring()

    # -- the watch -------------------------------------------------------------------------------------------------------

    def work(self) -> bool:
        """Work until told to stop. False: attempts were left behind, to vanish with this process."""
        self._register(list(self._hands.values()))
        self._notifier.say("READY=1", f"STATUS={len(self._hands)} jobs")
        swept = monotonic()
        self._shares.replace(self._every_line())
        while not self._stops:
            self._notifier.say("WATCHDOG=1")
            self._take_back()
            if monotonic() - swept >= SWEEP_SECONDS:
                swept = monotonic()
                self._shares.replace(self._every_line())
            elif self._is_time_to_look():
                self._look()
            self._give_out()
            self._wait()
        return self._finish()

    def _register(self, hands: list[Hand]) -> None:
        """Make jobs known to the ledger. Those that it does not take as they are declared are left out, and said."""
        for hand in hands:
            try:
                hand.lines()
            except DulyError as e:
                if hand.name not in self._refused:
                    self._tell(f"{hand.name} is not worked: {_in_full(e)}")
                self._refused[hand.name] = hand
            else:
                self._refused.pop(hand.name, None)

    def _every_line(self) -> list[Ripe]:
        served = [hand for hand in self._hands.values() if hand.name not in self._refused]
        try:
            return _mixed([Ripe(hand.name, scope, 0, 1, 0) for hand in served for scope in hand.lines()])
        except DulyError:  # the ledger is away: the next look says so
            return []

    def _is_time_to_look(self) -> bool:
        if self._look_again and not self._shares.waiting:
            return True
        return monotonic() >= self._look_at() or self._has_come(self._seen.next_at)

    def _look_at(self) -> float:
        """When to look again at the latest, by the monotonic clock: after a while, or when a line has rested."""
        rested = [rest.until for rest in self._rests.values() if rest.until > self._looked]
        return min([self._looked + self._limits.poll, *rested])

    def _has_come(self, instant: int | None) -> bool:
        return instant is not None and self._now() >= instant

    def _look(self) -> None:
        """Look for lines that are ripe. One whose poke found nothing to do lately is left alone until it has rested."""
        if self._refused and monotonic() - self._tried >= self._limits.poll:
            self._tried = monotonic()
            self._register(list(self._refused.values()))
        self._look_again, self._looked = False, monotonic()
        try:
            self._seen = self._store.read(outlook())
        except DulyError as e:
            self._tell(f"cannot look at the ledger, and will again: {e}")
            self._seen = Outlook([], None)
            return
        strangers = {one.job for one in self._seen.ripe if one.job not in self._hands} - self._strangers
        if strangers:  # one of them may be a job of ours under another name
            self._strangers |= strangers
            self._register([hand for hand in self._hands.values() if hand.name not in self._refused])
        rests = {what for what, rest in self._rests.items() if rest.until > self._looked}
        self._shares.replace(
            _mixed([one for one in self._seen.ripe if self._serves(one) and _rested(one) not in rests])
        )

    def _serves(self, ripe: Ripe) -> bool:
        hand = self._hands.get(ripe.job)
        return hand is not None and ripe.job not in self._refused and hand.has(ripe.scope)

    def _give_out(self) -> None:
        while (ripe := self._shares.next()) is not None:
            self._hands[ripe.job].attempt(ripe, partial(self._came_back, ripe))

    def _came_back(self, ripe: Ripe, ended: Future[Answer]) -> None:
        self._returned.append((ripe, ended))
        self._bell.ring()

    def _take_back(self) -> None:
        while self._returned:
            ripe, ended = self._returned.popleft()
            self._ended()
            self._shares.done(ripe, worked=self._judge(ripe, ended))

    def _judge(self, ripe: Ripe, ended: Future[Answer]) -> int:
        """Say what came of an attempt, or of several. Answers how many, or 0 where the line has nothing to work now."""
        error = None if ended.cancelled() else ended.exception()
        if ended.cancelled() or error is not None:
            self._rest(ripe)
            self._tell(f"{name_of(ripe)}: {_said(error)}")
            if isinstance(error, (Refused, Misuse)):
                self._refused[ripe.job] = self._hands[ripe.job]
            return 0
        answer = ended.result()
        if isinstance(answer, Idle):
            if answer.live:  # what the line owes is to be worked first, and is seen by a look
                self._look_again = True
            self._rest(ripe, first=IDLE_REST, last=self._limits.poll)
            return 0
        self._look_again = True
        if isinstance(answer, Elsewhere):
            self._rests.pop(_rested(ripe), None)
            return answer.worked
        if any(isinstance(each.outcome, NotBegun) for each in answer):
            self._rest(ripe)
            return 0
        self._rests.pop(_rested(ripe), None)
        return len(answer)

    def _rest(self, ripe: Ripe, *, first: float = FIRST_REST, last: float = LAST_REST) -> None:
        """Leave a line, or its backfill, alone for a while, and longer if it is not the first time."""
        what = _rested(ripe)
        tries = self._rests[what].tries if what in self._rests else 0
        self._rests[what] = _Rest(monotonic() + min(first * 2 ** min(tries, 20), last), tries + 1)

    # -- waiting ---------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait until something rings, or it is time to look."""
        until = self._look_at()
        if not self._store.clock_by_hand and self._seen.next_at is not None:
            until = min(until, monotonic() + max(self._seen.next_at - self._now(), 0) / SECOND)
        if self._notifier.watchdog_seconds is not None:
            until = min(until, monotonic() + self._notifier.watchdog_seconds)
        while (left := until - monotonic()) > 0:
            if self._bell.wait(min(left, LOOK_SECONDS) if self._store.clock_by_hand else left):
                return
            if self._store.clock_by_hand and self._has_come(self._seen.next_at):
                return

    def _now(self) -> int:
        try:
            return self._store.now()
        except DulyError:  # it cannot be reached: nothing has come due that we could work
            return 0

    def _finish(self) -> bool:
        for hand in self._hands.values():
            hand.leave()
        self._take_back()  # the bell that told of it may have been heard already
        self._notifier.say("STOPPING=1", f"STATUS=waiting for {self._shares.working} attempts")
        heard = 0
        while self._shares.working and self._stops < 3:
            if heard == 0:
                heard = 1
                self._tell(f"begins nothing more; {self._shares.working} attempts go on")
            if heard == 1 and self._stops > 1:
                heard = 2
                self._tell(f"ends the {self._shares.working} attempts that are left")
                for hand in self._hands.values():
                    hand.end()
            self._notifier.say("WATCHDOG=1")
            self._bell.wait(self._notifier.watchdog_seconds)
            self._take_back()
        return not self._shares.working


class _Rest(NamedTuple):
    """Until when, by the monotonic clock, a line is left alone, and how often it was so in a row."""

    until: float
    tries: int


def _said(error: BaseException | None) -> str:
    """What is said of an attempt that came to no end. Of another error than duly's own it is the type: its message may hold
    what no log should.
    """
    if isinstance(error, DulyError):
        return _in_full(error)
    return "cancelled" if error is None else type(error).__name__


def _in_full(error: DulyError) -> str:
    """An error with the step to take, where it has one."""
    return f"{error}; try: {error.next_step}" if error.next_step else str(error)


def _mixed(ripe: list[Ripe]) -> list[Ripe]:
    """The oldest first, and in chance order what is due at one time: several daemons do not go for the same line."""
    mixed = list(ripe)
    shuffle(mixed)
    return sorted(mixed, key=lambda one: one.due)


def _rested(ripe: Ripe) -> tuple[Line, bool]:
    """What is left alone: a line, or the backfill of one."""
    return line_of(ripe), ripe.backfill


def name_of(ripe: Ripe) -> str:
    """A line as people read it: `acme/invoice-export`."""
    return f"{ripe.scope}/{ripe.job}" if ripe.scope else ripe.job
