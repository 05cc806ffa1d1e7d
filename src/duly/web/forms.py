"""Forms: an action as a page that asks for what it needs, and does it when it is sent. Without a script.

A form that is refused is shown again with what was written into it, what is wrong, and how things stand now: of two who resolve
one unknown, the second is told so. One that the ledger did not answer is shown as it was sent, with its key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl
from uuid import uuid4

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from duly.errors import DulyError, Misuse
from duly.records import record, replace
from duly.web.access import hand_of
from duly.web.action import ATTEMPT, About, Given, refuse_no_text
from duly.web.asked import names_of
from duly.web.body import body_of
from duly.web.guard import WHO
from duly.web.paths import plain
from duly.web.troubles import next_step_of, status_of
from duly.web.writing import applied, delivery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from duly.web.action import Action
    from duly.web.app import Answer, Dashboard
    from duly.web.reading import Looker
    from duly.web.showing import Showing
    from duly.web.writing import Writer

KEY = "key"  # the field of a form that makes sending it twice the same as sending it once
FORM = "application/x-www-form-urlencoded"


@record
class Wrong:
    """What is wrong with a form that was sent."""

    says: str
    next_step: str
    status: int


class Forms:
    """The actions of a dashboard, as pages."""

    def __init__(self, dashboard: Dashboard, writer: Writer | None) -> None:
        self._dashboard = dashboard
        self._writer = writer

    def routes_of(self, action: Action) -> list[Route]:
        """Where an action is asked for, and done."""
        return [Route(plain(action.path), self._answer(action), methods=["GET", "POST"], name=action.name)]

    def _answer(self, action: Action) -> Answer:
        @self._dashboard.told_of_troubles
        async def answer(request: Request) -> Response:
            if request.method == "POST":
                return await self._do(request, action)
            asked = {name: value for name, value in request.query_params.items() if action.field(name) is not None}
            for name, value in asked.items():
                refuse_no_text(name, value)
            return await self._form(request, action, asked)

        return answer

    async def _do(self, request: Request, action: Action) -> Response:
        sent = await fields_of(request)
        key = sent.pop(KEY, "") or str(uuid4())
        try:
            given = Given(names_of(request.path_params), action.read(sent), hand_of(request.scope.get(WHO)))
            received = delivery(action, given, key)
            assert self._writer is not None  # a change is refused before it comes here, where there is none
            done = await self._writer.change(lambda: applied(received, action, given))
        except DulyError as e:
            wrong = Wrong(str(e), next_step_of(e), status_of(e))
            if wrong.status == 503:
                return self._as_sent(request, action, sent, wrong, key)
            return await self._form(request, action, sent, wrong, key=key)
        leads = self._dashboard.showing(request, "local").link(action.leads(json.loads(done.document)))
        return RedirectResponse(leads, 303)

    async def _form(
        self, request: Request, action: Action, said: Mapping[str, str], wrong: Wrong | None = None, *, key: str = ""
    ) -> Response:
        showing = self._dashboard.showing(request, "local")
        ledger = showing.settings.ledger
        # What was refused is shown as it was written; what the page was drawn from is looked at anew.
        kept = {name: value.replace("\0", "") for name, value in said.items() if name != ATTEMPT.name}
        given = Given(names_of(request.path_params), kept, "")

        def work(looker: Looker) -> str:
            about = _about(looker, action, given, ledger, may_fail=wrong is not None)
            return self._drawn(showing, action, about, kept, wrong, key or str(uuid4()))

        return HTMLResponse(await self._dashboard.reader.within(work), 200 if wrong is None else wrong.status)

    def _as_sent(self, request: Request, action: Action, sent: Mapping[str, str], wrong: Wrong, key: str) -> Response:
        """The form that no ledger has answered, to be sent once more. It may have been done: so it is the same to the letter,
        also in the attempt that it speaks of, and under its key it is done once.
        """
        about = replace(_NOTHING, attempt=int(sent.get(ATTEMPT.name) or 0))
        showing = self._dashboard.showing(request, "local")
        return HTMLResponse(self._drawn(showing, action, about, sent, wrong, key), wrong.status)

    def _drawn(
        self, showing: Showing, action: Action, about: About, said: Mapping[str, str], wrong: Wrong | None, key: str
    ) -> str:
        context = {
            "page": None,
            "title": f"{action.does}: {about.name}" if about.name else action.does,
            "action": action,
            "about": about,
            "said": said,
            "wrong": wrong,
            "key": key,
            "where": showing.path,
        }
        return self._dashboard.drawn("action.html", showing, context)


_NOTHING = About("", "", "", "/", "UTC", "duly --help")  # where it is not known what an action is about


def _about(looker: Looker, action: Action, given: Given, ledger: str | None, *, may_fail: bool) -> About:
    """What an action is about. Of a form that was refused it may be that nothing can be found by what was written into it."""
    try:
        return looker.read(lambda: action.see(given, ledger))
    except Misuse:
        if not may_fail:
            raise
        return _NOTHING


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form. Raises `Misuse` for what is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise Misuse(f"content-type: a form is sent as {FORM}, not {kind[:60] or 'nothing'!r}")
    body = await body_of(request)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
    except ValueError:
        raise Misuse(f"body: it is no form of {FORM} in UTF-8") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise Misuse(f"{name[:40]}: it is given twice; leave one out")
        fields[name] = value.replace("\r\n", "\n")
    return fields
