"""Tracing: a span for each attempt, where the process traces already.

Nobody need ask duly for it: who traces has imported the API of OpenTelemetry and given it a provider (an application at its
start, or `opentelemetry-instrument duly …`), and then duly speaks to that one. Where nobody has, nothing is imported here
either; `is_on` is a look into a dictionary.

An attempt's id is made of chance, and is as long as the id of a trace: the span of an attempt that nobody called has it for
its trace, and the last half of it for itself, where the provider makes ids by `AttemptIds`. So a retry can link to the
attempt before it, on whichever host that was, without a word about traces in the ledger.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from contextvars import ContextVar
from random import getrandbits
from typing import TYPE_CHECKING

from duly.ledger import states
from duly.ledger.ask import Statement, one
from duly.ledger.take import run_parameters
from duly.times import instant_text
from duly.work.identity import uuid_text

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

    from duly.ledger.records import Claim, Run
    from duly.schedule.keys import RunKey
    from duly.work.told import Account

REMEMBERED = 1_000  # spans of attempts that this process made, for the links of their retries

EARLIER_ATTEMPT = Statement(
    "earlier_attempt",
    """
select attempt_id
  from duly_attempt
 where series = :series and nominal = :nominal and revision = :revision and number < :number
 order by number desc limit 1
""",
)

_beginning: ContextVar[bytes | None] = ContextVar("duly_attempt", default=None)
_remembered: OrderedDict[bytes, SpanContext] = OrderedDict()


def is_on() -> bool:
    """Whether anything in this process has to do with OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


async def earlier_attempt(claim: Claim) -> bytes | None:
    """The id of the attempt before this one that has ended, of the same run."""
    return await one(EARLIER_ATTEMPT, bytes, **run_parameters(claim.run), number=claim.number)


class AttemptIds:
    """Makes ids of spans and traces for a provider of the SDK: `TracerProvider(id_generator=AttemptIds())`.

    Those of an attempt are made of its id; all others of chance.
    """

    def generate_trace_id(self) -> int:
        """An id of 128 bits, never nought."""
        attempt = _beginning.get()
        return int.from_bytes(attempt, "big") if attempt is not None else getrandbits(128) or 1

    def generate_span_id(self) -> int:
        """An id of 64 bits, never nought."""
        attempt = _beginning.get()
        return int.from_bytes(attempt[8:], "big") if attempt is not None else getrandbits(64) or 1

    def is_trace_id_random(self) -> bool:
        """Whether the last 56 bits of a trace's id are of chance (W3C Trace Context, level 2): of an attempt's they are."""
        return True


class AttemptSpan:
    """The span of one attempt: begun and made the current one here, until `leave`; it ends with its account."""

    def __init__(self, key: RunKey, claim: Claim, row: Run, *, called_by: str = "", executable: str = "") -> None:
        """`called_by` is a traceparent, for a process in which nobody has called."""
        from opentelemetry import context, trace

        parent = _context_of(called_by)
        self._parent = trace.get_current_span(parent).get_span_context()
        attributes: dict[str, str | int] = {
            "duly.run": str(key),
            "duly.job": key.job,
            "duly.scope": key.scope,
            "duly.attempt.number": claim.number,
            "duly.attempt.id": uuid_text(claim.attempt_id),
            "duly.trigger": claim.trigger,
            "duly.contract": claim.contract,
        }
        if row.window_start is not None and row.window_end is not None:
            attributes["duly.window.start"] = instant_text(row.window_start)
            attributes["duly.window.end"] = instant_text(row.window_end)
        if executable:
            attributes["process.executable.name"] = executable
        token = _beginning.set(claim.attempt_id)
        try:
            self._span = trace.get_tracer("duly").start_span(f"duly {key.job}", context=parent, attributes=attributes)
        finally:
            _beginning.reset(token)
        self._token = context.attach(trace.set_span_in_context(self._span))
        self._is_current = True
        made = self._span.get_span_context()
        if made.is_valid:
            _remembered[claim.attempt_id] = made
            if len(_remembered) > REMEMBERED:
                _remembered.popitem(last=False)

    @property
    def traceparent(self) -> str:
        """The span as a child process is told of it (W3C Trace Context); empty where no provider made one."""
        made = self._span.get_span_context()
        if not made.is_valid or made == self._parent:
            return ""
        return f"00-{made.trace_id:032x}-{made.span_id:016x}-{made.trace_flags:02x}"

    def link_to(self, earlier: bytes | None) -> None:
        """Link to the attempt before, if there was one."""
        if earlier is not None:
            self._span.add_link(_context_of_attempt(earlier), {"duly.attempt.id": uuid_text(earlier)})

    def leave(self) -> None:
        """Be the current span no more; again is a no-op."""
        if self._is_current:
            from opentelemetry import context

            self._is_current = False
            context.detach(self._token)

    def end(self, told: Account, error_type: str = "") -> None:
        """End it with what the attempt came to. Of an error the type is kept, and no word of its message."""
        from opentelemetry.trace import StatusCode

        self.leave()
        self._span.set_attribute("duly.outcome", told.outcome)
        self._span.set_attribute("duly.state", told.state)
        self._span.set_attribute("duly.messages", told.messages)
        if told.exit_code is not None and told.state != states.OPEN:
            self._span.set_attribute("process.exit.code", told.exit_code)
        if not told.is_good:
            self._span.set_attribute("duly.cause", told.cause)
            self._span.set_attribute("error.type", error_type or told.outcome)
            self._span.set_status(StatusCode.ERROR, told.cause)
        self._span.end()

    def drop(self, why: str) -> None:
        """End it where the attempt was none: nothing of it is on record."""
        self.leave()
        self._span.set_attribute("duly.cause", why)
        self._span.end()


def _context_of(traceparent: str) -> Context | None:
    """The context of a caller outside this process; None, which is the current one, where a span is current, or nobody is."""
    from opentelemetry import trace

    if not traceparent or trace.get_current_span().get_span_context().is_valid:
        return None
    _, trace_id, span_id, flags = traceparent.split("-")[:4]
    called_by = trace.SpanContext(int(trace_id, 16), int(span_id, 16), True, trace.TraceFlags(int(flags, 16)))
    return trace.set_span_in_context(trace.NonRecordingSpan(called_by))


def _context_of_attempt(attempt: bytes) -> SpanContext:
    """The span of an attempt: as this process made it, else as its id says."""
    from opentelemetry import trace

    return _remembered.get(attempt) or trace.SpanContext(
        int.from_bytes(attempt, "big"), int.from_bytes(attempt[8:], "big"), True, trace.TraceFlags(1)
    )
