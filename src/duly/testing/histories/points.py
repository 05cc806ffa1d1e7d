"""Points: where an actor stops, so that others may go on, or it may die.

An operation of the ledger stops at each `Ask`. A script stops besides where its transactions begin and end, and where it
hands its connection to code of its own. Two points are *independent* where their order changes nothing that either sees or
leaves behind: of histories that differ only in the order of such points, one is as good as all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from duly.ledger.ask import Ask, Statement

READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE = "read committed", "repeatable read", "serializable"


class Begin:
    """A transaction begins. SQLite knows one isolation, and there a writer excludes every other."""

    def __init__(self, isolation: str = READ_COMMITTED) -> None:
        self.isolation = isolation

    def __await__(self) -> Generator[Begin, Any, None]:
        yield self


class Commit:
    """A transaction is committed."""

    def __await__(self) -> Generator[Commit, Any, None]:
        yield self


class Rollback:
    """A transaction is given up. Where none is open, nothing happens."""

    def __await__(self) -> Generator[Rollback, Any, None]:
        yield self


class Use:
    """Code that is no operation of the ledger uses the actor's connection: one step, whatever it does."""

    def __init__(self, name: str, act: Callable[[Any], object]) -> None:
        self.name = name
        self.act = act

    def __await__(self) -> Generator[Use, Any, Any]:
        return (yield self)


Point: TypeAlias = Ask | Begin | Commit | Rollback | Use


def name_of(point: Point) -> str:
    """What a point is called in a story."""
    match point:
        case Ask():
            return point.want if point.statement is None else point.statement.name
        case Begin(isolation=isolation):
            return "begin" if isolation == READ_COMMITTED else f"begin {isolation}"
        case Use(name=name):
            return name
        case _:
            return type(point).__name__.lower()


# -- what a point touches ----------------------------------------------------------------------------------------------

ANYTHING = "*"

Tables: TypeAlias = frozenset[str]
NONE: Tables = frozenset()

# A row that points to another holds that one's key while it is written.
_POINTS_TO = {
    "skipped": {"series"},
    "adhoc": {"series"},
    "series": {"line"},
    "line": {"job"},
    "version": {"job"},
    "former_name": {"job"},
    "backfill": {"series"},
    "backfill_run": {"backfill"},
    "received": {"source"},
    "receiving": {"source"},
}

# Nobody decides by what was told, and the clock stands still.
_TOLD = frozenset(("event", "meta", "clock"))

# What of a line ever changes: a statement that names none of it reads only which line it is.
_OF_A_LINE = ("holder_", "opened_until", "next_due", "starts", "ends", "undeclared_at", "paused_", "live_claims")


class Touched:
    """The tables that a statement reads, those it changes, and those in which it may have to wait or keep others waiting."""

    __slots__ = ("changes", "locks", "reads")

    def __init__(self, reads: Tables = NONE, changes: Tables = NONE, locks: Tables = NONE) -> None:
        self.reads = reads
        self.changes = changes
        self.locks = locks | changes


class Footprint:
    """What an actor's next step touches, and what it makes visible to others."""

    __slots__ = ("isolation", "shows", "touched")

    def __init__(self, touched: Touched, *, shows: Tables = NONE, isolation: str = READ_COMMITTED) -> None:
        self.touched = touched
        self.shows = shows
        self.isolation = isolation


def independent(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two actors' next steps changes nothing that anybody sees. Pure."""
    if _is_shown(one, other) or _is_shown(other, one) or overlap(one.touched.locks, other.touched.locks):
        return False
    if one.isolation == other.isolation == SERIALIZABLE:  # judged by what was read, too, and by who commits first
        return not (
            overlap(one.touched.reads, other.touched.locks)
            or overlap(one.touched.locks, other.touched.reads)
            or (one.shows and other.shows)
        )
    return True


def _is_shown(one: Footprint, other: Footprint) -> bool:
    """Whether one makes visible what the other looks at."""
    return overlap(one.shows, other.touched.reads | other.touched.locks)


def overlap(some: Tables, others: Tables) -> bool:
    """Whether two sets of tables meet."""
    if ANYTHING in some or ANYTHING in others:
        return bool(some and others)
    return not some.isdisjoint(others)


ALL_OF_IT = Touched(changes=frozenset((ANYTHING,)))
NOTHING = Touched()


def touched_by(point: Point | None) -> Touched:
    """What a point touches."""
    match point:
        case Ask(statement=Statement() as statement):
            found = _known.get(statement)
            if found is None:
                found = _known[statement] = _touched(statement.sql)
            return found
        case Use():
            return ALL_OF_IT
        case _:
            return NOTHING


_known: dict[Statement, Touched] = {}


def _touched(sql: str) -> Touched:
    named = re.findall(r"\bduly_(\w+)", sql)
    if not named:
        return _touched_by_a_user(sql.lower())
    writes = not sql.lstrip().startswith(("select", "with"))
    changes = frozenset(named[:1]) if writes else NONE
    others = frozenset(named) - changes
    locks = others if any(token in sql for token in ("{share}", "{lock}", "{still}", "{alone}", "{free}")) else NONE
    locks = locks.union(*(_POINTS_TO.get(table, ()) for table in changes))
    if not any(column in sql for column in _OF_A_LINE):
        others -= {"line"}
    return Touched(others - _TOLD, changes - _TOLD, locks - _TOLD)


def _touched_by_a_user(sql: str) -> Touched:
    """Which words of it are tables is not known: all count."""
    named = re.findall(r"[a-z_]\w*", sql)
    if (
        named[:1] == ["select"] and "from" not in named
    ):  # it calls a function, as `duly.complete`, which may do anything
        return ALL_OF_IT
    words = frozenset(named) - _SQL
    looks = named[:1] == ["select"] and "for" not in named
    return Touched(reads=words) if looks else Touched(changes=words)


_SQL = frozenset(re.findall(r"\w+", "insert into values select from where update set delete and or not null is in"))
