"""An older copy of the database takes over, at the same address: what was committed since is forgotten, and not for ever done.

A process that was there notices and writes nothing more until somebody says up to when the ledger is whole. What left the
database since is in doubt then; what was written into it is done again, once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly
from duly.errors import LedgerWentBack
from duly.testing.clock import HandClock
from duly.times import instant_text
from tests.books import PostgresBook
from tests.exec.stage import environment
from tests.faults.account import CREDIT, Account
from tests.faults.cluster import Cluster

CHARGED = ["2026-10-05", "2026-10-06"]  # the days after the copy was made


class Site:
    """An account on a server of which there is an older copy, and a provider elsewhere that is charged."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.account = Account(PostgresBook(cluster.databases.new_database()))
        self.charges = folder / "charges"
        self.charges.touch()
        self.credit, self.charge = self.jobs(self.account.ledger())
        self.credit.run("2026-10-04")
        self.charge.run("2026-10-04")
        self._copy = self._copied()
        self.copied_at = self.account.clock.now()

    def jobs(self, ledger: duly.Ledger[Any]) -> tuple[duly.Job[Any], duly.Job[Any]]:
        """One job whose effect is in this database, one whose effect is elsewhere."""
        credit = self.account.credit(ledger)

        @ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external", overlap=True)
        def charge(run: duly.Run[Any]) -> None:
            with self.charges.open("a") as book:
                book.write(f"{run.label}\n")

        return credit, charge

    @property
    def charged(self) -> list[str]:
        """What the provider was told, which no copy of ours forgets."""
        return self.charges.read_text().split()

    def _copied(self) -> Path:
        self.account.close()
        self.cluster.stop()
        copy = self.cluster.keep_copy()
        self.cluster.start()
        return copy

    def fail_over(self) -> None:
        """Let the older copy take over, at the same address."""
        now = self.account.clock.now()
        self.account.close()
        self.cluster.stop()
        self.cluster.put_back(self._copy)
        self.cluster.start()
        HandClock(self.account.url).set(now)  # time did not go back; the clock that was there would notice, too

    def say_restored(self) -> str:
        """A person says up to when the ledger is whole; which runs are in doubt."""
        at = instant_text(self.copied_at)
        command = [sys.executable, "-m", "duly", "db", "restored", "--at", at, "--reason", "an older copy took over"]
        ended = subprocess.run(
            command, env=environment(DULY_LEDGER=self.account.url), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    site = Site(cluster, tmp_path)
    yield site
    site.account.close()


def worked_since_the_copy(site: Site) -> None:
    """Two days whose completions the copy does not know."""
    site.account.clock.advance("1d")
    for day in CHARGED:
        site.credit.run(day)
        site.charge.run(day)


def first_word(job: duly.Job[Any], day: str) -> object:
    """Its answer once connections of before the failover were dropped."""
    for _ in range(3):
        try:
            return job.run(day)
        except LedgerWentBack:
            raise
        except (duly.LedgerUnavailable, psycopg.Error):
            continue
    return job.run(day)


def test_who_was_there_writes_nothing_more_until_somebody_says_what_is_whole(site: Site) -> None:
    worked_since_the_copy(site)
    site.fail_over()

    for job in (site.credit, site.charge):
        with pytest.raises(LedgerWentBack, match="duly db restored"):
            first_word(job, "2026-10-05")

    assert site.account.days == ["2026-10-04"]
    assert site.charged == ["2026-10-04", *CHARGED]


def test_asking_again_and_again_does_not_make_it_whole(site: Site) -> None:
    worked_since_the_copy(site)
    site.fail_over()

    for _ in range(100):
        with pytest.raises(LedgerWentBack):
            first_word(site.charge, "2026-10-05")

    assert site.charged == ["2026-10-04", *CHARGED]


def test_after_it_is_said_what_left_the_database_is_in_doubt_and_the_rest_is_done_again_once(site: Site) -> None:
    worked_since_the_copy(site)
    site.fail_over()

    doubted = site.say_restored()
    for day in CHARGED:
        assert isinstance(first_word(site.credit, day), duly.Completed)
        assert isinstance(site.credit.run(day), duly.AlreadyCompleted)
        with pytest.raises(duly.OutcomeUnknown):
            first_word(site.charge, day)

    assert doubted.split() == [f"charge:{day}[UTC]" for day in CHARGED]
    assert site.account.days == ["2026-10-04", *CHARGED]
    assert site.charged == ["2026-10-04", *CHARGED]


def test_a_worker_in_the_middle_of_its_effect_commits_nothing_into_the_older_copy(site: Site) -> None:
    site.account.clock.advance("1d")
    worker = site.account.worker("from duly.errors import LedgerWentBack\n" + CREDIT + FOLLOWING)
    for day in ("2026-10-05", "2026-10-06"):
        worker.reaches("before the effect")
        if day == "2026-10-05":
            worker.go_on()
            worker.reaches("after the effect")
            worker.go_on()
            worker.reaches("Completed")
    site.fail_over()

    worker.go_on()

    assert worker.process.stdout is not None
    said = worker.process.stdout.readline().strip()
    worker.kill()
    assert said not in ("Completed", "AlreadyCompleted", "after the effect")
    assert site.account.days == ["2026-10-04"]


FOLLOWING = """
def said(window):
    try:
        return type(credit.run(window)).__name__
    except Exception as e:
        return type(e).__name__

for window in ("2026-10-05", "2026-10-06"):
    print(said(window), flush=True)
"""


def test_who_comes_new_cannot_notice_which_is_why_somebody_has_to_say_it(site: Site) -> None:
    """What a ledger has forgotten it cannot tell: a process that was not there believes it."""
    worked_since_the_copy(site)
    site.fail_over()
    _, charge = site.jobs(site.account.ledger())

    assert isinstance(charge.run("2026-10-05"), duly.Completed)

    assert site.charged == ["2026-10-04", *CHARGED, "2026-10-05"]


def test_a_resolved_charge_goes_on_as_the_person_said(site: Site) -> None:
    worked_since_the_copy(site)
    site.fail_over()
    site.say_restored()
    _, known, _ = site.account.book.find("2026-10-05", job="charge")
    _, unknown, _ = site.account.book.find("2026-10-06", job="charge")

    site.account.book.resolve(known, done=True)
    site.account.book.resolve(unknown, done=False)

    assert isinstance(first_word(site.charge, "2026-10-05"), duly.AlreadyCompleted)
    assert isinstance(site.charge.run("2026-10-06"), duly.Completed)
    assert site.charged == ["2026-10-04", *CHARGED, "2026-10-06"]
