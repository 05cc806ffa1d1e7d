"""What a campaign has done: a file of a line for each piece, so that it goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

from duly.schedule.facts import release_in_use

FOLDER = Path(".campaigns")


class Progress:
    """The pieces of a campaign that are done, under the release of tzdata in use. Remove its file to begin again."""

    def __init__(self, name: str) -> None:
        self.path = FOLDER / f"{name}-{release_in_use('Europe/Berlin').version}.txt"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.done = dict(line.split("\t", 1) for line in lines)

    def has(self, piece: str) -> bool:
        """Whether a piece was done, now or in an earlier run."""
        return piece in self.done

    def note(self, piece: str, result: str) -> None:
        """A piece is done, with its result in a line."""
        self.done[piece] = result
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a") as f:
            f.write(f"{piece}\t{result}\n")
