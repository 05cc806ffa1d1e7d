"""Migrations: numbered SQL, one file a step and engine, each applied once and on record with its checksum.

A new ledger takes all of them. One that is there takes what it lacks from `duly db migrate`, and from nothing else; till
then a release works on the schema that it finds, newer or older. What is released is never edited, and the schema only
grows, so that old code keeps working on it. A step after which it could not says so in its head: `-- min_writer: N` keeps
every release that does not know schema N from writing, and `-- min_writer: as before` lets all write that might.
"""

from __future__ import annotations

import os
from hashlib import sha256

from duly.errors import LedgerTooNew, LedgerUnwritable, MigrationDiffers, Misuse
from duly.records import record
from duly.store import VERSION_LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias

    Recorded: TypeAlias = Iterable[tuple[int, str]]  # number and checksum of each migration that a ledger has
    Run: TypeAlias = Callable[
        [str], Any
    ]  # runs a statement without parameters; of a query's answer the rows are iterated

SQLITE, POSTGRES = "sqlite", "postgres"
BY_DULY = "duly"  # who makes a ledger that nobody asked for by name

_HERE = os.path.dirname(__file__)
_HEAD = "-- min_writer: "
_PREFIX = {SQLITE: "duly_", POSTGRES: "duly."}
_IS_THERE = {
    SQLITE: "select 1 from sqlite_master where name = 'duly_meta'",
    POSTGRES: "select 1 where to_regclass('duly.meta') is not null",
}
# Who comes while a step waits for its locks queues behind it: so it gives up before they do (BUSY_SECONDS).
ALONE = {
    SQLITE: (),
    POSTGRES: ("set local lock_timeout = '5s'", f"select pg_advisory_xact_lock({VERSION_LOCK})"),
}
_CLOCK = {
    SQLITE: "cast((julianday('now') - 2440587.5) * 86400000000 as integer)",
    POSTGRES: "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
}


@record
class Step:
    """One migration of one engine. `min_writer` is the schema that a release must know to write after it; None: as before."""

    number: int
    name: str
    engine: str
    sql: str
    min_writer: int | None

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.number:04}_{self.name}.{self.engine}.sql"

    @property
    def sha256(self) -> str:
        """Its checksum: of its text with line feeds, whatever ends the lines of a checkout."""
        return sha256(self.sql.encode()).hexdigest()


def steps(engine: str, *folders: str) -> list[Step]:
    """Every migration of an engine, `sqlite` or `postgres`, in order. More `folders` hold those that a test makes up."""
    found = [
        _read(folder, file, engine) for folder in (_HERE, *folders) for file in os.listdir(folder) if _is(file, engine)
    ]
    return sorted(found, key=lambda step: step.number)


def _is(file: str, engine: str) -> bool:
    return file[:4].isdigit() and file.endswith(f".{engine}.sql")


def _read(folder: str, file: str, engine: str) -> Step:
    with open(os.path.join(folder, file), encoding="utf-8") as f:
        sql = f.read()
    number, _, name = file.removesuffix(f".{engine}.sql").partition("_")
    return Step(int(number), name, engine, sql, _min_writer(sql, file))


def _min_writer(sql: str, file: str) -> int | None:
    for line in sql.splitlines():
        if line.startswith(_HEAD):
            said = line.removeprefix(_HEAD).strip()
            return None if said == "as before" else int(said)
    raise ValueError(
        f"{file} does not say in its head who may write after it: '{_HEAD}as before', or a schema's number"
    )


# -- what is missing ----------------------------------------------------------------------------------------------------


def missing(recorded: Recorded, known: Sequence[Step], *, min_writer: int, ledger: str) -> list[Step]:
    """The known steps that a ledger lacks, in order. Pure.

    Raises `MigrationDiffers` for a file that is not the one that was applied, and `LedgerTooNew` for a ledger that those
    who know no more than these steps may not write.
    """
    if min_writer > known[-1].number:
        raise LedgerTooNew(f"{ledger} was migrated by a newer release and does not let this one write; upgrade duly")
    applied = dict(recorded)
    for step in known:
        if applied.get(step.number, step.sha256) != step.sha256:
            raise MigrationDiffers(
                f"{ledger} was migrated by another {step.file} than this release has; what is released is never edited: "
                "install the release that made the ledger, or put the file back"
            )
    return [step for step in known if step.number not in applied]


def is_there(run: Run, engine: str) -> bool:
    """Whether a database holds a ledger."""
    return bool(list(run(_IS_THERE[engine])))


