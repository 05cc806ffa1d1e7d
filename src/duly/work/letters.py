"""Letters: the messages that a run has noted, until its completion writes them down.

Noted at once, written with the completion, in whichever transaction that is: so nothing is sent of a run that did not
complete, and noting a message costs nothing but memory.
"""

from __future__ import annotations

from duly.errors import Misuse
from duly.ledger.send import MOST_MESSAGES, Letter, check_letter, conflict
from duly.work.identity import idempotency_key
from duly.work.payload import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.schedule.keys import RunKey
    from duly.work.payload import Json

TEXT, BYTES, JSON = "text/plain; charset=utf-8", "application/octet-stream", "application/json"


def letter_of(destination: str, body: Json | bytes, *, name: str | None, content_type: str | None) -> Letter:
    """A message that can be sent: text and bytes as they are, anything else as canonical JSON. Raises `Misuse`, never with the
    body in its words.
    """
    _check_text("destination", destination)
    _check_text("name", name)
    _check_text("content_type", content_type)
    if isinstance(body, (bytes, bytearray, memoryview)):
        content, kind = bytes(body), BYTES
    else:
        text, kind = (body, TEXT) if isinstance(body, str) else (canonical(body, "body"), JSON)
        try:
            content = text.encode()
        except UnicodeEncodeError:
            # As JSON neither: RFC 8259 wants it in UTF-8, which has none.
            raise Misuse("body: a text with surrogates that stand alone cannot be sent; send bytes") from None
    return check_letter(Letter(destination, destination if name is None else name, content_type or kind, content))


def _check_text(what: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise Misuse(f"{what}: give text, not {type(value).__name__}")


def key_of_message(namespace: str, key: RunKey, name: str, first_name: str) -> str:
    """The idempotency key of a message of a run."""
    return idempotency_key(namespace, key, name, first_name=first_name)


class Letters:
    """The messages of one attempt, in the order in which they were noted."""

    def __init__(self, key_of: Callable[[str], str]) -> None:
        self._key_of = key_of
        self._noted: dict[str, Letter] = {}

    def note(self, letter: Letter) -> None:
        """Note a message; the same again is a no-op. Raises `PayloadConflict` for another of its name, and `Misuse`."""
        noted = self._noted.get(letter.name)
        if noted is None and len(self._noted) >= MOST_MESSAGES:
            raise Misuse(f"send: a run has at most {MOST_MESSAGES} messages; send what they have in common, once")
        if noted is not None and noted != letter:
            raise conflict(letter.name)
        self._noted[letter.name] = letter

    def keyed(self) -> list[tuple[Letter, str]]:
        """Each with the idempotency key that its receiver will know it by."""
        return [(letter, self._key_of(name)) for name, letter in self._noted.items()]

    def __len__(self) -> int:
        return len(self._noted)
