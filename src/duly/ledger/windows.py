"""Windows: the row that a window is given, once, with all that is known of it.

Bounds are computed by whoever opens a window, and adopted by everyone after (I8). A new window is chained to its
neighbours as they are stored: it starts where the one before ends, and ends where the one after starts, whatever the rules
of the zone say today (I9). What it was computed from, the release of the zone's rules and their fingerprint, is kept
beside it.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, count, every, one
from duly.ledger.events import tell
from duly.ledger.records import Known, Run, RunId
from duly.ledger.spells import find_nominal, spells_of, windows_after
from duly.records import record, replace
from duly.times import DAY, SECOND, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.occurrence import Occurrence

# How far a new release of a zone's rules may move a time: no zone has ever moved by more than a day.
RULES_MAY_MOVE = 2 * DAY

NO_TIME_LEFT = "its time lies in windows that were opened under other rules of the zone"

OPEN_IF_ABSENT = Statement(
    "open_if_absent",
    # I7: the series is held, so that no prune can pass this run while it is being created.
    """
insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, resolution, version,
       zone_facts, opened_at, failures)
select s.id, :nominal, 1, 'open', 0, cast(:due as bigint), cast(:window_start as bigint), cast(:window_end as bigint),
       :resolution, cast(:version as integer), cast(:zone_facts as integer), {now}, 0
  from duly_series s
 where s.id = :series and s.horizon <= :nominal {share}
    on conflict do nothing
""",
)

BOUNDS_OF = Statement(
    "bounds_of",
    """
select window_start, window_end
  from duly_run
 where series = :series and nominal = :nominal and revision = 1
""",
)

OVERLAPPING = Statement(
    "overlapping",
    """
select window_start, window_end
  from duly_run
 where series = :series and nominal between :first and :last and nominal <> :nominal and revision = 1
   and window_start < :end and window_end > :start
 order by window_start
""",
)

FIND_FACTS = Statement(
    "find_facts",
    """
select id
  from duly_zone_facts
 where zone = :zone and release = :release and source = :source and fingerprint = :fingerprint
""",
)

ADD_FACTS = Statement(
    "add_facts",
    """
insert into duly_zone_facts (zone, release, source, fingerprint)
values (:zone, :release, :source, :fingerprint)
    on conflict do nothing
""",
)

FINGERPRINT = Statement("fingerprint", "select fingerprint from duly_zone_facts where id = :facts")

OPENED_UNTIL = Statement(
    "opened_until",
    # Only under the lock of the line's row: it says where the next window starts.
    "update duly_line set opened_until = :until, next_due = :next_due where id = :line",
)

SKIP_IF_FREE = Statement(
    "skip_if_free",
    """
update duly_run
   set was = state, state = {to}, settled_at = {now}, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from}
""",
    event="skip",
)

MOVE_IF_UNSEALED = Statement(
    "move_if_unsealed",
    # I8: a window that has ended, or whose first attempt has started, never changes.
    """
update duly_run
   set due = :due, window_start = :window_start, window_end = :window_end, resolution = :resolution,
       version = :version, zone_facts = :zone_facts
 where series = :series and nominal = :nominal and revision = 1
   and state = 'open' and fence = 0 and window_end > {now}
""",
)

VOID_IF_UNSEALED = Statement(
    "void_if_unsealed",
    """
update duly_run
   set was = state, state = {to}, settled_at = {now}, cause = :cause,
       window_start = cast(:window_start as bigint), window_end = cast(:window_end as bigint)
 where series = :series and nominal = :nominal and revision = 1
   and state in {from} and fence = 0 and window_end > {now}
