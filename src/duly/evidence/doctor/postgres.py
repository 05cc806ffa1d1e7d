"""Examinations of a PostgreSQL server: how it is set, what stands between, and who holds it up."""

from __future__ import annotations

from duly.evidence.doctor import NOTE, OK, TROUBLE, WARNING, Finding
from duly.evidence.words import span
from duly.ledger.ask import Statement, every, now, one
from duly.times import HOUR, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST = 130_000  # PostgreSQL 13, as server_version_num says it
LONG = HOUR
SKEW, GREAT_SKEW = SECOND, 5 * SECOND

SETTINGS = Statement(
    "settings_of_server",
    """
select name, setting
  from pg_settings
 where name in ('server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit',
                'idle_in_transaction_session_timeout', 'statement_timeout', 'default_transaction_read_only')
""",
)

IS_COPY = Statement("is_in_recovery", "select case when pg_is_in_recovery() then 1 else 0 end")

BACKEND = Statement("backend", "select pg_backend_pid()")

LONG_TRANSACTIONS = Statement(
    "long_transactions",
    # Of others, and no text of theirs: it may hold anything.
    """
select pid, state, (extract(epoch from clock_timestamp() - xact_start) * 1000000)::bigint
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
   and xact_start is not null and clock_timestamp() - xact_start > :micros * interval '1 microsecond'
 order by xact_start
 limit 5
""",
)

MAY_WRITE = Statement(
    "may_write",
    """
select case when has_table_privilege('duly_run', 'update') and has_table_privilege('duly_event', 'insert')
            then 1 else 0 end
""",
)


async def settings() -> list[Finding]:
    """How the server is set for this role and database."""
    return of_settings(dict(await every(SETTINGS, lambda *pair: pair)))


def of_settings(found: Mapping[str, str]) -> list[Finding]:
    """As `settings`, of what the server says. Pure."""
    findings = []
    if int(found["server_version_num"]) < OLDEST:
        seen = f"version {int(found['server_version_num']) // 10_000}: duly is tested from 13 on"
        findings.append(Finding("settings", TROUBLE, seen, "psql -c 'select version()'"))
    for name in ("fsync", "full_page_writes"):
        if found[name] != "on":
            seen = (
                f"{name} is {found[name]}: after a crash of the host the database may be damaged, and runs done again"
            )
            findings.append(Finding("settings", TROUBLE, seen, f"psql -c 'alter system set {name} = on'"))
    if found["synchronous_commit"] == "off":
        seen = "synchronous_commit is off: a completion may be lost in a crash though its effect elsewhere is not"
        step = "psql -c 'alter role CURRENT_USER set synchronous_commit = on'"
        findings.append(Finding("settings", TROUBLE, seen, step))
    if found["default_transaction_read_only"] == "on":
        seen = "default_transaction_read_only is on for this role and database: nothing can be claimed"
        step = "psql -c 'alter role CURRENT_USER set default_transaction_read_only = off'"
        findings.append(Finding("settings", TROUBLE, seen, step))
    if found["idle_in_transaction_session_timeout"] == "0":
        seen = "idle_in_transaction_session_timeout is 0: a client that hangs in a transaction keeps its locks for ever"
        step = "psql -c \"alter role CURRENT_USER set idle_in_transaction_session_timeout = '15min'\""
        findings.append(Finding("settings", NOTE, seen, step))
    if found["statement_timeout"] != "0":
        seen = f"statement_timeout is {found['statement_timeout']} ms for this role: a view of much, or a prune, may be cut off"
        findings.append(Finding("settings", NOTE, seen, "psql -c 'show statement_timeout'"))
    said = f"PostgreSQL {int(found['server_version_num']) // 10_000}, and what it says is durable is"
    return findings or [Finding("settings", OK, said)]


async def server() -> list[Finding]:
    """Whether it is the one that is written to, and this role may write it."""
    if await one(IS_COPY, int):
        seen = "it is a copy that follows another server: nothing can be claimed here"
        return [Finding("server", TROUBLE, seen, "psql -c 'select * from pg_stat_wal_receiver'")]
    if not await one(MAY_WRITE, int):
        seen = "this role may look, and not write: nothing can be claimed by it"
        return [Finding("server", NOTE, seen, "psql -c '\\dp duly.*'")]
    return [Finding("server", OK, "it is written to, and this role may")]


async def transactions() -> list[Finding]:
    """Transactions of others in this database that are open for long: they hold locks, and rows from being cleaned away."""
    found = await every(LONG_TRANSACTIONS, lambda *row: row, micros=LONG)
    return [
        Finding(
            "transactions",
            WARNING,
            f"process {pid} has had a transaction open for {span(micros)}; it is {state}",
            f"psql -c 'select pg_terminate_backend({pid})'",
        )
        for pid, state, micros in found
    ] or [Finding("transactions", OK, f"none is open for longer than {span(LONG)}")]


async def backend() -> int:
    """The process of the server that answers, as it knows itself."""
    return await one(BACKEND, int) or 0


def pooler(told: int, answered: int) -> list[Finding]:
    """What stands between: a pooler in transaction mode makes up the process that it tells a client of. Pure.

    `told` is the one that was told when the connection was made, `answered` the one that answers.
    """
    if told == answered:
        return [Finding("pooler", OK, "nothing stands between that changes connections")]
    seen = (
        "a pooler in transaction mode stands between: all works, but that nobody is woken (LISTEN) and nothing is prepared; "
        "give a daemon a connection of its own"
    )
    return [Finding("pooler", NOTE, seen, "duly daemon --help")]


def skew(before: int, by_server: int, after: int) -> list[Finding]:
    """How far this host's clock is from the server's, which was asked between two looks at the former. Pure.

    Leases are judged by the server's clock alone: a host whose clock is wrong pokes early or late, and no run is done twice.
    """
    off = min(abs(before - by_server), abs(after - by_server)) if not before <= by_server <= after else 0
    if off >= SKEW:
        seen = f"this host's clock is {off / SECOND:.1f} s from the server's: cron here comes so much early or late"
        return [Finding("skew", TROUBLE if off >= GREAT_SKEW else WARNING, seen, "timedatectl status")]
    return [Finding("skew", OK, "this host and the server agree on the time")]


async def instant() -> int:
    """The server's clock."""
    return await now()


EXAMINATIONS = (settings, server, transactions)
