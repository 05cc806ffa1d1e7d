"""Paths: where things stand, below the root of the dashboard. A key is one percent-encoded segment. Pure."""

from __future__ import annotations

from urllib.parse import quote, urlencode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def run_path(key: object) -> str:
    """The page of a run."""
    return f"/run/{quote(str(key), safe=':@~,')}"


def job_path(name: str) -> str:
    """The page of a job."""
    return f"/job/{quote(name, safe='')}"


def plain(path: str) -> str:
    """A path whose numbers are read by `names_of`: of what is no number, or none that a ledger can hold, there is nothing."""
    return path.replace(":int}", "}")


def with_fields(path: str, fields: Mapping[str, str | int | None]) -> str:
    """A path with the fields of a query; those that say nothing are left out."""
    said = {name: value for name, value in fields.items() if value not in (None, "")}
    return f"{path}?{urlencode(said)}" if said else path


def backfill_path(number: object) -> str:
    """The page of a backfill."""
    return f"/backfill/{number}"
