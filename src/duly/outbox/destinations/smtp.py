"""SMTP: one mail for a message, with the key in its `Message-ID`.

The protocol has one point where a mail changes hands: the dot that ends its data. What fails before it is surely not sent; when
the dot was said and no answer came, nobody knows. If a server takes one recipient and not another, no data are sent to any: a
mail is delivered to all of them or to none.

Two kinds of no are told apart. One to the session (no greeting, no TLS, no login) is no answer to the mail, which waits until
somebody mends that. One to the mail itself, 5xx, is for good; 4xx asks to come again.
"""

from __future__ import annotations

import re
import smtplib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr
from socket import gethostname
from ssl import SSLSocket
from time import time
from urllib.parse import unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import Delivered, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.child import filled
from duly.outbox.destinations.line import Certificates, Deadline, NoLine, connected, encrypted
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

# How Postfix, Exim, Sendmail and Exchange name what they took, and the enhanced code of RFC 3463. Nothing else is repeated.
_TAKEN_AS = re.compile(rb"(?:queued as|id=|Message accepted for delivery|InternalId=) ?([A-Za-z0-9-]{4,40})\b")
_ENHANCED = re.compile(rb"^([245]\.\d{1,3}\.\d{1,3})\b")


def declared(settings: Settings) -> Smtp:
    """The destination that a table with `kind = "smtp"` declares."""
    url = settings.url(as_in="smtp://mail.example.com")
    sender = _address(settings, "from", settings.text("from", as_in="duly@example.com"))
    recipients = tuple(_address(settings, "to", each) for each in settings.texts("to", as_in="ops@example.com"))
    return Smtp(
        url=url,
        sender=sender,
        recipients=recipients,
        subject=settings.text("subject", "{run} {name}", as_in="{run} {name}"),
        filename=settings.text("filename", "{name}", as_in="{name}.json"),
        password=settings.secret("password"),
        starttls=settings.choice("starttls", ("required", "if offered", "never"), "required"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        probe=probe_of(settings),
        remembers=settings.remembers(),
        max_length=settings.number("max_length", 10_000_000),
    )


def _address(settings: Settings, field: str, text: str) -> str:
    address = parseaddr(text)[1]
    name, at, domain = address.rpartition("@")
    if not name or not at or not domain or address != text or not address.isascii():
        raise Misuse(f'{settings.key(field)}: {text!r} is no bare address; write {field} = "ops@example.com"')
    return address


class Smtp:
    """A mail server that takes mail for some recipients."""

    kind = "smtp"
    key_form = "Message-ID"
    reads_own_writes = False

    def __init__(
        self,
        *,
        url: Secret,
        sender: str,
        recipients: tuple[str, ...],
        subject: str,
        filename: str,
        password: Secret | None,
        starttls: str,
        ca_file: str | None,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self._url = url
        self._sender, self._recipients = sender, recipients
        self._subject, self._filename = subject, filename
        self._password = password
        self._starttls = starttls
        self._certificates = Certificates(ca_file)
        self._probe = probe

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Hand one mail over, to all recipients or to none."""
        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        mail = mail_of(
            message,
            sender=self._sender,
            recipients=self._recipients,
            subject=filled(self._subject, message),
            filename=filled(self._filename, message),
        )
        deadline = Deadline(seconds)
        session: Session | None = None
        try:
            session = self._session(deadline)
            with deadline.over(session.line):
                self._envelope(session)
                session.say_data(mail)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))
        except Said as e:
            return Refused(e.cause) if e.is_for_good else NotSent(e.cause)
        except (OSError, smtplib.SMTPException, ValueError):
            return NotSent(deadline.why("the connection was lost before the end of the data"))
        else:
            return _dotted(session, deadline)
        finally:
            if session is not None:
                session.close()

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Ask the declared command: a mail server cannot be asked what it has taken."""
        return self._probe.ask(message, seconds=seconds)

    def close(self) -> None:
        """Nothing is kept between mails."""

    def _session(self, deadline: Deadline) -> Session:
        """A session where a mail may be begun: greeted, encrypted, logged in. Raises `NoLine` and `SecretMissing`."""
        parts = urlsplit(self._url.read())
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            raise NoLine("its URL is not one of smtp or smtps")
        tls = self._certificates.context() if parts.scheme == "smtps" else None
        port = parts.port or (465 if parts.scheme == "smtps" else 587 if parts.username else 25)
        session = Session(connected(parts.hostname, port, deadline, tls=tls))
        try:
            with deadline.over(session.line):
                session.greeted(deadline)
                if parts.scheme == "smtp" and self._starttls != "never":
                    session.encrypted(parts.hostname, deadline, self._certificates, must=self._starttls == "required")
                if parts.username:
                    if not isinstance(session.line(), SSLSocket) and self._starttls != "never":
                        raise NoLine(
                            'a password goes over no line that is not encrypted; starttls = "never" would let it'
                        )
                    password = self._password.read() if self._password else unquote(parts.password or "")
                    session.logged_in(unquote(parts.username), password)
        except (OSError, smtplib.SMTPException, ValueError) as e:
            session.close()
            raise NoLine(deadline.why(f"the session failed{_code_of(e)}")) from None
        except BaseException:
            session.close()
            raise
        return session

    def _envelope(self, session: Session) -> None:
        """Name sender and recipients. Raises `Said` where one of them is not taken."""
        session.expect(session.smtp.mail(self._sender), "the sender", 250)
        refused = []
        for recipient in self._recipients:
            code, words = session.smtp.rcpt(recipient)
            if code not in (250, 251):
                refused.append((code, words))
        if refused:
            code, words = max(refused, key=lambda each: each[0])  # one that is refused for good decides
            raise Said(
                code, words, f"{len(refused)} of {len(self._recipients)} recipients not taken, so it went to none"
            )


class Said(Exception):
    """The server said no to the mail, before its data or after."""

    def __init__(self, code: int, words: bytes, to: str) -> None:
        self.is_for_good = 500 <= code < 600
        self.cause = f"{_shown(code, words)}: {to}"
        super().__init__(self.cause)


@record
class _Dot:
    code: int
    words: bytes


class Session:
    """A conversation with a server, one command after the other; the standard library knows the words."""

    def __init__(self, line: socket.socket) -> None:
        self.smtp = smtplib.SMTP(local_hostname=_own_name(line))
        self.smtp.sock = line

    def line(self) -> socket.socket | None:
        """The socket that is used now."""
        return self.smtp.sock

    def greeted(self, deadline: Deadline) -> None:
        """Hear the greeting, and say who we are."""
        assert self.smtp.sock is not None
        self.smtp.sock.settimeout(deadline.left())
        code, words = self.smtp.getreply()
        if code != 220:
            raise smtplib.SMTPConnectError(code, words)
        self.smtp.ehlo_or_helo_if_needed()

    def encrypted(self, host: str, deadline: Deadline, certificates: Certificates, *, must: bool) -> None:
        """Encrypt the line, if it is offered. Raises `NoLine`."""
        if not self.smtp.has_extn("starttls"):
            if must:
                raise NoLine('it offers no encryption; starttls = "if offered" would do without')
            return
        code, words = self.smtp.docmd("STARTTLS")
        if code != 220:
            raise smtplib.SMTPResponseException(code, words)
        assert self.smtp.sock is not None
        self.smtp.sock = encrypted(self.smtp.sock, host, deadline, certificates.context())
        self.smtp.sock.settimeout(deadline.left())
        self.smtp.file = None  # what came unencrypted is not believed (RFC 3207)
        self.smtp.ehlo_resp = self.smtp.helo_resp = None  # so is what was offered
        self.smtp.esmtp_features = {}
        self.smtp.does_esmtp = False
        self.smtp.ehlo_or_helo_if_needed()

    def logged_in(self, user: str, password: str) -> None:
        """Log in by the first way that is offered, once: a wrong password is wrong in every way, and some lock an account."""
        offered = str(self.smtp.esmtp_features.get("auth", "")).upper().split()
        way = next((each for each in ("PLAIN", "LOGIN", "CRAM-MD5") if each in offered), None)
        if way is None:
            raise NoLine("it offers no way to log in that is known here")
        self.smtp.user, self.smtp.password = user, password
        self.smtp.auth(way, getattr(self.smtp, "auth_" + way.lower().replace("-", "_")))

    def expect(self, reply: tuple[int, bytes], what: str, wanted: int) -> None:
        """Raise `Said` for any other reply."""
        code, words = reply
        if code != wanted:
            raise Said(code, words, f"{what} not taken")

    def say_data(self, mail: bytes) -> None:
        """All of the mail but the dot that ends it."""
        self.expect(self.smtp.docmd("DATA"), "the data", 354)
        self.smtp.send(_stuffed(mail))

    def dot(self) -> _Dot:
        """The dot, and what is said to it."""
        self.smtp.send(b".\r\n")
        code, words = self.smtp.getreply()
        return _Dot(code, words)

    def close(self) -> None:
        """Say good-bye if somebody may be listening, and hang up."""
        self.smtp.close()


def _own_name(line: socket.socket) -> str:
    """How we greet: by a full name if the host has one, else by address. The standard library would ask the DNS first."""
    if "." in (name := gethostname()):
        return name
    address: str = line.getsockname()[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _dotted(session: Session, deadline: Deadline) -> Outcome:
    """Say the dot, and say what the answer means."""
    try:
        with deadline.over(session.line):
            dot = session.dot()
    except (OSError, smtplib.SMTPException, ValueError):
        return Unknown(deadline.why("the connection was lost after the end of the data"))
    said = _shown(dot.code, dot.words)
    if 200 <= dot.code < 300:
        return Delivered(said)
    if 400 <= dot.code < 500:
        return NotSent(said)
    if 500 <= dot.code < 600:
        return Refused(said)
    return Unknown("its answer to the data was none of SMTP's")


def _shown(code: int, words: bytes) -> str:
    """A reply without its words: its codes, and the id that the server gave the mail."""
    enhanced, taken_as = _ENHANCED.search(words), _TAKEN_AS.search(words)
    said = str(code) if 100 <= code <= 999 else "no SMTP"
    if enhanced:
        said += f" {enhanced[1].decode()}"
    if taken_as and 200 <= code < 300:
        said += f" queued as {taken_as[1].decode()}"
    return said


def _code_of(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        step = " to log in" if isinstance(error, smtplib.SMTPAuthenticationError) else ""
        return f"{step}: {_shown(error.smtp_code, _bytes(error.smtp_error))}"
    return ""


def _bytes(words: bytes | str) -> bytes:
    return words.encode() if isinstance(words, str) else words


# -- the mail -----------------------------------------------------------------------------------------------------------


def mail_of(message: Message, *, sender: str, recipients: tuple[str, ...], subject: str, filename: str) -> bytes:
    """The mail that a message is: text as its text, all else as one attachment. The same for every attempt, but for its date
    where none was made before."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = _one_line(subject)
    mail["Message-ID"] = f"<{message.key}@{sender.rpartition('@')[2]}>"
    mail["Date"] = formatdate((message.first_sent_at / 1_000_000) if message.first_sent_at is not None else time())
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday answers it
    kind, _, sub = message.content_type.partition(";")[0].strip().lower().partition("/")
    if kind == "text" and sub.isalnum() and (text := _text(message.body)) is not None:
        mail.set_content(text, subtype=sub, cte="quoted-printable")
    else:
        if not kind.isalnum() or not sub.replace("+", "").replace(".", "").replace("-", "").isalnum():
            kind, sub = "application", "octet-stream"
        mail.set_content(message.body, maintype=kind, subtype=sub, filename=_one_line(filename))
    return mail.as_bytes()


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except ValueError:
        return None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _stuffed(mail: bytes) -> bytes:
    """As it goes over the line (RFC 5321, 4.5.2): lines end in CRLF, and a dot at the beginning of one is doubled."""
    lines = mail.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n").split(b"\n")
    return b"".join((b"." + each if each.startswith(b".") else each) + b"\r\n" for each in lines)
