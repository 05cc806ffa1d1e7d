"""Asked: what a URL asks for. Every filter of a page stands in its URL and is read once, into a record; an error names the
field.

A page takes what it knows, one name after the other; what is left over is no filter of that page, and is refused rather than
passed over: a list that is narrowed by nothing looks like one that is.
"""

from __future__ import annotations

from difflib import get_close_matches

from duly.errors import Misuse, UnknownBackfill, UnknownJob
from duly.web.action import refuse_no_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIMES = ("local", "utc")
_LONGEST = 300


def names_of(path: Mapping[str, object]) -> dict[str, str]:
    """The names of a path, each one that a ledger can hold; a key is read by whoever wants it. Of any other there is nothing.

    Raises `UnknownBackfill` and `UnknownJob`.
    """
    found = {name: str(value) for name, value in path.items()}
    for name, text in found.items():
        match name:
            case "id" if not (text.isascii() and text.isdecimal() and len(text) <= 18):
                raise UnknownBackfill(f"there is no backfill {text[:40]!r}")
            case "name" if "\0" in text:
                raise UnknownJob(f"the ledger knows no job {text[:40]!r}")
    return found


class Asked:
    """The names of a path and the fields of a query, to be taken one by one; `form`: as what the answer is wanted."""

    def __init__(self, path: Mapping[str, str], fields: Sequence[tuple[str, str]], form: str = "html") -> None:
        self.path = path
        self.form = form
        self._fields: dict[str, str] = {}
        for name, value in fields:
            if name in self._fields:
                raise Misuse(f"{name[:40]}: it is given twice; leave one out")
            if len(value) > _LONGEST:
                raise Misuse(f"{name[:40]}: it has {len(value)} characters; {_LONGEST} are allowed")
            refuse_no_text(name[:40], value)
            self._fields[name] = value
        self._taken: set[str] = set()
        self.time = self.one_of("time", TIMES)

    def text(self, name: str) -> str:
        """The text of a field; empty where it is not given."""
        self._taken.add(name)
        return self._fields.get(name, "").strip()

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """A word of a few; the first where it is not given."""
        value = self.text(name)
        if not value:
            return words[0]
        if value not in words:
            raise Misuse(f"{name}: {value[:40]!r} is none of {', '.join(filter(None, words))}")
        return value

    def count(self, name: str, standard: int, most: int) -> int:
        """A whole number from 1 on."""
        value = self.text(name)
        if not value:
            return standard
        if not (value.isascii() and value.isdecimal()) or not 1 <= int(value) <= most:
            raise Misuse(f"{name}: {value[:40]!r} is not a whole number from 1 to {most}")
        return int(value)

    def finish(self) -> None:
        """Refuse what nobody has taken."""
        for name in self._fields:
            if name not in self._taken:
                close = get_close_matches(name, self._taken, n=1)
                meant = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(self._taken))}"
                raise Misuse(f"{name[:40]}: this page has no such filter{meant}")
