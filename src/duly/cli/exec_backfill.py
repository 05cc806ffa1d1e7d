"""`duly exec JOB --backfill`: work the windows of a backfill. Off the path of a poke."""

from __future__ import annotations

from duly.cli.codes import DONE, WAITS_FOR_A_PERSON
from duly.cli.exec import code_of_poke, code_of_standing
from duly.ledger import backfill_states as backfills
from duly.ledger.address import key_of
from duly.ledger.backfill import Backfill, backfills_of, scope_of_backfill
from duly.ledger.records import pause_words
from duly.ledger.register import find
from duly.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.cli.exec import Pokes
    from duly.ledger.register import Declaration


def work_backfill(pokes: Pokes, number: int | None) -> tuple[int, str]:
    """Work the backfill of each line that is meant until none is left to take; exec's code, and why in a few words."""
    others: list[tuple[int, str]] = []
    for declared in _lines(pokes, number):
        poke = pokes.poke(declared)
        standing = poke.work_backfill(number)
        pokes.reports.extend(poke.reports.values())
        if poke.paused is not None:
            words = pause_words(poke.paused)
            pokes.teller.paused(declared, words)
            others.append((DONE, words))
        elif standing is not None:
            code, why = code_of_standing(standing)
            others.append((code, why))
            pokes.teller.standing(standing, pokes.store.read(key_of(standing.id)), code, why)
        else:
            others.append(_left(pokes, declared, number))
        if pokes.signals.end_is_wanted() or (pokes.order.only_one and pokes.reports):
            break
    return code_of_poke(pokes.reports, others)


def _lines(pokes: Pokes, number: int | None) -> list[Declaration]:
    if number is None:
        return pokes.lines()
    declared = pokes.declared
    scope = pokes.store.read(scope_of_backfill(number, declared.job, declared.scope or None))
    return [replace(declared, scope=scope)]


def _left(pokes: Pokes, declared: Declaration, number: int | None) -> tuple[int, str]:
    """What is to be said when no window is left to take: a backfill that has stopped waits for a person."""
    known = pokes.store.read(find(declared.job, declared.scope))
    mine: list[Backfill] = [] if known is None or known.line is None else pokes.store.read(backfills_of(known))
    mine = [each for each in mine if number in (None, each.id)]
    stopped = next((each for each in mine if each.state == backfills.STOPPED), None)
    if stopped is not None:
        why = f"backfill {stopped.id} has stopped: {stopped.said}"
        pokes.teller.backfill(declared.job, why, f"duly backfill show {stopped.id}")
        return WAITS_FOR_A_PERSON, why
    held = next((each for each in mine if each.state == backfills.PAUSED), None)
    if held is not None:
        why = f"backfill {held.id} is paused by {held.said_by}: {held.said}"
    else:
        why = "no window of a backfill is left to take"
    pokes.teller.backfill(declared.job, why)
    return DONE, why
