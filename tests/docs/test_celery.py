"""The page about Celery: its programs are run as they stand, the last one by a real worker and a real daemon."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import duly
from tests.docs.test_readme import ROOT, blocks
from tests.exec.stage import PATIENCE, until
from tests.on_celery.brokers import Broker, redis

PAGE = (ROOT / "docs" / "celery.md").read_text(encoding="utf-8")
POKE, MEANT, CARRIED = blocks(PAGE, "python")
(CONSOLE,) = blocks(PAGE, "console")
(SHELL,) = blocks(PAGE, "sh")
URL = "redis://127.0.0.1:6379/0"


class Shop:
    """A folder with the page's program in it, and the table that it writes to."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder = folder
        assert URL in program
        (folder / "shop.py").write_text(program, encoding="utf-8")
        duly.sqlite(folder / "shop.db").close()
        with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
            connection.execute("create table credited (hour text)")
        source = str(Path(duly.__file__).parents[1])
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environ = {
            **os.environ,
            "PYTHONPATH": f"{folder}:{source}",
            "PATH": path,
            "DULY_LEDGER": f"sqlite:///{folder / 'shop.db'}",
            "C_FORCE_ROOT": "1",
        }

    def run(self, program: str) -> None:
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, env=self.environ, check=True)

    def start(self, line: str) -> subprocess.Popen[Any]:
        """What a person types, by this Python."""
        _, *words = shlex.split(line, comments=True)
        name, *rest = words
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", name, *rest], cwd=self.folder, env=self.environ, stdout=log, stderr=log
            )

    def credited(self) -> list[str]:
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            return [hour for (hour,) in connection.execute("select hour from credited")]


def test_a_poke_works_what_is_owed(tmp_path: Path) -> None:
    shop = Shop(tmp_path, POKE)

    shop.run("import shop\nfor _ in range(2): shop.poke.apply().get()")

    assert len(shop.credited()) == 1


def test_a_message_of_beats_works_its_window(tmp_path: Path) -> None:
    shop = Shop(tmp_path, MEANT)

    shop.run(
        "import shop\n"
        "from celery.utils.imports import symbol_by_name\n"
        "symbol_by_name(shop.app.conf.beat_scheduler)\n"
        "header = {'at': '2026-10-05T12:00:00Z', 'zone': 'Europe/Berlin', 'schedule': 'crontab'}\n"
        "for _ in range(2): print(shop.credit_task.apply(headers={'duly_beat': header}).get())\n"
    )

    assert shop.credited() == ["2026-10-05T13"]


@pytest.fixture
def broker() -> Iterator[Broker]:
    yield from redis()


def test_the_ledger_decides_and_celery_carries(tmp_path: Path, broker: Broker) -> None:
    own = f"app.conf.task_default_queue = {broker.name!r}\napp.conf.worker_enable_remote_control = False\n"
    program = CARRIED.replace("app.conf.worker_prefetch", f"{own}app.conf.worker_prefetch")
    shop = Shop(tmp_path, program)
    (tmp_path / "shop.py").write_text(program.replace(URL, broker.url), encoding="utf-8")
    typed = [line for line in CONSOLE.splitlines() if line.startswith("$ ")]

    began = [shop.start(line) for line in typed]
    try:
        until(lambda: len(shop.credited()) == 1, "the newest hour is done", seconds=PATIENCE)
        for line in SHELL.splitlines():
            subprocess.run(
                [sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, env=shop.environ, check=True, timeout=PATIENCE
            )
    finally:
        for process in reversed(began):
            process.terminate()
            process.wait(PATIENCE)
