"""`duly doctor`: what is wrong with the ledger, its database or this host. It looks, and changes nothing.

0: nothing needs a person; 1: something does, and each finding ends with the line to type.
"""

from __future__ import annotations

import os
import time
from functools import partial

from duly.cli import codes
from duly.cli.arguments import FORMATS, add_ledger
from duly.cli.complain import in_same_ledger, next_step_of
from duly.cli.ledgers import is_postgres, named_ledger, open_to_look
from duly.cli.output import Cell, note, show, table
from duly.errors import DulyError
from duly.evidence import verdict
from duly.evidence.doctor import NOTE, OK, TROUBLE, WARNING, Finding, ledger, sqlite
from duly.redaction import shown_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from duly.cli.output import Json
    from duly.ledger.ask import Operation
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

HELP = "what is wrong with the ledger, its database or this host, and what to type next"
EXAMPLE = "duly doctor --json        0 nothing needs a person, 1 something does"

NEEDS_A_PERSON = 1

_SIGNS = {
    OK: Cell("✓", verdict.COMPLETE),
    NOTE: Cell("·", verdict.COMING),
    WARNING: Cell("!", verdict.DUE),
    TROUBLE: Cell("✗", verdict.FAILED),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out what is well")
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print (default: table)")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    url = named_ledger(args.ledger).url
    findings = list(_examined(args, url))
    asked = [one for one in findings if not args.quiet or one.severity != OK]
    facts: dict[str, Json] = {"ledger": shown_url(url), "needs_a_person": any(one.needs_a_person for one in findings)}
    show(args, "duly.doctor.v1", facts, "findings", [_as_json(one) for one in asked], lambda: _in_words(asked))
    if args.format == "table":
        bad = sum(one.needs_a_person for one in findings)
        note(f"{bad} of {len(findings)} findings need a person" if bad else "nothing needs a person")
    return NEEDS_A_PERSON if facts["needs_a_person"] else codes.DONE


def _examined(args: argparse.Namespace, url: str) -> Iterator[Finding]:
    """Every examination that this ledger allows. One that cannot be opened is a finding, and what can be seen of it is seen."""
    on_postgres = is_postgres(url)
    if not on_postgres:
        yield from _of_file(args)
    try:
        store = open_to_look(args.ledger)
    except DulyError as e:
        typed = ["duly", "doctor", *(["--ledger", args.ledger] if args.ledger else [])]
        yield Finding("opening", TROUBLE, str(e), e.next_step or in_same_ledger(next_step_of(e, typed), typed))
        return
    try:
        if on_postgres:
            yield from _of_server(store)
        else:
            yield from _each(store, sqlite.EXAMINATIONS)
        yield from _each(store, ledger.EXAMINATIONS)
    finally:
        getattr(store, "close", lambda: None)()


def _each(
    store: Store | RestingLedger, examinations: Sequence[Callable[[], Operation[list[Finding]]]]
) -> Iterator[Finding]:
    """The findings of examinations that ask the ledger, each in a snapshot of its own: no transaction is open for long."""
    for examine in examinations:
        yield from _guarded(examine.__name__, partial(_read, store, examine))


def _read(store: Store | RestingLedger, examine: Callable[[], Operation[list[Finding]]]) -> list[Finding]:
    return store.read(examine())


def _guarded(examination: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Its findings; that it could not look is one too, and no reason to leave out the others."""
    try:
        return look()
    except (DulyError, OSError) as e:
        return [Finding(examination, TROUBLE, f"it cannot be looked at: {e}", "duly doctor --json")]


def _of_file(args: argparse.Namespace) -> Iterator[Finding]:
    path = os.path.realpath(named_ledger(args.ledger).path)
    if os.path.exists(path):
        for examine in sqlite.OF_FILE:
            yield from _guarded(examine.__name__, partial(examine, path))


def _of_server(store: Store | RestingLedger) -> Iterator[Finding]:
    from duly.evidence.doctor import postgres
    from duly.store.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    yield from _each(store, postgres.EXAMINATIONS)
    told = store.session.connection.info.backend_pid
    yield from _guarded("pooler", lambda: postgres.pooler(told, store.read(postgres.backend())))
    if not store.clock_by_hand:
        store.now()  # the connection is warm
        before, by_server, after = _micros(), store.now(), _micros()
        yield from postgres.skew(before, by_server, after)


def _micros() -> int:
    return time.time_ns() // 1000


def _as_json(one: Finding) -> dict[str, Json]:
    return {"key": one.examination, "severity": one.severity, "seen": one.seen, "next_step": one.step or None}


def _in_words(findings: list[Finding]) -> str:
    return table([[_SIGNS[one.severity], one.examination, one.severity, one.seen, one.step] for one in findings])
