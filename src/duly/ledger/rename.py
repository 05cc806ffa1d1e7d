"""Rename: another name for a job, and the same identity.

Runs, series and lines belong to the job's row and move with it; keys print the new name. The old one is kept for ever, and
given to no other job: a host that still declares it is refused, where it would else register a new job and do everything a
second time, and whoever asks by an old key is answered. What remote systems know effects by is made of the job's first
name, which never changes.
"""

from __future__ import annotations

from duly.errors import NotAllowed, UnknownJob
from duly.ledger.ask import Statement, count, one
from duly.ledger.events import tell
from duly.ledger.register import name_now, renamed
from duly.records import record
from duly.schedule.keys import check_job_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.resolve import Word

HOLD_TO_RENAME = Statement(
    "hold_to_rename",
    # Against those too who add a line or a version: a lock that were raised later could meet one of theirs.
    "select id from duly_job where name = :name {alone}",
)

OWNER_OF_NAME = Statement(
    "owner_of_name",
    "select id from duly_job where name = :name union all select job from duly_former_name where name = :name",
)

GIVE_UP_NAME = Statement(
    "give_up_name",
    "insert into duly_former_name (name, job, at, by, reason) values (:name, :job, {now}, :by, :reason)",
)

TAKE_BACK_NAME = Statement("take_back_name", "delete from duly_former_name where name = :name and job = :job")

SET_NAME = Statement("set_name", "update duly_job set name = :name where id = :job", refuses=NotAllowed)


@record
class Names:
    """A job's name before and after."""

    before: str
    after: str


async def rename(before: str, after: str, word: Word) -> Names:
    """Give a job another name; who claims from memory, or declares it as before, notices.

    Raises `NameInvalid`, `UnknownJob`, `JobRenamed` for a former name, and `NotAllowed` where the new one is taken: by
    another job, or by one that gave it up. A job may go back to a name of its own.
    """
    check_job_name(after)
    job = await one(HOLD_TO_RENAME, int, name=before)
    if job is None:
        now_named = await name_now(before)
        raise UnknownJob(f"the ledger knows no job {before!r}") if now_named is None else renamed(before, now_named)
    if before == after:
        raise NotAllowed(f"the job is named {after} already", next_step=f"duly jobs show {after}")
    owner = await one(OWNER_OF_NAME, int, name=after)
    if owner is not None and owner != job:
        raise NotAllowed(
            f"{after} is the name of another job, or was: a host may still declare it; choose another",
            next_step="duly jobs list --all",
        )
    await count(TAKE_BACK_NAME, name=after, job=job)
    await count(GIVE_UP_NAME, name=before, job=job, by=word.by, reason=word.reason)
    await count(SET_NAME, name=after, job=job)
    changed = (before, after)
    await tell("job_renamed", job=job, by=word.by, reason=word.reason, detail=f"{before} → {after}", changed=changed)
    return Names(before, after)
