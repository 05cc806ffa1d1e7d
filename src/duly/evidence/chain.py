"""Chain: lines of JSON of which none can be changed, removed, moved or added without its showing.

Each line carries the SHA-256 of the hash of the line before it and of what it says itself, in one canonical form: keys in
order, no blanks, UTF-8. The last line, the trailer, closes the chain; whoever keeps its hash elsewhere, or a secret key that
made its `mac`, can tell a file that was written anew from the one that was. docs/audit.md says it so that it can be checked
without duly.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

FIRST = "0" * 64  # what stands for the hash of a line before the first
SCHEMA = "duly.export.v1"
HEADER, WINDOW, TRAILER = "header", "window", "trailer"


def canonical(fields: Mapping[str, Json]) -> bytes:
    """The one way to write it (RFC 8785, of texts and whole numbers): keys in order, no blanks, UTF-8. Pure."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def link(previous: str, fields: Mapping[str, Json]) -> str:
    """The hash of a line that says `fields`, after a line of hash `previous`. Pure."""
    return hashlib.sha256(previous.encode() + canonical(fields)).hexdigest()


def sign(key: bytes, closing: str) -> str:
    """The `mac` of a trailer of this hash: HMAC-SHA256. Pure."""
    return hmac.new(key, closing.encode(), hashlib.sha256).hexdigest()


class Chain:
    """What is being written: the hash of its last line, and how many windows of each state there were."""

    def __init__(self) -> None:
        self.hash = FIRST
        self.states: dict[str, Json] = {}
        self.windows = 0

    def line(self, fields: Mapping[str, Json]) -> bytes:
        """The next line, with its hash and its end."""
        self.hash = link(self.hash, fields)
        if fields["kind"] == WINDOW:
            self.windows += 1
            count = self.states.get(str(fields["state"]), 0)
            assert isinstance(count, int)
            self.states[str(fields["state"])] = count + 1
        return canonical({**fields, "hash": self.hash}) + b"\n"

    def trailer(self, key: bytes | None) -> bytes:
        """The last line; with a key it is signed."""
        fields: dict[str, Json] = {"kind": TRAILER, "windows": self.windows, "states": self.states}
        self.hash = link(self.hash, fields)
        signed: dict[str, Json] = {} if key is None else {"mac": sign(key, self.hash)}
        return canonical({**fields, "hash": self.hash, **signed}) + b"\n"


# What of each kind of line is read here, or compared with a ledger; more may stand there.
_FIELDS = {
    HEADER: {"schema", "ledger", "range", "job", "scope", "exported_at"},
    WINDOW: {"key", "job", "scope", "window", "zone", "state"},
    TRAILER: {"windows", "states"},
}


@record
class Broken:
    """What is wrong with a file, and in which of its lines, from 1 on; 0: in none of them."""

    line: int
    text: str


class Reading:
    """A file that is being read and checked line by line. `broken` says what was found; after the first there is no more.

    `is_signed`: its trailer has a mac.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._chain = Chain()
        self.header: dict[str, Json] = {}
        self.closing = ""
        self.mac = ""
        self.broken: Broken | None = None

    @property
    def counted(self) -> int:
        """How many windows were read."""
        return self._chain.windows

    @property
    def is_signed(self) -> bool:
        return bool(self.mac)

    def windows(self) -> Iterator[dict[str, Json]]:
        """What the file says of each window, up to where it is broken, if it is."""
        number = 0
        for number, line in enumerate(self._lines, 1):
            fields = self._read(number, line)
            if fields is None:
                return
            if fields["kind"] == WINDOW:
                yield fields
        if not self.closing:
            self.broken = Broken(number, "the file ends without a trailer: it was cut off")

    def _read(self, number: int, line: bytes) -> dict[str, Json] | None:
        found = self._parsed(line)
        if found is None:
            return self._break(number, "it is no line of an export")
        said, mac = found.pop("hash", None), found.pop("mac", None)
        if self.closing:
            return self._break(number, "it stands after the trailer: it was added")
        if (number == 1) != (found["kind"] == HEADER):
            return self._break(number, "the first line, and only that, is the header")
        if number == 1 and found.get("schema") != SCHEMA:
            return self._break(number, f"its schema is {found.get('schema')!r}, not {SCHEMA!r}")
        if found["kind"] == TRAILER:
            return self._close(number, found, said, mac)
        self._chain.line(found)
        if said != self._chain.hash or mac is not None:
            return self._break(number, "its hash is another: it was changed, or a line before it was removed or moved")
        if number == 1:
            self.header = found
        return found

    def _close(self, number: int, found: dict[str, Json], said: Json, mac: Json) -> dict[str, Json] | None:
        counted = {"windows": self._chain.windows, "states": self._chain.states}
        if link(self._chain.hash, found) != said:
            return self._break(number, "the trailer's hash is another: it was changed, or a line before it was removed")
        if {name: found.get(name) for name in counted} != counted:
            return self._break(number, "the trailer counts other windows than there are")
        self.closing, self.mac = str(said), "" if mac is None else str(mac)
        return found

    @staticmethod
    def _parsed(line: bytes) -> dict[str, Json] | None:
        """The fields of a line that is written in the one canonical way, and is of a kind; else None."""
        try:
            found = json.loads(line)
            is_canonical = isinstance(found, dict) and canonical(found) + b"\n" == line
        except (ValueError, RecursionError):  # of bytes that are no UTF-8 too
            return None
        if not is_canonical or found.get("kind") not in tuple(_FIELDS):
            return None
        return found if _FIELDS[found["kind"]] <= found.keys() else None

    def _break(self, number: int, text: str) -> dict[str, Json] | None:
        self.broken = Broken(number, text)
        return None

    def distrust(self, *, key: bytes | None, expected: str | None) -> Broken | None:
        """What is wrong with a file that is whole: it is not the one that was kept in mind, or not signed by the key."""
        if expected is not None and expected.strip().lower() != self.closing:
            return Broken(0, f"its last hash is {self.closing}, not the one expected: it was written anew")
        if key is None:
            return None
        if not self.is_signed:
            return Broken(0, "it is not signed: it was written without the key")
        if not hmac.compare_digest(sign(key, self.closing).encode(), self.mac.encode()):
            return Broken(0, "it is not signed with this key: the trailer was written anew")
        return None
