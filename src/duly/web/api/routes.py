"""Routes: reads and actions, each at its path. A path has one route, which knows what may be asked of it and refuses the rest.

An action is received under the `Idempotency-Key` of its request, by the receiver that duly gives to others, in the transaction
that does it: who hears no answer asks again with the same key, and is told what was done the first time. One that is only tried
changes nothing, and uses no key up.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from duly.errors import DulyError, KeyInvalid, Misuse, NameInvalid, WindowInvalid
from duly.evidence.documents.window import document
from duly.ledger.receive import LONGEST_KEY
from duly.outbox.receiver.http import KEY, REPLAYED, parse_key
from duly.redaction import traceback_of
from duly.schedule.keys import parse_key as parse_run_key
from duly.web.access import hand_of
from duly.web.action import Given
from duly.web.actions import ACTIONS
from duly.web.api import PREFIX
from duly.web.api.body import NotJson, object_of
from duly.web.api.openapi import description
from duly.web.api.problems import field_of, problem
from duly.web.api.read import Wanted
from duly.web.api.reads import READS
from duly.web.api.values import FLAG, NoSuchField, Parameter, query_of, sent_of
from duly.web.asked import names_of
from duly.web.body import TooLong, TooSlow
from duly.web.guard import WHO
from duly.web.paths import plain
from duly.web.troubles import code_of, next_step_of, status_of
from duly.web.writing import applied, delivery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from duly.web.action import Action
    from duly.web.api.read import Found, Read
    from duly.web.reading import Looker, Reader
    from duly.web.settings import Settings
    from duly.web.writing import Writer

    Answer = Callable[[Request], Awaitable[Response]]

LOGGER = logging.getLogger("duly.web")
JSON = "application/json"

DRY_RUN = Parameter("dry_run", FLAG, "Say what would change, and change nothing.")


class NoKey(Misuse):
    """A change is made once for each Idempotency-Key; send one, the same whenever it is sent again."""


class BadKey(Misuse):
    """What was sent is no Idempotency-Key."""


# What goes wrong before the ledger is asked, besides what `troubles` has.
_OURS: dict[type[DulyError], tuple[int, str]] = {
    NoKey: (400, "key-missing"),
    BadKey: (400, "key-invalid"),
    NotJson: (415, "not-json"),
    TooLong: (413, "too-long"),
    TooSlow: (408, "too-slow"),
}


class Api:
    """Reads and actions of a ledger."""

    def __init__(self, reader: Reader, writer: Writer | None, settings: Settings) -> None:
        self._reader = reader
        self._writer = writer
        self._settings = settings

    def routes(self) -> list[Route]:
        """All of them; a path that is the beginning of another's comes after it."""
        made = [Route(f"{PREFIX}/openapi.json", Path({"GET": self._description}, ()))]
        made += [Route(PREFIX + plain(each.path), Path({"POST": self._change(each)}, _names(each))) for each in ACTIONS]
        made += [Route(PREFIX + plain(each.path), Path({"GET": self._look(each)}, _asked(each))) for each in READS]
        return made

    async def _description(self, request: Request) -> Response:
        query_of((), _query(request))
        root = request.scope.get("root_path", "")
        told = description(f"{quote(root)}{PREFIX}", asks_who=self._settings.asks_who)
        return Response(json.dumps(told, indent=2, ensure_ascii=False), media_type=JSON)

    def _look(self, read: Read) -> Answer:
        async def answer(request: Request) -> Response:
            wanted = Wanted(_path(request), query_of(read.parameters, _query(request)))

            def work(looker: Looker) -> Found:
                return looker.read(lambda: read.look(wanted))

            found = await self._reader.within(work)
            if not read.is_list:
                return _json(document(read.answers, found.facts))
            there = None if found.after is None else _link(request, found.after)
            body = document(read.answers, {**found.facts, "next": there})
            return _json(body, {} if there is None else {"link": f'<{there}>; rel="next"'})

        return answer

    def _change(self, action: Action) -> Answer:
        async def answer(request: Request) -> Response:
            is_tried = query_of((DRY_RUN,), _query(request))[DRY_RUN.name]
            key = _key(request)
            fields = action.read(sent_of(action.fields, await object_of(request)))
            given = Given(_path(request), fields, hand_of(request.scope.get(WHO)))
            received = delivery(action, given, key)
            assert self._writer is not None  # a change is refused before it comes here, where there is none
            if is_tried:
                done = await self._writer.change(lambda: action.act(given), dry_run=True)
                return _json(document(done.schema, {**done.facts, "dry_run": True}))
            made = await self._writer.change(lambda: applied(received, action, given))
            headers = {REPLAYED.lower(): "true"} if made.replayed else {}
            leads = action.leads(json.loads(made.document)).partition("?")[0]
            return _json(made.document, {**headers, "location": f"{_root(request)}{PREFIX}{leads}"})

        return answer


