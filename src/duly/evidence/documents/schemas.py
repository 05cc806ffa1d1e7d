"""Schemas: what each document for programs is made of, as JSON Schema (2020-12).

Each is named as the document says in its `schema`; what several have in common has a name of its own. Every field is always
there. A schema allows fields that it does not have, for documents grow; a test holds real documents against them as though it
did not.
"""

from __future__ import annotations

from duly.evidence.verdict import WORDS
from duly.ledger import backfill_states, message_states
from duly.ledger.backfill import NEWEST, OLDEST, WHAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Schema: TypeAlias = dict[str, Any]

PLACE = "#/components/schemas/"  # where they stand in a description of OpenAPI

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time", "description": "ISO 8601 in UTC."}


def maybe(schema: Schema) -> Schema:
    """What a schema allows, or null."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def many(schema: Schema) -> Schema:
    """A list of what a schema allows."""
    return {"type": "array", "items": schema}


def one_of(*words: str) -> Schema:
    """One of a few words."""
    return {"type": "string", "enum": list(words)}


def of(name: str) -> Schema:
    """The schema of a name."""
    return {"$ref": PLACE + name}


def fields(**each: Schema) -> Schema:
    """An object that has each of these fields. A name that Python keeps for itself is given with `_` at its end."""
    named = {name.removesuffix("_"): schema for name, schema in each.items()}
    return {"type": "object", "required": list(named), "properties": named}


def document(name: str, says: str, /, **each: Schema) -> Schema:
    """A whole document."""
    made = fields(schema={"type": "string", "const": name}, **each)
    return {"description": says, **made}


def _with(schema: Schema, /, **more: Schema) -> Schema:
    """An object that has more fields."""
    named = {**schema["properties"], **{name.removesuffix("_"): each for name, each in more.items()}}
    return {**schema, "required": list(named), "properties": named}


def _maybe_with(schema: Schema, /, **more: Schema) -> Schema:
    """An object that may have more fields."""
    return {**schema, "properties": {**schema["properties"], **more}}


NAMED = {"key": TEXT, "job": TEXT, "scope": TEXT}

WINDOW = fields(
    **NAMED,
    window={**TEXT, "description": "As a person names it."},
    revision={"type": "integer", "minimum": 1},
    state=one_of(*WORDS),
    late={**FLAG, "description": "Due for longer than grace, and not settled."},
    note={**TEXT, "description": "Why, in a few words."},
    attempt=maybe({"type": "integer", "description": "The number of its newest attempt."}),
    due=maybe(INSTANT),
    window_start=maybe(INSTANT),
    window_end=maybe(INSTANT),
    zone=TEXT,
)
LATE = {"windows": COUNT, "windows_exact": FLAG}
# Of windows of a line that were never opened one stands for all, the newest, and says how many there are.
NEED = _maybe_with(WINDOW, **LATE, oldest=TEXT)

COMPLETE = fields(
    job=TEXT,
    scope=TEXT,
    complete_through=maybe({**INSTANT, "description": "Up to here nothing is missing."}),
    last_completed=maybe(INSTANT),
)

MESSAGE = fields(
    key={**TEXT, "description": "Of its run."},
    name=TEXT,
    revision={"type": "integer", "minimum": 1},
    number=WHOLE,
    destination=TEXT,
    idempotency_key={**TEXT, "description": "What its receiver knows it by."},
    state=one_of(*message_states.STATES),
    cause=maybe(TEXT),
    attempts=COUNT,
    in_doubt=FLAG,
    noted_at=INSTANT,
    first_sent_at=maybe(INSTANT),
    next_at=maybe(INSTANT),
    settled_at=maybe(INSTANT),
)

SENDING = fields(
    number=WHOLE, started_at=INSTANT, ended_at=maybe(INSTANT), outcome=TEXT, owner=maybe(TEXT), said=maybe(TEXT)
)

ATTEMPT = fields(
    key=TEXT,
    revision=WHOLE,
    number=WHOLE,
    attempt_id=TEXT,
    outcome=TEXT,
    started_at=INSTANT,
    ended_at=maybe(INSTANT),
    contract=TEXT,
    owner=TEXT,
    trigger=TEXT,
    error=maybe(TEXT),
    alive=maybe(FLAG),
    done=maybe(WHOLE),
    of=maybe(WHOLE),
    progress_at=maybe(INSTANT),
    cancel_asked_at=maybe(INSTANT),
    cancel_asked_by=maybe(TEXT),
    cancel_became=maybe(TEXT),
)

EVENT = fields(
    at=INSTANT,
    kind=TEXT,
    by=TEXT,
    reason=TEXT,
    detail=TEXT,
    before=maybe(TEXT),
    after=maybe(TEXT),
)

HISTORY = {
    "attempts": many(of("attempt")),
    "events": many(_with(EVENT, revision=WHOLE)),
    "texts": many(fields(revision=WHOLE, number=WHOLE, kind=TEXT, body=TEXT)),
}

VERSION = fields(number=WHOLE, label=maybe(TEXT), schedule=TEXT, zone=TEXT, grain=TEXT, effective_from=maybe(INSTANT))

JOB = fields(
    key=TEXT,
    job=TEXT,
    schedule=maybe(TEXT),
    zone=maybe(TEXT),
    grain=maybe(TEXT),
    version=maybe(WHOLE),
    next_due=maybe(INSTANT),
    retired=maybe(INSTANT),
    formerly=many(TEXT),
    scopes=many(TEXT),
    roster=TEXT,
    catch_up=TEXT,
    contract=TEXT,
    remembers=maybe(TEXT),
    retries=maybe(WHOLE),
    grace=maybe(TEXT),
    timeout=maybe(TEXT),
    lease=maybe(TEXT),
    retain=maybe(TEXT),
    overlap=FLAG,
    ordered=FLAG,
    owner=maybe(TEXT),
)

BACKFILL = {
    "id": WHOLE,
    "job": TEXT,
    "scope": TEXT,
    "range": TEXT,
    "start": INSTANT,
    "end": INSTANT,
    "what": many(one_of(*WHAT)),
    "order": one_of(OLDEST, NEWEST),
    "concurrency": {"type": "integer", "minimum": 1},
    "at_a_time": COUNT,
    "stop_after": maybe(WHOLE),
    "state": one_of(*backfill_states.STATES),
    "asked_at": INSTANT,
    "by": TEXT,
    "reason": TEXT,
    "state_by": TEXT,
    "state_reason": TEXT,
    **dict.fromkeys(("windows", "done", "running", "failed", "unknown", "waiting", "left"), COUNT),
}

_COUNTS = dict.fromkeys(("need_you", "unknown", "running", "completed_24h"), COUNT)
TRIED: Schema = {**FLAG, "description": "Nothing was changed: it was only tried."}
_CHANGED = {"verb": TEXT, "dry_run": TRIED}

SCHEMAS: dict[str, Schema] = {
    "window": WINDOW,
    "complete": COMPLETE,
    "message": MESSAGE,
    "attempt": ATTEMPT,
    "job": JOB,
    "duly.status.v1": document(
        "duly.status.v1",
        "What needs a person, what is running, and how far each line is complete.",
        as_of=INSTANT,
        counts=fields(**_COUNTS),
        running=many(of("window")),
        waiting=many(of("window")),
        paused=many(
            fields(job=TEXT, scope=TEXT, since=INSTANT, until=maybe(INSTANT), by=TEXT, reason=TEXT, **LATE),
        ),
        backfills=many(
            fields(id=WHOLE, job=TEXT, scope=TEXT, range=TEXT, state=one_of(*backfill_states.STATES)),
        ),
        undelivered=many(
            fields(
                destination=TEXT,
                messages=COUNT,
                oldest=maybe(INSTANT),
                next_due=maybe(INSTANT),
                unknown=COUNT,
                stuck=COUNT,
            ),
        ),
        lines=many(of("complete")),
        needs=many(NEED),
    ),
    "duly.jobs.v1": document("duly.jobs.v1", "Jobs, by name.", jobs=many(of("job"))),
    "duly.job.v1": _with(
        JOB,
        schema={"type": "string", "const": "duly.job.v1"},
        as_of=INSTANT,
        versions=many(VERSION),
        lines=many(of("complete")),
    ),
    "duly.grid.v1": document(
        "duly.grid.v1",
        "Windows of lines, whether or not they have a row.",
        as_of=INSTANT,
        lines=many(of("complete")),
        periods=many(_with(WINDOW, clocks={**TEXT, "description": "What the clocks did to it; empty on most nights."})),
    ),
    "duly.runs.v1": document(
        "duly.runs.v1", "Runs that have a row in the ledger.", as_of=INSTANT, runs=many(of("window"))
    ),
    "duly.run.v1": document(
        "duly.run.v1",
        "A run with all that the ledger holds of it.",
        as_of=INSTANT,
        run=of("window"),
        **HISTORY,
        messages=many(of("message")),
    ),
    "duly.explain.v1": document(
        "duly.explain.v1",
        "A window explained: every fact that the sentences are made of.",
        as_of=INSTANT,
        run=of("window"),
        versions=many(_with(VERSION, in_force=FLAG)),
        schedule_version=maybe(WHOLE),
        resolution=maybe(TEXT),
        off=TEXT,
        grace_seconds=COUNT,
        contract=TEXT,
        retries=maybe(WHOLE),
        failures=COUNT,
        retry_at=maybe(INSTANT),
        opened_at=maybe(INSTANT),
        opened_until=maybe(INSTANT),
        lease_until=maybe(INSTANT),
        holder_alive=maybe(FLAG),
        backfill=maybe(
            fields(
                id=WHOLE,
                range=TEXT,
                asked_at=INSTANT,
                by=TEXT,
                reason=TEXT,
                state=TEXT,
                state_by=TEXT,
                state_reason=TEXT,
            )
        ),
        pause=maybe(fields(since=INSTANT, until=maybe(INSTANT), by=TEXT, reason=TEXT)),
        pauses=many(EVENT),
        **HISTORY,
        messages=many(_with(MESSAGE, sendings=many(SENDING))),
        probe=maybe(fields(asked=COUNT, denials=COUNT, next_at=maybe(INSTANT), said=maybe(TEXT))),
        skipped_range=maybe(fields(at=INSTANT, by=TEXT, reason=TEXT)),
        line_begins=maybe(INSTANT),
        line_ends=maybe(INSTANT),
        ended=maybe(fields(by=TEXT, reason=TEXT)),
        next_poke_drops_it=maybe(TEXT),
        newer_window=maybe(TEXT),
        waits_for=maybe(TEXT),
        complete_through=maybe(INSTANT),
        last_completed=maybe(INSTANT),
        needs_a_person=FLAG,
        next_step=maybe({**TEXT, "description": "A line for a shell."}),
        sentences=many(TEXT),
    ),
    "duly.messages_of_run.v1": document(
        "duly.messages_of_run.v1",
        "The messages of a run, each with its sendings; never their bodies.",
        as_of=INSTANT,
        state=one_of(*WORDS),
        messages=many(_with(MESSAGE, sendings=many(_with(SENDING, attempt_id=TEXT)))),
    ),
    "duly.messages.v1": document(
        "duly.messages.v1", "Messages that are not settled.", as_of=INSTANT, messages=many(of("message"))
    ),
    "duly.over_time.v1": document(
        "duly.over_time.v1",
        "Lines by pieces of time, the worst state of each cell.",
        as_of=INSTANT,
        unit=TEXT,
        zone=TEXT,
        lines={**COUNT, "description": "How many lines there are in all."},
        pieces=many(fields(name=TEXT, start=INSTANT, end=INSTANT, clocks=TEXT)),
        cells=many(
            fields(
                **NAMED,
                from_=INSTANT,
                to=INSTANT,
                state=one_of(*WORDS),
                recorded=FLAG,
                windows=COUNT,
                complete=COUNT,
                coming=COUNT,
                exact=FLAG,
                worst=maybe(TEXT),
                note=TEXT,
            )
        ),
    ),
    "duly.backfills.v1": document(
        "duly.backfills.v1", "Backfills, the newest first.", backfills=many(fields(key=TEXT, **BACKFILL))
    ),
    "duly.backfill.v1": _maybe_with(
        document("duly.backfill.v1", "A backfill, and how far it is.", **BACKFILL), dry_run=TRIED
    ),
    "duly.backfill_started.v1": document(
        "duly.backfill_started.v1",
        "A backfill that was started, with its plan.",
        id=WHOLE,
        dry_run=TRIED,
        job=TEXT,
        scope=TEXT,
        range=TEXT,
        first=maybe(TEXT),
        last=maybe(TEXT),
        start=maybe(INSTANT),
        end=maybe(INSTANT),
        counts={
            "type": "object",
            "additionalProperties": COUNT,
            "description": "Windows of the range by what they are.",
        },
        to_do=COUNT,
        not_due=COUNT,
        not_owed=COUNT,
        of_schedule_before=COUNT,
        what=many(one_of(*WHAT)),
        order=one_of(OLDEST, NEWEST),
        concurrency={"type": "integer", "minimum": 1},
        at_a_time=COUNT,
        stop_after=maybe(WHOLE),
    ),
    "duly.change.v1": document(
        "duly.change.v1",
        "A change of a run: as it was before, and as it is.",
        **_CHANGED,
        before=of("window"),
        after=of("window"),
    ),
    "duly.message_change.v1": document(
        "duly.message_change.v1", "A change of a message, as it is now.", **_CHANGED, message=of("message")
    ),
}


def closed(schema: Any) -> Any:
    """A schema that allows no field that it does not have."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(each) for name, each in schema.items()}
    return {**made, "additionalProperties": False} if "properties" in made else made
