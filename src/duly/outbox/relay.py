"""Relay: takes messages that are due from the ledger, hands them to their destinations, and writes down what became of them.

It holds no state that matters. A message is taken under a lease, row by row, by whoever comes first; one that nobody speaks of
when its lease is over is unknown. All I/O on the ledger is done in one thread, which writes what has come back and takes what
is next in one transaction; destinations are spoken to by others, each with an object of its own.

    before it is sent       the claim is committed: killed here, the message is unknown, though it was never sent
    after it was sent       killed here, it is unknown, and was sent
    before it is recorded   the same

So a message leaves this state by what its receiver remembers, by a probe, or by a person; never by hope.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from duly.errors import DulyError
from duly.ledger.contracts import backoff
from duly.ledger.deliver import FOREVER, next_due, record_words, take_messages
from duly.ledger.found import FoundDone, FoundNot, FoundNothing
from duly.ledger.parcel import Limits, Parcel, SaidDelivered, SaidNotSent, SaidRefused, SaidUnknown
from duly.outbox.destinations import FOREVER as REMEMBERED_FOREVER
from duly.outbox.destinations import (
    CannotTell,
    Delivered,
    DidNot,
    Happened,
    Message,
    NotSent,
    Refused,
    Unknown,
    in_few_words,
)
from duly.outbox.destinations.child import inheriting
from duly.records import record
from duly.times import MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from duly.ledger.parcel import Word
    from duly.outbox.destinations import Destination, Finding, Outcome
    from duly.outbox.routes import Route
    from duly.store.protocol import Store

RESERVE = MINUTE  # of a lease, beyond the time-out of a sending
LOOK_SECONDS = 0.02  # how often a clock set by hand is looked at, or what another relay has taken
SETTLE_SECONDS = 30.0  # how long it is tried to write down what came back, before a relay gives up
LONGEST_REST = 1.0
MOMENT = 2 * LONGEST_REST  # in which what is due is surely asked for once more
LONGEST_WAIT_FOR_RATE = 10.0
ASK_AGAIN_SECONDS = 60.0  # how long what a receiver says that it remembers is believed


@record
class Told:
    """What became of one message, for a log: no body, and no word of the receiver's."""

    run: str
    name: str
    destination: str
    state: str
    said: str


