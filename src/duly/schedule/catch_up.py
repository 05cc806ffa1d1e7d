"""Catch-up policies: which owed windows are worked after downtime.

Here they are only named and read; the ledger applies them, and records each window that one of them drops.
"""

from __future__ import annotations

from duly.errors import ScheduleError, TimeInvalid
from duly.records import record
from duly.times import duration_text, parse_duration

POLICIES = ("each", "latest", "fresh")


@record
class CatchUp:
    """`each`: every owed window; `latest`: only the newest, which reconciles; `fresh`: only the newest, and only within
    its grace. Of what is left `max` keeps the newest so many windows, `max_age` (microseconds) those due since.
    """

    policy: str
    max: int | None = None
    max_age: int | None = None

    def __str__(self) -> str:
        """As written in a file of jobs: `each`, `each max=24 max_age=2d`."""
        count = "" if self.max is None else f" max={self.max}"
        age = "" if self.max_age is None else f" max_age={duration_text(self.max_age)}"
        return f"{self.policy}{count}{age}"


EACH = CatchUp("each")
LATEST = CatchUp("latest")
FRESH = CatchUp("fresh")
NONE = CatchUp("none")  # what a person may say once, of what a pause held back; no job has it


def parse_catch_up(value: str | dict[str, object] | CatchUp, *, once: bool = False) -> CatchUp:
    """A policy from its text (`latest`, `each max=24 max_age=2d`) or a table with `policy`, `max` and `max_age`.

    `once`: for a person who resumes a job, who may also want none of it.

    `max_age` is a duration as text, or microseconds. Raises `ScheduleError` with the field at fault.
    """
    if value in (NONE, str(NONE)) and once:
        return NONE
    if isinstance(value, CatchUp):
        value = {"policy": value.policy, "max": value.max, "max_age": value.max_age}
    elif isinstance(value, str):
        value = _table(value)
    for name in value:
        if name not in ("policy", "max", "max_age"):
            raise _bad(name, name, "a catch-up policy has policy, max and max_age")
    policy = value.get("policy")
    if policy not in POLICIES:
        raise _bad("policy", policy, f"write one of {', '.join(POLICIES)}")
    if value.get("max") is not None and policy != "each":
        raise _bad("max", value["max"], f"{policy} works one window anyway; leave it out, or write each")
    return CatchUp(str(policy), _count(value.get("max")), _age(value.get("max_age")))


def _table(text: str) -> dict[str, object]:
    policy, *settings = text.split() or [""]
    return {"policy": policy} | dict(_setting(setting) for setting in settings)


def _setting(text: str) -> tuple[str, object]:
    name, _, value = text.partition("=")
    return name, value


def _count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _bad("max", value, "it is not a number of windows from 1 on")
    return value


def _age(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except TimeInvalid as e:
            raise _bad("max_age", value, str(e)) from e
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _bad("max_age", value, "it is not a duration; write it like 2d")
    return value


def _bad(field: str, value: object, why: str) -> ScheduleError:
    return ScheduleError(f"catch_up.{field}: {value!r}: {why}", field=f"catch_up.{field}", token=str(value))
