"""Output: a run's file, moved into place so that it is there whole or not at all, and only once (link(2)).

Whoever works the run, a command or a function, writes to a temporary beside the final name. When the work has ended well:

1. flush the file, and take its size and digest;
2. put them on record beside the run, if the file is all that the attempt leaves (`ledger.output` says why);
3. in the transaction that completes the run: hold the run, link the file to its final name (which refuses to overwrite),
   flush the folder, complete, commit.

An attempt that was superseded does not come past the hold. One that is killed between the link and the commit is found by the
next: where the file stands under the digest on record the run is completed, and nothing is run again; else the file is known
by the temporary that still is another name of it, and removed before the work is done again.
"""

from __future__ import annotations

import os

from duly.errors import CommitUnknown, Misuse, NotAllowed, OutcomeUnknown, OutputRefused
from duly.ledger import states
from duly.ledger.complete import Left, complete_or_raise, has_completed
from duly.ledger.named import quoted
from duly.ledger.output import (
    Intent,
    attempts_at,
    attempts_before,
    find_output,
    forget_output,
    hold_and_record_output_or_raise,
    record_output_or_raise,
)
from duly.ledger.take import look
from duly.records import record
from duly.times import as_datetime
from duly.work.answers import AlreadyCompleted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.ledger.named import Named
    from duly.ledger.records import Claim, Run
    from duly.ledger.resolve import Word
    from duly.schedule.keys import RunKey
    from duly.store.protocol import Owned, Store
    from duly.work.command import Briefing

LONGEST_PATH = 4096
GONE = "is not there"
_PIECE = 1 << 20
_LONGEST_NAME = 220  # bytes of the final name in a temporary's, of the 255 that a file system allows


def named(path: str | os.PathLike[str]) -> str:
    """A path as a function gives it, as text. Raises `Misuse`."""
    try:
        given: object = os.fspath(path)
    except TypeError:
        given = None
    if not isinstance(given, str) or not os.path.basename(given):
        raise Misuse(f"publish: name a file, as exports/2026-10-05.csv, not {path!r}")
    if "\0" in given or len(given) > LONGEST_PATH:
        raise Misuse(f"publish: a path has at most {LONGEST_PATH} characters, and none of them is NUL")
    return given


@record
class Output:
    """Where a command's file goes. `final` may hold placeholders; `may_replace` allows to overwrite what is there."""

    final: str
    may_replace: bool = False

    def place(self, store: Store, briefing: Briefing) -> Place:
        """Where this attempt writes, and where its file goes. Raises `OutputRefused` before anything is run."""
        place = Place(
            briefing.argument(self.final),
            briefing.claim.attempt_id,
            may_replace=self.may_replace,
            replaces_with="--replace",
            written_to="the command wrote no file to $DULY_OUTPUT",
        )
        place.prepare(earlier_attempts(store, briefing.claim))
        return place


