"""Redis streams: what Redis does, and what it means. A real one, and servers that misbehave at each point."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, destination_of
from duly.outbox.destinations.line import Deadline, connected
from duly.outbox.destinations.redis import Session
from duly.records import replace
from duly.times import DAY
from tests.outbox.destinations.brokers import needed, swallowing
from tests.outbox.destinations.rogue import Caller, Part, nobodys_port, rogue
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

SOON, LATE = 0.4, 20.0
PASSWORD = "redis-5ecret"
OTHER = replace(MESSAGE, body=b'{"for": "somebody else"}')


class Stream:
    """A stream of its own in the machine's Redis, and a way to say a command there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.name = f"duly-test-{secrets.token_hex(6)}"
        self._session = Session(connected("127.0.0.1", port, Deadline(LATE)))

    def do(self, *words: str | int) -> Any:
        return self._session.ask(Deadline(LATE), *words)

    def to(self, port: int | None = None, **settings: Any) -> Destination:
        return to(port or self.port, stream=self.name, **settings)

    def close(self) -> None:
        found = self.do("KEYS", f"*{self.name}*")
        if found:
            self.do("DEL", *(key.decode() for key in found))
        self._session.close()


def to(port: int, user: str = "", **settings: Any) -> Destination:
    table = {"kind": "redis", "url": f"redis://{user}127.0.0.1:{port}/0", "stream": "orders", **settings}
    return destination_of("log", table)


def delivered(destination: Destination, *, seconds: float = LATE) -> object:
    try:
        return destination.deliver(MESSAGE, seconds=seconds)
    finally:
        destination.close()


# -- servers that misbehave -------------------------------------------------------------------------------------------------


def plays(eval_: bytes | Callable[[Caller], None], **verbs: bytes) -> Part:
    """A server that answers these verbs, and PING with PONG."""

    def part(caller: Caller) -> None:
        while True:
            caller.hear(b"PING\r\n", b"AUTH\r\n", b"SELECT\r\n", BODY_SECRET.encode() + b'"}\r\n', b"GET\r\n")
            heard, caller.heard = caller.heard, b""
            if b"EVAL" in heard:
                if callable(eval_):
                    eval_(caller)
                    return
                caller.say(eval_)
            else:
                verb = next((each for each in verbs if each.encode() in heard), "PING")
                caller.say(verbs.get(verb, b"+PONG\r\n"))

    return part


def told(part: Part | None, seconds: float = LATE, **settings: Any) -> Callable[[Stream], object]:
    def told(_: Stream) -> object:
        if part is None:
            return delivered(to(nobodys_port(), **settings))
        with rogue(part) as server:
            return delivered(to(server.port, **settings), seconds=seconds)

    return told


def says(error: str) -> Callable[[Stream], object]:
    return told(plays(f"-{error} {BODY_SECRET} {PASSWORD}\r\n".encode()))


def half_an_answer(caller: Caller) -> None:
    caller.say(b"*1\r\n$80\r\n1790000000000-0 ")


# -- the machine's own ------------------------------------------------------------------------------------------------------


def there(stream: Stream) -> object:
    return delivered(stream.to())


def again(stream: Stream) -> object:
    delivered(stream.to())
    return delivered(stream.to())


def another_body(stream: Stream) -> object:
    destination = stream.to()
    destination.deliver(OTHER, seconds=LATE)
    return delivered(destination)


def no_stream(stream: Stream) -> object:
    stream.do("SET", stream.name, "a text")
    return delivered(stream.to())


def lost(what: str) -> Callable[[Stream], object]:
    def told(stream: Stream) -> object:
        with swallowing(stream.port, what) as port:
            return delivered(stream.to(port))

    return told


REDIS_ROWS = (
    Row("the connection is refused", NotSent, told(None), "the connection was refused"),
    Row("it does not let us in", NotSent, told(plays(b"", AUTH=b"-WRONGPASS no\r\n"), user=f"ada:{PASSWORD}@")),
    Row("it wants a password, and we have none", NotSent, told(plays(b"", PING=b"-NOAUTH no\r\n"))),
    Row("it is no Redis", NotSent, told(plays(b"", PING=b"HTTP/1.1 400 Bad Request\r\n")), "the session failed"),
    Row("the body is longer than `max_length`", Refused, told(plays(b""), max_length=10)),
    Row(
        "`LOADING`, `READONLY`, `OOM`, `MISCONF`, `BUSY`, `CLUSTERDOWN`, `MASTERDOWN`, `NOREPLICAS`, `TRYAGAIN`",
        NotSent,
        says("OOM"),
        "error OOM",
    ),
    Row("the stream is no stream", Refused, no_stream),
    Row("`MOVED`, `NOPERM` and any other error", Refused, says("MOVED 3999"), "error MOVED"),
    Row("the connection is lost before an answer", Unknown, told(plays(lambda _: None))),
    Row("it is reset before an answer", Unknown, told(plays(Caller.reset))),
    Row("the command is lost on its way", Unknown, lost("request")),
    Row("the answer is lost on its way", Unknown, lost("reply")),
    Row("it does not answer in time", Unknown, told(plays(Caller.say_nothing), SOON), f"no answer within {SOON} s"),
    Row("its answer is cut short", Unknown, told(plays(half_an_answer))),
    Row("its answer is none of the script's", Unknown, told(plays(b"+OK\r\n")), "its answer was none of the script's"),
    Row("the entry is added", Delivered, there),
    Row("the message has its entry, with the same body", Delivered, again),
    Row(
        "the message has its entry, with another body",
        Refused,
        another_body,
        "the message has an entry with another body",
    ),
)


