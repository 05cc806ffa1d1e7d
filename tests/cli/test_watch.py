"""duly status -w: a screen that is drawn anew on a terminal, a block for each change elsewhere, until Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from duly.schedule.spec import daily
from tests.books import PostgresBook
from tests.servers import Server
from tests.story import SOURCE, Story

PATIENCE = 60.0  # seconds, on a busy machine


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("UTC"), catch_up="each")
    story.fail("close-day")
    return story


class Watcher:
    """A process that watches, what it has written since it was last read, and how it ended."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process, self._descriptor = process, descriptor

    def until(self, is_there: Callable[[str], bool]) -> str:
        """What it writes until that is so."""
        written, deadline = b"", monotonic() + PATIENCE
        while not is_there(written.decode(errors="replace")):
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - monotonic()))
            assert ready, f"nothing more is written after {written!r}"
            more = os.read(self._descriptor, 65536)
            assert more, f"it ended after {written!r}"
            written += more
        return written.decode()

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(PATIENCE)


@contextmanager
def watching(ledger: str, *words: str, seconds: str = "0.05", terminal: bool = False) -> Iterator[Watcher]:
    mine, its = pty.openpty() if terminal else os.pipe()
    environ = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", "DULY_LEDGER": ledger, "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "duly", "status", "-w", seconds, *words], env=environ, stdout=its, stderr=subprocess.PIPE
    )
    os.close(its)
    try:
        yield Watcher(process, mine)
    finally:
        process.kill()
        process.communicate()
        os.close(mine)


def test_in_a_pipe_there_is_a_block_for_each_change_and_none_for_time_that_passes(story: Story) -> None:
    with watching(story.path) as watcher:
        first = watcher.until(lambda text: "complete through" in text and text.endswith("\n"))
        story.clock.advance("10m")  # it is late by more, and that is no news
        story.duly("skip", "close-day", "2026-11-19", "--reason", "a holiday")
        second = watcher.until(lambda text: "(24h)" in text)

        assert watcher.interrupt() == 0

    assert first.startswith("✗ 1 period needs you")
    assert second.startswith("\n✓ nothing needs you"), "a block, and nothing between it and the first"


def test_on_a_terminal_the_screen_is_drawn_over(story: Story) -> None:
    with watching(story.path, "close-day", terminal=True) as watcher:
        watcher.until(lambda text: "retry close-day" in text)
        story.clock.advance("10m")
        drawn = watcher.until(lambda text: text.count("\x1b[H") >= 2)

        assert watcher.interrupt() == 0

    frame = re.split(r"\x1b\[H", drawn)[-1]
    assert "✗ 1 period needs you" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    assert "\x1b[K" in frame


def test_a_program_gets_a_document_for_each_change(story: Story) -> None:
    with watching(story.path, "--format", "keys") as watcher:
        assert watcher.until(lambda text: text.endswith("\n")) == "close-day:2026-11-19[UTC]\n"

        assert watcher.interrupt() == 0


def test_on_postgresql_a_persons_word_is_heard_at_once(server: Server) -> None:
    with server.ledger() as url:
        book = PostgresBook(url, at="2026-10-06T03:00:00Z")
        book.job()
        book.fail(book.take(), retry_in=None)
        with watching(url, seconds="3600") as watcher:
            watcher.until(lambda text: "retry export 2026-10-05" in text and text.endswith("\n"))
            ears = "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen duly'"
            while book.rows(ears) == [(0,)]:
                pass  # it listens soon

            book.retry(book.find()[1])

            assert watcher.until(lambda text: "(24h)" in text).startswith("\n✓ nothing needs you")
            assert watcher.interrupt() == 0


def test_a_job_may_follow_the_bare_flag_and_what_is_no_number_is_refused(story: Story) -> None:
    assert story.duly("status", "close-day", "-w", "soon").code == 64
    assert story.duly("status", "-w", "nobody-knows-it").code == 64
    assert "knows no job 'nobody-knows-it'" in story.duly("status", "-w", "nobody-knows-it").talk
