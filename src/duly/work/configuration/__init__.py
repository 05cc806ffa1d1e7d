"""Configuration: what files say of the ledger, of jobs, of alerts and of the daemon. Where they lie: `duly.work.whereabouts`.

The deal: a file says what flags say, under the flags' names. A table (`[ledger]`, `[daemon]`, `[alerts]`, each `[jobs.NAME]`
and `[destinations.NAME]`) comes whole from the nearest file that has it, so that whoever reads it sees all that counts. A
relative path in a file starts at the file's own folder, wherever duly is called from. What cannot be understood is an error
that names file, table and key, and nothing runs; but a job that is asked for does not fail because of another one in its file,
which is not even read.

    configuration = read_configuration(os.getcwd())     all of it, for a daemon: raises at the first mistake
    Layers(files).job("close-day")                      one job, for `duly exec`
"""

from __future__ import annotations

import os

from duly.errors import ConfigurationInvalid
from duly.records import record
from duly.times import MINUTE
from duly.work.configuration.document import Document, read_document
from duly.work.configuration.entries import (
    Daemon,
    JobEntry,
    LedgerEntry,
    Redact,
    alerts_entry,
    daemon_entry,
    job_entry,
    ledger_entry,
    redact_entry,
    secrets_named_in,
)
from duly.work.configuration.fields import ALERTS
from duly.work.whereabouts import SYSTEM, files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duly.outbox.routes import Route
    from duly.redaction import Redaction
    from duly.work.alerts import Alerting
    from duly.work.configuration.document import Table

ON_LATE = "on_late."  # before a job's name: the destination that is its own

__all__ = ["Configuration", "Daemon", "Document", "JobEntry", "Layers", "LedgerEntry", "read_configuration"]


@record
class Configuration:
    """All that the files say. `files` are those that count, the nearest first; `ledger` is None where none has a table."""

    files: tuple[str, ...]
    ledger: LedgerEntry | None
    daemon: Daemon
    jobs: dict[str, JobEntry]
    destinations: dict[str, Route]
    alerts: Alerting | None = None  # None: nobody is to be told of any
    redact: Redact = Redact()


def read_configuration(
    start_dir: str, environ: Mapping[str, str] = os.environ, *, system: str = SYSTEM
) -> Configuration:
    """What is configured where `start_dir` is the working directory. Raises `ConfigurationInvalid` at the first mistake."""
    layers = Layers(files_of(start_dir, environ, system=system))
    return Configuration(
        layers.files,
        layers.ledger(),
        layers.daemon(),
        {name: layers.job_or_raise(name) for name in layers.names()},
        layers.destinations(),
        None if layers.alerts_every() is None else layers.alerts(),
        layers.redact(),
    )


