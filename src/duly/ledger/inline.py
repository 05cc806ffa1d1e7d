"""Inline: claim, effect and completion in one transaction, for jobs that ask for it.

One durable commit instead of two; in return nobody can see the run being worked, runs hold the ledger while they last, and
an attempt that is killed leaves no record. One that fails does: its claim went with its transaction, so it is claimed once
more and ended in the same breath, under the time at which it really began.
"""

from __future__ import annotations

from duly.errors import Misuse, Refused
from duly.ledger.ask import Statement, count
from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.named import Named
from duly.ledger.open import Idle, Taken
from duly.ledger.records import Claim
from duly.ledger.take import claim_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Operation

BEGAN_AT = Statement(
    "began_at_if_held",
    """
update duly_run
   set started_at = :began_at, first_started_at = min(first_started_at, :began_at)
 where series = :series and nominal = :nominal and revision = :revision
   and state = 'running' and attempt_id = :attempt_id and fence = :number
""",
)


async def record_failure(
    claiming: Operation[Named | Taken | Idle | Refused | Misuse],
    ending: Ending,
    *,
    began_at: int,
    retry_in: int | None,
    error: str,
) -> bool:
    """Claim the run again and end that attempt as failed. False: another attempt has it now, and nothing is recorded."""
    found = await claiming
    claim = found.claim if isinstance(found, Taken) else found.answer if isinstance(found, Named) else None
    if not isinstance(claim, Claim):
        return False
    await count(BEGAN_AT, **claim_parameters(claim), began_at=began_at)
    await fail_or_raise(claim, ending, retry_in=retry_in, error=error)
    return True
