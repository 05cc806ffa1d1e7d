"""Troubles: an error as a page, with what is wrong and the next step; and as a document, where a program asked.

What is not there is 404, what cannot be understood 400 and names its field, what access refuses 401, 403 or 421, and a ledger
that cannot be read 503: then a page says that nothing is known, and does not look as though all were well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from duly.errors import (
    BelowHorizon,
    Conflict,
    DulyError,
    KeyInvalid,
    LedgerUnavailable,
    Misuse,
    NameInvalid,
    NoLedger,
    NotAllowed,
    OutcomeUnknown,
    PayloadConflict,
    ReceiptBusy,
    Refused,
    UnknownBackfill,
    UnknownJob,
    UnknownRun,
    UnknownScope,
    WindowInvalid,
    WrongLedger,
)
from duly.web.api import is_api
from duly.web.api.problems import problem

if TYPE_CHECKING:
    from starlette.types import Scope

    from duly.web.access import Refusal

# What an error is answered with, and its name for programs: the one table for pages and API. The first that fits, so that a
# special case stands before its family.
ANSWERS: tuple[tuple[type[DulyError], int, str], ...] = (
    (UnknownJob, 404, "unknown-job"),
    (UnknownRun, 404, "unknown-run"),
    (UnknownScope, 404, "unknown-scope"),
    (UnknownBackfill, 404, "unknown-backfill"),
    (PayloadConflict, 422, "payload-differs"),
    (ReceiptBusy, 409, "in-progress"),
    (OutcomeUnknown, 409, "outcome-unknown"),
    (BelowHorizon, 409, "below-horizon"),
    (NotAllowed, 409, "not-allowed"),
    (Refused, 409, "refused"),
    (KeyInvalid, 400, "key-invalid"),
    (NameInvalid, 400, "name-invalid"),
    (WindowInvalid, 400, "window-invalid"),
    (Misuse, 400, "not-understood"),
    (NoLedger, 503, "no-ledger"),
    (LedgerUnavailable, 503, "ledger-unavailable"),
    (WrongLedger, 503, "wrong-ledger"),
    (Conflict, 503, "busy"),
    (DulyError, 400, "not-done"),
)

TITLES = {
    400: "This cannot be understood",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not there",
    409: "Not as things stand",
    422: "This key was used for something else",
    405: "Not done that way",
    421: "Not this server's name",
    500: "A bug of duly",
    503: "The ledger cannot be read",
}


def status_of(error: DulyError) -> int:
    """The status that an error of duly is answered with. Pure."""
    return next(status for kind, status, _ in ANSWERS if isinstance(error, kind))


def code_of(error: DulyError) -> str:
    """The name that an error of duly has for programs. Pure."""
    return next(code for kind, _, code in ANSWERS if isinstance(error, kind))


def next_step_of(error: DulyError) -> str:
    """A line to type after an error that brought none of its own. Pure."""
    match error:
        case _ if error.next_step:
            return error.next_step
        case UnknownJob() | UnknownScope():
            return "duly jobs list"
        case UnknownRun() | WindowInvalid() | KeyInvalid():
            return "duly runs --format keys"
        case NoLedger():
            return "duly db create"
        case LedgerUnavailable() | WrongLedger() | Conflict():
            return "duly doctor"
    return "duly --help"


def wants_document(path: str) -> bool:
    """Whether a program asked, for what stands at a path."""
    return path.endswith((".json", ".csv"))


def as_document(status: int, says: str, next_step: str) -> Response:
    """A trouble for programs."""
    body = {"schema": "duly.error.v1", "status": status, "error": says, "next_step": next_step or None}
    return Response(json.dumps(body, ensure_ascii=False), status, media_type="application/json")


_BARE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · duly</title></head>
<body><main><h1>{title}</h1><p>{says}</p><p>Next: <code>{step}</code></p></main></body></html>
"""


def refusal_answer(scope: Scope, refusal: Refusal) -> Response:
    """What access refused. It tells nobody whether there is anything, so that it is the same at every path."""
    headers = {}
    if refusal.challenge:
        headers["www-authenticate"] = 'Basic realm="duly", charset="UTF-8"'
    elif refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    if is_api(scope["path"].removeprefix(scope.get("root_path", ""))):
        code = {401: "who", 403: "not-allowed-here", 421: "other-host", 500: "bug"}[refusal.status]
        answer: Any = problem(refusal.status, code, refusal.says, refusal.next_step)
    elif wants_document(scope["path"]):
        answer = as_document(refusal.status, refusal.says, refusal.next_step)
    else:
        from markupsafe import escape

        page = _BARE.format(title=TITLES[refusal.status], says=escape(refusal.says), step=escape(refusal.next_step))
        answer = Response(page, refusal.status, media_type="text/html")
    answer.headers.update(headers)
    result: Response = answer
    return result
