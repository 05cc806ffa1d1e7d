"""Metrics: what a monitor may watch, computed from the ledger and the schedule at the moment of the scrape.

Nothing is counted in a process: a number is as true after a restart, on another host and for a job that nobody pokes. So a
window that was never opened is in them, and lateness is that of every other view (`verdict`). All are gauges: what the
ledger forgets (attempts are pruned, windows are settled) cannot be a counter, which must only rise. `snapshot` looks, and
`text` prints; between them there is nothing, so that whoever serves them need only call both.

No run key and no attempt is a label: labels are the job, the scope, a state, an outcome, a destination. The job's is called
`job_name`, for `job` is what Prometheus itself calls the source of a sample, and would put in its place.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

from duly.evidence import verdict
from duly.evidence.backfill import windows_to_come
from duly.evidence.complete_through import Completeness, completeness_of
from duly.evidence.status import Unopened, is_over, look_at_most, never_opened_of, opened
from duly.evidence.verdict import Window, lines
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.backfill import COLUMNS, Backfill
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.message_states import UNSETTLED
from duly.ledger.records import Known, pause_of
from duly.records import record
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    Labels: TypeAlias = tuple[tuple[str, str], ...]
    Sample: TypeAlias = tuple[Labels, int | str]

# The media type of `text` (Prometheus), and of `open_metrics_text` (OpenMetrics 1.0).
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

LEFT_AT_MOST = 10_000  # windows of a backfill that are counted
RECENT = 50  # attempts of a line, by the order of their windows

STATES = (
    *(verdict.MISSING, verdict.LATE, verdict.DUE, verdict.RUNNING, verdict.RETRYING),
    *(verdict.FAILED, verdict.UNKNOWN, verdict.UNDELIVERED),
)
OUTCOMES = ("completed", "failed", "cancelled", "lost", "released")

RECENT_ATTEMPTS = Statement(
    "recent_attempts",
    # The newest of each series of the line, by its primary key: it is no more than a few pages, however long the record is.
    """
select a.outcome, count(*)
  from duly_series s
  join duly_attempt a
    on a.series = s.id and a.nominal >= coalesce((select min(nominal)
                                                   from (select n.nominal
                                                           from duly_attempt n
                                                          where n.series = s.id
                                                          order by n.nominal desc limit :recent) newest), 0)
 where s.line = :line
 group by a.outcome
""",
)

BACKFILLS_OF_LINE = Statement(
    "backfills_of_line",
    f"""
select {COLUMNS}
  from duly_series s
  join duly_backfill f on f.series = s.id and {ors("f.state", LIVE)}
 where s.line = :line
 order by f.id
""",
)

MESSAGES = Statement(
    "messages_by_state",
    f"""
select m.destination, m.state, count(*), min(m.noted_at)
  from duly_message m
 where {ors("m.state", UNSETTLED)}
 group by m.destination, m.state
 order by m.destination, m.state
""",
)

SCHEMA_OF_LEDGER = Statement("schema_of_ledger", "select cast(value as integer) from duly_meta where name = 'schema'")


@record
class LineSeen:
    """What is to be said of one line. `windows`: how many are in each state of those that are not done."""

    job: str
    scope: str
    windows: Mapping[str, int]
    late: int
    needs: int  # windows that need a person
    attempts: Mapping[str, int]  # the newest, by outcome
    completeness: Completeness
    paused: bool
    backfill_left: int


@record
class MessagesSeen:
    """Messages of one destination in one state, and when the oldest of them was noted."""

    destination: str
    state: str
    messages: int
    oldest: int


@record
class Snapshot:
    """All that the metrics say, at an instant of the ledger's clock."""

    as_of: int
    schema: int
    lines: Sequence[LineSeen]
    messages: Sequence[MessagesSeen]


async def snapshot() -> Snapshot:
    """Look at the whole ledger. A line that has ended, and of which nothing is left, is not in it."""
    instant = await now()
    found = await lines()
    all_rows = await opened(found, instant)
    all_asleep = await never_opened_of(found, instant, look_at_most(len(found)))
    each = zip(found, all_rows, all_asleep, strict=True)
    seen = [await _line(known, rows, asleep, instant) for known, rows, asleep in each]
    return Snapshot(
        instant,
        await one(SCHEMA_OF_LEDGER, int) or 0,
        [line for line in seen if line is not None],
        await every(MESSAGES, MessagesSeen),
    )