class Place:
    """One attempt's temporary file and its final name."""

    __slots__ = (
        "_identity",
        "_intent",
        "_is_recorded",
        "_replaces_with",
        "_written_to",
        "final",
        "may_replace",
        "temporary",
    )

    def __init__(
        self, final: str, attempt_id: bytes, *, may_replace: bool, replaces_with: str, written_to: str
    ) -> None:
        self.final = os.path.abspath(final)
        self.temporary = _temporary(self.final, attempt_id)
        self.may_replace = may_replace
        self._replaces_with = replaces_with
        self._written_to = written_to
        self._intent: Intent | None = None
        self._is_recorded = False
        self._identity: tuple[int, int] | None = None  # of the file, since it was moved

    def prepare(self, earlier: Sequence[bytes]) -> None:
        """Make sure that a file may go there. Raises `OutputRefused`.

        What earlier attempts at this run left, which were killed, is removed: the temporaries, and the file itself where
        one of them is another name of it.
        """
        for attempt_id in earlier:
            _take_back(self.final, _temporary(self.final, attempt_id))
        folder = os.path.dirname(self.final)
        if not os.path.isdir(folder):
            raise OutputRefused(f"there is no folder {folder} for the output", next_step=f"mkdir -p {quoted(folder)}")
        if os.path.lexists(self.final):
            if not self.may_replace:
                raise self._is_there()
            if not os.path.islink(self.final) and not os.path.isfile(self.final):
                raise OutputRefused(f"{self.final} is no file; a device or a folder is not replaced by one")

    def finish(self) -> Intent:
        """Flush the file; what it is, by size and digest. Raises `OutputRefused`."""
        if self._intent is None:
            if not os.path.isfile(self.temporary) or os.path.islink(self.temporary):
                raise OutputRefused(self._written_to)
            try:
                self._intent = Intent(self.final, *_flushed_digest(self.temporary))
            except OSError as e:
                raise self._cannot(e) from e
        return self._intent

    def record(self, store: Store, claim: Claim) -> None:
        """Put on record what is about to be put in place. Raises `OutputRefused` or `ClaimLost`."""
        store.write(record_output_or_raise(claim, self.finish()))
        self.is_on_record()

    def is_on_record(self) -> None:
        """Note that whoever finds the file in place completes the run."""
        self._is_recorded = True

    def move_within(self, transaction: Owned, claim: Claim) -> None:
        """Move the finished file, in the open transaction that is to complete the run. Raises `OutputRefused`, `ClaimLost`."""
        transaction.drive(hold_and_record_output_or_raise(claim, self.finish()))
        self.move()

    def move(self) -> None:
        """Move the finished file into place, while the run is held; again is a no-op. Raises `OutputRefused`."""
        if self._identity is not None:
            return
        try:
            identity = _identity(self.temporary)
            if self.may_replace:
                os.replace(self.temporary, self.final)
            else:
                os.link(self.temporary, self.final)
            self._identity = identity
            _flush_folder(os.path.dirname(self.final))
        except FileExistsError as e:
            raise self._is_there() from e
        except OSError as e:
            self._undo()
            raise self._cannot(e) from e
        if self._is_recorded:  # else the temporary says whose file this is until the completion is committed
            self.discard()

    def withdraw(self) -> None:
        """Take the file back where it is not on record: what was to be committed with it was not. One that is on record stays,
        for whoever finds it completes the run. What it replaced does not come back.
        """
        if not self._is_recorded:
            self._undo()

    def _undo(self) -> None:
        if self._identity is not None and _identity(self.final) == self._identity:
            if os.path.lexists(self.temporary):
                _unlink(self.final)
            else:
                os.replace(self.final, self.temporary)
        self._identity = None

    def discard(self) -> None:
        """Remove the temporary, if it is there."""
        _unlink(self.temporary)

    def _is_there(self) -> OutputRefused:
        return OutputRefused(f"{self.final} is there already; {self._replaces_with} overwrites it")

    def _cannot(self, error: OSError) -> OutputRefused:
        return OutputRefused(f"{self.final} cannot be put in place: {error.strerror}")


def complete_with_file(store: Store, claim: Claim, place: Place, left: Left) -> None:
    """Complete a run with its file, in a transaction of the ledger's own. Raises `OutputRefused` or `ClaimLost`."""
    transaction = store.owned()
    try:
        transaction.begin()
        place.move_within(transaction, claim)
        transaction.complete(complete_or_raise(claim, left))
    except BaseException as e:
        if isinstance(e, CommitUnknown) and store.read(has_completed(claim)):
            return
        if transaction.is_open:
            transaction.abandon()
        place.withdraw()
        raise


# -- what earlier attempts left ----------------------------------------------------------------------------------------


def earlier_attempts(store: Store, claim: Claim) -> Sequence[bytes]:
    """The ids of the attempts before this one; of the first there are none, and the ledger is not asked."""
    return store.read(attempts_before(claim)) if claim.number > 1 else ()


def found_in_place(store: Store, claim: Claim) -> Intent | None:
    """The output of an earlier attempt, if it is on record and stands in its place with that very digest: the run is done.

    One that does not stand is forgotten, for the work is done again.
    """
    if claim.number == 1 or (intent := store.read(find_output(claim.run))) is None:
        return None
    if not stands(intent):
        store.write(forget_output(claim))
        return None
    discard_all(intent, store.read(attempts_before(claim)))
    return intent


