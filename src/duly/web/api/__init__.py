"""The API: what the pages show and do, for programs, under `/api/v1`. A path is that of the page.

    read.py        what every read is             reads/        what is read, a file for each kind of thing, all alike
    values.py      what a URL and a body hold, held against their schemas                body.py     JSON as it is sent
    routes.py      reads and actions as routes    problems.py   what goes wrong, as RFC 9457 has it
    openapi.py     all of it, described: made from the same records

What may be changed is not listed here: it is `duly.web.actions.ACTIONS`, of which each is a form of the pages as well.
"""

from __future__ import annotations

PREFIX = "/api/v1"


def is_api(path: str) -> bool:
    """Whether a path, below the root of the dashboard, is the API's."""
    return path == "/api" or path.startswith("/api/")
