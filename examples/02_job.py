"""A job: its first attempt fails before the commit, its second completes, a third finds it done.

What the failed attempt wrote is gone with its transaction; that it was tried is on record.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import duly
from duly.testing.clock import HandClock


def main() -> None:
    """Export one day's invoices, once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        clock = HandClock(str(path), at="2026-09-14T04:00:00Z")  # so that it is this morning whenever you try it
        ledger = duly.sqlite(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("create table export (day text not null)")
        troubles = [ConnectionError("the file server is down")]

        @ledger.job("invoice-export", duly.daily("Europe/Berlin"), catch_up=duly.EACH)
        def export(run: duly.Run[sqlite3.Connection]) -> None:
            run.tx.execute("insert into export values (?)", (str(run.date),))
            if troubles:
                raise troubles.pop()

        try:
            export.run("2026-09-13")
        except ConnectionError as error:
            print(f"first: {error} ({error.__notes__[0]})")

        clock.advance("10m")
        second = export.run("2026-09-13")
        print(f"second: {second}")
        assert second == duly.Completed("invoice-export:2026-09-13[Europe/Berlin]", 2)

        third = export.run("2026-09-13")
        print(f"third: {third}")
        assert isinstance(third, duly.AlreadyCompleted)

        with closing(sqlite3.connect(path)) as connection:
            exports = connection.execute("select day from export").fetchall()
            attempts = connection.execute(
                "select number, outcome from duly_attempt_readable order by number"
            ).fetchall()
        print(f"exports: {exports}, attempts: {attempts}")
        assert exports == [("2026-09-13",)]
        assert attempts == [(1, "failed"), (2, "completed")]
        ledger.close()


if __name__ == "__main__":
    main()
