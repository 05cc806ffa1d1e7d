"""Lab: what a schedule would do that is only thought of: in words, its windows, the nights of the clocks, its lints.

It reads no ledger, and no file that a URL names: the days off of a calendar are written into the form. What cannot be
understood is no page of its own: the form is shown again, with all that was typed, and says which field it is.
"""

from __future__ import annotations

from shlex import join
from time import time_ns
from typing import TYPE_CHECKING, Any

from duly.errors import Misuse
from duly.evidence.explain_words import length
from duly.evidence.foreseen import COMING, SCHEMA, Foreseen, Wanted, facts_of, foreseen, window_as_json
from duly.evidence.nights import Night, nights
from duly.records import record, replace
from duly.schedule.facts import release_in_use
from duly.schedule.resolver import FOLDS, GAPS
from duly.schedule.written import FLAGS, PERIODS, Writing, schedule_written
from duly.times import DAY
from duly.web.page import Document, Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.schedule.calendar import Calendar
    from duly.schedule.spec import Schedule
    from duly.web.asked import Asked
    from duly.web.showing import Showing

AT_MOST = 200  # windows that are shown at once
DENSEST = 100  # times a day, where a calendar moves them
YEAR = 366 * DAY
TIMES_SHOWN = 6
FIELDS = (*FLAGS, "range", "n")
POLICIES_OF_DAYS_OFF = ("skip", "next", "previous")
CALENDAR = "days-off.txt"  # what the line to type calls a file of the days off

TRY = (
    ("a cron line in the hour that the clocks skip and repeat", {"cron": "30 2 * * *", "zone": "Europe/Berlin"}),
    ("each quarter of an hour", {"cron": "*/15 * * * *", "zone": "America/New_York"}),
    ("the day, worked the next morning", {"period": "daily", "at": "02:30", "zone": "Europe/Paris"}),
    ("an interval", {"every": "90m", "anchor": "2026-01-01T00:00:00Z"}),
)


@record
class LabSeen:
    """What was typed, and what it comes to; or what is wrong with it, in which field, and what to do."""

    as_of: int
    typed: dict[str, str]
    seen: Foreseen | None
    nights: list[Night]
    error: str = ""
    field: str = ""
    next_step: str = ""


def see(asked: Asked) -> Callable[[], LabSeen]:
    typed = {name: text for name in FIELDS if (text := asked.text(name))}
    for_people = asked.form == "html"

    def think() -> LabSeen:
        instant = time_ns() // 1000
        try:
            seen = _foreseen(typed, asked, instant)
        except Misuse as e:
            if not for_people:
                raise
            return LabSeen(instant, typed, None, [], str(e), _field_of(str(e)), _step_of(e))
        if seen is None and not for_people:
            raise Misuse("cron, period or every: none of them is given", next_step="duly next --help")
        told = [] if seen is None or not for_people else nights(seen.schedule, instant, instant + YEAR)
        return LabSeen(instant, typed, seen, told)

    return think


def _foreseen(typed: dict[str, str], asked: Asked, instant: int) -> Foreseen | None:
    """What the fields come to; None where none is filled in. Raises `Misuse`, whose first words are the field."""
    schedule = schedule_written(
        {name: _values(name, typed[name]) for name in FLAGS if name in typed},
        Writing(
            lambda name, value="": f"{name} {value}".rstrip(),
            _calendar,
            lambda *more: join([*_line(typed), *more]),
            lambda: "UTC",
            lambda: "write one, as Europe/Berlin or UTC",
        ),
    )
    n = asked.count("n", 0, AT_MOST)
    if schedule is None:
        if "range" in typed or n:
            name = "range" if "range" in typed else "n"
            raise Misuse(f"{name}: of which schedule? Write a cron line, a period or an interval")
        return None
    _refuse_too_dense(schedule, instant)
    try:
        return foreseen(schedule, Wanted(typed.get("range"), n or None, "", AT_MOST), instant)
    except Misuse as e:
        raise Misuse(f"range: {e}", next_step=e.next_step) from e


