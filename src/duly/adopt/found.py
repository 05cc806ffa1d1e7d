"""Found: what a source says, as the same records for every source."""

from __future__ import annotations

from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.spec import Schedule


@record
class Place:
    """Where something stands; `line` counts from 1, 0 is the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@record
class Note:
    """What a person should know of something that was read.

    `code` is a stable word for programs. `carried` is false where the original does something that duly will not do, or was
    left as it is.
    """

    code: str
    place: Place
    says: str
    carried: bool = True


class Left(Exception):
    """What cannot be carried over is left as it is. `where` is its place, or its line in the file that is being read."""

    def __init__(self, code: str, says: str, where: Place | int = 0) -> None:
        super().__init__(says)
        self.code = code
        self.says = says
        self.where = where

    def note(self, reading: Place) -> Note:
        """What is said of it, where this place was being read."""
        where = self.where
        place = where if isinstance(where, Place) else Place(reading.file, where or reading.line)
        return Note(self.code, place, self.says, carried=False)


@record
class When:
    """A schedule as an entry of duly.toml has it; `gap` and `fold` are empty where duly's own are meant."""

    cron: tuple[str, ...]
    zone: str
    gap: str = ""
    fold: str = ""

    def schedule(self) -> Schedule:
        """The schedule that it is. Raises `ScheduleError`."""
        from duly.schedule.spec import cron

        return cron(*self.cron, zone=self.zone, gap=self.gap or None, fold=self.fold or None)


@record
class Found:
    """A job that runs today.

    `original` is what a person knows it by, as it is written; `hint` what its name may be made of; `source` what it was
    imported from. Those of one file whose `same` is equal do the same thing at other times.
    """

    place: Place
    source: str
    original: str
    hint: str
    when: When
    same: tuple[object, ...]


@record
class Reading:
    """What was read: the jobs, how many are duly's already, and what is to be said."""

    jobs: tuple[Found, ...]
    already: int
    notes: tuple[Note, ...]


@record
class Undone:
    """A file without what an import has put into it.

    `names` are the jobs that were taken out, `kept` those that it goes on calling. An empty text is a file that goes.
    """

    text: str
    names: frozenset[str]
    kept: frozenset[str]
    notes: tuple[Note, ...]
