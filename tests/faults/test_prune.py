"""Pruning in real processes: killed in its midst it goes on next time, and whoever comes late meanwhile is refused (I7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.errors import BelowHorizon
from duly.ledger.records import AlreadyCompleted
from duly.times import DAY
from tests.books import Book, PostgresBook
from tests.servers import Server
from tests.story import SOURCE

DAYS = tuple(f"2026-10-{day:02}" for day in range(5, 15))
KEPT = DAYS[-1]  # the newest

# Dies by SIGKILL at a point: when the horizon is set, with a batch written and not committed, after one that is.
MORTAL = """
import os, signal, sys
from duly.cli.dispatch import dispatch
from duly.work import prune

point = sys.argv[1]
def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Pace(prune.Pace):
    def __init__(self, most):
        super().__init__(most)
        if point == "after-horizon":
            die()

    def after(self, seconds):
        pause = super().after(seconds)
        if point == "after-batch":
            die()
        return pause

prune.Pace = Pace
forget_batch = prune.forget_batch
batches = []
async def forget(*words, **named):
    done = await forget_batch(*words, **named)
    batches.append(done)
    if point == "in-batch" and len(batches) == 2:
        die()
    return done

prune.forget_batch = forget
sys.exit(dispatch(["db", "prune", "export", "--older-than", "1d", "--batch", "2", "--yes"]))
"""

# Names every day, again and again, as an old host that retries; says which of them it was given.
LATE = """
import sys, duly
from duly.errors import BelowHorizon

url, *days = sys.argv[1:]
ledger = duly.postgres(url) if "://" in url else duly.sqlite(url)
for day in days * 4:
    try:
        answer = ledger.take("export", day)
    except BelowHorizon:
        print("refused", day)
    else:
        print(type(answer).__name__, day)
ledger.close()
"""


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A job whose ten days are complete, and old."""
    if request.param == "sqlite":
        yield worked(Book(tmp_path / "jobs.db"))
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield worked(PostgresBook(url))


def worked(book: Book) -> Book:
    book.job(overlap=1)
    for _ in DAYS:
        book.work_all()
        book.clock.advance(DAY)
    book.clock.advance(5 * DAY)
    return book


def process(program: str, *words: str, ledger: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "DULY_LEDGER": ledger}
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def below(book: Book, table: str) -> int:
    ((found,),) = book.rows(
        f"select count(*) from {table} t join duly_series s on s.id = t.series where t.nominal < s.horizon"
    )
    return int(found)


@pytest.mark.parametrize(("point", "left"), [("after-horizon", 9), ("in-batch", 7), ("after-batch", 7)])
def test_killed_in_its_midst_it_goes_on_next_time(book: Book, point: str, left: int) -> None:
    killed = process(MORTAL, point, ledger=book.path)
    said = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, said

    assert below(book, "duly_run") == below(book, "duly_attempt") == left
    answers = [type(book.ask(day)) for day in DAYS]
    # What is there yet says itself that it is complete; what is gone is refused.
    assert answers == [BelowHorizon] * (len(DAYS) - 1 - left) + [AlreadyCompleted] * (left + 1)

    again = process(MORTAL, "none", ledger=book.path)
    said = again.communicate()
    assert again.returncode == 0, said
    assert f"{left} windows, {left} runs" in said[0]
    assert below(book, "duly_run") == below(book, "duly_attempt") == 0
    assert [day[:10] for day, _ in book.runs()] == [KEPT]


def test_who_comes_late_while_it_goes_on_is_given_nothing_again(book: Book) -> None:
    late = [process(LATE, book.path, *days, ledger=book.path) for days in (DAYS, DAYS[::-1])]
    pruning = process(MORTAL, "none", ledger=book.path)

    said = [each.communicate() for each in (*late, pruning)]

    assert [each.returncode for each in (*late, pruning)] == [0, 0, 0], said
    answers = [line.split() for out, _ in said[:2] for line in out.splitlines()]
    assert len(answers) == 2 * 4 * len(DAYS)
    assert {answer for answer, _ in answers} <= {"AlreadyCompleted", "refused"}
    assert {answer for answer, day in answers if day == KEPT} == {"AlreadyCompleted"}
    assert below(book, "duly_run") == 0
    assert book.runs() == [(f"{KEPT}T00:00:00", "completed")]
