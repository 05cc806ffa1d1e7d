"""What the README shows is what happens: its programs run, its line of cron runs, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from duly.cli import codes

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a text in a language."""
    return [body for found, body in FENCE.findall(text) if found == language]


def programs() -> dict[str, str]:
    """The Python of each section: its blocks are one program."""
    _, *sections = re.split(r"^## ", README, flags=re.MULTILINE)
    found = {section.partition("\n")[0]: "\n".join(blocks(section, "python")) for section in sections}
    return {title: program for title, program in found.items() if program}


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment where `duly` is this one, and no ledger is named."""
    (tmp_path / "bin").mkdir()
    duly = tmp_path / "bin" / "duly"
    duly.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    duly.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    return {**kept, "PATH": f"{duly.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.parametrize("title", programs())
def test_the_programs_run(title: str, tmp_path: Path, shell: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", programs()[title]], cwd=tmp_path, env=shell, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_library_does_each_thing_once(tmp_path: Path, shell: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-c", programs()["From Python, in three forms"]], cwd=tmp_path, env=shell, check=True
    )

    connection = sqlite3.connect(tmp_path / "jobs.db")
    facts = "select (select units from balance), (select count(*) from invoice), (select count(*) from rate)"
    assert connection.execute(facts).fetchone() == (20, 1, 1)
    connection.close()


def test_the_line_of_cron_runs(tmp_path: Path, shell: dict[str, str]) -> None:
    (block,) = blocks(README, "crontab")
    ledger, line = block.splitlines()
    command = line.split(maxsplit=5)[5]
    closed = tmp_path / "close.sh"
    closed.write_text('#!/bin/sh\necho "$@" >> closed\n', encoding="utf-8")
    closed.chmod(0o755)
    assert ledger.startswith("DULY_LEDGER=sqlite:////")

    for _ in range(2):
        here = {**shell, "DULY_LEDGER": f"sqlite:///{tmp_path}/ledger.db"}
        said = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=here, capture_output=True, text=True, check=True)
        assert said.stdout + said.stderr == ""

    assert re.fullmatch(r"--day \d{4}-\d\d-\d\d\n", (tmp_path / "closed").read_text(encoding="utf-8"))


def test_the_backfill_runs(tmp_path: Path, shell: dict[str, str]) -> None:
    (section,) = re.findall(r"^## Past periods\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    (block,) = blocks(section, "sh")
    closed = tmp_path / "close.sh"
    closed.write_text('#!/bin/sh\necho "$@" >> closed\n', encoding="utf-8")
    closed.chmod(0o755)
    here = {**shell, "DULY_LEDGER": f"sqlite:///{tmp_path}/ledger.db"}
    first = ["sh", "-c", "duly exec close-day --period daily --zone Europe/Paris -- true"]
    subprocess.run(first, cwd=tmp_path, env=here, check=True)

    said = subprocess.run(["sh", "-e", "-c", block], cwd=tmp_path, env=here, capture_output=True, text=True, check=True)

    assert "31 to be worked" in said.stdout
    assert said.stdout.endswith("31/31\n")
    days = [f"--day 2026-01-{day:02}" for day in range(1, 32)]
    assert (tmp_path / "closed").read_text(encoding="utf-8").splitlines() == days


def test_every_exit_code_of_exec_is_in_the_table() -> None:
    (table,) = re.findall(r"^\| code .*?\n\n", README, re.MULTILINE | re.DOTALL)
    told = {int(number) for row in table.split("\n|") for number in re.findall(r"\d+", row.strip("|").split("|")[0])}
    of_other_commands = {codes.UNAVAILABLE, codes.INTERRUPTED}

    known = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)}

    assert known - told == of_other_commands


def test_the_fragments_of_the_changelog_can_be_put_together() -> None:
    (recipe,) = blocks(_text("CONTRIBUTING.md"), "sh")

    said = subprocess.run(["sh", "-c", recipe], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert len(said.splitlines()) == len(list((ROOT / "changelog.d").glob("*.md")))
    assert said.startswith("- added: ")


def test_the_recipes_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for page in PAGES:
        for recipe in re.findall(r"(?:`|^\$ )make ([a-z]+)", _text(page), re.MULTILINE):
            assert re.search(rf"^{recipe}:", makefile, re.MULTILINE), (page, recipe)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_names_of_files_lead_somewhere(page: str) -> None:
    text = _text(page)

    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    names = re.findall(r"`((?:src|tests|docs|bench|examples|changelog\.d|\.ci)/[a-z0-9_./-]+)`", text)

    assert [place for place in links + names if not (ROOT / place).exists()] == []


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
