"""What a person asks of past windows: `duly backfill start`, `pause`, `resume` and `cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.evidence.backfill import Progress, asked_for, progress
from duly.evidence.backfill_words import SIGNS, left_out, line_of, numbers
from duly.evidence.documents.backfill import BACKFILL, STARTED, progress_as_json, started_as_json
from duly.ledger.address import current_name
from duly.ledger.backfill import (
    MISSING,
    NEWEST,
    OLDEST,
    cancel_backfill,
    pause_backfill,
    plan,
    resume_backfill,
    start,
)
from duly.ledger.named import TO_FILL_IN
from duly.redaction import shown_url
from duly.web.action import CHOICE, COUNT, LINE, REASON, About, Action, Done, Field
from duly.web.paths import backfill_path, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.evidence.documents.window import Json
    from duly.ledger.ask import Operation
    from duly.ledger.backfill import Asked, Backfill, Plan
    from duly.ledger.resolve import Word
    from duly.web.action import Given

PATH = "/backfill"
STOP_AFTER = 3  # what fails is not to fail for a year of windows

JOB = Field("job", "Job", LINE, required=True)
SCOPE = Field("scope", "Scope", LINE)
RANGE = Field("range", "Range", LINE, required=True, hint="Half-open, as 2026-01-01..2026-02-01.")
KINDS = Field(
    "what",
    "Which windows",
    CHOICE,
    standard=MISSING,
    words=(
        ("missing", "missing"),
        ("missing,failed", "missing and failed"),
        ("missing,failed,skipped", "missing, failed and skipped"),
        ("all", "all, also those that are complete: they are done again"),
    ),
)
ORDER = Field("order", "Which first", CHOICE, standard=OLDEST, words=((OLDEST, "the oldest"), (NEWEST, "the newest")))
CONCURRENCY = Field("concurrency", "At a time", COUNT, standard="1", most=1_000)
STOP = Field(
    "stop_after",
    "Stop when so many need a person",
    COUNT,
    standard=str(STOP_AFTER),
    least=0,
    hint="0: never",
)
EXPECT = Field(
    "expect",
    "How many windows will be worked",
    COUNT,
    required=True,
    least=0,
    most=100_000_000,
    hint="Type the number that the plan says: if it is another by then, nothing is started.",
)
ASKED = (JOB, SCOPE, RANGE, KINDS, ORDER, CONCURRENCY, STOP)


AT_MOST = 200_000


def not_too_many(windows: int) -> None:
    """Refuse a plan that has come to more windows than are counted while a page waits. Raises `Misuse`.

    A shell may count as many as it likes; here others wait for the same few threads, and where a backfill is started, whoever
    writes to the ledger waits as well.
    """
    if windows > AT_MOST:
        raise Misuse(
            f"range: it has more than {AT_MOST:,} windows, too many to count them here; narrow it, or plan it in a shell",
            next_step="duly backfill plan --help",
        )


async def asked_by(given: Given) -> tuple[str, str, Asked]:
    """The job, the scope, and what is asked for, as the job's schedule reads it. Raises as `asked_for`."""
    job, scope = await current_name(given.text("job")), given.text("scope")
    return (
        job,
        scope,
        await asked_for(
            job,
            scope,
            given.text("range"),
            what=given.text("what") or MISSING,
            order=given.text("order") or OLDEST,
            concurrency=given.count("concurrency") or 1,
            stop_after=STOP_AFTER if (stop := given.count("stop_after")) is None else stop,
        ),
    )


def start_line(given: Given, planned: Plan, ledger: str | None) -> str:
    """The command that starts what was planned, as a person would type it."""
    from shlex import join

    words = ["duly", "backfill", "start", planned.known.job.name, planned.asked.text]
    for field in ASKED:
        value = given.text(field.name)
        if field not in (JOB, RANGE) and value and value != field.standard:
            words += [f"--{field.name.replace('_', '-')}", value]
    words += ["--ledger", shown_url(ledger)] if ledger else []
    return join([*words, "--expect", str(planned.to_do), "--reason", TO_FILL_IN])


async def _see_start(given: Given, ledger: str | None) -> About:
    job, scope, asked = await asked_by(given)
    planned = await plan(job, scope, asked, not_too_many)
    return About(
        f"{line_of(planned.known)} {asked.text}",
        SIGNS["active"][1] if planned.to_do else SIGNS["done"][1],
        f"{planned.to_do} to be worked{left_out(planned)}",
        with_fields(PATH, dict(given.fields)),
        "UTC" if planned.known.version is None else planned.known.version.zone,
        start_line(given, planned, ledger),
    )


async def _start(given: Given) -> Done:
    job, scope, asked = await asked_by(given)
    made = await start(job, scope, asked, given.word, expect=given.count("expect"), tell=not_too_many)
    return Done(STARTED, started_as_json(made, dry_run=False))


def of_backfill(name: str, does: str, why: str, change: Callable[[int, Word], Operation[Backfill]]) -> Action:
    """An action on a backfill that was started."""

    async def see(given: Given, ledger: str | None) -> About:
        found = await progress(int(given.path["id"]))
        return _about(found, name, ledger)

    async def act(given: Given) -> Done:
        number = int(given.path["id"])
        await change(number, given.word)
        return Done(BACKFILL, {"dry_run": False, **progress_as_json(await progress(number))})

    return Action(f"{name}-backfill", f"{PATH}/{{id:int}}/{name}", does, why, (REASON,), see, act, _leads, BACKFILL)


def _about(found: Progress, verb: str, ledger: str | None) -> About:
    from shlex import join

    mine = found.backfill
    named = ["--ledger", shown_url(ledger)] if ledger else []
    return About(
        f"backfill {mine.id} of {line_of(found.known)} {mine.asked}",
        SIGNS[mine.state][1],
        f"{mine.state}: {numbers(found)}",
        backfill_path(mine.id),
        "UTC" if found.known.version is None else found.known.version.zone,
        join(["duly", "backfill", verb, str(mine.id), *named, "--reason", TO_FILL_IN]),
    )


def _leads(facts: Mapping[str, Json]) -> str:
    return backfill_path(facts["id"])


ACTIONS = (
    Action(
        "start-backfill",
        f"{PATH}/start",
        "Start the backfill",
        "The windows are owed from now on; the job's workers, or `duly exec JOB --backfill`, work them. This page runs none.",
        (*ASKED, EXPECT, REASON),
        _see_start,
        _start,
        _leads,
        STARTED,
    ),
    of_backfill(
        "pause", "Pause", "Nothing more of it is started until it is resumed; what is running goes on.", pause_backfill
    ),
    of_backfill("resume", "Resume", "It goes on from where it was paused, or had stopped.", resume_backfill),
    of_backfill("cancel", "Cancel", "It ends for good; what is running ends as it ends.", cancel_backfill),
)
