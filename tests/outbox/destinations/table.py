"""A table of what receivers do and what duly makes of it: told by the tests, and printed in docs/destinations.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from duly.outbox.destinations import Delivered, Message, NotSent, Refused, Unknown

SAID = {Delivered: "delivered", NotSent: "not sent", Refused: "refused", Unknown: "unknown"}
BODY_SECRET = "body-5ecret-of-ada"
MESSAGE = Message(
    key="5f0c6d2e-1b5a-5c3f-9d67-0a4be1d2c3f4",
    run="invoice-export:2026-10-05[Europe/Berlin]",
    name="invoice",
    body=f'{{"for": "{BODY_SECRET}"}}'.encode(),
)


class Row(NamedTuple):
    """What the other side does, what that means, and how it is done: whatever the test of the kind makes of it.

    `cause`: the whole of what is said of it, where it is worth pinning. `more`: what the answer has besides, as a page says it.
    """

    does: str
    means: type[Any]
    how: Callable[..., Any]
    cause: str = ""
    more: str = ""


def printed(rows: tuple[Row, ...]) -> str:
    """The table as the page has it."""
    lines = ["| what happens | it is |", "|---|---|"]
    lines += [f"| {row.does} | {SAID[row.means]}{', ' + row.more if row.more else ''} |" for row in rows]
    return "\n".join(lines)


def names(rows: tuple[Row, ...]) -> list[str]:
    """What the tests of a table are called."""
    return [row.does.replace(" ", "_").replace("`", "") for row in rows]


def agrees(outcome: object, row: Row, *secrets: str) -> None:
    """The outcome is the one of the row, and shows no secret."""
    assert type(outcome) is row.means, (outcome, row)
    if row.cause:
        said = outcome.evidence if isinstance(outcome, Delivered) else outcome.cause  # type: ignore[attr-defined]
        assert said == row.cause
    shown = repr(outcome)
    assert len(shown) < 400
    for secret in (BODY_SECRET, *secrets):
        assert secret not in shown
    more = []
    if isinstance(outcome, NotSent | Unknown) and outcome.retry_after is not None:
        more.append(f"not before {outcome.retry_after // 1_000_000} s")
    if isinstance(outcome, Unknown) and outcome.stored:
        more.append("and sending it again tells nothing")
    assert ", ".join(more) == row.more
