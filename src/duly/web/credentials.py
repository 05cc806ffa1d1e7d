"""Credentials: a token, and people with passwords, read from files that nobody else may read.

A password is kept as what `scrypt` (RFC 7914) makes of it, a line a person; a token stands in its file as it is. Neither is
ever part of a command line, of which every process of a machine can read every word. What was right once is known again by a
keyed digest in memory, so that `scrypt` is not paid for each picture of a page.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from duly.errors import Misuse
from duly.records import record

_WORK, _BLOCK, _LANES = (
    1 << 14,
    8,
    1,
)  # 16 MiB and some 50 ms: OWASP's cheat sheet on passwords, for scrypt, asks no less
_SHORTEST_TOKEN = 16
TOKEN = "DULY_WEB_TOKEN"  # noqa: S105  the name of a variable


@record
class Credentials:
    """A token, and the passwords of people as lines of their file. Shown as neither."""

    token: str | None
    people: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"<Credentials of {len(self.people)} people{' and a token' if self.token else ''}>"


class Doorkeeper:
    """Says who somebody is by what they show."""

    def __init__(self, credentials: Credentials) -> None:
        self._token = credentials.token
        self._people = dict(credentials.people)
        self._key = os.urandom(32)
        self._known: dict[str, bytes] = {}

    def by_token(self, shown: str) -> bool:
        """Whether it is the token."""
        return self._token is not None and hmac.compare_digest(self._digest(shown), self._digest(self._token))

    def remembers(self, name: str, password: str) -> bool:
        """Whether this password of this person was right before."""
        known = self._known.get(name)
        return known is not None and hmac.compare_digest(known, self._digest(f"{name}\n{password}"))

    def by_password(self, name: str, password: str) -> bool:
        """Whether it is this person's password: slow, and as slow for somebody whom nobody knows."""
        line = self._people.get(name)
        right = _is_password(password, line or _NOBODY) and line is not None
        if right:
            self._known[name] = self._digest(f"{name}\n{password}")
        return right

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


def basic(header: str) -> tuple[str, str] | None:
    """Name and password of an `Authorization: Basic` (RFC 7617); None for what is none. Pure."""
    kind, _, rest = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, colon, password = b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")
    except (NotBase64, UnicodeDecodeError):
        return None
    return (name, password) if colon else None


def password_line(name: str, password: str) -> str:
    """The line of a person for the file: `ops:scrypt$salt$hash`. Raises `Misuse`."""
    if not name or ":" in name or not name.isprintable() or name != name.strip():
        raise Misuse(f"--password-for: {name!r} is no name; leave out colons, and blanks at its ends")
    if len(password) < 8:
        raise Misuse(
            "--password-for: the password has fewer than 8 characters", next_step=f"duly web --password-for {name}"
        )
    salt = os.urandom(16)
    return f"{name}:scrypt${b64encode(salt).decode()}${b64encode(_hash(password, salt)).decode()}"


def read_token(path: str) -> str:
    """The token of a file. Raises `Misuse`, without a word of what was given for its path: that may be the token itself."""
    token = _read(path, "--token-file").strip()
    return checked_token(token, "--token-file")


def checked_token(token: str, where: str) -> str:
    """A token that is long enough to be none that can be guessed. Raises `Misuse`."""
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise Misuse(
            f"{where}: a token has at least {_SHORTEST_TOKEN} printable characters and no blank",
            next_step="openssl rand -hex 24 > token; chmod 600 token",
        )
    return token


def read_people(path: str) -> tuple[tuple[str, str], ...]:
    """The people of a file. Raises `Misuse`."""
    people = []
    for number, line in enumerate(_read(path, "--basic-file").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, kept = line.strip().partition(":")
        if not name or not _is_kept(kept):
            raise Misuse(
                f"--basic-file: line {number} is none that `duly web --password-for NAME` has made",
                next_step="duly web --password-for ops >> people; chmod 600 people",
            )
        people.append((name, kept))
    if not people:
        raise Misuse(
            "--basic-file: it names nobody", next_step="duly web --password-for ops >> people; chmod 600 people"
        )
    return tuple(people)


def _read(path: str, flag: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o007:
                raise Misuse(f"{flag}: everybody may read that file", next_step=f"chmod 600 {_quoted(path)}")
            return file.read()
    except (OSError, UnicodeDecodeError, ValueError) as e:
        if isinstance(e, Misuse):
            raise
        why = e.strerror if isinstance(e, OSError) else "it is no text"
        raise Misuse(f"{flag} takes the path of a file, and what was given cannot be read: {why}") from None


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=_BLOCK, p=_LANES, dklen=32)


def _parts(kept: str) -> tuple[bytes, bytes] | None:
    kind, _, rest = kept.partition("$")
    salt, _, digest = rest.partition("$")
    try:
        parts = b64decode(salt, validate=True), b64decode(digest, validate=True)
    except (NotBase64, ValueError):
        return None
    return parts if kind == "scrypt" and len(parts[0]) == 16 and len(parts[1]) == 32 else None


def _is_kept(kept: str) -> bool:
    return _parts(kept) is not None


def _is_password(password: str, kept: str) -> bool:
    parts = _parts(kept)
    return parts is not None and hmac.compare_digest(_hash(password, parts[0]), parts[1])


# So that who asks for somebody unknown waits as long as who asks for somebody known.
_NOBODY = f"scrypt${b64encode(bytes(16)).decode()}${b64encode(bytes(32)).decode()}"
