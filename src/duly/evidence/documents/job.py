"""A job for programs, with the versions of its schedule."""

from __future__ import annotations

from duly.evidence.documents.window import iso
from duly.times import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.evidence.jobs import JobSeen
    from duly.ledger.records import Version


def job_as_json(seen: JobSeen) -> dict[str, Json]:
    """A job for programs, without its versions."""
    known = seen.lines[0]
    row, version = known.job, known.version
    scopes: list[Json] = [k.line.scope for k in seen.lines if k.line is not None]
    return {
        "key": row.name,
        "job": row.name,
        "schedule": None if version is None else version.words,
        "zone": None if version is None else version.zone,
        "grain": None if version is None else version.grain,
        "version": row.version,
        "next_due": iso(seen.next_due),
        "retired": iso(row.retired_at),
        "formerly": [*seen.former_names],
        "scopes": scopes,
        "roster": row.roster,
        "catch_up": row.catch_up,
        "contract": row.contract,
        "remembers": span_text(row.remembers),
        "retries": row.retries,
        "grace": span_text(row.grace),
        "timeout": span_text(row.timeout),
        "lease": span_text(row.lease),
        "retain": span_text(row.retain),
        "overlap": bool(row.overlap),
        "ordered": bool(row.ordered),
        "owner": row.owner,
    }


def span_text(micros: int | None) -> str | None:
    """A duration of a policy; None where none was said."""
    return None if micros is None else duration_text(micros)


def version_as_json(version: Version) -> dict[str, Json]:
    """A version of a schedule for programs."""
    return {
        "number": version.number,
        "label": version.label,
        "schedule": version.words,
        "zone": version.zone,
        "grain": version.grain,
        "effective_from": iso(version.effective_from or None),
    }
