"""`duly web`: a process that serves, says where, refuses to be open to all, and ends well."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duly.schedule.spec import daily
from duly.web.reading import THREADS
from tests.story import SOURCE, Story
from tests.web.conftest import Browser

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close", daily("UTC"))
    story.complete("close")
    return story


@contextmanager
def web(story: Story, *words: str, **environ: str) -> Iterator[tuple[Browser, subprocess.Popen[str], str]]:
    """A server that has said where it is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "duly", "web", "--port", "0", "--ledger", story.path, *words],
        env={**kept, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("duly: http://"), said + process.stderr.read()
        yield Browser(int(said.rstrip("/\n").rpartition(":")[2].partition("/")[0])), process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_says_where_and_ends_well(story: Story, number: signal.Signals) -> None:
    with web(story) as (browser, process, said):
        page = browser.get("/")
        process.send_signal(number)
        _, talk = process.communicate(timeout=30)

    assert said.startswith("duly: http://127.0.0.1:")
    assert "is complete" in page
    assert f"--ledger {story.path}" in page, "the lines to type name the ledger that was typed"
    assert process.returncode == 0
    assert talk.splitlines()[0].startswith("GET / 200 ")


def test_its_log_has_no_query_and_no_header(story: Story, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)

    with web(story, "--token-file", str(path)) as (browser, process, _):
        assert browser.ask(f"/?job={TOKEN}", Authorization=f"Bearer {TOKEN}").status == 404
        assert browser.ask("/", Authorization=f"Bearer {TOKEN}x").status == 401
        process.send_signal(signal.SIGTERM)
        _, talk = process.communicate(timeout=30)

    assert TOKEN not in talk
    assert "GET / 404" in talk
    assert "GET / 401" in talk


def test_a_token_may_stand_in_the_environment(story: Story) -> None:
    with web(story, DULY_WEB_TOKEN=TOKEN) as (browser, _, _):
        assert browser.ask("/").status == 401
        assert browser.ask("/", Authorization=f"Bearer {TOKEN}").status == 200


def test_a_ledger_that_is_made_while_it_serves_is_seen(story: Story, tmp_path: Path) -> None:
    """And one that was moved away is not shown from memory."""
    with web(story) as (browser, _, _):
        assert browser.ask("/").status == 200
        aside = tmp_path / "aside.db"
        story.store.close()
        os.rename(story.path, aside)
        gone = browser.ask("/")
        os.rename(aside, story.path)
        back = browser.ask("/")

    assert gone.status == 503
    assert "The ledger cannot be read" in gone.text
    assert "this page tells neither that all is well nor that anything is wrong" in gone.text
    assert "is complete" not in gone.text
    assert back.status == 200


def test_a_ledger_that_is_restored_while_it_serves_is_shown_as_it_is(story: Story, tmp_path: Path) -> None:
    story.store.close()
    shutil.copy(story.path, tmp_path / "backup.db")
    story.job("later", daily("UTC"))
    story.complete("later")
    story.store.close()
    with web(story) as (browser, _, _):
        before = browser.ask("/job/later")
        os.rename(tmp_path / "backup.db", story.path)
        after = [browser.ask("/job/later") for _ in range(2 * THREADS)]  # whichever of the threads looks

    assert before.status == 200
    assert {answer.status for answer in after} == {404}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "10.0.0.7"], "--host: on 10.0.0.7 anybody could look; say who may"),
        (["--host", "0.0.0.0"], "anybody could look"),
        (["--host", "0.0.0.0", "--token-file", "TOKEN"], "has no name of its own; say by which it is reached"),
        (["--token", TOKEN], "--token would show a secret to every process of this machine; give a file"),
        ([f"--token={TOKEN}"], "--token would show a secret"),
        (["--password", TOKEN], "--password would show a secret"),
        (["--token-file", TOKEN], "--token-file takes the path of a file, and what was given cannot be read"),
        (["--trust-header", "X-User"], "--trust-header and --trust-from go together"),
        (["--trust-header", "X User", "--trust-from", "10.0.0.0/8"], "is no name of a header"),
        (["--trust-header", "X-User", "--trust-from", "10.0.0.1/8"], "--trust-from: 10.0.0.1/8 has host bits set"),
        (["--root-path", "duly"], "--root-path: 'duly' is no path"),
        (["--port", "70000"], "'70000' is no port"),
        (["--basic-file", "TOKEN"], "--basic-file: line 1 is none that `duly web --password-for NAME` has made"),
    ],
)
def test_what_would_let_anybody_in_is_refused(story: Story, tmp_path: Path, words: list[str], says: str) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)

    said = story.duly("web", *(str(path) if word == "TOKEN" else word for word in words))

    assert said.code == 64
    assert says in said.talk
    assert "\n  try: " in said.talk
    assert TOKEN not in said.talk


def test_without_a_ledger_nothing_is_served(tmp_path: Path, story: Story) -> None:
    said = story.duly("web", "--ledger", str(tmp_path / "none.db"))

    assert said.code == 69
    assert "try:" in said.talk


def test_without_the_extra_it_says_what_to_install(story: Story, tmp_path: Path) -> None:
    """As where only the base is installed: nothing of the kind can be found."""
    code = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name in ('starlette', 'jinja2') else found(name, *rest)\n"
        "from duly.cli import main\n"
        f"sys.exit(main(['web', '--ledger', {story.path!r}]))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 64
    assert "the dashboard needs jinja2 and starlette, which are not installed" in ended.stderr
    assert "try: pip install 'duly[web]'" in ended.stderr


def test_the_line_of_a_person_is_printed_and_opens(story: Story, tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "duly", "web", "--password-for", "ana"],
        input="what the night is for\n",
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    path = tmp_path / "people"
    path.write_text(made.stdout)
    path.chmod(0o600)

    assert made.stdout.startswith("ana:scrypt$")
    assert made.stderr == ""
    with web(story, "--basic-file", str(path)) as (browser, _, _):
        assert browser.ask("/").status == 401
        assert browser.ask("/", Authorization="Basic YW5hOndoYXQgdGhlIG5pZ2h0IGlzIGZvcg==").status == 200
