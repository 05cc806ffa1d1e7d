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
    return f"{SCHEME}:{sha256(canonical(payload, 'payload')).hexdigest()}"


def canonical(value: Json, where: str) -> bytes:
    """The canonical JSON of a value. Raises `PayloadInvalid`, naming what is none; `where` is what it is called."""
    _check(value, where)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


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
