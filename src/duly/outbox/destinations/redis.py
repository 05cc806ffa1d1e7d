"""Redis streams: one entry in a stream, and beside it a key of its own that says which entry it was.

A script does both as one, so that a message that comes again finds what it did before: the same entry, no second one. That key
is kept for as long as `remembers` says, and so is what this destination remembers. What Redis has it has in memory; how much
of it outlives a crash is said by its own settings (`appendfsync`, replicas); `noeviction` keeps it from forgetting by itself.

The protocol is spoken here (docs/decisions/0016): it is an array of texts, and an answer of five kinds.
"""

from __future__ import annotations

import hashlib
from time import time
from urllib.parse import unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.child import filled
from duly.outbox.destinations.line import Certificates, Deadline, NoLine, connected
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

    Reply = bytes | int | None | list["Reply"]

LENGTH = 64 * 1024 * 1024

# KEYS: the stream; the key of this message. ARGV: milliseconds to remember it, or 0; entries to keep, or 0; the hash of the
# body; fields and values. The key is written first, so that whoever may not write it adds no entry either.
ADD_ONCE = """\
local was = redis.call('get', KEYS[2])
if was and was ~= 'begun' then return was end
local kept = {}
if ARGV[1] ~= '0' then kept = {'px', ARGV[1]} end
redis.call('set', KEYS[2], 'begun', unpack(kept))
local entry = {'*'}
if ARGV[2] ~= '0' then entry = {'maxlen', '~', ARGV[2], '*'} end
for i = 4, #ARGV do entry[#entry + 1] = ARGV[i] end
local id = redis.pcall('xadd', KEYS[1], unpack(entry))
if type(id) == 'table' and id.err then
    redis.call('del', KEYS[2])
    return id
end
local now = id .. ' ' .. ARGV[3]
redis.call('set', KEYS[2], now, unpack(kept))
return {now}
"""

