"""From a run to its effect elsewhere, by nothing but processes: `duly outbox deliver`, and a shop behind our middleware.

Relays and shop are killed by SIGKILL at seeded points, requests and replies are swallowed between them, and time goes on so far
that the shop forgets. `python -m campaigns.post` tells the same of ten thousand messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from duly.ledger.address import key_of
from duly.ledger.records import RunId
from duly.times import DAY
from tests.books import Book, PostgresBook
from tests.outbox.storm import Storm, StormWithoutMemory
from tests.outbox.way import RELAY_KILLED, SHOP_KILLED, SWALLOWED
from tests.servers import Server
from tests.story import Said, duly

S = TypeVar("S", bound=Storm)

pytestmark = pytest.mark.timeout(120)  # many processes, one after the other: seconds where nothing else is at work


class StormBeforeAPersonTypes(StormWithoutMemory):
    """What a person says of a letter is typed, the first time of each."""

    def resolve(self, run: RunId, name: str, *, done: bool) -> None:
        if self.counts["a person said: done" if done else "a person said: not done"]:
            super().resolve(run, name, done=done)
            return
        key, outcome = str(self.ledger.store.read(key_of(run))), "done" if done else "not-done"
        said = typed(self, "resolve", key, "--message", name, "--as", outcome, "--evidence", "read their books")
        assert said.code == 0, said


def typed(storm: Storm, *words: str) -> Said:
    return duly(*words, DULY_LEDGER=storm.ledger.path)


@pytest.fixture(params=["sqlite", "postgres"])
def storm_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[type[Any]], Any]]:
    """Makes a storm of a kind, whose ledger and shop are both on this database. Thirty messages of six runs."""
    made: list[Storm] = []
    server: Server | None = request.getfixturevalue("server") if request.param == "postgres" else None
    urls: list[str] = []

    def book(name: str) -> Book:
        if server is None:
            return Book(tmp_path / f"{name}.db")
        urls.append(server.new_database())
        return PostgresBook(urls[-1])

    def make(kind: type[S]) -> S:
        storm = kind(book("jobs"), book("shop"), tmp_path, seed=4, runs=6, each=5, faults=35)
        made.append(storm)
        return storm

    yield make
    for storm in made:
        storm.close()
    for url in urls:
        assert server is not None
        server.drop(url)


def had_each_kind_of_fault(storm: Storm) -> bool:
    return all(sum(storm.counts[fault] for fault in kind) > 0 for kind in (SWALLOWED, RELAY_KILLED, SHOP_KILLED))


def test_a_shop_that_remembers_keys_for_a_time_has_each_effect_once_in_a_storm(
    storm_of: Callable[[type[Storm]], Storm],
) -> None:
    storm = storm_of(Storm)

    storm.go_by()

    storm.look_in_the_end()
    assert had_each_kind_of_fault(storm), storm.counts
    assert sum(storm.requests.values()) > len(storm.names)  # some came again, and had no second effect
    assert typed(storm, "outbox", "list").out == "every message is delivered\n"
    assert typed(storm, "outbox", "deliver").code == 0


def test_a_shop_that_remembers_nothing_is_sent_nothing_twice_without_a_word_in_a_storm(
    storm_of: Callable[[type[StormBeforeAPersonTypes]], StormBeforeAPersonTypes],
) -> None:
    storm = storm_of(StormBeforeAPersonTypes)
    for _ in range(4):  # nobody says anything; a probe does
        assert not storm.round()
        storm.advance(DAY)
    unknown = storm.ledger.rows("select idempotency_key from duly_message where state = 'unknown' order by 1")
    of_letters = storm.ledger.rows(
        "select idempotency_key from duly_message where state = 'unknown' and destination = 'letters' order by 1"
    )
    assert of_letters
    assert all(storm.requests[key] <= 1 for (key,) in of_letters)
    assert typed(storm, "outbox", "deliver").code == 80, unknown

    storm.go_by()

    storm.look_in_the_end()
    assert had_each_kind_of_fault(storm), storm.counts
    by_person = storm.counts["a person said: done"] + storm.counts["a person said: not done"]
    by_probe = storm.counts["closed by a probe: done"] + storm.counts["closed by a probe: not done"]
    assert (by_person > 0, by_probe > 0) == (True, True)
    assert by_person + by_probe == len(storm.words())
    assert typed(storm, "outbox", "list").out == "every message is delivered\n"
