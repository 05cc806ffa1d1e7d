"""Servers of a shop behind the middleware, as processes that can be killed: `python -m tests.receiver.serving KIND PLACE`.

`POST /orders?do=…` with a note as its body: the note is applied in the application's own transaction, under the request's key.
What is to go wrong is said by `do`, with commas. A point `stop-…` says its name on stdout and waits for a byte on stdin.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import aiosqlite
import psycopg

import duly
import duly.aio

RULES: dict[str, Any] = {"source": "orders", "remembers": "30d", "lease": "1m", "longest_answer": 1000}
BUSY = 1  # seconds that the application waits for another writer of SQLite
INSERT = "insert into applied values ('{note}')"


class Broken(Exception):
    """The application has a fault."""


class BackedOut(Exception):
    """The application thinks better of it: it rolls back, and says that the request was a bad one."""


def stop(point: str, do: str) -> None:
    if point in do.split(","):
        print(point, flush=True)  # noqa: T201  whoever started it reads it
        if os.read(0, 1) == b"x":  # each of those that wait takes one
            raise BackedOut


def said(do: str, note: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """What the application answers."""
    status = {"refuse": 409, "fail-after": 500}.get(do, 201)
    body = f"applied {note}".encode() + b"." * (2000 if do == "long" else 0)
    return status, [("Content-Type", "text/plain"), ("Location", f"/orders/{note}"), ("Set-Cookie", "session=1")], body


def stored(do: str, note: str) -> dict[str, Any]:
    """What the application stores in its own transaction, where it does."""
    if "empty" in do.split(","):
        return {"status": 204, "headers": {"X-Who": "Zo\xeb"}}
    headers = [("Content-Type", "text/plain"), ("Link", "</a>"), ("Link", "</b>"), ("X-Who", "Zo\xeb")]
    return {"body": f"stored {note}", "status": 201, "headers": headers}


# -- WSGI ---------------------------------------------------------------------------------------------------------------


def wsgi(place: str) -> Any:
    from duly.outbox.receiver.wsgi import IdempotencyKey

    @contextmanager
    def transaction() -> Iterator[Any]:
        connected: Any = psycopg.connect(place) if "://" in place else sqlite3.connect(place, timeout=BUSY)
        with closing(connected) as connection, connection:
            yield connection

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        do = parse_qs(environ.get("QUERY_STRING", "")).get("do", [""])[0]
        note = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        stop("stop-before", do)
        status, headers, body = said(do, note)
        with suppress(BackedOut), transaction() as tx:
            status, committed = 400, status
            request = environ.get("duly.request")
            received: Any = do == "forgetful" or request is None or request.receive(tx)
            if received:
                tx.execute(INSERT.format(note=note))
                stop("stop-within", do)
                if "store" in do.split(","):
                    received.answer(**stored(do, note))
                if do == "fail":
                    raise Broken
            status = committed
        stop("stop-after", do)
        start_response(f"{status} Status", headers)
        return [body]

    def caught(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """As a framework does: an error is a 500."""
        try:
            return application(environ, start_response)
        except Exception as e:
            start_response("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [type(e).__name__.encode()]

    return IdempotencyKey(caught, duly.postgres(place) if "://" in place else duly.sqlite(place), **RULES)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve_wsgi(application: Any) -> None:
    with make_server("127.0.0.1", 0, application, server_class=Server, handler_class=Quiet) as server:
        print(server.server_port, flush=True)  # noqa: T201
        server.serve_forever()


# -- Django -------------------------------------------------------------------------------------------------------------


def django(place: str) -> Any:
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.db import connections

    from tests.borrowed.callers import described_for_django  # it has set Django up, without a database

    waits = {} if "://" in place else {"OPTIONS": {"timeout": BUSY}}
    settings.DATABASES = {"default": {**described_for_django(place), **waits}}
    connections.settings = connections.configure_settings(settings.DATABASES)
    settings.ROOT_URLCONF = "tests.receiver.serving"
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.MIDDLEWARE = [
        "django.middleware.common.CommonMiddleware",  # says how long an answer is
        "tests.receiver.serving.idempotency_key",
    ]
    return get_wsgi_application()


def idempotency_key(get_response: Any) -> Any:
    from duly.outbox.receiver.django import IdempotencyKey

    return IdempotencyKey(get_response, duly.django(), **RULES)


def place_order(http_request: Any) -> Any:
    from django.db import connection, transaction
    from django.http import HttpResponse

    do, note = http_request.GET.get("do", ""), http_request.body.decode()
    stop("stop-before", do)
    status, headers, body = said(do, note)
    with suppress(BackedOut), transaction.atomic():
        status, committed = 400, status
        request = getattr(http_request, "duly", None)
        received: Any = do == "forgetful" or request is None or request.receive(connection)
        if received:
            with connection.cursor() as cursor:
                cursor.execute(INSERT.format(note=note))
            stop("stop-within", do)
            if "store" in do.split(","):
                received.answer(**stored(do, note))
            if do == "fail":
                raise Broken
        status = committed
    stop("stop-after", do)
    response = HttpResponse(body, status=status, headers={n: v for n, v in headers if n != "Set-Cookie"})
    response.set_cookie("session", "1")
    return response


def __getattr__(name: str) -> Any:
    """The project's URLs, which are there once Django is set up."""
    if name == "urlpatterns":
        from django.urls import path

        return [path("orders", place_order)]
    raise AttributeError(name)


# -- ASGI ---------------------------------------------------------------------------------------------------------------


def asgi(place: str) -> Any:
    from duly.outbox.receiver.asgi import IdempotencyKey

    async def connect() -> Any:
        return await (
            psycopg.AsyncConnection.connect(place) if "://" in place else aiosqlite.connect(place, timeout=BUSY)
        )

    async def application(scope: Any, receive: Any, send: Any) -> None:
        do = parse_qs(scope["query_string"].decode()).get("do", [""])[0]
        note = (await receive())["body"].decode()
        await asyncio.to_thread(stop, "stop-before", do)
        status, headers, body = said(do, note)
        tx = await connect()
        try:
            request = scope.get("duly.request")
            received: Any = do == "forgetful" or request is None or await request.receive(tx)
            if received:
                await tx.execute(INSERT.format(note=note))
                await asyncio.to_thread(stop, "stop-within", do)
                if "store" in do.split(","):
                    await received.answer(**stored(do, note))
                if do == "fail":
                    raise Broken
            await tx.commit()
        except BackedOut:
            await tx.rollback()
            status = 400
        finally:
            await tx.close()
        await asyncio.to_thread(stop, "stop-after", do)
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body[:3], "more_body": True})
        await send({"type": "http.response.body", "body": body[3:]})

    return IdempotencyKey(application, duly.aio.postgres(place) if "://" in place else duly.aio.sqlite(place), **RULES)


def serve_asgi(application: Any) -> None:
    import uvicorn

    async def serve() -> None:
        server = uvicorn.Server(uvicorn.Config(application, port=0, lifespan="off", log_level="critical"))
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)  # noqa: T201
        await serving

    asyncio.run(serve())


if __name__ == "__main__":
    kind, place = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if kind == "asgi":
        serve_asgi(asgi(place))
    else:
        serve_wsgi(wsgi(place) if kind == "wsgi" else django(place))
