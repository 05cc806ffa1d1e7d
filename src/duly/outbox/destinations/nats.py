"""NATS JetStream: one message on a subject of a stream, with the key in `Nats-Msg-Id`.

A stream knows a key again for its duplicate window, which is asked of it: no setting can promise more. What it stored it
acknowledges with a number; what it had stored before, with the same number and a flag. An answer that is no acknowledgement of
that stream is none: it may come from whoever else listens on the subject.

The protocol is spoken here (docs/decisions/0016): five verbs of text. The client library keeps what it could not send and
sends it after it has found a server again, so that "surely not sent" could never be said.
"""

from __future__ import annotations

import json
import re
import secrets
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, Happened, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.child import filled
from duly.outbox.destinations.line import Certificates, Deadline, NoLine, connected, encrypted
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

_ASKED_FOR = 5.0  # seconds that it may take to ask a stream for its window
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_SUBJECT = re.compile(r"[^\s*>]{1,500}")
_SCHEMES = ("nats", "tls")


def declared(settings: Settings) -> Nats:
    """The destination that a table with `kind = "nats"` declares."""
    url = settings.url(as_in="nats://nats.example.com")
    stream = settings.text("stream", as_in="ORDERS")
    if not _NAME.fullmatch(stream):
        raise Misuse(f'{settings.key("stream")}: {stream!r} is no name of a stream; write stream = "ORDERS"')
    subject = settings.text("subject", as_in="orders.{name}")
    if not _SUBJECT.fullmatch(subject):
        raise Misuse(
            f'{settings.key("subject")}: {subject!r} is no subject to publish on; write subject = "orders.{{name}}"'
        )
    return Nats(
        url=url,
        stream=stream,
        subject=subject,
        password=settings.secret("password"),
        token=settings.secret("token"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        probe=probe_of(settings, without="a stream finds a message again only if {key} is in its subject"),
        max_length=settings.number("max_length", None),
    )


class Nats:
    """A stream of JetStream."""

    kind = "nats"
    key_form = "Nats-Msg-Id"
    reads_own_writes = False

    def __init__(
        self,
        *,
        url: Secret,
        stream: str,
        subject: str,
        password: Secret | None,
        token: Secret | None,
        ca_file: str | None,
        probe: Probe,
        max_length: int | None,
    ) -> None:
        self._url = url
        self._stream, self._subject = stream, subject
        self._password, self._token = password, token
        self._certificates = Certificates(ca_file)
        self._probe = probe
        self._max_length = max_length
        self._window: int | None = None
        self._kept: Session | None = None

    @property
    def remembers(self) -> int:
        """The stream's duplicate window; `NEVER` as long as it does not say."""
        if self._window is None:
            deadline = Deadline(_ASKED_FOR)
            with suppress(NoLine, SecretMissing, Lost, Complaint):
                answer = self._session(deadline).ask(f"$JS.API.STREAM.INFO.{self._stream}", b"", deadline)
                window = (_object(answer.body).get("config") or {}).get("duplicate_window")
                self._window = window // 1000 if isinstance(window, int) else None  # it counts nanoseconds
        return self._window or 0

    @property
    def max_length(self) -> int | None:
        """What is declared, or what the server said when it was last reached."""
        return self._max_length if self._kept is None or self._max_length is not None else self._kept.max_payload

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Publish one message, and wait for the stream's acknowledgement."""
        deadline = Deadline(seconds)
        subject = filled(self._subject, message)
        if not _SUBJECT.fullmatch(subject):
            return Refused("its name makes no subject: it has white space, * or > in it")
        headers = _headers(message, self._stream)
        if (refused := too_long(message, self._max_length)) is not None:
            return refused
        try:
            session = self._session(deadline)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))
        if len(headers) + len(message.body) > session.max_payload:
            return Refused(
                f"the body has {len(message.body)} bytes, and the server takes {session.max_payload} with headers"
            )
        try:
            answer = session.ask(subject, message.body, deadline, headers=headers)
        except Complaint as e:
            self.close()
            return Refused(str(e)) if e.is_of_the_message else Unknown(str(e))
        except Lost:
            self.close()
            return Unknown(deadline.why("the connection was lost before the stream acknowledged"))
        return meaning_of(answer, self._stream)

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Look for a message on a subject of its own. That none is there tells nothing: it may have been read and removed."""
        if self._probe.is_declared or "{key}" not in self._subject:
            return self._probe.ask(message, seconds=seconds)
        deadline = Deadline(seconds)
        query = json.dumps({"last_by_subj": filled(self._subject, message)}).encode()
        try:
            answer = self._session(deadline).ask(f"$JS.API.STREAM.MSG.GET.{self._stream}", query, deadline)
        except (NoLine, SecretMissing, Lost, Complaint) as e:
            self.close()
            return CannotTell(str(e))
        found = _object(answer.body).get("message")
        if isinstance(found, dict) and isinstance(found.get("seq"), int):
            return Happened(f"seq {found['seq']} of its stream")
        return CannotTell("its stream has no such message, or none any more")

    def close(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _session(self, deadline: Deadline) -> Session:
        """The kept session if it still answers, else a new one. Raises `NoLine` and `SecretMissing`."""
        if self._kept is not None:
            try:
                self._kept.prove(deadline)
            except (Lost, Complaint):
                self.close()
            else:
                return self._kept
        parts = urlsplit(self._url.read())
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise NoLine("its URL is not one of nats or tls")
        who: dict[str, Any] = {}
        if parts.username:
            who = {"user": unquote(parts.username)}
            who["pass"] = self._password.read() if self._password else unquote(parts.password or "")
        if self._token is not None:
            who["auth_token"] = self._token.read()
        line = connected(parts.hostname, parts.port or 4222, deadline)
        try:
            self._kept = Session(line, deadline)
            self._kept.begin(parts.hostname, who, deadline, tls=self._certificates, must_encrypt=parts.scheme == "tls")
        except (Lost, Complaint) as e:
            self.close()
            line.close()
            raise NoLine(deadline.why(str(e) if isinstance(e, Complaint) else "the session failed")) from None
        except NoLine:
            self.close()
            raise
        return self._kept


# -- what an answer means -----------------------------------------------------------------------------------------------


def meaning_of(answer: Answer, stream: str) -> Outcome:
    """What an answer to a message means: the stream's acknowledgement, its refusal, or none of either."""
    if answer.status == 503:  # "no responders"
        return NotSent("no stream takes its subject")
    said = _object(answer.body)
    error, seq = said.get("error"), said.get("seq")
    if isinstance(error, dict) and isinstance(code := error.get("code"), int):
        text = f"error {code}" + (f", {error['err_code']}" if isinstance(error.get("err_code"), int) else "")
        if code == 503:  # the stream is full, or has no leader: it stored nothing
            return NotSent(text)
        return Refused(text) if 400 <= code < 500 else Unknown(text)
    if isinstance(seq, int) and said.get("stream") == stream:
        return Delivered(f"seq {seq} of its stream" + (", a duplicate" if said.get("duplicate") is True else ""))
    return Unknown("what answered is not its stream")


