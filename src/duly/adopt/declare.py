"""Declare: an adopted job as an entry of duly.toml, put into a file that may have others, and taken out again.

An entry is a block: comments that say where it comes from, and the table. What a person has added to it makes it theirs: it is
found to differ from what would be written, and is left where it is.
"""

from __future__ import annotations

import json
import os
import re

from duly.adopt.found import When
from duly.errors import ConfigurationInvalid
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = "# Imported from "
_BLOCK = re.compile(
    r"(?:(?<=\n)|\A)" + re.escape(_HEAD) + r"[^\n]*\n(?:#[^\n]*\n)*\[(?P<table>[^\n]*)\]\n(?:(?!\[|#)[^\n]+\n)*"
)


@record
class Entry:
    """A job as it is declared. `source` is where it comes from; `originals` are its lines, for a reader."""

    name: str
    when: When
    source: str
    originals: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()  # further keys, as they are written

    def block(self, root: str = "") -> str:
        """The text of the entry. `root` is what stands before `jobs` in the file: `tool.duly.` in a pyproject.toml."""
        cron = [_text(line) for line in self.when.cron]
        rows = [("cron", cron[0] if len(cron) == 1 else f"[{', '.join(cron)}]"), ("zone", _text(self.when.zone))]
        rows += [(key, _text(value)) for key, value in (("gap", self.when.gap), ("fold", self.when.fold)) if value]
        rows += [("catch_up", '{ policy = "latest" }'), ("effect", _text("external")), *self.settings]
        comments = [f"{_HEAD}{_comment(self.source)}", *(f"#   {_comment(line)}" for line in self.originals)]
        table = [f"[{root}jobs.{_key(self.name)}]", *(f"{key:<8} = {value}" for key, value in rows)]
        return "\n".join([*comments, *table]) + "\n"


