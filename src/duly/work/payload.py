"""Payload: what a run was asked to do, as a hash. The same key with another payload is rejected (I6)."""

from __future__ import annotations

import json
from hashlib import sha256

from duly.errors import PayloadInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

SCHEME = "json1"  # sorted keys, no blanks, UTF-8, Python's shortest floats


def payload_hash(payload: Json) -> str:
    """The scheme and SHA-256 of a payload's canonical JSON. Raises `PayloadInvalid`, naming what cannot be hashed."""
    return f"{SCHEME}:{sha256(canonical(payload, 'payload').encode('utf-8', 'surrogatepass')).hexdigest()}"


def canonical(value: Json, name: str) -> str:
    """The one text of a JSON value. Raises `PayloadInvalid`, naming what in `name` is not JSON."""
    try:
        _check(value, name)
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise PayloadInvalid(f"{name}: it is too deep, or holds itself") from None
    except ValueError as e:
        if isinstance(e, PayloadInvalid):
            raise
        raise PayloadInvalid(f"{name}: it has a number that is too long to be written") from None


def parsed(text: str | None) -> Json:
    """The JSON value of a text that is kept; None where there is none."""
    return None if text is None else json.loads(text)


def _check(value: object, where: str) -> None:
    match value:
        case None | bool() | int() | str():
            return
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise PayloadInvalid(f"{where}: {value} is not a number that JSON has")
        case list() | tuple():
            for index, item in enumerate(value):
                _check(item, f"{where}[{index}]")
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise PayloadInvalid(f"{where}: the key {name!r} is not a string")
                _check(item, f"{where}.{name}")
        case _:
            raise PayloadInvalid(
                f"{where}: a {type(value).__name__} is not JSON; give text, numbers, lists and objects"
            )