def _refuse_too_dense(schedule: Schedule, instant: int) -> None:
    """Days off move what is due on them: of half a year of minutes that move to one day, each would be looked at."""
    on = schedule.calendar
    if on is None or on.policy == "skip":
        return
    if replace(schedule, calendar=None).count(instant, instant + 7 * DAY) > 7 * DENSEST:
        raise Misuse(
            f"days-off: more than {DENSEST} times a day are not moved here; ask for skip, or in a shell",
            next_step="duly next --help",
        )


def _values(name: str, text: str) -> list[str]:
    """The values of a field: of cron each line is one, and what is blank is none."""
    return [line.strip() for line in text.splitlines() if line.strip()] if name == "cron" else [text]


def _calendar(days: str) -> Calendar:
    from duly.schedule.calendar import make_calendar

    return make_calendar(CALENDAR.removesuffix(".txt"), days)


def _line(typed: dict[str, str]) -> list[str]:
    """The line that says the same in a shell."""
    words = ["duly", "next", *([typed["range"]] if "range" in typed else [])]
    for name in FLAGS:
        for value in _values(name, typed.get(name, "")) if name in typed else []:
            words += [f"--{name}", CALENDAR if name == "calendar" else value]
    return [*words, "-n", typed["n"]] if "n" in typed else words


def _field_of(says: str) -> str:
    """The field that an error names: the one that is missing, or its first word."""
    if " needs a zone," in says:
        return "zone"
    first = says.partition(" ")[0].rstrip(":")
    return first if first in FIELDS else ""


def _step_of(error: Misuse) -> str:
    return error.next_step or "duly next --help"


def show(seen: LabSeen, showing: Showing) -> dict[str, Any]:
    found = seen.seen
    zone = "UTC" if found is None else found.schedule.zone
    return {
        "title": "Schedule lab",
        "http_status": 400 if seen.error else 200,
        "typed": {name: seen.typed.get(name, "") for name in FIELDS},
        "error": seen.error,
        "wrong": seen.field,
        "next_step": seen.next_step,
        "seen": found,
        "words": "" if found is None else found.schedule.words(),
        "tzdata": "" if zone == "UTC" else release_in_use(zone).version,
        "rows": [] if found is None else [_row(found, place) for place in range(len(found.placed))],
        "has_range": "range" in seen.typed,
        "nights": [_night_row(night) for night in seen.nights],
        "counted_in_utc": found is not None and (found.schedule.kind == "every" or zone == "UTC"),
        "lints": [] if found is None else found.lints,
        "periods": PERIODS,
        "gaps": GAPS,
        "folds": FOLDS,
        "days_off": POLICIES_OF_DAYS_OFF,
        "calendar": CALENDAR if "calendar" in seen.typed else "",
        "coming": COMING,
        "at_most": AT_MOST,
        "tries": [(says, showing.link("/lab", **fields), " ".join(fields.values())) for says, fields in TRY],
        "twin": join(_line(seen.typed)) if found is not None else "",
        "zone": zone,
    }


def _row(seen: Foreseen, place: int) -> dict[str, Any]:
    occurrence = seen.placed[place].occurrence
    return {
        "name": seen.name(place),
        "length": length((occurrence.start, occurrence.end)),
        "start": occurrence.start,
        "end": occurrence.end,
        "due": occurrence.due,
        "is_past": occurrence.due <= seen.as_of,
        "note": seen.note(place),
    }


def _night_row(night: Night) -> dict[str, Any]:
    holds = night.holds
    touched = [
        {
            "word": each.word,
            "times": ", ".join(each.times[:TIMES_SHOWN]) + (" …" if len(each.times) > TIMES_SHOWN else ""),
            "many": len(each.times),
            "says": each.says,
        }
        for each in night.touched
    ]
    return {
        "at": night.change.at,
        "date": night.date,
        "wall": night.wall,
        "says": night.change.words,
        "touched": touched,
        "holds": "" if holds is None else length((holds.start, holds.end)),
        "holds_due": None if holds is None else holds.due,
    }


def document(seen: LabSeen) -> Document:
    found = seen.seen
    assert found is not None  # a program that gave nothing was told so
    records = [window_as_json(found, place) for place in range(len(found.placed))]
    return Document(SCHEMA, facts_of(found), "occurrences", records)


PAGE = Page("lab", "/lab", "Lab", see, show, {"/lab": document}, needs_ledger=False)