_NOT_NOW = ("LOADING", "READONLY", "OOM", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY")
_UNSURE = ("EXECABORT", "UNKILLABLE")


def declared(settings: Settings) -> Redis:
    """The destination that a table with `kind = "redis"` declares."""
    url = settings.url(as_in="redis://redis.example.com/0")
    stream = settings.text("stream", as_in="orders")
    remembers = settings.remembers(7 * DAY)
    if remembers == 0:
        raise Misuse(f'{settings.key("remembers")}: a key is always kept here; write how long, as remembers = "7d"')
    return Redis(
        url=url,
        stream=stream,
        password=settings.secret("password"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        max_entries=settings.number("max_entries", 0, least=1) or 0,
        probe=probe_of(settings),
        remembers=remembers,
        max_length=settings.number("max_length", LENGTH),
    )


class Redis:
    """A stream of Redis."""

    kind = "redis"
    key_form = "a key beside the stream"
    reads_own_writes = False

    def __init__(
        self,
        *,
        url: Secret,
        stream: str,
        password: Secret | None,
        ca_file: str | None,
        max_entries: int,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self._url = url
        self._stream = stream
        self._password = password
        self._certificates = Certificates(ca_file)
        self._max_entries = max_entries
        self._probe = probe
        self._kept: Session | None = None

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Add one entry, unless the message has one."""
        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        deadline = Deadline(seconds)
        digest = hashlib.sha256(message.body).hexdigest()
        try:
            session = self._session(deadline)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))
        try:
            answer = session.ask(deadline, "EVAL", ADD_ONCE, 2, *self._arguments(message, digest))
        except Complaint as e:
            self.close()
            return e.meaning
        except Lost:
            self.close()
            return Unknown(deadline.why("the connection was lost before an answer came"))
        is_new = isinstance(answer, list)
        entry, _, its_digest = _text(answer[0] if isinstance(answer, list) and answer else answer).partition(" ")
        if not _is_entry(entry):
            self.close()
            return Unknown("its answer was none of the script's")
        if its_digest != digest:
            return Refused("the message has an entry with another body")
        return Delivered(f"entry {entry}" if is_new else f"entry {entry}, from an earlier sending")

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Look for the message's key. That it is not there tells nothing when its time is over."""
        if self._probe.is_declared:
            return self._probe.ask(message, seconds=seconds)
        deadline = Deadline(seconds)
        try:
            answer = self._session(deadline).ask(deadline, "GET", _beside(self._stream_of(message), message.key))
        except (NoLine, SecretMissing, Lost, Complaint) as e:
            self.close()
            return CannotTell(str(e))
        entry = _text(answer).partition(" ")[0]
        if _is_entry(entry):
            return Happened(f"entry {entry}")
        if answer is not None and entry != "begun":
            return CannotTell("its answer was none of the script's")
        since = message.first_sent_at
        if self.remembers is not None and since is not None and time() * 1_000_000 - since >= self.remembers:
            return CannotTell("no key of it is there, nor would be any more")
        return DidNot("no key of it is there")

    def close(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _stream_of(self, message: Message) -> str:
        return filled(self._stream, message)

    def _arguments(self, message: Message, digest: str) -> tuple[str | bytes | int, ...]:
        stream = self._stream_of(message)
        milliseconds = 0 if self.remembers is None else max(self.remembers // 1000, 1)
        options = (stream, _beside(stream, message.key), milliseconds, self._max_entries, digest)
        fields = ("key", message.key, "run", message.run, "name", message.name, "content_type", message.content_type)
        return (*options, *fields, "body", message.body)

    def _session(self, deadline: Deadline) -> Session:
        """The kept session if it still answers, else a new one. Raises `NoLine` and `SecretMissing`."""
        if self._kept is not None:
            try:
                self._kept.ask(deadline, "PING")
            except (Lost, Complaint):
                self.close()
            else:
                return self._kept
        parts = urlsplit(self._url.read())
        number = parts.path[1:] or "0"
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or not number.isdigit():
            raise NoLine("its URL is not one of redis or rediss")
        tls = self._certificates.context() if parts.scheme == "rediss" else None
        self._kept = session = Session(connected(parts.hostname, parts.port or 6379, deadline, tls=tls))
        password = self._password.read() if self._password else unquote(parts.password or "")
        try:
            if password:
                session.ask(deadline, "AUTH", *([unquote(parts.username)] if parts.username else []), password)
            if number != "0":
                session.ask(deadline, "SELECT", number)
            session.ask(deadline, "PING")
        except Complaint as e:
            self.close()
            raise NoLine(f"it did not let us in: {e}") from None
        except Lost:
            self.close()
            raise NoLine(deadline.why("the session failed")) from None
        return session


def _beside(stream: str, key: str) -> str:
    """The name of a message's own key: on the same node of a cluster as its stream, whose name or tag it has as its tag."""
    return f"{stream}:duly:{key}" if "{" in stream else f"{{{stream}}}:duly:{key}"


def _text(reply: Reply) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


def _is_entry(text: str) -> bool:
    milliseconds, dash, number = text.partition("-")
    return bool(dash) and milliseconds.isdigit() and number.isdigit() and len(text) <= 42


# -- the protocol -------------------------------------------------------------------------------------------------------


class Lost(Exception):
    """The connection was lost, or what came was none of the protocol's."""

    def __str__(self) -> str:
        return "the connection was lost"


class Complaint(Exception):
    """Redis answered with an error. Its first word is its kind; the others may repeat what was said, and are not shown."""

    def __init__(self, words: bytes) -> None:
        first = words.split(b" ", 1)[0].decode("ascii", "replace")
        self.kind = first if first.isalpha() and first.isupper() and len(first) <= 20 else "ERR"
        super().__init__(f"error {self.kind}")

    @property
    def meaning(self) -> Outcome:
        """What it means for a message: a script that failed has added no entry."""
        if self.kind in _UNSURE:
            return Unknown(str(self))
        return NotSent(str(self)) if self.kind in _NOT_NOW else Refused(str(self))


class Session:
    """A connection where commands are said, and answered one after the other (RESP2)."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._file = line.makefile("rb")

    def ask(self, deadline: Deadline, *words: str | bytes | int) -> Reply:
        """Say a command, and hear its answer. Raises `Lost` and `Complaint`."""
        said = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        command = b"*%d\r\n" % len(said) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in said)
        try:
            with deadline.over(lambda: self._line):
                self._line.settimeout(deadline.left())
                self._line.sendall(command)
                return self._reply()
        except (OSError, ValueError, EOFError):
            raise Lost from None

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._line.close()

    def _reply(self) -> Reply:
        line = self._file.readline(1_000_000)
        if not line.endswith(b"\r\n"):
            raise EOFError
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Complaint(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        raise EOFError

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count + 2)
        if len(found) < count + 2:
            raise EOFError
        return found[:-2]
