"""A process that forks after a ledger was opened and used: the child has connections of its own, and no part in its parent's
claim.

The parent is a process of its own, so that what its child does at its end, with whatever it inherited, is real.
"""

from __future__ import annotations

import pytest

import duly
from tests.books import PostgresBook
from tests.exec.stage import until
from tests.faults.account import CREDIT, DAY, KEY, Account

BEGINNING = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads

def in_a_child(act):
    if (child := os.fork()) == 0:
        code = 1
        try:
            code = act() or 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

""" + CREDIT.replace('    stop("before the effect")\n', "").replace('    stop("after the effect")\n', "")


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def account(request: pytest.FixtureRequest) -> Account:
    """An account on each database."""
    found: Account = request.getfixturevalue(request.param)
    return found


def told_by(account: Account, script: str) -> list[str]:
    """The lines of a process that forks."""
    return account.worker(BEGINNING + script).ends().splitlines()


def test_parent_and_child_work_on_connections_of_their_own(account: Account) -> None:
    told = told_by(
        account,
        """
credit.run("2026-10-01")

def child():
    print(type(credit.run("2026-10-01")).__name__, type(credit.run("2026-10-02")).__name__)

print(in_a_child(child))
print(type(credit.run("2026-10-03")).__name__)
print(in_a_child(lambda: None))  # and one that does nothing, and leaves
print(type(credit.run("2026-10-04")).__name__)
ledger.close()
""",
    )

    assert told == ["AlreadyCompleted Completed", "0", "Completed", "0", "Completed"]
    assert account.days == account.completed() == [f"2026-10-0{day}" for day in (1, 2, 3, 4)]
    assert len(account.book.rows("select distinct owner from duly_attempt")) == 2


def test_parent_and_child_on_one_window_complete_it_once(account: Account) -> None:
    told = told_by(
        account,
        f"""
credit.run("2026-10-01")
child = os.fork()
said = type(credit.run("{DAY}", wait="1h")).__name__
os.write(1, (said + "\\n").encode())  # in one piece, beside the other's
ledger.close()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
""",
    )

    assert sorted(told) == ["AlreadyCompleted", "Completed"]
    assert account.days == ["2026-10-01", DAY]


def test_a_child_neither_releases_nor_ends_its_parents_claim(account: Account) -> None:
    """However the child leaves: out of the block, by its end, or by an exception."""
    account.credit().catch_up()
    told = told_by(
        account,
        """
def leave(claim, how):
    if (child := os.fork()) == 0:
        if how == "exit":
            sys.exit(3)  # through the block
        if how == "raise":
            raise ValueError(how)
        if how == "collect":
            del claim
            import gc
            gc.collect()
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

claim = ledger.take("credit", "2026-10-02")
with claim:
    sys.stderr = open(os.devnull, "w")  # the child's traceback is its own
    print([leave(claim, how) for how in ("exit", "raise", "collect")], flush=True)
    sys.stderr = sys.__stderr__
    other = duly.postgres(path) if "://" in path else duly.sqlite(path)
    print(type(other.take("credit", "2026-10-02")).__name__)
    other.close()
    print(claim.complete().attempt)
ledger.close()
""",
    )

    assert told == ["[3, 1, 3]", "Busy", "1"]
    assert account.completed() == ["2026-10-02", DAY]


def test_a_child_does_not_renew_its_parents_claim(account: Account) -> None:
    """The parent is killed while its child lives on and works: the lease runs out."""
    account.credit().catch_up()
    worker = account.worker(
        BEGINNING
        + """
claim = ledger.take("credit", "2026-10-02")
claim.__enter__()
stop("claimed")
ready, wait = os.pipe()
if os.fork() == 0:
    claim.close()  # or on SQLite its pulse, which the child has inherited, would say that it may be alive
    credit.run("2026-10-03")
    with ledger.take("credit", "2026-10-04"):  # it keeps leases: of its own claims
        stop("the child works")
    os._exit(0)
os.read(ready, 1)
"""
    )
    worker.reaches("claimed")
    worker.go_on()
    worker.reaches("the child works")
    worker.process.kill()
    worker.process.wait()

    for _ in range(4):
        account.clock.advance("25s")
        until(lambda: renewed(account, "2026-10-04"), "the child renews its own")

    answer = account.ledger().take("credit", "2026-10-02")
    worker.go_on()
    worker.process.communicate()
    assert isinstance(answer, duly.Claim)
    assert answer.run.attempt == 2
    answer.close()


def renewed(account: Account, day: str) -> bool:
    """Whether the lease of a day's run will last for most of its length."""
    _, run, _ = account.book.find(day, job="credit")
    return bool(
        account.book.rows(
            "select 1 from duly_renewal where nominal = ? and until > ?", run.nominal, account.clock.now() + 30_000_000
        )
    )


