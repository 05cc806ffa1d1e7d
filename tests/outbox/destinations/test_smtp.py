"""SMTP: what a mail server does, and what it means. A real one (aiosmtpd), and others that misbehave at each point."""

from __future__ import annotations

import email
import email.policy
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, NotSent, Refused, Unknown, destination_of
from duly.records import replace
from tests.outbox.destinations.rogue import Caller, Part, nobodys_port, rogue
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

SOON, LATE = 0.4, 20.0
PASSWORD = "mail-5ecret"
ECHO = f"{PASSWORD} {BODY_SECRET}"  # what a careless server may say

Does = bytes | Callable[[Caller], None]


def to(port: int, scheme: str = "smtp", host: str = "127.0.0.1", user: str = "", **settings: Any) -> Destination:
    table = {
        "kind": "smtp",
        "url": f"{scheme}://{user}{host}:{port}",
        "from": "duly@shop.example",
        "to": ["ada@example.com", "ben@example.com"],
        "starttls": "if offered",
        **settings,
    }
    return destination_of("mail", table)


def plays(greeting: Does = b"220 mail.example.com", **verbs: Does) -> Part:
    """A server that says yes, but for these verbs. `rcpt2`: to the second recipient; `dot`: at the end of the data."""

    def part(caller: Caller) -> None:
        do(caller, greeting)
        recipients = 0
        while True:
            line, _, caller.heard = caller.hear(b"\n").partition(b"\n")
            verb = line[:4].decode().strip().lower()
            recipients += verb == "rcpt"
            name = "rcpt2" if verb == "rcpt" and recipients == 2 and "rcpt2" in verbs else verb
            do(caller, verbs.get(name, b"354 go on" if verb == "data" else b"250 fine"))
            if verb == "data" and "data" not in verbs:
                caller.hear(b"\r\n.\r\n")
                caller.heard = b""
                do(caller, verbs.get("dot", b"250 fine"))

    return part


def do(caller: Caller, what: Does) -> None:
    if callable(what):
        what(caller)
        raise EOFError
    caller.say(what.replace(b"ECHO", ECHO.encode()) + b"\r\n")


def goes_away(caller: Caller) -> None:
    pass


def hears_half_of_the_data(caller: Caller) -> None:
    caller.say(b"354 go on\r\n")
    caller.hear(b"Message-ID")
    caller.reset()


def reads_no_more(caller: Caller) -> None:
    caller.say(b"354 go on\r\n")
    caller.gone.wait()


def told(part: Part | None, seconds: float = LATE, **settings: Any) -> Callable[[], object]:
    def told() -> object:
        if part is None:
            return to(nobodys_port(), **settings).deliver(MESSAGE, seconds=seconds)
        with rogue(part) as server:
            return to(server.port, **settings).deliver(MESSAGE, seconds=seconds)

    return told


def nowhere() -> object:
    return to(25, host="no-such-host.invalid").deliver(MESSAGE, seconds=LATE)


def no_tls() -> object:
    def breaks(caller: Caller) -> None:
        caller.say(b"220 go on\r\n")
        caller.hear(b"\x01")

    offers = b"250-mail.example.com\r\n250 STARTTLS"
    return told(plays(ehlo=offers, star=breaks))()


def a_stranger() -> object:
    with server(tls=_of(trustme.CA())) as (port, _):
        return to(port).deliver(MESSAGE, seconds=LATE)


def stuck_in_the_data() -> object:
    with rogue(plays(data=reads_no_more)) as it:
        return to(it.port, max_length=40_000_000).deliver(replace(MESSAGE, body=b"x" * 20_000_000), seconds=SOON + 1)


def login(**verbs: Does) -> Callable[[], object]:
    part = plays(**{"ehlo": b"250-mail.example.com\r\n250 AUTH PLAIN", **verbs})
    return told(part, user="ada@", password_env="DULY_T_MAIL", starttls="never")


