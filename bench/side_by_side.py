"""Side by side: floors, duly and its peers do the same work, each in a process and an environment of its own.

    python -m bench.side_by_side [--runs N] [--rounds N] [--only PART,PART] [--places PART,PART] [--redis URL]

A run is keyed by its job and its nominal window, and has one effect, a unit more in the user's own table; then every key is
offered again, and the effects are counted. In a round each contestant works once, in an order that moves on by one a round:
whatever slows the machine meanwhile slows them alike. Medians count, beside those of the floor that takes two transactions on
the same database: above 1 is faster than that. Redis is used as it is found, and does not flush before it answers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from bench.entries import ENTRIES, Entry
from bench.environments import NotMade, python_of
from bench.figure import Figure, arguments, positive, write
from bench.places import PLACES, ROOT, Ground, NotThere, Place, ready
from bench.report.medians import figures_of

REDIS = "redis://127.0.0.1:6379/9"
LONGEST_SECONDS = 600


class Failed(Exception):
    """A contestant that could not do its work. Its message is the last thing that it said."""


def measure(
    runs: int, rounds: int, *, only: str = "", places: str = "", redis: str = REDIS
) -> Iterator[dict[str, Any]]:
    """All rounds of all contestants in one place after the other, and who could not be measured, and why: what is known after
    each place.
    """
    measured: list[dict[str, Any]] = []
    missed: list[dict[str, str]] = []
    versions: dict[str, str] = {}
    for place in PLACES:
        if not _asked_for(places, place.name):
            continue
        entries = [each for each in ENTRIES if place.database in each.on and _asked_for(only, each.name)]
        try:
            with ready(place) as ground:
                versions[place.name] = ground.version
                for entry, found in _rounds(entries, place, ground, runs, rounds, redis):
                    if isinstance(found, str):
                        missed.append({"place": place.name, "name": entry.name, "why": found})
                    else:
                        measured.append({"place": place.name, "name": entry.name, "kind": entry.kind, **found})
        except NotThere as e:
            missed += [{"place": place.name, "name": entry.name, "why": str(e)} for entry in entries]
        yield {
            "runs": runs,
            "rounds": rounds,
            "places": [
                {"name": each.name, "title": each.title, "database": each.database, "version": versions[each.name]}
                for each in PLACES
                if each.name in versions
            ],
            "contestants": measured,
            "not_measured": missed,
        }


def _asked_for(parts: str, name: str) -> bool:
    """Whether a name has one of the parts that were asked for; all have where nothing was."""
    return not parts or any(part.strip().casefold() in name.casefold() for part in parts.split(","))


def _known(flag: str, parts: str, names: Sequence[str]) -> str:
    """What is wrong with the parts of names that a flag has; empty where each is part of one."""
    unknown = [part for part in parts.split(",") if not any(_asked_for(part, name) for name in names)]
    return f"{flag}: no name has {', '.join(unknown)}; there are {', '.join(names)}" if unknown else ""


def _rounds(
    entries: Sequence[Entry], place: Place, ground: Ground, runs: int, rounds: int, redis: str
) -> Iterator[tuple[Entry, dict[str, Any] | str]]:
    """What each contestant said of its rounds, or why it could not be measured."""
    said: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in entries}
    failed: dict[Entry, str] = {}
    for number in range(rounds):
        turn = number % len(entries) if entries else 0
        for entry in [*entries[turn:], *entries[:turn]]:
            if entry in failed:
                continue
            try:
                with ground.new_database() as database:
                    said[entry].append(once(entry, database, runs=runs, redis=redis))
            except (NotMade, Failed) as e:
                failed[entry] = str(e)
                print(f"{place.title}: {entry.name} is not measured: {e}", file=sys.stderr)
            else:
                rate = said[entry][-1]["runs_per_second"]
                print(
                    f"{place.title}, round {number + 1}: {entry.name} {rate:,.0f} runs/s", file=sys.stderr, flush=True
                )
    for entry in entries:
        yield entry, failed[entry] if entry in failed else _together(said[entry])


def once(entry: Entry, database: str, *, runs: int, redis: str) -> dict[str, Any]:
    """One contestant's work in a new database, in a process of its own. Raises `Failed`, `NotMade`."""
    line = [python_of(entry.environment), "-m", entry.module, "--runs", str(runs), "--database", database]
    line += ["--redis", redis, "--way", entry.way]
    # Not every environment has a tzdata of its own, which an empty PYTHONTZPATH would leave it with.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONTZPATH"}
    try:
        done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"it was not done after {LONGEST_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.partition("Exception ignored in")[0].strip().splitlines()  # what follows is its end's noise
        raise Failed(said[-1] if said else f"it ended with {done.returncode}, and said nothing")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if told["effects"] != runs:
        raise Failed(f"it had {told['effects']} effects of {runs} runs")
    return told


def _together(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is the same in all rounds once, and the rounds."""
    same = ("version", "python", "atomic", "guarantees")
    return {
        **{what: rounds[0][what] for what in same},
        "rounds": [{what: value for what, value in each.items() if what not in same} for each in rounds],
    }


def counts(args: argparse.Namespace) -> tuple[int, int]:
    """How many runs, and how many rounds, were asked for."""
    return args.runs or (100 if args.quick else 1_000), args.rounds or (1 if args.quick else 5)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=positive, help="how many runs each contestant does (1,000; quick: 100)")
    parser.add_argument("--rounds", type=positive, help="how many rounds (5; quick: 1)")
    parser.add_argument("--only", default="", metavar="PARTS", help="contestants whose name has one of these parts")
    parser.add_argument("--places", default="", metavar="PARTS", help=", ".join(place.name for place in PLACES))
    parser.add_argument("--redis", default=REDIS, metavar="URL", help=f"an empty database of Redis ({REDIS})")
    args = parser.parse_args()
    names = (
        ("--only", args.only, [entry.name for entry in ENTRIES]),
        ("--places", args.places, [p.name for p in PLACES]),
    )
    if wrong := "; ".join(filter(None, (_known(*each) for each in names))):
        parser.error(wrong)
    runs, rounds = counts(args)
    measured: dict[str, Any] = {}
    for measured in measure(runs, rounds, only=args.only, places=args.places, redis=args.redis):
        write(args.json, figures_of(measured))
    figures = figures_of(measured)
    for figure in figures:
        print(_line(figure))
    for missed in measured["not_measured"]:
        print(f"{missed['place']}: {missed['name']} was not measured: {missed['why']}")
    if not figures:
        sys.exit("nothing was measured")


def _line(figure: Figure) -> str:
    ratio = "" if figure.ratio is None else f"{figure.ratio:6.2f} of {figure.of}"
    return f"{figure.case:<20}{figure.what:<56}{figure.value:>10,.0f} {figure.unit}  {ratio}"


if __name__ == "__main__":
    main()
