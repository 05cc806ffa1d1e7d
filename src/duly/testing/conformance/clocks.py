"""Clocks: the ledger's instant is the database's, or the one that was set by hand, in whatever way it is asked for."""

from __future__ import annotations

from time import monotonic

from duly.ledger.ask import Statement, now, one
from duly.ledger.take import renew
from duly.testing.conformance.desk import LEASE, Desk
from duly.testing.conformance.stories import Stories
from duly.times import MINUTE, SECOND

DEADLINE = 0.5
NOW_IN_SQL = Statement("now_in_sql", "select {now}")


class Clocks(Stories):
    """I4: leases are judged by the database's clock, in the transaction that acts on the judgement."""

    def test_it_moves_inside_a_transaction(self, ticking: Desk) -> None:
        """I4: what a lease is held against is now, not when the transaction began."""

        async def until_it_moves() -> tuple[int, int]:
            first = await now()
            deadline = monotonic() + DEADLINE
            while (later := await now()) <= first and monotonic() < deadline:
                pass
            return first, later

        first, later = ticking.store.write(until_it_moves())

        assert later > first

    def test_it_moves_in_the_statements_of_a_transaction(self, ticking: Desk) -> None:
        """I4: `{now}` in a statement is the same clock."""

        async def until_it_moves() -> tuple[int, int, int]:
            first = await now()
            deadline = monotonic() + DEADLINE
            while (await one(NOW_IN_SQL, int) or 0) <= first and monotonic() < deadline:
                pass
            return first, await one(NOW_IN_SQL, int) or 0, await now()

        first, in_sql, last = ticking.store.write(until_it_moves())

        assert first < in_sql <= last

    def test_it_moves_in_the_transaction_of_a_run(self, ticking: Desk) -> None:
        """I4: a run may take hours."""
        with ticking.working() as owned:
            first = owned.drive(now())
            deadline = monotonic() + DEADLINE
            while (later := owned.drive(now())) <= first and monotonic() < deadline:
                pass

        assert later > first

    def test_it_counts_microseconds_since_1970(self, ticking: Desk) -> None:
        """And runs about as fast as any."""
        began, first = monotonic(), ticking.store.now()
        last = ticking.others.read(now())
        took = (monotonic() - began) * SECOND

        assert 0 <= last - first <= took + SECOND
        assert 1_700_000_000 * SECOND < first < 4_000_000_000 * SECOND

    def test_set_by_hand_it_is_followed_in_every_session(self, desk: Desk) -> None:
        """So that leases, grace and retries of every process of a test follow it."""
        desk.store.now()
        at = desk.set_clock("2027-01-01T00:00:00Z")

        assert desk.store.now() == at
        assert desk.store.read(now()) == desk.store.write(now()) == at
        assert desk.store.write(one(NOW_IN_SQL, int)) == at
        assert desk.store.beside(lambda store: store.now()) == at
        assert desk.elsewhere(lambda other: other.now()) == at
        with desk.working() as owned:
            assert owned.drive(now()) == owned.drive(one(NOW_IN_SQL, int)) == at
        if desk.candidate.connect is not None:
            with desk.lent() as tx:
                assert desk.store.run_in(tx, now()) == at

    def test_set_by_hand_it_stands_still(self, desk: Desk) -> None:
        """Until somebody moves it."""
        at = desk.set_clock("2027-01-01T00:00:00Z")
        desk.store.write(desk.note("some time passes"))
        assert desk.store.now() == at

        desk.advance(MINUTE)
        assert desk.store.now() == at + MINUTE

    def test_a_lease_is_counted_from_it(self, desk: Desk) -> None:
        """I4: when it is taken, and when it is renewed."""
        claim = desk.take()
        assert claim.lease_until == desk.store.now() + LEASE

        desk.advance(LEASE // 2)
        assert desk.store.write(renew(claim)) is True

        assert desk.run(claim.run).lease_until == claim.started_at + LEASE // 2 + LEASE