def _object(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(body)
        if isinstance(found, dict):
            return found
    return {}


def _headers(message: Message, stream: str) -> bytes:
    lines = [
        "NATS/1.0",
        f"Nats-Msg-Id: {message.key}",
        f"Nats-Expected-Stream: {stream}",
        f"Duly-Run: {message.run}",
        f"Content-Type: {message.content_type}",
    ]
    return "\r\n".join("".join(c for c in line if c.isprintable()) for line in lines).encode() + b"\r\n\r\n"


# -- the protocol -------------------------------------------------------------------------------------------------------


class Lost(Exception):
    """The connection was lost, or what came was none of the protocol's."""

    def __str__(self) -> str:
        return "the connection was lost"


class Complaint(Exception):
    """The server said -ERR. Its words name subjects and are not repeated; which of the known ones it was is."""

    def __init__(self, words: bytes) -> None:
        lower = words.lower()
        known = (b"permissions violation for publish", b"maximum payload violation", b"authorization violation")
        self.is_of_the_message = any(each in lower for each in known[:2])
        said = next((each.decode() for each in known if each in lower), "an error of another kind")
        super().__init__(f"the server said -ERR: {said}")


@record
class Answer:
    """What came to a question. `status`: of its headers, 0 where there are none."""

    status: int
    body: bytes


class Session:
    """A connection where subjects can be asked: one question, one answer, one after the other."""

    def __init__(self, line: socket.socket, deadline: Deadline) -> None:
        self._line = line
        self._read = b""
        self._asked = 0
        self._inbox = f"_INBOX.{secrets.token_hex(8)}"
        self.max_payload = 1_048_576

    def begin(
        self, host: str, who: dict[str, Any], deadline: Deadline, *, tls: Certificates, must_encrypt: bool
    ) -> None:
        """Be greeted, encrypt the line if either side wants that, and be let in."""
        with deadline.over(lambda: self._line):
            verb, rest = self._frame()
            about = _object(rest)
            if verb != b"INFO" or not about.get("headers"):
                raise Lost
            if must_encrypt or about.get("tls_required"):
                self._line = encrypted(self._line, host, deadline, tls.context())
            self._line.settimeout(deadline.left())
            if isinstance(about.get("max_payload"), int):
                self.max_payload = about["max_payload"]
            own = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python"}
            hello = json.dumps({**own, "name": "duly", "version": "1", "protocol": 1, **who})
            self._say(f"CONNECT {hello}\r\nSUB {self._inbox}.* 1\r\n".encode())
        self.prove(deadline)

    def prove(self, deadline: Deadline) -> None:
        """Hear that the other side is still there. Raises `Lost` and `Complaint`."""
        with deadline.over(lambda: self._line):
            self._line.settimeout(deadline.left())
            self._say(b"PING\r\n")
            while self._frame()[0] != b"PONG":
                pass

    def ask(self, subject: str, body: bytes, deadline: Deadline, *, headers: bytes = b"") -> Answer:
        """Publish, and wait for the answer. Raises `Lost` and `Complaint`: what was said may have been heard."""
        self._asked += 1
        reply = f"{self._inbox}.{self._asked}"
        if headers:
            head = f"HPUB {subject} {reply} {len(headers)} {len(headers) + len(body)}\r\n"
        else:
            head = f"PUB {subject} {reply} {len(body)}\r\n"
        with deadline.over(lambda: self._line):
            self._line.settimeout(deadline.left())
            self._say(head.encode() + headers + body + b"\r\n")
            while True:
                verb, rest = self._frame()
                if verb in (b"MSG", b"HMSG"):
                    words = rest.split()
                    content = self._bytes(_number(words[-1]) + 2)[:-2]
                    if words[0] != reply.encode():
                        continue  # an answer that came too late for its question
                    return _answer(content, _number(words[-2]) if verb == b"HMSG" else 0)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def _frame(self) -> tuple[bytes, bytes]:
        """The next frame but for its content: verb and the rest of its line. A PING is answered at once."""
        while True:
            while b"\r\n" not in self._read:
                if len(self._read) > 100_000:  # no line of the protocol is that long
                    raise Lost
                self._more()
            line, _, self._read = self._read.partition(b"\r\n")
            verb, _, rest = line.partition(b" ")
            if verb.upper() == b"PING":
                self._say(b"PONG\r\n")
            elif verb.upper() == b"-ERR":
                raise Complaint(rest)
            else:
                return verb.upper(), rest

    def _bytes(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more()
        found, self._read = self._read[:count], self._read[count:]
        return found

    def _more(self) -> None:
        try:
            block = self._line.recv(65536)
        except (OSError, ValueError):
            raise Lost from None
        if not block:
            raise Lost
        self._read += block

    def _say(self, what: bytes) -> None:
        try:
            self._line.sendall(what)
        except (OSError, ValueError):
            raise Lost from None


def _answer(content: bytes, of_headers: int) -> Answer:
    headers, body = content[:of_headers], content[of_headers:]
    status = re.match(rb"NATS/1\.0 (\d{3})", headers)
    return Answer(int(status[1]) if status else 0, body)


def _number(word: bytes) -> int:
    if not word.isdigit() or len(word) > 9:
        raise Lost
    return int(word)
