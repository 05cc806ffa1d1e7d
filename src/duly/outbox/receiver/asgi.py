"""The `Idempotency-Key` header before an ASGI application.

app = IdempotencyKey(app, duly.aio.postgres(URL), source="orders", remembers="30d")

async def place_order(request):                 # of Starlette or FastAPI: request.scope["duly.request"]
    async with pool.connection() as tx:
        if received := await request.scope["duly.request"].receive(tx):
            …                                   the effect, in the same transaction
            await received.answer(body, status=201)     if it is to be stored with it; else the middleware does
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from duly.outbox.receiver.door import (
    AsyncDoor,
    AsyncRequest,
    instead_of,
    instead_of_error,
    more_headers,
    note_unreceived,
    wants_answer,
)
from duly.outbox.receiver.http import (
    FIRST_SENT,
    KEY,
    Response,
    Rules,
    delivery_or_problem,
    rules_of,
    too_long,
    whole_headers,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from duly.outbox.receiver import HasAsyncStore

    Scope: TypeAlias = dict[str, Any]
    Message: TypeAlias = dict[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

NAME = "duly.request"


class IdempotencyKey:
    """An ASGI application that applies what is behind it once for each key.

    `source` names the endpoint, or says of a scope whose key it brings; None lets the request pass unguarded. The other
    settings are those of `duly.outbox.receiver.http.rules_of`.
    """

    def __init__(
        self,
        application: Application,
        ledger: HasAsyncStore,
        *,
        source: str | Callable[[Scope], str | None],
        **rules: Any,
    ) -> None:
        self._application = application
        self._door = AsyncDoor(ledger.store, rules_of(**rules))
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rules = self._door.rules
        source = _source_of(scope, self._source) if scope["type"] == "http" else None
        if source is None or scope["method"] not in rules.methods:
            return await self._application(scope, receive, send)
        length = "".join(_values(scope, "content-length"))
        if length.isdigit() and int(length) > rules.longest_request:
            return await _send_whole(too_long(rules), send)
        body = await _body_of(receive, rules.longest_request)
        if body is _GONE:
            return None
        request = _request_of(scope, source, rules, body) if isinstance(body, bytes) else too_long(rules)
        if isinstance(request, Response):
            return await _send_whole(request, send)
        if (told := await self._door.enter(request)) is not None:
            return await _send_whole(told, send)
        assert isinstance(body, bytes)
        return await self._answered(scope, request, _read_again(body, receive), send)

    async def _answered(self, scope: Scope, request: AsyncRequest, receive: Receive, send: Send) -> None:
        answering = _Answering(self._door, request, send)
        try:
            await self._application({**scope, NAME: request}, receive, answering)
        except Exception as e:
            told = instead_of_error(request, e)
            if told is None or answering.has_begun:
                raise
            await _send_whole(told, send)
        finally:
            await answering.leave(None)


class _Answering:
    """Sends what the application answers. Where that is to be stored it is held until it has been; else it passes."""

    def __init__(self, door: AsyncDoor, request: AsyncRequest, send: Send) -> None:
        self._door = door
        self._request = request
        self._send = send
        self._start: Message | None = None  # that is held
        self._held = b""
        self._replaced = False
        self._has_left = False
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                await self._begin(message)
            case "http.response.body" if self._start is not None:
                await self._hold(message)
            case _ if not self._replaced:
                await self._let_go()
                await self._send(message)

    async def _begin(self, message: Message) -> None:
        self.has_begun = True
        status = message["status"]
        note_unreceived(self._request, status)
        told = instead_of(self._request, status)
        if told is not None:
            self._replaced = True
            await self.leave(None)
            await _send_whole(told, self._send)
            return
        message = {**message, "headers": [*message.get("headers", ()), *_raw(more_headers(self._request))]}
        if wants_answer(self._request, status):
            self._start = message
            return
        await self.leave(None)  # before the client hears of it, and asks again
        await self._send(message)

    async def _hold(self, message: Message) -> None:
        assert self._start is not None
        self._held += message.get("body", b"")
        more = message.get("more_body", False)
        if more and len(self._held) <= self._door.rules.longest_answer:
            return
        start, self._start = self._start, None
        # A longer one is not stored: it passes from here on.
        await self.leave(None if more else Response(start["status"], _plain(start["headers"]), self._held))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": self._held, "more_body": more})

    async def _let_go(self) -> None:
        """Send what was held: an answer that goes on by an extension of the server's, as a file, is not stored."""
        if self._start is not None:
            start, self._start = self._start, None
            await self.leave(None)
            await self._send(start)

    async def leave(self, response: Response | None) -> None:
        """Leave by the door, once."""
        if not self._has_left:
            self._has_left = True
            await self._door.leave(self._request, response)


class _Gone:
    """The client went away before it had sent its request."""


_GONE = _Gone()


async def _body_of(receive: Receive, longest: int) -> bytes | _Gone | None:
    """The request's body; None where it is longer than that."""
    parts, length = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return _GONE
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > longest:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _read_again(body: bytes, receive: Receive) -> Receive:
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def _source_of(scope: Scope, source: str | Callable[[Scope], str | None]) -> str | None:
    return source if isinstance(source, str) else source(scope)


def _request_of(scope: Scope, source: str, rules: Rules, body: bytes) -> AsyncRequest | Response:
    found = delivery_or_problem(
        rules,
        source=source,
        method=scope["method"],
        target=scope["path"] + "?" + scope.get("query_string", b"").decode("latin-1"),
        keys=_values(scope, KEY),
        first_sent=_values(scope, FIRST_SENT),
        body=body,
    )
    return found if isinstance(found, Response) else AsyncRequest(found)


def _values(scope: Scope, name: str) -> list[str]:
    wanted = name.lower().encode()
    return [value.decode("latin-1") for found, value in scope["headers"] if found.lower() == wanted]


def _raw(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _plain(headers: Any) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


async def _send_whole(response: Response, send: Send) -> None:
    headers = _raw(whole_headers(response))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
