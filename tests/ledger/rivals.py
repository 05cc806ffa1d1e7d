"""A rival: somebody who comes between two statements of an operation, on a ledger where several write at a time."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from copy import copy
from typing import Any, TypeVar

import pytest

from duly.ledger.ask import Statement
from duly.ledger.take import LOCK_LINE
from tests.books import Book, PostgresBook

T = TypeVar("T")


@types.coroutine
def beside(
    operation: Coroutine[Any, Any, T], rival: Callable[[], object], *, at: Statement = LOCK_LINE
) -> Generator[Any, Any, T]:
    """The operation, with a rival who acts and commits just before it holds the line, or comes to another statement first."""
    answer, acts = None, True
    while True:
        try:
            ask = operation.send(answer)
        except StopIteration as ended:
            done: T = ended.value
            return done
        if acts and ask.statement is at:
            rival()
            acts = False
        answer = yield ask


def rival_of(book: Book) -> Book:
    """The same ledger by another connection."""
    if not isinstance(book, PostgresBook):
        pytest.skip("one writer at a time: nobody comes between")
    rival = copy(book)
    rival.store = book.open()
    return rival
