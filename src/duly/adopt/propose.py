"""Propose: names for what was found, and the entries that declare it.

Lines that do the same thing at other times are one job with several lines of cron, unless two of them would fire at one
instant: cron runs the command twice then, and one job would run it once.
"""

from __future__ import annotations

from duly.adopt.declare import Declarations, Entry
from duly.adopt.found import Found, Note, When
from duly.adopt.naming import free
from duly.records import record
from duly.redaction import redacted
from duly.schedule.facts import changes
from duly.times import DAY, SECOND, Zone, civil_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from duly.schedule.cron import CronLine

SOON = 2 * 366 * DAY // SECOND  # seconds in which every change of the clocks that comes each year has come


@record
class Adopted:
    """A job under the name that it gets: what was found of it, and how it is declared."""

    entry: Entry
    found: tuple[Found, ...]
    is_declared: bool  # just so, by the file already

    @property
    def name(self) -> str:
        return self.entry.name


def adopt(
    found: Sequence[Found],
    declared: Declarations,
    *,
    prefix: str = "",
    poked: Collection[str] = (),
    shown: bool = True,
    now: int,
) -> list[Adopted]:
    """Each job that was found with a name that nobody has. `poked` are names in use where the jobs come from.

    Without `shown` an entry says where its original stands, and not what it is: more people may read it there.
    """
    adopted: list[Adopted] = []
    taken = {*declared.names(), *poked}
    for group in _together(found, now):
        when = _union(group)
        originals = tuple(redacted(one.original) if shown else str(one.place) for one in group)
        source = group[0].source
        base = f"{prefix}{group[0].hint}"
        again = _declared_as(base, when, originals, source, declared, {*poked, *(one.name for one in adopted)})
        entry = again or Entry(free(base, taken), when, source, originals)
        taken.add(entry.name)
        adopted.append(Adopted(entry, tuple(group), again is not None))
    return adopted


def names_of(found: Sequence[Found], adopted: Sequence[Adopted]) -> list[str]:
    """The names under which these were adopted, one for each."""
    names = {id(one): job.name for job in adopted for one in job.found}
    return [names[id(one)] for one in found]


def _declared_as(
    base: str, when: When, originals: tuple[str, ...], source: str, declared: Declarations, in_use: Collection[str]
) -> Entry | None:
    """The entry that an import which did not come to its end has left: its file is written last."""
    number, name = 2, base
    while name in declared.names():
        entry = Entry(name, when, source, originals)
        if name not in in_use and declared.has(entry):
            return entry
        number, name = number + 1, f"{base}-{number}"
    return None


def _together(found: Sequence[Found], now: int) -> list[list[Found]]:
    groups: list[list[Found]] = []
    for one in found:
        for group in groups:
            if group[0].same == one.same and _may_be_one(_union(group), one.when, now):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _union(group: Sequence[Found]) -> When:
    first = group[0].when
    return When(tuple(line for one in group for line in one.when.cron), first.zone, first.gap, first.fold)


def _may_be_one(a: When, b: When, now: int) -> bool:
    """Whether two schedules may be one: in the same zone, and never at one instant."""
    if (a.zone, a.gap, a.fold) != (b.zone, b.gap, b.fold):
        return False
    for one in a.schedule().lines:
        for other in b.schedule().lines:
            times = set(one.times) & set(other.times)
            if times and any(
                set(one.days_of_month(weekday, length)) & set(other.days_of_month(weekday, length))
                for month in set(one.month) & set(other.month)
                for length in ((28, 29) if month == 2 else (30, 31))
                for weekday in range(7)
            ):
                return False
    return not any(both for both in _in_gaps(When((*a.cron, *b.cron), a.zone, a.gap, a.fold), now))


def merged_night(adopted: Adopted, now: int) -> Note | None:
    """What is to be said of the first night in which the clocks skip two fires of a job: cron runs each after it, duly one."""
    for begin, end, count in _in_gaps(adopted.entry.when, now):
        clocks = f"on {civil_text(begin)[:10]} the clocks skip {civil_text(begin)[11:16]} to {civil_text(end)[11:16]}"
        says = f"{clocks}, and cron runs {adopted.name} {count} times, one after the other; for duly these are one run"
        return Note("merged", adopted.found[0].place, says)
    return None


def _in_gaps(when: When, now: int) -> Iterator[tuple[int, int, int]]:
    """The gaps of the next two years into which more than one fire falls: begin and end in civil seconds, and how many."""
    if when.zone == "UTC":
        return
    zone, rules = Zone(when.zone), when.schedule().rules
    second = now // SECOND
    before = zone.offset_at(second)
    for instant, offset in changes(zone, second, second + SOON):
        begin, end, before = instant + before, instant + offset, offset
        if end <= begin:
            continue
        shifted = sum(_fires(rule.line, begin, end) for rule in rules if rule.gap == "shift_to_transition")
        real = sum(rule.line.fires_at(end) for rule in rules)
        if shifted + real > 1 and shifted:
            yield begin, end, shifted + real


def _fires(line: CronLine, begin: int, end: int) -> int:
    """How often a line fires from one civil second to before another."""
    count = 0
    for civil in line.after(begin - 1):
        if civil >= end:
            return count
        count += 1
    return count
