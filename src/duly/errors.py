"""Every error that duly raises. An error's docstring is its message when none is given; it says what to do next.

Three families. `Refused`: the ledger answered, and the caller's effect must not run. `Conflict`: nobody's fault, try the
whole transaction again. `Misuse` (a `ValueError`): what was asked for cannot be understood; the field is named. What is
none of these is about the ledger as a whole: it cannot be reached, read, written or believed.

What an error means to whoever called is said once, by `meaning_of`: doors to other programs (a task of Airflow's or Celery's,
an exit code) put it into their words.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")


class DulyError(Exception):
    """duly could not do what was asked."""

    def __init__(self, message: str | None = None, *, next_step: str | None = None) -> None:
        super().__init__(message if message is not None else " ".join((type(self).__doc__ or "").split()))
        self.next_step = next_step


# -- the ledger answered: the effect must not run ---------------------------------------------------------------------


class Refused(DulyError):
    """The ledger refused: the effect must not run."""


class ClaimLost(Refused):
    """Another attempt took this run over, or this attempt has already ended; stop. Nothing of this attempt was committed."""


class RunBusy(Refused):
    """Another attempt holds this run; try again when it has ended."""


class OutcomeUnknown(Refused):
    """A remote effect of this run may or may not have happened; find out, then `duly resolve` it."""


class RunFailed(Refused):
    """This run has failed and waits for a person: `duly retry` or `duly skip` it."""


class RunCancelled(Refused):
    """A person asked this attempt to stop, and it did; nothing was committed. `duly explain` says how its run stands."""


class RunSkipped(Refused):
    """This run was skipped; `duly unskip` it if it is to run after all."""


class RunPaused(Refused):
    """The job is paused: nothing of it is started until somebody resumes it, or until its end."""


class PayloadConflict(Refused):
    """This run was first claimed with another payload; nothing was executed."""


class BelowHorizon(Refused):
    """This run lies below the horizon: it was settled long ago and its record was pruned; it is never executed again."""


class ReceiptBusy(Refused):
    """Another transaction is receiving this key and has not ended; answer that it is in progress, or come again."""


class ReceiptLost(ClaimLost):
    """This key's receipt is not in this transaction: it was rolled back, or has been answered. Nothing of it is committed."""


class UndatedKey(Refused):
    """Nobody said when this key was first sent, and keys of this source are forgotten in time: it could be one of those. Send
    the time, or a UUIDv7 as the key."""


class NotAllowed(Refused):
    """The run's state does not allow this."""


class NoTransaction(Refused):
    """The connection is not in a transaction, so the effect and its completion could not commit together; begin one."""


class TransactionOwned(Refused):
    """duly owns this transaction: it commits with the run's completion. Savepoints are allowed."""


class OutputRefused(DulyError):
    """The file cannot be put in its place. What stands there is as it was."""


class Retired(Refused):
    """The job or its scope was retired: nothing that comes due from then on is owed, and nothing was run."""


class JobRenamed(Refused):
    """The job has another name now, and its runs with it; nothing was run. Declare it under the new one."""


class ScheduleChanged(Refused):
    """The job is declared with another schedule than the one in force in the ledger; nothing was run."""


class NotComplete(DulyError):
    """The run is not complete, and so it has no result; `duly explain` says how it stands."""


# -- try again --------------------------------------------------------------------------------------------------------


class Conflict(DulyError):
    """The transaction met another one; roll back and try the whole transaction again."""


class FileChanged(Conflict):
    """A file has changed since it was read; nothing was written. Do it again: it is read anew."""


class LedgerBusy(Conflict):
    """The ledger stayed busy past the time-out; nothing was decided. Try again."""


# -- misuse: what was asked for cannot be understood -------------------------------------------------------------------


class Misuse(DulyError, ValueError):
    """What was asked for cannot be understood."""


class KeyInvalid(Misuse):
    """This is not a run key."""


class NameInvalid(Misuse):
    """This is not a name for a job or scope."""


class WindowInvalid(Misuse):
    """This window does not exist in the job's schedule."""


class TriggerUnclear(Misuse):
    """What fired this does not tell which window it is for; name one with `--window`, or let it be a plain poke."""


class TimeInvalid(Misuse):
    """This is not an instant or duration."""


class PayloadInvalid(Misuse):
    """A payload must be JSON: string keys, finite numbers."""


class ConfigurationInvalid(Misuse):
    """The configuration cannot be understood; nothing was run. File, table and key are named."""


