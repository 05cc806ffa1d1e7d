"""Body: what a request sends, as a whole: no more than is read, and no later than it is waited for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from duly.errors import Misuse

if TYPE_CHECKING:
    from starlette.requests import Request

LONGEST = 64_000
PATIENCE_SECONDS = 20.0  # who sends byte after byte holds one of the few connections


class TooLong(Misuse):
    """The body is longer than is read."""


class TooSlow(Misuse):
    """The body was not there in time; nothing was done."""


async def body_of(request: Request) -> bytes:
    """The body. Raises `TooLong` and `TooSlow`."""
    body = b""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > LONGEST:
                    raise TooLong(f"body: {LONGEST} bytes are read, and no more")
    except TimeoutError:
        raise TooSlow(f"body: it was not there within {PATIENCE_SECONDS:.0f} s; nothing was done") from None
    return body
