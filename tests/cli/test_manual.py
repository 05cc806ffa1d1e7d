"""The manual page: made from the parsers, up to date, and without a complaint of those who print it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from duly.cli.manual import manual
from duly.cli.tree import tree
from tests.docs.test_readme import ROOT

PAGE = ROOT / "share" / "man" / "man1" / "duly.1"


def test_what_is_shipped_is_what_the_parsers_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == manual(), "`make share` makes it anew"


@pytest.mark.parametrize(
    "words", [["mandoc", "-T", "lint", "-W", "warning"], ["man", "--warnings", "-l"]], ids=lambda words: words[0]
)
def test_whoever_prints_it_has_nothing_to_complain_of(words: list[str]) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")

    ended = subprocess.run([*words, str(PAGE)], capture_output=True, encoding="utf-8", check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert words[0] == "man" or ended.stdout == ""


def test_it_has_every_command_with_its_flags_in_order() -> None:
    sections = re.split(r"^\.Ss ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    told = [re.findall(r'"\\&([^"]+)"', section.partition("\n")[0]) for section in sections]

    assert told == [["duly", *node.path] for command in tree() for node in command.walk()]


def test_a_sentence_begins_a_line_and_no_line_is_a_request_by_chance() -> None:
    for line in manual().splitlines():
        assert not re.search(r"[a-z]{3}\. [A-Z]", line), line
        assert not line.startswith("'"), line