def lacking(run: Run, known: Sequence[Step], *, ledger: str) -> list[Step]:
    """The known steps that a database lacks: all of them, where it holds no ledger. Raises as `missing`."""
    engine = known[0].engine
    if not is_there(run, engine):
        return list(known)
    table = _PREFIX[engine]
    recorded = [(number, digest) for number, digest in run(f"select number, sha256 from {table}migration")]
    ((min_writer,),) = run(f"select value from {table}meta where name = 'min_writer'")
    return missing(recorded, known, min_writer=int(min_writer), ledger=ledger)


# -- in the transaction of another tool ---------------------------------------------------------------------------------


def apply(number: int, run: Run, *, dialect: str, by: str) -> None:
    """Apply one step in a transaction that another tool began and commits, unless the ledger has it.

    `run` runs a statement without parameters and answers the rows of a query: `connection.execute` of sqlite3 or psycopg,
    `connection.exec_driver_sql` of SQLAlchemy. Raises `Misuse` for a dialect other than SQLite and PostgreSQL and for a step
    that this release does not have, as `missing`, and what `run` raises: then nothing of the step is kept.
    """
    engine = engine_of(dialect)
    known = steps(engine)
    if number not in {step.number for step in known}:  # the tool would note down that it was applied
        raise Misuse(
            f"number: this release has no step {number} of the ledger, only up to {known[-1].number}; upgrade duly"
        )
    run("savepoint duly_step")  # Python's sqlite3 begins a transaction for no table; on PostgreSQL it insists on one
    try:
        for statement in ALONE[engine]:
            run(statement)
        for step in lacking(run, known, ledger="this database"):
            if step.number == number:
                for statement in statements(step, by=by):
                    run(statement)
    except BaseException:
        run("rollback to savepoint duly_step")
        run("release savepoint duly_step")
        raise
    run("release savepoint duly_step")


def engine_of(dialect: str) -> str:
    """The engine that a tool names in its own way. Raises `Misuse`."""
    engine = {SQLITE: SQLITE, POSTGRES: POSTGRES, "postgresql": POSTGRES}.get(dialect)
    if engine is None:
        raise Misuse(f"ledger: it is kept on SQLite or PostgreSQL, not on {dialect}; leave its migrations out there")
    return engine


def failed(step: Step, *, ledger: str, why: str) -> LedgerUnwritable:
    """The error for a step that the database did not accept."""
    return LedgerUnwritable(f"{step.file} could not be applied to {ledger}, and nothing of it was kept: {why}")


# -- as statements ------------------------------------------------------------------------------------------------------


def statements(step: Step, *, by: str) -> list[str]:
    """What applies a step and records that it was: one after the other in one transaction, without parameters."""
    return [*ALONE[step.engine], *split(step.sql, step.engine), *_records(step, by)]


def script(step: Step, *, by: str) -> str:
    """The same as a text for a person or a database's own shell: one transaction."""
    before, after = ([f"{each};" for each in ours] for ours in (ALONE[step.engine], _records(step, by)))
    return "\n".join(["begin;", *before, "", step.sql.strip(), "", *after, "commit;\n"])


def split(text: str, engine: str) -> list[str]:
    """The statements of a script. One ends with its line: the rest of the line is a comment, if anything.

    Raises `ValueError` for a last one that does not end.
    """
    ends = _sqlite_ends() if engine == SQLITE else _ends_on_postgres
    found, pending = [], ""
    for line in text.splitlines(keepends=True):
        pending += line
        if ends(pending):
            found.append(pending)
            pending = ""
    if any(line.partition("--")[0].strip() for line in pending.splitlines()):  # it would be on record, and not applied
        raise ValueError(f"the last statement of a script has no semicolon at its end: {pending.strip()}")
    return found


def _sqlite_ends() -> Callable[[str], bool]:
    from sqlite3 import complete_statement  # it knows that a trigger's body holds semicolons

    return complete_statement


def _ends_on_postgres(text: str) -> bool:
    """A body between `$$` holds semicolons."""
    last = text.splitlines()[-1].partition("--")[0]
    return text.count("$$") % 2 == 0 and last.rstrip().endswith(";")


def _records(step: Step, by: str) -> list[str]:
    table, clock = _PREFIX[step.engine], _CLOCK[step.engine]
    values = f"{step.number}, '{step.name}', '{step.sha256}', {clock}, {_quoted(by)}"
    facts = {"schema": step.number, "min_writer": step.min_writer}
    return [
        f"insert into {table}migration (number, name, sha256, applied_at, by)\nvalues ({values})",
        *(
            f"update {table}meta set value = '{value}' where name = '{name}'"
            for name, value in facts.items()
            if value is not None
        ),
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
