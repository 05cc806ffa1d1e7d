"""Doctor: what is wrong with a ledger, its database or its host before anybody's run is.

An *examination* looks at one thing and answers its findings: what was seen, how bad that is, and what to type next. All are
alike: an operation that only looks, or a plain function of a path. Where all is well it says what it saw. Nothing here
changes anything.

    ledger.py     what the ledger holds, on each database: jobs, runs, leases, messages, zones
    sqlite.py     the file, those beside it, and the disk below
    postgres.py   the server, how it is set, and who else holds it up
"""

from __future__ import annotations

from duly.records import record

OK, NOTE, WARNING, TROUBLE = "ok", "note", "warning", "trouble"
SEVERITIES = (OK, NOTE, WARNING, TROUBLE)


@record
class Finding:
    """What an examination saw. `severity`: ok; note (worth to know, nothing to do); warning (will hurt); trouble (hurts now).

    `step` is a line to type; empty where there is nothing to do.
    """

    examination: str
    severity: str
    seen: str
    step: str = ""

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody should do something."""
        return self.severity in (WARNING, TROUBLE)
