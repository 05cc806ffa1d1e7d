"""Tracing: a span for each attempt where the process traces already, links between attempts, and the context of children.

The provider is a real one, with the exporter of the SDK that keeps spans in memory.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import duly
import duly.aio
from duly.ledger.register import Declaration
from duly.work import job as job_of_work
from duly.work import tracing
from duly.work.daemon.commands import Ears
from duly.work.poke import Order, Poke
from tests.work.bank import SOURCE, Bank, add_ten

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Run = duly.Run[sqlite3.Connection]
SECRET = "hunter2"


class Ids:
    """Makes ids as another generator does, which may be changed: a provider keeps the one that it was given."""

    def __init__(self) -> None:
        self.by: Any = tracing.AttemptIds()

    def generate_trace_id(self) -> int:
        return int(self.by.generate_trace_id())

    def generate_span_id(self) -> int:
        return int(self.by.generate_span_id())

    def is_trace_id_random(self) -> bool:
        return True


class Traces:
    """What was traced."""

    def __init__(self, ids: Ids, exporter: InMemorySpanExporter) -> None:
        self.ids = ids
        self.exporter = exporter

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in that order."""
        return list(self.exporter.get_finished_spans())

    def attempts(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith("duly ")]


@pytest.fixture(scope="session")
def provided() -> Traces:
    """The one provider of this process: there can be no other."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    ids, exporter = Ids(), InMemorySpanExporter()
    provider = TracerProvider(id_generator=ids)  # type: ignore[arg-type]  # it has all that one needs
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return Traces(ids, exporter)


@pytest.fixture(params=["ids of attempts", "ids of chance"])
def traces(request: pytest.FixtureRequest, provided: Traces) -> Iterator[Traces]:
    """With the provider's ids made of attempts, and as they are made elsewhere."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    provided.ids.by = tracing.AttemptIds() if request.param == "ids of attempts" else RandomIdGenerator()
    tracing._remembered.clear()
    yield provided
    provided.exporter.clear()


@pytest.fixture
def by_attempt(provided: Traces) -> Iterator[Traces]:
    provided.ids.by = tracing.AttemptIds()
    tracing._remembered.clear()
    yield provided
    provided.exporter.clear()


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_an_attempt_is_a_span_with_what_its_function_does_inside(traces: Traces, bank: Bank) -> None:
    from opentelemetry import trace

    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: Run) -> None:
        with trace.get_tracer("shop").start_as_current_span("ask the provider"):
            add_ten(run.tx)

    credit.catch_up()

    inner, attempt = traces.spans
    assert (attempt.name, inner.parent) == ("duly credit", attempt.context)
    assert attempt.parent is None
    assert attempt.status.is_ok
    said = about(attempt)
    assert len(said.pop("duly.attempt.id")) == 36
    assert said == {
        "duly.run": "credit:2026-09-14[UTC]",
        "duly.job": "credit",
        "duly.scope": "",
        "duly.attempt.number": 1,
        "duly.trigger": "catch-up",
        "duly.contract": "transactional",
        "duly.window.start": "2026-09-14T00:00:00Z",
        "duly.window.end": "2026-09-15T00:00:00Z",
        "duly.outcome": "completed",
        "duly.state": "completed",
        "duly.messages": 0,
    }
    assert not trace.get_current_span().get_span_context().is_valid, "it is the current span no more"


def test_a_failure_has_its_type_and_none_of_its_words(traces: Traces, bank: Bank) -> None:
    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: Run) -> None:
        raise KeyError(SECRET)

    with pytest.raises(ExceptionGroup):
        credit.catch_up()

    (attempt,) = traces.spans
    assert not attempt.status.is_ok
    assert about(attempt)["error.type"] == "KeyError"
    assert about(attempt)["duly.outcome"] == "failed"
    assert SECRET not in attempt.to_json()


def failing_first(bank: Bank) -> duly.Job[sqlite3.Connection]:
    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay="1m")
    def credit(run: Run) -> None:
        if run.attempt == 1:
            raise TimeoutError

    with suppress(ExceptionGroup):
        credit.catch_up()
    bank.clock.advance("1h")
    return credit


def test_a_retry_links_to_the_attempt_before_it(traces: Traces, bank: Bank) -> None:
    failing_first(bank).catch_up()

    first, second = traces.spans
    (link,) = second.links
    assert first.context is not None
    assert (link.context.trace_id, link.context.span_id) == (first.context.trace_id, first.context.span_id)
    assert dict(link.attributes or {})["duly.attempt.id"] == about(first)["duly.attempt.id"]


def test_where_ids_are_of_attempts_a_link_needs_no_memory(by_attempt: Traces, bank: Bank) -> None:
    """The retry may be on another host, a day later."""
    credit = failing_first(bank)
    tracing._remembered.clear()

    credit.catch_up()

    first, second = by_attempt.spans
    (link,) = second.links
    assert first.context is not None
    assert f"{first.context.trace_id:032x}" == about(first)["duly.attempt.id"].replace("-", "")
    assert (link.context.trace_id, link.context.span_id) == (first.context.trace_id, first.context.span_id)


def test_under_a_span_of_the_callers_an_attempt_is_its_child(traces: Traces, bank: Bank) -> None:
    from opentelemetry import trace

    credit = bank.daily_credit()
    with trace.get_tracer("shop").start_as_current_span("a request"):
        credit.run("2026-09-14")

    attempt, request = traces.spans
    assert attempt.parent == request.context


