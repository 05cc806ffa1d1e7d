"""Guard: around the whole application, so that no answer leaves without its headers, not even that of an error in it.

It asks `access` in its order, notes who somebody is for those further in, and writes a line of the log for each answer: method,
path and status, and never a query, a header or a body.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders

from duly.redaction import traceback_of
from duly.web.access import (
    HEADERS,
    Refusal,
    Who,
    by_proxy,
    of_this_machine,
    refuse_change,
    refuse_host,
)
from duly.web.credentials import Doorkeeper, basic
from duly.web.troubles import refusal_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from duly.web.settings import Settings

LOGGER = logging.getLogger("duly.web")

WHO = "duly.who"  # where the scope holds who somebody is


class Guard:
    """An application that is answered for only where access allows. `end` ends its streams, in the loop's thread."""

    def __init__(self, inner: ASGIApp, settings: Settings, end: Callable[[], None] = lambda: None) -> None:
        self._inner = inner
        self.end = end
        self._settings = settings
        self._doorkeeper = None if settings.credentials is None else Doorkeeper(settings.credentials)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there is no websocket here
        began, status = monotonic(), 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        scope = self._under_root(scope)
        try:
            refusal = await self._refuse_or_fail(scope)
            if refusal is None:
                await self._inner(scope, receive, send_guarded)
            else:
                await refusal_answer(scope, refusal)(scope, receive, send_guarded)
        finally:
            path = scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0]
            took = round(1_000 * (monotonic() - began))
            LOGGER.info("%s %s %d %dms", scope["method"], path[:500], status, took)

    def _under_root(self, scope: Scope) -> Scope:
        """The scope with the path that the dashboard stands under, whether or not a proxy has cut it off."""
        root = self._settings.root_path
        if not root:
            return scope
        path = scope["path"]
        if path == root:
            path = f"{root}/"  # as somebody types it
        elif not path.startswith(f"{root}/"):
            path = root + path
        return {**scope, "root_path": root, "path": path}

    async def _refuse_or_fail(self, scope: Scope) -> Refusal | None:
        """As `_refuse`. Where that fails, as what an application says of who somebody is may, nobody is let in."""
        try:
            return await self._refuse(scope)
        except Exception as e:
            LOGGER.error("%s", traceback_of(e))
            return Refusal(500, "Who this is cannot be told; the server's log says why.", "duly web --help")

    async def _refuse(self, scope: Scope) -> Refusal | None:
        headers, settings = Headers(scope=scope), self._settings
        refusal = refuse_host(headers.get("host", ""), settings.hosts)
        if refusal is not None:
            return refusal
        who = await self._who(scope, headers)
        if isinstance(who, Refusal):
            return who
        scope[WHO] = who
        return refuse_change(scope["method"], headers, allow_writes=settings.allow_writes)

    async def _who(self, scope: Scope, headers: Headers) -> Who | Refusal:
        """Who somebody is, by the first way that knows them."""
        settings = self._settings
        peer = scope["client"][0] if scope.get("client") else None
        if not settings.asks_who:
            return of_this_machine(headers, peer)
        if settings.identify is not None and (name := settings.identify(scope)) is not None:
            return Who(name, "the application")
        if settings.trust is not None and len(headers.getlist(settings.trust.header)) > 1:
            # A proxy that adds its word to what it was sent passes on a name that anybody may have chosen.
            return Refusal(403, f"The header {settings.trust.header} came more than once.", "duly web --help")
        said = by_proxy(headers, peer, settings)
        if said is not None:
            return said
        return await self._by_credentials(headers.get("authorization", ""))

    async def _by_credentials(self, shown: str) -> Who | Refusal:
        doorkeeper = self._doorkeeper
        if doorkeeper is None:
            return Refusal(401, "Nobody said who you are.", "duly web --help")
        kind, _, rest = shown.partition(" ")
        if kind.lower() == "bearer" and doorkeeper.by_token(rest.strip()):
            return Who("token", "token")
        pair = basic(shown)
        if pair is not None:
            name, password = pair
            # A browser has a form for names and passwords, and none for tokens: a token is taken for the password of anybody.
            if doorkeeper.by_token(password):
                return Who("token", "token")
            if doorkeeper.remembers(name, password) or await asyncio.to_thread(doorkeeper.by_password, name, password):
                return Who(name, "password")
        return Refusal(
            401, "Say who you are: a name and password, or the token as a password.", "duly web --help", "Basic"
        )
