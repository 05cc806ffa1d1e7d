"""What the stories of alerts begin with: a ledger that somebody looks at, and what was put into the outbox of it."""

from __future__ import annotations

import json
from typing import Any

from duly.evidence.conditions import conditions
from duly.ledger.alerts import Alert, Look, begin_look, newest_alerts, record_look
from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.send import Letter
from duly.ledger.silence import silence, unsilence
from duly.times import DAY
from duly.work.alerts import Alerting, audience_of, look
from tests.books import WORD, Book

OPS = Alerting(to=("ops",))


class Watch:
    """Somebody who looks at a book, and is told as `alerting` says. The first look, of an empty ledger, is made."""

    def __init__(self, book: Book, alerting: Alerting = OPS) -> None:
        self.book = book
        self.alerting = alerting
        self._read = 0
        self.look()

    def look(self) -> None:
        """Look, whoever looked before."""
        assert look(self.book.store, self.alerting, every=0) is not None

    def begin(self) -> Look:
        """Begin a look, which is not written down yet."""
        begun = self.book.store.write(begin_look(0))
        assert begun is not None
        return begun

    def record(self, begun: Look) -> list[str] | None:
        """What the look has found now, if it may still write."""
        found = self.book.store.read(conditions(begun.since))
        return self.book.write(record_look(begun, found, audience_of(self.alerting)))

    def open(self) -> list[tuple[str, str]]:
        """Kind and subject, as people call it, of each alert that is open."""
        return [(alert.kind, alert.about) for alert in reversed(self.alerts()) if alert.state == "open"]

    def alerts(self) -> list[Alert]:
        """All alerts, the newest first."""
        return self.book.store.read(newest_alerts(1_000))

    def documents(self) -> list[dict[str, Any]]:
        """What was put into the outbox since this was asked last, in the order of its runs and messages."""
        rows = self.book.rows(
            """select b.body from duly_message m
                 join duly_message_body b on b.series = m.series and b.nominal = m.nominal and b.revision = m.revision
                                         and b.number = m.number
                 join duly_series s on s.id = m.series
                 join duly_line l on l.id = s.line
                 join duly_job j on j.id = l.job
                where j.name = 'duly.alerts' order by m.nominal, m.number"""
        )
        new = [json.loads(bytes(body)) for (body,) in rows[self._read :]]
        self._read = len(rows)
        return new

    def told(self) -> list[tuple[str, str, str]]:
        """Kind, state and subject of what was put into the outbox since this was asked last."""
        return [(each["kind"], each["state"], each.get("about", "")) for each in self.documents()]

    def silence(self, job: str = "export", kind: str | None = None, *, days: int = 1) -> None:
        until = self.book.store.now() + days * DAY
        self.book.write(silence(job, None, kind, WORD, until=until))

    def unsilence(self, job: str = "export") -> None:
        self.book.write(unsilence(job, None, None, WORD))

    def refused_message(self, window: str = "2026-10-05", to: str = "billing") -> None:
        """A run that has completed with a message that its receiver does not want."""
        letter = Letter(to, "a", "application/json", b"{}")
        self.book.write(complete_or_raise(self.book.take(window), Left(letters=[(letter, f"key of {window}")])))
        self.book.amend("update duly_message set state = 'refused' where destination = ?", to)
