"""A wrapper starts fast: what is imported on the way of a duplicate, and of a run, is a short list without surprises."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.exec.stage import DAILY, Stage, environment

# Each would cost a noticeable part of a start.
HEAVY = {
    *("argparse", "subprocess", "logging", "dataclasses", "asyncio", "threading", "pathlib", "tomllib", "typing"),
    *("re", "enum", "json", "random", "hashlib", "traceback", "tempfile", "sqlite3", "signal", "shlex", "contextlib"),
    *("importlib.metadata", "inspect", "collections", "functools", "uuid", "socket", "ssl", "difflib"),
}


def imported(stage: Stage, *words: str, **environ: str) -> set[str]:
    """The modules that `duly exec` imported, beyond those of an interpreter that does nothing (-X importtime)."""

    def modules(*argv: str) -> set[str]:
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", *argv],
            env=environment(DULY_LEDGER=stage.path, **environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return {found[1] for found in re.finditer(r"^import time:.*\| +(\S+)$", ended.stderr, re.MULTILINE)}

    return modules("-m", "duly", *words) - modules("-c", "import runpy")


def test_a_duplicate_imports_nothing_heavy(stage: Stage) -> None:
    stage.exec("close", *DAILY)

    found = imported(stage, "exec", "close", *DAILY, "--", "true")

    assert "duly.cli.exec" in found
    assert found & HEAVY == set()
    assert not {name for name in found if name.startswith("duly.work.configuration")}


def test_a_file_costs_a_parser_of_toml_and_nothing_else_that_is_heavy(stage: Stage) -> None:
    stage.exec("close", *DAILY)
    stage.file("jobs.toml").write_text(
        '[jobs.close]\ncommand = ["true"]\nperiod = "daily"\nzone = "UTC"\nat = "06:00"\ncatch_up = "latest"\n'
    )

    found = imported(stage, "exec", "close", DULY_CONFIG=str(stage.file("jobs.toml")))

    parser = subprocess.run(
        [sys.executable, "-c", "import sys, tomllib; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert "tomllib" in found
    assert found & HEAVY <= set(parser.stdout.split())


def test_a_run_imports_nothing_heavy(stage: Stage) -> None:
    stage.exec("close", *DAILY)
    stage.clock.advance("1d")

    found = imported(stage, "exec", "close", *DAILY, "--", "true")

    assert stage.states()["2026-11-29"] == "completed"
    assert found & HEAVY == set()


def test_that_nobody_need_look_for_alerts_is_known_by_one_row(stage: Stage) -> None:
    """A look is `status`, a relay and JSON: what a poke spares in all minutes but one."""
    stage.file("jobs.toml").write_text('[alerts]\nevery = "1m"\n')
    known = {"DULY_CONFIG": str(stage.file("jobs.toml"))}
    stage.exec("close", *DAILY, environ=known)
    assert stage.rows("select recorded from duly_look") == [(1,)]

    found = imported(stage, "exec", "close", *DAILY, "--", "true", **known)

    assert "duly.ledger.looks" in found
    assert not {name for name in found if "alerts" in name or name.startswith(("duly.evidence", "duly.outbox"))}
    assert "json" not in found


def test_a_run_knows_nothing_of_backfills(stage: Stage) -> None:
    """Their claim is a page of its own; a run that one owes looks it up."""
    stage.exec("close", *DAILY)
    stage.clock.advance("1d")

    found = imported(stage, "exec", "close", *DAILY, "--", "true")

    assert {name for name in found if "backfill" in name} == {"duly.ledger.backfill_states"}


def test_the_first_run_of_a_job_imports_nothing_heavy(stage: Stage) -> None:
    found = imported(stage, "exec", "close", *DAILY, "--", "true")

    assert found & HEAVY == set()


def test_a_duplicate_does_not_load_what_only_a_claim_or_a_new_ledger_needs(stage: Stage) -> None:
    stage.exec("close", *DAILY)

    found = imported(stage, "exec", "close", "--", "true")

    assert not {
        name for name in found if "migrations" in name or name.startswith(("duly.evidence", "duly.store.owned"))
    }


WATCHED = """
import gc, sys
from duly.cli import main

opened, looked = [], []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "sqlite3.connect" else None)
gc.callbacks.append(lambda phase, facts: looked.append(phase))
code = main()
print("opened", len(opened), "looked", len(looked), "left aside", gc.get_freeze_count() > 10_000, file=sys.stderr)
sys.exit(code)
"""


def test_a_poke_opens_its_ledger_once_and_looks_for_no_garbage_in_what_it_imports(stage: Stage) -> None:
    stage.exec("close", *DAILY)

    ended = subprocess.run(
        [sys.executable, "-c", WATCHED, "exec", "close", *DAILY, "--", "true"],
        env=environment(DULY_LEDGER=stage.path),
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stderr.splitlines()[-1] == "opened 1 looked 0 left aside True"
