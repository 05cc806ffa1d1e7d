"""A relay as a process that dies by SIGKILL at a point: `python -m tests.outbox.mortal LEDGER SETTINGS POINT [AFTER]`.

`SETTINGS` are those of the destination `billing`, as JSON. The points, in the order in which a message comes to them; `AFTER`
messages went well before:

- `before-sending`: it is claimed, and nothing of it was said to the receiver;
- `after-sending`: the receiver has answered, and the relay was not told;
- `before-recording`: the relay knows, and has written nothing;
- `before-commit`: it is written, and not committed;
- `none`: it lives.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from duly.outbox.destinations import Delivered, Message, destination_of
from duly.outbox.routes import route_of
from duly.store.postgres import PostgresStore
from duly.store.protocol import Store
from duly.store.sqlite import SqliteStore
from duly.work.relay import relay_of

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination, Finding, Outcome

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
POINTS = ("before-sending", "after-sending", "before-recording", "before-commit")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Fate:
    """At which point this process dies, and after how many messages."""

    def __init__(self, point: str, after: int) -> None:
        self.point = point
        self.left = after
        self.is_near = False

    def reach(self, point: str) -> None:
        if point == self.point and self.left <= 0:
            die()


class Mortal:
    """A destination in whose hands the process may die."""

    def __init__(self, inner: Destination, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate
        self.kind, self.key_form = inner.kind, inner.key_form
        self.remembers, self.max_length = inner.remembers, inner.max_length
        self.reads_own_writes = inner.reads_own_writes

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        self._fate.reach("before-sending")
        outcome = self._inner.deliver(message, seconds=seconds)
        self._fate.reach("after-sending")
        if isinstance(outcome, Delivered):
            self._fate.left -= 1
            self._fate.is_near = self._fate.left < 0
        return outcome

    def probe(self, message: Message, *, seconds: float) -> Finding:
        return self._inner.probe(message, seconds=seconds)

    def close(self) -> None:
        self._inner.close()


def mortal_store(kind: type[Any], fate: Fate) -> type[Any]:
    """A store in whose transactions the process may die, once a message was delivered that is not on record."""

    class MortalStore(kind):  # type: ignore[misc]  # whichever store it is
        def write(self, operation: Coroutine[Any, Any, T], **how: Any) -> T:
            if fate.is_near and fate.point == "before-recording":
                operation.close()
                die()

            async def written() -> T:
                result = await operation
                if fate.is_near and fate.point == "before-commit":
                    die()
                return result

            answer: T = super().write(written(), **how)
            return answer

    return MortalStore


def main(ledger: str, settings: str, point: str, after: str = "0") -> None:
    """Deliver what is due, as far as it comes."""
    fate = Fate(point, int(after))
    inner = partial(destination_of, "billing", json.loads(settings))
    route = route_of("billing", {"concurrency": 1, "retry_delay": "1ms"}, lambda: Mortal(inner(), fate))
    store: Store
    if ledger.startswith("postgresql"):
        store = mortal_store(PostgresStore, fate)(ledger)
    else:
        store = mortal_store(SqliteStore, fate)(ledger, create=False)
    relay_of(store, {"billing": route}).deliver()


def relay(ledger: str, settings: Mapping[str, object], point: str = "none", after: int = 0) -> int:
    """Start one, and wait until nothing is due or it has died; how it ended."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.outbox.mortal", ledger, json.dumps(dict(settings)), point, str(after)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
