"""Commands: each attempt is a child process that a thread of the daemon watches, as `duly exec` watches its own."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from duly.errors import raise_if_refused
from duly.ledger import states
from duly.ledger.open import Idle
from duly.ledger.register import declare, is_declared
from duly.ledger.scopes import scopes_to_work
from duly.records import replace
from duly.work import log
from duly.work.answers import Attempted, Completed
from duly.work.child import KILL_AFTER
from duly.work.daemon.bell import Bell
from duly.work.daemon.crew import TRIGGER, CommandFailed, NotBegun
from duly.work.job import for_scope
from duly.work.poke import Poke, Report
from duly.work.told import account_of

if TYPE_CHECKING:
    from duly.ledger.ripe import Ripe
    from duly.redaction import Redaction
    from duly.store.protocol import Store
    from duly.work.configuration import JobEntry
    from duly.work.daemon.crew import Answer
    from duly.work.probe import Probed

_KILL_LOOK_SECONDS = 1.0  # at the clock, once a child was told to end
_LOOK_SECONDS = 0.05  # at a child whose end nothing tells: where there are no file descriptors of processes


class Commands:
    """Works a job whose work is a command of the configuration."""

    def __init__(
        self,
        entry: JobEntry,
        pool: ThreadPoolExecutor,
        store: Store,
        environment: Mapping[str, str],
        secrets: Redaction | None = None,
    ) -> None:
        self.name = entry.name
        self._declared = entry.declaration
        # What waits for its retry gives its place back: another attempt is given one when the time has come.
        self._probe = entry.probe(environment)
        self.has_probe = self._probe is not None
        order = entry.order(environment, TRIGGER)
        self._order = replace(order, retry_in_place=False, only_one=True, redaction=secrets)
        self._pool = pool
        self._store = store
        self._ears: set[Ears] = set()
        self._guard = threading.Lock()

    def lines(self) -> list[str]:
        scopes = list(self._declared.scopes or self._store.read(scopes_to_work(self.name)))
        for scope in scopes:
            declared = for_scope(self._declared, scope, self._declared.scopes)
            if not raise_if_refused(self._store.read(is_declared(declared))):
                raise_if_refused(self._store.write(declare(declared)))
        return scopes

    def has(self, scope: str) -> bool:
        return self._declared.scopes is None or scope in self._declared.scopes

    def attempt(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        self._pool.submit(self._attempt, ripe).add_done_callback(done)

    def _attempt(self, ripe: Ripe) -> Answer:
        declared = for_scope(self._declared, ripe.scope, self._declared.scopes)
        ears = Ears(self._store)
        with self._guard:
            self._ears.add(ears)
        try:
            poke = Poke(self._store, declared, self._order, ears, lambda _: None)
            report = poke.attempt_next(of_backfill=ripe.backfill)
            if isinstance(report, Idle):
                return report
            log.tell(account_of(report))
            (run,) = poke.reports
            return [Attempted(run, str(report.key), report.number, _outcome_of(report))]
        finally:
            with self._guard:
                self._ears.discard(ears)
            ears.close()

    def ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        if self._probe is None:
            return []
        from duly.work.probe import ask_about_all

        return ask_about_all(self._store, self.name, None, self._probe, is_over=is_over)

    def leave(self) -> None:
        """What is attempted is attempted here."""

    def end(self) -> None:
        """Tell each command to end: SIGTERM."""
        with self._guard:
            for ears in self._ears:
                ears.ask_to_end()


def _outcome_of(report: Report) -> Completed | Exception:
    if report.state == states.COMPLETED:
        return Completed(str(report.key), report.number)
    return NotBegun(report.cause) if report.state == states.OPEN else CommandFailed(f"{report.state}: {report.cause}")


class _Sent(NamedTuple):
    """A signal that the daemon passes on."""

    si_signo: int
    si_code: int = 0


class Ears:
    """What a thread hears that runs a child: the child's end, and that it is to be ended. Signals come to the main thread."""

    def __init__(self, store: Store) -> None:
        self.before: frozenset[int] = frozenset()
        self.asked_to_end = 0
        self._store = store
        self._kill_at: int | None = None
        self._bell = Bell()
        self._child: int | None = None
        self._is_told = True

    def ask_to_end(self) -> None:
        """Say that the child is to end. May be called in any thread."""
        self._is_told = False
        self.asked_to_end = signal.SIGTERM
        self._bell.ring()

    def end_is_wanted(self) -> bool:
        return bool(self.asked_to_end)

    def in_foreground(self) -> bool:
        """Never: the keyboard's signals are for the daemon."""
        return False

    def watch(self, pid: int) -> None:
        with suppress(AttributeError, OSError):
            self._child = os.pidfd_open(pid)

    def wait(self, seconds: float) -> _Sent | None:
        """Wait for the child's end or for word, for so long at most; the word, if it is new."""
        ends = [self._bell.descriptor, *([] if self._child is None else [self._child])]
        if self._kill_at is not None:
            seconds = min(seconds, _KILL_LOOK_SECONDS)
        ready, _, _ = select.select(ends, [], [], seconds if self._child is not None else min(seconds, _LOOK_SECONDS))
        if self._child in ready and self._child is not None:  # it stays ready for ever
            os.close(self._child)
            self._child = None
        self._bell.wait(0)
        if not self._is_told:
            self._is_told = True
            self._kill_at = self._store.now() + KILL_AFTER
            return _Sent(self.asked_to_end)
        if self._kill_at is not None and self._store.now() >= self._kill_at:
            self._kill_at = None
            return _Sent(signal.SIGKILL)
        return None

    def close(self) -> None:
        """Give back what it listens with."""
        if self._child is not None:
            os.close(self._child)
            self._child = None
        self._bell.close()
