"""Export: how each window of a range ended, line after line, for somebody who does not have the ledger.

All of it is judged by `verdict`, as every view is, in one snapshot and at one instant; so the same ledger, range and
instant give the same lines. Windows are read some hundreds at a time, by key, and handed on: a year of five-minute windows
takes no more memory than a day.
"""

from __future__ import annotations

from itertools import islice

from duly.errors import Misuse, WindowInvalid
from duly.evidence import verdict
from duly.evidence.chain import HEADER, SCHEMA, WINDOW
from duly.evidence.next import Range, parse_range, within
from duly.evidence.runs import Attempt, current_attempt
from duly.evidence.verdict import Window, lines, window_of_row, windows_of_line
from duly.ledger import states
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.records import LEASES, RUN_COLUMNS, EndedAttempt, Known, Run, Series
from duly.ledger.spells import SERIES_OF_LINE, find_nominal, known_of, spells_of_line
from duly.records import record
from duly.schedule.facts import release_in_use
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from duly.evidence.chain import Json
    from duly.schedule.spells import Spell

AT_A_TIME = 500

META = Statement("meta", "select value from duly_meta where name = :name")

RUNS_BETWEEN = Statement(
    "runs_between",
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.nominal between :first and :last
 order by r.nominal, r.revision
""",
)

ATTEMPTS_BETWEEN = Statement(
    "attempts_between",
    """
select nominal, revision, number, attempt_id, started_at, ended_at, outcome, contract, owner, trigger, error
  from duly_attempt
 where series = :series and nominal between :first and :last
 order by nominal, revision, number
""",
)

MESSAGES_BETWEEN = Statement(
    "messages_between",
    # Of its body the digest, and no more.
    """
select nominal, revision, number, name, destination, idempotency_key, digest, state, cause, fence, noted_at,
       first_sent_at, settled_at
  from duly_message
 where series = :series and nominal between :first and :last
 order by nominal, revision, number
""",
)

EVENTS_BETWEEN = Statement(
    "events_between",
    """
select nominal, revision, at, kind, by, reason, before, after, detail
  from duly_event
 where series = :series and nominal between :first and :last
 order by nominal, at, id
""",
)

RANGES_TOLD = Statement(
    "ranges_told",
    """
select from_nominal, to_nominal, reason, at, by
  from duly_skipped
 where series = :series and from_nominal <= :last and to_nominal > :first
 order by from_nominal
""",
)


@record
class Wanted:
    """What to export: a half-open range, in the wall clock of each schedule; one job or all, one scope or all.

    `at`: the instant by which it is judged what is late; the ledger's now, where none is given. `release`: of
    duly, which writes it.
    """

    range: str
    job: str | None = None
    scope: str | None = None
    at: int | None = None
    release: str = ""


async def export(wanted: Wanted, write: Callable[[dict[str, Json]], object]) -> None:
    """Hand on the header, and then each window that was owed in the range, by job, scope and due time.

    Raises `WindowInvalid` for a range without a beginning or an end, and `Misuse` for an instant to come.
    """
    instant = await now()
    as_of = instant if wanted.at is None else wanted.at
    if as_of > instant:
        raise Misuse(f"at: {instant_text(as_of)} is still to come")
    found = [known for known in await lines(wanted.job, wanted.scope) if known.version is not None]
    ranges = [_range(wanted.range, known, as_of) for known in found]
    _range(wanted.range, None, as_of)
    zones = sorted({known.version.zone for known in found if known.version is not None})
    write(
        {
            "kind": HEADER,
            "schema": SCHEMA,
            "ledger": await one(META, str, name="ledger_id"),
            "namespace": await one(META, str, name="namespace"),
            "epoch": int(await one(META, str, name="epoch") or 0),
            "range": wanted.range,
            "job": wanted.job,
            "scope": wanted.scope,
            "exported_at": instant_text(as_of),
            "tzdata": {zone: release_in_use(zone).version for zone in zones},
            "duly": wanted.release,
        }
    )
    for known, between in zip(found, ranges, strict=True):
        await _line(known, between, as_of, write)


def _range(text: str, known: Known | None, instant: int) -> Range:
    zone = "UTC" if known is None or known.version is None else known.version.zone
    found = parse_range(text, zone, instant)
    if found.begin is None or found.end is None:
        raise WindowInvalid(
            f"range: {text!r} has no {'end' if found.end is None else 'beginning'}; what is to be kept has both",
            next_step="duly runs export 2026-11-01..2026-12-01 -o november.jsonl",
        )
    return found


async def _line(known: Known, between: Range, instant: int, write: Callable[[dict[str, Json]], object]) -> None:
    """The windows of one line. Rows that no schedule names any more stand after those among which they lie."""
    if known.series is None:
        return
    spells = await spells_of_line(known)
    ahead = within(spells, between, instant)
    rows = [
        _Rows(series, between)
        for series in await every(SERIES_OF_LINE, Series, line=known.line.id if known.line else 0)
    ]
    while True:
        placed = list(islice(ahead, AT_A_TIME))
        windows = await windows_of_line(known, placed, instant)
        is_last = len(placed) < AT_A_TIME or placed[-1].occurrence.due > instant
        for mine in rows:
            windows += await mine.off_the_grid(known, spells, windows, instant, to_the_end=is_last)
        beside = [await _beside(mine.series, windows) for mine in rows]
        for window in windows:
            if window.verdict.word != verdict.NOT_OWED and (window.due or 0) <= instant:
                write(next(each for each in beside if each.series == window.run.series).told(window))
        if is_last:
            return


class _Rows:
    """The rows of one series in the range, of which those off the grid are looked for as the windows go by."""

    def __init__(self, series: Series, between: Range) -> None:
        assert between.begin is not None
        assert between.end is not None
        self.series = series
        self._first, self._beyond = 2 * between.begin, 2 * between.end

    async def off_the_grid(
        self, known: Known, spells: list[Spell], windows: list[Window], instant: int, *, to_the_end: bool
    ) -> list[Window]:
        """Rows up to the last of these windows, or the end of the range, that are none of the schedule's windows."""
        if self.series.grain == "adhoc":
            return []
        mine = [window.run.nominal for window in windows if window.run.series == self.series.id]
        last = self._beyond - 1 if to_the_end else max(mine, default=self._first - 1)
        first, self._first = self._first, max(self._first, last + 1)
        of_series = [spell for spell in spells if spell.series == (self.series.zone, self.series.grain)]
        seen = set(mine)
        newest = {
            row.nominal: row
            for row in await every(RUNS_BETWEEN, Run, series=self.series.id, first=first, last=last)
            if row.nominal not in seen and find_nominal(of_series, row.nominal) is None
        }
        return [await window_of_row(await known_of(known, row), row, instant) for row in newest.values()]


class _Beside:
    """What hangs on the windows of one series: attempts, messages, events, and the ranges that were skipped."""

    def __init__(self, series: int) -> None:
        self.series = series
        self.attempts: dict[int, list[Attempt]] = {}
        self.messages: dict[int, list[dict[str, Json]]] = {}
        self.events: dict[int, list[dict[str, Json]]] = {}
        self.ranges: list[tuple[int, int, str, int, str]] = []

    def told(self, window: Window) -> dict[str, Json]:
        """All that is to be said of a window."""
        row, bounds, nominal = window.row, window.bounds, window.run.nominal
        ended = self.attempts.get(nominal, [])
        current = [Attempt(row.revision, current_attempt(row))] if row is not None and row.state in _CURRENT else []
        version, resolution = _by_schedule(window) if row is None else (row.version, row.resolution)
        return {
            "kind": WINDOW,
            "key": str(window.key),
            "job": window.key.job,
            "scope": window.key.scope,
            "window": window.key.middle,
            "zone": window.key.zone,
            "revision": window.run.revision,
            "state": window.verdict.word,
            "late": window.verdict.late,
            "note": window.verdict.note,
            "due": _iso(window.due),
            "window_start": _iso(bounds[0] if bounds else None),
            "window_end": _iso(bounds[1] if bounds else None),
            "version": version,
            "resolution": resolution,
            "settled_at": None if row is None else _iso(row.settled_at),
            "skipped": self._skipped(nominal) if row is None and window.verdict.word == verdict.SKIPPED else None,
            "attempts": [_attempt(attempt) for attempt in (*ended, *current)],
            "messages": list(self.messages.get(nominal, [])),
            "events": list(self.events.get(nominal, [])),
        }

    def _skipped(self, nominal: int) -> dict[str, Json] | None:
        for first, beyond, reason, at, by in self.ranges:
            if first <= nominal < beyond:
                return {"reason": reason, "at": _iso(at), "by": by}
        return None


def _by_schedule(window: Window) -> tuple[int | None, str | None]:
    """Which version of the schedule a window without a row belongs to, and what the clocks did to it."""
    version, occurrence = window.known.version, window.occurrence
    return None if version is None else version.number, None if occurrence is None else occurrence.resolution


_CURRENT = (states.RUNNING, states.UNKNOWN)


async def _beside(series: Series, windows: list[Window]) -> _Beside:
    beside = _Beside(series.id)
    nominals = [window.run.nominal for window in windows if window.run.series == series.id]
    if not nominals:
        return beside
    of = {"series": series.id, "first": min(nominals), "last": max(nominals)}
    for nominal, revision, *ended in await every(ATTEMPTS_BETWEEN, _cells, **of):
        beside.attempts.setdefault(nominal, []).append(Attempt(revision, EndedAttempt(*ended)))
    for nominal, *message in await every(MESSAGES_BETWEEN, _cells, **of):
        beside.messages.setdefault(nominal, []).append(_message(*message))
    for nominal, *event in await every(EVENTS_BETWEEN, _cells, **of):
        beside.events.setdefault(nominal, []).append(_event(*event))
    beside.ranges = await every(RANGES_TOLD, _cells, **of)
    return beside


def _attempt(attempt: Attempt) -> dict[str, Json]:
    ended = attempt.ended
    return {
        "revision": attempt.revision,
        "number": ended.number,
        "attempt_id": ended.attempt_id.hex(),
        "outcome": ended.outcome,
        "started_at": _iso(ended.started_at),
        "ended_at": _iso(ended.ended_at),
        "contract": ended.contract,
        "owner": ended.owner,
        "trigger": ended.trigger,
        "error": ended.error,
    }


def _message(
    revision: int,
    number: int,
    name: str,
    destination: str,
    key: str,
    digest: str,
    state: str,
    cause: str | None,
    attempts: int,
    noted_at: int,
    first_sent_at: int | None,
    settled_at: int | None,
) -> dict[str, Json]:
    return {
        "revision": revision,
        "number": number,
        "name": name,
        "destination": destination,
        "idempotency_key": key,
        "sha256": digest,
        "state": state,
        "cause": cause,
        "attempts": attempts,
        "noted_at": _iso(noted_at),
        "first_sent_at": _iso(first_sent_at),
        "settled_at": _iso(settled_at),
    }


def _event(
    revision: int, at: int, kind: str, by: str, reason: str, before: str, after: str, detail: str
) -> dict[str, Json]:
    return {
        "revision": revision,
        "at": _iso(at),
        "kind": kind,
        "by": by,
        "reason": reason,
        "before": before,
        "after": after,
        "detail": detail,
    }


def _cells(*cells: Any) -> Any:
    return cells


def _iso(instant: int | None) -> str | None:
    return None if instant is None else instant_text(instant)


# -- against a ledger ----------------------------------------------------------------------------------------------------


@record
class Difference:
    """A window of which a file and a ledger say different things, and what."""

    key: str
    text: str


class Comparison:
    """The windows of a file beside those of a ledger, as both go by. What is not in both yet is kept until it comes."""

    def __init__(self, header: dict[str, Json], in_file: Iterator[dict[str, Json]]) -> None:
        self._header = header
        self._in_file = in_file
        self._of_file: dict[tuple[Json, ...], dict[str, Json]] = {}
        self._of_ledger: dict[tuple[Json, ...], dict[str, Json]] = {}
        self.differences: list[Difference] = []

    def see(self, fields: dict[str, Json]) -> None:
        """The next line of the ledger's own export."""
        if fields["kind"] == HEADER:
            self._compare("the header", self._header, fields, ("ledger", "namespace", "epoch"))
            return
        self._of_ledger[_place(fields)] = fields
        told = next(self._in_file, None)
        if told is not None:
            self._of_file[_place(told)] = told
        for place in {_place(fields), *([] if told is None else [_place(told)])}:
            self._meet(place)

    def _meet(self, place: tuple[Json, ...]) -> None:
        if place in self._of_file and place in self._of_ledger:
            told, fields = self._of_file.pop(place), self._of_ledger.pop(place)
            self._compare(str(told["key"]), told, fields, tuple(sorted(told.keys() | fields.keys())))

    def _compare(self, key: str, told: dict[str, Json], fields: dict[str, Json], names: tuple[str, ...]) -> None:
        other = [name for name in names if told.get(name) != fields.get(name)]
        if other:
            self.differences.append(Difference(key, "; ".join(_other(name, told, fields) for name in other)))

    def end(self) -> list[Difference]:
        """All that differs, now that the ledger's have gone by."""
        for told in self._in_file:
            self._of_file[_place(told)] = told
            self._meet(_place(told))
        self.differences += [
            Difference(str(told["key"]), "it is in the file, and not in the ledger") for told in self._of_file.values()
        ]
        self.differences += [
            Difference(str(fields["key"]), "it is in the ledger, and not in the file")
            for fields in self._of_ledger.values()
        ]
        return self.differences


def _place(fields: dict[str, Json]) -> tuple[Json, ...]:
    """What a window is known by, whichever revision of its run is the newest."""
    return fields["job"], fields["scope"], fields["window"], fields["zone"]


def _other(name: str, told: dict[str, Json], fields: dict[str, Json]) -> str:
    before, after = told.get(name), fields.get(name)
    if isinstance(before, list) and isinstance(after, list):
        return f"{name}: {len(before)} in the file, {len(after)} in the ledger, or others"
    return f"{name}: {before!r} in the file, {after!r} in the ledger"
