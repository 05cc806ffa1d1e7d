"""Address: from what a person or caller names to the run it means. Looks only.

A run is named by its key, or by job, scope and window as people write it. The window is looked up by its nominal in the
version of the schedule that answers for it; of one in an earlier zone or grain, in the series that it lies in. Nothing is
created here.
"""

from __future__ import annotations

from duly.errors import KeyInvalid, TimeInvalid, UnknownJob, UnknownRun, UnknownScope, WindowInvalid
from duly.ledger.ask import Statement, now, one
from duly.ledger.records import SERIES_COLUMNS, Known, Run, RunId, Series
from duly.ledger.register import FIND_ADHOC, FIND_SERIES, find, name_now, scheduled
from duly.ledger.scopes import scopes_of
from duly.ledger.spells import find_nominal, known_by, place, spells_of, spells_of_line
from duly.ledger.take import look, look_newest
from duly.records import record
from duly.schedule.keys import RunKey, nominal_text
from duly.schedule.spells import TwoWindows
from duly.times import SECOND, Zone, civil_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

# Dates in the schedule's zone, by the ledger's clock.
DAYS_BACK = {"today": 0, "yesterday": 1}

ADHOC_ID = Statement("adhoc_id", "select id from duly_adhoc where series = :series and nominal = :nominal")

SERIES_BY_ID = Statement(
    "series_by_id",
    f"""
select j.name, l.scope, {SERIES_COLUMNS}
  from duly_series s
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where s.id = :series
""",
)


@record
class Addressed:
    """A run that was named: what is known of its line and series, its identity, its occurrence if the schedule has it, its
    row.
    """

    known: Known
    key: RunKey
    run: RunId
    occurrence: Occurrence | None
    row: Run | None


async def current_name(name: str) -> str:
    """The name that a job has now: its runs are found by its former names as well."""
    return await name_now(name) or name


async def known_or_raise(name: str, scope: str) -> Known:
    """What is known of a job and scope. Raises `UnknownJob` or `UnknownScope`, naming those there are."""
    name = await current_name(name)
    known = await find(name, scope)
    if known is None:
        raise UnknownJob(f"the ledger knows no job {name!r}; `duly jobs list` shows those it knows")
    if known.line is None:
        scopes = ", ".join(repr(s) for s in (await scopes_of(name))[:5]) or "none yet"
        raise UnknownScope(f"{name} has no scope {scope!r}; its roster has {scopes}")
    return known


async def by_window(name: str, scope: str, window: str) -> Addressed:
    """The run of a window as people write it, `2026-10-05`, `2026-W41`, `2026-10-25T02~2`, `yesterday`.

    Raises `UnknownJob`, `UnknownScope` or `WindowInvalid` (off the grid; the nearest are named).
    """
    return await window_in(await known_or_raise(name, scope), window)


async def window_in(known: Known, window: str) -> Addressed:
    """The run of a window of a line that is known. Raises `NoSchedule` and `WindowInvalid`."""
    schedule, _, series = scheduled(known)
    if window in DAYS_BACK:
        window = date_text(Zone(schedule.zone), await now(), DAYS_BACK[window])
    try:
        placed = place(await spells_of_line(known), window)
    except TwoWindows:
        raise
    except WindowInvalid:
        # By the rules of today there is none; those of before, or of another host, may have named one.
        nominal = _nominal_in(schedule, window)
        if nominal is None or await look_newest(series.id, nominal) is None:
            raise
        return await _addressed(known, series, nominal, None, None)
    except (KeyInvalid, TimeInvalid) as e:
        newest = next(schedule.before(await now()), None)
        example = "" if newest is None else f"; write it like {nominal_text(series.grain, newest.nominal, series.zone)}"
        raise WindowInvalid(f"window: {window!r} cannot be read ({e}){example}") from e
    known = await known_by(known, *placed.series) or known
    assert known.series is not None
    return await _addressed(known, known.series, placed.occurrence.nominal, None, placed.occurrence)


def _nominal_in(schedule: Schedule, window: str) -> int | None:
    """The nominal that a name stands for in a schedule; None for what is none of its names. Pure."""
    try:
        return schedule.nominal_of(window)
    except (KeyInvalid, TimeInvalid, WindowInvalid):
        return None


