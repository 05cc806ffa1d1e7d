"""`duly alerts`: what somebody is to be told of. `list` what is open, `look` now and deliver what is to be told, `silence` a
job for a while, `unsilence` it again.
"""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope, count_from_1
from duly.cli.change import add_reason, said, word_of
from duly.cli.complain import Unsaid
from duly.cli.ledgers import open_ledger, open_to_look
from duly.cli.output import GLYPHS, Cell, document, iso, note, show, table, when
from duly.errors import Misuse, TimeInvalid
from duly.evidence import verdict
from duly.ledger import alerts
from duly.ledger.alerts import KINDS, Alert, newest_alerts, open_alerts
from duly.ledger.ask import now as ledger_now
from duly.ledger.named import TO_FILL_IN
from duly.ledger.register import find
from duly.ledger.silence import Silence, silence, silences_in_force, unsilence
from duly.records import record
from duly.store.tried import write_or_try
from duly.times import parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store

HELP = "what somebody is to be told of: list, look, silence, unsilence"
EXAMPLE = (
    "duly alerts list\n"
    "  duly alerts look                          what cron calls, where nothing else is poked\n"
    "  duly alerts silence close-day --until +2h --reason 'the bank is closed'"
)

# The colour and the sign of a kind are those of the word that `status` has for it.
_LIKE = {
    alerts.LATE: verdict.LATE,
    alerts.FAILED: verdict.FAILED,
    alerts.UNKNOWN: verdict.UNKNOWN,
    alerts.STUCK: verdict.UNDELIVERED,
    alerts.SUPERSEDED: verdict.SKIPPED,
    alerts.DRIFT: verdict.SKIPPED,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="list | look | silence | unsilence", required=True)
    listing = verbs.add_parser("list", help="alerts that are open, the oldest first, and silences")
    listing.add_argument("--all", action="store_true", help="those that are over too, the newest first")
    listing.add_argument("-n", type=count_from_1, default=50, metavar="N", help="how many with --all (default: 50)")
    looking = verbs.add_parser("look", help="look now, and deliver what is to be told: 0 no alert is open, 1 some are")
    for name, does in (
        ("silence", "tell nothing of a job for a while; what is still so afterwards is told then"),
        ("unsilence", "end the silences of a job"),
    ):
        changing = verbs.add_parser(name, help=does)
        changing.add_argument("job", metavar="JOB")
        changing.add_argument("--kind", choices=KINDS, metavar="KIND", help=f"only {', '.join(KINDS)} (default: all)")
        if name == "silence":
            changing.add_argument(
                "--until", metavar="WHEN", help="2026-12-24T18:00 (in the schedule's zone), with Z for UTC, or +2h"
            )
        add_reason(changing)
        changing.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
        add_scope(changing)
        add_format(changing)
        add_ledger(changing)
    for each in (listing, looking):
        add_format(each)
        add_ledger(each)


def run(args: argparse.Namespace) -> int:
    match args.verb:
        case "list":
            return _list(args)
        case "look":
            return _look(args)
        case "silence":
            return _silence(args)
    return _unsilence(args)


# -- list ---------------------------------------------------------------------------------------------------------------


@record
class _Seen:
    """Alerts and silences as they are at an instant."""

    alerts: list[Alert]
    silences: list[Silence]
    as_of: int


async def _see(history: int | None) -> _Seen:
    instant = await ledger_now()
    found = await open_alerts() if history is None else await newest_alerts(history)
    return _Seen(found, await silences_in_force(instant), instant)


def _list(args: argparse.Namespace) -> int:
    return _show(args, open_to_look(args.ledger).read(_see(args.n if args.all else None)), [])


def _show(args: argparse.Namespace, seen: _Seen, told: list[str]) -> int:
    facts: dict[str, Json] = {
        "as_of": iso(seen.as_of),
        "told": list(told),
        "silences": [_silence_as_json(each) for each in seen.silences],
    }
    records = [_as_json(alert, seen.silences) for alert in seen.alerts]
    show(args, "duly.alerts.v1", facts, "alerts", records, lambda: _in_words(seen, args))
    return codes.DONE