class Layers:
    """The files that count, the nearest first. Each is read when it is first asked, and only the tables that are asked for."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = tuple(files)
        self._read: list[Document] = []

    def documents(self) -> Iterator[Document]:
        """The files as they were read, the nearest first. Raises `ConfigurationInvalid`."""
        for place, path in enumerate(self.files):
            if place == len(self._read):
                self._read.append(read_document(path))
            yield self._read[place]

    def ledger(self) -> LedgerEntry | None:
        """What is said of the ledger; None where no file speaks of it."""
        table = self._nearest("ledger")
        return None if table is None else ledger_entry(table)

    def daemon(self) -> Daemon:
        """What is said of the daemon, or what goes without saying."""
        table = self._nearest("daemon")
        return Daemon() if table is None else daemon_entry(table)

    def redact(self) -> Redact:
        """What is said of secrets, or that nothing is."""
        table = self._nearest("redact")
        return Redact() if table is None else redact_entry(table)

    def redaction(self, environ: Mapping[str, str], secrets: Sequence[str] = ()) -> Redaction:
        """What is to be hidden where these files count: what they name, what the environment's names say, and `secrets`.

        Raises `ConfigurationInvalid` for a `[redact]` that cannot be understood.
        """
        import re

        from duly.redaction import Redaction, secrets_of

        said = self.redact()
        found = [*secrets_of(environ, said.variables), *secrets]
        for document in self.documents():
            tables = [document.table("ledger"), *map(document.destination, document.destinations())]
            for table in tables:
                found += [] if table is None else secrets_named_in(table, environ)
        return Redaction(found, map(re.compile, said.patterns))

    def hidden(self) -> tuple[str, ...]:
        """The variables of the environment that no command is to see: what `[ledger]` names, whether it is meant or not."""
        table = self._nearest("ledger")
        named = None if table is None else table.values.get("url_env")
        return (named,) if isinstance(named, str) else ()

    def destinations(self) -> dict[str, Route]:
        """Where messages go, each from the nearest file that names it. Raises `ConfigurationInvalid` at the first mistake."""
        return {name: self.destination_or_raise(name) for name in self.destination_names()}

    def destination_names(self) -> list[str]:
        """The names of all destinations, those of the nearest file first, and of those that `on_late` implies."""
        declared = (name for document in self.documents() for name in document.destinations())
        return list(dict.fromkeys((*declared, *self._on_late().values())))

    def destination(self, name: str) -> Route | None:
        """How one destination is served, whatever stands in the tables of others; None where no file speaks of it."""
        from duly.work.configuration.entries import destination_entry

        found = (document.destination(name) for document in self.documents())
        table = next((table for table in found if table is not None), None)
        if table is not None:
            return destination_entry(name, table, self.hidden())
        job = name.removeprefix(ON_LATE) if name.startswith(ON_LATE) else ""
        return self._on_late_route(job) if job in self._on_late() else None

    def _on_late_route(self, job: str) -> Route:
        from duly.work.configuration.entries import on_late_entry

        found = (document.job(job) for document in self.documents())
        table = next(table for table in found if table is not None)
        return on_late_entry(ON_LATE + job, table, self.hidden())

    def _on_late(self) -> dict[str, str]:
        """The destinations that the jobs' `on_late` implies, by job. What else their tables say is not read."""
        tables: dict[str, object] = {}
        for document in self.documents():
            jobs = document.table("jobs")
            tables = {**(jobs.values if jobs is not None else {}), **tables}
        return {job: ON_LATE + job for job, table in tables.items() if isinstance(table, dict) and "on_late" in table}

    def alerts_every(self) -> int | None:
        """How often somebody is to look for alerts, in microseconds; None where nobody is to be told of any."""
        table = self._nearest("alerts")
        if table is None:
            return MINUTE if self._on_late() else None
        every: int = table.read(ALERTS).get("every", MINUTE)
        return every

    def alerts(self) -> Alerting:
        """Who is told of what. Raises `ConfigurationInvalid`, also for a destination that is not as it should be."""
        from duly.work.alerts import Alerting, with_mail

        table = self._nearest("alerts")
        said = {} if table is None else alerts_entry(table, self.destination_names())
        alerting = Alerting(**{**said, "to": tuple(said.get("to", ()))}, on_late=self._on_late())
        return with_mail(alerting, {name: self.destination_or_raise(name) for name in alerting.destinations})

    def destination_or_raise(self, name: str) -> Route:
        """How a destination is served that `destination_names` has."""
        route = self.destination(name)
        assert route is not None
        return route

    def _nearest(self, name: str) -> Table | None:
        found = (document.table(name) for document in self.documents())
        return next((table for table in found if table is not None), None)

    def names(self) -> list[str]:
        """The names of all jobs, those of the nearest file first."""
        return list(dict.fromkeys(name for document in self.documents() for name in document.jobs()))

    def job(self, name: str) -> JobEntry | None:
        """What is said of a job; None where no file speaks of it."""
        found = (document.job(name) for document in self.documents())
        table = next((table for table in found if table is not None), None)
        return None if table is None else job_entry(name, table)

    def job_or_raise(self, name: str) -> JobEntry:
        """What is said of a job that `names` has, or that somebody asked for by name."""
        entry = self.job(name)
        if entry is None:
            from duly.work.configuration.fields import did_you_mean

            near = did_you_mean(name, tuple(self.names()))
            raise ConfigurationInvalid(
                f"no job {name!r} is configured in {' or '.join(self.files)}{near}", next_step="duly jobs check"
            )
        return entry
