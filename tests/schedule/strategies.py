"""What the laws are tried on: zones with every kind of transition, instants near one, schedules of every kind."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from duly.schedule import spec
from duly.schedule.spec import Schedule
from duly.times import SECOND, Zone

ZONES = (
    "UTC",
    "Europe/Berlin",  # the ordinary case: an hour, at 02:00 and 03:00
    "Europe/Dublin",  # negative daylight saving time in the database
    "America/New_York",
    "America/Sao_Paulo",  # midnight does not exist on some days
    "America/Havana",  # midnight exists twice
    "America/Nuuk",  # a gap that ends, and one that begins, at midnight
    "Africa/Casablanca",  # four transitions a year, by the moon
    "Africa/Monrovia",  # 1972: 44 minutes and 30 seconds
    "Antarctica/Troll",  # two hours
    "Asia/Beirut",
    "Asia/Kolkata",  # half an hour, no transitions now
    "Asia/Pyongyang",  # 2018: half an hour before midnight
    "Australia/Lord_Howe",  # half an hour of daylight saving time
    "Pacific/Apia",  # 2011-12-30 does not exist
    "Pacific/Chatham",  # three quarters of an hour
    "Pacific/Kwajalein",  # 1969: 23 hours twice; 1993: a day less
)

SINCE, UNTIL = -150_000_000, 4_000_000_000  # 1965 to 2096, in seconds


@cache
def near_transitions(name: str) -> list[int]:
    """The days, as seconds, before whose end the offset of a zone changes."""
    zone = Zone(name)
    days = range(SINCE, 2_200_000_000, 86_400)
    offsets = [zone.offset_at(day) for day in days]
    return [day for day, before, after in zip(days, offsets, offsets[1:], strict=False) if before != after]


zones = st.sampled_from(ZONES)


@st.composite
def instants(draw: st.DrawFn, zone: str) -> int:
    """An instant, three times out of four within days of a transition of the zone."""
    transitions = near_transitions(zone)
    if transitions and draw(st.integers(0, 3)) > 0:
        second = transitions[draw(st.integers(0, len(transitions) - 1))] + draw(st.integers(-3 * 86_400, 4 * 86_400))
    else:
        second = draw(st.integers(SINCE, UNTIL))
    return second * SECOND + draw(st.sampled_from((0, 0, 1, 999_999)))


gaps = st.sampled_from((None, "shift_to_transition", "shift_forward", "skip"))
shifts = st.sampled_from((None, "shift_to_transition", "shift_forward"))
folds = st.sampled_from((None, "first", "second", "both"))
passes = st.sampled_from((None, "first", "second"))
clocks = st.sampled_from(("00:00", "00:30", "01:00", "02:15", "02:30", "03:00", "06:00", "12:00", "23:30", "23:59"))
ats = st.one_of(st.none(), clocks)

# Of each field something common; the days so that something always fires.
minutes = st.sampled_from(("0", "30", "*", "*/15", "10,35", "45", "5/20", "0-30/10"))
hours = st.sampled_from(("*", "0", "2", "0-3", "*/2", "1,2,3", "23", "22-23", "8-17/3"))
months = st.sampled_from(("*", "*", "*", "3", "1-6", "*/3", "OCT,mar"))
days = st.sampled_from(
    (
        "* *",
        "* *",
        "1 *",
        "L *",
        "LW *",
        "15W *",
        "L-2 *",
        "* MON-FRI",
        "* SUN",
        "1,15 5",
        "*/2 MON",
        "* 7L",
        "* 1#2",
        "? 6",
    )
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    day_of_month, day_of_week = draw(days).split(" ")
    return f"{draw(minutes)} {draw(hours)} {day_of_month} {draw(months)} {day_of_week}"


@st.composite
def periods(draw: st.DrawFn, zone: str) -> Schedule:
    kind = draw(st.sampled_from(("hourly", "daily", "daily", "daily", "weekly", "monthly", "quarterly", "yearly")))
    if kind == "hourly":
        return spec.hourly(zone, gap=draw(gaps), fold=draw(folds))
    at = draw(ats)
    gap, fold = draw(shifts if at else gaps), draw(passes)
    if kind == "daily":
        return spec.daily(zone, at=at, offset=draw(ats), gap=gap, fold=fold)
    if kind == "weekly":
        return spec.weekly(zone, at=at, offset=draw(st.sampled_from((None, "sun", "sat", "thu"))), gap=gap, fold=fold)
    if kind == "monthly":
        return spec.monthly(zone, at=at, gap=gap, fold=fold)
    make = spec.quarterly if kind == "quarterly" else spec.yearly
    return make(zone, at=at, offset=draw(st.sampled_from((None, "feb", "apr", "dec"))), gap=gap, fold=fold)


@st.composite
def fires(draw: st.DrawFn, zone: str) -> Schedule:
    if draw(st.integers(0, 5)) == 0:
        anchor = draw(st.integers(SINCE, UNTIL)) * SECOND
        return spec.every(draw(st.sampled_from(("1s", "15m", "90m", "1d", "28d"))), anchor=anchor)
    chosen = draw(st.lists(lines(), min_size=1, max_size=3))
    return spec.cron(*chosen, zone=zone, gap=draw(gaps), fold=draw(folds))


@st.composite
def schedules_and_instants(draw: st.DrawFn) -> tuple[Schedule, int]:
    zone = draw(zones)
    return draw(st.one_of(periods(zone), fires(zone))), draw(instants(zone))
