"""Settings: a destination's table of duly.toml, read field by field, so that each complaint names its field and what to write.

A secret never stands in the table. Its field ends in `_env` or `_file` and names a variable of the environment, or a file,
where it is read when it is used: a secret that was exchanged is in force with the next message. No complaint shows a value
that might be one.
"""

from __future__ import annotations

import os

from duly.errors import Misuse, TimeInvalid
from duly.times import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

REMEMBERS = {"forever": None, "never": 0}
_HIDDEN = ("password", "secret", "token", "url", "look_up")  # fields whose value no complaint shows


class SecretMissing(Exception):
    """A secret is not where the configuration says that it is. Its text names the place, and holds nothing of it."""


class Secret:
    """A text that is read where it is kept each time that it is used, and shown nowhere."""

    __slots__ = ("_read", "where")

    def __init__(self, where: str, read: Callable[[], str | None]) -> None:
        self.where = where
        self._read = read

    def read(self) -> str:
        """The secret. Raises `SecretMissing`."""
        found = self._read()
        if not found:
            raise SecretMissing(
                f"{self.where} is not set" if self.where.startswith("$") else f"{self.where} cannot be read"
            )
        return found

    def __repr__(self) -> str:
        return f"Secret({self.where})"

    @classmethod
    def of_variable(cls, name: str) -> Secret:
        """One that is in a variable of the environment."""
        return cls(f"${name}", lambda: os.environ.get(name))

    @classmethod
    def of_file(cls, path: str) -> Secret:
        """One that is in a file, as it is mounted: white space at its ends is none of it."""
        return cls(path, lambda: _content(path))

    @classmethod
    def of_text(cls, key: str, text: str) -> Secret:
        """One that the configuration has: the password in a URL."""
        return cls(key, lambda: text)


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return None


def nearest(word: str, words: Collection[str]) -> str:
    """What to write in place of a word that nobody knows."""
    from difflib import get_close_matches

    close = get_close_matches(word, words, 1)
    return f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(sorted(words))}"


