"""HTTP: one POST for a message, with the key in `Idempotency-Key`.

The line is reached before a byte of the request is said, so that what fails until then is surely not sent. From the first byte
on, whatever is not a whole answer is unknown. What a whole answer means is one function, `meaning_of`.

A connection is kept for the next message only where the receiver remembers keys. A receiver may close an idle one at the very
moment when a request is sent on it, and then nobody knows; where it remembers, that costs a repetition, and elsewhere a person.

`http.client` is used and not a library above it (docs/decisions/0016): it follows nothing, repeats nothing, and connects
when it is told.
"""

from __future__ import annotations

import base64
import select
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from time import time
from urllib.parse import quote, unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.line import Certificates, Deadline, NoLine, connected
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing
from duly.outbox.destinations.signing import signed
from duly.records import record
from duly.times import DAY, SECOND, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from urllib.parse import SplitResult

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

KEY_HEADER, FIRST_SENT = "Idempotency-Key", "Duly-First-Sent"
_OWN = ("host", "content-length", "content-type", "transfer-encoding", "connection", "webhook-id", "webhook-signature")


def declared(settings: Settings) -> Http:
    """The destination that a table with `kind = "http"` declares."""
    url = settings.url(as_in="https://api.example.com/orders")
    header = settings.text("key_header", KEY_HEADER, as_in=KEY_HEADER)
    headers = settings.plain_texts("headers", as_in='{ Accept = "application/json" }')
    secret_headers = settings.secret_headers()
    for name in (header, *headers, *secret_headers):
        if (
            not name
            or not name.isascii()
            or not name.replace("-", "a").replace("_", "a").isalnum()
            or name.lower() in _OWN
        ):
            raise Misuse(f"{settings.key('headers')}: {name!r} is no header that can be set here; leave it out")
    look_up = settings.maybe("look_up", as_in="https://api.example.com/orders/{key}")
    if look_up is not None and _parts(look_up) is None:
        raise Misuse(
            f'{settings.key("look_up")}: it takes a URL, as look_up = "https://api.example.com/orders/{{key}}"'
        )
    return Http(
        url=url,
        key_header=header,
        key_quoted=settings.switch("key_quoted", header == KEY_HEADER),
        headers=headers,
        secret_headers=secret_headers,
        signing_secret=settings.secret("signing_secret"),
        bearer=settings.secret("token"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        certificate_file=settings.maybe("certificate_file", as_in="/etc/ssl/us.pem"),
        key_file=settings.maybe("key_file", as_in="/run/secrets/us.key"),
        look_up=look_up,
        probe=probe_of(settings, without="neither look_up nor probe is declared for this destination"),
        remembers=settings.remembers(),
        max_length=settings.number("max_length", None),
        reads_own_writes=settings.switch("reads_own_writes", False),
    )


@record
class Answer:
    """A whole answer. `retry_after`: microseconds that it asks for. `replayed`: it is the stored one of an earlier request."""

    status: int
    retry_after: int | None = None
    replayed: bool = False


class NoAnswer(Exception):
    """The request was begun, and no whole answer came."""


class Http:
    """A receiver that takes requests."""

    kind = "http"

    def __init__(
        self,
        *,
        url: Secret,
        key_header: str,
        key_quoted: bool,
        headers: dict[str, str],
        secret_headers: dict[str, Secret],
        signing_secret: Secret | None,
        bearer: Secret | None,
        ca_file: str | None,
        certificate_file: str | None,
        key_file: str | None,
        look_up: str | None,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
        reads_own_writes: bool,
    ) -> None:
        self.key_form = f"{key_header} header"
        self.remembers = remembers
        self.max_length = max_length
        self.reads_own_writes = reads_own_writes
        self._url = url
        self._key_header, self._key_quoted = key_header, key_quoted
        self._headers, self._secret_headers = headers, secret_headers
        self._signing_secret, self._bearer = signing_secret, bearer
        self._certificates = Certificates(ca_file, certificate_file, key_file)
        self._look_up = look_up
        self._probe = probe
        self._kept: tuple[tuple[str, str, int], HTTPConnection] | None = None

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Send one request, and say what its answer means."""
        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        if not message.content_type.isascii() or not message.content_type.isprintable():
            return Refused("its content type is no value of a header")
        deadline = Deadline(seconds)
        try:
            url = self._url.read()
            headers = self._headers_of(message, url)
            line = self._line_to(url, deadline)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))
        try:
            answer = self._asked(line, "POST", url, headers, message.body, deadline)
        except NotTaken as e:
            return NotSent(str(e))
        except NoAnswer as e:
            return Unknown(str(e))
        return meaning_of(answer)

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Look the message up where `look_up` says: 200 and 204 are there, 404 is not, and all else tells nothing."""
        if self._probe.is_declared or self._look_up is None:
            return self._probe.ask(message, seconds=seconds)
        deadline = Deadline(seconds)
        url = self._look_up
        for field, value in (("{key}", message.key), ("{run}", message.run), ("{name}", message.name)):
            url = url.replace(field, quote(value, safe=""))
        try:
            # Not the line that messages go over: to ask is harmless, and to leave an answer unread on it is not.
            line = _open(url, deadline, self._tls_of(url))
            answer = self._asked(line, "GET", url, self._credentials(url), None, deadline, keep=False)
        except (NoLine, SecretMissing, NoAnswer, NotTaken) as e:
            return CannotTell(str(e))
        if answer.status in (200, 204):
            return Happened(f"{answer.status} at the look-up")
        if answer.status == 404:
            return DidNot("404 at the look-up")
        return CannotTell(f"{answer.status} at the look-up")

    def close(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    # -- what is said ----------------------------------------------------------------------------------------------------

    def _headers_of(self, message: Message, url: str) -> dict[str, str]:
        headers = {"Content-Type": message.content_type, **self._credentials(url)}
        # RFC 8941: a text is quoted. Elsewhere than in the header of the draft nobody expects that.
        headers[self._key_header] = f'"{message.key}"' if self._key_quoted else message.key
        if message.first_sent_at is not None:  # a receiver that forgets keys can tell how old this one is
            headers[FIRST_SENT] = instant_text(message.first_sent_at)
        if self._signing_secret is not None:
            headers.update(signed(message, self._signing_secret, at=int(time())))
        return headers

    def _credentials(self, url: str) -> dict[str, str]:
        headers = {"User-Agent": "duly", **self._headers}
        parts = urlsplit(url)
        if parts.username is not None:
            both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = "Basic " + base64.b64encode(both.encode()).decode()
        if self._bearer is not None:
            headers["Authorization"] = f"Bearer {self._bearer.read()}"
        headers.update((name, secret.read()) for name, secret in self._secret_headers.items())
        for name, value in headers.items():
            if not value.isascii() or not value.isprintable():
                raise SecretMissing(f"the value of the header {name} is not printable ASCII")
        return headers

    # -- the line --------------------------------------------------------------------------------------------------------

    def _line_to(self, url: str, deadline: Deadline) -> HTTPConnection:
        """The kept line if it is to the same place and still open, else a new one. Raises `NoLine`."""
        place = _parts(url)
        if place is None:
            raise NoLine("its URL is not one of http or https")
        if self._kept is not None:
            kept_place, line = self._kept
            self._kept = None
            if kept_place == place and _is_quiet(line.sock):
                return line
            line.close()
        return _open(url, deadline, self._tls_of(url))

    def _tls_of(self, url: str) -> ssl.SSLContext | None:
        return self._certificates.context() if urlsplit(url).scheme == "https" else None

    def _asked(
        self,
        line: HTTPConnection,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        deadline: Deadline,
        *,
        keep: bool = True,
    ) -> Answer:
        """Say the request, and read its answer to the end. Raises `NoAnswer`, and `NotTaken`."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kept, sock = False, line.sock
        try:
            with deadline.over(lambda: sock):
                sock.settimeout(deadline.left())
                broken = _said(line, method, target, {"Host": _host(parts), **headers}, body)
                answer, closes = _read(line)
            if deadline.passed:
                raise EOFError  # an answer without a length ends where its line does, and this one was cut off
            if broken is None and keep and self.remembers != 0 and not closes:
                self._kept, kept = (_parts(url) or ("", "", 0), line), True
            return answer
        except (OSError, EOFError, HTTPException, ValueError) as e:
            if _is_unwelcome(e):
                raise NotTaken("the receiver did not accept our certificate") from None
            raise NoAnswer(deadline.why(_why(e))) from None
        finally:
            if not kept:
                line.close()


class NotTaken(Exception):
    """The receiver ended the handshake: it never looked at the request."""


def _said(
    line: HTTPConnection, method: str, target: str, headers: dict[str, str], body: bytes | None
) -> OSError | None:
    """Send the request. An error is answered and not raised: a receiver may have said why before it closed."""
    try:
        line.request(method, target, body=body, headers=headers)
    except OSError as e:
        return e
    return None


def _read(line: HTTPConnection) -> tuple[Answer, bool]:
    """The whole answer, and whether the line is closed after it."""
    response = line.getresponse()
    while response.read(65536):
        pass
    if response.length:  # the end of the line came before the end of the answer
        raise EOFError
    answer = Answer(response.status, _retry_after(response), _is_replayed(response))
    return answer, response.will_close


def _open(url: str, deadline: Deadline, tls: ssl.SSLContext | None) -> HTTPConnection:
    """A new line. Raises `NoLine`."""
    place = _parts(url)
    if place is None:
        raise NoLine("its URL is not one of http or https")
    _, host, port = place
    line = HTTPConnection(host, port)
    line.auto_open = 0  # a lost line is an answer, and not to be found again in silence
    line.sock = connected(host, port, deadline, tls=tls)
    return line


def _parts(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of a URL, or None where there are none."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if (
            parts.scheme in ("http", "https")
            and parts.hostname
            and url.isascii()
            and url.isprintable()
            and " " not in url
        ):
            return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    return None


def _host(parts: SplitResult) -> str:
    """The Host header: without a name and a password, which the network location has too."""
    return parts.netloc.rpartition("@")[2]


def _is_quiet(line: socket.socket | None) -> bool:
    """Whether nothing has come on an idle line: neither its end, nor an answer that nobody asked for."""
    try:
        return line is not None and not select.select([line], [], [], 0)[0]
    except (OSError, ValueError):
        return False


# -- what an answer means -----------------------------------------------------------------------------------------------


def meaning_of(answer: Answer) -> Outcome:
    """What a whole answer to a message means."""
    status, said = answer.status, f"{answer.status}, replayed" if answer.replayed else str(answer.status)
    if 200 <= status < 300:
        return Delivered(said)
    if answer.replayed and (status >= 500 or status < 400):
        return Unknown(said, stored=True)  # what came of the first request, which nobody will do again: no new failure
    if answer.replayed:
        return Refused(said)
    match status:
        case 421 | 425 | 429 | 511:  # another server's; too early; too many; a network that wants a login
            return NotSent(said, answer.retry_after)
        # Whoever names a time has not begun. Without one it may be a proxy that speaks of a server it lost.
        case 503 if answer.retry_after is not None:
            return NotSent(said, answer.retry_after)
        case 409 | 408:  # another request with this key is at work; a request that was slow somewhere on its way
            return Unknown(said, answer.retry_after)
        case 303:  # "see other" is how many say that it was done
            return Unknown(said)
        case 501 | 505:
            return Refused(said)
    if 300 <= status < 400:
        return Refused(f"{said}: redirected, and never followed with a body")
    if 400 <= status < 500:
        return Refused(said)
    return Unknown(said, answer.retry_after)


def _retry_after(response: HTTPResponse) -> int | None:
    """What the header asks for, in microseconds, a day at most: seconds, or a date that is compared with the answer's own."""
    value = (response.getheader("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * SECOND, DAY)
    with suppress(ValueError, TypeError, OverflowError):
        until = parsedate_to_datetime(value).timestamp()
        now = response.getheader("Date")
        since = parsedate_to_datetime(now).timestamp() if now else time()
        return min(max(int((until - since) * SECOND), 0), DAY)
    return None


def _is_replayed(response: HTTPResponse) -> bool:
    return (response.getheader("Idempotent-Replayed") or "").strip().lower() == "true"


def _why(error: Exception) -> str:
    if isinstance(error, HTTPException) and not isinstance(error, OSError):
        return "its answer was no HTTP, or not whole"
    if isinstance(error, EOFError):
        return "its answer was cut short"
    return "the connection was lost after the request had begun"


def _is_unwelcome(error: Exception) -> bool:
    """Whether a receiver ended the handshake over our certificate. In TLS 1.3 its word comes when we believe to be through."""
    reason = getattr(error, "reason", None)
    return isinstance(reason, str) and "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason)
