"""The page about imports: its commands run, in their order; what it shows of a drop-in is what is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duly
from tests.story import here

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return [part.partition("```")[0] for part in PAGE.split(f"```{kind}\n")[1:]]


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    command = tmp_path / "duly"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    home = {**kept, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    home["PYTHONPATH"] = os.pathsep.join([str(Path(duly.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    first, second = blocks("sh")

    said = subprocess.run(
        ["sh", "-e", "-c", first], cwd=tmp_path, env=home, capture_output=True, text=True, check=False
    )

    assert said.returncode == 0, said.stderr
    assert "shop.crontab:5: left as it is: @reboot is no schedule" in said.stderr
    wrapped = (tmp_path / "shop.crontab").read_text(encoding="utf-8").splitlines()
    assert " -- /bin/sh -c 'cd /srv/shop && ./export.sh" in wrapped[1]
    assert wrapped[4] == "@reboot      /srv/shop/bin/worker"
    assert "mail-report   " in said.stdout

    subprocess.run(["sh", "-e", "-c", second], cwd=tmp_path, env=home, check=True)

    assert (tmp_path / "shop.crontab").read_text(encoding="utf-8") == first.partition("<<'END'\n")[2].partition(
        "END\n"
    )[0]


def test_the_drop_in_is_the_one_that_is_written(tmp_path: Path) -> None:
    (shown,) = blocks("ini")
    (tmp_path / "backup.timer").write_text("[Timer]\nOnCalendar=daily\n", encoding="utf-8")
    (tmp_path / "backup.service").write_text("[Service]\nExecStart=/usr/local/bin/backup --all\n", encoding="utf-8")
    words = ["import", "systemd", f"{tmp_path}/backup.timer", "--root", str(tmp_path), "--zone", "UTC", "--write"]

    here("", *words, "--duly", "/usr/local/bin/duly")

    written = (tmp_path / "backup.service.d" / "duly.conf").read_text(encoding="utf-8")
    assert written.partition("\n")[2] == shown
