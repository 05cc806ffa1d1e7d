"""Looks: when somebody last looked for what is to be told, so that one row says whether it is time again.

That row is asked at the end of every poke of a host that has alerts. What a look does is `alerts`, which is imported by
whoever looks.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, one

SINCE_LOOK = Statement("since_look", "select {now} - looked_at from duly_look")


async def is_time_to_look(every: int) -> bool:
    """Whether the last look lies so many microseconds back. One in the future, of a clock that was set back, does."""
    since = await one(SINCE_LOOK, int)
    return since is not None and not 0 <= since < every
