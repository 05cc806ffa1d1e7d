"""Once: ten units a day, whatever calls it and however often.

The caller's own transaction carries the effect and its completion: both commit, or neither.
"""

import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import duly


def credit(path: Path, key: str, *, provider_is_down: bool = False) -> bool:
    """Add ten units for a key, unless that has been done."""
    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        if not duly.once(connection, key):
            return False
        connection.execute("update balance set units = units + 10")
        if provider_is_down:
            raise ConnectionError("the provider is down")
        return True


def balance(path: Path) -> tuple[int, int]:
    """Units, and how many days are complete."""
    with closing(sqlite3.connect(path)) as connection:
        (units,) = connection.execute("select units from balance").fetchone()
        (completed,) = connection.execute("select count(*) from duly_run where state = 'completed'").fetchone()
    return units, completed


def main() -> None:
    """Fail, race, replay, and go on with the next day."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.db"
        duly.sqlite(path).close()  # makes the ledger's tables, beside ours
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("create table balance (units integer not null)")
            connection.execute("insert into balance values (0)")

        try:
            credit(path, "daily-credit:2026-09-13T00:00:00Z", provider_is_down=True)
        except ConnectionError as error:
            print(f"{error}: {balance(path)[0]} units, {balance(path)[1]} days complete")
        assert balance(path) == (0, 0)

        applied: list[bool] = []
        together = threading.Barrier(8)

        def one_of_eight() -> None:
            together.wait()
            applied.append(credit(path, "daily-credit:2026-09-13T00:00:00Z"))

        threads = [threading.Thread(target=one_of_eight) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"eight at once: {applied.count(True)} applied, {applied.count(False)} duplicates")
        assert (applied.count(True), applied.count(False)) == (1, 7)

        again = credit(path, "daily-credit:2026-09-13T00:00:00Z")
        print(f"a replay: {'applied' if again else 'a duplicate'}")
        assert not again

        next_day = credit(path, "daily-credit:2026-09-14T00:00:00Z")
        print(f"the next day: {'applied' if next_day else 'a duplicate'}")
        assert next_day

        units, completed = balance(path)
        print(f"{units} units, {completed} days complete")
        assert (units, completed) == (20, 2)


if __name__ == "__main__":
    main()
