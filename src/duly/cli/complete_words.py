"""How far lines are complete, in words: without a gap, and at all."""

from __future__ import annotations

from duly.cli.output import when
from duly.evidence.complete_through import LineComplete

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

FURTHEST_BEHIND = 5  # lines that are shown with how far they are complete


def furthest_behind(lines: list[LineComplete]) -> tuple[list[LineComplete], int]:
    """The few lines of which it can be said and that are furthest behind, and how many others are no further. Pure."""
    told = sorted((line for line in lines if line.completeness.through is not None), key=_through)
    return told[:FURTHEST_BEHIND], max(0, len(told) - FURTHEST_BEHIND)


def complete_words(line: LineComplete, args: argparse.Namespace, now: int) -> str:
    """As `through Fri 20 Nov 00:00+01:00; completed up to Sun 22 Nov 00:00+01:00`."""
    known, last = line.known, line.completeness.last
    zone = "UTC" if known.version is None else known.version.zone
    said = f"through {when(_through(line), zone, time=args.time, now=now)}"
    if last is not None and last.window_end > _through(line):
        said += f"; completed up to {when(last.window_end, zone, time=args.time, now=now)}"
    return said


def _through(line: LineComplete) -> int:
    return line.completeness.through or 0
