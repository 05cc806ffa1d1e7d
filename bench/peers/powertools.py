"""Powertools for AWS Lambda, its idempotency: a function that is called once for a key, with its records in Redis.

Records expire: after a day here, an hour unless configured otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

from bench.contestant import EFFECT, JOB, Contestant, Given, Window, compete
from bench.peers.broker import redis_of

A_DAY = 86_400


class Idempotent:
    """Calls of a function, one after the other."""

    def __init__(self, redis: Any, effect: Callable[[], object]) -> None:
        self._called = 0

        @idempotent_function(
            data_keyword_argument="run",
            persistence_store=CachePersistenceLayer(client=redis),
            config=IdempotencyConfig(expires_after_seconds=A_DAY),
        )
        def credit(run: dict[str, str]) -> dict[str, bool]:
            self._called += 1
            effect()
            return {"done": True}

        self._credit = credit

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        before = self._called
        for window in windows:
            self._credit(run={"job": JOB, "window": window.name})
        return len(windows) - (self._called - before)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    warnings.simplefilter("ignore")  # it misses the environment of a Lambda
    with redis_of(given) as redis, closing(given.connect()) as connection:
        yield Idempotent(redis, lambda: connection.execute(EFFECT))


if __name__ == "__main__":
    compete(
        enter,
        of="aws-lambda-powertools",
        atomic=False,
        guarantees="once for each key while its record lives (a day here); the record follows the effect, so a crash between "
        "them repeats it",
    )
