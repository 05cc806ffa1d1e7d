"""Who is measured side by side: each floor, each mode of duly's, each peer; and on which databases.

A peer that keeps its records in Redis writes its effect to SQLite: it is measured there.
"""

from __future__ import annotations

from dataclasses import dataclass

SQLITE, POSTGRES = "sqlite", "postgres"
FLOOR, DULY, PEER = "floor", "duly", "peer"

# What everything else is compared with: one transaction for the claim, one for the effect and its completion.
YARDSTICK = "floor, two transactions"


@dataclass(frozen=True)
class Entry:
    """A contestant: what it is called, and how its process is started."""

    name: str
    kind: str
    module: str
    on: tuple[str, ...] = (SQLITE, POSTGRES)
    way: str = ""
    environment: str = ""  # of `bench.environments`; empty: the one that this runs in


def _floor(name: str, way: str) -> list[Entry]:
    return [
        Entry(f"floor, {name}", FLOOR, f"bench.contestants.floor_{database}", (database,), way)
        for database in (SQLITE, POSTGRES)
    ]


def _peer(name: str, module: str, *on: str, environment: str = "peers") -> Entry:
    return Entry(name, PEER, f"bench.peers.{module}", on, environment=environment)


ENTRIES = (
    *_floor("one transaction", "one"),
    *_floor("two transactions", "two"),
    *_floor("100 runs a transaction", "group"),
    Entry("duly, inline", DULY, "bench.contestants.job", way="inline"),
    Entry("duly, transactional", DULY, "bench.contestants.job", way="transactional"),
    Entry("duly, external claim", DULY, "bench.contestants.claim"),
    Entry("duly, once in the caller's transaction", DULY, "bench.contestants.once"),
    Entry("duly, in an event loop", DULY, "bench.contestants.aio"),
    Entry("duly, catch_up() of 100 a commit", DULY, "bench.contestants.catch_up"),
    Entry("duly, daemon of 100 a commit", DULY, "bench.contestants.daemon"),
    _peer("huey", "huey", SQLITE),
    _peer("APScheduler 3", "apscheduler", SQLITE, POSTGRES),
    _peer("DBOS", "dbos", SQLITE, POSTGRES, environment="dbos"),
    _peer("Powertools idempotency (Redis)", "powertools", SQLITE),
    _peer("rq (Redis)", "rq", SQLITE),
    _peer("Celery (Redis)", "celery", SQLITE),
    _peer("procrastinate", "procrastinate", POSTGRES),
    _peer("pgqueuer", "pgqueuer", POSTGRES),
    _peer("oban", "oban", POSTGRES, environment="oban"),
)
