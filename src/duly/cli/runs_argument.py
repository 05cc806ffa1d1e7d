"""RUN: what a person may write for a run, and what was understood.

A run is its key, or a job and a window as people write it: the nominal of its period or fire, `today` or `yesterday` by
the ledger's clock in the schedule's zone. The scope is `--scope`; a job with one scope needs none. What was understood is
said on stderr, so that nobody retries another period than the one they mean.
"""

from __future__ import annotations

from duly.cli.output import note
from duly.errors import KeyInvalid, Misuse, UnknownJob, UnknownScope
from duly.ledger.address import Addressed, by_key, by_window, current_name, known_or_raise
from duly.ledger.scopes import scopes_of
from duly.records import record
from duly.schedule.keys import RunKey, parse_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@record
class RunArgument:
    """A key, or a job with a window as it was written."""

    key: RunKey | None
    job: str
    window: str


def run_argument(words: Sequence[str | None], command: str) -> RunArgument:
    """The run that one or two words name. Raises `Misuse` or `KeyInvalid`."""
    given = [word for word in words if word]
    match given:
        case [job, window]:
            return RunArgument(None, job, window)
        case [text] if ":" in text:
            return RunArgument(parse_key(text), "", "")
        case [job]:
            raise Misuse(f"which window of {job}? Write it after the job", next_step=f"duly {command} {job} yesterday")
    raise Misuse(f"{command}: name one run, by its key, or by job and window", next_step="duly runs --format keys")


async def addressed(argument: RunArgument, scope: str | None) -> Addressed:
    """The run that is meant. Raises as `address.by_key` and `address.by_window`."""
    if argument.key is not None:
        await job_meant(argument.key.job)
        if scope is not None and scope != argument.key.scope:
            raise KeyInvalid(f"scope: the key says {argument.key.scope!r}, --scope says {scope!r}; leave one out")
        return await by_key(argument.key)
    job = await job_meant(argument.job)
    return await by_window(job, await scope_of(job, scope), argument.window)


async def job_meant(name: str) -> str:
    """The name that a job has now, said where a former one was written."""
    now_named = await current_name(name)
    if now_named != name:
        note(f"{name} is named {now_named} now")
    return now_named


async def scope_of(job: str, scope: str | None) -> str:
    """The scope that is meant: the given one, else the only one. Raises `UnknownJob`, or `UnknownScope` to choose from."""
    if scope is not None:
        return scope
    scopes = await scopes_of(job)
    if not scopes:
        raise UnknownJob(f"the ledger knows no job {job!r}")
    if "" in scopes:
        return ""
    if len(scopes) > 1:
        raise UnknownScope(
            f"{job} has {len(scopes)} scopes; say which with --scope",
            next_step=f"duly status {job} --scope {scopes[0]}",
        )
    return scopes[0]


async def known_job(job: str, scope: str | None) -> str:
    """The job's name, as it is now. Raises `UnknownJob` or `UnknownScope`: a slip of the pen is no job without troubles."""
    job = await job_meant(job)
    scopes = await scopes_of(job)
    await known_or_raise(job, scope if scope is not None else next(iter(scopes), ""))
    return job


def echo(found: Addressed) -> None:
    """Say which run was understood."""
    note(str(found.key))
