"""The lines of cron that ship: each is called as cron calls it, and a second call of each does nothing and says nothing.

campaigns/cron.py has Debian's cron and anacron call such lines.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from duly.schedule.cron import parse_cron
from duly.testing.clock import HandClock
from tests.docs.test_readme import ROOT
from tests.exec.stage import SOURCE

SHIPPED = ROOT / "share" / "cron"
VARIABLE = re.compile(r"([A-Z_]+)=(.*)")


class Line:
    """A line of a crontab: when, as whom, and what cron hands to its shell."""

    def __init__(self, text: str, *, as_user: bool) -> None:
        *fields, self.command = text.split(maxsplit=5)
        self.when = " ".join(fields)
        self.user = ""
        if as_user:
            self.user, self.command = self.command.split(maxsplit=1)
        # crontab(5): a % that is not quoted ends the line, and begins what the command reads.
        assert not re.search(r"(?<!\\)%", self.command), text
        self.command = self.command.replace(r"\%", "%")


def lines(file: str) -> list[Line]:
    return [
        Line(text, as_user=file == "system")
        for text in (SHIPPED / file).read_text(encoding="utf-8").splitlines()
        if text and not text.startswith("#") and not VARIABLE.fullmatch(text)
    ]


def variables(file: str) -> dict[str, str]:
    found = (VARIABLE.fullmatch(text) for text in (SHIPPED / file).read_text(encoding="utf-8").splitlines())
    return {match[1]: match[2] for match in found if match}


class Host:
    """What cron's shell finds: the programs of the lines, and nothing of our environment. The clock of its ledger stands: else
    a line of every few minutes may owe another window at its second call.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        HandClock(str(folder / "ledger.db"), at="2026-11-28T09:07:00Z")
        (folder / "bin").mkdir()
        self._program("duly", f'PYTHONPATH="{SOURCE}" exec "{sys.executable}" -m duly "$@"')
        for name in ("close.sh", "import.sh", "invoices.sh", "report.sh", "rates", "backup"):
            self._program(name, f'echo "{name} $*" >> {folder}/done; echo "so much"')
        (folder / "etc").mkdir()
        (folder / "etc" / "duly.toml").write_text(
            f'[jobs.rates]\ncommand = ["{folder}/bin/rates"]\nevery = "5m"\ncatch_up = "latest"\n'
        )

    def _program(self, name: str, text: str) -> None:
        (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / "bin" / name).chmod(0o755)

    def call(self, command: str) -> subprocess.CompletedProcess[str]:
        """As cron does: a shell in the user's home, with a handful of variables."""
        environ = {
            "SHELL": "/bin/sh",
            "HOME": str(self.folder),
            "LOGNAME": "billing",
            "PATH": f"{self.folder}/bin:/usr/bin:/bin",
            "DULY_LEDGER": f"sqlite:///{self.folder}/ledger.db",
            "DULY_CONFIG": f"{self.folder}/etc/duly.toml",
        }
        command = command.replace("/srv/billing/", f"{self.folder}/bin/")
        return subprocess.run(
            ["/bin/sh", "-c", command], env=environ, cwd=self.folder, capture_output=True, text=True, check=False
        )

    @property
    def done(self) -> list[str]:
        file = self.folder / "done"
        return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("file", ["system", "user"])
def test_each_line_works_once_and_then_says_nothing(file: str, tmp_path: Path) -> None:
    host = Host(tmp_path)

    for line in lines(file):
        before = len(host.done)
        first = host.call(line.command)
        second = host.call(line.command)

        assert (first.returncode, second.returncode) == (0, 0), first.stderr
        assert second.stdout + second.stderr == ""  # so that cron has nothing to mail
        assert first.stderr == ""
        assert len(host.done) == before + 1, line.command
        assert ("--chronic" in line.command) == (first.stdout == "")


@pytest.mark.parametrize("file", ["system", "user"])
def test_each_time_is_one_of_cron_s(file: str) -> None:
    for line in lines(file):
        parse_cron(line.when)  # which raises where it is none


def test_a_line_of_the_system_has_a_user_and_all_have_one_ledger() -> None:
    assert {line.user for line in lines("system")} == {"billing"}
    assert variables("system").keys() == {"MAILTO", "PATH", "DULY_LEDGER"}
    assert variables("anacrontab").keys() >= {"PATH", "DULY_LEDGER"}


def test_the_line_of_anacron_is_a_poke(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (line,) = [text for text in (SHIPPED / "anacrontab").read_text().splitlines() if re.match(r"\d", text)]
    days, delay, name, command = line.split(maxsplit=3)

    codes = [host.call(command).returncode for _ in range(2)]

    assert codes == [0, 0]
    assert len(host.done) == 1
    assert days.isdigit()
    assert delay.isdigit()
    assert re.fullmatch(r"[A-Za-z0-9._-]+", name)  # anacron(8): a file of that name is its stamp
