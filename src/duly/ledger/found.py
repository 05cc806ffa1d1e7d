"""Found: what a probe says of a message or of a run, and when it is believed.

That it happened is believed. That it did not is believed when it was said twice in one doubt, or at once by who reads his own
writes: until then nothing is retried. A probe that cannot tell changes nothing, and is asked again later.
"""

from __future__ import annotations

from duly.records import record

TOO_LATE = "too late"  # what is found is not written: somebody else has said meanwhile what happened


@record
class FoundDone:
    said: str


@record
class FoundNot:
    """`at_once`: it is believed the first time; else it is asked again in `again_in`."""

    said: str
    at_once: bool
    again_in: int


@record
class FoundNothing:
    said: str
    again_in: int


def is_believed(word: FoundNot, denials: int) -> bool:
    """Whether a "did not" counts, after so many of the same doubt. Pure."""
    return word.at_once or denials > 0