def _text(value: str) -> str:
    """A basic string of TOML, which has the escapes of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _comment(text: str) -> str:
    """A text as a comment may have it: no control characters but tabs, and no bytes that are not text."""
    return "".join(
        sign if sign == "\t" or (sign.isprintable() and not "\ud800" <= sign <= "\udfff") else "?" for sign in text
    )


# -- in a file -----------------------------------------------------------------------------------------------------------


@record
class Declarations:
    """A configuration that entries are put into. `text` is empty for a file that is not there yet."""

    path: str
    text: str

    @property
    def root(self) -> str:
        return "tool.duly." if os.path.basename(self.path) == "pyproject.toml" else ""

    def names(self) -> set[str]:
        """The names of the jobs that it declares. Raises `ConfigurationInvalid`."""
        return set(self._tables().get("jobs", {}))

    def when(self, name: str) -> When | None:
        """The schedule of a job that is declared by lines of cron; None for another."""
        table = self._tables().get("jobs", {}).get(name, {})
        cron = table.get("cron", ())
        if not cron or "zone" not in table:
            return None
        return When(
            (cron,) if isinstance(cron, str) else tuple(cron),
            table["zone"],
            table.get("gap", ""),
            table.get("fold", ""),
        )

    def source(self, name: str) -> str:
        """What an imported entry says that it comes from."""
        return self.imported()[name].partition("\n")[0].removeprefix(_HEAD)

    def of(self, source: str) -> set[str]:
        """The jobs that were imported from there."""
        return {name for name in self.imported() if self.source(name) == _comment(source)}

    def ledger(self) -> dict[str, Any] | None:
        """What it says of the ledger."""
        found: dict[str, Any] | None = self._tables().get("ledger")
        return found

    def imported(self) -> dict[str, str]:
        """The blocks that were imported, by the names of their jobs, as they stand there now."""
        found = {}
        for match in _BLOCK.finditer(self.text):
            name = _name_in(match["table"], self.root)
            if name is not None:
                found[name] = match.group()
        return found

    def is_as_written(self, name: str) -> bool:
        """Whether an imported entry is as it was written: the block, and nothing more of its table elsewhere in the file."""
        block = self.imported()[name]
        alone = Declarations(self.path, block)
        try:
            return alone._tables()["jobs"][name] == self._tables()["jobs"][name] and _is_as_rendered(block, self.root)
        except (KeyError, ConfigurationInvalid):
            return False

    def has(self, entry: Entry) -> bool:
        """Whether it has the entry just as it would be written."""
        return self.imported().get(entry.name) == entry.block(self.root)

    def with_entries(self, entries: Sequence[Entry], ledger: str = "") -> Declarations:
        """The file with the entries at its end, after the ledger where one is named."""
        text = self.text
        if ledger:
            text = f"{text}{_blank_after(text)}{self._ledger_block(ledger)}"
        for entry in entries:
            text = f"{text}{_blank_after(text)}{entry.block(self.root)}"
        return self._checked(text, [entry.name for entry in entries])

    def without(self, blocks: Sequence[str]) -> Declarations:
        """The file without some of its imported blocks."""
        found = self
        for block in blocks:
            found = found._without(block)
        ledger = found.ledger()
        if blocks and not found.imported() and ledger is not None and set(ledger) == {"url"}:
            found = found._without(found._ledger_block(str(ledger["url"])))
        return found

    def _without(self, block: str) -> Declarations:
        before, _, after = self.text.partition(block)
        if not before:  # the file began with it, and the blank line belongs to what comes next
            return Declarations(self.path, after.removeprefix("\n"))
        return Declarations(self.path, (before.removesuffix("\n") if before.endswith("\n\n") else before) + after)

    def _ledger_block(self, url: str) -> str:
        return f"# Named when jobs were imported.\n[{self.root}ledger]\nurl = {_text(url)}\n"

    def _tables(self) -> dict[str, Any]:
        import tomllib

        try:
            tables = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as e:
            raise ConfigurationInvalid(
                f"{self.path}: it is not TOML: {e}", next_step=f"duly jobs check {self.path}"
            ) from e
        if self.root:
            tables = tables.get("tool", {}).get("duly", {})
        return tables

    def _checked(self, text: str, names: Sequence[str]) -> Declarations:
        """What was put together, read back by the reader of configurations: what it does not understand is not written."""
        from duly.work.configuration.document import Document, Table
        from duly.work.configuration.entries import job_entry

        found = Declarations(self.path, text)
        jobs = found._tables().get("jobs", {})
        document = Document(self.path, Table(self.path, self.root.rstrip("."), {"jobs": jobs}))
        for name in names:
            table = document.job(name)
            assert table is not None
            job_entry(name, table)
        return found


def _is_as_rendered(block: str, root: str) -> bool:
    """Whether a block is what would be written of the schedule that is in it."""
    import tomllib

    comments, _, table = block.partition("\n[")
    lines = comments.split("\n")
    name = _name_in(table.partition("]\n")[0], root)
    try:
        values = tomllib.loads(f"[job]\n{table.partition(chr(10))[2]}")["job"]
    except tomllib.TOMLDecodeError:
        return False
    cron = values.get("cron", "")
    when = When(
        tuple(cron) if isinstance(cron, list) else (cron,),
        values.get("zone", ""),
        values.get("gap", ""),
        values.get("fold", ""),
    )
    originals = tuple(line.removeprefix("#   ") for line in lines[1:])
    return name is not None and Entry(name, when, lines[0].removeprefix(_HEAD), originals).block(root) == block


def _name_in(table: str, root: str) -> str | None:
    """The job's name in the head of a table: `jobs.backup` or `jobs."cron.daily"`."""
    prefix = f"{root}jobs."
    if not table.startswith(prefix):
        return None
    key = table.removeprefix(prefix)
    if _BARE.fullmatch(key):
        return key
    try:
        name = json.loads(key)
    except ValueError:
        return None
    return name if isinstance(name, str) else None


def _blank_after(text: str) -> str:
    if not text:
        return ""
    return "\n" if text.endswith("\n") else "\n\n"
