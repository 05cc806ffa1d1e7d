"""AMQP: what a broker does, and what it means. A real RabbitMQ, and servers that misbehave."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import amqp
import pytest

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, NotSent, Refused, Unknown, destination_of
from duly.outbox.destinations.amqp import Amqp
from duly.records import replace
from tests.outbox.destinations.brokers import needed, swallowing
from tests.outbox.destinations.rogue import Caller, nobodys_port, rogue
from tests.outbox.destinations.table import MESSAGE, Row, agrees, names

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

SOON, LATE = 0.6, 20.0
PASSWORD = "rabbit-5ecret"


class Broker:
    """The machine's RabbitMQ, and names of its own there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.name = f"duly-test-{secrets.token_hex(6)}"
        self._connection = amqp.Connection(f"127.0.0.1:{port}", login_method="PLAIN")
        self._connection.connect()
        self.channel = self._connection.channel()

    def queue(self, **arguments: Any) -> None:
        """A queue of our name, which goes with the test or a minute later."""
        self.channel.queue_declare(
            self.name, durable=True, auto_delete=False, arguments={"x-expires": 60_000, **arguments}
        )

    def take(self) -> Any:
        return self.channel.basic_get(self.name, no_ack=True)

    def to(self, port: int | None = None, **settings: Any) -> Destination:
        return to(port or self.port, **{"routing_key": self.name, **settings})

    def close(self) -> None:
        self.channel.queue_delete(self.name)
        self.channel.exchange_delete(self.name)
        self._connection.close()


def to(port: int, user: str = "", vhost: str = "", host: str = "127.0.0.1", **settings: Any) -> Destination:
    url = f"amqp://{user}{host}:{port}/{vhost}"
    return destination_of("queue", {"kind": "amqp", "url": url, "routing_key": "orders", **settings})


def delivered(destination: Destination, *, seconds: float = LATE) -> object:
    try:
        return destination.deliver(MESSAGE, seconds=seconds)
    finally:
        destination.close()


# -- what it does -----------------------------------------------------------------------------------------------------------


def refused(_: Broker) -> object:
    return delivered(to(nobodys_port()))


def nowhere(_: Broker) -> object:
    return delivered(to(5672, host="no-such-host.invalid"))


def no_broker(_: Broker) -> object:
    with rogue(lambda caller: caller.say(b"220 mail.example.com ESMTP\r\n" * 10)) as server:
        return delivered(to(server.port))


def goes_away(_: Broker) -> object:
    with rogue(lambda caller: caller.reset()) as server:
        return delivered(to(server.port))


def says_nothing(_: Broker) -> object:
    with rogue(Caller.say_nothing) as server:
        return delivered(to(server.port), seconds=SOON)


def not_let_in(broker: Broker) -> object:
    return delivered(broker.to(user=f"ada:{PASSWORD}@"))


def no_host(broker: Broker) -> object:
    return delivered(broker.to(vhost="nowhere"))


def no_queue(broker: Broker) -> object:
    return delivered(broker.to())


def no_exchange(broker: Broker) -> object:
    return delivered(broker.to(exchange=broker.name))


def full(broker: Broker) -> object:
    broker.queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    destination = broker.to()
    destination.deliver(MESSAGE, seconds=LATE)
    return delivered(destination)


def there(broker: Broker) -> object:
    broker.queue()
    return delivered(broker.to())


def too_long(broker: Broker) -> object:
    return delivered(broker.to(max_length=10))


def lost(what: str) -> Callable[[Broker], object]:
    def told(broker: Broker) -> object:
        broker.queue()
        with swallowing(broker.port, what) as port:
            return delivered(broker.to(port))

    return told


def no_answer(broker: Broker) -> object:
    """All is said, and nothing more comes back: the broker is stopped, or a network between."""
    broker.queue()
    with swallowing(broker.port, "reply, and stays") as port:
        return delivered(broker.to(port), seconds=SOON)


