"""Log: what attempts come to, for the standard library's `logging`, by the name `duly`.

A library configures nothing: without a handler of the application's nothing is printed, and without its level nothing is
even put together. The fields of a line are its record's attribute `duly` (docs/monitoring.md).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from duly.work.told import NOTE, fields_of, in_words, line

if TYPE_CHECKING:
    from duly.work.told import Account, Fields

LOGGER = logging.getLogger("duly")
LOGGER.addHandler(logging.NullHandler())


def is_listened_to() -> bool:
    """Whether anybody wants to hear of an attempt that went well."""
    return LOGGER.isEnabledFor(logging.INFO)


def tell(told: Account) -> None:
    """Say what an attempt came to: good news at INFO, anything else at WARNING."""
    level = logging.INFO if told.is_good else logging.WARNING
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", in_words(told), extra={"duly": fields_of(told)})


def note(text: str, fields: Fields | None = None) -> None:
    """Say something else, at INFO."""
    LOGGER.info("%s", text, extra={"duly": fields})


class Lines(logging.Formatter):
    """One line for each record: its words, or as JSON or logfmt its time, its level and its fields.

    A record without fields is an event `note` with its `message`. No traceback is printed: an exception's message may hold
    what no log should.
    """

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        if self._form == "text":
            return record.getMessage()
        fields: Fields = getattr(record, "duly", None) or {"event": NOTE, "message": record.getMessage()}
        return line(self._form, record.levelname.lower(), record.created, fields)
