"""Paging: a list that is followed to its end has each of its members once, whatever is added meanwhile, at a bounded cost."""

from __future__ import annotations

from typing import Any

import pytest

from duly.evidence import batches
from duly.evidence.batches import (
    backfills_before,
    jobs_after,
    messages_after,
    runs_after,
    unknowns_after,
    windows_after,
)
from duly.schedule.spec import daily, hourly
from duly.times import DAY, HOUR
from tests.books import Book
from tests.outbox.post import Post
from tests.web.api.conftest import Asker


def keys(members: list[Any]) -> list[str]:
    return [member["key"] for member in members]


def test_runs_that_are_added_while_a_list_is_followed_move_nothing(hand: Asker) -> None:
    hand.book.job(schedule=hourly("UTC"))
    hand.book.clock.advance(8 * HOUR)
    hand.book.work_all()
    there = keys(hand.all_of("/runs", "runs", limit=200))
    found: list[str] = []
    where: str | None = "/runs?limit=2"

    while where is not None:
        document = hand.get(where)
        found += keys(document["runs"])
        where = document["next"]
        hand.book.clock.advance(HOUR)
        hand.book.work_all()

    assert len(there) == 9
    assert [key for key in found if key in there] == there
    assert len(found) == len(set(found))


def test_windows_that_come_due_while_a_list_is_followed_move_nothing(hand: Asker) -> None:
    hand.book.job(schedule=hourly("UTC"), scopes=("a", "b"))
    hand.book.clock.advance(6 * HOUR)
    there = keys(hand.all_of("/job/export/windows", "periods", limit=200))
    found: list[str] = []
    where: str | None = "/job/export/windows?limit=2"

    while where is not None:
        document = hand.get(where)
        found += keys(document["periods"])
        where = document["next"]
        hand.book.clock.advance(HOUR)

    assert len(there) == 14
    assert {key for key in found if key in there} == set(there)
    assert len(found) == len(set(found))


def test_jobs_lines_messages_and_backfills_that_are_added_move_nothing(hand: Asker) -> None:
    post = Post(hand.book)
    for number in range(6):
        hand.book.job(f"job-{number}", daily("UTC"))
        post.complete(hand.book.take(job=f"job-{number}"), f"a{number}", f"b{number}")
        hand.book.backfill("2026-10-01", "2026-10-03", job=f"job-{number}")
    lists = {
        "/jobs": "jobs",
        "/messages": "messages",
        "/backfills": "backfills",
        "/grid?unit=day&from=2026-10-05&n=1": "cells",
    }
    there = {path: _names(hand.all_of(path, name, limit=200)) for path, name in lists.items()}
    found: dict[str, list[str]] = {path: [] for path in lists}

    for path, name in lists.items():
        where: str | None = f"{path}{'&' if '?' in path else '?'}limit=5"
        while where is not None:
            document = hand.get(where)
            found[path] += _names(document[name])
            where = document["next"]
            number += 1
            added = f"job-{number % 6}{number}"  # before and after where the list is
            hand.book.job(added, daily("UTC"))
            post.complete(hand.book.take(job=added), f"a{number}", f"b{number}")
            hand.book.backfill("2026-10-01", "2026-10-03", job=added)
            if number > 60:
                pytest.fail("a list that is added to has no end")

    for path in lists:
        assert [name for name in found[path] if name in there[path]] == there[path], path
        assert len(found[path]) == len(set(found[path])), path


def _names(members: list[Any]) -> list[str]:
    return [f"{each['key']} {each.get('name', '')} {each.get('asked_at', '')}" for each in members]


def test_the_revisions_of_a_run_are_not_parted_from_their_place(hand: Asker) -> None:
    hand.book.job(schedule=daily("UTC"))
    hand.book.work_all()
    for _ in range(3):
        assert hand.do("reopen", "export:2026-10-05[UTC]", with_key=str(_), reason="again").status == 200
        hand.book.work_all()

    assert keys(hand.all_of("/runs", "runs", limit=1)) == keys(hand.all_of("/runs", "runs", limit=200))
    assert len(hand.all_of("/runs", "runs", limit=1)) == 4


class _Counted:
    """How many statements an operation asks."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def of(self, operation: Any) -> int:
        asked = 0

        async def counting() -> None:
            nonlocal asked

            class Tap:
                def __await__(self) -> Any:
                    nonlocal asked
                    answer = None
                    while True:
                        try:
                            question = operation.send(answer)
                        except StopIteration:
                            return
                        asked += question.want not in ("now",)
                        answer = yield question

            await Tap()

        self._book.store.read(counting())
        return asked


def test_a_batch_costs_so_many_statements_however_many_jobs_there_are(open_book: Book) -> None:
    counted = _Counted(open_book)

    def cost() -> list[int]:
        return [
            counted.of(each)
            for each in (
                jobs_after("", retired=False, limit=2),
                runs_after(None, None, None, state=None, limit=2),
                runs_after(None, None, None, state="failed", limit=2),
                unknowns_after(None, None, None, limit=2),
                windows_after(None, "wide", None, limit=2),
                messages_after(None, None, state=None, limit=2),
                backfills_before(None, None, None, limit=2),
            )
        ]

    def grow(first: int, beyond: int) -> None:
        open_book.job("wide", daily("UTC"), scopes=[f"s{number}" for number in range(first, beyond)])
        for number in range(first, beyond):
            open_book.job(f"job-{number:03}", daily("UTC"))
            open_book.work_all(f"job-{number:03}")

    grow(0, 4)
    few = cost()
    grow(4, 24)
    many = cost()

    # A series that holds none of what is asked for costs a look; of those there is a bound.
    assert few[:2] + few[3:] == many[:2] + many[3:]
    assert many[2] <= few[2] + 2 * 20 <= batches.SERIES_AT_MOST


def test_a_list_goes_on_beyond_the_bound_of_what_one_batch_looks_through(
    hand: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SERIES_AT_MOST", 2)
    monkeypatch.setattr(batches, "LINES_AT_MOST", 2)
    for number in range(7):
        hand.book.job(f"job-{number}", daily("UTC"), scopes=("a", "b"))
    hand.book.write(_complete(hand.book, "job-6", "b"))

    first = hand.get("/runs")
    assert (first["runs"], first["next"] is not None) == ([], True)
    assert len(hand.all_of("/runs", "runs", limit=50)) == 1
    hand.book.clock.advance(DAY)
    hand.book.job("wide", daily("UTC"), scopes=[f"s{number}" for number in range(7)])
    hand.book.clock.advance(DAY)
    assert len(hand.all_of("/job/wide/windows", "periods", limit=50)) == 14


async def _complete(book: Book, job: str, scope: str) -> None:
    from tests.web.conftest import _complete_all

    await _complete_all(book, job, scope)
