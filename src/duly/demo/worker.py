"""A worker of the demo: `python -m duly.demo.worker LEDGER HOW DAY`. It credits an account ten units for a day.

It says `ready`, waits for a line, works, and says how that ended. HOW is `well`, `badly` (it raises after its update),
`stuck` (after its update it says so, and waits to be killed) or `owed` (whatever is owed, as cron would; DAY is ignored).
"""

from __future__ import annotations

import sqlite3
import sys

import duly


class FeedBroken(Exception):
    """What a worker meets after it has updated the account, and before anything is committed."""


def main(path: str, how: str, day: str) -> None:
    """Work as the command line says."""
    ledger = duly.sqlite(path)

    # A lease of a second, so that nobody who watches has to wait a minute for what a dead worker held.
    @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, lease="1s")
    def credit(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("update account set units = units + 10 where name = 'acme'")
        if how == "badly":
            raise FeedBroken
        if how == "stuck":
            _say("stuck")
            sys.stdin.readline()

    _say("ready")
    if not sys.stdin.readline():
        return  # whoever told the story is gone
    if how == "owed":
        _say(" ".join(["Done", *(done.key for done in credit.catch_up())]))
        return
    try:
        _say(type(credit.run(day, wait=20)).__name__)
    except FeedBroken:
        _say("FeedBroken")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
