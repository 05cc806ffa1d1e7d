"""What a ledger says of itself to whoever borrows a transaction on it: that it may be written, and which one it is."""

from __future__ import annotations

from duly.errors import LedgerTooNew, WrongLedger
from duly.ledger.ask import Ask, Statement
from duly.store import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from duly.store.borrowed import Origin

# Asked on a caller's connection before anything else of a borrowed operation.
FACTS = Ask("every", Statement("facts", "select name, value from duly_meta"), {})


def clock_by_hand(rows: Any, origin: Origin | None) -> bool:
    """Whether the ledger's clock is set by hand. `origin` is the ledger that a claim came from, if one did.

    Raises `LedgerTooNew` for a ledger that this release may not write, and `WrongLedger` for another than the claim's.
    """
    facts: dict[str, str] = dict(rows)
    if int(facts["min_writer"]) > SCHEMA:
        raise LedgerTooNew
    if origin is not None and origin.ledger_id != facts["ledger_id"]:
        raise WrongLedger(
            f"the claim belongs to the ledger {origin.name}, and this connection's database holds another one"
        )
    return facts["clock"] == "hand"
