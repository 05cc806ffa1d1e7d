"""`duly runs events`: who did what, when and why, over the whole ledger or of one job; the newest first, a page at a time."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.ledgers import open_to_look
from duly.cli.output import Cell, iso, note, show, table, when
from duly.cli.runs_argument import known_job
from duly.errors import Misuse, TimeInvalid
from duly.evidence.audit import Happening, happenings, parse_place
from duly.evidence.words import printable
from duly.times import parse_duration, parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `runs events`."""
    flags = parser.add_argument_group("events")
    flags.add_argument("--since", metavar="WHEN", help="only from then on: -7d, or 2026-11-01T00:00:00Z")
    flags.add_argument("--by", metavar="WHO", help="only what this person, host or part of duly did")
    flags.add_argument("--kind", metavar="KIND", help="only events of this kind: retried, policies_changed …")
    flags.add_argument("--before", metavar="PLACE", help="go on after the last of a page, as --format keys printed it")


def events(args: argparse.Namespace, words: list[str]) -> int:
    """List what was done, newest first."""
    if len(words) > 1:
        raise Misuse(f"runs events: {words[1]!r} is one word too many", next_step=f"duly runs events {words[0]}")
    store = open_to_look(args.ledger)
    job = store.read(known_job(words[0], args.scope)) if words else None
    now = store.now()
    found = store.read(
        happenings(
            job,
            args.scope,
            by=args.by,
            kind=args.kind,
            since=_since(args.since, now),
            before=None if args.before is None else parse_place(args.before),
            limit=args.n,
        )
    )
    last = found[-1].place if len(found) == args.n else None
    facts: dict[str, Json] = {"as_of": iso(now), "next": None if last is None else str(last)}
    show(args, "duly.events.v1", facts, "events", [as_json(one) for one in found], lambda: _in_words(found, args, now))
    if args.format == "table" and last is not None:
        note(f"there may be more: --before {last}")
    return codes.DONE


def _since(text: str | None, now: int) -> int | None:
    if text is None:
        return None
    try:
        return now - parse_duration(text[1:]) if text.startswith("-") else parse_instant(text)
    except TimeInvalid as e:
        raise Misuse(f"since: {e}", next_step="duly runs events --since -7d") from e


def as_json(one: Happening) -> dict[str, Json]:
    """An event for programs; `key` is its place, by which the next page goes on."""
    event = one.event
    return {
        "key": str(one.place),
        "at": iso(event.at),
        "kind": event.kind,
        "job": one.job,
        "scope": one.scope,
        "run": one.key,
        "attempt_id": None if event.attempt_id is None else event.attempt_id.hex(),
        "by": event.by,
        "reason": event.reason,
        "before": event.before,
        "after": event.after,
        "detail": event.detail,
    }


def change_words(before: str, after: str) -> str:
    """What an event changed, in words; empty where it changed nothing."""
    return f"{before} → {after}" if before or after else ""


def _in_words(found: list[Happening], args: argparse.Namespace, now: int) -> str:
    rows: list[list[str | Cell]] = [
        [
            when(one.event.at, "UTC", time=args.time, now=now),
            one.event.kind.replace("_", " "),
            one.key or one.job or "the ledger",
            f"by {one.event.by}" if one.event.by else "",
            printable("; ".join(part for part in (one.event.reason, one.event.detail) if part)),
            change_words(one.event.before, one.event.after),
        ]
        for one in found
    ]
    return table(rows)
