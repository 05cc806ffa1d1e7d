"""Ask: the only things that an operation may await.

An operation of the ledger is an `async def` without an event loop. It awaits statements (`one`, `every`, `count`, `do`), the
ledger's time (`now`) and a holder's pulse (`alive`); a driver answers, inside whatever transaction the operation runs in.
Awaiting anything else is a bug and raises.
"""

from __future__ import annotations

from duly.errors import Refused
from duly.ledger import states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
    from typing import Any, Protocol, TypeAlias, TypeVar

    class Table(Protocol):
        """A table of states: `states` of the runs, or another like it."""

        def sources(self, event: str) -> tuple[str, ...]: ...

        def target(self, event: str) -> str: ...

    T = TypeVar("T")
    Value: TypeAlias = int | str | bytes | None
    Operation: TypeAlias = Coroutine["Ask", Any, T]


class Statement:
    """A named SQL text, portable between the databases but for a few tokens that the store renders.

    `{now}` is the database's clock in microseconds; `{or_rollback}` makes a failure end the transaction where that is
    not the rule anyway; `{share}` holds the series against a prune, `{alone}` against everything; `{lock}` a row against
    every other writer, `{still}` against those that would change it, `{free}` leaves out rows that another writer has.
    `{unsettled}` says of the run r that it is unsettled. `{absent}` is a condition that the run has no row: so that where
    locks are taken a duplicate takes none. `{lockable}` is 1 where no other transaction holds the lock of number `:lock`, which
    this one then holds to its end, else 0; nobody waits. `{spans}` is a table of that name with the columns series, first
    and last, from a JSON list of such triples in `:spans`; `{in_spans}duly_run` is that other table, which is read by each of
    them. `{beside}` stands before a column of a condition that no index is to be read by. With an `event`, `{from}` and `{to}`
    are the states before and after it, from the table `of` the runs, or another. `refuses` is the error that a violated
    constraint in this statement means. One that `only_locks` is not sent where one writer works at a time.
    """

    __slots__ = ("name", "only_locks", "refuses", "sql")

    def __init__(
        self,
        name: str,
        sql: str,
        *,
        event: str | None = None,
        of: Table = states,
        refuses: type[Refused] | None = None,
        only_locks: bool = False,
    ) -> None:
        if event is not None:
            sql = sql.replace("{from}", _listed(of.sources(event))).replace("{to}", f"'{of.target(event)}'")
        self.name = name
        sql = sql.replace("{unsettled}", _ORS)
        self.sql = sql.replace("{settled}", _listed(states.SETTLED))
        self.refuses = refuses
        self.only_locks = only_locks


# Written out, as it stands in the index that it is to use.
_ORS = "(" + " or ".join(f"r.state = '{name}'" for name in states.UNSETTLED) + ")"


def _listed(names: tuple[str, ...]) -> str:
    return "(" + ", ".join(f"'{name}'" for name in names) + ")"


class Ask:
    """One question to the ledger. `want` is what the answer looks like: `one`, `every`, `count`, `do`, `now` or `alive`.

    Nothing is asked after one that `is_last`.
    """

    __slots__ = ("is_last", "parameters", "statement", "want")

    def __init__(
        self, want: str, statement: Statement | None, parameters: dict[str, Value], *, is_last: bool = False
    ) -> None:
        self.want = want
        self.statement = statement
        self.parameters = parameters
        self.is_last = is_last

    def __await__(self) -> Generator[Ask, Any, Any]:
        return (yield self)


async def one(statement: Statement, read: Callable[..., T], /, **parameters: Value) -> T | None:
    """The first row, read into a record, or None."""
    row = await Ask("one", statement, parameters)
    return None if row is None else read(*row)


async def verdict(statement: Statement, read: Callable[..., T], /, **parameters: Value) -> T | None:
    """The look that ends an operation, as `one`: whoever drives it may commit before the row is read."""
    row = await Ask("one", statement, parameters, is_last=True)
    return None if row is None else read(*row)


async def every(statement: Statement, read: Callable[..., T], /, **parameters: Value) -> list[T]:
    """All rows, read into records."""
    return [read(*row) for row in await Ask("every", statement, parameters)]


async def count(statement: Statement, /, **parameters: Value) -> int:
    """Run a statement and say how many rows it touched: who won a claim, never whether a commit may happen (I2)."""
    touched: int = await Ask("count", statement, parameters)
    return touched


async def do(statement: Statement, /, **parameters: Value) -> None:
    """Run a statement of whose outcome nothing is read back: what follows it, or the database, guards it.

    A driver may send it with what follows, and wait once for all.
    """
    await Ask("do", statement, parameters)


async def now() -> int:
    """The instant by the database's clock, in the transaction that acts on it (I4)."""
    instant: int = await Ask("now", None, {})
    return instant


async def alive(attempt_id: bytes) -> bool | None:
    """Whether the holder of a claim shows a pulse besides its lease (on one host: its file lock is held). None: nobody can
    tell, for it may be on another host; then the lease alone decides.
    """
    pulse: bool | None = await Ask("alive", None, {"attempt_id": attempt_id})
    return pulse


def ask_together(operation: Operation[object]) -> Iterator[Ask]:
    """What an operation asks, up to the look that ends it; `conclude` gives it the answer.

    Only for one that reads nothing before. A foreign await raises, as in `drive`.
    """
    while True:
        question = operation.send(None)
        if not isinstance(question, Ask):
            raise TypeError(f"an operation whose statements are sent together awaited {question!r}")
        yield question
        if question.is_last:
            return


def conclude(operation: Operation[T], answer: object) -> T:
    """The result of an operation that has asked its last question."""
    try:
        question = operation.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    raise TypeError(f"an operation of the ledger asked {question!r} after its last question")


async def drive_async(operation: Operation[T], answer: Callable[[Ask], Awaitable[object]]) -> T:
    """`drive`, where an answer has to be awaited. The operation itself knows nothing of an event loop."""
    reply: object = None
    try:
        while True:
            question = operation.send(reply)
            if not isinstance(question, Ask):
                raise TypeError(f"an operation of the ledger awaited {question!r}; it may await only what is in `ask`")
            reply = await answer(question)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()


def drive(operation: Operation[T], answer: Callable[[Ask], object]) -> T:
    """Run an operation to its end, answering what it asks. Raises what it raises, and what an answer raises."""
    reply: object = None
    try:
        while True:
            question = operation.send(reply)
            if not isinstance(question, Ask):
                raise TypeError(f"an operation of the ledger awaited {question!r}; it may await only what is in `ask`")
            reply = answer(question)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()
