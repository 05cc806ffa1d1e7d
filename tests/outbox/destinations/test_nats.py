"""NATS JetStream: what a stream does, and what it means. A real server, and others that misbehave at each point."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, Happened, NotSent, Refused, Unknown, destination_of
from duly.outbox.destinations.line import Certificates, Deadline, connected
from duly.outbox.destinations.nats import Session
from duly.records import replace
from tests.outbox.destinations.brokers import needed, swallowing
from tests.outbox.destinations.rogue import Caller, Part, nobodys_port, rogue
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

SOON, LATE = 0.4, 20.0
PASSWORD = "nats-5ecret"
SECOND = 1_000_000_000  # as NATS counts


class Server:
    """The machine's NATS, and a name of its own there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.name = f"DULY-TEST-{secrets.token_hex(6)}"
        self._session = Session(connected("127.0.0.1", port, Deadline(LATE)), Deadline(LATE))
        self._session.begin("127.0.0.1", {}, Deadline(LATE), tls=Certificates(None), must_encrypt=False)

    def api(self, verb: str, **query: Any) -> dict[str, Any]:
        answer = self._session.ask(f"$JS.API.STREAM.{verb}.{self.name}", json.dumps(query).encode(), Deadline(LATE))
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def stream(self, **config: Any) -> None:
        """Make the stream, which takes what is below its name."""
        made = {"name": self.name, "subjects": [f"{self.name}.>"], "storage": "file", "retention": "limits", **config}
        assert "error" not in self.api("CREATE", **made)

    def messages(self) -> int:
        return int(self.api("INFO")["state"]["messages"])

    def to(self, port: int | None = None, **settings: Any) -> Destination:
        table = {"stream": self.name, "subject": f"{self.name}.{{name}}", **settings}
        return to(port or self.port, **table)

    def close(self) -> None:
        self.api("DELETE")
        self._session.close()


def to(port: int, user: str = "", **settings: Any) -> Destination:
    table = {"kind": "nats", "url": f"nats://{user}127.0.0.1:{port}", "stream": "ORDERS", "subject": "orders.{name}"}
    return destination_of("log", {**table, **settings})


def delivered(destination: Destination, *, seconds: float = LATE) -> object:
    try:
        return destination.deliver(MESSAGE, seconds=seconds)
    finally:
        destination.close()


# -- servers that misbehave -------------------------------------------------------------------------------------------------

INFO = b'INFO {"headers":true,"max_payload":1048576,"proto":1}\r\n'


def plays(published: str | Callable[[Caller], None], *, greeting: bytes = INFO, ping: bytes = b"PONG\r\n") -> Part:
    """A server that lets us in, and does this when a message comes; a text is the body of its answer."""

    def part(caller: Caller) -> None:
        caller.say(greeting)
        caller.hear(b"PING\r\n")
        inbox = caller.heard.partition(b"SUB ")[2].partition(b".* ")[0].decode()
        caller.say(ping)
        number = 0
        while True:
            caller.heard = b""
            caller.hear(BODY_SECRET.encode() + b'"}\r\n', b"PING\r\n")
            if b"HPUB" not in caller.heard:
                caller.say(b"PONG\r\n")
                continue
            if callable(published):
                published(caller)
                return
            number += 1
            late = f"MSG {inbox}.0 1 2\r\nno\r\n"  # to a question that nobody asked in this session
            caller.say(f"PING\r\n{late}MSG {inbox}.{number} 1 {len(published)}\r\n{published}\r\n".encode())

    return part


def told(part: Part | None, seconds: float = LATE, **settings: Any) -> Callable[[Server], object]:
    def told(_: Server) -> object:
        if part is None:
            return delivered(to(nobodys_port(), **settings))
        with rogue(part) as server:
            return delivered(to(server.port, **settings), seconds=seconds)

    return told


def complains(words: str) -> Callable[[Caller], None]:
    return lambda caller: caller.say(f"-ERR '{words} {BODY_SECRET} {PASSWORD}'\r\n".encode())


def greets_with(greeting: bytes) -> Part:
    def part(caller: Caller) -> None:
        caller.say(greeting)
        caller.hear(b"no such thing will come")

    return part


# -- the machine's own ------------------------------------------------------------------------------------------------------


def there(server: Server) -> object:
    server.stream()
    return delivered(server.to())


def again(server: Server) -> object:
    server.stream()
    delivered(server.to())
    return delivered(server.to())


def nobody_listens(server: Server) -> object:
    return delivered(server.to())


def another_stream(server: Server) -> object:
    server.stream()
    return delivered(server.to(stream="OTHER"))


def full(server: Server) -> object:
    server.stream(max_msgs=1, discard="new")
    destination = server.to()
    destination.deliver(replace(MESSAGE, key="another"), seconds=LATE)
    return delivered(destination)


def too_long_for_the_stream(server: Server) -> object:
    server.stream(max_msg_size=10)
    return delivered(server.to())


def too_long_for_the_server(server: Server) -> object:
    server.stream()
    destination = server.to()
    try:
        return destination.deliver(replace(MESSAGE, body=b"x" * 1_048_500), seconds=LATE)
    finally:
        destination.close()


def lost(what: str) -> Callable[[Server], object]:
    def told(server: Server) -> object:
        server.stream()
        with swallowing(server.port, what) as port:
            return delivered(server.to(port))

    return told


