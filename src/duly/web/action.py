"""Action: what every action is, and the routes that one has.

An action is asked for by a form of its own, which works without a script, and by the API, with the same fields under the same
names; both end in one operation of the ledger, whose refusals are the ledger's. What an action asks for is read once, and an
error names the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.ledger.named import TO_FILL_IN
from duly.ledger.resolve import Word
from duly.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from duly.evidence.documents.window import Json
    from duly.ledger.ask import Operation

TEXT, LINE, CHOICE, COUNT, FLAG, HIDDEN = "text", "line", "choice", "count", "flag", "hidden"

LONGEST = {TEXT: 4_000, LINE: 300}
_YES = ("1", "on", "true")


@record
class Field:
    """What an action asks for. `kind`: a text of several lines, one line, a choice of words, a whole number, a flag; hidden in
    a form: what the page that it stands in was drawn from. `words`: what may be chosen, with how a form says it.
    """

    name: str
    label: str
    kind: str = LINE
    required: bool = False
    words: tuple[tuple[str, str], ...] = ()
    standard: str = ""
    hint: str = ""
    least: int = 1
    most: int = 1_000_000


REASON = Field("reason", "Why", TEXT, required=True, hint="It is kept in the ledger, for whoever reads it later.")
ATTEMPT = Field("attempt", "Attempt", HIDDEN, hint="Only if this is still its newest attempt.")


@record
class Given:
    """What was given to an action: the names of its path, its fields as text, and whose hand it is."""

    path: Mapping[str, str]
    fields: Mapping[str, str]
    by: str

    def text(self, name: str) -> str:
        """A field; empty where it was not given."""
        return self.fields.get(name, "")

    def flag(self, name: str) -> bool:
        """Whether a flag was set."""
        return bool(self.text(name))

    def count(self, name: str) -> int | None:
        """A whole number, where it was given. Raises `Misuse` for what is none: a form is also looked at before it is read."""
        said = self.text(name)
        if said and not (said.isascii() and said.isdecimal() and len(said) < 10):
            raise Misuse(f"{name}: {said[:40]!r} is not a whole number")
        return int(said) if said else None

    @property
    def word(self) -> Word:
        """Who says it, and why."""
        return Word(self.by, self.text("reason"))


@record
class Done:
    """What was done, as the command line's document of it: its schema and its facts."""

    schema: str
    facts: dict[str, Json]


@record
class About:
    """What an action is about, as it stands: how it is named, its state and what is so; `path` is of its page.

    `attempt`: the number of its newest attempt, 0 for what has none. `line`: what to type in a shell for the same.
    """

    name: str
    word: str
    note: str
    path: str
    zone: str
    line: str
    attempt: int = 0


See: TypeAlias = "Callable[[Given], Operation[About]]"


@record
class Action:
    """An action. `does`: what a button says; `why`: what it does and what it does not.

    `see` looks at what it is about; `act` does it, in the transaction that is open; `leads` is the path of the page to look at
    when it is done. `answers` is the schema of the document that `act` makes, for those who ask by the API.
    """

    name: str
    path: str
    does: str
    why: str
    fields: tuple[Field, ...]
    see: Callable[[Given, str | None], Operation[About]]
    act: Callable[[Given], Operation[Done]]
    leads: Callable[[Mapping[str, Json]], str]
    answers: str = ""

    def field(self, name: str) -> Field | None:
        """The field of a name, where it has one."""
        return next((each for each in self.fields if each.name == name), None)

    def read(self, said: Mapping[str, str]) -> dict[str, str]:
        """The fields as they were sent, checked. Raises `Misuse`, naming the field."""
        for name in said:
            if self.field(name) is None:
                known = ", ".join(each.name for each in self.fields)
                raise Misuse(f"{name[:40]}: {self.name} has no such field; there are {known}")
        return {each.name: value for each in self.fields if (value := _read(each, said.get(each.name, "")))}


def _read(field: Field, said: str) -> str:
    said = said.strip()
    if said in ("", TO_FILL_IN):
        if field.required and not field.standard:
            raise Misuse(f"{field.name}: it is required. {field.hint}".strip())
        return field.standard
    match field.kind:
        case "choice":
            words = [word for word, _ in field.words]
            if said not in words:
                raise Misuse(f"{field.name}: {said[:40]!r} is none of {', '.join(words)}")
        case "count" | "hidden":
            is_whole = said.isascii() and said.isdecimal() and len(said) < 10
            if not is_whole or not field.least <= int(said) <= field.most:
                raise Misuse(f"{field.name}: {said[:40]!r} is not a whole number from {field.least} to {field.most}")
        case "flag":
            if said.lower() not in _YES:
                raise Misuse(f"{field.name}: {said[:40]!r} is no flag; leave it out, or write 1")
            return "1"
        case kind:
            _refuse_text(field, said, LONGEST[kind])
    return said


def _refuse_text(field: Field, said: str, longest: int) -> None:
    if len(said) > longest:
        raise Misuse(f"{field.name}: it has {len(said)} characters; {longest} are allowed")
    refuse_no_text(field.name, said)


def refuse_no_text(name: str, said: str) -> None:
    """Refuse what no database of PostgreSQL can hold: a NUL, and a surrogate that stands alone. Raises `Misuse`."""
    if "\0" in said or any("\ud800" <= sign <= "\udfff" for sign in said):
        raise Misuse(f"{name}: it holds what is no text")
