"""The work list: what needs somebody, the most urgent first, each with one safe thing to do. Pure.

Urgency is age times importance. What may have happened and nobody knows is worth more than what failed, that more than what
was never started, and that more than what is only late. An age counts up to a week: what has waited for a month waits for no
minute.
"""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.fold import folded, range_name, reasons
from duly.evidence.shown import line_name, typed, window_name
from duly.evidence.status import Status, Unopened
from duly.evidence.status_words import in_few_words, is_noted, skipped_next
from duly.evidence.verdict import Window
from duly.ledger.contracts import EXTERNAL
from duly.records import record
from duly.redaction import shown_url
from duly.times import DAY, MINUTE

IMPORTANCE = {
    verdict.UNKNOWN: 5,
    verdict.FAILED: 4,
    verdict.MISSING: 3,
    verdict.UNDELIVERED: 3,
    verdict.LATE: 2,
    verdict.RETRYING: 2,
    verdict.RUNNING: 1,
}
_OLDEST = 7 * DAY

COUNTED = (verdict.MISSING, verdict.FAILED, verdict.UNKNOWN, verdict.LATE)


@record
class Item:
    """A row of the work list: one window, or some of one line in one state.

    `advice`: the safe thing to do, in a few words; `command`: the line to type for it. `key`: of the run whose page tells more;
    empty where the job's does. `asks`: where below its path the dashboard does that safe thing, if it does.
    """

    word: str
    line: str
    job: str
    scope: str
    owner: str
    window: str
    key: str
    count: int
    more: bool
    due: int | None
    zone: str
    says: str
    advice: str
    command: str
    urgency: int
    asks: str = ""


@record
class Counts:
    """How many windows of each kind need somebody. `late`: what is late and none of the others."""

    missing: int
    failed: int
    unknown: int
    late: int
    more: bool


def counts_of(seen: Status) -> Counts:
    """How many windows are missing, failed, unknown or late."""
    words = [window.verdict.word for window in seen.needs]
    words += [window.verdict.word for unopened in seen.unopened for window in unopened.windows]
    running_late = sum(window.verdict.late and window.backfill is None for window in seen.running)
    told = {word: words.count(word) for word in (verdict.MISSING, verdict.FAILED, verdict.UNKNOWN)}
    late = len(words) - sum(told.values()) + running_late
    return Counts(
        told[verdict.MISSING],
        told[verdict.FAILED],
        told[verdict.UNKNOWN],
        late,
        any(unopened.more for unopened in seen.unopened),
    )


def kind_of(word: str) -> str:
    """Which of the four counts a window in a state that needs somebody belongs to."""
    return word if word in (verdict.MISSING, verdict.FAILED, verdict.UNKNOWN) else verdict.LATE


def work_list(seen: Status, ledger: str | None) -> list[Item]:
    """The items, the most urgent first. `ledger` is what is typed after `--ledger`."""
    items = [_of_windows(group, seen.as_of, ledger) for group in folded(seen.needs)]
    items += [_of_unopened(unopened, seen.as_of, ledger) for unopened in seen.unopened]
    items += [_of_windows([window], seen.as_of, ledger) for window in seen.running if is_noted(window)]
    return sorted(items, key=lambda item: (-item.urgency, item.due or 0, item.line))


def _of_windows(group: list[Window], now: int, ledger: str | None) -> Item:
    first = min(group, key=lambda window: window.due or 0)
    several = len(group) > 1
    word = first.verdict.word
    if several:
        says, command = reasons(group), _job_line(first, ledger)
    else:
        says, command = in_few_words(first, now), typed(_safe_verb(first), first, ledger)
    name = range_name(group) if several else window_name(first)
    return _item(first, word, name, len(group), False, says, command, now, several=several)


def _of_unopened(unopened: Unopened, now: int, ledger: str | None) -> Item:
    newest, oldest = unopened.windows[0], unopened.windows[-1]
    count = len(unopened.windows)
    says = in_few_words(oldest, now)
    if count > 1:
        says += f"; {count}{'+' if unopened.more else ''} in a row{skipped_next(unopened)}"
    name = window_name(newest) if count == 1 else range_name(unopened.windows)
    return _item(oldest, newest.verdict.word, name, count, unopened.more, says, typed("explain", newest, ledger), now)


def _safe_verb(window: Window) -> str:
    """What may be typed without knowing more: what only looks, or a retry that the contract makes safe."""
    said, row = window.verdict, window.row
    if said.word == verdict.FAILED and row is not None and row.contract != EXTERNAL:
        return "retry"
    return said.verb if said.word == verdict.UNDELIVERED else "explain"


def _item(
    window: Window,
    word: str,
    name: str,
    count: int,
    more: bool,
    says: str,
    command: str,
    now: int,
    *,
    several: bool = False,
) -> Item:
    age = max(MINUTE, min(_OLDEST, now - (window.due if window.due is not None else now)))
    return Item(
        word,
        line_name(window),
        window.key.job,
        window.key.scope,
        window.known.job.owner,
        name,
        "" if several else str(window.key),
        count,
        more,
        window.due,
        window.key.zone or "UTC",
        says,
        advice_of(window),
        command,
        IMPORTANCE.get(word, 1) * age,
        "retry" if not several and _safe_verb(window) == "retry" else "",
    )


def _job_line(window: Window, ledger: str | None) -> str:
    from shlex import join

    scope = ["--scope", window.key.scope] if window.key.scope else []
    return join(
        ["duly", "status", window.key.job, *scope, "--all", *(["--ledger", shown_url(ledger)] if ledger else [])]
    )


def advice_of(window: Window) -> str:
    """The one safe thing to do about a window, in a few words."""
    match window.verdict.word:
        case verdict.UNKNOWN:
            return "find out whether it happened, then say so"
        case verdict.FAILED if window.row is not None and window.row.contract == EXTERNAL:
            return "read the error; retry only if it left nothing behind"
        case verdict.FAILED:
            return "read the error, then retry: the failed attempt left nothing behind"
        case verdict.MISSING | verdict.LATE:
            return "see why nothing has started it"
        case verdict.UNDELIVERED:
            return "look at its messages; the run itself is done"
        case verdict.RETRYING:
            return "see what the retry waits for"
    return "see how far it is"
