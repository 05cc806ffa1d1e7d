"""AMQP: one persistent message, published with RabbitMQ's confirms, and the key as its `message-id`.

Each message has a channel of its own. To open it, and to ask for confirms, takes an answer each time, and so proves that the
connection still stands before a byte of the message is said. From then on only an `ack` is a delivery. A broker that could put
it into no queue returns it first (it is published as mandatory), and one that knows no such exchange closes the channel: both
mean that no queue has it. A `nack` does not: of several queues one may have taken it.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import Delivered, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.child import filled
from duly.outbox.destinations.line import Deadline, NoLine
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import Any

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

LENGTH = 16 * 1024 * 1024  # what RabbitMQ 4 takes as it comes


def declared(settings: Settings) -> Amqp:
    """The destination that a table with `kind = "amqp"` declares."""
    from importlib.util import find_spec

    url = settings.url(as_in="amqps://shop@mq.example.com/orders")
    exchange = settings.text("exchange", "", as_in="orders")
    routing_key = settings.text("routing_key", "", as_in="orders.{name}")
    if not exchange and not routing_key:
        raise Misuse(
            f'{settings.key("routing_key")}: it has to be there; without an exchange it names the queue: "orders"'
        )
    if find_spec("amqp") is None:
        raise Misuse(f"{settings.key('kind')}: amqp needs a package: pip install 'duly[amqp]'")
    return Amqp(
        url=url,
        exchange=exchange,
        routing_key=routing_key,
        password=settings.secret("password"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        probe=probe_of(settings),
        remembers=settings.remembers(),
        max_length=settings.number("max_length", LENGTH),
    )


class Amqp:
    """An exchange of a broker, or a queue."""

    kind = "amqp"
    key_form = "message-id"
    reads_own_writes = False

    def __init__(
        self,
        *,
        url: Secret,
        exchange: str,
        routing_key: str,
        password: Secret | None,
        ca_file: str | None,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self._url = url
        self._exchange, self._routing_key = exchange, routing_key
        self._password = password
        self._ca_file = ca_file
        self._probe = probe
        self._kept: Any = None

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Publish one message, and wait until the broker confirms it."""
        from amqp.exceptions import AMQPError, ChannelError, MessageNacked

        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        if not message.content_type.isascii() or len(message.content_type) > 255:
            return Refused("its content type is no value of a property")
        deadline = Deadline(seconds)
        try:
            channel = self._channel(deadline)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))
        returned: list[int] = []
        channel.events["basic_return"].add(lambda error, *_: returned.append(error.reply_code))
        try:
            with self._over(deadline):
                self._publish(channel, message)
        except MessageNacked:
            outcome: Outcome = Unknown("nack")
        except ChannelError as e:
            outcome = Refused(f"the channel was closed: {e.reply_code}")
        except (
            AMQPError,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
        ) as e:  # the library's own, on a line that goes away
            self.close()
            code = f": {e.reply_code}" if isinstance(e, AMQPError) and e.reply_code else ""
            return Unknown(deadline.why(f"the connection was lost before the broker confirmed{code}"))
        else:
            outcome = Refused(f"returned, no queue takes it: {returned[0]}") if returned else Delivered("ack")
        self._put_away(channel, deadline)
        return outcome

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Ask the declared command: a broker cannot be asked what it has taken."""
        return self._probe.ask(message, seconds=seconds)

    def close(self) -> None:
        """Let go of the connection."""
        kept, self._kept = self._kept, None
        if kept is not None:
            with suppress(Exception):  # whatever it thinks of that: nothing is waited for any more
                kept.collect()

    # -- the line --------------------------------------------------------------------------------------------------------

    def _channel(self, deadline: Deadline) -> Any:
        """A channel with confirms, on the kept connection if that still answers, else on a new one. Raises `NoLine`."""

        while True:
            fresh = self._kept is None
            if fresh:
                self._kept = self._connected(deadline)
            try:
                with self._over(deadline):
                    channel = self._kept.channel()
                    channel.confirm_select()
                    return channel
            except Exception:
                self.close()
                if fresh or deadline.is_over:
                    raise NoLine(deadline.why("the session failed")) from None

    def _connected(self, deadline: Deadline) -> Any:
        """A new connection, let in. Raises `NoLine` and `SecretMissing`."""
        from amqp import Connection
        from amqp.exceptions import AMQPError

        parts = urlsplit(self._url.read())
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise NoLine("its URL is not one of amqp or amqps")
        user, in_url = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        tls = {"server_hostname": parts.hostname, "context": {"check_hostname": True, "cafile": self._ca_file}}
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        connection = Connection(
            f"{host}:{parts.port or (5671 if parts.scheme == 'amqps' else 5672)}",
            userid=user,
            password=self._password.read() if self._password else in_url,
            login_method="PLAIN",
            virtual_host=unquote(parts.path[1:]) or "/",
            ssl=tls if parts.scheme == "amqps" else False,
            connect_timeout=deadline.left(),
        )
        try:
            with deadline.over(lambda: _sock(connection)):
                connection.connect()
        except AMQPError as e:
            with suppress(Exception):
                connection.collect()
            raise NoLine(deadline.why(f"it did not let us in: {e.reply_code}")) from None
        except ConnectionRefusedError:
            raise NoLine("the connection was refused") from None
        except Exception:
            with suppress(Exception):
                connection.collect()
            raise NoLine(deadline.why("no connection")) from None
        return connection

    @contextmanager
    def _over(self, deadline: Deadline) -> Iterator[None]:
        with deadline.over(lambda: _sock(self._kept)):
            yield

    def _publish(self, channel: Any, message: Message) -> None:
        from amqp import Message as Content

        content = Content(
            message.body,
            content_type=message.content_type,
            delivery_mode=2,  # it outlives its broker, in a queue that does
            message_id=message.key,
            type=_short(message.name),
            application_headers={"duly-run": message.run},
        )
        channel.basic_publish_confirm(
            content, exchange=self._exchange, routing_key=filled(self._routing_key, message), mandatory=True
        )

    def _put_away(self, channel: Any, deadline: Deadline) -> None:
        """Close the channel. What it was for has been said: a failure costs the connection only."""
        try:
            with self._over(deadline):
                channel.close()
        except Exception:
            self.close()


def _sock(connection: Any) -> socket.socket | None:
    transport = getattr(connection, "_transport", None)
    return getattr(transport, "sock", None)


def _short(text: str) -> str:
    """A short string of AMQP: 255 bytes."""
    return text.encode()[:255].decode(errors="ignore")
