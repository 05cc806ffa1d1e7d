"""Measure everything, or make the report of what was measured.

    python -m bench [--quick] [--only SUITE,SUITE] [--runs N] [--rounds N] [--redis URL] [--json FILE]
    python -m bench report FILE [--docs DIR]

The first runs each suite in turn and writes all their figures into one file; one that fails is named there with its reason, and
the others go on. The second puts what the file says into docs/benchmarks.md, and draws its pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import side_by_side
from bench.figure import Figure, read
from bench.places import DISK, ROOT
from bench.report import page

SIDE_BY_SIDE = "side_by_side"
SUITES = ("start", "burst", "writers", "daemon", "outbox", "grid", "schedule", "scale", "partitions")


class Failed(Exception):
    """A suite that came to no end. Its message is the last thing that it said."""


def main() -> None:
    args = _arguments()
    if args.what == "report":
        page.make(json.loads(args.file.read_text()), args.docs)
        return
    chosen = args.only.split(",") if args.only else [SIDE_BY_SIDE, *SUITES]
    document: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        SIDE_BY_SIDE: _side_by_side(args, chosen),
        "figures": [],
        "not_measured": [],
    }
    _write(args.json, document)
    for suite in (each for each in SUITES if each in chosen):
        print(f"\n== {suite}", flush=True)
        try:
            document["figures"] += [asdict(figure) for figure in _suite(suite, quick=args.quick)]
        except Failed as e:
            print(f"{suite} is not measured: {e}", file=sys.stderr, flush=True)
            document["not_measured"].append({"suite": suite, "why": str(e)})
        _write(args.json, document)
    print(f"\nall figures are in {args.json}; python -m bench report {args.json} puts them into docs/benchmarks.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("measure", "report"), default="measure")
    parser.add_argument("file", nargs="?", type=Path, help="of which a report is made")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page is")
    parser.add_argument("--json", type=Path, default=DISK / "figures.json", metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="small counts: some minutes for all of it")
    parser.add_argument("--only", default="", metavar="SUITES", help=", ".join((SIDE_BY_SIDE, *SUITES)))
    parser.add_argument("--runs", type=int, help="of each contestant, side by side")
    parser.add_argument("--rounds", type=int, help="of all contestants, side by side")
    parser.add_argument(
        "--redis", default=side_by_side.REDIS, metavar="URL", help="an empty database, which is emptied"
    )
    args = parser.parse_args()
    if args.what == "report" and args.file is None:
        parser.error("report: name the file that `python -m bench` wrote")
    return args


def _side_by_side(args: argparse.Namespace, chosen: list[str]) -> dict[str, Any]:
    runs, rounds = side_by_side.counts(args)
    if SIDE_BY_SIDE in chosen:
        print(f"== {SIDE_BY_SIDE}", flush=True)
        return side_by_side.measure(runs, rounds, redis=args.redis)
    return {"runs": runs, "rounds": rounds, "places": [], "contestants": [], "not_measured": []}


def _suite(name: str, *, quick: bool) -> list[Figure]:
    """The figures of one of the other scripts. Raises `Failed`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        line = [sys.executable, "-m", f"bench.{name}", "--json", str(file), *(["--quick"] if quick else [])]
        done = subprocess.run(line, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
        return read(file)


def _write(path: Path, document: dict[str, Any]) -> None:
    """After each suite: who stops it in the middle has what was measured until then."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _commit() -> str:
    """Which commit was measured; with a + where files differed from it. Empty where this is no checkout."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return ""
    return said.stdout.strip()


def _processor() -> str:
    """What Linux calls the processor, or its architecture."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
