"""The `Idempotency-Key` header before a WSGI application (PEP 3333).

application = IdempotencyKey(application, duly.postgres(URL), source="orders", remembers="30d")

def application(environ, start_response):
    with pool.connection() as tx:
        if received := environ["duly.request"].receive(tx):
            …                                   the effect, in the same transaction
            received.answer(body, status=201)   if it is to be stored with it; else the middleware does, afterwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

from duly.outbox.receiver.door import Door, Request, instead_of, instead_of_error, more_headers, note_unreceived
from duly.outbox.receiver.http import (
    FIRST_SENT,
    KEY,
    Response,
    Rules,
    delivery_or_problem,
    problem,
    rules_of,
    too_long,
    whole_headers,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from duly.outbox.receiver import HasStore

    Environ: TypeAlias = dict[str, Any]
    Application: TypeAlias = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

NAME = "duly.request"


class IdempotencyKey:
    """A WSGI application that applies what is behind it once for each key.

    `source` names the endpoint, or says of an environ whose key it brings; None lets the request pass unguarded. The other
    settings are those of `duly.outbox.receiver.http.rules_of`.
    """

    def __init__(
        self,
        application: Application,
        ledger: HasStore,
        *,
        source: str | Callable[[Environ], str | None],
        **rules: Any,
    ) -> None:
        self._application = application
        self._door = Door(ledger.store, rules_of(**rules))
        self._source = source

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        rules = self._door.rules
        source = self._source if isinstance(self._source, str) else self._source(environ)
        if source is None or environ["REQUEST_METHOD"] not in rules.methods:
            return self._application(environ, start_response)
        request = _request_of(environ, source, rules)
        if isinstance(request, Response):
            return _send(request, start_response)
        if (told := self._door.enter(request)) is not None:
            return _send(told, start_response)
        return _send(self._answered(environ, request), start_response)

    def _answered(self, environ: Environ, request: Request) -> Response:
        response = None
        try:
            environ[NAME] = request
            try:
                response = _answer_of(self._application, environ)
            except Exception as e:
                told = instead_of_error(request, e)
                if told is None:
                    raise
                return told
            note_unreceived(request, response.status)
            told = instead_of(request, response.status)
            return told or Response(response.status, (*response.headers, *more_headers(request)), response.body)
        finally:
            self._door.leave(request, response)


def _request_of(environ: Environ, source: str, rules: Rules) -> Request | Response:
    body = _body_of(environ, rules)
    if isinstance(body, Response):
        return body
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(body), str(len(body))
    # A server joins a header that came twice with commas, which no key has, or gives one of them.
    target = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") + "?" + environ.get("QUERY_STRING", "")
    found = delivery_or_problem(
        rules,
        source=source,
        method=environ["REQUEST_METHOD"],
        target=target,
        keys=_values(environ, KEY),
        first_sent=_values(environ, FIRST_SENT),
        body=body,
    )
    return found if isinstance(found, Response) else Request(found)


def _body_of(environ: Environ, rules: Rules) -> bytes | Response:
    told = environ.get("CONTENT_LENGTH") or ""
    # PEP 3333 leaves open whether the end of a body without a length can be read; some servers say that it can.
    if not told.isdigit() and environ.get("HTTP_TRANSFER_ENCODING") and not environ.get("wsgi.input_terminated"):
        return problem(411, "length-missing", "Send the Content-Length of a request with a key.")
    most = rules.longest_request + 1
    if told.isdigit() and int(told) >= most:
        return too_long(rules)
    length = int(told) if told.isdigit() else most if environ.get("HTTP_TRANSFER_ENCODING") else 0
    body: bytes = environ["wsgi.input"].read(length)
    return too_long(rules) if len(body) == most else body


def _values(environ: Environ, name: str) -> list[str]:
    value = environ.get("HTTP_" + name.upper().replace("-", "_"))
    return [] if value is None else [value]


def _answer_of(application: Application, environ: Environ) -> Response:
    """The whole of an application's answer: it is sent when it has been stored."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], Any]:
        started[:] = [(status, headers)]
        return written.append

    chunks = application(environ, start_response)
    try:
        body = b"".join([*written, *chunks])
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = started[-1]
    return Response(int(status[:3]), tuple(headers), body)


def _send(response: Response, start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response(f"{response.status} {_reason(response.status)}", list(whole_headers(response)))
    return [response.body]


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