NATS_ROWS = (
    Row("the connection is refused", NotSent, told(None), "the connection was refused"),
    Row(
        "it is no NATS, or one without headers",
        NotSent,
        told(greets_with(b"220 mail.example.com\r\n")),
        "the session failed",
    ),
    Row("it goes away before we are let in", NotSent, told(plays("", ping=b""), SOON), f"no answer within {SOON} s"),
    Row(
        "it does not let us in",
        NotSent,
        told(plays("", ping=b"-ERR 'Authorization Violation'\r\n"), user=f"ada:{PASSWORD}@"),
        "the server said -ERR: authorization violation",
    ),
    Row(
        "no stream takes the subject, and nobody listens there", NotSent, nobody_listens, "no stream takes its subject"
    ),
    Row("the body is longer than `max_length`", Refused, told(plays(""), max_length=10)),
    Row("the body is longer than the server takes", Refused, too_long_for_the_server),
    Row("the body is longer than the stream takes", Refused, too_long_for_the_stream, "error 400, 10054"),
    Row("the subject belongs to another stream", Refused, another_stream, "error 400, 10060"),
    Row("we may not publish there", Refused, told(plays(complains("Permissions Violation for Publish to")))),
    Row("the stream is full, or has no leader: an error 503", NotSent, full, "error 503, 10077"),
    Row("any other error of 4xx", Refused, told(plays('{"error": {"code": 404}}')), "error 404"),
    Row("any other error of 5xx", Unknown, told(plays('{"error": {"code": 500, "err_code": 7}}')), "error 500, 7"),
    Row(
        "any other -ERR",
        Unknown,
        told(plays(complains("Stale Connection"))),
        "the server said -ERR: an error of another kind",
    ),
    Row(
        "somebody answers who is not the stream",
        Unknown,
        told(plays(f'{{"ok": "{BODY_SECRET}"}}')),
        "what answered is not its stream",
    ),
    Row("the connection is lost before an answer", Unknown, told(plays(lambda _: None))),
    Row("it is reset before an answer", Unknown, told(plays(Caller.reset))),
    Row("the message is lost on its way", Unknown, lost("request")),
    Row("the acknowledgement is lost on its way", Unknown, lost("reply")),
    Row("it does not answer in time", Unknown, told(plays(Caller.say_nothing), SOON), f"no answer within {SOON} s"),
    Row("the stream acknowledges", Delivered, there, "seq 1 of its stream"),
    Row("the stream acknowledges, and had it already", Delivered, again, "seq 1 of its stream, a duplicate"),
)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(needed("nats", 4222, hears=b"INFO "))
    yield made
    made.close()


@pytest.mark.parametrize("row", NATS_ROWS, ids=names(NATS_ROWS))
def test_what_a_stream_does_means(row: Row, server: Server) -> None:
    agrees(row.how(server), row, PASSWORD)


def test_after_a_lost_acknowledgement_the_stream_has_it_once(server: Server) -> None:
    server.stream()
    with swallowing(server.port, "reply") as port:
        first = delivered(server.to(port))
    second = delivered(server.to())

    assert type(first) is Unknown
    assert second == Delivered("seq 1 of its stream, a duplicate")
    assert server.messages() == 1


def test_it_remembers_for_as_long_as_the_window_of_its_stream(server: Server) -> None:
    server.stream(duplicate_window=30 * SECOND)
    destination = server.to()

    assert destination.remembers == 30_000_000
    destination.close()


def test_it_remembers_nothing_as_long_as_the_stream_does_not_say(server: Server) -> None:
    destination = server.to()
    before = destination.remembers
    server.stream(duplicate_window=60 * SECOND)
    after = destination.remembers
    destination.close()

    assert (before, after) == (0, 60_000_000)
    assert to(nobodys_port()).remembers == 0


def test_an_acknowledgement_comes_among_other_words() -> None:
    with rogue(plays('{"stream": "ORDERS", "seq": 9}')) as server:
        destination = to(server.port)
        outcomes = [destination.deliver(MESSAGE, seconds=LATE) for _ in range(2)]
        destination.close()

    assert outcomes == [Delivered("seq 9 of its stream")] * 2
    assert server.connections == 1


def test_a_connection_that_was_closed_while_it_was_idle_costs_nothing() -> None:
    with rogue(plays(lambda _: None), plays('{"stream": "ORDERS", "seq": 9}')) as server:
        destination = to(server.port)
        first = destination.deliver(MESSAGE, seconds=LATE)
        second = destination.deliver(MESSAGE, seconds=LATE)
        destination.close()

    assert (type(first), type(second)) == (Unknown, Delivered)


def test_a_message_with_a_subject_of_its_own_is_found(server: Server) -> None:
    server.stream()
    destination = server.to(subject=f"{server.name}.{{key}}")
    before = destination.probe(MESSAGE, seconds=LATE)
    destination.deliver(MESSAGE, seconds=LATE)
    after = destination.probe(MESSAGE, seconds=LATE)
    destination.close()

    assert before == CannotTell("its stream has no such message, or none any more")
    assert after == Happened("seq 1 of its stream")


def test_without_one_nothing_can_be_told() -> None:
    found = to(1).probe(MESSAGE, seconds=LATE)

    assert found == CannotTell("a stream finds a message again only if {key} is in its subject")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"subject": "orders.>"}, "destinations.log.subject: 'orders.>' is no subject to publish on"),
        ({"stream": "my orders"}, "destinations.log.stream: 'my orders' is no name of a stream"),
        ({"token": PASSWORD}, "destinations.log.token: a secret does not stand here"),
        ({"remembers": "1h"}, "destinations.log.remembers: no such field"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse) as told:
        to(1, **settings)

    assert str(told.value).startswith(said)
    assert PASSWORD not in str(told.value)
