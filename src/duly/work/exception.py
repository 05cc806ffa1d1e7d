"""What is kept of an exception: enough to find it, nothing that may hold a secret."""

from __future__ import annotations

import os
import traceback

from duly.redaction import state_of


def error_place(error: BaseException) -> str:
    """What is kept of an exception: its type and the place that raised it. Never its message, which may hold secrets."""
    kind = type(error).__qualname__
    state = state_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return kind + (f" {state}" if state else "") + place
