"""History: four days of one job that the schema tells apart.

Never attempted, failed before its commit, completed, and: nobody knows, for the provider never answered.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import duly
from duly.testing.clock import HandClock

HISTORY = """
select r.job || ':' || date(r.nominal) as day, r.state, a.number, a.outcome, a.started,
       (a.ended_at - a.started_at) / 1000000 as seconds, a.error
  from duly_run_readable r
  left join duly_attempt_readable a
    on a.series = r.series and a.nominal = r.stored_nominal and a.revision = r.revision
 order by r.nominal, a.number
"""


def main() -> None:
    """Make the four days, and read them with SQL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        clock = HandClock(
            str(path), at="2026-09-11T04:00:00Z"
        )  # a clock for trying things: it moves when it is told to
        ledger = duly.sqlite(path)

        @ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external")
        def charge(run: duly.Run[sqlite3.Connection]) -> None:
            clock.advance("90s")
            if run.label == "2026-09-12":
                raise ConnectionError("the provider is down")

        charge.catch_up()  # the tenth

        clock.set("2026-09-13T04:00:00Z")
        if claim := ledger.take("charge", "2026-09-11"):
            with claim:
                claim.doubt("the provider did not answer")
        try:
            charge.run("2026-09-12")
        except ConnectionError as error:
            print(f"failed: {error}")

        clock.set("2026-09-14T04:00:00Z")  # the thirteenth is owed now, and nobody comes to work it

        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(HISTORY).fetchall()
        for row in rows:
            print(*row)
        told = {day: (state, outcome, seconds) for day, state, _, outcome, _, seconds, _ in rows}
        assert told == {
            "charge:2026-09-10": ("completed", "completed", 90),
            "charge:2026-09-11": ("unknown", "unknown", None),
            "charge:2026-09-12": ("failed", "failed", 90),
        }  # the thirteenth was never attempted: it has no row, and `duly status` says that it is missing
        assert not any("the provider is down" in str(row) for row in rows)  # an exception's message may hold secrets

        try:
            charge.run("2026-09-11")
        except duly.OutcomeUnknown as refusal:
            print(f"not again: {refusal}")
        else:
            raise AssertionError("an unknown outcome is never retried")
        ledger.close()


if __name__ == "__main__":
    main()