async def _line(known: Known, rows: list[Window], asleep: Unopened, instant: int) -> LineSeen | None:
    assert known.line is not None
    if is_over(known, rows, asleep, instant):
        return None
    windows = [*rows, *asleep.windows]
    return LineSeen(
        known.job.name,
        known.line.scope,
        Counter(window.verdict.word for window in windows),
        sum(window.verdict.late for window in windows),
        sum(window.verdict.needs_a_person for window in windows),
        dict(await every(RECENT_ATTEMPTS, lambda *row: row, line=known.line.id, recent=RECENT)),
        await completeness_of(known, instant),
        pause_of(known, instant) is not None,
        await _left(known),
    )


async def _left(known: Known) -> int:
    """The windows that live backfills of a line have still to come to."""
    assert known.line is not None
    live = await every(BACKFILLS_OF_LINE, Backfill, line=known.line.id)
    return sum([len(list(islice(await windows_to_come(mine, known), LEFT_AT_MOST))) for mine in live])


@record
class Scrape:
    """What was seen, or None where the ledger could not be read; how long that took, in microseconds; and by which duly."""

    seen: Snapshot | None
    took: int
    version: str


# -- what each of them is -----------------------------------------------------------------------------------------------


@record
class Metric:
    """One metric: its name, what it says in a sentence, its labels, and its samples in a scrape."""

    name: str
    says: str
    labels: tuple[str, ...]
    samples: Callable[[Scrape], Iterable[Sample]]


def _of_ledger(name: str, says: str, labels: tuple[str, ...], of: Callable[[Snapshot], Iterable[Sample]]) -> Metric:
    """A metric of which nothing is said where the ledger could not be read."""
    return Metric(name, says, labels, lambda scrape: () if scrape.seen is None else of(scrape.seen))


def _of_line(name: str, says: str, value: Callable[[LineSeen, int], int | str | None]) -> Metric:
    """A metric with one sample a line; None: nothing is said of this one."""

    def samples(seen: Snapshot) -> Iterator[Sample]:
        for line in seen.lines:
            found = value(line, seen.as_of)
            if found is not None:
                yield _names(line), found

    return _of_ledger(name, says, ("job_name", "scope"), samples)


def _by(name: str, says: str, label: str, values: Sequence[str], of: Callable[[LineSeen], Mapping[str, int]]) -> Metric:
    """A metric with a sample for each value of a label, those that are nought too: so that an alert ends."""

    def samples(seen: Snapshot) -> Iterator[Sample]:
        for line in seen.lines:
            for each in values:
                yield (*_names(line), (label, each)), of(line).get(each, 0)

    return _of_ledger(name, says, ("job_name", "scope", label), samples)


def _names(line: LineSeen) -> Labels:
    return ("job_name", line.job), ("scope", line.scope)


def _messages(seen: Snapshot) -> Iterator[Sample]:
    found = {(each.destination, each.state): each.messages for each in seen.messages}
    for destination in dict.fromkeys(each.destination for each in seen.messages):
        for state in UNSETTLED:
            yield (("destination", destination), ("state", state)), found.get((destination, state), 0)


def _oldest(seen: Snapshot) -> Iterator[Sample]:
    for destination in dict.fromkeys(each.destination for each in seen.messages):
        oldest = min(each.oldest for each in seen.messages if each.destination == destination)
        yield (("destination", destination),), seconds(seen.as_of - oldest)


def _through(line: LineSeen, _: int) -> str | None:
    return None if line.completeness.through is None else seconds(line.completeness.through)


def _lag(line: LineSeen, as_of: int) -> str | None:
    return None if line.completeness.through is None else seconds(max(as_of - line.completeness.through, 0))


def _last_end(line: LineSeen, _: int) -> str | None:
    return None if line.completeness.last is None else seconds(line.completeness.last.window_end)


def _took(line: LineSeen, _: int) -> str | None:
    last = line.completeness.last
    return None if last is None or last.took is None else seconds(last.took)


