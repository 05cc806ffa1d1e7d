"""The log: one line for each attempt with the same fields whoever worked it, and nothing where nobody listens."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import sqlite3
import sys
from contextlib import suppress
from typing import Any

import pytest

import duly
import duly.aio
from duly.work.log import LOGGER, Lines
from duly.work.told import Account, as_json, as_logfmt
from tests.work.bank import Bank, Worker, add_ten

Run = duly.Run[sqlite3.Connection]
SECRET = "hunter2"


def accounts(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["duly"] for record in caplog.records if record.name == "duly"]


def test_a_completed_attempt_has_one_line_with_every_field(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "duly")
    ids: list[str] = []
    bank.ledger.destination("crm")

    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, scopes=["acme"])
    def credit(run: Run) -> None:
        add_ten(run.tx)
        run.send("crm", "10")
        ids.append(run.attempt_id)

    credit.catch_up()

    (told,) = accounts(caplog)
    assert list(told) == list(Account.__match_args__)
    took = told.pop("duration_seconds")
    assert 0 < took < 60
    assert told == {
        "event": "attempt",
        "run": "acme/credit:2026-09-14[UTC]",
        "job": "credit",
        "scope": "acme",
        "window": "2026-09-14",
        "attempt": 1,
        "attempt_id": ids[0],
        "trigger": "catch-up",
        "outcome": "completed",
        "state": "completed",
        "cause": "",
        "exit_code": None,
        "messages": 1,
    }
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("acme/credit:2026-09-14[UTC] attempt 1 completed, ")
    assert record.getMessage().endswith(ids[0])


def test_a_failure_is_a_warning_with_its_type_and_none_of_its_words(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    """The library configures nothing, and so its warnings are there where an application did not ask for more either."""

    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: Run) -> None:
        raise KeyError(SECRET)

    with pytest.raises(ExceptionGroup):
        credit.catch_up()

    (told,) = accounts(caplog)
    assert (told["outcome"], told["state"], told["cause"]) == ("failed", "failed", "KeyError")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is None
    assert SECRET not in caplog.text + str(told)


@pytest.mark.parametrize(("contract", "state"), [("external", "unknown"), ("transactional", "failed")])
def test_what_a_failure_leaves_is_the_contracts_word(
    bank: Bank, caplog: pytest.LogCaptureFixture, contract: str, state: str
) -> None:
    @bank.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH, effect=contract, retries=0)
    def push(run: Run) -> None:
        bank.cancel("2026-09-14", job="push")
        run._cancel()
        raise TimeoutError

    with pytest.raises(ExceptionGroup):
        push.catch_up()

    (told,) = accounts(caplog)
    assert (told["state"], told["outcome"]) == (state, "unknown" if state == "unknown" else "cancelled")


def test_of_a_claim_that_was_lost_it_is_said_that_another_has_it(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, lease="1m")
    def credit(run: Run) -> None:
        if run.attempt == 1:
            bank.amend("update duly_run set fence = 2, attempt_id = x'00112233445566778899aabbccddeeff'")

    with pytest.raises(ExceptionGroup):
        credit.catch_up()

    (told,) = accounts(caplog)
    assert (told["state"], told["outcome"]) == ("running", "lost")


def test_the_runs_of_a_group_have_a_line_each_once_they_are_committed(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "duly")
    fail_once = [True]

    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True, group=10)
    def credit(run: Run) -> None:
        add_ten(run.tx)
        if run.window.start.day == 16 and fail_once and fail_once.pop():
            raise RuntimeError

    credit.catch_up()
    bank.clock.advance("3d")
    with suppress(ExceptionGroup):
        credit.catch_up()

    assert [told["window"] for told in accounts(caplog)] == ["2026-09-14", "2026-09-15", "2026-09-16", "2026-09-17"]
    assert {told["outcome"] for told in accounts(caplog)} == {"completed"}


def test_an_async_job_has_the_same_lines(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "duly")

    async def story() -> None:
        async with duly.aio.sqlite(bank.path) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[Any]) -> None:
                if run.window.start.day == 15:
                    raise KeyError(SECRET)

            await credit.catch_up()
            bank.clock.advance("1d")
            with pytest.raises(ExceptionGroup):
                await credit.catch_up()

    asyncio.run(story())

    first, second = accounts(caplog)
    assert (first["run"], first["outcome"]) == ("credit:2026-09-14[UTC]", "completed")
    assert (second["run"], second["outcome"], second["cause"]) == ("credit:2026-09-15[UTC]", "failed", "KeyError")
    assert SECRET not in caplog.text


def test_without_a_handler_of_the_applications_nothing_is_printed(bank: Bank) -> None:
    """Not even a warning, by the handler of last resort."""
    worker = Worker(
        bank,
        """
import duly, sys
ledger = duly.sqlite(sys.argv[1])
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    raise KeyError("hunter2")
try:
    credit.catch_up()
except ExceptionGroup:
    pass
import logging
print(logging.getLogger().handlers, [type(one).__name__ for one in logging.getLogger("duly").handlers])
""",
    )
    out, err = worker.process.communicate(timeout=60)

    assert (out.splitlines()[-1], err) == ("[] ['NullHandler']", "")


# -- forms --------------------------------------------------------------------------------------------------------------


def record_of(**fields: Any) -> logging.LogRecord:
    record = logging.LogRecord("duly", logging.INFO, "", 0, "in %s", ("words",), None)
    record.created = 1_793_059_200.25
    if fields:
        record.duly = fields
    return record


def test_each_form_says_the_same_on_one_line() -> None:
    record = record_of(event="attempt", run="a:2026[UTC]", cause='exit 3, "no"\nway', exit_code=None, scope="")

    assert Lines("text").format(record) == "in words"
    assert json.loads(Lines("json").format(record)) == {
        "time": "2026-10-27T00:00:00.250Z",
        "level": "info",
        "event": "attempt",
        "run": "a:2026[UTC]",
        "cause": 'exit 3, "no"\nway',
        "exit_code": None,
        "scope": "",
    }
    assert Lines("logfmt").format(record) == (
        r'time=2026-10-27T00:00:00.250Z level=info event=attempt run=a:2026[UTC] cause="exit 3, \"no\"\nway" scope=""'
    )


@pytest.mark.parametrize("form", ["json", "logfmt"])
def test_no_field_can_begin_another_line_or_another_field(form: str) -> None:
    said = {"json": as_json, "logfmt": as_logfmt}[form]({"cause": "x state=completed\nevent=attempt\u2028\x1b[2J"})

    assert len(said.splitlines()) == 1 or form == "json"
    assert "\n" not in said
    assert "\x1b" not in said
    if form == "logfmt":
        assert len(shlex.split(said)) == 1


def test_what_has_no_fields_is_a_note() -> None:
    assert json.loads(Lines("json").format(record_of()))["event"] == "note"
    assert json.loads(Lines("json").format(record_of()))["message"] == "in words"


def test_nothing_is_put_together_where_nobody_listens(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not LOGGER.isEnabledFor(logging.INFO)
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)  # of a test that traces
    monkeypatch.setattr("duly.work.telling.account", None)  # it would raise

    bank.daily_credit().catch_up()

    assert bank.units == 10
