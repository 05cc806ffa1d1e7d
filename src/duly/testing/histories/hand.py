"""Hand: what a script works with. Each `await` of it is a point of the history.

A script is an `async def` that is given a hand and what the race was given. It says what one worker, caller or person does,
in transactions; it never waits for another by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from itertools import count as numbers
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from duly.errors import Misuse, Refused
from duly.ledger.ask import Ask, Statement, count, drive_async
from duly.ledger.complete import complete_or_raise
from duly.ledger.named import Named, take_window
from duly.ledger.once import once
from duly.ledger.records import Claim, Claimer
from duly.ledger.register import Declaration
from duly.schedule.keys import parse_key
from duly.testing.histories.points import READ_COMMITTED, Begin, Commit, Rollback, Use

if TYPE_CHECKING:
    from duly.ledger.ask import Operation, Value
    from duly.ledger.named import Answer

T = TypeVar("T")
Script: TypeAlias = Coroutine[Any, Any, object]

# The kit's own table: a row for each effect that an attempt had, in the transaction of its completion.
EFFECTS = "histories_effect"

HAVE_EFFECT = Statement("effect", f"insert into {EFFECTS} (attempt_id) values (:attempt_id)")

_statements: dict[str, Statement] = {}


class Hand:
    """One actor's hand on the ledger, under a name of one letter. `told` holds what the ledger answered it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[object] = []
        self._numbers = numbers(1)

    def claimer(self, payload: str | None = None) -> Claimer:
        """A new attempt of this actor. Its id is the same whenever the history is told again."""
        attempt_id = f"{self.name}{next(self._numbers):015}".encode()
        return Claimer(attempt_id, f"host/{self.name}", "history", payload)

    def transaction(self, isolation: str = READ_COMMITTED) -> Transaction:
        """`async with`: committed at its end, rolled back where something is raised."""
        return Transaction(isolation)

    async def carry_out(self, operation: Operation[T]) -> T:
        """An operation of the ledger, statement by statement, in the transaction that is open."""
        return await drive_async(operation, _asked)

    async def write(self, operation: Operation[T]) -> T:
        """An operation in a transaction of its own; what it answers is noted."""
        try:
            async with self.transaction():
                answer = await self.carry_out(operation)
        finally:
            operation.close()  # it may never have been begun
        self.told.append(answer)
        return answer

    async def execute(self, sql: str, **parameters: Value) -> int:
        """A statement of the caller's own, with parameters as `:name`; how many rows it touched."""
        statement = _statements.setdefault(sql, Statement(" ".join(sql.split())[:40], sql))
        return await count(statement, **parameters)

    async def use(self, name: str, act: Callable[[Any], T]) -> T:
        """Code of the caller's own on the actor's connection, as one step."""
        result: T = await Use(name, act)
        return result

    # -- what workers do ------------------------------------------------------------------------------------------------

    async def take(self, job: str, window: str, *, payload: str | None = None) -> Answer:
        """Take a window, in a transaction of its own; whatever the ledger answers, as a value."""
        async with self.transaction():
            operation = take_window(Declaration(job), window, self.claimer(payload))
            named: Named | Refused | Misuse = await self.carry_out(operation)
        answer = named.answer if isinstance(named, Named) else named
        self.told.append(answer)
        return answer

    async def complete(self, claim: Claim) -> None:
        """Complete a claim, in the transaction that is open. Raises `ClaimLost`, which ends it."""
        await self.carry_out(complete_or_raise(claim))

    async def once(self, key: str, *, payload: str | None = None) -> bytes | None:
        """`duly.once` in the transaction that is open: the attempt whose effect is to be done now, or None."""
        claimer = self.claimer(payload)
        return claimer.attempt_id if await self.carry_out(once(parse_key(key), claimer)) else None

    async def effect(self, attempt_id: bytes) -> None:
        """An effect of an attempt: a row in a table of the kit's, in the transaction that is open."""
        await count(HAVE_EFFECT, attempt_id=attempt_id)

    async def finish(self, claim: Claim) -> None:
        """Effect and completion, in a transaction of their own."""
        async with self.transaction():
            await self.effect(claim.attempt_id)
            await self.complete(claim)


class Transaction:
    """A transaction of an actor's. One that dies in it says no good-bye."""

    def __init__(self, isolation: str) -> None:
        self._isolation = isolation

    async def __aenter__(self) -> None:
        await Begin(self._isolation)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await Commit()
        elif not issubclass(kind, GeneratorExit):
            await Rollback()


async def _asked(ask: Ask) -> object:
    return await ask
