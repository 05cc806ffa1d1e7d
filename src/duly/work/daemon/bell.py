"""Bell: wakes the watch from any thread, and from a signal's handler, where a lock of `threading` could be held already."""

from __future__ import annotations

import os
import select
from contextlib import suppress


class Bell:
    """Rung as often as one likes, and heard once."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        for end in (self._heard, self._rung):
            os.set_blocking(end, False)

    def ring(self) -> None:
        """Wake whoever waits, or will wait next."""
        with suppress(BlockingIOError):  # it is full: nobody has waited for long
            os.write(self._rung, b"!")

    def wait(self, seconds: float | None) -> bool:
        """Wait for the bell; whether it was rung."""
        ready, _, _ = select.select([self._heard], [], [], seconds)
        with suppress(BlockingIOError):
            while ready and len(os.read(self._heard, 4096)) == 4096:
                pass
        return bool(ready)
