"""A real Airflow, 2 or 3, with its scheduler: scheduled, manual and backfill runs, tasks that are tried again, on two nights.

    python -m campaigns.airflow /path/to/an/airflow/bin/python [KEEP]

Airflow is in an environment of its own, which `pip install 'apache-airflow>=2.10'` makes; duly is lent to it. What its commands
were told is printed, one environment for each: `tests/trigger/test_airflow.py` has them. KEEP is a folder that is left behind.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

from tests.docs.test_readme import ROOT, blocks
from tests.exec.stage import SOURCE, environment
from tests.story import duly

DAYS = [f"days:2026-10-{day}[Europe/Berlin]" for day in (24, 25, 26)]
FIRES = [f"fires:2026-03-{day}T02:30:00[Europe/Berlin]" for day in (28, 29, 30)]
NAMES = ("days", "fires", "hand")
PATIENCE = 1200.0  # Airflow 2 on SQLite begins one task after the other


class Airflow:
    """One installation, its home, and the processes that it is made of."""

    def __init__(self, python: str, home: Path, port: int) -> None:
        self._bin = Path(python).parent
        (home / "dags").mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "airflow_dags.py", home / "dags")
        self._home = home
        settings = {
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_FOLDER": str(home / "dags"),
            "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "CORE__PARALLELISM": "2",
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",  # by itself it gives up after 5 s
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "SCHEDULER__MIN_FILE_PROCESS_INTERVAL": "30",
        }
        self._environ = {
            **environment(AIRFLOW_HOME=str(home), DULY_CAMPAIGN=str(home), PYTHONWARNINGS="ignore"),
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": SOURCE,
        }
        self.version = self.call("version").split(".")[0].splitlines()[-1]

    def call(self, *words: str) -> str:
        ended = subprocess.run(
            [self._bin / "airflow", *words], env=self._environ, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"airflow {' '.join(words)}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout.strip()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self._home / f"{words[0]}.log").open("wb") as log:
            command = [str(self._bin / "airflow"), *words]
            return subprocess.Popen(command, env=self._environ, stdout=log, stderr=log, start_new_session=True)

    def states(self, dag: str) -> dict[str, str]:
        """The run's id and its state."""
        with sqlite3.connect(f"file:{self._home}/airflow.db?mode=ro", uri=True) as connection:
            return dict(connection.execute("select run_id, state from dag_run where dag_id = ?", (dag,)))

    def wait(self, dag: str, prefix: str, count: int) -> None:
        """Until so many runs whose id begins so have succeeded."""
        deadline = monotonic() + PATIENCE
        while True:
            states = self.states(dag)
            if [state for run, state in states.items() if run.startswith(prefix)] == ["success"] * count:
                return
            assert "failed" not in states.values(), states
            assert monotonic() < deadline, states
            sleep(0.5)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here, and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        pass


def tell(airflow: Airflow, home: Path) -> None:
    airflow.call("db", "migrate")
    with ExitStack() as running:
        services = [["scheduler"]] if airflow.version == "2" else [["api-server"], ["dag-processor"], ["scheduler"]]
        for service in services:
            running.callback(end, airflow.start(*service))
        airflow.wait("days", "scheduled__", 3)
        airflow.wait("fires", "scheduled__", 3)
        airflow.wait("hand", "scheduled__", 1)
        airflow.call("dags", "trigger", "hand")
        airflow.wait("hand", "manual__", 1)
        if airflow.version == "2":
            airflow.call("dags", "backfill", "hand", "-s", "2026-10-23T12:00", "-e", "2026-10-24T23:00", "--yes")
        else:
            airflow.call(
                *("backfill", "create", "--dag-id", "hand", "--from-date", "2026-10-24T00:00:00+02:00"),
                *("--to-date", "2026-10-25T00:00:00+02:00", "--max-active-runs", "1"),
            )
        airflow.wait("hand", "backfill__", 2)
    for path in sorted(home.glob("told-*.env"), key=lambda path: path.stat().st_mtime):
        print(path.name.split("-")[1], *sorted(path.read_text().splitlines()), sep="\n    ")
    page(airflow, home / "dags")
    look(home)


def page(airflow: Airflow, dags: Path) -> None:
    """The DAGs of the page about Airflow are read without an error. They stay paused."""
    program = "\n".join(blocks((ROOT / "docs" / "airflow.md").read_text(encoding="utf-8"), "python"))
    if airflow.version == "2":
        program = program.replace("airflow.providers.standard.operators", "airflow.operators")
    (dags / "page.py").write_text(program.replace("/var/lib/duly", str(dags)), encoding="utf-8")
    said = airflow.call(
        "dags", "list-import-errors", "--output", "plain", *(["--local"] if airflow.version == "3" else [])
    )
    assert "page.py" not in said, said


def look(home: Path) -> None:
    """Each window once, in a shell and in Python, and of what a person started none."""
    with sqlite3.connect(home / "python.db") as connection:
        in_python = [key for (key,) in connection.execute("select key from effect")]
    wrapped = [line for name in NAMES for line in (home / f"{name}.effects").read_text().splitlines()]
    for effects in (wrapped, in_python):
        assert len(effects) == len(set(effects)), effects
        assert sorted(key for key in effects if not key.startswith("hand:")) == sorted([*DAYS, *FIRES]), effects
        by_hand = [key for key in effects if key.startswith("hand:")]
        assert len([key for key in by_hand if key.startswith("hand:adhoc-hand-manual__")]) == 1, by_hand
        assert {f"hand:2026-10-{day}[Europe/Berlin]" for day in (24, 25)} < set(by_hand), by_hand
        assert len(by_hand) == 4, by_hand  # the last one is the newest day, which its schedule made
    print(duly("runs", "--ledger", f"sqlite:///{home}/exec.db").out)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    with ExitStack() as stack:
        keep = Path(sys.argv[2]) if len(sys.argv) > 2 else None
        home = (keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))).absolute()
        tell(Airflow(sys.argv[1], home, 18080 + os.getpid() % 1000), home)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
