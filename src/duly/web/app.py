"""The ASGI application: `dashboard(url)`, to be served by itself or mounted in another.

app.mount("/duly", dashboard("postgresql://…", Settings(hosts=("ops.example",), identify=lambda scope: scope["user"].name)))
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from duly.errors import DulyError, Misuse
from duly.evidence.documents.window import csv_text, document
from duly.redaction import traceback_of
from duly.web import life
from duly.web.actions import ACTIONS
from duly.web.api import is_api
from duly.web.api.problems import problem
from duly.web.api.routes import Api
from duly.web.asked import Asked, names_of
from duly.web.assets import Assets
from duly.web.forms import Forms
from duly.web.guard import WHO, Guard
from duly.web.life import Life
from duly.web.pages import PAGES
from duly.web.paths import plain
from duly.web.reading import Reader, reader_of
from duly.web.settings import Settings
from duly.web.showing import Showing, environment
from duly.web.troubles import TITLES, as_document, next_step_of, status_of, wants_document
from duly.web.writing import writer_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from duly.web.page import Page
    from duly.web.reading import Looker
    from duly.web.writing import Writer

    Answer = Callable[[Request], Awaitable[Response]]

LOGGER = logging.getLogger("duly.web")


def dashboard(ledger: str | Reader, settings: Settings | None = None, *, writer: Writer | None = None) -> Guard:
    """The dashboard of a ledger, by its URL, its path, or a reader of it, and a writer where the settings allow changes.

    Opens nothing before the first request. Pages that are open keep a stream each: a server that ends calls `end()` of the
    answer before it waits for them. Raises `Misuse` where changes are allowed, and nobody can make them.
    """
    settings = settings or Settings()
    reader = ledger if isinstance(ledger, Reader) else reader_of(ledger)
    if settings.allow_writes and writer is None:
        if isinstance(ledger, Reader):
            raise Misuse("writer: the settings allow changes, and a reader makes none; give a writer, or the URL")
        writer = writer_of(ledger)
    return Dashboard(reader, settings, writer if settings.allow_writes else None).application()


class Dashboard:
    """Pages of one ledger, with what they are drawn with."""

    def __init__(self, reader: Reader, settings: Settings, writer: Writer | None) -> None:
        self.reader = reader
        self._settings = settings
        self._writer = writer
        self._assets = Assets()
        self._templates = environment(self._assets)
        self._life = Life(reader)

    def application(self) -> Guard:
        """The guarded application."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            self.reader.close()
            if self._writer is not None:
                self._writer.close()

        routes = [Route("/assets/{path:path}", self._assets.serve), Route(life.PATH, self._life.answer)]
        forms = Forms(self, self._writer)
        for action in ACTIONS:
            routes += forms.routes_of(action)
        for page in PAGES:
            routes += self._routes_of(page)
        routes += Api(self.reader, self._writer, self._settings).routes()
        pages = Starlette(
            routes=routes,
            lifespan=lifespan,
            exception_handlers={HTTPException: self._refused},
        )
        pages.router.redirect_slashes = False
        return Guard(GZipMiddleware(pages, minimum_size=1_000, compresslevel=5), self._settings, self._life.end)

    def _routes_of(self, page: Page) -> list[Route]:
        routes = []
        for beside, make in page.documents.items():
            routes += [Route(f"{beside}.{form}", self._document(page, make, form)) for form in ("json", "csv")]
        return [*routes, Route(plain(page.path), self._page(page), name=page.name)]

    def _page(self, page: Page) -> Answer:
        @self.told_of_troubles
        async def answer(request: Request) -> Response:
            asked = _asked(request, "html")
            operation = page.see(asked)
            asked.finish()
            showing = self.showing(request, asked.time)

            def work(looker: Looker) -> tuple[str, int]:
                if page.needs_ledger:
                    showing.stamp = looker.stamp()  # before it is read, so that it is never newer
                seen = looker.read(operation) if page.needs_ledger else operation()
                showing.now = seen.as_of
                shown = page.show(seen, showing)
                return self.drawn(page.template, showing, {"page": page, **shown}), shown.get("http_status", 200)

            return HTMLResponse(*await self.reader.within(work))

        return answer

    def _document(self, page: Page, make: Callable[[Any], Any], form: str) -> Answer:
        @self.told_of_troubles
        async def answer(request: Request) -> Response:
            asked = _asked(request, form)
            operation = page.see(asked)
            asked.finish()

            def work(looker: Looker) -> str:
                made = make(looker.read(operation) if page.needs_ledger else operation())
                if form == "csv":
                    return csv_text(made.records) + "\n"
                return document(made.schema, {**made.facts, made.name: list(made.records)}) + "\n"

            body = await self.reader.within(work)
            kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
            return Response(body, headers={"content-type": kind})

        return answer

    def showing(self, request: Request, time: str) -> Showing:
        """What is needed to show a page to whoever asked."""
        scope = request.scope
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root) if root else scope["path"]
        who = scope.get(WHO)
        return Showing(
            root=root,
            settings=self._settings,
            path=quote(path, safe="/:@~,"),
            query=scope.get("query_string", b"").decode("ascii", "replace"),
            time=time,
            who="" if who is None else who.name,
        )

    def drawn(self, template: str, showing: Showing, context: dict[str, Any]) -> str:
        """A page, by its template."""
        nav = [each for each in PAGES if each.label]
        return self._templates.get_template(template).render(showing.context({"nav": nav, **context}))

    # -- troubles -------------------------------------------------------------------------------------------------------

    def told_of_troubles(self, answer: Answer) -> Answer:
        """An answer that is told of what goes wrong in it. A bug is logged here, without secrets, and goes no further out."""

        async def told(request: Request) -> Response:
            try:
                return await answer(request)
            except DulyError as e:
                return self._told(request, status_of(e), str(e), next_step_of(e))
            except Exception as e:
                LOGGER.error("%s", traceback_of(e))
                says = "Something went wrong that nobody foresaw; the server's log says where."
                return self._told(request, 500, says, "duly status")

        return told

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        answer = self._told(request, error.status_code, _SAID.get(error.status_code, error.detail), "duly status")
        answer.headers.update(error.headers or {})  # with 405, what the path is for: RFC 9110 wants it said
        return answer

    def _told(self, request: Request, status: int, says: str, step: str) -> Response:
        if is_api(request.scope["path"].removeprefix(request.scope.get("root_path", ""))):
            return problem(status, "no-such-path" if status == 404 else "refused", says, "duly --help")
        if wants_document(request.scope["path"]):
            return as_document(status, says, step)
        context = {
            "page": None,
            "title": TITLES.get(status, "Not done"),
            "says": says,
            "next_step": step,
            "status": status,
        }
        return HTMLResponse(self.drawn("trouble.html", self.showing(request, "local"), context), status)


_SAID = {404: "There is no such page.", 405: "This page can be looked at, and nothing else."}


def _asked(request: Request, form: str) -> Asked:
    return Asked(names_of(request.path_params), request.query_params.multi_items(), form)
