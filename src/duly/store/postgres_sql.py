"""The ledger's statements as PostgreSQL wants them, for whichever driver carries them: parameters are still `:name`."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.ledger.ask import Statement

CLOCK = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"  # now() stands still inside a transaction (I4)
CLOCK_BY_HAND = "(select at from duly.clock)"

SPANS = """(select (value->>0)::bigint as series, (value->>1)::bigint as first, (value->>2)::bigint as last
          from jsonb_array_elements(cast(:spans as jsonb))) spans"""

# A planner that knows nothing of what is in a text would rather read the whole table, once, for all spans. It is not asked.
IN_SPANS = r"""lateral (
        select of_span.*
          from \1 of_span
         where of_span.series = spans.series and of_span.nominal between spans.first and spans.last
        offset 0)"""

PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
_TABLE = re.compile(r"\bduly_(\w+)")
_IN_SPANS = re.compile(r"{in_spans}(\w+)")

_spelled: dict[tuple[Statement, str], str] = {}


def clock_sql(by_hand: bool) -> str:
    """The instant, in microseconds, as an expression: by the database's clock, or by the one that a test set by hand."""
    return CLOCK_BY_HAND if by_hand else CLOCK


def spell(statement: Statement, clock: str) -> str:
    """A statement's text for PostgreSQL, with its tables in the schema duly."""
    ready = _spelled.get((statement, clock))
    if ready is None:
        ready = _TABLE.sub(r"duly.\1", _IN_SPANS.sub(IN_SPANS, statement.sql))
        tokens: Mapping[str, str] = {
            "{now}": clock,
            "{or_rollback}": "",
            "{share}": "for key share",
            "{lock}": "for no key update",
            "{still}": "for share",
            "{alone}": "for update",
            "{free}": "for no key update skip locked",
            "{spans}": SPANS,
            "{beside}": "",
            "{lockable}": "pg_try_advisory_xact_lock(:lock)::int",
            "{absent}": "and not exists (select 1 from duly.run where series = :series and nominal = :nominal)",
        }
        for token, text in tokens.items():
            ready = ready.replace(token, text)
        _spelled[statement, clock] = ready
    return ready


def as_pyformat(sql: str) -> str:
    """The same text with its parameters as `%(name)s`."""
    return PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
