"""Shown: the sign of a state, the name of a window, an instant in words, the line to type. The same at every door."""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.words import ago
from duly.ledger import states
from duly.ledger.named import to_say
from duly.redaction import shown_url
from duly.times import DAY, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.verdict import Window

GLYPHS = {
    verdict.COMPLETE: "✓",
    verdict.SKIPPED: "»",
    verdict.RUNNING: "▶",
    verdict.UNKNOWN: "?",
    verdict.FAILED: "✗",
    verdict.RETRYING: "↻",
    verdict.UNDELIVERED: "✉",
    verdict.DUE: "○",
    verdict.LATE: "–",
    verdict.MISSING: "–",
    verdict.COMING: "·",
    verdict.NOT_OWED: "·",
    verdict.PRUNED: "✓",
}

_NAMED_BEFORE = 2 * DAY  # no date of one zone is shown in another later than that

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def when(instant: int, zone: str, *, time: str, now: int) -> str:
    """An instant as `--time` asks: `Sun 25 Oct 02:30+02:00` in the schedule's zone, in UTC, or relative to now."""
    if time == "relative":
        return ago(instant, now)
    moment = Zone("UTC" if time == "utc" else zone).local(instant)
    year = f" {moment.year}" if abs(instant - now) > 300 * DAY else ""
    clock = moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
    offset = moment.strftime("%z")
    shown = "Z" if time == "utc" or zone == "UTC" else f"{offset[:3]}:{offset[3:]}"
    return f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]}{year} {clock}{shown}"


def line_name(window: Window) -> str:
    """Job and scope as people read them: `acme/invoice-export`."""
    return f"{window.key.scope}/{window.key.job}" if window.key.scope else window.key.job


def window_name(window: Window) -> str:
    """The window as a person names it; the whole key where that would find another run, or none.

    In the days after the schedule has changed with its zone, for before the change there may be a window of that name.
    """
    known = window.known
    version = known.version
    replaced = window.row is not None and window.row.state == states.REPLACED
    # Of a former series the version that is known is not the one in force.
    if version is None or version.number != known.job.version or replaced:
        return str(window.key)
    if (window.key.zone, window.key.grain) != (version.zone, version.grain):
        return str(window.key)
    since, bounds = version.effective_from, window.bounds
    is_near = bool(since) and bounds is not None and bounds[0] < since + _NAMED_BEFORE
    in_utc = (window.key.zone, window.key.grain) == ("UTC", "fire")
    return f"{window.key.middle}[{window.key.zone}]" if is_near and not in_utc else window.key.middle


def zone_of(window: Window) -> str:
    """The zone in which to show a window's times."""
    return window.key.zone or "UTC"


def typed(verb: str, window: Window, ledger: str | None) -> str:
    """The command line that does `verb` to a window, as a person would type it."""
    from shlex import join

    name = window_name(window)
    words = [name] if ":" in name and name == str(window.key) else [window.key.job, name]
    scope = ["--scope", window.key.scope] if window.key.scope and len(words) > 1 else []
    line = join(["duly", *verb.split(), *words, *scope, *(["--ledger", shown_url(ledger)] if ledger else [])])
    return " ".join(filter(None, (line, to_say(verb))))
