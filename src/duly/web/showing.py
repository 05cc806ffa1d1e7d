"""Showing: how what was seen is put on a page. Times in the zone of the job with UTC at hand, a state as sign, shape and
colour, and the line to type for what a page says.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from duly.evidence.shown import GLYPHS, when
from duly.evidence.verdict import NOT_OWED, PRUNED
from duly.evidence.words import ago, printable, span
from duly.times import duration_text, instant_text
from duly.web.paths import job_path, run_path, with_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.web.assets import Assets
    from duly.web.settings import Settings

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")

# What is pruned was settled, and still nobody can show that it went well: it gets no sign of success here.
SIGNS = {**GLYPHS, PRUNED: "∅", NOT_OWED: "∅"}


def environment(assets: Assets) -> Environment:
    """The templates. Whatever is put into one is escaped, and a name that is not there is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"asset": assets.path_of, "sign": SIGNS.__getitem__}
    made.filters |= {"slug": slug, "printable": printable, "span": span, "duration": duration_text}
    return made


def slug(word: str) -> str:
    """A state as the name of a class: `not owed` is `not-owed`."""
    return word.replace(" ", "-")


class Showing:
    """What a page needs to be shown: where it stands, who looks, and how times are written."""

    def __init__(self, *, root: str, settings: Settings, path: str, query: str, time: str, who: str) -> None:
        self.root = root
        self.settings = settings
        self.path = path
        self.query = query
        self.time = time
        self.who = who
        self.now = 0  # the ledger's, as soon as it was read
        self.stamp = ""  # what it was read after

    def url(self, path: str) -> str:
        """A path of the dashboard as a link has it."""
        return f"{self.root}{path}"

    def link(self, path: str, **fields: str | int | None) -> str:
        """A link to a page; how times are written is kept."""
        time = None if self.time == "local" else self.time
        return self.url(with_fields(path, {**fields, "time": time}))

    def run(self, key: object) -> str:
        """The link to a run."""
        return self.link(run_path(key))

    def job(self, name: str, scope: str = "", **fields: str | int | None) -> str:
        """The link to a job."""
        return self.link(job_path(name), scope=scope, **fields)

    def here(self, changes: Mapping[str, str | int | None]) -> str:
        """This very page with some fields of its URL changed."""
        fields: dict[str, str | int | None] = {**dict(parse_qsl(self.query)), **changes}
        return self.url(with_fields(self.path, fields))

    def words(self, instant: int, zone: str) -> str:
        """An instant in words, as the page writes them."""
        return when(instant, zone, time=self.time, now=self.now)

    def at(self, instant: int | None, zone: str, *, relative: bool = False) -> Markup:
        """An instant as an element: in the zone, with UTC beside it for whoever points at it, and for programs."""
        if instant is None:
            return Markup("")
        utc = instant_text(instant)
        said = self.words(instant, zone)
        beside = f" ({ago(instant, self.now)})" if relative else ""
        title = (
            f"{utc} UTC, {ago(instant, self.now)}"
            if self.time == "local"
            else when(instant, zone, time="local", now=self.now)
        )
        return Markup('<time datetime="{}" title="{}">{}</time>{}').format(utc, title, said, beside)

    def twin(self, *words: str) -> str:
        """A line to type that says the same, in the same ledger."""
        from shlex import join

        from duly.redaction import shown_url

        ledger = ["--ledger", shown_url(self.settings.ledger)] if self.settings.ledger else []
        return join([*words, *ledger])

    def context(self, page: Mapping[str, Any]) -> dict[str, Any]:
        """All that a template is given."""
        return {"s": self, "writes": self.settings.allow_writes, **page}


def chip(word: str, said: str = "") -> Markup:
    """A state: its sign in its shape, and its word."""
    return Markup('<span class="chip s-{0}"><span class="sign" aria-hidden="true">{1}</span> {2}</span>').format(
        slug(word), SIGNS[word], said or word
    )


def escaped(text: str) -> str:
    """A text as it may stand in a page that is put together by hand."""
    return str(escape(text))
