"""Page: what every page is, and the routes that one has.

A page is read by one operation in one snapshot, shown by a template, and written down as documents beside it, with the shapes
of the command line: `/grid` is for people, `/grid.json` and `/grid.csv` are for programs. `see` reads the URL, and answers
the operation; `show` makes of what was seen what the template is given; `documents` what programs are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duly.evidence.documents.window import Json
    from duly.web.asked import Asked
    from duly.web.showing import Showing


@record
class Document:
    """A view for programs: `facts` beside the records of a list, which alone are what a table holds."""

    schema: str
    facts: Mapping[str, Json]
    name: str
    records: Sequence[dict[str, Json]]


@record
class Page:
    """A page. `label`: how the navigation names it, where it stands there.

    `documents`: by the path beside the page, without `.json` or `.csv`, what is found there. What `show` answers may have an
    `http_status`. Without `needs_ledger` no ledger is opened, and what `see` answers is a plain function, no operation.
    """

    name: str
    path: str
    label: str
    see: Callable[[Asked], Callable[[], Any]]
    show: Callable[[Any, Showing], dict[str, Any]]
    documents: Mapping[str, Callable[[Any], Document]]
    needs_ledger: bool = True

    @property
    def template(self) -> str:
        """The file that shows it."""
        return f"{self.name}.html"