class Relay:
    """Serves some destinations. `new_id` makes ids of attempts; `tell` is called with what became of each message."""

    def __init__(
        self,
        store: Store,
        routes: Mapping[str, Route],
        *,
        new_id: Callable[[], bytes],
        owner: str,
        tell: Callable[[Told], None] = lambda told: None,
    ) -> None:
        self._store = store
        # In one order, in which a transaction holds what all who send to them share.
        self._lanes = {name: _Lane(routes[name]) for name in sorted(routes)}
        self._new_id = new_id
        self._owner = owner
        self._tell = tell
        self._back: SimpleQueue[tuple[Parcel, Word] | None] = SimpleQueue()
        self._words: list[tuple[Parcel, Word]] = []  # come back, and not on record yet
        self._pulses: dict[bytes, int] = {}
        self._stopped = False

    def stop(self) -> None:
        """Take nothing more; what is being sent is waited for, and written down. May be called in any thread."""
        self._stopped = True
        self.wake()

    def wake(self) -> None:
        """Look at the ledger now. May be called in any thread."""
        self._back.put(None)

    # -- two ways to work --------------------------------------------------------------------------------------------------

    def deliver(self, *, seconds: float | None = None) -> None:
        """Send what is due, and what that makes due, until nothing may be taken any more, or for so long.

        A rate is waited for if it lets another one pass soon; a place that others have, for a moment. Raises what the ledger
        does.
        """
        timer = None if seconds is None else threading.Timer(seconds, self.stop)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            self._deliver()
        finally:
            if timer is not None:
                timer.cancel()

    def _deliver(self) -> None:
        with self._at_work():
            moved = time.monotonic()
            while True:
                did = self._turn()
                if did or self._in_flight:
                    moved = time.monotonic()
                elif self._stopped or not self._may_yet_take(time.monotonic() - moved):
                    return
                self._wait(None if self._in_flight else 0 if did else LOOK_SECONDS)

    def serve(self, *, poll: float, trouble: Callable[[str], None]) -> None:
        """Send what comes due until told to stop. The ledger is looked at every so many seconds, whoever wakes it or not."""
        with self._at_work():
            while not self._stopped or self._in_flight or self._words:
                try:
                    self._turn()
                    until = min(poll, self._seconds_to_next())
                except Exception as e:  # it is to go on, whatever was wrong
                    # What others raise may say what no log should.
                    said = str(e) if isinstance(e, DulyError) else type(e).__name__
                    if self._stopped:
                        # What came back is not on record: when its lease is over it is unknown, as it is now.
                        trouble(f"the outbox ends; messages in doubt: {len(self._words)}: {said}")
                        return
                    trouble(f"the outbox goes on in a second: {said}")
                    until = 1.0
                self._wait(until)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Its threads and its pulses end with its work."""
        try:
            yield
        finally:
            for lane in self._lanes.values():
                lane.close()
            self._end_pulses(list(self._pulses))

    # -- one turn ----------------------------------------------------------------------------------------------------------

    @property
    def _in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes.values())

    def _turn(self) -> bool:
        """Write down what has come back, and take what is due. Answers whether there was anything to do."""
        wanted = [] if self._stopped else [(lane, self._wanted(lane)) for lane in self._lanes.values()]
        # A receiver may have to be asked how long it remembers: not in a transaction.
        wants = [(lane, lane.limits(), self._ids(many)) for lane, many in wanted if many]
        if not self._words and not wants:
            return False
        began = awake()
        words = list(self._words)

        async def turn() -> tuple[list[str], list[Parcel]]:
            became = await record_words(words)
            taken: list[Parcel] = []
            for lane, limits, mine in wants:
                taken += await take_messages(limits, mine, owner=self._owner, put_off_by=lane.backed_off)
            return became, taken

        taken: list[Parcel] = []
        try:
            became, taken = self._write(turn)
        finally:
            used = {parcel.attempt_id for parcel in taken}
            self._end_pulses([each for _, _, mine in wants for each in mine if each not in used])
        self._words = self._words[len(words) :]
        for (parcel, word), state in zip(words, became, strict=True):
            self._end_pulses([parcel.attempt_id])
            self._tell(Told(parcel.run, parcel.name, parcel.destination, state, word.said))
        for parcel in taken:
            lane = self._lanes[parcel.destination]
            lane.has_rested()
            lane.send(parcel, began, self._back, self._pulses.get(parcel.attempt_id, -1))
        return bool(words or taken)

    def _write(self, turn: Callable[[], object]) -> tuple[list[str], list[Parcel]]:
        """In one transaction. What has come back is worth a second try: it would be unknown for nothing."""
        give_up = time.monotonic() + (SETTLE_SECONDS if self._words else 0)
        while True:
            try:
                return self._store.write(turn())  # type: ignore[arg-type]  # an operation
            except DulyError:
                if time.monotonic() >= give_up:
                    raise
            time.sleep(0.2)

    def _wanted(self, lane: _Lane) -> int:
        """How many messages of a destination are to be taken now: as many as it has places for, where a look, which takes no
        lock, says that some are due; else one for each that has come back, for the next one of its run may be due by that.
        """
        if lane.seconds_of_rest <= 0 and lane.free > 0 and self._has_due(lane):
            lane.rest()  # until it is given something
            return lane.free
        return min(lane.free, sum(parcel.destination == lane.route.name for parcel, _ in self._words))

    def _has_due(self, lane: _Lane) -> bool:
        due = self._store.glance(next_due(lane.route.name))
        return due is not None and due <= self._store.now()

    def _may_yet_take(self, seconds: float) -> bool:
        """Whether something is due that may be had soon, though for so long nothing was."""
        return any(seconds < lane.patience and self._has_due(lane) for lane in self._lanes.values())

    def _seconds_to_next(self) -> float:
        """How long nothing can be taken, as far as is known: a destination may rest, and a message may wait for its time."""
        if self._store.clock_by_hand:
            return LOOK_SECONDS
        waits = [3600.0]
        for lane in self._lanes.values():
            due = self._store.glance(next_due(lane.route.name)) if lane.free > 0 else None
            if due is not None:
                waits.append(max((due - self._store.now()) / SECOND, lane.seconds_of_rest))
        return max(min(waits), LOOK_SECONDS)

    def _ids(self, many: int) -> list[bytes]:
        """Ids for attempts, each with its pulse, which can be seen from before the attempt can."""
        made = [self._new_id() for _ in range(many)]
        for attempt_id in made:
            self._pulses[attempt_id] = self._store.begin_pulse(attempt_id)
        return made

    def _end_pulses(self, ids: list[bytes]) -> None:
        for attempt_id in ids:
            descriptor = self._pulses.pop(attempt_id, -1)
            if descriptor >= 0:
                os.close(descriptor)

    def _wait(self, seconds: float | None) -> None:
        """Wait until something comes back, or somebody wakes us; then for whatever else has come."""
        try:
            heard = self._back.get(timeout=seconds)
            while True:
                if heard is not None:
                    self._lanes[heard[0].destination].in_flight -= 1
                    self._words.append(heard)
                heard = self._back.get_nowait()
        except Empty:
            return


class _Lane:
    """One destination being served: threads, each with an object of its own, and how many messages are with them."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.in_flight = 0
        self._own = threading.local()
        self._made: list[Destination] = []
        self._pool: ThreadPoolExecutor | None = None
        self._remembers = 0
        self._asked = -ASK_AGAIN_SECONDS
        self._first: Destination | None = None
        self._rests = 0
        self._rest_until = 0.0

    def rest(self) -> None:
        """What is due and was not given is in other hands, or waits for its rate: it is asked for again in a moment."""
        self._rests += 1
        self._rest_until = time.monotonic() + min(LOOK_SECONDS * 2**self._rests, LONGEST_REST)

    def has_rested(self) -> None:
        self._rests, self._rest_until = 0, 0.0

    @property
    def seconds_of_rest(self) -> float:
        return max(self._rest_until - time.monotonic(), 0.0)

    @property
    def free(self) -> int:
        """How many more messages it can be given."""
        return self.route.concurrency - self.in_flight

    @property
    def patience(self) -> float:
        """Seconds that one who is to end waits for what is due and not given: it is in other hands, or waits for its rate."""
        interval = self.route.interval / SECOND
        return MOMENT + (interval if interval <= LONGEST_WAIT_FOR_RATE else 0)

    @property
    def lease_seconds(self) -> float:
        return (self.route.timeout + RESERVE) / SECOND

    def limits(self) -> Limits:
        route = self.route
        lease = route.timeout + RESERVE
        return Limits(route.name, route.concurrency, route.interval, lease, self.remembers(), route.probe_after)

    def remembers(self) -> int:
        """How long the receiver knows a key, in microseconds. It may have to be asked."""
        if time.monotonic() - self._asked >= ASK_AGAIN_SECONDS:
            self._asked = time.monotonic()
            try:
                if self._first is None:
                    self._first = self.route.make()
                    self._made.append(self._first)
                self._heard(self._first)
            except Exception:  # of one that cannot be asked nothing is believed
                self._remembers = 0
        return self._remembers

    def _heard(self, destination: Destination) -> None:
        remembers = destination.remembers
        self._remembers = FOREVER if remembers is REMEMBERED_FOREVER else min(remembers, FOREVER)

    def backed_off(self, failures: int) -> int:
        """Microseconds until the next try after so many failures."""
        chance = int.from_bytes(os.urandom(4), "big") / (1 << 32)
        route = self.route
        return backoff(max(failures, 1), delay=route.retry_delay, ceiling=route.retry_ceiling, jitter=chance)

    def send(
        self, parcel: Parcel, began: float, back: SimpleQueue[tuple[Parcel, Word] | None], pulse: int = -1
    ) -> None:
        """Give a message to a thread; what became of it is put where it is waited for. Its command holds the pulse too."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.route.concurrency, thread_name_prefix=f"duly-{self.route.name}")
        self.in_flight += 1

        def work() -> None:
            with inheriting(*[pulse] if pulse >= 0 else []):
                word = self._word(parcel, began)
            back.put((parcel, word))

        self._pool.submit(work)

    def _word(self, parcel: Parcel, began: float) -> Word:
        seconds = self.route.timeout / SECOND
        if awake() - began > self.lease_seconds - seconds:  # this host slept: another may have the message by now
            cause = "too late to begin: this host stood still"
            if parcel.probing:
                return FoundNothing(cause, 0)
            return SaidNotSent(cause, 0, 0)
        try:
            destination = self._destination()
        except Exception as e:  # it has heard of nothing
            cause = f"the destination cannot be made: {type(e).__name__}"
            if parcel.probing:
                return FoundNothing(cause, self._after(parcel))
            return self._said(parcel, NotSent(cause))
        try:
            message = _message(parcel)
            if parcel.probing:
                return self._found(parcel, destination.probe(message, seconds=seconds), destination)
            return self._said(parcel, destination.deliver(message, seconds=seconds))
        except Exception as e:  # a destination never raises; one that does says nothing of the message
            cause = f"{type(e).__name__} in the destination"
            if parcel.probing:
                return FoundNothing(cause, self._after(parcel))
            return SaidUnknown(cause, self._after(parcel))

    def _destination(self) -> Destination:
        mine: Destination | None = getattr(self._own, "destination", None)
        if mine is None:
            mine = self._own.destination = self.route.make()
            self._made.append(mine)
        return mine

    def _after(self, parcel: Parcel, retry_after: int | None = None) -> int:
        return max(self.backed_off(parcel.failures + 1), retry_after or 0)

    def _said(self, parcel: Parcel, outcome: Outcome) -> Word:
        match outcome:
            case Delivered(evidence):
                return SaidDelivered(in_few_words(evidence))
            case NotSent(cause, retry_after):
                again_in = self._after(parcel, retry_after)
                is_last = parcel.failures + 1 >= self.route.tries
                return SaidNotSent(in_few_words(cause), None if is_last else again_in, again_in)
            case Refused(cause):
                return SaidRefused(in_few_words(cause))
            case Unknown(cause, retry_after, stored):
                return SaidUnknown(in_few_words(cause), 0 if stored else self._after(parcel, retry_after), stored)

    def _found(self, parcel: Parcel, finding: Finding, destination: Destination) -> Word:
        match finding:
            case Happened(evidence):
                return FoundDone(in_few_words(evidence))
            case DidNot(evidence):
                return FoundNot(in_few_words(evidence), destination.reads_own_writes, self.route.probe_after)
            case CannotTell(cause):
                return FoundNothing(in_few_words(cause), max(self._after(parcel), self.route.probe_after))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        for destination in self._made:
            destination.close()
        self._made, self._first, self._own = [], None, threading.local()
        self._asked = -ASK_AGAIN_SECONDS


def _message(parcel: Parcel) -> Message:
    return Message(
        parcel.key,
        parcel.run,
        parcel.name,
        parcel.body,
        parcel.content_type,
        max(parcel.fence, 1),
        parcel.first_sent_at,
    )


def awake() -> float:
    """Seconds by a clock that goes on while the host sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