def date_text(zone: Zone, instant: int, days_back: int) -> str:
    """The date in a zone at an instant, so many days back. Pure."""
    second = instant // SECOND
    return civil_text(second + zone.offset_at(second) - days_back * 86_400)[:10]


async def by_key(key: RunKey) -> Addressed:
    """The run of a key. Without a revision it means the newest. Raises as `by_window`, and `UnknownRun`."""
    in_force = await known_or_raise(key.job, key.scope)
    known = await known_by(in_force, key.zone, key.grain) or in_force
    assert known.line is not None
    series = await one(FIND_SERIES, Series, line=known.line.id, zone=key.zone, grain=key.grain)
    if key.adhoc:
        nominal = None if series is None else await one(FIND_ADHOC, int, series=series.id, id=key.adhoc)
        if series is None or nominal is None:
            raise UnknownRun(f"the ledger knows no ad-hoc run {key.adhoc!r} of {key.job}")
        return await _addressed(known, series, nominal, key.revision, None)
    if series is None:
        raise WindowInvalid(other_series(known, key))
    if known.series is None or series.id != known.series.id:
        return await _addressed(known, series, key.nominal, key.revision, None)
    occurrence = find_nominal(await spells_of(known), key.nominal)
    found = await _addressed(known, series, key.nominal, key.revision, occurrence)
    if occurrence is None and found.row is None:
        await refuse_off_grid(known, key)
    return found


async def refuse_off_grid(known: Known, key: RunKey) -> None:
    """Raise `WindowInvalid` for a key that no version of the schedule answers for, with the windows before and after."""
    spells = await spells_of_line(known)
    zone = f"[{key.zone}]" if any(spell.schedule.zone != key.zone for spell in spells) else ""
    place(spells, f"{nominal_text(key.grain, key.nominal, key.zone)}{zone}")


def other_series(known: Known, key: RunKey) -> str:
    """Why a key cannot be one of the schedule in force, in words."""
    if known.version is None:
        return f"{known.job.name} has no schedule, and the ledger no run {key}"
    alias = " (another name for the same zone would be another key)" if known.version.grain == key.grain else ""
    return (
        f"{key.job} counts by {known.version.grain} in {known.version.zone}, "
        f"not by {key.grain} in {key.zone}{alias}; write the key as the schedule in force does"
    )


async def _addressed(
    known: Known, series: Series, nominal: int, revision: int | None, occurrence: Occurrence | None
) -> Addressed:
    run, row = await find_revision(series, nominal, revision)
    key = await key_of(run) if series.grain == "adhoc" else key_in(known, series, run)
    return Addressed(known, key, run, occurrence, row)


async def find_revision(series: Series, nominal: int, revision: int | None) -> tuple[RunId, Run | None]:
    """The run of a nominal with its row: that revision, or for None the newest. Only `reopen` makes a second one.

    Raises `UnknownRun` for a revision that nobody opened.
    """
    row = await look_newest(series.id, nominal) if revision is None else await look(RunId(series.id, nominal, revision))
    if row is None and revision not in (None, 1):
        raise UnknownRun(f"there is no revision {revision} of this run")
    return (RunId(series.id, nominal), None) if row is None else (row.id, row)


def key_in(known: Known, series: Series, run: RunId) -> RunKey:
    """The key of a run in a series of a line, other than that of its ad-hoc runs; as `key_of`. Pure."""
    assert known.line is not None
    revision = None if run.revision == 1 else run.revision
    return RunKey(known.job.name, known.line.scope, series.grain, run.nominal, series.zone, revision)


async def key_here(known: Known, run: RunId) -> RunKey:
    """As `key_of`, of a run of a line that is known: without a look, where it is of its series."""
    if known.series is not None and run.series == known.series.id:
        return key_in(known, known.series, run)
    return await key_of(run)


async def key_of(run: RunId) -> RunKey:
    """The key of a stored run, with its revision only where that is not the first."""
    found = await one(SERIES_BY_ID, lambda name, scope, *series: (name, scope, Series(*series)), series=run.series)
    assert found is not None  # a run's series is never deleted
    name, scope, series = found
    revision = None if run.revision == 1 else run.revision
    if series.grain == "adhoc":
        adhoc = await one(ADHOC_ID, str, series=run.series, nominal=run.nominal)
        return RunKey(name, scope, "adhoc", 0, "", revision, adhoc or "")
    return RunKey(name, scope, series.grain, run.nominal, series.zone, revision)