""",
    event="skip",
)


@record
class Bounds:
    """A window in time, [start, end)."""

    start: int
    end: int


@record
class _Stored:
    """The bounds of a row; None where it has no time of its own."""

    start: int | None
    end: int | None


async def open_window(known: Known, run: RunId, occurrence: Occurrence | None) -> bool:
    """Give a window its row, with the bounds that the occurrence has. False: it has one, or lies below the horizon.

    Without an occurrence the run has no window: it is ad hoc, or of a job without a schedule.
    """
    return await _add(run, await _describe(known, occurrence))


async def open_to_work(known: Known, run: RunId, occurrence: Occurrence | None, by: str) -> str | None:
    """Give a window its row, and settle it at once where it is not to be worked; why, or None.

    There is no hole where nothing is worked, but a run that says why: of a day off, or with no time of its own.
    """
    described = await _describe(known, occurrence)
    cause = None
    if occurrence is not None:
        cause = occurrence.off or (NO_TIME_LEFT if described["window_start"] is None else None)
    if not await _add(run, described) or not cause:
        return None
    if await count(SKIP_IF_FREE, series=run.series, nominal=run.nominal, revision=run.revision, cause=cause):
        await tell("skipped", run=run, by=by, detail=cause)
    return cause


async def _add(run: RunId, described: dict[str, Value]) -> bool:
    return bool(await count(OPEN_IF_ABSENT, series=run.series, nominal=run.nominal, **described))


_NOTHING_KNOWN: dict[str, Value] = dict.fromkeys(
    ("due", "window_start", "window_end", "resolution", "version", "zone_facts")
)


async def _describe(known: Known, occurrence: Occurrence | None) -> dict[str, Value]:
    if occurrence is None:
        return _NOTHING_KNOWN
    assert known.version is not None  # it has an occurrence
    bounds = Bounds(occurrence.start, occurrence.end) if occurrence.start < occurrence.end else None
    facts = None
    if bounds is not None and known.version.zone != "UTC":  # whose rules never change
        facts = await zone_facts(known.version.zone, bounds)
    return {
        "due": occurrence.due,
        "window_start": None if bounds is None else bounds.start,
        "window_end": None if bounds is None else bounds.end,
        "resolution": occurrence.resolution,
        "version": await _version_of(known, occurrence),
        "zone_facts": facts,
    }


async def _version_of(known: Known, occurrence: Occurrence) -> int:
    assert known.version is not None
    spells = await spells_of(known)
    if len(spells) == 1:
        return known.version.number
    return next((s.version for s in reversed(spells) if s.find(occurrence.nominal) is not None), known.version.number)


async def chained(known: Known, run: RunId, occurrence: Occurrence | None) -> Occurrence | None:
    """The window of a run that is named, between its neighbours as they are stored. It starts where it ends if they leave
    it no time.

    Between those that the rules of today name, and around every other that is stored near it: rules of before may have
    named a window that is none today.
    """
    if occurrence is None or known.version is None or known.version.zone == "UTC":
        return occurrence
    assert known.line is not None
    spells = await spells_of(known)
    start, end = occurrence.start, occurrence.end
    before = next(windows_after(spells, start - 1), None)
    while before is not None and (earlier := await _stored(run.series, before.nominal)) is not None:
        if earlier.end is not None:
            start = earlier.end
            break
        # Its name was settled without a time of its own; by the rules of today it has one, which falls to this window.
        start = before.start
        before = next(windows_after(spells, start - 1), None)
        if before is not None and before.start >= start:
            break  # at a seam: by the rules of today nothing ends there
    else:
        opened = known.line.opened_until
        if opened is not None and before is not None and before.end <= opened < end:
            start = opened  # the one before was passed over: this is the first that is not open yet
    after = next(windows_after(spells, end), None)
    later = None if after is None else await _stored(run.series, after.nominal)
    if later is not None and later.start is not None:
        end = later.start
    near = 2 * (max(end - start, 0) + RULES_MAY_MOVE) // SECOND
    span = {"first": run.nominal - near, "last": run.nominal + near, "start": start, "end": end}
    for other in await every(OVERLAPPING, Bounds, series=run.series, nominal=run.nominal, **span):
        if other.start <= start:
            start = max(start, other.end)
        else:
            end = min(end, other.start)  # what lies beyond the other falls to the window after this one
    return replace(occurrence, start=start, end=max(start, end))


async def _stored(series: int, nominal: int) -> _Stored | None:
    return await one(BOUNDS_OF, _Stored, series=series, nominal=nominal)


async def zone_facts(zone: str, bounds: Bounds) -> int:
    """The row of what a zone's rules mean around a window, on this host now; made if it is new."""
    from duly.schedule.facts import facts_of  # needed where a window is opened in a zone that has rules

    found = facts_of(zone, bounds.start, bounds.end)
    named = {
        "zone": zone,
        "release": found.release.version,
        "source": found.release.source,
        "fingerprint": found.fingerprint,
    }
    facts = await one(FIND_FACTS, int, **named)
    if facts is None:
        await count(ADD_FACTS, **named)
        facts = await one(FIND_FACTS, int, **named)
    assert facts is not None
    return facts


