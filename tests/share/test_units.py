"""The units that ship are those that a systemd takes, and say what their page says. campaigns/units.py starts them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from duly import codes
from tests.docs.test_readme import ROOT

SHIPPED = ROOT / "share" / "systemd"
UNITS = {
    "duly@close-day.service": "duly@.service",
    "duly@close-day.timer": "duly@.timer",
    "duly-daemon.service": "duly-daemon.service",
}
DROP_INS = ("duly.conf", "duly-condition.conf", "duly-hardened.conf")


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not here (Debian's package systemd): what ships for systemd is not verified")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The units, with a program that is there in the place of duly: systemd looks for it where it looks for all programs."""
    for name, file in UNITS.items():
        (tmp_path / name).write_text(_with_a_program(SHIPPED / file))
    return tmp_path


def _with_a_program(file: Path) -> str:
    text, many = re.subn(r"^(Exec\w+)=duly ", r"\1=/bin/true ", file.read_text(), flags=re.MULTILINE)
    assert many == len(re.findall(r"^Exec\w+=.", file.read_text(), re.MULTILINE))
    return text


def verified(analyze: str, folder: Path, unit: str) -> str:
    """What systemd says of a unit; nothing, where all is well."""
    said = subprocess.run(
        [analyze, "verify", "--man=no", unit],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_LOG_LEVEL": "notice"},
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        return said.stderr or f"exit {said.returncode}"
    # Of other units of this machine, which it reads as well, it may have something to say.
    return "\n".join(line for line in said.stderr.splitlines() if str(folder) in line or line.startswith(unit))


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_each_unit(analyze: str, folder: Path, unit: str) -> None:
    assert verified(analyze, folder, unit) == ""


@pytest.mark.parametrize("drop_in", DROP_INS)
def test_systemd_takes_each_drop_in_for_a_service_that_was_there(analyze: str, folder: Path, drop_in: str) -> None:
    (folder / "backup.service").write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    (folder / "backup.service.d").mkdir()
    (folder / "backup.service.d" / "duly.conf").write_text(_with_a_program(SHIPPED / drop_in))

    assert verified(analyze, folder, "backup.service") == ""


def test_what_systemd_does_not_take_is_seen(analyze: str, folder: Path) -> None:
    misspelt = (folder / "duly@close-day.service").read_text().replace("OOMPolicy=", "OOMPolice=")
    (folder / "duly@close-day.service").write_text(misspelt)

    assert "OOMPolice" in verified(analyze, folder, "duly@close-day.service")


def test_each_time_of_a_timer_is_one(analyze: str) -> None:
    page = (ROOT / "docs" / "systemd.md").read_text() + (SHIPPED / "duly@.timer").read_text()
    times = [time for time in re.findall(r"^OnCalendar=(.+)$", page, re.MULTILINE) if time]

    said = subprocess.run([analyze, "calendar", *times], capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stderr
    assert said.stdout.count("Next elapse: ") == len(times) >= 2


@pytest.mark.parametrize("file", ["duly@.service", "duly.conf"])
def test_what_is_tried_again_and_what_wants_a_person_are_exec_s_codes(file: str) -> None:
    keys = dict(re.findall(r"^(\w+ExitStatus)=(.+)$", (SHIPPED / file).read_text(), re.MULTILINE))
    of_a_person = {codes.USAGE, codes.CONFIGURATION, codes.WAITS_FOR_A_PERSON, codes.UNKNOWN, codes.TAKEN_OVER}

    assert keys["SuccessExitStatus"] == keys["RestartForceExitStatus"] == str(codes.TRY_AGAIN)
    assert {int(code) for code in keys["RestartPreventExitStatus"].split()} == of_a_person


def test_an_instance_keeps_the_dashes_of_its_job() -> None:
    """%I would make close/day of close-day."""
    assert "%I" not in "".join(
        _keys(SHIPPED / name) for name in ("duly@.service", "duly@.timer", "duly-condition.conf")
    )


def _keys(file: Path) -> str:
    return "".join(line for line in file.read_text().splitlines(keepends=True) if not line.startswith("#"))
