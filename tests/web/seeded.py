"""A ledger as a company has it: a thousand jobs, a hundred of them hourly and four days of those in view, most of it well."""

from __future__ import annotations

from duly.ledger.ask import now
from duly.ledger.register import Declaration, declare
from duly.schedule.spec import daily, hourly
from duly.times import HOUR, SECOND, parse_instant
from tests.books import Book, PostgresBook

NOW = "2026-10-26T00:10:00Z"
HOURS = 96
DENSE = "hourly-"


def seed(book: Book, *, jobs: int, dense: int) -> None:
    """Fill a new ledger; its clock is set by hand. Of each ten of the dense lines five are well, one has failed once, one was
    not poked for five hours, one is running, one is unknown, and one has a backfill under way.
    """
    book.clock.set(NOW)
    policies: dict[str, int | str | bytes | None] = {"catch_up": "each", "contract": "external", "lease": 60 * SECOND}

    async def register() -> None:
        await now()
        for number in range(jobs):
            is_dense = number < dense
            name = f"{DENSE}{number:04}" if is_dense else f"nightly-{number:04}"
            schedule = hourly("UTC") if is_dense else daily("UTC")
            await declare(Declaration(name, "", schedule, {**policies, "owner": f"team-{number % 7}"}, "dev@example"))

    book.write(register())
    end = parse_instant("2026-10-26T00:00:00Z")
    book.amend(f"update duly_line set starts = {end - 3 * 24 * HOUR}, opened_until = {end}")
    book.amend(
        f"update duly_line set starts = {end - (HOURS + 24) * HOUR}"
        " where id in (select line from duly_series where grain = 'hour')"
    )
    _complete(book, "hour", HOUR, HOURS + 24, end)
    _complete(book, "day", 24 * HOUR, 3, end)
    for place, (state, extra) in enumerate(
        (
            ("failed", "cause = 'exit 1', failures = 1"),
            ("running", f"lease_until = {end + HOUR}, owner = 'host/1', started_at = {end}, settled_at = null"),
            ("unknown", "cause = 'killed', settled_at = null"),
        ),
        start=5,
    ):
        book.amend(
            f"update duly_run set state = '{state}', {extra} where series % 10 = {place}"
            f" and nominal = {2 * (end // SECOND - 5 * 3600)} and {_OF_DENSE}"
        )
    book.amend(
        f"delete from duly_run where series % 10 = 8 and nominal >= {2 * (end // SECOND - 5 * 3600)} and {_OF_DENSE}"
    )
    book.amend(
        f"update duly_line set opened_until = {end - 5 * HOUR}"
        " where id in (select line from duly_series where id % 10 = 8 and grain = 'hour')"
    )
    book.amend(
        f"delete from duly_run where series % 10 = 9 and nominal < {2 * (end // SECOND - 90 * 3600)} and {_OF_DENSE}"
    )
    first, beyond = 2 * (end // SECOND - HOURS * 3600), 2 * (end // SECOND - 90 * 3600)
    book.amend(
        "insert into duly_backfill (series, asked, from_nominal, to_nominal, since, until, what, direction, concurrency, state,"
        " place, counts_from, asked_at, by, reason, said_by, said)"
        f" select id, 'six hours', {first}, {beyond}, {end - HOURS * HOUR}, {end - 90 * HOUR}, 'missing', 'oldest', 1,"
        f" 'active', {end - HOURS * HOUR}, {end}, {end}, 'ana', 'they were lost', 'ana', 'started'"
        " from duly_series where id % 10 = 9 and grain = 'hour'"
    )
    book.amend("analyze")


_OF_DENSE = "series in (select id from duly_series where grain = 'hour')"


def _complete(book: Book, grain: str, unit: int, count: int, end: int) -> None:
    """The last so many windows of every line of a grain, complete."""
    began, ended = f"{end} - n * {unit}", f"{end} - (n - 1) * {unit}"
    attempt = f"cast('0123456789abcdef' as {'bytea' if isinstance(book, PostgresBook) else 'blob'})"
    book.amend(
        "insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, resolution, version,"
        " opened_at, payload, failures, settled_at, first_started_at, attempt_id, started_at, contract, owner, trigger)"
        f" with recursive back(n) as (select cast(1 as bigint) union all select n + 1 from back where n < {count})"
        f" select s.id, 2 * ({end // SECOND} - n * {unit // SECOND}), 1, 'completed', 1, {ended}, {began}, {ended}, 'exact', 1,"
        f" {ended}, 'none', 0, {ended} + 5, {ended}, {attempt}, {ended}, 'external', 'host/1', 'cron'"
        f" from duly_series s cross join back where s.grain = '{grain}'"
    )
