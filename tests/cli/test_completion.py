"""What a shell completes: verbs, flags and their words from the parsers, names from the ledger, in shells that really run."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from duly.cli.completion_scripts import SCRIPTS
from duly.cli.tree import tree
from duly.schedule.spec import daily
from tests.docs.test_readme import ROOT
from tests.story import SOURCE, Story

PATIENCE = 60.0  # seconds, on a busy machine
TRAP = "$(touch pwned)"  # nobody's tenant is called so, but for one who wants to see what happens
CHECKED_IN = {
    "bash": "share/bash-completion/completions/duly",
    "zsh": "share/zsh/site-functions/_duly",
    "fish": "share/fish/vendor_completions.d/duly.fish",
}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("UTC"))
    story.job("close-month", daily("UTC"))
    story.complete("close-day", scope="acme")
    story.complete("close-month", scope=TRAP)
    return story


@pytest.fixture
def environ(story: Story, tmp_path: Path) -> dict[str, str]:
    """A `duly` to be found, and the scripts beside it."""
    command = tmp_path / "bin" / "duly"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    for shell, make in SCRIPTS.items():
        (tmp_path / f"duly.{shell}").write_text(make(), encoding="utf-8")
    (tmp_path / "november.jsonl").write_text("")
    return {
        "PATH": f"{command.parent}:/usr/bin:/bin",
        "PYTHONPATH": SOURCE,
        "PYTHONUTF8": "1",
        "DULY_LEDGER": story.path,
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


# -- what is offered ----------------------------------------------------------------------------------------------------

OFFERED = {
    "duly sta": {"status"},
    "duly jobs sc": {"scopes", "schema"},
    "duly jobs scopes a": {"add"},
    "duly retry cl": {"close-day", "close-month"},
    "duly status --scope ac": {"acme"},
    "duly retry close-day yes": {"yesterday"},
    "duly status --format k": {"keys"},
    "duly status --format keys clo": {"close-day", "close-month"},
    "duly status --gr": {"--grid"},
    "duly exec close-day --per": {"--period"},
    "duly exec close-day --period mo": {"monthly"},
    "duly exec close-day --effect ext": {"external"},
    "duly exec close-day --zone Europe/Berl": {"Europe/Berlin"},
    "duly runs ver": {"verify", "verify-export"},
    "duly runs verify-export -o nov": {"november.jsonl"},
    "duly nothing-like-this ": set(),
}


def bash(lines: list[str], environ: dict[str, str], folder: Path) -> list[set[str]]:
    program = """
source duly.bash
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _duly duly
    (IFS='|'; printf '%s\\n' "${COMPREPLY[*]}")