def found_done(store: Store, standing: Run) -> bool:
    """Whether an unknown run turns out to be done: its output stands in place with the digest that was recorded."""
    if standing.state != states.UNKNOWN or (intent := store.read(find_output(standing.id))) is None:
        return False
    if not stands(intent):
        return False
    from duly.ledger.resolve import resolve

    try:
        store.write(resolve(standing.id, word_of(intent), done=True))
    except NotAllowed:  # its attempt may yet report
        return False
    discard_all(intent, store.read(attempts_at(standing.id)))
    return True


def done_after_all(store: Store, named: Named) -> AlreadyCompleted | None:
    """The answer for a run of unknown outcome whose file turns out to stand; None where it stays unknown."""
    if not isinstance(named.answer, OutcomeUnknown) or named.row is None:
        return None
    row = store.read(look(named.row.id))
    if row is None or not found_done(store, row):
        return None
    return AlreadyCompleted(str(named.key), row.fence, as_datetime(store.now()))


def completed_in_place(store: Store, key: RunKey, claim: Claim) -> AlreadyCompleted | None:
    """Complete a run that was claimed, if its file turns out to stand; None where it is to be worked."""
    found = found_in_place(store, claim)
    if found is None:
        return None
    store.write(complete_or_raise(claim, Left(found.path)))
    return AlreadyCompleted(str(key), claim.number, as_datetime(store.now()))


def word_of(intent: Intent) -> Word:
    """What is said of an unknown run whose output stands in its place."""
    from duly.ledger.resolve import Word

    return Word("duly", "its output is in place", f"{intent.path}, {intent.size} bytes, sha256 {intent.sha256}")


def stands(intent: Intent) -> bool:
    """Whether a file stands in its place with the very digest that is on record."""
    return not wrong_with(intent)


def wrong_with(intent: Intent) -> str:
    """What is wrong with a file that is to stand in its place, in words; empty where it stands as it is on record."""
    if not os.path.lexists(intent.path):
        return GONE
    if not os.path.isfile(intent.path):
        return "is no file"
    try:
        if (size := os.path.getsize(intent.path)) != intent.size:
            return f"has {size} bytes, and not {intent.size}"
        return "" if _digest(intent.path)[1] == intent.sha256 else "has another digest than was written"
    except OSError as e:  # or it went away meanwhile
        return f"cannot be read: {e.strerror}"


def left_beside(intent: Intent, attempts: Sequence[bytes]) -> list[str]:
    """The temporaries that attempts left beside the file: one was killed after its commit."""
    names = (_temporary(intent.path, attempt_id) for attempt_id in attempts)
    return [name for name in names if os.path.lexists(name)]


def discard_all(intent: Intent, attempts: Sequence[bytes]) -> None:
    """Remove the temporaries that attempts left beside the file that stands."""
    for attempt_id in attempts:
        _unlink(_temporary(intent.path, attempt_id))


def _take_back(final: str, temporary: str) -> None:
    """Remove a temporary, and the final name where it is another name of the very same file."""
    identity = _identity(temporary)
    if identity is not None and _identity(final) == identity:
        _unlink(final)
    _unlink(temporary)


# -- files -------------------------------------------------------------------------------------------------------------


def _temporary(final: str, attempt_id: bytes) -> str:
    folder, name = os.path.split(final)
    short = os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])
    return os.path.join(folder, f".{short}.{attempt_id.hex()}")


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # it is not there; or the folder has become read-only, and the run's end matters more
        return


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from all others, whatever its name; None where there is none."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _flushed_digest(path: str) -> tuple[int, str]:
    """A file's size in bytes and its SHA-256, after what was written to it has reached the disk."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())
    return _digest(path)


def _digest(path: str) -> tuple[int, str]:
    from hashlib import sha256

    digest, size = sha256(), 0
    with open(path, "rb") as f:
        while piece := f.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
