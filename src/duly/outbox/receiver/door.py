"""The door: what every middleware does before the application is called, and after it has answered.

Before: a key that was answered is answered again, one that is being worked is said to be, and every other is marked as being
worked, for a lease by the database's clock. After: the answer is stored for a key that was committed without one, and the mark
is taken away. Both are transactions of the ledger's own, beside the application's. Neither is the guard: that is the key in
the application's transaction, and a server that is killed at any point leaves nothing but a mark that lapses.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duly.errors import DulyError, Misuse
from duly.ledger import receive as ledger
from duly.ledger.receive import Delivery, Entered, InProgress, Replay
from duly.outbox.receiver.http import REPLAYED, Response, Rules, in_progress, is_final, kept, problem_of, replay_of
from duly.outbox.receiver.receipt import (
    AsyncReceived,
    Received,
    Replayed,
    async_received_or_replayed,
    read_form,
    received_or_replayed,
    stored_form,
)
from duly.store.awaited import Awaited
from duly.store.borrowed import run_in, run_in_async
from duly.times import as_datetime

if TYPE_CHECKING:
    from duly.store.borrowed import Lent
    from duly.store.protocol import AsyncStore, Store

_log = logging.getLogger("duly.receiver")


class Incoming:
    """A request with a key, for the application. `outcome` is what its last `receive` came to: an answer, or an error.

    `of` is the receipt of the delivery that received the key, as far as is known: this one, or the one that it repeats.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self.of: bytes | None = None
        self.outcome: Received | AsyncReceived | Replayed | DulyError | None = None

    @property
    def key(self) -> str:
        """The idempotency key."""
        return self._delivery.key

    @property
    def source(self) -> str:
        """Whose key it is."""
        return self._delivery.source

    @property
    def first_sent(self) -> datetime | None:
        """When it was first sent, by its sender's word."""
        sent = self._delivery.first_sent
        return None if sent is None else as_datetime(sent)

    @property
    def delivery(self) -> Delivery:
        """What the ledger is given of it."""
        return self._delivery


class Request(Incoming):
    """A request with a key, for an application that does not await."""

    def receive(self, tx: Lent) -> Received | Replayed:
        """Receive the key in the application's own transaction, as `duly.receive`: do the effect only if this is truthy.

        Where it is `Replayed` with an answer, or raises, whatever the application responds is replaced by what is to be said.
        """
        try:
            found = run_in(tx, ledger.receive(self._delivery))
        except DulyError as e:
            self.outcome = e
            raise
        self.of = found.receipt
        self.outcome = answer = received_or_replayed(tx, self._delivery, found)
        return answer


class AsyncRequest(Incoming):
    """A request with a key, for an application that awaits."""

    def receive(self, tx: object) -> Awaited[AsyncReceived | Replayed]:
        """Receive the key in the application's own transaction, as `Request.receive`, awaited."""
        return Awaited(self._receive(tx))

    async def _receive(self, tx: object) -> AsyncReceived | Replayed:
        try:
            found = await run_in_async(tx, ledger.receive(self._delivery))
        except DulyError as e:
            self.outcome = e
            raise
        self.of = found.receipt
        self.outcome = answer = async_received_or_replayed(tx, self._delivery, found)
        return answer


class Door:
    """The door of an application that does not await."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self.rules = rules

    def enter(self, request: Incoming) -> Response | None:
        """What the request is answered without the application; None: it is to be called, and `leave` comes after it."""
        try:
            seen: Any = self._store.read(ledger.peek(request.delivery))
            if seen is None:
                seen = self._store.write(ledger.enter(request.delivery, lease=self.rules.lease), durable=False)
        except DulyError as e:
            return _problem_or_raise(e)
        return _told(seen)

    def leave(self, request: Incoming, response: Response | None) -> None:
        """Store what was answered if it is to be, and say that the key is not worked any more. `response` None: none came."""
        try:
            self._store.write(ledger.leave(request.delivery, to_store(self.rules, request, response), request.of))
        except DulyError as e:
            _log_left(request, e)


class AsyncDoor:
    """The door of an application that awaits."""

    def __init__(self, store: AsyncStore, rules: Rules) -> None:
        self._store = store
        self.rules = rules

    async def enter(self, request: Incoming) -> Response | None:
        """As `Door.enter`, awaited."""
        try:
            await self._store.open()
            seen: Any = await self._store.read(ledger.peek(request.delivery))
            if seen is None:
                entering = ledger.enter(request.delivery, lease=self.rules.lease)
                seen = await self._store.write(entering, durable=False)
        except DulyError as e:
            return _problem_or_raise(e)
        return _told(seen)

    async def leave(self, request: Incoming, response: Response | None) -> None:
        """As `Door.leave`, awaited."""
        try:
            await self._store.write(ledger.leave(request.delivery, to_store(self.rules, request, response), request.of))
        except DulyError as e:
            _log_left(request, e)


def _told(seen: Replay | InProgress | Entered) -> Response | None:
    match seen:
        case Replay(answer=ledger.Answer() as answer):
            return replay_of(read_form(answer))
        case InProgress(again_in=again_in):
            return in_progress(again_in)
    return None


def _problem_or_raise(error: DulyError) -> Response:
    told = problem_of(error)
    if told is None:
        raise error
    return told


def _log_left(request: Incoming, error: DulyError) -> None:
    # The effect stands, or does not, whatever happens here: a later delivery finds out, and the mark lapses.
    _log.warning("%s: the answer to a key was not stored (%s)", request.source, type(error).__name__)


# -- what the application answered --------------------------------------------------------------------------------------


def instead_of(request: Incoming, status: int) -> Response | None:
    """What is sent in place of an answer of the application's with this status; None: that is sent itself.

    A delivery that was answered before is answered as before. One that was refused is told why, where the application made
    a 5xx of it. Pure.
    """
    match request.outcome:
        case Replayed(answer=answer) if answer is not None:
            return replay_of(answer)
        case DulyError() as error if status >= 500:
            return problem_of(error)
    return None


def instead_of_error(request: Incoming, error: Exception) -> Response | None:
    """What is sent where the application raised; None: the error is its server's to see. Pure."""
    return problem_of(error) if isinstance(error, DulyError) and error is request.outcome else None


def more_headers(request: Incoming) -> tuple[tuple[str, str], ...]:
    """The mark of an answer that the application gave to a key that it had received before. Pure."""
    return ((REPLAYED, "true"),) if isinstance(request.outcome, Replayed) else ()


def wants_answer(request: Incoming, status: int) -> bool:
    """Whether the application's answer is to be stored: the key was received, no answer was stored, and this is one. Pure."""
    match request.outcome:
        case Received(is_answered=False) | AsyncReceived(is_answered=False) | Replayed(answer=None):
            return is_final(status)
    return False


def to_store(rules: Rules, request: Incoming, response: Response | None) -> ledger.Answer | None:
    """What is stored of an answer, if it is to be, is not too long, and can be given again."""
    if response is None or not wants_answer(request, response.status) or len(response.body) > rules.longest_answer:
        return None
    try:
        return stored_form(response.body, response.status, kept(rules, response.status, response.headers))
    except Misuse as e:
        _log.warning("%s: the answer to a key cannot be given again and was not stored (%s)", request.source, e)
        return None


def note_unreceived(request: Incoming, status: int) -> None:
    """Say that a request with a key was worked and its key never received: a later delivery will be worked again."""
    if request.outcome is None and status < 400:
        _log.error("%s: a request with a key was answered %d, and the key was not received", request.source, status)
