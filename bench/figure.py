"""Figures: how each script of this room says what it measured.

A script is run as `python -m bench.NAME` and prints a table for whoever called it. Two flags are common to all of them:
`--json FILE` also writes what the table says as figures, which `python -m bench` puts into one report with those of the other
scripts, and `--quick` makes do with the smallest counts that show each case.

    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int)
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.quick else 7)
    ...
    write(args.json, [Figure("start", "on disk, UTC", "a duplicate", 48.2, "ms", ratio=2.6, of="python -c pass")])
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One thing that was measured. A report has a table for each `suite`, in which `case` and `what` name a row."""

    suite: str
    case: str  # under which circumstances: the database, the disk, how many at once
    what: str  # what was measured
    value: float
    unit: str  # ms, runs/s, bytes
    ratio: float | None = None  # to what `of` names: above 1 the value is greater
    of: str | None = None


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the flags that are common to all scripts; its help is the script's docstring."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured as figures, too")
    parser.add_argument("--quick", action="store_true", help="make do with small counts")
    return parser


def write(path: Path | None, figures: Iterable[Figure]) -> None:
    """Write figures where `--json` asked for them; nothing where it did not."""
    if path is not None:
        path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Figure]:
    """What `write` wrote."""
    return [Figure(**each) for each in json.loads(path.read_text())]
