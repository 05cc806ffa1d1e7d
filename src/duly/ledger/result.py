"""Result: what a completed run has come to, as its attempt left it with the completion."""

from __future__ import annotations

from duly.errors import NotComplete
from duly.ledger import states
from duly.ledger.address import by_window
from duly.ledger.ask import Statement, one
from duly.ledger.take import look, run_parameters

RESULT_OF = Statement(
    "result_of",
    """
select body
  from duly_text
 where series = :series and nominal = :nominal and revision = :revision and number = :number and kind = 'result'
""",
)


async def result_of(job: str, scope: str, window: str) -> str | None:
    """The result of a window's run as JSON text; None where it left none.

    Raises `NotComplete`, and `UnknownJob`, `UnknownScope` or `WindowInvalid` for what names no run.
    """
    addressed = await by_window(job, scope, window)
    seen = await look(addressed.run)
    if seen is None or seen.state != states.COMPLETED:
        raise NotComplete(
            f"{job} {window} is not complete, and so it has no result; `duly explain {job} {window}` says why"
        )
    return await one(RESULT_OF, str, **run_parameters(seen.id), number=seen.fence)
