"""The `Idempotency-Key` header before the views of Django.

ledger = duly.django()                          # in a module of the project, named in MIDDLEWARE

def idempotency_key(get_response):
    return IdempotencyKey(get_response, ledger, source="orders", remembers="30d")

def place_order(request):                       # a view
    with transaction.atomic():
        if received := request.duly.receive(connection):
            …                                   the effect, in the same transaction
            received.answer(body, status=201)   if it is to be stored with it; else the middleware does, afterwards
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpResponse

from duly.outbox.receiver.door import Door, Request, instead_of, instead_of_error, more_headers, note_unreceived
from duly.outbox.receiver.http import FIRST_SENT, KEY, Response, Rules, delivery_or_problem, rules_of, too_long

if TYPE_CHECKING:
    from duly.outbox.receiver import HasStore


class IdempotencyKey:
    """A middleware of Django that lets what is behind it be applied once for each key.

    `source` names the endpoint, or says of a request whose key it brings; None lets the request pass unguarded. The other
    settings are those of `duly.outbox.receiver.http.rules_of`. Its place is before whatever answers a request itself.
    """

    sync_capable = True
    async_capable = False  # Django runs it, and the transactions behind it, in a thread

    def __init__(
        self,
        get_response: Callable[[Any], Any],
        ledger: HasStore,
        *,
        source: str | Callable[[Any], str | None],
        **rules: Any,
    ) -> None:
        self._get_response = get_response
        self._door = Door(ledger.store, rules_of(**rules))
        self._source = source

    def __call__(self, http_request: Any) -> Any:
        rules = self._door.rules
        source = self._source if isinstance(self._source, str) else self._source(http_request)
        if source is None or http_request.method not in rules.methods:
            return self._get_response(http_request)
        request = _request_of(http_request, source, rules)
        if isinstance(request, Response):
            return _sent(request)
        if (told := self._door.enter(request)) is not None:
            return _sent(told)
        return self._answered(http_request, request)

    def _answered(self, http_request: Any, request: Request) -> Any:
        response = None
        try:
            http_request.duly = request
            answer = self._get_response(http_request)
            note_unreceived(request, answer.status_code)
            told = instead_of(request, answer.status_code)
            if told is not None:
                return _sent(told)
            for name, value in more_headers(request):
                answer[name] = value
            if not answer.streaming:
                response = Response(answer.status_code, tuple(answer.items()), answer.content)
            return answer
        finally:
            self._door.leave(request, response)

    def process_exception(self, http_request: Any, error: Exception) -> Any:
        """What a view's exception is answered, where it is a refusal of its key; else None, and Django's answer."""
        request = getattr(http_request, "duly", None)
        told = None if request is None else instead_of_error(request, error)
        return None if told is None else _sent(told)


def _request_of(http_request: Any, source: str, rules: Rules) -> Request | Response:
    length = http_request.META.get("CONTENT_LENGTH") or "0"
    if not str(length).isdigit() or int(length) > rules.longest_request:
        return too_long(rules)
    try:
        body = http_request.body
    except RequestDataTooBig:
        return too_long(rules)
    found = delivery_or_problem(
        rules,
        source=source,
        method=http_request.method,
        target=http_request.get_full_path(),
        keys=_values(http_request, KEY),
        first_sent=_values(http_request, FIRST_SENT),
        body=body,
    )
    return found if isinstance(found, Response) else Request(found)


def _values(http_request: Any, name: str) -> list[str]:
    value = http_request.headers.get(name)
    return [] if value is None else [value]


def _sent(response: Response) -> Any:
    sent = HttpResponse(response.body, status=response.status)
    del sent["Content-Type"]
    for name, value in response.headers:
        # One that comes twice is a list (RFC 9110, 5.3); Django has each name once.
        sent[name] = f"{sent[name]}, {value}" if name in sent else value
    return sent
