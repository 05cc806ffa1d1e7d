"""Brokers for Celery: the machine's RabbitMQ and Redis, with names of our own there; and a Redis that can be killed."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from celery import Celery

from tests.exec.stage import PATIENCE, until
from tests.outbox.destinations.brokers import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = """
app = Celery("shop", broker=os.environ["STAGE_BROKER"])
app.conf.update(
    task_default_queue=os.environ["STAGE_QUEUE"],
    broker_transport_options=(
        {"global_keyprefix": os.environ["STAGE_QUEUE"] + "/", "visibility_timeout": 3600}
        if os.environ["STAGE_BROKER"].startswith("redis") else {}
    ),
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    result_expires=60,
)
"""


class Broker:
    """One broker, and a name of our own there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"duly-test-{secrets.token_hex(6)}"

    @property
    def environ(self) -> dict[str, str]:
        """What the module of the jobs reads."""
        return {"STAGE_BROKER": self.url, "STAGE_QUEUE": self.name}

    def app(self) -> Any:
        """An app of Celery's on the same queue, that carries nothing."""
        names: dict[str, Any] = {"Celery": Celery, "os": _Os(self.environ)}
        exec(SETTINGS, names)
        return names["app"]

    def purge(self) -> int:
        """Throw away what waits in the queue; how much it was."""
        with self.app() as app:
            return int(app.control.purge() or 0)

    def waiting(self) -> int:
        """How many messages wait for a worker."""
        with self.app() as app, app.connection_for_read() as connection:
            queue = app.amqp.queues[self.name](connection.default_channel)
            return int(queue.queue_declare().message_count)

    def send(self, task: str, **arguments: Any) -> None:
        """Send a message to a task, as whoever likes may."""
        with self.app() as app:
            app.send_task(task, kwargs=arguments)

    def close(self) -> None:
        """Remove what has our name."""
        with self.app() as app, app.connection_for_read() as connection:
            channel = connection.default_channel
            if self.url.startswith("redis"):
                for key in channel.client.scan_iter(f"{self.name}/*"):
                    channel.client.delete(key.removeprefix(f"{self.name}/".encode()))
            else:
                channel.queue_delete(self.name)
                channel.exchange_delete(self.name)


class _Os:
    def __init__(self, environ: dict[str, str]) -> None:
        self.environ = environ


def rabbitmq() -> Iterator[Broker]:
    """The machine's own."""
    port = needed("rabbitmq", 5672, says=b"AMQP\x00\x00\x09\x01", hears=b"\x01\x00\x00")
    broker = Broker(f"amqp://guest:guest@127.0.0.1:{port}//")
    yield broker
    broker.close()


def redis() -> Iterator[Broker]:
    """The machine's own."""
    port = needed("redis", 6379, says=b"PING\r\n", hears=b"+PONG")
    broker = Broker(f"redis://127.0.0.1:{port}/13")
    yield broker
    broker.close()


class MortalRedis(Broker):
    """A Redis of our own, which keeps nothing."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("redis-server") is None:
            pytest.skip("NO redis-server IS INSTALLED, so a broker that dies is not told of")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        super().__init__(f"redis://127.0.0.1:{self._port}/0")
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Start it, empty."""
        words = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        until(self._answers, "it answers")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait(timeout=PATIENCE)

    def close(self) -> None:
        self.kill()


BROKERS = {"rabbitmq": rabbitmq, "redis": redis}