@pytest.fixture
def stream() -> Iterator[Stream]:
    made = Stream(needed("redis", 6379, says=b"PING\r\n", hears=b"+PONG"))
    yield made
    made.close()


@pytest.mark.parametrize("row", REDIS_ROWS, ids=names(REDIS_ROWS))
def test_what_redis_does_means(row: Row, stream: Stream) -> None:
    agrees(row.how(stream), row, PASSWORD)


@pytest.mark.parametrize(
    "error", ["LOADING", "READONLY", "MISCONF", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN"]
)
def test_an_error_that_passes_is_surely_not_sent(error: str) -> None:
    with rogue(plays(f"-{error} later\r\n".encode())) as server:
        assert delivered(to(server.port)) == NotSent(f"error {error}")


def test_a_message_is_one_entry_with_its_key_however_often_it_comes(stream: Stream) -> None:
    with swallowing(stream.port, "reply") as port:
        first = delivered(stream.to(port))
    second = delivered(stream.to())

    ((entry, fields),) = stream.do("XRANGE", stream.name, "-", "+")
    assert type(first) is Unknown
    assert second == Delivered(f"entry {entry.decode()}, from an earlier sending")
    assert dict(zip(fields[::2], fields[1::2], strict=True)) == {
        b"key": MESSAGE.key.encode(),
        b"run": MESSAGE.run.encode(),
        b"name": b"invoice",
        b"content_type": b"application/json",
        b"body": MESSAGE.body,
    }


def test_it_remembers_as_long_as_it_says(stream: Stream) -> None:
    destination = stream.to(remembers="2d")
    destination.deliver(MESSAGE, seconds=LATE)
    own = f"{{{stream.name}}}:duly:{MESSAGE.key}"
    left = stream.do("PTTL", own)
    destination.close()
    forever = stream.to(remembers="forever")
    forever.deliver(replace(MESSAGE, key="another"), seconds=LATE)
    forever.close()

    assert destination.remembers == 2 * DAY
    assert 2 * 86_400_000 - 60_000 < left <= 2 * 86_400_000
    assert forever.remembers is None
    assert stream.do("PTTL", f"{{{stream.name}}}:duly:another") == -1
    assert to(1).remembers == 7 * DAY


def test_where_the_entry_cannot_be_added_no_key_is_left(stream: Stream) -> None:
    no_stream(stream)

    assert stream.do("KEYS", f"*{stream.name}:duly*") == []
    assert stream.do("KEYS", f"{{{stream.name}}}*") == []


def test_a_probe_finds_the_entry_or_that_none_was_added(stream: Stream) -> None:
    destination = stream.to()
    before = destination.probe(MESSAGE, seconds=LATE)
    destination.deliver(MESSAGE, seconds=LATE)
    after = destination.probe(MESSAGE, seconds=LATE)
    destination.close()

    assert before == DidNot("no key of it is there")
    assert isinstance(after, Happened)


def test_a_probe_tells_nothing_when_the_key_would_be_forgotten(stream: Stream) -> None:
    week_ago = time.time_ns() // 1000 - 8 * DAY
    destination = stream.to()

    found = destination.probe(replace(MESSAGE, first_sent_at=week_ago), seconds=LATE)
    destination.close()

    assert found == CannotTell("no key of it is there, nor would be any more")
    assert to(nobodys_port()).probe(MESSAGE, seconds=LATE) == CannotTell("the connection was refused")


def test_a_connection_that_was_closed_while_it_was_idle_costs_nothing() -> None:
    entry = f"*1\r\n$80\r\n1790000000000-0 {'x' * 64}\r\n".encode()
    with rogue(plays(lambda caller: caller.say(entry))) as server:
        destination = to(server.port)
        destination.deliver(MESSAGE, seconds=LATE)
        server.ended()
        destination.deliver(MESSAGE, seconds=LATE)
        destination.close()

    assert server.connections == 2


def test_a_stream_is_kept_about_as_long_as_is_wanted(stream: Stream) -> None:
    destination = stream.to(max_entries=100)
    for number in range(400):
        destination.deliver(replace(MESSAGE, key=str(number)), seconds=LATE)
    destination.close()

    assert 100 <= stream.do("XLEN", stream.name) < 400


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"remembers": "never"}, "destinations.log.remembers: a key is always kept here; write how long"),
        ({"password": PASSWORD}, "destinations.log.password: a secret does not stand here"),
        ({"strem": "a"}, "destinations.log.strem: no such field; did you mean 'stream'?"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse) as told:
        to(1, **settings)

    assert str(told.value).startswith(said)
    assert PASSWORD not in str(told.value)