class Settings:
    """The table of one destination. Each field is asked for once; `done` refuses what nobody asked for."""

    def __init__(self, name: str, table: Mapping[str, object], hidden: Collection[str] = ()) -> None:
        self.name = name
        self.hidden = frozenset(hidden)
        self.asked: list[str] = []
        self._table = table

    def key(self, field: str) -> str:
        """How a complaint names a field."""
        return f"destinations.{self.name}.{field}"

    def done(self) -> None:
        """Refuse what no field of this kind is called."""
        for field in self._table:
            if field not in self.asked:
                raise Misuse(f"{self.key(field)}: no such field; {nearest(field, self.asked)}")

    # -- one field -------------------------------------------------------------------------------------------------------

    def text(self, field: str, default: str | None = None, *, as_in: str) -> str:
        """A text. Without a default it has to be there."""
        value = self._take(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip() or "\0" in value or "\n" in value or "\r" in value:
            raise self._wrong(field, value, "one line of text", f'"{as_in}"')
        return value

    def maybe(self, field: str, *, as_in: str) -> str | None:
        """A text that may be left out."""
        return self.text(field, "", as_in=as_in) or None

    def texts(self, field: str, *, as_in: str) -> tuple[str, ...]:
        """A list of texts, which has to be there; one text is a list of one."""
        value = self._take(field)
        each = [value] if isinstance(value, str) else value
        if (
            not isinstance(each, list)
            or not each
            or not all(isinstance(e, str) and e.strip() and "\n" not in e for e in each)
        ):
            raise self._wrong(field, value, "a list of texts", f'["{as_in}"]')
        return tuple(each)

    def words(self, field: str, *, as_in: str) -> tuple[str, ...] | None:
        """A command as a list of words, or None."""
        value = self._take(field)
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(isinstance(e, str) and "\0" not in e for e in value):
            raise self._wrong(field, value, "a command as a list of words (no shell is involved)", as_in)
        return tuple(value)

    def function(self, field: str) -> Callable[..., object] | None:
        """A function, where the destination is declared in code and the field is one; a file has none."""
        value = self._table.get(field)
        if not callable(value):
            return None
        self._take(field)
        return value

    def choice(self, field: str, choices: Collection[str], default: str) -> str:
        """One of some words."""
        value = self.text(field, default, as_in=default)
        if value not in choices:
            raise Misuse(f"{self.key(field)}: there is no {value!r}; {nearest(value, choices)}")
        return value

    def switch(self, field: str, default: bool) -> bool:
        """True or false."""
        value = self._take(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(field, value, "true or false", "true")
        return value

    def number(self, field: str, default: int | None, *, least: int = 0, most: int = 2**31) -> int | None:
        """A whole number, or None where there is none."""
        value = self._take(field)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(field, value, f"a whole number from {least} to {most}", str(default or least or 1))
        return value

    def numbers(self, field: str, *, least: int, most: int, as_in: str) -> frozenset[int]:
        """A list of whole numbers, which may be left out."""
        value = self._take(field)
        each = [] if value is None else value
        if not isinstance(each, list) or not all(
            isinstance(e, int) and not isinstance(e, bool) and least <= e <= most for e in each
        ):
            raise self._wrong(field, value, f"a list of whole numbers from {least} to {most}", as_in)
        return frozenset(each)

    def remembers(self, default: int | None = 0) -> int | None:
        """For how long the receiver knows a key again: a duration, `forever` or `never`."""
        value = self._take("remembers")
        if value is None:
            return default
        try:
            return REMEMBERS[value] if value in REMEMBERS else parse_duration(value)  # type: ignore[arg-type]
        except (TimeInvalid, TypeError, AttributeError):
            raise self._wrong("remembers", value, 'a duration, "forever" or "never"', '"24h"') from None

    def plain_texts(self, field: str, *, as_in: str) -> dict[str, str]:
        """A table of texts, which may be left out."""
        value = self._take(field)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(_is_line(e) for e in value.values()):
            raise self._wrong(field, value, "a table of texts", as_in)
        return dict(value)

    # -- secrets ---------------------------------------------------------------------------------------------------------

    def secret(self, field: str) -> Secret | None:
        """A secret that may be left out: `<field>_env` or `<field>_file` says where it is."""
        if field in self._table:
            raise Misuse(
                f"{self.key(field)}: a secret does not stand here; "
                f'name where it is: {field}_env = "SHOP_{field.upper()}", or {field}_file = "/run/secrets/{field}"'
            )
        variable, path = self._take(f"{field}_env"), self._take(f"{field}_file")
        if variable is not None and path is not None:
            raise Misuse(f"{self.key(f'{field}_env')} and {field}_file are both there; keep one")
        if variable is not None:
            return Secret.of_variable(self._variable(f"{field}_env", variable))
        if path is not None:
            return Secret.of_file(self._path(f"{field}_file", path))
        return None

    def secret_headers(self) -> dict[str, Secret]:
        """Headers whose values are secrets: `headers_env` and `headers_file` say for each where it is."""
        found: dict[str, Secret] = {}
        for field, made in (("headers_env", self._variable), ("headers_file", self._path)):
            value = self._take(field)
            if value is not None and not isinstance(value, dict):
                raise self._wrong(field, None, "a table of places", '{ Authorization = "SHOP_TOKEN" }')
            for header, place in (value or {}).items():
                where = made(f"{field}.{header}", place)
                found[header] = Secret.of_variable(where) if field == "headers_env" else Secret.of_file(where)
        return found

    def url(self, *, as_in: str) -> Secret:
        """A URL, which may hold a password: in `url`, or where `url_env` or `url_file` say."""
        if "url" not in self._table:
            found = self.secret("url")
            self.asked.append("url")
            if found is None:
                raise Misuse(f'{self.key("url")}: it has to be there; write url = "{as_in}"')
            return found
        text = self._take("url")
        for other in ("url_env", "url_file"):
            if self._take(other) is not None:
                raise Misuse(f"{self.key('url')} and {other} are both there; keep one")
        if not isinstance(text, str) or "://" not in text or any(c.isspace() or c == "\0" for c in text):
            raise Misuse(f'{self.key("url")}: it takes a URL, as url = "{as_in}"')
        return Secret.of_text(self.key("url"), text)

    def missing(self, field: str, takes: str, instead: str) -> Misuse:
        """The complaint about a field that has to be there."""
        return self._wrong(field, None, takes, instead)

    # -- within ----------------------------------------------------------------------------------------------------------

    def _take(self, field: str) -> object:
        self.asked.append(field)
        return self._table.get(field)

    def _variable(self, field: str, value: object) -> str:
        name = value if isinstance(value, str) else ""
        if not name.isascii() or not name.replace("_", "a").isalnum() or name[0].isdigit():
            # not shown: it may be the secret itself, written where the name of its place belongs
            raise Misuse(f'{self.key(field)}: it takes the name of a variable, without $, as "SHOP_TOKEN"')
        return name

    def _path(self, field: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value or "\n" in value:
            raise Misuse(f'{self.key(field)}: it takes the name of a file, as "/run/secrets/token"')
        return value

    def _wrong(self, field: str, value: object, takes: str, instead: str) -> Misuse:
        if value is None:
            return Misuse(f"{self.key(field)}: it has to be there, {takes}; write {field} = {instead}")
        hidden = any(word in field for word in _HIDDEN) or isinstance(value, dict)
        shown = "this" if hidden else repr(value) if len(repr(value)) <= 40 else "this"
        return Misuse(f"{self.key(field)}: {shown} is not {takes}; write {field} = {instead}")


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not any(c in value for c in "\0\r\n")
