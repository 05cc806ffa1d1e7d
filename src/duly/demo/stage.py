"""The stage: a ledger in a folder with a table beside it, the processes that work on it, and what the database then says."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import duly

# Python's own startup aside, a worker takes milliseconds. Long enough for a machine under load; the demo must end.
PATIENCE_SECONDS = 30


class NotAsClaimed(Exception):
    """A step of the demo did not end as it should."""


class Stage:
    """A ledger, the business's own table in the same file, and processes."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "demo.db")
        self.url = f"sqlite:///{self.path}"
        self._workers: list[subprocess.Popen[str]] = []
        duly.sqlite(self.path).close()
        connection = sqlite3.connect(self.path)
        connection.executescript(
            "create table account (name text primary key, units integer not null); insert into account values ('acme', 0);"
        )
        connection.close()

    # -- processes ------------------------------------------------------------------------------------------------------

    def worker(self, how: str, day: str) -> subprocess.Popen[str]:
        """A worker process, ready and waiting for its line."""
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "duly.demo.worker", self.path, how, day],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._workers.append(worker)
        return worker

    def work(self, how: str, day: str) -> str:
        """Start a worker, let it work, and answer what it said."""
        (said,) = self.work_at_once(1, how, day)
        return said

    def work_at_once(self, count: int, how: str, day: str) -> list[str]:
        """Start so many workers, let them go all at once when the last is ready, and answer what each said."""
        workers = [self.worker(how, day) for _ in range(count)]
        for worker in workers:
            heard(worker, "ready")
        for worker in workers:
            go(worker)
        return [self._last_words(worker) for worker in workers]

    def _last_words(self, worker: subprocess.Popen[str]) -> str:
        try:
            said, _ = worker.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as e:
            raise NotAsClaimed(f"a worker did not end within {PATIENCE_SECONDS} s") from e
        expect("a worker's exit code", worker.returncode, 0)
        return said.strip()

    def duly(self, *words: str, ends_with: int = 0) -> str:
        """Run a command line on this ledger, as a process; answer its standard output. Its exit code is part of the claim."""
        line = [*words, "--ledger", self.url]
        if "--" in words:  # the command comes last
            place = words.index("--")
            line = [*words[:place], "--ledger", self.url, *words[place:]]
        try:
            ended = subprocess.run(
                [sys.executable, "-P", "-m", "duly", *line],
                env={name: value for name, value in os.environ.items() if not name.startswith("DULY_")},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as e:
            raise NotAsClaimed(f"duly {words[0]} did not end within {PATIENCE_SECONDS} s") from e
        if ended.returncode != ends_with:
            raise NotAsClaimed(f"duly {words[0]} ended with {ended.returncode}, not {ends_with}:\n{ended.stderr}")
        return ended.stdout

    def document(self, *words: str) -> Any:
        """What a command answers with --json."""
        return json.loads(self.duly(*words, "--json"))

    def now(self) -> datetime:
        """The instant, in UTC."""
        return datetime.now(UTC)

    def close(self) -> None:
        """End the workers that are still there: those of a step that failed."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()

    # -- what the database says -----------------------------------------------------------------------------------------

    def units(self) -> int:
        """The account's units."""
        return int(self._one("select units from account where name = 'acme'"))

    def state(self, day: str) -> str:
        """The state of the day's run."""
        return str(self._one("select state from duly_run_readable where job = 'credit' and nominal like ?", f"{day}%"))

    def attempts(self, day: str) -> list[str]:
        """How each attempt at the day ended, first to last."""
        rows = self._rows(
            "select a.outcome from duly_attempt_readable a"
            " join duly_run r on (r.series, r.nominal, r.revision) = (a.series, a.nominal, a.revision)"
            " join duly_series s on s.id = r.series join duly_line l on l.id = s.line join duly_job j on j.id = l.job"
            " where j.name = 'credit' and strftime('%Y-%m-%d', r.nominal / 2, 'unixepoch') = ? order by a.number",
            day,
        )
        return [str(outcome) for (outcome,) in rows]

    def completions(self) -> int:
        """How many attempts have completed a run of the credit."""
        return int(self._one("select count(*) from duly_run_readable where job = 'credit' and state = 'completed'"))

    def _one(self, sql: str, *values: str) -> Any:
        rows = self._rows(sql, *values)
        if len(rows) != 1:
            raise NotAsClaimed(f"{len(rows)} rows where there is one: {sql}")
        return rows[0][0]

    def _rows(self, sql: str, *values: str) -> list[Any]:
        connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()


def expect(what: str, seen: object, claimed: object) -> None:
    """Raise `NotAsClaimed` where what is seen is not what was claimed."""
    if seen != claimed:
        raise NotAsClaimed(f"{what}: {seen!r}, and not {claimed!r}")


def go(worker: subprocess.Popen[str]) -> None:
    """Give a worker its line."""
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def heard(worker: subprocess.Popen[str], word: str) -> None:
    """Read a worker's next line, which is this word."""
    assert worker.stdout is not None
    expect("what a worker said", worker.stdout.readline().strip(), word)