NO = b"550 5.7.1 no: ECHO"
LATER = b"451 4.3.0 later: ECHO"
SMTP_ROWS = (
    Row("its name has no address", NotSent, nowhere),
    Row("the connection is refused", NotSent, told(None), "the connection was refused"),
    Row("it does not greet in time", NotSent, told(plays(Caller.say_nothing), SOON), f"no answer within {SOON} s"),
    Row("it goes away before it greets", NotSent, told(plays(goes_away)), "the session failed"),
    Row("it greets with a no, also with one for good", NotSent, told(plays(b"554 no")), "the session failed: 554"),
    Row("encryption is required, and it offers none", NotSent, told(plays(), starttls="required")),
    Row("it goes away in the TLS handshake", NotSent, no_tls, "the TLS handshake failed"),
    Row("its certificate is not valid", NotSent, a_stranger),
    Row(
        "it does not let us log in",
        NotSent,
        login(auth=b"535 5.7.8 no: ECHO"),
        "the session failed to log in: 535 5.7.8",
    ),
    Row(
        "it offers no encryption, and we have a password",
        NotSent,
        told(plays(), user="ada@", password_env="DULY_T_MAIL"),
        'a password goes over no line that is not encrypted; starttls = "never" would let it',
    ),
    Row("it offers no login that we know", NotSent, login(ehlo=b"250-mail.example.com\r\n250 AUTH GSSAPI")),
    Row("the body is longer than `max_length`", Refused, told(plays(), max_length=10)),
    Row("it takes the sender never", Refused, told(plays(mail=NO)), "550 5.7.1: the sender not taken"),
    Row("it takes the sender not now", NotSent, told(plays(mail=LATER)), "451 4.3.0: the sender not taken"),
    Row(
        "it takes one recipient, and another never",
        Refused,
        told(plays(rcpt2=NO)),
        "550 5.7.1: 1 of 2 recipients not taken, so it went to none",
    ),
    Row(
        "it takes one recipient, and another not now",
        NotSent,
        told(plays(rcpt2=LATER)),
        "451 4.3.0: 1 of 2 recipients not taken, so it went to none",
    ),
    Row("it goes away at a recipient", NotSent, told(plays(rcpt=goes_away))),
    Row("it takes data never", Refused, told(plays(data=NO)), "550 5.7.1: the data not taken"),
    Row("it takes data not now", NotSent, told(plays(data=LATER)), "451 4.3.0: the data not taken"),
    Row(
        "its answer to a recipient or to DATA is no SMTP",
        NotSent,
        told(plays(data=b"HTTP/1.1 400")),
        "no SMTP: the data not taken",
    ),
    Row("it breaks off within the data", NotSent, stuck_in_the_data, f"no answer within {SOON + 1} s"),
    Row("it goes away after the dot that ends them", Unknown, told(plays(dot=goes_away))),
    Row("it resets after the dot", Unknown, told(plays(dot=Caller.reset))),
    Row(
        "it does not answer the dot in time",
        Unknown,
        told(plays(dot=Caller.say_nothing), SOON),
        f"no answer within {SOON} s",
    ),
    Row(
        "its answer to the dot is no SMTP",
        Unknown,
        told(plays(dot=b"HTTP/1.1 400 ECHO")),
        "its answer to the data was none of SMTP's",
    ),
    Row("it answers the dot with 4xx", NotSent, told(plays(dot=LATER)), "451 4.3.0"),
    Row("it answers the dot with 5xx", Refused, told(plays(dot=NO)), "550 5.7.1"),
    Row(
        "it answers the dot with 250",
        Delivered,
        told(plays(dot=b"250 2.0.0 Ok: queued as 4bCdEf1234")),
        "250 2.0.0 queued as 4bCdEf1234",
    ),
)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_T_MAIL", PASSWORD)


@pytest.mark.parametrize("row", SMTP_ROWS, ids=names(SMTP_ROWS))
def test_what_a_mail_server_does_means(row: Row) -> None:
    agrees(row.how(), row, PASSWORD)


def test_a_reset_within_the_data_is_surely_not_sent() -> None:
    with rogue(plays(data=hears_half_of_the_data)) as it:
        destination = to(it.port, max_length=40_000_000)
        outcome = destination.deliver(replace(MESSAGE, body=b"x" * 20_000_000), seconds=LATE)

    assert outcome == NotSent("the connection was lost before the end of the data")


def test_an_answer_of_several_recipients_is_the_one_for_good() -> None:
    with rogue(plays(rcpt=LATER, rcpt2=NO)) as it:
        outcome = to(it.port).deliver(MESSAGE, seconds=LATE)

    assert outcome == Refused("550 5.7.1: 2 of 2 recipients not taken, so it went to none")


