"""Raised: what a job's function raises is the job's, also where it is an error of duly's: that of another ledger, or of a
job that it calls. What duly says of the run itself is not: that it was lost, or that a person asked it to stop.
"""

from __future__ import annotations

from duly.errors import ClaimLost, RunCancelled, mark_as_the_jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.work.run import RunFacts


class OfTheJob:
    """Around the call of a job's function."""

    __slots__ = ("_run",)

    def __init__(self, run: RunFacts) -> None:
        self._run = run

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if error is not None and not self._is_about_the_run(error):
            mark_as_the_jobs(error)

    def _is_about_the_run(self, error: BaseException) -> bool:
        if isinstance(error, ClaimLost):
            return self._run.superseded
        return isinstance(error, RunCancelled) and self._run.cancelled
