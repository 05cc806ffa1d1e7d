"""Migrations: numbered SQL, one file a step and engine. A new ledger takes all of them."""

from __future__ import annotations

import os

from duly.store import SCHEMA

MIN_WRITER = 1  # the oldest release, by the schema it knows, that may write a ledger made by this one


def script(name: str) -> str:
    """The text of a migration in this folder."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as f:
        return f.read()


def new_facts(clock: str) -> dict[str, str]:
    """The facts of a ledger that is being made. `clock`: `system`, or `hand` for one that a test sets."""
    ledger_id = os.urandom(16).hex()
    return {
        "schema": str(SCHEMA),
        "min_writer": str(MIN_WRITER),
        "ledger_id": ledger_id,
        "namespace": ledger_id,
        "clock": clock,
    }
