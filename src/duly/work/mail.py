"""Mail: what a command left in `$DULY_OUTBOX`, read when it has ended well.

    {"destination": "billing", "name": "invoice-4711", "body": {"units": 10}}
    {"destination": "post", "name": "receipt", "body": "Dear …", "content_type": "text/plain; charset=utf-8"}

A line is one JSON object. A body that is text goes as it is, anything else as JSON; `body_base64` holds bytes. The name is the
destination's if it is left out. What cannot be understood is refused as a whole: nothing of it is sent, and no line is shown.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64

from duly.errors import DulyError, PayloadConflict, PayloadInvalid, UnknownDestination
from duly.ledger.send import MOST_MESSAGES
from duly.work.destinations import Destinations
from duly.work.letters import Letters, key_of_message, letter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from duly.ledger.send import Letter
    from duly.schedule.keys import RunKey
    from duly.work.letterbox import Mail

LONGEST_MAIL = 16 << 20  # bytes
_KEYS = {"destination", "name", "body", "body_base64", "content_type"}


class MailRefused(Exception):
    """A command's messages cannot be understood; which line, and why, without what it says."""


def letters_in(mail: Mail, namespace: str, key: RunKey, first_name: str) -> list[tuple[Letter, str]]:
    """The messages in it, each with its idempotency key. Raises `MailRefused` where one of them is none."""
    text = mail.read(LONGEST_MAIL + 1)
    if len(text) > LONGEST_MAIL:
        raise MailRefused(f"it holds more than {LONGEST_MAIL >> 20} MiB; nothing is sent")
    if not text.endswith(b"\n"):
        raise MailRefused("its last line has no end, and may be half a message; nothing is sent")
    letters = Letters(lambda name: key_of_message(namespace, key, name, first_name))
    destinations = Destinations()
    for number, line in enumerate(text.splitlines(), 1):
        if number > MOST_MESSAGES:
            raise MailRefused(f"it holds more than {MOST_MESSAGES} messages; nothing is sent")
        try:
            letter = _letter(line)
            destinations.check(letter.destination)
            letters.note(letter)
        except PayloadInvalid:  # its words name parts of the body
            raise MailRefused(f"line {number} has a body that is not JSON; nothing is sent") from None
        except UnknownDestination:  # its words name what was asked for, and that may be an address with a password
            raise MailRefused(f"line {number} names a destination that nobody declared; nothing is sent") from None
        except PayloadConflict:
            raise MailRefused(
                f"line {number} has the name of another message, and says something else; nothing is sent"
            ) from None
        except DulyError as e:  # of a field, in words that show no value
            raise MailRefused(f"line {number}: {e}; nothing is sent") from None
        except _NotOne as e:
            raise MailRefused(f"line {number} {e}; nothing is sent") from None
    return letters.keyed()


class _NotOne(Exception):
    """Why a line is no message."""


def _letter(line: bytes) -> Letter:
    fields = _object(line)
    if not fields.keys() <= _KEYS:
        raise _NotOne(f"has a key that says nothing; a message has {', '.join(sorted(_KEYS))}")
    for key in ("destination", "name", "content_type", "body_base64"):
        if key in fields and not isinstance(fields[key], str):
            raise _NotOne(f"has a {key} that is no text")
    if "destination" not in fields:
        raise _NotOne("names no destination")
    if ("body" in fields) == ("body_base64" in fields):
        raise _NotOne("has to have a body, or a body_base64")
    body = fields["body"] if "body" in fields else _bytes(fields["body_base64"])
    return letter_of(fields["destination"], body, name=fields.get("name"), content_type=fields.get("content_type"))


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise _NotOne("is not JSON") from None
    if not isinstance(found, dict):
        raise _NotOne("is no JSON object")
    return found


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise _NotOne("has a body_base64 that is none") from None