def _names(action: Action) -> tuple[str, ...]:
    return KEY, DRY_RUN.name, *(field.name for field in action.fields)


def _asked(read: Read) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in read.parameters)


class Path:
    """What may be asked of a path, by method. `names`: of what an error may name."""

    def __init__(self, methods: dict[str, Answer], names: tuple[str, ...]) -> None:
        self._methods = methods
        self._names = (*names, "body", "content-type")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        answer = self._methods.get(method)
        if answer is None:
            allowed = ", ".join(("GET", "HEAD") if "GET" in self._methods else tuple(self._methods))
            says = f"{request.method[:20]} is not for this path; {allowed} is."
            return problem(405, "method", says, headers={"allow": allowed})
        try:
            return await answer(request)
        except DulyError as e:
            return self._problem(request, e)
        except Exception as e:  # a bug is logged, without secrets, and told of without a word of it
            LOGGER.error("%s", traceback_of(e))
            return problem(500, "bug", "Something went wrong that nobody foresaw; the server's log says where.")

    def _problem(self, request: Request, error: DulyError) -> Response:
        status, code = _OURS.get(type(error)) or (status_of(error), code_of(error))
        if "key" in request.path_params and isinstance(error, (KeyInvalid, NameInvalid, WindowInvalid)):
            status = 404  # what a path names and there is not
        headers = {"retry-after": "1"} if status == 503 or code == "in-progress" else {}
        step = "" if error.next_step is None and isinstance(error, Misuse) else next_step_of(error)
        says = str(error)
        field = error.field if isinstance(error, NoSuchField) else field_of(says, self._names)
        return problem(status, code, says, step, field=field, headers=headers)


def _path(request: Request) -> dict[str, str]:
    """The names of a path. Raises `KeyInvalid`, and as `names_of`."""
    found = names_of(request.path_params)
    if "key" in found:
        parse_run_key(found["key"])
    return found


def _query(request: Request) -> list[tuple[str, str]]:
    return parse_qsl(request.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _key(request: Request) -> str:
    """The key of a change. Raises `NoKey` and `BadKey`."""
    values = request.headers.getlist(KEY)
    if not any(value.strip() for value in values):
        raise NoKey(f"{KEY}: a change is made once for each; send one, the same whenever it is sent again")
    key = parse_key(values[0]) if len(values) == 1 else None
    if key is None:
        raise BadKey(f"{KEY}: send one, a string of 1 to {LONGEST_KEY} visible characters in double quotes")
    return key


def _root(request: Request) -> str:
    return quote(request.scope.get("root_path", ""))


def _link(request: Request, after: str) -> str:
    """The URL of the next batch: the same question, from there on."""
    root = request.scope.get("root_path", "")
    path = request.scope["path"].removeprefix(root)
    asked = [(name, text) for name, text in _query(request) if name != "after"]
    return f"{quote(root)}{quote(path, safe='/:@~,')}?{urlencode([*asked, ('after', after)])}"


def _json(body: str, headers: dict[str, str] | None = None) -> Response:
    return Response(body + "\n", headers=headers, media_type=JSON)
