"""Encrypted lines: to each kind of receiver, with a certificate that is right, and with one that is not."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from duly.outbox.destinations import Delivered, NotSent, Unknown, destination_of
from tests.outbox.destinations.brokers import encrypted, needed
from tests.outbox.destinations.rogue import rogue
from tests.outbox.destinations.table import MESSAGE
from tests.outbox.destinations.test_amqp import Broker
from tests.outbox.destinations.test_http import SOON, answers, never_answers
from tests.outbox.destinations.test_nats import Server
from tests.outbox.destinations.test_redis import Stream
from tests.outbox.destinations.test_smtp import server as mail_server

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

LATE = 20.0
MAIL = {"kind": "smtp", "from": "duly@shop.example", "to": "ada@example.com"}


class Authority:
    """One that is known to whoever reads its file."""

    def __init__(self, folder: Path) -> None:
        self._own = trustme.CA()
        self.file = str(folder / "ca.pem")
        self._own.cert_pem.write_to_path(self.file)

    def receiver(self, name: str = "127.0.0.1", *, wants_ours: bool = False) -> ssl.SSLContext:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._own.issue_cert(name).configure_cert(tls)
        if wants_ours:
            self._own.configure_trust(tls)
            tls.verify_mode = ssl.CERT_REQUIRED
        return tls

    def ours(self, folder: Path) -> dict[str, str]:
        made = self._own.issue_cert("duly.example.com")
        made.cert_chain_pems[0].write_to_path(str(folder / "us.pem"))
        made.private_key_pem.write_to_path(str(folder / "us.key"))
        return {"certificate_file": str(folder / "us.pem"), "key_file": str(folder / "us.key")}


@contextmanager
def http(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    with rogue(answers("200 OK"), tls=tls) as it:
        yield {"kind": "http", "url": f"https://127.0.0.1:{it.port}/"}


@contextmanager
def smtp(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    with mail_server(tls) as (port, _):
        yield {**MAIL, "url": f"smtp://127.0.0.1:{port}"}


@contextmanager
def smtps(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    with mail_server() as (behind, _), encrypted(behind, tls) as port:
        yield {**MAIL, "url": f"smtps://127.0.0.1:{port}"}


@contextmanager
def redis(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    stream = Stream(needed("redis", 6379, says=b"PING\r\n", hears=b"+PONG"))
    with encrypted(stream.port, tls) as port:
        yield {"kind": "redis", "url": f"rediss://127.0.0.1:{port}/0", "stream": stream.name}
    stream.close()


@contextmanager
def nats(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    server = Server(needed("nats", 4222, hears=b"INFO "))
    server.stream()
    with encrypted(server.port, tls, after=b"\r\n") as port:
        url = f"nats://127.0.0.1:{port}"
        yield {"kind": "nats", "url": url, "stream": server.name, "subject": f"{server.name}.a"}
    server.close()


@contextmanager
def amqp(tls: ssl.SSLContext) -> Iterator[dict[str, object]]:
    broker = Broker(needed("rabbitmq", 5672, says=b"AMQP\x00\x00\x09\x01", hears=b"\x01\x00\x00"))
    broker.queue()
    with encrypted(broker.port, tls) as port:
        yield {"kind": "amqp", "url": f"amqps://127.0.0.1:{port}/", "routing_key": broker.name}
    broker.close()


RECEIVERS = (http, smtp, smtps, redis, nats, amqp)
each_receiver = pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda each: each.__name__)
Receiver = Callable[[ssl.SSLContext], Any]


def twice(destination: Destination) -> list[object]:
    try:
        return [destination.deliver(MESSAGE, seconds=LATE) for _ in range(2)]
    finally:
        destination.close()


@each_receiver
def test_a_message_goes_over_an_encrypted_line(receiver: Receiver, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with receiver(authority.receiver()) as table:
        outcomes = twice(destination_of("it", {**table, "ca_file": authority.file}))

    assert [type(each) for each in outcomes] == [Delivered, Delivered]


@each_receiver
def test_to_a_receiver_with_another_name_nothing_is_said(receiver: Receiver, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with receiver(authority.receiver("other.example.com")) as table:
        outcomes = twice(destination_of("it", {**table, "ca_file": authority.file}))

    assert [type(each) for each in outcomes] == [NotSent, NotSent]


@each_receiver
def test_nor_to_one_whose_authority_nobody_knows(receiver: Receiver, tmp_path: Path) -> None:
    with receiver(Authority(tmp_path).receiver()) as table:
        outcomes = twice(destination_of("it", table))

    assert [type(each) for each in outcomes] == [NotSent, NotSent]


def test_whoever_wants_to_see_our_certificate_sees_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with http(authority.receiver(wants_ours=True)) as table:
        outcomes = twice(destination_of("it", {**table, "ca_file": authority.file, **authority.ours(tmp_path)}))

    assert outcomes == [Delivered("200")] * 2


def test_a_file_of_certificates_that_is_none_says_so(tmp_path: Path) -> None:
    with http(Authority(tmp_path).receiver()) as table:
        (tmp_path / "ca.pem").write_text("none")
        outcome = destination_of("it", {**table, "ca_file": str(tmp_path / "ca.pem")}).deliver(MESSAGE, seconds=LATE)

    assert outcome == NotSent("a file of certificates cannot be read")


def test_an_encrypted_line_is_cut_off_at_the_deadline_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with rogue(never_answers, tls=authority.receiver()) as it:
        table = {"kind": "http", "url": f"https://127.0.0.1:{it.port}/", "ca_file": authority.file}
        outcome = destination_of("it", table).deliver(MESSAGE, seconds=SOON)

    assert outcome == Unknown(f"no answer within {SOON} s")
