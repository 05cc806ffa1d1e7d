"""Answers: contention and completion as values, where work may go on elsewhere. Small distinct classes, to be matched."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from duly.ledger import records
from duly.records import record
from duly.schedule.keys import RunKey
from duly.times import as_datetime


@record
class Completed:
    """This attempt completed the run. `attempt` is its number."""

    key: str
    attempt: int


@record
class AlreadyCompleted:
    """The run was complete, since `at`; nothing was run. Falsy."""

    key: str
    attempt: int
    at: datetime

    def __bool__(self) -> Literal[False]:
        return False


@record
class Busy:
    """Another attempt holds the run, or its line, at least until `until`; `owner` names its process. Falsy."""

    key: str
    until: datetime
    owner: str

    def __bool__(self) -> Literal[False]:
        return False


@record
class NotDue:
    """The run may not be taken before `due`. Falsy."""

    key: str
    due: datetime

    def __bool__(self) -> Literal[False]:
        return False


@record
class Attempted:
    """What came of one attempt at a run that was owed: it is complete now, or the error with which it ended."""

    run: records.RunId
    key: str
    number: int
    outcome: Completed | Exception
    more: bool = False  # its line had more that could be worked when it was claimed


def told(
    key: RunKey, answer: records.AlreadyCompleted | records.Busy | records.NotDue
) -> AlreadyCompleted | Busy | NotDue:
    """A claim's answer in the caller's terms: keys and datetimes."""
    match answer:
        case records.AlreadyCompleted():
            return AlreadyCompleted(str(key), answer.number, as_datetime(answer.settled_at))
        case records.Busy():
            return Busy(str(key), as_datetime(answer.until), answer.owner)
        case records.NotDue():
            return NotDue(str(key), as_datetime(answer.due))
