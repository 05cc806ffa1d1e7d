"""Figures: how each script of this room says what it measured.

A script is run as `python -m bench.NAME` and prints a table for whoever called it. Two flags are common to all of them:
`--json FILE` also writes what the table says as figures, which `python -m bench` puts into one report with those of the other
scripts, and `--quick` makes do with the smallest counts that show each case.

    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=positive)
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.quick else 7)
    ...
    write(args.json, [Figure("start", "on disk, UTC", "a duplicate", 48.2, "ms", ratio=2.6, of="python -c pass")])
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
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


def positive(text: str) -> int:
    """A count for `argparse`: 1 or more."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: it has to be 1 or more")
    return number


def write(path: Path | None, figures: Iterable[Figure]) -> None:
    """Write figures where `--json` asked for them; nothing where it did not."""
    if path is not None:
        put(path, as_json([asdict(figure) for figure in figures]))


def as_json(document: object) -> str:
    """A document as it stands in a file."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def put(path: Path, text: str) -> None:
    """Write a file whole, or leave what was there: what took an hour to measure is not lost to a full disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as new:
        try:
            new.write(text)
            new.flush()
            os.fchmod(new.fileno(), 0o644)
            os.replace(new.name, path)
        except BaseException:
            os.unlink(new.name)
            raise


def read(path: Path) -> list[Figure]:
    """What `write` wrote."""
    return [Figure(**each) for each in json.loads(path.read_text())]