def _as_json(alert: Alert, silences: list[Silence]) -> dict[str, Json]:
    return {
        "key": alert.about,
        "id": alert.id,
        "kind": alert.kind,
        "state": alert.state,
        "told": alert.told or None,
        "silenced": any(each.covers(alert) for each in silences),
        "job": alert.job or None,
        "scope": alert.scope,
        "note": alert.note,
        "next_step": alert.step,
        "since": iso(alert.since),
        "raised_at": iso(alert.raised_at),
        "recovered_at": iso(alert.recovered_at),
    }


def _in_words(seen: _Seen, args: argparse.Namespace) -> str:
    def at(instant: int) -> str:
        return when(instant, "UTC", time=args.time, now=seen.as_of)

    rows: list[list[str | Cell]] = []
    for alert in seen.alerts:
        is_over = alert.state == alerts.RECOVERED
        word = verdict.COMPLETE if is_over else _LIKE[alert.kind]
        state = Cell(f"{GLYPHS[word]} {alert.kind}{', recovered' if is_over else ''}", word)
        silenced = "silenced" if any(each.covers(alert) for each in seen.silences) else ""
        rows.append([state, alert.about, f"since {at(alert.since)}", silenced, alert.note, alert.step])
    parts = [table(rows)] if rows else ["no alert is open"]
    if seen.silences:
        parts.append(table([_silence_row(each, at(each.until)) for each in seen.silences]))
    return "\n".join(parts)


# -- look ---------------------------------------------------------------------------------------------------------------


def _look(args: argparse.Namespace) -> int:
    from duly.cli.exec_deliver import deliver
    from duly.work.alerts import look
    from duly.work.destinations import configured_here

    alerting = configured_here().alerts()
    store = open_ledger(args.ledger)
    told = look(store, alerting, every=0) or []
    if not alerting.destinations:
        note("nobody is told of alerts here: duly.toml has no [alerts], and no job an on_late")
    deliver(store, only=alerting.destinations)
    seen = store.read(_see(None))
    _show(args, seen, told)
    return SOME_ARE_OPEN if seen.alerts else codes.DONE


SOME_ARE_OPEN = 1


# -- silences -----------------------------------------------------------------------------------------------------------


def _silence(args: argparse.Namespace) -> int:
    if args.until is None:
        why = [] if said(args.reason) else [("--reason", TO_FILL_IN)]
        raise Unsaid("alerts silence: say for how long with --until", ("--until", "+2h"), *why)
    word = word_of(args, "alerts silence")
    store = open_ledger(args.ledger)
    until = _until(args, store)
    made = write_or_try(store, silence(args.job, args.scope, args.kind, word, until=until), dry_run=args.dry_run)
    return _changed(args, [made], "nothing of it is told until then; what is still so is told after")


def _unsilence(args: argparse.Namespace) -> int:
    word = word_of(args, "alerts unsilence")
    store = open_ledger(args.ledger)
    ended = write_or_try(store, unsilence(args.job, args.scope, args.kind, word), dry_run=args.dry_run)
    return _changed(args, ended, "the next look tells what is still so")


def _until(args: argparse.Namespace, store: Store) -> int:
    known = store.read(find(args.job, args.scope or ""))
    zone = "UTC" if known is None or known.version is None else known.version.zone
    try:
        return parse_moment(args.until, zone, store.now())
    except TimeInvalid as e:
        raise Misuse(f"--until: {e}") from e


def _changed(args: argparse.Namespace, silences: list[Silence], follows: str) -> int:
    if args.format == "table":
        print(table([_silence_row(each, iso(each.until) or "") for each in silences]))
    else:
        fields: dict[str, Json] = {"verb": args.verb, "job": args.job, "dry_run": args.dry_run}
        print(document("duly.silence.v1", {**fields, "silences": [_silence_as_json(each) for each in silences]}))
    note("nothing was changed: this was a dry run" if args.dry_run else follows)
    return codes.DONE


def _silence_row(each: Silence, until: str) -> list[str | Cell]:
    name = each.job if not each.scope else f"{each.scope}/{each.job}"
    return [
        Cell("○ silenced", verdict.DUE),
        name,
        each.kind or "all kinds",
        f"until {until}",
        each.reason,
        f"by {each.by}",
    ]


def _silence_as_json(each: Silence) -> dict[str, Json]:
    return {
        "job": each.job,
        "scope": each.scope,
        "kind": each.kind,
        "since": iso(each.since),
        "until": iso(each.until),
        "by": each.by,
        "reason": each.reason,
    }