# -- a real server ------------------------------------------------------------------------------------------------------


class Kept:
    """What a server took."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []

    async def handle_DATA(self, _server: object, _session: object, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        assert isinstance(content, bytes)
        mail = email.message_from_bytes(content, policy=email.policy.default)
        self.mails.append((envelope.rcpt_tos, mail))
        return "250 2.0.0 queued as A1B2C3D4"


@contextmanager
def server(tls: ssl.SSLContext | None = None, *, login: bool = False) -> Iterator[tuple[int, Kept]]:
    """aiosmtpd on loopback."""

    def knows(_server: object, _session: object, _envelope: object, _mechanism: str, data: LoginPassword) -> AuthResult:
        return AuthResult(handled=False, success=data == LoginPassword(b"ada", PASSWORD.encode()))

    kept = Kept()
    options: dict[str, Any] = {"authenticator": knows, "auth_required": True} if login else {}
    controller = Controller(
        kept, hostname="127.0.0.1", port=nobodys_port(), tls_context=tls, require_starttls=tls is not None, **options
    )
    controller.start()
    try:
        yield controller.port, kept
    finally:
        controller.stop()


def _of(authority: trustme.CA) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    return tls


def test_a_mail_has_the_same_id_each_time_and_the_body_as_it_was(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with server(_of(authority), login=True) as (port, kept):
        destination = to(
            port, user="ada@", password_env="DULY_T_MAIL", starttls="required", ca_file=str(tmp_path / "ca.pem")
        )
        outcome = destination.deliver(MESSAGE, seconds=LATE)
        destination.deliver(replace(MESSAGE, attempt=2, first_sent_at=1_790_000_000_000_000), seconds=LATE)

    assert outcome == Delivered("250 2.0.0 queued as A1B2C3D4")
    (recipients, first), (_, second) = kept.mails
    assert recipients == ["ada@example.com", "ben@example.com"]
    assert first["Message-ID"] == second["Message-ID"] == f"<{MESSAGE.key}@shop.example>"
    assert first["Subject"] == f"{MESSAGE.run} invoice"
    assert first.get_content_type() == "application/json"
    assert first.get_content() == MESSAGE.body
    assert second["Date"] == "Mon, 21 Sep 2026 14:13:20 -0000"


def test_a_text_is_the_text_of_its_mail_and_its_dots_arrive() -> None:
    text = "Grüße,\n.\n..and a dot at the beginning of a line\nFrom here\n"
    with server() as (port, kept):
        to(port).deliver(replace(MESSAGE, body=text.encode(), content_type="text/plain; charset=utf-8"), seconds=LATE)

    ((_, mail),) = kept.mails
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n") == text


def test_a_login_with_a_wrong_password_waits_for_somebody_to_mend_it(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with server(_of(authority), login=True) as (port, kept):
        outcome = to(port, user="ada:wr0ng@", ca_file=str(tmp_path / "ca.pem")).deliver(MESSAGE, seconds=LATE)

    assert outcome == NotSent("the session failed to log in: 535 5.7.8")
    assert kept.mails == []


def test_a_mail_server_cannot_be_asked_what_it_took() -> None:
    assert to(25).probe(MESSAGE, seconds=LATE) == CannotTell("no probe is declared for this destination")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"to": []}, "destinations.mail.to: [] is not a list of texts"),
        ({"from": "Ada <ada@example.com>"}, "destinations.mail.from: 'Ada <ada@example.com>' is no bare address"),
        (
            {"password": PASSWORD},
            "destinations.mail.password: a secret does not stand here; name where it is: password_env",
        ),
        ({"starttls": True}, "destinations.mail.starttls: True is not one line of text"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse) as told:
        to(25, **settings)

    assert str(told.value).startswith(said)
    assert PASSWORD not in str(told.value)


def test_a_name_with_a_new_line_makes_no_header() -> None:
    with server() as (port, kept):
        to(port).deliver(replace(MESSAGE, name="a\r\nBcc: eve@example.com"), seconds=LATE)

    ((recipients, mail),) = kept.mails
    assert recipients == ["ada@example.com", "ben@example.com"]
    assert mail["Bcc"] is None
