"""Body: JSON as it is sent: one object, in UTF-8, of which no name comes twice and every number is one (RFC 8259)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.web.body import body_of

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from starlette.requests import Request

JSON = "application/json"


class NotJson(Misuse):
    """The body is to be sent as application/json."""


async def object_of(request: Request) -> dict[str, Any]:
    """The object that a request sends. Raises `NotJson`, `Misuse`, and as `body_of`."""
    kind, _, beside = request.headers.get("content-type", "").partition(";")
    charset = beside.strip().lower()
    if kind.strip().lower() != JSON or charset not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise NotJson(f"content-type: send {JSON} in UTF-8")
    return parsed(await body_of(request))


def parsed(body: bytes) -> dict[str, Any]:
    """The object of a body. Raises `Misuse`. Pure."""
    try:
        found = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_refuse)
    except Misuse:
        raise
    except (ValueError, RecursionError):  # a number of too many digits is a ValueError as well
        raise Misuse("body: it is no JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise Misuse("body: send an object, as {}")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Misuse(f"body: {twice[:40]!r} is given twice; leave one out")
    return found


def _refuse(constant: str) -> NoReturn:
    raise Misuse(f"body: {constant} is no number of JSON")
