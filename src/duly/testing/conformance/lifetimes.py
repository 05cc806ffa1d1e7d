"""Lifetimes: what a store is after it was closed, and what is found when the ledger is opened again."""

from __future__ import annotations

from typing import Any

import pytest

from duly.ledger.address import by_key, key_of
from duly.ledger.ask import Statement, one
from duly.ledger.complete import complete_or_raise, keep_text
from duly.ledger.events import tell
from duly.ledger.records import RunId
from duly.ledger.resolve import reopen
from duly.ledger.take import look
from duly.schedule.keys import parse_key
from duly.schedule.spec import cron, hourly, weekly
from duly.testing.conformance.desk import WORD, Desk
from duly.testing.conformance.stories import Stories
from duly.testing.conformance.turns import PATIENCE
from duly.times import parse_instant

TOLD = Statement(
    "told",
    "select series, nominal, revision, attempt_id, by, reason, detail from duly_event where kind = :kind",
)

# Identities are 64-bit integers, ids any bytes, names and reasons any text.
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
AWKWARD = "naïve — “quotes” 'single' \"double\" 100 % :name {now} ?\n\ttail \U0001f4d2"

# Berlin set its clocks back at 01:00 UTC on 2026-10-25: from 02:00 to 03:00 twice. A week is named by its Monday.
KEPT = {
    "hourly": (hourly("Europe/Berlin"), "2026-10-25T02~2", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
    "weekly": (weekly("Asia/Kathmandu"), "2026-W42", "2026-10-11T18:15:00Z", "2026-10-18T18:15:00Z"),
    "cron": (
        cron("30 2 * * *", zone="Europe/Berlin"),
        "2026-10-25T02:30:00",
        "2026-10-24T00:30:00Z",
        "2026-10-25T00:30:00Z",
    ),
}


class Lifetimes(Stories):
    """What was written is what is read, by whoever opens the ledger next."""

    def test_a_store_that_was_closed_may_be_used_again(self, desk: Desk) -> None:
        """Closing ends connections, not the store; and closing twice is closing."""
        desk.store.write(desk.note("before"))
        desk.store.close()
        desk.store.close()

        desk.store.write(desk.note("after"))
        claim = desk.take()
        with desk.working() as owned:
            owned.complete(complete_or_raise(claim))

        assert desk.store.read(desk.all_notes()) == ["after", "before"]
        assert desk.state(claim.run) == "completed"

    def test_a_closed_store_keeps_nobody_waiting(self, desk: Desk) -> None:
        """Whatever it had looked at or written."""
        desk.store.write(desk.touch())
        desk.store.read(desk.all_notes())
        desk.store.close()

        assert desk.others.write(desk.touch(), busy_seconds=PATIENCE) == 1

    def test_a_ledger_says_who_it_is_to_everybody(self, desk: Desk) -> None:
        """Its id guards against completing in the wrong database, its namespace makes the keys for others."""
        assert desk.store.ledger_id
        assert (desk.store.ledger_id, desk.store.namespace) == (desk.others.ledger_id, desk.others.namespace)
        assert desk.store.clock_by_hand

    def test_another_ledger_is_another(self, desk: Desk, ticking: Desk) -> None:
        """And knows by which clock it goes."""
        assert desk.store.ledger_id != ticking.store.ledger_id
        assert not ticking.store.clock_by_hand

    def test_values_come_back_as_they_were(self, desk: Desk) -> None:
        """Integers of 64 bits, any bytes, any text, and nothing as nothing."""
        extremes = RunId(LOWEST, HIGHEST, 0), bytes(range(256))
        kind = f"told-{desk.job}"

        desk.store.write(tell(kind, run=extremes[0], attempt_id=extremes[1], by=AWKWARD, reason="", detail=AWKWARD))
        desk.store.write(tell(f"{kind}-empty", by=""))

        told = desk.others.read(one(TOLD, _row, kind=kind))
        empty = desk.others.read(one(TOLD, _row, kind=f"{kind}-empty"))
        assert told == (LOWEST, HIGHEST, 0, bytes(range(256)), AWKWARD, "", AWKWARD)
        assert empty == (None, None, None, None, "", "", "")

    def test_a_long_text_is_kept_whole_and_replaced_whole(self, desk: Desk) -> None:
        """What lies beside an attempt is as long as it is."""
        claim = desk.take()
        texts = Statement("texts", "select body from duly_text where series = :series and nominal = :nominal")

        for body in ("first", AWKWARD * 5_000):
            desk.store.write(keep_text(claim.run, 1, "output", body))

        kept = desk.others.read(one(texts, str, series=claim.run.series, nominal=claim.run.nominal))
        assert kept == AWKWARD * 5_000

    @pytest.mark.parametrize("kind", KEPT)
    def test_keys_and_bounds_are_those_of_the_one_who_opened_the_window(self, desk: Desk, kind: str) -> None:
        """I8: whoever comes later adopts them; a key names the same run everywhere."""
        schedule, window, start, end = KEPT[kind]
        desk.set_clock("2026-10-26T03:00:00Z")
        desk.declare(schedule, scope="acme/ü %")
        claim = desk.take(window, scope="acme/ü %")
        name = str(desk.store.read(key_of(claim.run)))

        found = desk.elsewhere(lambda other: other.read(by_key(parse_key(name))))

        assert name.startswith("acme%2Fü%20%25/")
        assert (found.run, str(found.key)) == (claim.run, name)
        assert found.row is not None
        assert (found.row.window_start, found.row.window_end) == (parse_instant(start), parse_instant(end))
        assert found.row == desk.store.read(look(claim.run))

    def test_a_revision_has_a_key_of_its_own(self, desk: Desk) -> None:
        """And the bounds of the one that it replaces."""
        claim = desk.take()
        desk.store.write(complete_or_raise(claim))
        again = desk.store.write(reopen(claim.run, WORD))

        name = str(desk.others.read(key_of(again.id)))

        assert name.endswith("#2")
        assert desk.others.read(by_key(parse_key(name))).run == again.id
        before = desk.run(claim.run)
        assert (again.window_start, again.window_end) == (before.window_start, before.window_end)


def _row(*values: Any) -> tuple[Any, ...]:
    return values
