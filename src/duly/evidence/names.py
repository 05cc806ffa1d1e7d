"""Names: what a ledger may be asked for by name, read with as little as can be: for whoever completes what is typed, and for a
view of some lines, which are to be there.
"""

from __future__ import annotations

from duly.errors import UnknownScope
from duly.ledger.address import current_name, known_or_raise
from duly.ledger.ask import Statement, every
from duly.ledger.scopes import scopes_of

JOB_NAMES = Statement("job_names", "select name from duly_job order by name")

SCOPE_NAMES = Statement(
    "scope_names", "select distinct scope from duly_line where scope <> '' order by scope limit 1000"
)

SCOPE_IS_THERE = Statement("scope_is_there", "select 1 from duly_line where scope = :scope limit 1")


async def job_names() -> list[str]:
    """The names of all jobs, also of those that were retired: they can be asked about."""
    return await every(JOB_NAMES, str)


async def scope_names() -> list[str]:
    """The scopes of all jobs, up to a thousand: nobody looks through more."""
    return await every(SCOPE_NAMES, str)


async def named(job: str | None, scope: str | None) -> tuple[str | None, str | None]:
    """The job and scope, either of which may be left open, by which lines are looked for; a job under the name that it has now.

    Raises `UnknownJob` and `UnknownScope`: of lines that are not there nothing is wrong, and nothing is proven to be well.
    """
    if job is not None:
        name = await current_name(job)
        await known_or_raise(name, scope if scope is not None else next(iter(await scopes_of(name)), ""))
        return name, scope
    if scope is not None and not await every(SCOPE_IS_THERE, int, scope=scope):
        raise UnknownScope(f"scope: no job has a scope {scope!r}")
    return None, scope