AMQP_ROWS = (
    Row("its name has no address", NotSent, nowhere),
    Row("the connection is refused", NotSent, refused, "the connection was refused"),
    Row("it is no broker", NotSent, no_broker),
    Row("it goes away before we are let in", NotSent, goes_away),
    Row("it does not greet in time", NotSent, says_nothing, f"no answer within {SOON} s"),
    Row("it does not let us in", NotSent, not_let_in, "it did not let us in: 403"),
    Row("it has no such virtual host", NotSent, no_host, "it did not let us in: 530"),
    Row("the body is longer than `max_length`", Refused, too_long),
    Row("no queue takes the message: it is returned", Refused, no_queue, "returned, no queue takes it: 312"),
    Row("there is no such exchange: the channel is closed", Refused, no_exchange, "the channel was closed: 404"),
    Row("`nack`: of several queues one may have it", Unknown, full, "nack"),
    Row("the message is lost on its way", Unknown, lost("request")),
    Row("the confirm is lost on its way", Unknown, lost("reply")),
    Row("no confirm comes in time", Unknown, no_answer, f"no answer within {SOON} s"),
    Row("`ack`", Delivered, there, "ack"),
)


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker(needed("rabbitmq", 5672, says=b"AMQP\x00\x00\x09\x01", hears=b"\x01\x00\x00"))
    yield made
    made.close()


@pytest.mark.parametrize("row", AMQP_ROWS, ids=names(AMQP_ROWS))
def test_what_a_broker_does_means(row: Row, broker: Broker) -> None:
    agrees(row.how(broker), row, PASSWORD)


def test_a_message_has_its_key_and_outlives_its_broker(broker: Broker) -> None:
    broker.queue()
    destination = broker.to()
    outcomes = [destination.deliver(replace(MESSAGE, attempt=attempt), seconds=LATE) for attempt in (1, 2)]
    destination.close()

    assert outcomes == [Delivered("ack")] * 2
    first, second = broker.take(), broker.take()
    assert first.properties["message_id"] == second.properties["message_id"] == MESSAGE.key
    assert first.properties["delivery_mode"] == 2
    assert first.properties["content_type"] == "application/json"
    assert first.properties["application_headers"] == {"duly-run": MESSAGE.run}
    assert bytes(first.body) == MESSAGE.body if isinstance(first.body, bytes) else first.body.encode() == MESSAGE.body
    assert destination.remembers == 0


def test_after_a_lost_confirm_the_queue_has_it(broker: Broker) -> None:
    outcome = lost("reply")(broker)

    assert type(outcome) is Unknown
    assert broker.take() is not None


def test_one_message_after_the_other_goes_over_one_connection_also_after_a_no(broker: Broker) -> None:
    broker.queue()
    destination = broker.to(routing_key="{name}")
    names = (broker.name, "nobodys-queue", broker.name)
    outcomes = [destination.deliver(replace(MESSAGE, name=name), seconds=LATE) for name in names]
    destination.close()

    assert [type(each) for each in outcomes] == [Delivered, Refused, Delivered]


def test_a_connection_that_was_lost_while_it_was_idle_costs_nothing(broker: Broker) -> None:
    broker.queue()
    with swallowing(broker.port) as port:
        destination = broker.to(port)
        first = destination.deliver(MESSAGE, seconds=LATE)
        goes_between(destination)
        second = destination.deliver(MESSAGE, seconds=LATE)
        destination.close()

    assert (first, second) == (Delivered("ack"), Delivered("ack"))


def goes_between(destination: Destination) -> None:
    """What a firewall does to a connection that says nothing for an hour."""
    assert isinstance(destination, Amqp)
    destination._kept.transport.sock.shutdown(socket.SHUT_RDWR)


def test_a_broker_cannot_be_asked_what_it_took(broker: Broker) -> None:
    assert broker.to().probe(MESSAGE, seconds=LATE) == CannotTell("no probe is declared for this destination")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"routing_key": None}, "destinations.queue.routing_key: it has to be there"),
        ({"password": PASSWORD}, "destinations.queue.password: a secret does not stand here"),
        ({"exchnge": "a"}, "destinations.queue.exchnge: no such field; did you mean 'exchange'?"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse) as told:
        to(1, **settings)

    assert str(told.value).startswith(said)
    assert PASSWORD not in str(told.value)
