"""Alerts: looks for what somebody is to be told of, and writes the messages that tell it; a relay delivers them.

A look costs what `duly status` costs, and is made once in a while (`every`) by all pokes and daemons of a ledger together.
Who is told is declared beside destinations: `[alerts]` in duly.toml, `on_late` of a job, `ledger.alerts(…)`.
"""

from __future__ import annotations

import json

from duly.errors import Misuse
from duly.evidence.conditions import conditions
from duly.ledger.alerts import KINDS, LATE, RECOVERED, Audience, begin_look, record_look
from duly.ledger.send import LONGEST_NAME, Letter
from duly.records import record, replace
from duly.times import MINUTE, instant_text, parse_duration
from duly.work.identity import new_attempt_id, owner
from duly.work.letters import JSON, TEXT, key_of_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from duly.ledger.alerts import Alert, Telling
    from duly.outbox.routes import Route
    from duly.store.protocol import Store

SCHEMA = "duly.alert.v1"
EVERY = MINUTE
MAIL = "smtp"  # the kind of destination whose messages are read by people


@record
class Alerting:
    """Who is told of what: all of some `kinds` go `to` destinations, and that a job is late to its own, by its name in
    `on_late`. A look is made every so many microseconds. `mail`: those of the destinations that take text.
    """

    to: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS
    every: int = EVERY
    on_late: Mapping[str, str] = {}
    mail: Collection[str] = ()

    @property
    def destinations(self) -> tuple[str, ...]:
        """All that may be told something."""
        return tuple(dict.fromkeys((*self.to, *self.on_late.values())))

    def told_of(self, alert: Alert) -> tuple[str, ...]:
        """The destinations that are told of an alert."""
        everybody = self.to if alert.kind in self.kinds else ()
        own = self.on_late.get(alert.job) if alert.kind == LATE else None
        return everybody if own is None or own in everybody else (*everybody, own)


def alerting_of(to: str | Sequence[str], kinds: Sequence[str] | None, every: str | int) -> Alerting:
    """What is declared in code. Raises `Misuse`, naming the argument."""
    for kind in kinds or ():
        if kind not in KINDS:
            raise Misuse(f"kinds: there is no {kind!r}; it is one of {', '.join(KINDS)}")
    try:
        micros = parse_duration(every) if isinstance(every, str) else every
    except Misuse as e:
        raise Misuse(f"every: {e}") from e
    names = (to,) if isinstance(to, str) else tuple(to)
    return Alerting(names, KINDS if kinds is None else tuple(kinds), micros)


def with_mail(alerting: Alerting, routes: Mapping[str, Route]) -> Alerting:
    """The same, which knows the destinations that are read by people. Connects nothing."""
    served = {name: routes[name] for name in alerting.destinations if name in routes}
    return replace(alerting, mail=[name for name, route in served.items() if route.make().kind == MAIL])


def look(store: Store, alerting: Alerting, *, every: int | None = None) -> list[str] | None:
    """Look once, unless somebody did less than `every` microseconds ago, and put what is to be told into the outbox.

    Answers which destinations are told something. None: somebody else looked, or looks now. Raises what the ledger does.
    """
    begun = store.write(begin_look(alerting.every if every is None else every), durable=False)
    if begun is None:
        return None
    found = store.read(conditions(begun.since))
    return store.write(record_look(begun, found, audience_of(alerting)))


def audience_of(alerting: Alerting) -> Audience:
    """Who is told, as a look asks for it."""

    def letter(telling: Telling) -> Letter:
        return letter_of(telling, as_text=telling.destination in alerting.mail)

    return Audience(alerting.told_of, letter, key_of_message, new_attempt_id, owner())


# -- what is said -------------------------------------------------------------------------------------------------------


def letter_of(telling: Telling, *, as_text: bool) -> Letter:
    """A message. Pure. Its name is what a mail has as its subject; docs/alerts.md describes the JSON."""
    if as_text:
        content, body = TEXT, _mail(telling)
    else:
        content, body = JSON, json.dumps(_document(telling), ensure_ascii=False)
    return Letter(telling.destination, _name(telling)[:LONGEST_NAME].strip(), content, body.encode())


def _name(telling: Telling) -> str:
    if telling.is_digest:
        return _number(len(telling.alerts))
    (alert,) = telling.alerts
    return f"{alert.about}: {alert.kind}" + (", recovered" if alert.state == RECOVERED else "")


def _number(alerts: int) -> str:
    return "1 alert" if alerts == 1 else f"{alerts} alerts"


def _text(telling: Telling) -> str:
    """What is told, in one line."""
    if not telling.is_digest:
        (alert,) = telling.alerts
        return f"{_name(telling)}: {'it was ' if alert.state == RECOVERED else ''}{alert.note}"
    counts = ", ".join(
        f"{number} {kind}{', recovered' if flip == RECOVERED else ''}" for (kind, flip), number in _counts(telling)
    )
    return f"as of the first look: {counts}" if telling.is_first else f"{len(telling.alerts)} at once: {counts}"


def _counts(telling: Telling) -> list[tuple[tuple[str, str], int]]:
    counts: dict[tuple[str, str], int] = {}
    for alert in telling.alerts:
        counts[alert.kind, alert.flip] = counts.get((alert.kind, alert.flip), 0) + 1
    return sorted(counts.items())


def _step(telling: Telling) -> str:
    return "duly alerts list" if telling.is_digest else telling.alerts[0].step


def _document(telling: Telling) -> dict[str, object]:
    facts: dict[str, object] = {"schema": SCHEMA}
    if telling.is_digest:
        facts |= {
            "kind": "several",
            "state": "raised" if telling.open else RECOVERED,
            "counts": [{"kind": kind, "state": flip, "alerts": number} for (kind, flip), number in _counts(telling)],
        }
    else:
        (alert,) = telling.alerts
        facts |= {
            "kind": alert.kind,
            "state": alert.flip,
            "alert": alert.id,
            "job": alert.job or None,
            "scope": alert.scope,
            "about": alert.about,
            "since": instant_text(alert.since),
        }
    return {
        **facts,
        "at": instant_text(telling.at),
        "text": _text(telling),
        "next_step": _step(telling),
        "open": telling.open,
        "open_of_job": telling.open_of_job,
    }


def _mail(telling: Telling) -> str:
    lines = [_text(telling), ""]
    if not telling.is_digest:
        lines.append(f"since   {instant_text(telling.alerts[0].since)}")
    lines += [
        f"told    {instant_text(telling.at)}",
        f"open    {_number(telling.open)}",
        "",
        f"next:   {_step(telling)}",
    ]
    return "\n".join(lines) + "\n"