def test_a_child_cannot_write_through_its_parents_transaction(account: Account) -> None:
    told = told_by(
        account,
        f"""
def from_a_child(run):
    refused = []
    for act in (
        lambda: run.tx.execute("insert into credited values ('child', 10)"),
        lambda: run.tx.cursor().execute("insert into credited values ('child', 10)"),
        run.tx.commit,
        run.tx.rollback,
        run.tx.close,
    ):
        try:
            act()
        except duly.TransactionOwned:
            refused.append(True)
    print(refused)

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=1000, retry_delay=0, overlap=True)
def credit(run):
    run.tx.execute("insert into credited values ('parent', 10)")
    print(in_a_child(lambda: from_a_child(run)), flush=True)

print(credit.run("{DAY}"))
ledger.close()
""",
    )

    assert told[0] == str([True] * 5)
    assert told[1] == "0"
    assert KEY in told[2]
    assert account.days == ["parent"]


RETURNING_CHILD = f"""
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=1000, retry_delay=0, overlap=True)
def credit(run):
    run.tx.execute("insert into credited select 'parent' || n, 10 from numbers")
    global child
    if child := os.fork():
        os.waitpid(child, 0)

child = None
try:
    said = type(credit.run("{DAY}")).__name__
except duly.DulyError as e:
    said = type(e).__name__
finally:
    if not child:
        os._exit(0)
print(said)
if "://" not in path:
    other = sqlite3.connect(path)
    print(other.execute("pragma integrity_check").fetchone()[0])
    print(other.execute("select count(*) from credited").fetchone()[0])
    other.close()
ledger.close()
"""


def told_by_a_parent_of_one_that_returns(account: Account, rows: int) -> list[str]:
    """What a parent says of a run with an effect of so many rows, out of which its child has returned."""
    account.book.amend("create table numbers (n integer)")
    numbers = f"with recursive r (n) as (select 1 union all select n + 1 from r where n < {rows}) "
    account.book.amend(f"insert into numbers {numbers} select n from r")
    return told_by(account, RETURNING_CHILD)


def test_a_child_that_returns_from_a_job_does_not_end_its_parents_transaction(on_postgres: Account) -> None:
    told = told_by_a_parent_of_one_that_returns(on_postgres, rows=1)

    assert told == ["Completed"]
    assert len(on_postgres.days) == 1
    assert on_postgres.history() == [(1, "completed")]


def test_on_sqlite_neither_does_it(on_sqlite: Account) -> None:
    told = told_by_a_parent_of_one_that_returns(on_sqlite, rows=1)

    assert told == ["Completed", "ok", "1"]
    assert on_sqlite.history() == [(1, "completed")]


def test_a_child_that_returns_from_a_job_does_not_damage_its_parents_file(on_sqlite: Account) -> None:
    told = told_by_a_parent_of_one_that_returns(on_sqlite, rows=200_000)

    assert told == ["Completed", "ok", "200000"]
    assert on_sqlite.book.rows("pragma integrity_check") == [("ok",)]


# -- in an event loop -----------------------------------------------------------------------------------------------------

AWAITED = (
    BEGINNING.split("def in_a_child")[0]
    + """
import asyncio
import duly.aio

units = "pg_backend_pid()" if "://" in path else "10"
awaited = duly.aio.postgres(path) if "://" in path else duly.aio.sqlite(path)

@awaited.job("credit", duly.daily("UTC"), catch_up=duly.EACH, overlap=True)
async def credit(run):
    tx = await run.tx
    await tx.execute(f"insert into credited (day, units) values ('{run.label}', {units})")

def tell(*days):
    async def work():
        return [type(await asyncio.wait_for(credit.run(f"2026-10-0{day}"), 60)).__name__ for day in days]

    os.write(1, (" ".join(asyncio.run(work())) + "\\n").encode())  # in one piece, beside the others'

tell(1)
children = []
for days in ((1, 2, 1), (3, 1, 4)):
    if (child := os.fork()) == 0:
        tell(*days)
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
tell(5, 2)
print(codes)
asyncio.run(awaited.close())
"""
)


def test_in_an_event_loop_too_a_child_has_connections_of_its_own(account: Account) -> None:
    """What one reads of its parent's would be the answer to another's question: a window that looks complete, and is not."""
    told = account.worker(AWAITED).ends().splitlines()

    assert sorted(told[1:3]) == ["AlreadyCompleted Completed AlreadyCompleted", "Completed AlreadyCompleted Completed"]
    assert [told[0], *told[3:]] == ["Completed", "Completed AlreadyCompleted", "[0, 0]"]
    assert account.days == account.completed() == [f"2026-10-0{day}" for day in (1, 2, 3, 4, 5)]
    assert len(account.book.rows("select distinct owner from duly_attempt")) == 3
    if isinstance(account.book, PostgresBook):
        assert len(account.book.rows("select distinct units from credited")) == 3, "three processes of the server's"
