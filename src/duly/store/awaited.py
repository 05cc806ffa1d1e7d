"""An answer that cannot be mistaken for its truth."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")


class Awaited(Generic[T]):
    """What `await` makes an answer of. Without it nothing is done, and asking whether it is true raises `TypeError`."""

    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()

    def __bool__(self) -> NoReturn:
        self._work.close()
        raise TypeError("this answer has to be awaited before it is asked for its truth; nothing was done")
