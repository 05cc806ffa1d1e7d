"""Medians of what contestants did side by side, and how they stand to the floor of the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.entries import YARDSTICK
from bench.figure import Figure


@dataclass(frozen=True)
class Standing:
    """One contestant in one place."""

    name: str
    kind: str
    version: str | None
    atomic: bool
    guarantees: str
    runs: float  # a second: the median of all rounds
    least: float
    most: float
    ratio: float | None  # to the median of the floor that takes two transactions; None where that was not measured
    duplicates: float | None  # refused a second; None where some were not refused
    refused: int  # of so many that were offered again
    offered: int
    done_twice: int  # effects that were there twice in the end


def standings(measured: dict[str, Any], place: str) -> list[Standing]:
    """Who was measured in a place, in the order of `ENTRIES`."""
    there = [each for each in measured["contestants"] if each["place"] == place]
    floors = [_rate(each["rounds"]) for each in there if each["name"] == YARDSTICK]
    return [_standing(each, floors[0] if floors else None) for each in there]


def _standing(each: dict[str, Any], floor: float | None) -> Standing:
    rounds, rate = each["rounds"], _rate(each["rounds"])
    rates = [one["runs_per_second"] for one in rounds]
    fewest = min(rounds, key=lambda one: one["refused"])
    all_refused = fewest["refused"] == fewest["runs"]
    return Standing(
        name=each["name"],
        kind=each["kind"],
        version=each["version"],
        atomic=each["atomic"],
        guarantees=each["guarantees"],
        runs=rate,
        least=min(rates),
        most=max(rates),
        ratio=None if floor is None else rate / floor,
        duplicates=median(one["offers_per_second"] for one in rounds) if all_refused else None,
        refused=fewest["refused"],
        offered=fewest["runs"],
        done_twice=max(one["effects_after_offers"] - one["effects"] for one in rounds),
    )


def _rate(rounds: Sequence[dict[str, Any]]) -> float:
    return float(median(one["runs_per_second"] for one in rounds))


def figures_of(measured: dict[str, Any]) -> list[Figure]:
    """The same as figures, in the form that all suites have."""
    figures = []
    for place in measured["places"]:
        for each in standings(measured, place["name"]):
            of = None if each.ratio is None else YARDSTICK
            figures.append(Figure("side_by_side", place["name"], each.name, each.runs, "runs/s", each.ratio, of))
            if each.duplicates is not None:
                duplicates = f"{each.name}: offered again"
                figures.append(Figure("side_by_side", place["name"], duplicates, each.duplicates, "offers/s"))
    return figures
