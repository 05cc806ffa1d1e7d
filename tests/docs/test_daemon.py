"""The page about the daemon: the module of its last section is worked as it stands."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duly

PAGE = (Path(__file__).parents[2] / "docs" / "daemon.md").read_text(encoding="utf-8")


def test_the_job_whose_runs_share_a_commit(tmp_path: Path) -> None:
    (program,) = [part.partition("```")[0] for part in PAGE.split("```python\n")[1:]]
    duly.sqlite(tmp_path / "shop.db").close()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("create table balance (units integer)")
        connection.execute("insert into balance values (0)")

    subprocess.run(
        [sys.executable, "-c", f"{program}\nassert len(credit.catch_up()) == 1\nledger.close()"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(duly.__file__).parents[1])},
        check=True,
    )

    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("select units from balance").fetchone() == (10,)
