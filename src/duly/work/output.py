"""Output: a command's file, moved into place so that it is there whole or not at all, and only once (link(2)).

The command writes to a temporary beside the final name. When it has ended well: flush, record size and digest, link to the
final name (which refuses to overwrite), flush the folder; then the run is completed.
"""

from __future__ import annotations

import os

from duly.ledger.output import Intent, attempts_at, find_output, record_output_or_raise
from duly.records import record
from duly.work.attempt import OutputRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import Claim, RunId
    from duly.store.protocol import Store
    from duly.work.command import Briefing

_PIECE = 1 << 20
_LONGEST_NAME = 220  # bytes of the final name in a temporary's, of the 255 that a file system allows


@record
class Output:
    """Where a command's file goes. `final` may hold placeholders; `may_replace` allows to overwrite what is there."""

    final: str
    may_replace: bool = False

    def place(self, store: Store, briefing: Briefing) -> Place:
        """Where this attempt writes, and where its file goes. Raises `OutputRefused` before anything is run.

        What earlier attempts at this run left there, which were killed, is removed.
        """
        final = os.path.abspath(briefing.argument(self.final))
        folder = os.path.dirname(final)
        discard_all(store, briefing.claim.run, final)
        if not os.path.isdir(folder):
            raise OutputRefused(f"there is no folder {folder} for the output")
        if os.path.lexists(final):
            if not self.may_replace:
                raise OutputRefused(f"{final} is there already; --replace overwrites it")
            if not os.path.islink(final) and not os.path.isfile(final):
                raise OutputRefused(f"{final} is no file; a device or a folder is not replaced by one")
        return Place(final, _temporary(final, briefing.claim.attempt_id), self.may_replace)


@record
class Place:
    """One attempt's temporary file and its final name."""

    final: str
    temporary: str
    may_replace: bool

    def publish(self, store: Store, claim: Claim) -> None:
        """Move the finished file into place, its digest on record first. Raises `OutputRefused` or `ClaimLost`."""
        if not os.path.isfile(self.temporary) or os.path.islink(self.temporary):
            raise OutputRefused("the command wrote no file to $DULY_OUTPUT")
        try:
            intent = Intent(self.final, *_flushed_digest(self.temporary))
            store.write(record_output_or_raise(claim, intent))
            self._move()
            _flush_folder(os.path.dirname(self.final))
        except FileExistsError as e:
            raise OutputRefused(f"{self.final} is there already; --replace overwrites it") from e
        except OSError as e:
            raise OutputRefused(f"{self.final} cannot be put in place: {e.strerror}") from e
        self.discard()

    def _move(self) -> None:
        if self.may_replace:
            os.replace(self.temporary, self.final)
        else:
            os.link(self.temporary, self.final)

    def discard(self) -> None:
        """Remove the temporary, if it is there."""
        _unlink(self.temporary)


def discard_all(store: Store, run: RunId, final: str) -> None:
    """Remove what the attempts at a run left beside the final name."""
    for attempt_id in store.read(attempts_at(run)):
        _unlink(_temporary(final, attempt_id))


def _temporary(final: str, attempt_id: bytes) -> str:
    folder, name = os.path.split(final)
    short = os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])
    return os.path.join(folder, f".{short}.{attempt_id.hex()}")


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # it is not there; or the folder has become read-only, and the run's end matters more
        return


def in_place(store: Store, run: RunId) -> Intent | None:
    """The output of an earlier attempt at this run, if it is on record and stands in its place with that very digest."""
    intent = store.read(find_output(run))
    if intent is None or not os.path.isfile(intent.path) or os.path.getsize(intent.path) != intent.size:
        return None
    return intent if _flushed_digest(intent.path)[1] == intent.sha256 else None


def _flushed_digest(path: str) -> tuple[int, str]:
    """A file's size in bytes and its SHA-256, after what was written to it has reached the disk."""
    from hashlib import sha256

    digest, size = sha256(), 0
    with open(path, "rb") as f:
        os.fsync(f.fileno())
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
