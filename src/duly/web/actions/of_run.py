"""What a person says of a run: the verbs of `duly retry`, `skip`, `unskip`, `reopen`, `cancel` and `resolve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import Misuse, NotAllowed, Retired, TimeInvalid
from duly.evidence.changed import changed
from duly.evidence.documents.change import CHANGE, change_as_json
from duly.evidence.shown import line_name, typed, window_name, zone_of
from duly.evidence.verdict import window_of
from duly.ledger.address import by_key
from duly.ledger.ask import now
from duly.ledger.cancel import cancel
from duly.ledger.named import EITHER
from duly.ledger.put_off import LATER, put_off
from duly.ledger.resolve import Word, reopen, resolve_left, retry, skip, unskip
from duly.schedule.keys import parse_key
from duly.times import parse_duration
from duly.web.action import ATTEMPT, CHOICE, FLAG, LINE, REASON, TEXT, About, Action, Done, Field
from duly.web.paths import run_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.evidence.documents.window import Json
    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run
    from duly.web.action import Given

    Verb = Callable[[Addressed, Given], Operation[Run]]

PATH = "/run/{key:path}"

OUTCOME = Field(
    "as",
    "What happened",
    CHOICE,
    required=True,
    words=(("done", "It happened"), ("not-done", "It did not happen"), ("later", "I cannot tell yet: ask again later")),
)
EVIDENCE = Field(
    "reason",
    "How you know",
    TEXT,
    required=True,
    hint="It is kept in the ledger as the evidence: what the other side's log or screen says.",
)
AGAIN_IN = Field(
    "again_in", "Ask again in", LINE, hint="If you cannot tell yet: as 30m, 2h or 1d; an hour if left empty."
)


async def named(given: Given) -> Addressed:
    """The run that the path names, also by a former name of its job."""
    return await by_key(parse_key(given.path["key"]))


async def still(given: Given) -> Addressed:
    """The run, if its newest attempt is still the one that whoever says something of it has seen. Raises `NotAllowed`."""
    found = await named(given)
    seen, newest = given.count(ATTEMPT.name), 0 if found.row is None else found.row.fence
    if seen is not None and seen != newest:
        raise NotAllowed(
            f"attempt: this is said of attempt {seen}, and attempt {newest} has begun since; look at it again",
            next_step=f"duly explain '{found.key}'",
        )
    return found


def again_in(given: Given) -> int:
    """When somebody is to look again, in microseconds from now. Raises `Misuse`, naming the field."""
    said = given.text(AGAIN_IN.name)
    if not said:
        return LATER
    if given.text(OUTCOME.name) != "later":
        raise Misuse("again_in: it says when to look again, and goes with what cannot be told yet")
    try:
        return parse_duration(said)
    except TimeInvalid as e:
        raise Misuse(f"again_in: {e}") from e


def of_run(name: str, does: str, why: str, verb: Verb, *fields: Field) -> Action:
    """An action on a run."""

    async def see(given: Given, ledger: str | None) -> About:
        found = await named(given)
        window = await window_of(found, await now())
        return About(
            f"{line_name(window)} {window_name(window)}",
            window.verdict.word,
            window.verdict.note,
            run_path(window.key),
            zone_of(window),
            typed(name, window, ledger).replace(EITHER, given.text(OUTCOME.name) or EITHER),
            0 if window.row is None else window.row.fence,
        )

    async def act(given: Given) -> Done:
        found = await still(given)
        try:
            made = await changed(found, lambda run, _: verb(run, given), given.word)
        except Retired as e:  # to a poke it means that all is well; here nobody got what they asked for
            raise NotAllowed(f"cannot {name} this run: {e}") from e
        return Done(CHANGE, change_as_json(name, made, dry_run=False))

    return Action(name, f"{PATH}/{name}", does, why, (*fields, ATTEMPT), see, act, _leads, CHANGE)


def _leads(facts: Mapping[str, Json]) -> str:
    after = facts["after"]
    assert isinstance(after, dict)
    return run_path(after["key"])


def _resolve(found: Addressed, given: Given) -> Operation[Run]:
    word = Word(given.by, given.text(EVIDENCE.name), given.text(EVIDENCE.name))
    later = again_in(given)
    if given.text(OUTCOME.name) == "later":
        return put_off(found.run, word, again_in=later)
    return resolve_left(found.run, word, done=given.text(OUTCOME.name) == "done")


ACTIONS = (
    of_run(
        "retry",
        "Retry",
        "The next poke of its job takes it again, under the same key. Nothing is run by this page.",
        lambda found, given: retry(found.run, given.word, new_payload=given.flag("new_payload")),
        REASON,
        Field("new_payload", "The next claim may bring another payload", FLAG),
    ),
    of_run(
        "skip",
        "Skip",
        "Nothing runs it any more, and it counts as settled, with your reason. Unskip takes that back.",
        lambda found, given: skip(found.known, found.run, found.occurrence, given.word),
        REASON,
    ),
    of_run(
        "unskip",
        "Unskip",
        "It is what it was before, and owed: the next poke of its job works it once it is due.",
        lambda found, given: unskip(found.known, found.run, found.occurrence, given.word),
        REASON,
    ),
    of_run(
        "cancel",
        "Ask it to stop",
        "Its attempt hears of it with its next heartbeat. What it did by then is judged by its contract.",
        lambda found, given: cancel(found.known, found.run, found.occurrence, given.word),
        REASON,
    ),
    of_run(
        "reopen",
        "Do it again on purpose",
        "A new revision is opened under a key of its own, and its effect happens a second time.",
        lambda found, given: reopen(found.run, given.word),
        REASON,
    ),
    of_run(
        "resolve",
        "Say what happened",
        "It happened: it is complete, and never run again. It did not: it has failed, and is tried again at the next poke.",
        _resolve,
        OUTCOME,
        EVIDENCE,
        AGAIN_IN,
    ),
)
