"""The Redis that some peers keep their records in: a database of it that is empty, and is emptied again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from bench.contestant import Given


@contextmanager
def redis_of(given: Given) -> Iterator[Any]:
    """A client of a database that nobody else uses. Ends the process where there is none."""
    client = redis.Redis.from_url(given.redis, decode_responses=False)
    try:
        taken = client.dbsize()
    except redis.ConnectionError:
        raise SystemExit(f"no Redis answers at {given.redis}") from None
    if taken:
        raise SystemExit(
            f"{given.redis} is not empty, and would be emptied: name another with --redis. What a benchmark left that was "
            "stopped is there too: look at it with `redis-cli -u URL keys '*'`, and empty it with `flushdb`"
        )
    try:
        yield client
    finally:
        client.flushdb()
