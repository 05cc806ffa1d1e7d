"""duly status -w: a screen that is drawn anew on a terminal, a block for each change elsewhere, until Ctrl-C."""

from __future__ import annotations

import os
import pty
import queue
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import pytest

from duly.cli import watch as watch_module
from duly.cli.watch import Look, watch
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


def test_control_c_ends_it_whatever_it_is_at(story: Story) -> None:
    """Wherever the signal is met, in the loop or in what it waits with: it ends with 0.

    In a thread of its own: one that is interrupted where Python never is may go on with an exception that is over.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_interrupt_everywhere, story.path).result()


def _interrupt_everywhere(path: str) -> None:
    line = Interrupted(at=0)
    while line.met:
        line = Interrupted(at=line.at + 1)

        def look(_: object, line: Interrupted = line) -> Look:
            line.looks += 1
            return Look("", line.looks)

        with line:
            assert watch(path, look, 0.01, draws=False) == 0, line.met
    assert line.at > 20, "it met none"


class Interrupted:
    """Ctrl-C at the so-and-so-manieth line that watching comes to; at its third look if it comes to fewer."""

    FILES = (watch_module.__file__, threading.__file__, queue.__file__)

    def __init__(self, at: int) -> None:
        self.at, self.looks, self.met, self._lines = at, 0, "the first", 0

    def __enter__(self) -> None:
        self.met = ""
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        self._lines += event == "line" and self.looks > 0
        if self._lines == self.at or self.looks == 3:
            sys.settrace(None)
            self.met = f"{frame.f_code.co_filename}:{frame.f_lineno}" if self.looks < 3 else ""
            raise KeyboardInterrupt
        return self._trace


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
