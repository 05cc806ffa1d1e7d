"""Quiet unless it fails: a child's output is kept aside, and shown only when the child did not end well."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_PIECE = 1 << 16


class Quiet:
    """Where the output goes. `show` copies it to standard output."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.descriptor = file.fileno()

    def show(self) -> None:
        self._file.seek(0)
        try:
            while piece := self._file.read(_PIECE):
                while piece:
                    piece = piece[os.write(1, piece) :]
        except OSError:  # whoever read it has gone, or its disk is full: how the run ended has still to be written down
            return


@contextmanager
def quietly() -> Iterator[Quiet]:
    """A file without a name, gone when the block ends."""
    with tempfile.TemporaryFile(prefix="duly-") as file:
        yield Quiet(file)
