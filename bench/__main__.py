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
from bench.figure import Figure, as_json, positive, put, read
from bench.places import DISK, ROOT
from bench.report import page

SIDE_BY_SIDE = "side_by_side"
SUITES = ("start", "burst", "writers", "daemon", "outbox", "grid", "schedule", "scale", "partitions")


class Failed(Exception):
    """A suite that came to no end. Its message is the last thing that it said."""


def main() -> None:
    args = _arguments()
    if args.what == "report":
        try:
            page.make(json.loads(args.file.read_text()), args.docs)
        except (OSError, ValueError) as e:
            sys.exit(f"no report is made of {args.file}, and nothing was changed: {e}")
        return
    chosen = [each.strip() for each in args.only.split(",")] if args.only else [SIDE_BY_SIDE, *SUITES]
    runs, rounds = side_by_side.counts(args)
    document: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": args.quick,
        "machine": _machine(),
        SIDE_BY_SIDE: {"runs": runs, "rounds": rounds, "places": [], "contestants": [], "not_measured": []},
        "figures": [],
        "not_measured": [],
    }
    if SIDE_BY_SIDE in chosen:
        print(f"== {SIDE_BY_SIDE}", flush=True)
        for document[SIDE_BY_SIDE] in side_by_side.measure(runs, rounds, redis=args.redis):
            put(args.json, as_json(document))  # after each place, as after each suite: who stops it has what there is
    for suite in (each for each in SUITES if each in chosen):
        print(f"\n== {suite}", flush=True)
        try:
            document["figures"] += [asdict(figure) for figure in _suite(suite, quick=args.quick)]
        except Failed as e:
            print(f"{suite} is not measured: {e}", file=sys.stderr, flush=True)
            document["not_measured"].append({"suite": suite, "why": str(e)})
        put(args.json, as_json(document))
    if not document["figures"] and not document[SIDE_BY_SIDE]["contestants"]:
        sys.exit("nothing was measured")
    print(f"\nall figures are in {args.json}; python -m bench report {args.json} puts them into docs/benchmarks.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("measure", "report"), default="measure")
    parser.add_argument("file", nargs="?", type=Path, help="of which a report is made")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page is")
    parser.add_argument("--json", type=Path, default=DISK / "figures.json", metavar="FILE", help="%(default)s")
    parser.add_argument("--quick", action="store_true", help="small counts: some minutes for all of it")
    parser.add_argument("--only", default="", metavar="SUITES", help=", ".join((SIDE_BY_SIDE, *SUITES)))
    parser.add_argument("--runs", type=positive, help="of each contestant, side by side")
    parser.add_argument("--rounds", type=positive, help="of all contestants, side by side")
    parser.add_argument(
        "--redis", default=side_by_side.REDIS, metavar="URL", help="an empty database, which is emptied"
    )
    args = parser.parse_args()
    if (args.what == "report") != (args.file is not None):
        parser.error("`report` has the file that `python -m bench` wrote, and `measure` has none: --json says where to")
    chosen = {each.strip() for each in args.only.split(",")} if args.only else set()
    if unknown := chosen - {SIDE_BY_SIDE, *SUITES}:
        parser.error(
            f"--only: there is no suite {', '.join(sorted(unknown))}; there are {SIDE_BY_SIDE}, {', '.join(SUITES)}"
        )
    if args.what == "measure":
        try:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=args.json.parent).close()
        except OSError as e:
            parser.error(f"--json: {args.json.parent} cannot be written: {e.strerror}")
    return args


def _suite(name: str, *, quick: bool) -> list[Figure]:
    """The figures of one of the other scripts. Raises `Failed`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        line = [sys.executable, "-m", f"bench.{name}", "--json", str(file), *(["--quick"] if quick else [])]
        done = subprocess.run(line, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
        return read(file)


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
