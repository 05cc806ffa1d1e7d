"""The lease keeper: renews the leases of the claims that this process works, from one thread of its own.

A lease is renewed when a third of it is over. That a renewal could not be written (a busy ledger, the run's own open
transaction) is no loss: while somebody else writes, nobody can take over. That it was *refused* is: the claim's owner is
told, at once; and so, once, when a person asked the attempt to stop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import monotonic

from duly.errors import DulyError
from duly.ledger.progress import Progress, report
from duly.ledger.records import Claim
from duly.ledger.take import ASKED_TO_STOP, LOST, beat
from duly.store.protocol import Store
from duly.times import SECOND
from duly.work.waiting import LOOK_SECONDS

_IDLE_SECONDS = 1.0  # a thread for each of many short runs would cost more than they do
RENEW_SECONDS = 1.0  # how long a renewal waits for its turn before others are looked at
REPORT_SECONDS = 2.0  # how often an attempt's progress is looked at
REPORT_BUSY_SECONDS = 0.1  # and how long it waits for its turn: the next look tells as well


class _Inside:
    """Those keepers that are inside a database's library. A process must not fork meanwhile: its child would inherit locks that
    nobody frees. They do not wait for each other: that one ledger does not answer is no reason to lose the leases of another.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self.many = 0
        self.is_forking = False

    def __enter__(self) -> None:
        with self._changed:
            while self.is_forking:
                self._changed.wait()
            self.many += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.many -= 1
            self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until nobody is inside, and let nobody in."""
        self._changed.acquire()
        while self.is_forking:  # another thread's turn
            self._changed.wait()
        self.is_forking = True
        while self.many:
            self._changed.wait()

    def after_fork(self) -> None:
        """Let them in again, in the parent; in the child there is nobody."""
        self.is_forking = False
        self._changed.notify_all()
        self._changed.release()


_in_database = _Inside()
os.register_at_fork(
    before=_in_database.before_fork,
    after_in_parent=_in_database.after_fork,
    after_in_child=_in_database.after_fork,
)


class LeaseKeeper:
    """Keeps leases until they are dropped. Its thread starts with the first claim and ends a while after the last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hand = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        """As new; in a forked child too, for the claims of the parent are not its own, and the parent's thread is not there."""
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._kept: dict[bytes, _Kept] = {}
        self._looks_at = 0  # when the thread looks next, by itself
        self._report_at = 0  # before it, no progress is written
        self._thread: threading.Thread | None = None

    def keep(
        self,
        claim: Claim,
        lost: Callable[[], None],
        asked: Callable[[], None],
        progress: Callable[[], Progress | None],
    ) -> None:
        """Renew the claim's lease from now on; call `lost` once if another attempt has taken the run over, and `asked` once if
        a person asked this one to stop. Its `progress` is looked at every few seconds, and written when it is another.
        """
        if self._pid != os.getpid():
            self._begin_anew()
        with self._changed:
            kept = self._kept[claim.attempt_id] = _Kept(claim, lost, asked, progress, self._now() + claim.lease // 3)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="duly-lease-keeper", daemon=True)
                self._thread.start()
            elif self._store.clock_by_hand or kept.renew_at < self._looks_at:
                # Else it looks in time by itself: to wake it for every short run would cost more than the run.
                self._changed.notify()

    def drop(self, claim: Claim) -> None:
        """Stop renewing: the attempt has ended."""
        if self._pid != os.getpid():  # forked, perhaps while the parent's thread held what we would wait for
            return
        with self._changed:
            self._kept.pop(claim.attempt_id, None)

    def _work(self) -> None:
        try:
            while True:
                with self._changed:
                    if not self._kept:
                        if not self._wait(_IDLE_SECONDS) and not self._kept:
                            self._thread = None
                            return
                        continue
                    now = self._now()
                    told = self._told(now)
                    first = min(self._kept.values(), key=lambda kept: kept.renew_at)
                    left = first.renew_at - now
                    if left > 0 and not told:
                        self._wait(LOOK_SECONDS if self._store.clock_by_hand else min(left / SECOND, REPORT_SECONDS))
                        continue
                for kept in told:
                    self._report(kept)
                if left <= 0:
                    self._renew(first)
        finally:
            with _in_database:
                self._store.close()

    def _wait(self, seconds: float) -> bool:
        """Sleep for so long, or until a claim has to be looked at sooner. False: the time is over."""
        self._looks_at = self._now() + int(seconds * SECOND)
        return self._changed.wait(seconds)

    def _now(self) -> int:
        """By a clock of this host, which need not be asked for across a network: only how much time passes counts here.

        One that is set by hand is the ledger's own.
        """
        if not self._store.clock_by_hand:
            return int(monotonic() * SECOND)
        try:
            with _in_database:
                self._hand = self._store.now()
        except DulyError:  # it cannot be reached: as it was
            pass
        return self._hand

    def _told(self, now: int) -> list[_Kept]:
        """The claims whose progress is to be written now."""
        if now < self._report_at:
            return []
        told = [kept for kept in self._kept.values() if kept.progress() is not kept.written]
        if told:
            self._report_at = now + int(REPORT_SECONDS * SECOND)
        return told

    def _report(self, kept: _Kept) -> None:
        """Write how far an attempt is. Where others are writing, the next look tells: nothing is decided by it."""
        progress = kept.progress()
        if progress is None:
            return
        try:
            with _in_database:
                self._store.write(report(kept.claim, progress), durable=False, busy_seconds=REPORT_BUSY_SECONDS)
        except DulyError:
            return
        kept.written = progress

    def _renew(self, kept: _Kept) -> None:
        try:
            with _in_database:
                heard = self._store.write(beat(kept.claim), busy_seconds=RENEW_SECONDS)
        except DulyError:  # not decided: try again soon
            kept.renew_at = self._now() + max(kept.claim.lease // 10, int(LOOK_SECONDS * SECOND))
            return
        kept.renew_at = self._now() + kept.claim.lease // 3
        if heard == LOST:
            with self._changed:
                was_kept = self._kept.pop(kept.claim.attempt_id, None)
            if was_kept is not None:
                kept.lost()
        elif heard == ASKED_TO_STOP and not kept.is_asked:
            kept.is_asked = True
            kept.asked()


class _Kept:
    __slots__ = ("asked", "claim", "is_asked", "lost", "progress", "renew_at", "written")

    def __init__(
        self,
        claim: Claim,
        lost: Callable[[], None],
        asked: Callable[[], None],
        progress: Callable[[], Progress | None],
        renew_at: int,
    ) -> None:
        self.claim = claim
        self.lost = lost
        self.asked = asked
        self.progress = progress
        self.is_asked = False
        self.written: Progress | None = None
        self.renew_at = renew_at
