"""Life: a page that is open hears that the ledger has changed, and reads itself again.

A listener gets a stream of server-sent events, each of which says one thing: the ledger's stamp (`store.stamp`). A page has the
stamp in it that it was read after, so that it knows by comparing whether it is still so, also after the server was away. The
stamp is said at once, whenever it is another, and every fifteen seconds, so that silence means that nobody is there. It is
empty while the ledger cannot be read.

One look a second serves all listeners, and without any nobody looks. Nothing waits for a listener: who is slow hears the newest
stamp when he can, and not those before it. A stream is ended after a quarter of an hour, and asked for anew by the browser: so
who may no longer look is noticed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from duly.errors import DulyError, LedgerBusy
from duly.redaction import traceback_of
from duly.web.troubles import as_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from duly.web.reading import Reader

LOGGER = logging.getLogger("duly.web")

EVERY_SECONDS = 1.0
BEAT_SECONDS = 15.0
LASTS_SECONDS = 900.0
AT_MOST = 100
AGAIN_MILLISECONDS = 2_000  # after which a browser asks again whose stream was cut

PATH = "/life"


class Life:
    """The listeners of one dashboard. It is used in one event loop."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._listeners = 0
        self._stamp: str | None = None  # as of the last look; None before the first
        self._news: asyncio.Future[None] | None = None  # done when the stamp is another, or it is over
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False

    async def answer(self, request: Request) -> Response:
        """A stream; 503 where too many listen, or the server ends: then a page asks for itself now and then."""
        if self._is_over or self._listeners >= AT_MOST:
            refused = as_document(
                503, f"no more than {AT_MOST} pages are told of changes; this one asks now and then", ""
            )
            refused.headers["retry-after"] = "30"
            return refused
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _Stream(self)

    def end(self) -> None:
        """End every stream that is open, and begin none: a server that ends waits for what it answers. In the loop's thread."""
        self._is_over = True
        self._tell()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count a listener, and look while there is one."""
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._looking.cancel()
                self._looking = self._stamp = None

    async def events(self) -> AsyncIterator[str]:
        """What a listener is told."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LASTS_SECONDS
        yield f"retry: {AGAIN_MILLISECONDS}\n\n"
        while not self._is_over and loop.time() < until:
            news = self._next_news()
            if self._stamp is not None:
                yield f"data: {self._stamp}\n\n"
            await asyncio.wait({news}, timeout=BEAT_SECONDS)

    # -- looking --------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            stamp = await self._seen()
            if stamp != self._stamp:
                self._stamp = stamp
                self._tell()
            await asyncio.sleep(EVERY_SECONDS)

    async def _seen(self) -> str:
        try:
            return await self._reader.stamp()
        except LedgerBusy:
            return self._stamp or ""  # pages are read, and wait as this does
        except DulyError:
            return ""
        except Exception as e:
            LOGGER.error("%s", traceback_of(e))
            return ""

    def _next_news(self) -> asyncio.Future[None]:
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        return self._news

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class _Stream(StreamingResponse):
    """A stream, counted from its first byte to its last."""

    def __init__(self, life: Life) -> None:
        # nginx would otherwise hold back what comes in small pieces.
        super().__init__(life.events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._life = life

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._life.listening():
            await super().__call__(scope, receive, send)
