"""run.publish in an event loop: a file that stands once its run is complete."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import duly
import duly.aio
from duly.errors import Misuse
from duly.ledger.output import Intent, record_output_or_raise
from tests.aio.till import Till, add_ten, job
from tests.books import LATE

Ledger = duly.aio.Ledger[Any]
Run = duly.aio.Run[Any]

DAY, KEY = "2026-09-14", "credit:2026-09-14[UTC]"


@pytest.fixture
def final(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    folder.mkdir()
    return folder / "report.csv"


def test_the_file_is_there_with_the_completion(till: Till, final: Path) -> None:
    async def publishes(run: Run) -> None:
        await add_ten(run)
        (await run.publish(final)).write_text("whole")
        assert not final.exists()

    async def story(ledger: Ledger) -> object:
        return await job(ledger, publishes).run(DAY)

    assert till.play(story) == duly.Completed(KEY, 1)
    assert (final.read_text(), os.listdir(final.parent), till.units) == ("whole", ["report.csv"], 10)


@pytest.mark.parametrize("error", [ConnectionError, asyncio.CancelledError])
def test_an_attempt_that_ends_otherwise_leaves_no_file(till: Till, final: Path, error: type[BaseException]) -> None:
    async def breaks(run: Run) -> None:
        (await run.publish(final)).write_text("half")
        raise error

    async def story(ledger: Ledger) -> object:
        with pytest.raises(error):
            await job(ledger, breaks).run(DAY)
        return None

    till.play(story)

    assert os.listdir(final.parent) == []


def killed_after_the_link(till: Till, final: Path, **settings: Any) -> None:
    """What is left of an attempt that was killed between link and commit, its file being all of it."""

    async def left(ledger: Ledger) -> None:
        async def nothing(run: Run) -> None:
            intent = Intent(str(final), 5, sha256(b"whole").hexdigest())
            await ledger._store.write(record_output_or_raise(run._claim, intent))
            final.write_text("whole")
            os._exit(9)

        await job(ledger, nothing, **settings).run(DAY)

    child = os.fork()
    if child == 0:
        try:
            till.play(left)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    till.book.clock.advance(LATE)


@pytest.mark.parametrize("settings", [{"retries": 9, "retry_delay": 0}, {"effect": "external"}])
@pytest.mark.parametrize("how", ["run", "take", "catch_up"])
def test_killed_between_link_and_commit_nothing_is_called_again(
    till: Till, final: Path, settings: dict[str, Any], how: str
) -> None:
    killed_after_the_link(till, final, **settings)

    async def story(ledger: Ledger) -> object:
        async def again(run: Run) -> None:
            if run.key == KEY:
                raise AssertionError("it was called again")

        credit = job(ledger, again, **settings)
        if how == "run":
            return await credit.run(DAY)
        if how == "take":
            return await ledger.take("credit", DAY)
        return await credit.catch_up()

    said = till.play(story)

    if how == "catch_up":
        assert isinstance(said, list)
    else:
        assert isinstance(said, (duly.Completed, duly.AlreadyCompleted))
    assert final.read_text() == "whole"
    ((state,),) = till.book.rows("select state from duly_run where nominal = (select min(nominal) from duly_run)")
    assert state == "completed"


def test_inline_runs_are_refused(till: Till, final: Path) -> None:
    async def publishes(run: Run) -> None:
        await run.publish(final)

    async def story(ledger: Ledger) -> object:
        with pytest.raises(Misuse, match="inline"):
            await job(ledger, publishes, inline=True).run(DAY)
        return None

    till.play(story)


def test_what_is_there_is_not_overwritten(till: Till, final: Path) -> None:
    final.write_text("precious")

    async def publishes(run: Run) -> None:
        await run.publish(final)

    async def story(ledger: Ledger) -> object:
        with pytest.raises(duly.OutputRefused, match="replace=True"):
            await job(ledger, publishes).run(DAY)
        return None

    till.play(story)

    assert final.read_text() == "precious"


def test_a_second_attempt_publishes_while_its_transaction_is_open(till: Till, final: Path) -> None:
    calls: list[int] = []

    async def publishes(run: Run) -> None:
        calls.append(run.attempt)
        await add_ten(run)
        (await run.publish(final)).write_text("whole")
        if run.attempt == 1:
            raise ConnectionError

    async def story(ledger: Ledger) -> object:
        credit = job(ledger, publishes, retries=9, retry_delay=0)
        with pytest.raises(ConnectionError):
            await credit.run(DAY)
        return await credit.run(DAY)

    assert till.play(story) == duly.Completed(KEY, 2)
    assert (calls, till.units, os.listdir(final.parent)) == ([1, 2], 10, ["report.csv"])


def test_a_completion_that_is_cancelled_meanwhile_has_its_file(till: Till, final: Path) -> None:
    async def publishes(run: Run) -> None:
        (await run.publish(final)).write_text("whole")
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)

    async def story(ledger: Ledger) -> object:
        credit = job(ledger, publishes)
        with pytest.raises(asyncio.CancelledError):
            await credit.run(DAY)
        return await credit.run(DAY)

    assert isinstance(till.play(story), duly.AlreadyCompleted)
    assert os.listdir(final.parent) == ["report.csv"]