class ScheduleError(Misuse):
    """The schedule cannot be understood. `code` and `field` say what and where (see the dialect in the documentation)."""

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str = "bad_value",
        field: str | None = None,
        token: str | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.code = code
        self.field = field
        self.token = token


class UnknownJob(Misuse):
    """The ledger knows no such job, and no schedule was given for it."""


class NoSchedule(Misuse):
    """The job has no schedule, so nothing is owed by itself; give it one, or name an ad-hoc run."""


class UnknownScope(Misuse):
    """The job's roster is closed and has no such scope."""


class UnknownBackfill(Misuse):
    """The ledger knows no such backfill; `duly backfill list` shows those it knows."""


class UnknownDestination(Misuse):
    """No destination of this name is declared; messages go to declared ones only."""


class UnknownRun(Misuse):
    """The ledger knows no such run."""


# -- the ledger as a whole ---------------------------------------------------------------------------------------------


class LedgerUnavailable(DulyError):
    """The ledger cannot be reached."""


class LedgerUnwritable(LedgerUnavailable):
    """The ledger cannot be written."""


class LedgerForbidden(LedgerUnwritable):
    """This user may not open the ledger."""


class LedgerCorrupt(LedgerUnavailable):
    """The ledger's file is damaged or not a ledger."""


class CommitUnknown(LedgerUnavailable):
    """The connection was lost at the commit, and the server has started anew since: look in the ledger before you retry."""


class LedgerWentBack(LedgerUnavailable):
    """The database has forgotten what this process committed: it was restored, or an older copy took over. Nothing more is
    written from here until somebody says up to when it is whole: `duly db restored --at T`."""


class NoLedger(LedgerUnavailable):
    """There is no ledger here yet; create one with `duly db create`, or open it with `duly.sqlite(path)`."""


class WrongLedger(DulyError):
    """The run belongs to another ledger than the one that was opened."""


class LedgerTooNew(WrongLedger):
    """This ledger was written by a newer release, which does not allow this one to write; upgrade duly."""


class LedgerTooOld(WrongLedger):
    """This ledger was made by an older release, and this one needs what it lacks; run `duly db migrate`."""


class MigrationDiffers(WrongLedger):
    """This ledger was migrated by another file than this release has under its name; nothing was changed."""


# -- what an error means to whoever called -------------------------------------------------------------------------------

AGAIN = "again"  # the next try may find it otherwise: another attempt has it, the ledger is out of reach
DECIDED = "decided"  # a person has decided that it is not to be worked: no failure, and nothing to try again
FOR_GOOD = "for good"  # no try mends it: a person does
THE_JOBS = "the job's"  # none of duly's: what the job itself has raised, whatever it is

# The first that fits, so a special case stands before its family.
_MEANINGS: tuple[tuple[type[DulyError], str], ...] = (
    (RunSkipped, DECIDED),
    (Retired, DECIDED),
    (ClaimLost, AGAIN),
    (RunBusy, AGAIN),
    (RunPaused, AGAIN),
    (ReceiptBusy, AGAIN),
    (Conflict, AGAIN),
    (LedgerUnwritable, FOR_GOOD),
    (LedgerCorrupt, FOR_GOOD),
    (LedgerWentBack, FOR_GOOD),
    (NoLedger, FOR_GOOD),
    (LedgerUnavailable, AGAIN),
    (DulyError, FOR_GOOD),
)

_MARK = "_duly_of_the_job"


def meaning_of(error: BaseException) -> str:
    """What an error means to whoever called: `AGAIN`, `DECIDED`, `FOR_GOOD` or `THE_JOBS`.

    Of several that were raised together it is the gravest: a job's own before what no try mends, that before what one may.
    """
    if _MARK in error.__dict__:
        return THE_JOBS
    if isinstance(error, BaseExceptionGroup):
        found = {meaning_of(each) for each in error.exceptions}
        return next(meaning for meaning in (THE_JOBS, FOR_GOOD, AGAIN, DECIDED) if meaning in found)
    return next((meaning for kind, meaning in _MEANINGS if isinstance(error, kind)), THE_JOBS)


def raise_if_refused(answer: T | Refused | Misuse) -> T:
    """An answer of the ledger, or the refusal that it is, raised now that what was found on the way is committed."""
    if isinstance(answer, (Refused, Misuse)):
        raise answer
    return answer


def mark_as_the_jobs(error: BaseException) -> None:
    """Keep what a job has raised apart from what duly says of its run, though it be an error of duly's: another ledger's, say.

    In its dictionary, because an exception may be frozen.
    """
    if isinstance(error, (DulyError, BaseExceptionGroup)):
        error.__dict__[_MARK] = True
