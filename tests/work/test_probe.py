"""Probes of Python jobs: whoever comes for the job asks first what became of the runs whose outcome is unknown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

import duly
import duly.aio
from duly.errors import Misuse
from duly.ledger.records import Claim
from duly.times import MINUTE
from tests.books import LATE
from tests.work.bank import Bank

KEY = "charge:2026-09-14[UTC]"


def charge(bank: Bank, probe: Any, calls: list[str], **settings: Any) -> duly.Job[Any]:
    """A job that charges a provider, and a probe that asks it."""
    settings = {"catch_up": duly.EACH, "effect": "external", **settings}

    @bank.ledger.job("charge", duly.daily("UTC"), probe=probe, **settings)
    def charge(run: duly.Run[Any]) -> None:
        calls.append(run.key)

    return charge


def vanish(bank: Bank, window: str = "2026-09-14") -> Claim:
    """An attempt that is gone, and that everybody knows to be gone, for long enough."""
    bank.job("charge", contract="external")
    claim = bank.take(window, job="charge")
    bank.clock.advance(LATE)
    bank.ask(window, job="charge")
    bank.clock.advance(MINUTE)
    return claim


def told(finding: Any, doubts: list[duly.Doubt]) -> Callable[[duly.Doubt], object]:
    def probe(doubt: duly.Doubt) -> object:
        doubts.append(doubt)
        if isinstance(finding, Exception):
            raise finding
        return finding

    return probe


def test_a_run_that_happened_is_complete_and_is_not_worked_again(bank: Bank) -> None:
    vanish(bank)
    calls: list[str] = []
    doubts: list[duly.Doubt] = []
    job = charge(bank, told(duly.Happened("charge 4711"), doubts), calls)

    assert job.run("2026-09-14") == duly.AlreadyCompleted(KEY, 1, datetime(2026, 9, 15, 3, 3, tzinfo=UTC))

    (doubt,) = doubts
    assert (doubt.key, doubt.job, doubt.attempt, doubt.cause) == (KEY, "charge", 1, "its attempt vanished")
    assert (doubt.date, doubt.began) == (date(2026, 9, 14), datetime(2026, 9, 15, 3, tzinfo=UTC))
    assert (doubt.window.start, len(doubt.idempotency_key)) == (datetime(2026, 9, 14, tzinfo=UTC), 36)
    assert calls == []


def test_a_run_that_did_not_happen_is_worked_by_the_same_call_where_it_is_believed(bank: Bank) -> None:
    vanish(bank)
    calls: list[str] = []
    believed = duly.Probe(lambda doubt: duly.DidNot("no charge"), after="1m", reads_own_writes=True)

    assert charge(bank, believed, calls).run("2026-09-14") == duly.Completed(KEY, 2)

    assert calls == [KEY]


def test_a_run_that_did_not_happen_is_left_alone_until_it_was_said_twice(bank: Bank) -> None:
    vanish(bank)
    calls: list[str] = []
    job = charge(bank, lambda doubt: duly.DidNot("no charge"), calls)

    assert job.catch_up() == []
    with pytest.raises(duly.OutcomeUnknown):
        job.run("2026-09-14")
    bank.clock.advance("1m")

    assert job.catch_up() == [duly.Completed(KEY, 2)]


def test_catching_up_asks_about_each_run_in_doubt_and_works_the_others(bank: Bank) -> None:
    bank.clock.set("2026-09-16T03:00:00Z")
    vanish(bank)
    calls: list[str] = []
    job = charge(bank, lambda doubt: duly.Happened("charge 4711"), calls)

    assert job.catch_up() == [duly.Completed("charge:2026-09-15[UTC]", 1)]

    assert bank.runs("charge") == [(f"2026-09-{day}T00:00:00", "completed") for day in (14, 15)]


SECRET = "hunter2"


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError(SECRET)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (None, "it cannot be told: the probe answered neither Happened nor DidNot, but a NoneType"),
        (True, "it cannot be told: the probe answered neither Happened nor DidNot, but a bool"),
        (ValueError(SECRET), "it cannot be told: the probe raised ValueError"),
        (duly.CannotTell("no\nanswer"), "it cannot be told: no answer"),
        (duly.Happened(Unspeakable()), "it cannot be told: the probe raised ValueError"),  # type: ignore[arg-type]
    ],
)
def test_whatever_else_a_function_answers_tells_nothing(bank: Bank, finding: object, said: str) -> None:
    claim = vanish(bank)
    job = charge(bank, told(finding, []), [])

    (probed,) = job.ask_probe()

    assert (probed.run, probed.state, probed.said) == (KEY, "unknown", said)
    assert bank.state(claim.run) == "unknown"
    assert job.ask_probe() == []  # not again at once
    assert SECRET not in str(bank.everything())


def test_a_probe_is_not_asked_about_another_job_or_scope(bank: Bank) -> None:
    vanish(bank)
    other = bank.ledger.job(
        "refund", duly.daily("UTC"), catch_up=duly.EACH, effect="external", probe=lambda doubt: duly.Happened("x")
    )(lambda run: None)

    assert other.ask_probe() == []
    assert charge(bank, lambda doubt: duly.Happened("x"), []).ask_probe(scope="acme") == []


def test_a_job_in_an_event_loop_may_await_its_probe(bank: Bank) -> None:
    vanish(bank)
    asked: list[str] = []

    async def probe(doubt: duly.Doubt) -> object:
        await asyncio.sleep(0)
        asked.append(doubt.key)
        return duly.DidNot("no charge")

    async def story() -> None:
        async with duly.aio.sqlite(bank.path) as ledger:

            @ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external", probe=probe)
            async def charge(run: duly.aio.Run[Any]) -> None:
                asked.append("worked")

            assert await charge.catch_up() == []
            bank.clock.advance("1m")
            assert await charge.run("2026-09-14") == duly.Completed(KEY, 2)

    asyncio.run(story())
    assert asked == [KEY, KEY, "worked"]


def test_a_plain_function_does_not_hold_the_loop_up(bank: Bank) -> None:
    vanish(bank)
    answers = threading.Event()

    def probe(doubt: duly.Doubt) -> object:
        assert answers.wait(20)  # set by the loop
        return duly.Happened("charge 4711")

    async def story() -> list[str]:
        async with duly.aio.sqlite(bank.path) as ledger:

            @ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external", probe=probe)
            async def charge(run: duly.aio.Run[Any]) -> None: ...

            asking = asyncio.ensure_future(charge.ask_probe())
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(answers.set)
            return [probed.state for probed in await asking]

    assert asyncio.run(story()) == ["completed"]


async def _async(doubt: duly.Doubt) -> None: ...


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"effect": "transactional"}, "charge is transactional"),
        ({"probe": "./did-it.sh"}, "cannot be called"),
        ({"probe": _async}, "would be awaited by nobody"),
    ],
)
def test_a_probe_that_could_say_nothing_is_refused_where_it_is_declared(
    bank: Bank, settings: dict[str, Any], why: str
) -> None:
    probe = settings.pop("probe", lambda doubt: None)

    with pytest.raises(Misuse, match=why):
        charge(bank, probe, [], **settings)


@pytest.mark.parametrize("after", ["0s", "400d"])
def test_when_a_probe_is_asked_lies_between_a_moment_and_a_year(after: str) -> None:
    with pytest.raises(Misuse, match=r"after|duration"):
        duly.Probe(lambda doubt: None, after=after)