def test_the_runs_of_a_group_are_spans_beside_each_other(
    traces: Traces, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_of_work, "GROUP_SECONDS", 60.0)

    @bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True, group=10)
    def credit(run: Run) -> None:
        if run.window.start.day == 16 and not dropped():
            raise RuntimeError

    def dropped() -> bool:
        return any("duly.outcome" not in about(span) for span in traces.spans)

    credit.catch_up()
    bank.clock.advance("3d")
    with suppress(ExceptionGroup):
        credit.catch_up()
    again = traces.attempts()
    credit.catch_up()

    assert [about(span)["duly.run"] for span in again if about(span).get("duly.outcome") is None] == [
        "credit:2026-09-15[UTC]",
        "credit:2026-09-16[UTC]",
    ]  # the group that came to nothing
    done = [about(span)["duly.run"] for span in traces.attempts() if about(span).get("duly.outcome") == "completed"]
    assert done == [f"credit:2026-09-{day}[UTC]" for day in (14, 15, 16, 17)]
    assert all(span.parent is None for span in traces.attempts())


def test_an_async_job_is_traced_as_any_other(traces: Traces, bank: Bank) -> None:
    from opentelemetry import trace

    async def story() -> None:
        async with duly.aio.sqlite(bank.path) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay="1m")
            async def credit(run: duly.aio.Run[Any]) -> None:
                with trace.get_tracer("shop").start_as_current_span("inner"):
                    await asyncio.sleep(0)
                if run.attempt == 1:
                    raise KeyError(SECRET)

            with pytest.raises(ExceptionGroup):
                await credit.catch_up()
            bank.clock.advance("1h")
            await credit.catch_up()

    asyncio.run(story())

    inner, first, _, second = traces.spans
    assert inner.parent == first.context
    assert (about(first)["error.type"], about(second)["duly.outcome"]) == ("KeyError", "completed")
    assert [link.context.span_id for link in second.links] == [first.context.span_id if first.context else 0]
    assert SECRET not in first.to_json()


# -- commands -----------------------------------------------------------------------------------------------------------

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def poked(bank: Bank, *argv: str, environ: dict[str, str] | None = None) -> None:
    """What exec and a daemon do with a command, in this process."""
    ears = Ears(bank.store)
    declared = Declaration("close", "", duly.daily("UTC"), {"catch_up": "each", "contract": "external"}, "dev")
    order = Order(list(argv), {"PATH": os.environ["PATH"], **(environ or {})}, "exec")
    try:
        Poke(bank.store, declared, order, ears, lambda _: None).work_owed()
    finally:
        ears.close()


def test_a_command_is_told_of_the_span_of_its_attempt(traces: Traces, bank: Bank) -> None:
    told = f"{bank.path}.told"
    poked(bank, "/bin/sh", "-c", f'printf %s "$TRACEPARENT" > "{told}"; exit 3')

    (attempt,) = traces.spans
    assert attempt.context is not None
    span = f"{attempt.context.trace_id:032x}-{attempt.context.span_id:016x}"
    with open(told) as file:
        assert file.read() == f"00-{span}-{attempt.context.trace_flags:02x}"
    said = about(attempt)
    assert (said["process.exit.code"], said["process.executable.name"]) == (3, "sh")
    assert (said["duly.outcome"], said["duly.cause"], attempt.status.is_ok) == ("failed", "exit 3", False)
    assert "printf" not in attempt.to_json()  # arguments may hold secrets


def test_who_called_the_command_line_is_its_parent(traces: Traces, bank: Bank) -> None:
    poked(bank, "true", environ={"TRACEPARENT": CALLER})

    (attempt,) = traces.spans
    assert attempt.parent is not None
    assert attempt.context is not None
    assert f"00-{attempt.context.trace_id:032x}-{attempt.parent.span_id:016x}-01" == CALLER
    assert attempt.parent.is_remote


def test_a_caller_that_is_none_is_nobody(traces: Traces, bank: Bank) -> None:
    poked(bank, "true", environ={"TRACEPARENT": "00-nonsense"})

    (attempt,) = traces.spans
    assert attempt.parent is None


# -- where nobody traces ------------------------------------------------------------------------------------------------


def test_nothing_is_imported_where_nobody_traces(bank: Bank) -> None:
    script = """
import sys, duly
ledger = duly.sqlite(sys.argv[1])
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    pass
credit.catch_up()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run(
        [sys.executable, "-W", "error", "-c", script, bank.path],
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=True,
        timeout=60,
    )

    assert bank.completed == 1


def test_an_api_without_a_provider_costs_no_context(bank: Bank) -> None:
    """A library brought the API along, and nobody records: children are told what they were told before."""
    script = """
import sys, os, opentelemetry.trace
from duly.cli import main
told = 'test "$TRACEPARENT" = "00-0af7651916cd43dd8448eb211c80319c-$(echo $DULY_ATTEMPT_ID | tr -d - | tail -c 17)-01"'
flags = ["--period", "daily", "--zone", "UTC", "--ledger", sys.argv[1]]
sys.exit(main(["exec", "close", *flags, "--", "sh", "-c", told]))
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, bank.path],
        env={**os.environ, "PYTHONPATH": SOURCE, "TRACEPARENT": CALLER},
        timeout=60,
        check=False,
    )

    assert ended.returncode == 0