METRICS: tuple[Metric, ...] = (
    _of_line(
        "duly_complete_through_timestamp_seconds",
        "Every window of the line that ends by then is done: completed with its messages delivered, or skipped.",
        _through,
    ),
    _of_line(
        "duly_complete_through_lag_seconds",
        "How long ago that was, by the clock of the ledger. It rises to a period and the time the work takes.",
        _lag,
    ),
    _of_line(
        "duly_last_completed_window_end_timestamp_seconds",
        "When the newest window ends that is done, whatever is missing before it.",
        _last_end,
    ),
    _of_line(
        "duly_last_completed_duration_seconds",
        "How long the attempt took that completed that window.",
        _took,
    ),
    _by(
        "duly_windows",
        "Windows that came due and are not done, in each state; of those never opened the newest are counted.",
        "state",
        STATES,
        lambda line: line.windows,
    ),
    _of_line(
        "duly_windows_late",
        "Windows that are due for longer than their grace and not done, in whichever state.",
        lambda line, _: line.late,
    ),
    _of_line(
        "duly_windows_in_need",
        "Windows that need a person: unknown, failed and waiting, or late with nobody coming for them.",
        lambda line, _: line.needs,
    ),
    _by(
        "duly_recent_attempts",
        f"How the attempts at the newest windows ended, the newest {RECENT} of the line: of them, not of a time.",
        "outcome",
        OUTCOMES,
        lambda line: line.attempts,
    ),
    _of_line(
        "duly_paused",
        "1 while nothing of the line is started, by the word of a person.",
        lambda line, _: int(line.paused),
    ),
    _of_line(
        "duly_backfill_windows_left",
        "Windows that backfills of the line have still to come to.",
        lambda line, _: line.backfill_left,
    ),
    _of_ledger("duly_messages", "Messages that are not delivered, in each state.", ("destination", "state"), _messages),
    _of_ledger(
        "duly_messages_oldest_age_seconds",
        "How long ago the oldest of them was noted, by the clock of the ledger.",
        ("destination",),
        _oldest,
    ),
    _of_ledger(
        "duly_snapshot_timestamp_seconds",
        "When the ledger was looked at, by its own clock: a file that nobody writes any more shows by this.",
        (),
        lambda seen: [((), seconds(seen.as_of))],
    ),
    _of_ledger(
        "duly_schema_version",
        "The version of the schema of the ledger.",
        (),
        lambda seen: [((), seen.schema)],
    ),
    Metric(
        "duly_ledger_up",
        "1 where the ledger could be read, else 0, and nothing is said of what it holds.",
        (),
        lambda scrape: [((), int(scrape.seen is not None))],
    ),
    Metric(
        "duly_scrape_duration_seconds", "How long it took to look.", (), lambda scrape: [((), seconds(scrape.took))]
    ),
    Metric(
        "duly_build_info",
        "1, of the version of duly that looked.",
        ("version",),
        lambda scrape: [((("version", scrape.version),), 1)],
    ),
)


# -- text ---------------------------------------------------------------------------------------------------------------


def text(scrape: Scrape) -> str:
    """A scrape in the text format of Prometheus, 0.0.4. Pure."""
    return "".join(_family(metric, metric.samples(scrape)) for metric in METRICS)


def open_metrics_text(scrape: Scrape) -> str:
    """The same in that of OpenMetrics, which tells a text that was cut off from a whole one. Pure."""
    return text(scrape) + "# EOF\n"


def _family(metric: Metric, samples: Iterable[Sample]) -> str:
    rows = [f"{metric.name}{_braces(labels)} {value}\n" for labels, value in samples]
    return f"# HELP {metric.name} {metric.says}\n# TYPE {metric.name} gauge\n{''.join(rows)}" if rows else ""


def _braces(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def seconds(micros: int) -> str:
    """Microseconds as seconds, exact to the last: a float has not enough digits for an instant. Pure."""
    sign = "-" if micros < 0 else ""
    whole, rest = divmod(abs(micros), SECOND)
    return f"{sign}{whole}" + (f".{rest:06}".rstrip("0") if rest else "")
