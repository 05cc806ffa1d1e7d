"""A day of many jobs and several daemons, compressed by a clock that is set by hand; daemons are killed and started again.

At its end every window that was owed is in a named state, each completed run has had its effect once, no other has had any,
and what was killed is on record.
"""

from __future__ import annotations

import random
from collections import Counter

from duly.evidence.status import status
from duly.ledger.ripe import outlook
from duly.times import HOUR, MINUTE, parse_instant
from tests.daemon.stage import Daemon, Stage
from tests.exec.stage import until

FROM = "2026-10-24T22:00:00Z"  # Berlin's 25 October, a day of 25 hours
STEP = 30 * MINUTE

JOBS = """
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
SCHEDULES = (
    lambda zone: duly.hourly(zone),
    lambda zone: duly.daily(zone),
    lambda zone: duly.cron("15 */2 * * *", zone=zone),
    lambda zone: duly.cron("30 2 * * *", zone=zone),
    lambda zone: duly.every("4h"),
)
POLICIES = (duly.EACH, duly.LATEST)

def declare(number):
    schedule = SCHEDULES[number % len(SCHEDULES)](ZONES[number % len(ZONES)])

    policy = POLICIES[number // 7 % 2]

    @ledger.job(f"job-{number}", schedule, catch_up=policy, lease="60s", retry_delay="1m", retry_ceiling="1m")
    def work(run):
        if run.attempt == 1 and number % 10 == 3:
            done(run)
            raise RuntimeError("after its effect, before its completion")
        done(run)

for number in range(int(os.environ["STAGE_JOBS"])):
    declare(number)
"""


class Day:
    """The daemons of a day, and who is to be killed next."""

    def __init__(self, stage: Stage, *, jobs: int, daemons: int, hours: int, seed: int) -> None:
        self._stage = stage
        self._jobs = jobs
        self._hours = hours
        self._chance = random.Random(seed)
        self.killed = 0
        stage.clock.set(FROM)
        stage.module(JOBS)
        self._daemons = [self._start() for _ in range(daemons)]

    def _start(self) -> Daemon:
        return self._stage.daemon("--concurrency", "4", "--poll", "200ms", environ={"STAGE_JOBS": str(self._jobs)})

    def go_by(self) -> None:
        """Let the day go by. Every other hour or so a daemon is killed in the midst of it, and another takes its place."""
        end = parse_instant(FROM) + self._hours * HOUR
        while (now := self._stage.clock.now()) < end:
            self._stage.clock.set(now + STEP)
            if self._chance.random() < 0.25:
                self._kill_one()
        self._stage.clock.advance(2 * MINUTE)  # what the last one held has lapsed
        until(self._is_at_rest, "all that is owed is worked", seconds=600)

    def _kill_one(self) -> None:
        seen = len(self._stage.effects())
        until(lambda: len(self._stage.effects()) > seen or self._is_at_rest(), "work goes on", seconds=600)
        place = self._chance.randrange(len(self._daemons))
        self._daemons[place].kill()
        self._daemons[place] = self._start()
        self.killed += 1

    def _is_at_rest(self) -> bool:
        if self._stage.book.rows("select count(*) from duly_job") != [(self._jobs,)]:
            return False
        if self._stage.book.store.read(outlook()).ripe:
            return False
        running = "select count(*) from duly_run where state in ('running', 'open', 'failed')"
        if self._stage.book.rows(running) != [(0,)]:
            self._stage.clock.advance(MINUTE)  # a lease may have to lapse, or a retry to come
            return False
        return True

    def assert_whole(self) -> None:
        """What must hold of the day, whoever did what of it."""
        book = self._stage.book
        effects = Counter(self._stage.effects())
        assert {key for key, times in effects.items() if times > 1} == set()
        states = Counter(dict(book.rows("select state, count(*) from duly_run group by state")))
        assert set(states) <= {"completed", "skipped"}, states
        assert len(effects) == states["completed"]
        seen = book.store.read(status())
        assert (seen.needs, seen.unopened, seen.running, seen.waiting) == ([], [], [], [])
        # Each attempt ended in a way that is on record, and exactly one of each completed run completed it.
        outcomes = Counter(dict(book.rows("select outcome, count(*) from duly_attempt group by outcome")))
        assert outcomes["completed"] == states["completed"]
        assert set(outcomes) <= {"completed", "failed", "lost"}, outcomes
        assert book.rows("select count(*) from duly_skipped where reason not like 'catch-up latest%'") == [(0,)]
