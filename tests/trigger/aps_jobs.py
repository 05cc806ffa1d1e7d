"""Functions that an APScheduler calls, where another process can import them."""

from __future__ import annotations

import os
import sqlite3

import duly
from duly.trigger.apscheduler import read
from duly.trigger.fire import fire

PATH = "DULY_TEST_APS"


def close() -> str:
    """The window of the time for which it is called, on the ledger that the environment names."""
    ledger = duly.sqlite(os.environ[PATH])

    @ledger.job("close", duly.cron("30 2 * * *", zone="Europe/Berlin", gap="shift_forward"), catch_up=duly.EACH)
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("create table if not exists effect (key text, pid integer)")
        run.tx.execute("insert into effect values (?, ?)", (str(run.key), os.getpid()))

    try:
        return type(fire(effect, read())).__name__
    finally:
        ledger.close()