# -- when the rules of a zone change -------------------------------------------------------------------------------------


def is_sealed(run: Run, instant: int) -> bool:
    """Whether the run's window can no longer change: it has ended, an attempt has started, or it has none (I8). Pure."""
    return run.window_end is None or run.fence > 0 or run.window_end <= instant


async def has_moved(known: Known, run: Run) -> bool:
    """Whether the zone's rules mean something else around the run's window here and now than they did when it was made."""
    if run.zone_facts is None or known.series is None or run.series != known.series.id:
        return False
    from duly.schedule.facts import facts_of

    assert run.window_start is not None
    assert run.window_end is not None
    here = facts_of(known.series.zone, run.window_start, run.window_end)
    return await one(FINGERPRINT, str, facts=run.zone_facts) != here.fingerprint


async def move(known: Known, moved: list[Run], by: str) -> None:
    """Resolve windows that are not sealed anew, or void those whose time the rules have no more; with an event each.

    Time stays in one piece: bounds move between two of them, and at the end of the last window that is open, nowhere else.
    """
    spells = await spells_of(known)
    assert known.line is not None
    moved_to: dict[int, int] = {}  # ends, as they were and as they are
    for run in sorted(moved, key=lambda run: run.window_start or 0):
        assert run.window_start is not None
        assert run.window_end is not None
        is_last = run.window_end == known.line.opened_until
        occurrence = find_nominal(spells, run.nominal)
        start, end = moved_to.get(run.window_start, run.window_start), run.window_end
        if is_last or any(other.window_start == end for other in moved):
            end = start if occurrence is None else max(start, occurrence.end)
        moved_to[run.window_end] = end
        await _resolve_anew(known, run, start, end, occurrence, by)
        if is_last:
            await count(OPENED_UNTIL, line=known.line.id, until=end, next_due=known.line.next_due)


async def _resolve_anew(known: Known, run: Run, start: int, end: int, occurrence: Occurrence | None, by: str) -> None:
    named = {"series": run.series, "nominal": run.nominal}
    if occurrence is None or start == end:
        cause = "no such time under the zone's rules of today" if occurrence is None else NO_TIME_LEFT
        bounds = (
            {"window_start": None, "window_end": None} if start == end else {"window_start": start, "window_end": end}
        )
        if await count(VOID_IF_UNSEALED, **named, **bounds, cause=cause):
            await tell("skipped", run=run.id, by=by, detail=cause)
    elif await count(MOVE_IF_UNSEALED, **named, **await _describe(known, replace(occurrence, start=start, end=end))):
        before = f"{instant_text(run.window_start or 0)}..{instant_text(run.window_end or 0)}"
        detail = f"window {before} → {instant_text(start)}..{instant_text(end)}"
        await tell("window_moved", run=run.id, by=by, detail=detail)


async def notice_drift(known: Known, run: Run, by: str) -> None:
    """Record that the rules here and now disagree with the stored bounds of a run that is claimed; the stored ones win."""
    if not await has_moved(known, run):
        return
    from duly.schedule.facts import disagreement, release_in_use

    assert run.window_start is not None
    assert run.window_end is not None
    assert known.series is not None
    found = find_nominal(await spells_of(known), run.nominal)
    said = disagreement(run.window_start, run.window_end, found)
    if said:
        release = release_in_use(known.series.zone)
        await tell("tz_drift", run=run.id, by=by, detail=f"{said}; rules {release.version} from {release.source}")
