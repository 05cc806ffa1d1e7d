"""Document: one file of configuration as it is written, and its tables, which know where they stand."""

from __future__ import annotations

import os

from duly.errors import ConfigurationInvalid, Misuse
from duly.work.configuration.fields import TABLES, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duly.work.configuration.fields import Field


class Table:
    """A table of a file. It has no repr of its own: what is in it may be a secret."""

    __slots__ = ("file", "label", "values")

    def __init__(self, file: str, label: str, values: dict[str, object]) -> None:
        self.file = file
        self.label = label
        self.values = values

    def wrong(self, why: object) -> ConfigurationInvalid:
        """The error that says what is wrong in it, and where."""
        return invalid(self.file, f"[{self.label}] {why}")

    def read(self, fields: Mapping[str, Field]) -> dict[str, Any]:
        """Its values by key, each as its kind reads it. Raises `ConfigurationInvalid`."""
        names = tuple(fields)
        for key in self.values:
            if key not in fields:
                raise self.wrong(f"has no key {key!r}{did_you_mean(key, names)}")
        try:
            return {key: fields[key].kind.read(key, value) for key, value in self.values.items()}
        except Misuse as e:
            raise self.wrong(e) from e

    def path(self, relative: str) -> str:
        """A path that is written in it: relative to the folder of the file."""
        return os.path.join(os.path.dirname(self.file), relative)


class Document:
    """One file: `duly.toml`, or the table `[tool.duly]` of a `pyproject.toml`."""

    def __init__(self, path: str, root: Table) -> None:
        self.path = path
        self._root = root

    def table(self, name: str) -> Table | None:
        """A table by its name; None where it is not there."""
        return self._within(self._root, name)

    def jobs(self) -> list[str]:
        """The names of its jobs."""
        jobs = self.table("jobs")
        return [] if jobs is None else list(jobs.values)

    def destinations(self) -> list[str]:
        """The names of its destinations."""
        destinations = self.table("destinations")
        return [] if destinations is None else list(destinations.values)

    def destination(self, name: str) -> Table | None:
        """The table of a destination; None where it is not there."""
        destinations = self.table("destinations")
        return None if destinations is None else self._within(destinations, name)

    def job(self, name: str) -> Table | None:
        """The table of a job; None where it is not there."""
        jobs = self.table("jobs")
        return None if jobs is None else self._within(jobs, name)

    def _within(self, table: Table, name: str) -> Table | None:
        if name not in table.values:
            return None
        label = f"{table.label}.{name}" if table.label else name
        found = table.values[name]
        if not isinstance(found, dict):
            raise invalid(self.path, f"{label}: it is no table; write [{label}]")
        return Table(self.path, label, found)


def read_document(path: str) -> Document:
    """The file, whose tables have names that are known. Raises `ConfigurationInvalid`."""
    in_project = os.path.basename(path) == "pyproject.toml"
    values = _parsed(path)
    if in_project:
        tool = values.get("tool", {})
        found = tool.get("duly", {}) if isinstance(tool, dict) else {}
        if not isinstance(found, dict):
            raise invalid(path, "tool.duly: it is no table; write [tool.duly.jobs.NAME]")
        values = found
    for name in values:
        if name not in TABLES:
            label = f"[tool.duly.{name}]" if in_project else f"[{name}]"
            near = (
                "; in this file [jobs.NAME] stands by itself" if name == "tool" else did_you_mean(name, tuple(TABLES))
            )
            raise invalid(path, f"{label} is none of the tables {', '.join(TABLES)}{near}")
    return Document(path, Table(path, "tool.duly" if in_project else "", values))


def _parsed(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as f:
            text = f.read().decode("utf-8-sig")
    except OSError as e:
        raise invalid(path, f"it cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise invalid(path, f"it is not text in UTF-8 (byte {e.start})") from e
    if not text.strip():  # /dev/null says nothing, and needs no parser
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise invalid(path, f"it is not TOML: {e}") from e


def invalid(path: str, why: str) -> ConfigurationInvalid:
    """The error that says what is wrong with a file."""
    from shlex import quote

    return ConfigurationInvalid(f"{path}: {why}", next_step=f"duly jobs check {quote(path)}")
