"""The pages about other schedulers: what they show ships, what they type runs, and their links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_readme import ROOT, blocks
from tests.share.test_crontabs import Host
from tests.share.test_units import verified

DOCS = ROOT / "docs"
PAGES = {
    name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("schedulers", "cron", "systemd", "kubernetes")
}
SHOWN = {
    "systemd": (
        "systemd",
        "ini",
        ["duly@.service", "duly@.timer", "duly.conf", "duly-condition.conf", "duly-daemon.service"],
    ),
    "kubernetes": ("kubernetes", "yaml", ["cronjob.yaml", "cronjob-trigger.yaml"]),
}
POKE = "duly exec close-day -q --period daily --zone Europe/Paris --at 02:30 -- /srv/billing/close.sh --day {date}"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def of_section(page: str, title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGES[page], re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("page", SHOWN)
def test_what_a_page_shows_is_what_ships(page: str) -> None:
    folder, language, names = SHOWN[page]

    shown = blocks(PAGES[page], language)

    for name in names:
        assert (ROOT / "share" / folder / name).read_text(encoding="utf-8") in shown, name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = {link for link in re.findall(r"\]\(([^)#]+)", PAGES[page]) if "://" not in link}

    assert {link for link in links if not (DOCS / link).exists()} == set()


@pytest.mark.parametrize("page", PAGES)
def test_how_to_see_that_it_works_can_be_typed(page: str, host: Host) -> None:
    (block,) = blocks(of_section(page, "Does it work?"), "sh")
    assert host.call(POKE).returncode == 0

    said = host.call(f"set -e\n{block}")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "complete" in said.stdout


def test_the_lines_of_cron_are_pokes(host: Host) -> None:
    before, after, variables = blocks(PAGES["cron"], "crontab")
    command = after.split(maxsplit=5)[5].strip()
    assert before.split(maxsplit=5)[5].strip() in command
    assert command == POKE
    assert {line.partition("=")[0] for line in variables.splitlines()} == {"PATH", "MAILTO", "DULY_LEDGER"}

    said = [host.call(command) for _ in range(2)]

    assert [each.returncode for each in said] == [0, 0]
    assert said[1].stdout + said[1].stderr == ""
    assert len(host.done) == 1


def test_the_line_of_anacron_is_the_one_that_ships() -> None:
    (line,) = blocks(PAGES["cron"], "anacrontab")

    assert line in (ROOT / "share" / "cron" / "anacrontab").read_text(encoding="utf-8")


def test_a_failure_is_mailed_until_a_person_has_said_what_is_to_be_done(host: Host) -> None:
    (block,) = blocks(of_section("cron", "When it fails"), "sh")
    failing = POKE.replace("/srv/billing/close.sh", "false")
    assert host.call(failing).returncode == 1
    again = host.call(failing)
    assert (again.returncode, again.stderr.count("waits for a person")) == (79, 1)

    (day,) = re.findall(r"close-day (\d{4}-\d\d-\d\d): nothing was run", again.stderr)
    said = host.call("set -e\n" + block.replace("yesterday", day))  # which it is but for the hours until 02:30

    assert said.returncode == 0, said.stderr
    assert host.call(POKE).returncode == 0
    assert len(host.done) == 1


def test_a_job_that_went_back_is_not_missed(host: Host) -> None:
    (line,) = re.findall(r"`(duly jobs pause\s[^`]+)`", PAGES["schedulers"])
    host.call(POKE)

    said = host.call(re.sub(r"\s+", " ", line))

    assert said.returncode == 0, said.stderr


def test_the_job_of_the_units_is_one(host: Host) -> None:
    (table,) = blocks(PAGES["systemd"], "toml")
    (host.folder / "etc" / "duly.toml").write_text(table.replace("/srv/billing/", f"{host.folder}/bin/"))

    assert host.call("duly due close-day").returncode == 0
    assert host.call("duly exec close-day").returncode == 0
    assert len(host.done) == 1


def test_systemd_takes_the_drop_ins_that_the_page_shows(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here (Debian's package systemd): drop-ins of the page are not verified")
    shipped = {file.read_text(encoding="utf-8") for file in (ROOT / "share" / "systemd").iterdir()}
    own = [block for block in blocks(PAGES["systemd"], "ini") if block not in shipped]
    assert len(own) == 2
    for block in own:
        kind = "timer" if block.startswith("[Timer]") else "service"
        (tmp_path / "own.service").write_text("[Service]\nExecStart=/bin/false\n")
        (tmp_path / "own.timer").write_text("[Timer]\nOnCalendar=hourly\n")
        (tmp_path / f"own.{kind}.d").mkdir()
        text = block.replace("=duly ", "=/bin/true ").replace("User=shop", "User=root").replace("/srv/shop", "/")
        (tmp_path / f"own.{kind}.d" / "own.conf").write_text(text)

        assert verified(analyze, tmp_path, f"own.{kind}") == ""


def test_the_wheel_has_what_the_pages_copy_from() -> None:
    said = subprocess.run(
        ["grep", "-c", "share/duly/", ROOT / "pyproject.toml"], capture_output=True, text=True, check=True
    )

    assert int(said.stdout) == 3
