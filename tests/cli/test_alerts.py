"""`duly alerts`: what is open, a look by hand, and silences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from duly.schedule.spec import daily
from tests.story import Said, Story

RUN = "close-day:2026-11-20[Europe/Paris]"
WHY = ("--reason", "the bank is closed")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A job that failed this night and waits for a person; a mailbox that is told; and the first look was made before."""
    story = Story(tmp_path, at="2026-11-20T23:30:00Z")
    (tmp_path / "duly.toml").write_text(
        '[destinations.ops]\nkind = "command"\nargv = ["sh", "-c", "cat >> told; echo >> told"]\n[alerts]\nto = "ops"\n'
    )
    story.job("close-day", daily("Europe/Paris"))
    looked = look(story, "--json")
    assert (looked.code, looked.document["alerts"]) == (0, [])
    story.fail("close-day")
    return story


def look(story: Story, *words: str) -> Said:
    folder = Path(story.path).parent
    return story.duly(
        "alerts", "look", *words, DULY_CONFIG=str(folder / "duly.toml"), prefix=("env", "-C", str(folder))
    )


def told(story: Story) -> list[tuple[str, str]]:
    path = Path(story.path).parent / "told"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(found["kind"], found["state"]) for found in map(json.loads, lines)]


def test_a_look_tells_and_exits_with_1_while_an_alert_is_open(story: Story) -> None:
    looked = look(story)

    assert (looked.code, looked.talk) == (1, "")
    assert (
        looked.out
        == f"✗ failed   {RUN}   since Fri 20 Nov 23:30Z   exit 2   duly retry close-day 2026-11-20 --reason '…'\n"
    )
    assert told(story) == [("failed", "raised")]
    assert look(story).code == 1
    assert told(story) == [("failed", "raised")]

    story.duly("skip", "close-day", "2026-11-20", *WHY)
    looked = look(story)

    assert (looked.code, looked.out) == (0, "no alert is open\n")
    assert told(story) == [("failed", "raised"), ("failed", "recovered")]
    (row,) = story.duly("alerts", "list", "--all", "--json").document["alerts"]
    assert (row["state"], row["told"], row["recovered_at"]) == ("recovered", "recovered", "2026-11-20T23:30:00Z")


def test_what_is_listed_is_stable_for_programs(story: Story) -> None:
    look(story)

    listed = story.duly("alerts", "list", "--json").document

    assert listed["schema"] == "duly.alerts.v1"
    assert listed["alerts"] == [
        {
            "key": RUN,
            "id": 1,
            "kind": "failed",
            "state": "open",
            "told": "open",
            "silenced": False,
            "job": "close-day",
            "scope": "",
            "note": "exit 2",
            "next_step": "duly retry close-day 2026-11-20 --reason '…'",
            "since": "2026-11-20T23:30:00Z",
            "raised_at": "2026-11-20T23:30:00Z",
            "recovered_at": None,
        }
    ]
    assert story.duly("alerts", "list", "--format", "keys").out == f"{RUN}\n"


def test_a_silence_is_said_listed_and_ended(story: Story) -> None:
    tried = story.duly("alerts", "silence", "close-day", "--until", "+2h", "--dry-run", *WHY)
    assert (tried.code, "this was a dry run" in tried.talk) == (0, True)
    assert story.duly("alerts", "list").out == "no alert is open\n"

    made = story.duly(
        "alerts", "silence", "close-day", "--kind", "failed", "--until", "2026-11-21T12:00", "--json", *WHY
    )
    assert made.document["silences"][0]["until"] == "2026-11-21T11:00:00Z"  # by the clocks of Paris
    assert look(story).code == 1
    assert told(story) == []
    assert "silenced   exit 2" in story.duly("alerts", "list").out

    assert story.duly("alerts", "unsilence", "close-day", "--kind", "late", *WHY).code == 64
    assert story.duly("alerts", "unsilence", "close-day", *WHY).code == 0
    look(story)
    assert told(story) == [("failed", "raised")]


@pytest.mark.parametrize(
    ("words", "says", "step"),
    [
        (
            ("silence", "close-day", *WHY),
            "say for how long with --until",
            f"silence close-day --reason '{WHY[1]}' --until +2h",
        ),
        (("silence", "close-day", "--until", "+2h"), "say why with --reason", "silence close-day --until +2h --reason"),
        (("silence", "close-day", "--until", "soon", *WHY), "--until: ", ""),
        (("silence", "close-dya", "--until", "+2h", *WHY), "the ledger knows no job 'close-dya'", ""),
        (("unsilence", "close-day"), "say why with --reason", "unsilence close-day --reason"),
        (("unsilence", "close-day", *WHY), "no such silence is in force", "list"),
    ],
)
def test_what_is_wrong_is_said_with_one_step_to_take(
    words: tuple[str, ...], says: str, step: str, story: Story
) -> None:
    said = story.duly("alerts", *words)

    assert said.code == 64
    assert says in said.talk
    assert f"\n  try: duly {'alerts ' + step if step else ''}" in said.talk


def test_where_nobody_is_told_a_look_says_so(story: Story) -> None:
    said = story.duly("alerts", "look", DULY_CONFIG="/dev/null")

    assert said.code == 1
    assert said.talk == "duly: nobody is told of alerts here: duly.toml has no [alerts], and no job an on_late\n"
