"""Read: what every read is. One operation in one snapshot, and the document of the command line that it is answered by.

A list comes in batches: `limit` says how many, `after` is the place at which the batch before ended, and the answer names the
next. Places are keys, so that what is added meanwhile moves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.records import record
from duly.web.api.values import Parameter, numbers_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.evidence.documents.window import Json
    from duly.ledger.ask import Operation
    from duly.web.api.values import Schema, Value

MOST, STANDARD = 200, 50


@record
class Wanted:
    """What a request asks for: the names of its path, and the values of its query."""

    path: Mapping[str, str]
    values: Mapping[str, Value]

    def text(self, name: str) -> str | None:
        """A text, where it is given."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None

    def count(self, name: str) -> int:
        """A whole number that is given, or has a standard."""
        return int(self.values[name])

    def flag(self, name: str) -> bool:
        """Whether a flag is set."""
        return self.values.get(name) is True

    @property
    def limit(self) -> int:
        """How many members of a list are wanted."""
        return self.count("limit")

    @property
    def after(self) -> tuple[int, ...] | None:
        """The place after which they are wanted, of a list whose places are numbers."""
        place = self.text("after")
        return None if place is None else numbers_of(place)


@record
class Found:
    """What was found: the facts of the document, and the place at which it ends, where there is more of it."""

    facts: dict[str, Json]
    after: str | None = None


@record
class Read:
    """A read. `name` is its own; `answers` the schema of its document; `is_list`: it comes in batches."""

    name: str
    path: str
    does: str
    answers: str
    parameters: tuple[Parameter, ...]
    look: Callable[[Wanted], Operation[Found]]
    is_list: bool = False


def listed(after: Schema) -> tuple[Parameter, ...]:
    """The parameters that every list has, by what its places are."""
    return (
        Parameter("limit", whole(1, MOST, STANDARD), "How many at most."),
        Parameter("after", after, "Go on from here: as the answer before says in `next`."),
    )
