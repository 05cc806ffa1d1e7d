"""The dashboard: the second door. Pages that are put together here and work without JavaScript; what they show is read as the
command line reads it, and said in its words.

    app.py        the ASGI application: pages, documents beside them, errors        showing.py   times, states and lines to type
    access.py     who may look, and change: pure; guard.py asks it                  page.py      what every page is
    asked.py      the filters of a URL                                              pages/       one file a page, all alike
    reading.py    the one way to the ledger, which cannot write                     templates/   how each is shown
    troubles.py   an error as a page                                                assets/      style, script, others' files
    life.py       open pages hear of changes                                        api/         the same for programs

A page that is added is a file in `pages`, a template of its name and a line of `pages.PAGES`.
"""

from __future__ import annotations

from duly.errors import Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.web.guard import Guard
    from duly.web.reading import Reader
    from duly.web.settings import Settings

NEEDED = ("jinja2", "starlette")


def dashboard(ledger: str | Reader, settings: Settings | None = None) -> Guard:
    """The dashboard of a ledger, by its URL or path, as an ASGI application. Raises `Misuse` where the extra is not
    installed. A server that ends calls its `end()`, so that the streams of open pages do not hold it.
    """
    need(NEEDED)
    from duly.web import app

    return app.dashboard(ledger, settings)


def need(libraries: tuple[str, ...]) -> None:
    """Raise `Misuse` where a library of the extra `web` is not installed."""
    from importlib.util import find_spec

    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise Misuse(
            f"web: the dashboard needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            next_step="pip install 'duly[web]'",
        )
