"""What a person says of a message: `duly resolve --message`, `duly outbox retry` and `duly outbox skip`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import UnknownRun
from duly.evidence.documents.change import MESSAGE_CHANGE, message_change_as_json
from duly.evidence.shown import line_name, typed, window_name, zone_of
from duly.evidence.verdict import window_of
from duly.ledger.ask import now
from duly.ledger.messages import message_named, resolve_message, retry_message, skip_message
from duly.ledger.named import EITHER, TO_FILL_IN
from duly.ledger.put_off import put_off_message
from duly.web.action import LINE, REASON, About, Action, Done, Field
from duly.web.actions.of_run import AGAIN_IN, EVIDENCE, OUTCOME, PATH, again_in, named
from duly.web.paths import run_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.evidence.documents.window import Json
    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.messages import Message
    from duly.ledger.records import RunId
    from duly.web.action import Given

    Verb = Callable[[RunId, str, Given], Operation[Message]]

MESSAGE = Field("message", "Message", LINE, required=True, hint="The name that its run gave it.")


def of_message(name: str, twin: str, does: str, why: str, verb: Verb, *fields: Field) -> Action:
    """An action on a message; `twin` is the command of the command line."""

    async def see(given: Given, ledger: str | None) -> About:
        found = await named(given)
        window = await window_of(found, await now())
        run, message = _run_of(found), given.text(MESSAGE.name)
        standing = await message_named(run, message)
        return About(
            f"{message} of {line_name(window)} {window_name(window)}",
            window.verdict.word,
            f"message {standing.state}, to {standing.destination}{'; ' if standing.cause else ''}{standing.cause or ''}",
            run_path(window.key),
            zone_of(window),
            _line(twin, typed(twin, window, ledger), message, given.text(OUTCOME.name)),
        )

    async def act(given: Given) -> Done:
        found = await named(given)
        run = _run_of(found)
        message = await verb(run, given.text(MESSAGE.name), given)
        window = await window_of(found, await now())
        return Done(MESSAGE_CHANGE, message_change_as_json(name, str(window.key), message, dry_run=False))

    return Action(name, f"{PATH}/{name}", does, why, (MESSAGE, *fields), see, act, _leads, MESSAGE_CHANGE)


def _run_of(found: Addressed) -> RunId:
    if found.row is None:
        raise UnknownRun(f"{found.key} has no row, and so no messages")
    return found.row.id


def _line(twin: str, line: str, message: str, outcome: str) -> str:
    from shlex import quote

    said = line.replace(EITHER, outcome or EITHER) if twin == "resolve" else f"{line} --reason '{TO_FILL_IN}'"
    return f"{said} --message {quote(message)}"


def _leads(facts: Mapping[str, Json]) -> str:
    message = facts["message"]
    assert isinstance(message, dict)
    return run_path(message["key"])


def _resolve(run: RunId, name: str, given: Given) -> Operation[Message]:
    later = again_in(given)
    if given.text(OUTCOME.name) == "later":
        return put_off_message(run, name, given.word, again_in=later)
    return resolve_message(run, name, given.word, done=given.text(OUTCOME.name) == "done")


ACTIONS = (
    of_message(
        "resolve-message",
        "resolve",
        "Say what happened to a message",
        "It happened: it is delivered. It did not: it is sent again now, with the same key.",
        _resolve,
        OUTCOME,
        EVIDENCE,
        AGAIN_IN,
    ),
    of_message(
        "retry-message",
        "outbox retry",
        "Send it again",
        "What was refused, or is dead after too many tries, is sent again with the same key.",
        lambda run, name, given: retry_message(run, name, given.word),
        REASON,
    ),
    of_message(
        "skip-message",
        "outbox skip",
        "Leave a message out",
        "It is never sent, and counts as settled; the next one of its run goes.",
        lambda run, name, given: skip_message(run, name, given.word),
        REASON,
    ),
)
