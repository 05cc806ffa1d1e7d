"""Kept output: what a command says goes through us as it comes, and the last of it is kept, without secrets.

A thread for each stream reads what the command writes, writes it where it would have gone, and remembers no more than the
last of it. The streams are kept apart: a chatty one pushes nothing of the other out, and no line of one tears a secret of the
other.
They are redacted where all of it is still there, and cut afterwards, so that a secret across a cut is hidden too.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.redaction import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duly.redaction import Redaction

LARGEST = 1 << 16
STREAMS = ("stdout", "stderr")
# What the command itself wrote is in the pipe when it has ended. What outlived it may hold the pipe open for ever.
PATIENCE_SECONDS = 0.5
_PIECE = 1 << 16
_IN_PIPE = 1 << 20  # bytes that are still passed on then, at most: as much as a pipe holds


def parse_size(text: str) -> int:
    """A number of bytes, as `16k` or `4096`. Raises `Misuse` for one that is not from 1 to 64k."""
    digits = text.removesuffix("k")
    if digits.isascii() and digits.isdigit() and len(digits) < 8:
        size = int(digits) * (1024 if text.endswith("k") else 1)
        if 1 <= size <= LARGEST:
            return size
    raise Misuse(f"{text!r} is no size from 1 to 64k; write 16k")


class Stream:
    """One of the command's streams. `write_end` is the command's; what it writes goes to `sink`."""

    def __init__(self, sink: int, most: int) -> None:
        self._read_end, self.write_end = os.pipe()
        self._sink = sink
        self._most = most + 4 * LONGEST  # a character may take four bytes
        self._pieces: list[bytes] = []
        self._held = 0
        self.length = 0  # bytes that came
        self._guard = threading.Lock()
        self._stop, self._told = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, name="duly-output", daemon=True)

    def begin(self) -> None:
        """The command has its end: pass on what comes."""
        os.close(self.write_end)
        self.write_end = -1
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until the stream has ended, for so long at most."""
        if self._thread.ident is not None:
            self._thread.join(max(seconds, 0.0))

    def close(self) -> None:
        """Pass on what the pipe still holds, and end."""
        os.close(self._told)
        if self.write_end >= 0:
            os.close(self.write_end)
        if self._thread.ident is not None:
            self._thread.join()  # whoever reads our own output may be slow, as for any command
        for descriptor in (self._read_end, self._stop):
            if descriptor >= 0:
                os.close(descriptor)

    def last(self) -> bytes:
        """The last of what came, with what is looked at before it."""
        with self._guard:
            return b"".join(self._pieces)

    def _pass_on(self) -> None:
        try:
            left = _IN_PIPE
            while left > 0:
                ready, _, _ = select.select([self._read_end, self._stop], [], [])
                if self._read_end not in ready:
                    return
                piece = os.read(self._read_end, _PIECE)
                if not piece:
                    return
                self._remember(piece)
                self._write(piece)
                if self._stop in ready:
                    left -= len(piece)
        except OSError:
            # Whoever read our output has gone, or its disk is full. The command is to hear of it as if it had written itself.
            return
        finally:
            os.close(self._read_end)
            self._read_end = -1

    def _remember(self, piece: bytes) -> None:
        with self._guard:
            self._pieces.append(piece)
            self._held += len(piece)
            self.length += len(piece)
            while self._held - len(self._pieces[0]) >= self._most:
                self._held -= len(self._pieces.pop(0))
            if len(self._pieces) > 64:  # one who writes byte by byte
                self._pieces = [b"".join(self._pieces)[-self._most :]]
                self._held = len(self._pieces[0])

    def _write(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            try:
                view = view[os.write(self._sink, view) :]
            except BlockingIOError:  # somebody who shares it has made it so
                select.select([], [self._sink], [])


class Kept:
    """What is kept of a command's output. `descriptors` are for the command: its standard output and error."""

    def __init__(self, streams: Sequence[Stream], most: int, redaction: Redaction) -> None:
        self._streams = streams
        self._most = most
        self._redaction = redaction
        out, error = (stream.write_end for stream in streams)
        self.descriptors = (out, error)

    def begin(self) -> None:
        """The command was started."""
        for stream in self._streams:
            stream.begin()

    def said(self) -> list[tuple[str, str]]:
        """What each stream said last, by its name; nothing of one that said nothing. Waits a moment for it to end."""
        until = monotonic() + PATIENCE_SECONDS
        for stream in self._streams:
            stream.wait(until - monotonic())
        named = zip(STREAMS, self._streams, strict=True)
        return [(name, last_of(stream.last(), self._most, self._redaction)) for name, stream in named if stream.length]


@contextmanager
def keeping(most: int, redaction: Redaction, sinks: tuple[int, int] = (1, 2)) -> Iterator[Kept]:
    """Pipes for a command's output, passed on to `sinks`, until the block ends."""
    streams: list[Stream] = []
    try:
        streams.extend(Stream(sink, most) for sink in sinks)
        yield Kept(streams, most, redaction)
    finally:
        for stream in streams:
            stream.close()


def last_of(raw: bytes, most: int, redaction: Redaction) -> str:
    """The last of a text without its secrets, in `most` bytes of UTF-8. Pure."""
    text = raw.decode("utf-8", "replace").replace("\0", "\ufffd")  # PostgreSQL keeps no NUL
    start = len(raw[:-most].decode("utf-8", "replace")) if len(raw) > most else 0
    return redaction.of(text, start=start).encode()[-most:].decode("utf-8", "ignore")
