"""Memory: what this process knows of the lines of a job from the runs that it has claimed, for its next claims."""

from __future__ import annotations

from duly.ledger.remembered import recall, remember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import Known
    from duly.ledger.register import Declaration
    from duly.ledger.remembered import Recalled, Remembered

_MOST = 1_000  # lines; who serves more begins anew


class Memory:
    """The lines whose runs were claimed, as they were declared. It may be wrong: the claim looks whether it is."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], Remembered] = {}
        self.looks_first = False  # the last run that was asked for was complete: what is delivered again comes in a row

    def recall(self, declared: Declaration, window: str | None) -> Recalled | None:
        """The window of a line that is remembered; None where it has to be looked up."""
        remembered = self._lines.get((declared.job, declared.scope))
        return None if remembered is None or window is None else recall(remembered, window)

    def keep(self, known: Known, declared: Declaration) -> None:
        """Remember a line as it was found, if its runs can be claimed from memory."""
        line = (declared.job, declared.scope)
        remembered = remember(known, declared)
        if remembered is None:
            self._lines.pop(line, None)
            return
        if len(self._lines) >= _MOST:
            self._lines.clear()
        self._lines[line] = remembered
