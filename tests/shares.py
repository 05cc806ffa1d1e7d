"""Shares: what is told many times over, and how much of it one run tells.

Some stories are told of every pair of operations on every database, of every driver, under every fault that is planted: all of
them take an hour. A run tells a share, another one each day, so that each is told within days of a change, and says so at its
end. All are told by `DULY_TESTS=all make test`, and whatever is named: a file, a folder, a test.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from zlib import crc32

import pytest

# What of the tests' names, and of how many of them a run tells one. The first that fits counts.
SHARES = tuple(
    (re.compile(f"tests/{pattern}"), of)
    for pattern, of in (
        (r"mutants/test_mutants\.py::test_a_planted_fault_is_found", 30),
        # What interleaves on PostgreSQL are statements: hundreds of histories for a pair.
        (r"histories/.*\[postgres", 4),
        (r"histories/test_races\.py::test_histories_with_faults", 4),
        (r"histories/test_(races|receiving|post)\.py::", 2),
        # Stories of chance, the same at each run, of hosts that disagree about the rules of a zone.
        (r"ledger/test_rules\.py::test_(hosts_that_poke|edits|windows_that_are_named)\w+\[.*postgres", 6),
        (r"ledger/test_rules\.py::test_(hosts_that_poke|edits|windows_that_are_named)", 3),
        (r"ledger/test_remembered_in_zones\.py::", 4),
        # The same server, of another release; the same story, by another driver; the same process, with another database.
        (r"conformance/test_postgres\.py::.*\[wheel", 4),
        (r"conformance/test_postgres\.py::.*-async", 2),
        (r"(typed|borrowed)/test_(stories|receive|async|lost_reply)\.py::.*(psycopg|asyncpg)", 3),
        (r"(typed|borrowed)/test_stories\.py::", 2),
        (r"work/test_waits\.py::test_(whichever_way|in_an_event_loop_too)", 2),
        (r"(aio|daemon|evidence|ledger|outbox|web)/.*\[(.*-)?postgres", 2),
        (r"receiver/test_servers\.py::", 2),
        # Each page in each colour, each action from elsewhere, and whatever a description allows.
        (r"web/browser/test_pages\.py::.*\[", 3),
        (
            r"web/(api/test_writes|test_actions)\.py::test_(nothing_is_done_from_elsewhere|what_is_no_body|what_cannot_be)",
            3,
        ),
        (r"web/api/test_fuzzing\.py::", 2),
        # What starts many processes, or those of somebody else.
        (r"on_celery/test_(carried|task|beat)\.py::", 3),
        (r"adopt/test_\w+\.py::.*\[", 2),
        (r"cli/test_(demo|manage)\.py::", 2),
        (r"daemon/test_(commands|daemon|day)\.py::", 2),
        (r"docs/test_(transactions|alembic)\.py::", 3),
        (r"docs/test_(?!readme)", 2),
        (r"schedule/test_(laws|replay|versions)\.py::", 2),
    )
)


# One for all processes of a run, also past midnight; they collect for themselves, and must find the same.
TODAY = int(os.environ.setdefault("DULY_TESTS_DAY", str(datetime.now(tz=UTC).toordinal())))


def told_today(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that this run tells, and those that it leaves out."""
    told: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        of = next((of for pattern, of in SHARES if pattern.match(item.nodeid)), 1)
        (left_out if (crc32(item.nodeid.encode()) + TODAY) % of else told).append(item)
    return told, left_out
