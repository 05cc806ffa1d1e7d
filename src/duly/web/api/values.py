"""Values: what the query of a URL and the body of a request hold, each held against the schema that says what it may be.

What is described is what is checked: a value that its schema does not allow is refused here, before anything is made of it, and
the error names the field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.ledger.named import TO_FILL_IN
from duly.records import record
from duly.web.action import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from duly.web.action import Field

    Schema: TypeAlias = dict[str, Any]
    Value: TypeAlias = str | int | bool

# A text that a database can hold. PostgreSQL's have no NUL.
ANY_TEXT = r"^[^\u0000]*$"
SOME_TEXT = rf"^(?![\s{TO_FILL_IN}]*$)[^\u0000]*$"  # what a line to type has for what is to be filled in says nothing

JOB: Schema = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}
SCOPE: Schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": ANY_TEXT}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": ANY_TEXT}


class NoSuchField(Misuse):
    """There is no such field; `field` is its name."""

    def __init__(self, name: str, says: str) -> None:
        self.field = name[:40]
        super().__init__(f"{self.field!r}: {says}")


@record
class Parameter:
    """A field of a query: what it is called, what it may be, what it means, and what it is where it is not given."""

    name: str
    schema: Schema
    says: str


def words(*each: str) -> Schema:
    """The schema of one of a few words."""
    return {"type": "string", "enum": list(each)}


def whole(least: int, most: int, standard: int | None = None) -> Schema:
    """The schema of a whole number."""
    made: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return made if standard is None else {**made, "default": standard}


FLAG: Schema = {"type": "boolean", "default": False}


def place(numbers: int) -> Schema:
    """The schema of a place in a list: so many whole numbers, with points between them."""
    return {"type": "string", "pattern": rf"^-?[0-9]{{1,18}}(?:\.-?[0-9]{{1,18}}){{{numbers - 1}}}$"}


def numbers_of(place: str) -> tuple[int, ...]:
    """The numbers of a place that its schema allows."""
    return tuple(int(number) for number in place.split("."))


def place_of(numbers: Iterable[int] | None) -> str | None:
    """A place as a URL has it."""
    return None if numbers is None else ".".join(str(number) for number in numbers)


def query_of(parameters: Sequence[Parameter], given: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """The values of a query. Raises `Misuse`, naming the field, also for one that there is not."""
    known = {parameter.name: parameter for parameter in parameters}
    found: dict[str, Value] = {}
    for name, text in given:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise NoSuchField(name, f"there is no such parameter here; {there}")
        if name in found:
            raise Misuse(f"{name}: it is given twice; leave one out")
        found[name] = checked(name, known[name].schema, _read(known[name].schema, text))
    standard = {name: each.schema["default"] for name, each in known.items() if "default" in each.schema}
    return {**standard, **found}


def _read(schema: Schema, text: str) -> Value:
    """A value of a URL, which has only texts: what cannot be read is left as it is, and refused by the schema."""
    match schema["type"]:
        case "integer" if re.fullmatch("-?[0-9]{1,18}", text):
            return int(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
    return text


def schema_of(field: Field) -> Schema:
    """What a field of an action may be in JSON."""
    match field.kind:
        case "choice":
            made = words(*(word for word, _ in field.words))
        case "count" | "hidden":
            made = whole(field.least, field.most)
        case "flag":
            made = {"type": "boolean"}
        case kind:
            pattern = SOME_TEXT if field.required else ANY_TEXT
            made = {"type": "string", "maxLength": LONGEST.get(kind, LONGEST["line"]), "pattern": pattern}
    made["title"] = field.label
    if field.hint:
        made["description"] = field.hint
    if field.standard:
        made["default"] = int(field.standard) if made["type"] == "integer" else field.standard
    return made


def is_required(field: Field) -> bool:
    """Whether a field has to be given."""
    return field.required and not field.standard


def sent_of(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a body as an action reads them. Raises `Misuse`, naming the field."""
    known = {field.name: field for field in fields}
    found = {}
    for name, value in given.items():
        if name not in known:
            raise NoSuchField(name, f"there is no such field here; there are {', '.join(known)}")
        allowed = checked(name, schema_of(known[name]), value)
        if allowed is not False:  # a flag that is not set is one that is left out
            found[name] = "1" if allowed is True else str(allowed)
    for name, field in known.items():
        if is_required(field) and name not in given:
            raise Misuse(f"{name}: it is required. {field.hint}".strip())
    return found


def checked(name: str, schema: Schema, value: Any) -> Value:
    """The value, if the schema allows it. Raises `Misuse`, naming the field."""
    wrong = wrong_with(schema, value)
    if wrong:
        raise Misuse(f"{name}: {wrong}")
    return int(value) if schema["type"] == "integer" else value


def wrong_with(schema: Schema, value: Any) -> str:
    """Why a schema does not allow a value; empty where it does. Pure."""
    match schema["type"]:
        case "boolean":
            return "" if isinstance(value, bool) else f"{_short(value)} is neither true nor false"
        case "integer":
            least, most = schema["minimum"], schema["maximum"]
            is_whole = (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
            if not is_whole or not least <= value <= most:
                return f"{_short(value)} is not a whole number from {least} to {most}"
            return ""
    return _wrong_with_text(schema, value)


def _wrong_with_text(schema: Schema, value: Any) -> str:
    if not isinstance(value, str):
        return f"{_short(value)} is no text"
    if "enum" in schema and value not in schema["enum"]:
        return f"{_short(value)} is none of {', '.join(schema['enum'])}"
    if any("\ud800" <= sign <= "\udfff" for sign in value) or "\0" in value:
        return "it holds what is no text"
    if len(value) > schema.get("maxLength", len(value)):
        return f"it has {len(value)} characters; {schema['maxLength']} are allowed"
    if len(value) < schema.get("minLength", 0):
        return "it is empty; leave it out, or say something"
    if schema.get("format") == "date" and not _is_date(value):
        return f"{_short(value)} is no day; write one as 2026-10-25"
    pattern = schema.get("pattern")
    # Python's $ lets a line end through, which is none of the text to others.
    if pattern is not None and not re.search(pattern[:-1] + r"\Z", value):
        return "it is required, and says nothing" if pattern == SOME_TEXT else f"{_short(value)} is not written so"
    return ""


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _short(value: object) -> str:
    """A value in an error: never much of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
