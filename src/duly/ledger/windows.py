"""Windows: the row that a window is given, once, with all that is known of it.

Its bounds are computed by whoever opens it (`bounds`), and adopted by everyone after (I8). What they were computed from,
the release of the zone's rules and their fingerprint, is kept beside them.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.ask import Statement, count, do, one
from duly.ledger.bounds import Bounds, cut
from duly.ledger.events import tell
from duly.ledger.records import Known, Run, RunId
from duly.ledger.spells import find_nominal, known_of, spells_of
from duly.records import record, replace
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.occurrence import Occurrence

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

FACTS = Statement("facts", "select zone, fingerprint from duly_zone_facts where id = :facts")

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
       window_start = cast(:window_start as bigint), window_end = cast(:window_end as bigint),
       zone_facts = case when cast(:window_start as bigint) is null then null else zone_facts end
 where series = :series and nominal = :nominal and revision = 1
   and state in {from} and fence = 0 and window_end > {now}
""",
    event="skip",
)


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
    if cause is None:
        await do(OPEN_IF_ABSENT, series=run.series, nominal=run.nominal, **described)
        return None
    if not await _add(run, described):
        return None
    if await count(SKIP_IF_FREE, series=run.series, nominal=run.nominal, revision=run.revision, cause=cause):
        await tell("skipped", run=run, by=by, detail=cause, changed=(states.ABSENT, states.SKIPPED))
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


@record
class _Facts:
    """What the rules of a zone meant around a window when it was opened."""

    zone: str
    fingerprint: str


# -- when the rules of a zone change -------------------------------------------------------------------------------------


def is_sealed(run: Run, instant: int) -> bool:
    """Whether the run's window can no longer change: it has ended, an attempt has started, or it has none (I8). Pure."""
    return run.window_end is None or run.fence > 0 or run.window_end <= instant


async def has_moved(run: Run) -> bool:
    """Whether the zone's rules mean something else around the run's window here and now than they did when it was made."""
    if run.zone_facts is None or run.window_start is None or run.window_end is None:
        return False
    from duly.schedule.facts import facts_of

    stored = await one(FACTS, _Facts, facts=run.zone_facts)
    assert stored is not None  # what a row names is never deleted
    return stored.fingerprint != facts_of(stored.zone, run.window_start, run.window_end).fingerprint


async def move(known: Known, moved: list[Run], by: str) -> None:
    """Resolve windows that are not sealed anew, or void those whose time the rules have no more; with an event each.

    Time stays in one piece: bounds move between two of them, and at the end of the last window that is open, nowhere else.
    """
    assert known.line is not None
    moved_to: dict[int, int] = {}  # ends, as they were and as they are
    for run in sorted(moved, key=lambda run: run.window_start or 0):
        assert run.window_start is not None
        assert run.window_end is not None
        is_last = run.window_end == known.line.opened_until
        in_series = await known_of(known, run)
        occurrence = await _under_rules_of_today(in_series, run)
        start, end = moved_to.get(run.window_start, run.window_start), run.window_end
        if is_last or any(other.window_start == end for other in moved):
            end = start if occurrence is None else max(start, occurrence.end)
        if is_last and end > run.window_end:
            end = max(run.window_end, (await cut(run.id, run.window_end, end)).end)
        if not await _resolve_anew(in_series, run, start, end, occurrence, by):
            end = run.window_end  # it was sealed meanwhile
        moved_to[run.window_end] = end
        if is_last:
            await count(OPENED_UNTIL, line=known.line.id, until=end, next_due=known.line.next_due)


async def _under_rules_of_today(known: Known, run: Run) -> Occurrence | None:
    """The window of a run as the rules have it here and now: the last of a version may end later than they had it then."""
    spells = await spells_of(known)
    found = find_nominal(spells, run.nominal)
    opened_by = next((spell for spell in spells if spell.version == run.version), None)
    return found if found is not None or opened_by is None else opened_by.schedule.find(run.nominal)


async def _resolve_anew(known: Known, run: Run, start: int, end: int, occurrence: Occurrence | None, by: str) -> bool:
    """Move or void one window. False: it is sealed after all, and stays as it is."""
    named = {"series": run.series, "nominal": run.nominal}
    if occurrence is None or start == end:
        cause = "no such time under the zone's rules of today" if occurrence is None else NO_TIME_LEFT
        left = (None, None) if start == end else (start, end)
        if not await count(VOID_IF_UNSEALED, **named, window_start=left[0], window_end=left[1], cause=cause):
            return False
        await tell("skipped", run=run.id, by=by, detail=cause, changed=(run.standing, states.SKIPPED))
        return True
    described = await _describe(known, replace(occurrence, start=start, end=end))
    if not await count(MOVE_IF_UNSEALED, **named, **described):
        return False
    before = f"{instant_text(run.window_start or 0)}..{instant_text(run.window_end or 0)}"
    after = f"{instant_text(start)}..{instant_text(end)}"
    await tell("window_moved", run=run.id, by=by, detail=f"window {before} → {after}", changed=(before, after))
    return True


async def notice_drift(known: Known, run: Run, by: str) -> None:
    """Record that the rules here and now disagree with the stored bounds of a run that is claimed; the stored ones win."""
    if not await has_moved(run):
        return
    from duly.schedule.facts import disagreement, release_in_use

    known = await known_of(known, run)

    assert run.window_start is not None
    assert run.window_end is not None
    assert known.series is not None
    found = find_nominal(await spells_of(known), run.nominal)
    said = disagreement(run.window_start, run.window_end, found)
    if said:
        release = release_in_use(known.series.zone)
        await tell("tz_drift", run=run.id, by=by, detail=f"{said}; rules {release.version} from {release.source}")
