"""Of backfills: all of them, and how far one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.evidence.backfill import progress
from duly.evidence.batches import backfills_before
from duly.evidence.documents.backfill import progress_as_json
from duly.web.api.read import Found, Read, listed
from duly.web.api.reads.of_lines import OF_JOB, OF_SCOPE, named
from duly.web.api.values import place, place_of

if TYPE_CHECKING:
    from duly.web.api.read import Wanted


async def _backfills(wanted: Wanted) -> Found:
    name, scope = await named(wanted)
    before = wanted.after
    found, after = await backfills_before(None if before is None else before[0], name, scope, limit=wanted.limit)
    records = [{"key": str(each.backfill.id), **progress_as_json(each)} for each in found]
    return Found({"backfills": [*records]}, None if after is None else place_of((after,)))


async def _backfill(wanted: Wanted) -> Found:
    return Found(progress_as_json(await progress(int(wanted.path["id"]))))


READS = (
    Read(
        "backfills",
        "/backfills",
        "Backfills, the newest first",
        "duly.backfills.v1",
        (OF_JOB, OF_SCOPE, *listed(place(1))),
        _backfills,
        is_list=True,
    ),
    Read("backfill", "/backfill/{id:int}", "A backfill, and how far it is", "duly.backfill.v1", (), _backfill),
)
