"""A day that Celery carries, in a storm: workers and dispatchers killed, messages doubled, queues purged, brokers cut off.

At its end every window that was owed is complete, each has had its effect once, no other has had any, what was killed is on
record, and of a backfill of three at once there were never more.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from amqp.exceptions import AMQPError

from duly.evidence.status import status
from duly.ledger.ripe import outlook
from duly.times import HOUR, MINUTE, parse_instant
from tests.exec.stage import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.on_celery.stage import CeleryStage

FROM = "2026-10-24T22:00:00Z"  # Berlin's 25 October, a day of 25 hours
STEP = 30 * MINUTE
AT_ONCE = 3
AGAIN = ("--again", "1s")

JOBS = """
import time
from tests.daemon.effects import at_once

POLICY = dict(catch_up=duly.EACH, lease="60s", retry_delay="1m", retry_ceiling="1m")

@ledger.job("hourly", duly.hourly("Europe/Berlin"), overlap=True, **POLICY)
def hourly(run):
    time.sleep(0.3)
    done(run)

@ledger.job("quarter", duly.every("15m"), **POLICY)
def quarter(run):
    if run.attempt == 1 and run.key.endswith("45:00Z"):
        done(run)
        raise RuntimeError("after its effect, before its completion")
    time.sleep(0.1)
    done(run)

@ledger.job("local", duly.cron("30 */2 * * *", zone="America/New_York"), inline=True, **POLICY)
def local(run):
    done(run)

@ledger.job("filled", duly.daily("UTC"), overlap=True, **POLICY)
def filled(run):
    time.sleep(0.3)
    done(run, at_once(run, "2026-10-20"))
"""


class Storm:
    """A stage, who works there, and what befalls them."""

    def __init__(self, stage: CeleryStage, *, seed: int, hours: int, sever: Callable[[], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._stage = stage
        self._hours = hours
        self._sever = sever
        self._chance = random.Random(seed)
        stage.clock.set(FROM)
        stage.app_module(JOBS)
        pools = ("prefork", "threads")
        self._pools = [pools[(seed + place) % 2] for place in range(2)]
        self._workers = [self._worker(pool) for pool in self._pools]
        self._dispatchers = [self._dispatcher() for _ in range(2)]

    def _worker(self, pool: str) -> object:
        return self._stage.worker("-c", "3", "-P", pool)

    def _dispatcher(self) -> object:
        return self._stage.dispatcher("--per-job", "6", *AGAIN)

    def go_by(self) -> None:
        """Let the day go by, with a fault at every other step; and a backfill of a month from its first hours on."""
        self._until(lambda: len(self._stage.book.rows("select id from duly_job")) == 4, "the jobs are known")
        self._until(lambda: "filled" in "".join(self._stage.effects()), "the first day is done")
        self._stage.book.job("filled", overlap=1, retry_delay=MINUTE, retry_ceiling=MINUTE)
        self._stage.book.backfill("2026-09-20", "2026-10-20", job="filled", concurrency=AT_ONCE)
        end = parse_instant(FROM) + self._hours * HOUR
        faults = (self._kill_worker, self._kill_dispatcher, self._purge, self._double, self._cut_off)
        while (now := self._stage.clock.now()) < end:
            self._stage.clock.set(now + STEP)
            if self._chance.random() < 0.5:
                fault = self._chance.choice(faults)
                self._wait_for_work()
                fault()
                self.counts[fault.__name__.strip("_")] += 1
        self._stage.clock.advance(2 * MINUTE)
        self._until(self._is_at_rest, "all that is owed is worked")
        self.counts["runs"] = len(self._stage.effects())

    def _until(self, holds: Callable[[], object], what: str) -> None:
        try:
            until(holds, what, seconds=300)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self._stage.logs[-20000:]}") from e

    def _wait_for_work(self) -> None:
        """A fault comes when there is something to be disturbed."""
        seen = len(self._stage.effects())
        self._until(lambda: len(self._stage.effects()) > seen or self._is_at_rest(), "work goes on")

    def _kill_worker(self) -> None:
        running = "select count(*) from duly_run where state = 'running'"
        self._until(lambda: self._stage.book.rows(running) != [(0,)] or self._is_at_rest(), "a run is in hands")
        place = self._chance.randrange(2)
        self._workers[place].kill()  # type: ignore[attr-defined]
        self._workers[place] = self._worker(self._pools[place])

    def _kill_dispatcher(self) -> None:
        place = self._chance.randrange(2)
        self._dispatchers[place].kill()  # type: ignore[attr-defined]
        self._dispatchers[place] = self._dispatcher()

    def _purge(self) -> None:
        self._steadily(self._stage.broker.purge)

    def _double(self) -> None:
        for job in ("hourly", "quarter", "local", "filled", "nobody"):
            for of_backfill in (False, True):
                ledger_id = self._stage.book.store.ledger_id
                arguments = {"job": job, "scope": "", "of_backfill": of_backfill, "ledger_id": ledger_id}
                self._steadily(partial(self._stage.broker.send, "duly.attempt", **arguments))

    def _steadily(self, act: Callable[[], object]) -> None:
        """Do what wants a broker, which may be about to close its connections."""
        for _ in range(3):
            with suppress(OSError, AMQPError):
                act()
                return

    def _cut_off(self) -> None:
        self._sever()

    def _is_at_rest(self) -> bool:
        if self._stage.book.store.read(outlook()).ripe:
            return False
        running = "select count(*) from duly_run where state in ('running', 'open', 'failed')"
        if self._stage.book.rows(running) != [(0,)]:
            self._stage.clock.advance(MINUTE)  # a lease may have to lapse, or a retry to come
            return False
        return True

    def assert_whole(self) -> None:
        """What must hold of the day, whatever befell it."""
        book = self._stage.book
        effects = Counter(self._stage.effects())
        twice = {key for key, times in effects.items() if times > 1}
        assert not twice, f"effects more than once: {twice}"
        states = Counter(dict(book.rows("select state, count(*) from duly_run group by state")))
        assert set(states) == {"completed"}, f"states {states}"
        assert len(effects) == states["completed"], f"{len(effects)} effects of {states} runs"
        seen = book.store.read(status())
        left = [*seen.needs, *seen.unopened, *seen.running, *seen.waiting]
        assert not left, f"left: {left}"
        outcomes = Counter(dict(book.rows("select outcome, count(*) from duly_attempt group by outcome")))
        assert outcomes["completed"] == states["completed"], f"{outcomes} of {states}"
        assert set(outcomes) <= {"completed", "failed", "lost"}, f"outcomes {outcomes}"
        skipped = book.rows("select * from duly_skipped")
        assert not skipped, f"skipped: {skipped}"
        backfills = book.rows("select state from duly_backfill")
        assert backfills == [("done",)], f"backfills: {backfills}"
        filled = [int(by) for run, by in book.rows("select run, by from duly_done") if run.startswith("filled:")]
        assert max(filled) <= AT_ONCE, f"{max(filled)} windows of a backfill of {AT_ONCE} at once"
        self.counts["lost"] = outcomes["lost"]
