"""Problems: what goes wrong in the API, as RFC 9457 has it, with what is ours: `code`, the `field`, the `next_step`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KIND = "application/problem+json"

# As the registry of HTTP has them: of `about:blank` the title is that (RFC 9457, 4.2.1).
REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def problem(
    status: int,
    code: str,
    says: str,
    next_step: str = "",
    *,
    field: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer that says what is wrong, and what to do next."""
    told = {
        "type": "about:blank",
        "title": REASONS.get(status, "Error"),
        "status": status,
        "detail": says,
        "code": code,
    }
    if field:
        told["field"] = field
    if next_step:
        told["next_step"] = next_step
    return Response(json.dumps(told), status, dict(headers or {}), KIND)


def field_of(says: str, known: Iterable[str]) -> str:
    """The field that an error names; empty where it names none of those there are. Pure."""
    named = re.match(r"([A-Za-z0-9_-]+): ", says)
    return named[1] if named is not None and named[1] in known else ""