done
"""
    said = ran(["bash", "--norc", "-c", program], lines, environ, folder)
    assert said.stderr == ""
    return [set(filter(None, line.split("|"))) for line in said.stdout.splitlines()]


def fish(lines: list[str], environ: dict[str, str], folder: Path) -> list[set[str]]:
    program = "source duly.fish; while read -l line; complete -C $line | string replace -r '\\t.*' ''; echo .; end"
    said = ran(["fish", "--no-config", "-c", program], lines, environ, folder)
    assert said.stderr == ""
    return [set(part.split("\n")) - {""} for part in said.stdout.split(".\n")[:-1]]


def ran(words: list[str], lines: list[str], environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    typed = "".join(f"{line}\n" for line in lines)
    return subprocess.run(
        words,
        input=typed,
        cwd=folder,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("offered", [bash, fish])
def test_words_are_offered_where_they_may_stand(
    offered: Callable[..., list[set[str]]], environ: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which(offered.__name__) is None:
        pytest.skip(f"{offered.__name__} is not installed")

    found = offered(list(OFFERED), environ, tmp_path)

    assert dict(zip(OFFERED, found, strict=True)) == OFFERED


def test_a_command_after_two_dashes_is_one_of_the_shell(environ: dict[str, str], tmp_path: Path) -> None:
    (first, then) = bash(["duly exec close-day -- dul", "duly exec close-day -- cat nov"], environ, tmp_path)

    assert "duly" in first
    assert then == {"november.jsonl"}


# -- at a prompt --------------------------------------------------------------------------------------------------------

AT_PROMPT = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "set -o emacs; source duly.bash"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "bindkey -e; autoload -Uz compinit && compinit -u -D; zstyle ':completion:*' insert-tab false; source duly.zsh",
    ),
}
TYPED = {
    "duly stat\t": "duly status",
    "duly jobs sco\tlis\t": "duly jobs scopes list",
    "duly retry close-d\t": "duly retry close-day",
    "duly check --nag\t": "duly check --nagios",
}


@pytest.mark.parametrize("shell", AT_PROMPT)
def test_at_a_prompt_a_tab_completes_and_a_name_is_never_run(
    shell: str, environ: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    words, setup = AT_PROMPT[shell]
    # What was completed is printed: the line is given to a command that is put before it.
    keys = "".join(f"{typed}\x01printf '<%s>' \x05\n" for typed in TYPED)

    screen = at_prompt(words, f"{setup}; echo re''ady\n", keys, environ, tmp_path)

    for expected in TYPED.values():
        assert "".join(f"<{word}>" for word in expected.split()) in screen, screen
    assert not (tmp_path / "pwned").exists()


def at_prompt(words: list[str], setup: str, keys: str, environ: dict[str, str], folder: Path) -> str:
    mine, its = pty.openpty()
    process = subprocess.Popen(
        words, cwd=folder, env=environ, stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    try:
        os.write(mine, setup.encode())
        seen = until(mine, "ready\r\n")
        os.write(mine, f"{keys}echo e''nd\n".encode())
        return seen + until(mine, "end\r\n")
    finally:
        process.kill()
        process.wait()
        os.close(mine)


def until(descriptor: int, text: str) -> str:
    """What is on the screen when that is there."""
    seen, deadline = b"", monotonic() + PATIENCE
    while text.encode() not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - monotonic()))
        assert ready, f"no {text!r} in {seen!r}"
        seen += os.read(descriptor, 65536)
    return seen.decode(errors="replace")


def test_the_name_of_a_tenant_is_quoted_and_not_expanded(environ: dict[str, str], tmp_path: Path) -> None:
    (offered,) = bash(["duly status --scope $"], environ, tmp_path)

    assert offered == {"\\$\\(touch\\ pwned\\)"}
    assert not (tmp_path / "pwned").exists()


# -- where names come from, and what is shipped -------------------------------------------------------------------------


def test_names_come_from_the_ledger_and_a_ledger_that_is_not_there_has_none(story: Story, tmp_path: Path) -> None:
    assert story.duly("completion", "--names", "jobs").out == "close-day\nclose-month\n"
    assert story.duly("completion", "--names", "scopes").out == f"{TRAP}\nacme\n"
    nowhere = story.duly("completion", "--names", "jobs", "--ledger", str(tmp_path / "none.db"))
    assert (nowhere.code, nowhere.out, nowhere.talk) == (0, "", "")
    assert not (tmp_path / "none.db").exists()


def test_every_verb_and_flag_of_the_parsers_is_in_each_script() -> None:
    nodes = [node for command in tree() for node in command.walk()]
    assert {"status", "exec", "jobs scopes add", "db prune", "backfill start"} <= {node.name for node in nodes}

    for make in SCRIPTS.values():
        script = make()
        for node in nodes:
            assert node.path[-1] in script
            assert all(max(flag.names, key=len) in script for flag in node.flags), node.name


@pytest.mark.parametrize("shell", CHECKED_IN)
def test_what_is_shipped_is_what_the_parsers_say(shell: str) -> None:
    assert (ROOT / CHECKED_IN[shell]).read_text(encoding="utf-8") == SCRIPTS[shell](), "`make share` makes them anew"
