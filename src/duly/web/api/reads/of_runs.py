"""Of runs: those that have a row, those of which nobody knows what became of them, and one: its history, why, its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import UnknownRun
from duly.evidence.batches import runs_after, unknowns_after
from duly.evidence.documents.explanation import explanation_as_json
from duly.evidence.documents.history import run_as_json
from duly.evidence.documents.message import sent_as_json
from duly.evidence.documents.window import as_json, iso
from duly.evidence.explain import explain
from duly.evidence.explain_words import sentences
from duly.evidence.runs import history
from duly.evidence.shown import when, zone_of
from duly.evidence.verdict import window_of
from duly.ledger import states
from duly.ledger.address import by_key
from duly.ledger.ask import now
from duly.ledger.messages import attempts_at_message, messages_of
from duly.schedule.keys import parse_key
from duly.web.api.read import Found, Read, listed
from duly.web.api.reads.of_lines import OF_JOB, OF_SCOPE, named
from duly.web.api.values import Parameter, place, place_of, words

if TYPE_CHECKING:
    from duly.evidence.verdict import Window
    from duly.ledger.address import Addressed
    from duly.web.api.read import Wanted


async def _runs(wanted: Wanted) -> Found:
    instant, (name, scope) = await now(), await named(wanted)
    found, after = await runs_after(wanted.after, name, scope, state=wanted.text("state"), limit=wanted.limit)
    return _list(instant, found, after)


async def _unknowns(wanted: Wanted) -> Found:
    instant, (name, scope) = await now(), await named(wanted)
    found, after = await unknowns_after(wanted.after, name, scope, limit=wanted.limit)
    return _list(instant, found, after)


def _list(instant: int, found: list[Window], after: tuple[int, ...] | None) -> Found:
    return Found({"as_of": iso(instant), "runs": [as_json(window) for window in found]}, place_of(after))


async def addressed(wanted: Wanted) -> Addressed:
    """The run of the key in a path, also by a former name of its job."""
    return await by_key(parse_key(wanted.path["key"]))


async def _run(wanted: Wanted) -> Found:
    found = await addressed(wanted)
    if found.row is None:
        raise UnknownRun(f"{found.key} has no row in the ledger: it was never opened; explain tells of it")
    return Found(run_as_json(await window_of(found, await now()), await history(found)))


async def _explanation(wanted: Wanted) -> Found:
    told = await explain(await addressed(wanted))
    zone, instant = zone_of(told.window), told.as_of
    facts = explanation_as_json(told, None)
    facts["sentences"] = [*sentences(told, lambda at: when(at, zone, time="local", now=instant))]
    return Found(facts)


async def _messages(wanted: Wanted) -> Found:
    found, instant = await addressed(wanted), await now()
    window = await window_of(found, instant)
    sent = [
        sent_as_json(str(window.key), message, await attempts_at_message(message.id))
        for message in await messages_of(found.run)
    ]
    return Found({"as_of": iso(instant), "state": window.verdict.word, "messages": [*sent]})


READS = (
    Read(
        "runs",
        "/runs",
        "Runs that have a row in the ledger, the newest of each series first",
        "duly.runs.v1",
        (OF_JOB, OF_SCOPE, Parameter("state", words(*states.STATES), "Only in this state."), *listed(place(3))),
        _runs,
        is_list=True,
    ),
    Read(
        "unknowns",
        "/unknowns",
        "Runs of which nobody knows what became of them",
        "duly.runs.v1",
        (OF_JOB, OF_SCOPE, *listed(place(3))),
        _unknowns,
        is_list=True,
    ),
    Read(
        "explanation",
        "/run/{key:path}/explain",
        "How a window stands, and why, whether or not it has a row",
        "duly.explain.v1",
        (),
        _explanation,
    ),
    Read(
        "messages-of-run",
        "/run/{key:path}/messages",
        "The messages of a run, each with its sendings",
        "duly.messages_of_run.v1",
        (),
        _messages,
    ),
    Read(
        "run",
        "/run/{key:path}",
        "A run that has a row, with its attempts, events and texts",
        "duly.run.v1",
        (),
        _run,
    ),
)
