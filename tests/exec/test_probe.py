"""A command whose outcome is unknown, and a command that is asked what happened."""

from __future__ import annotations

import json

import pytest

from tests.exec.stage import Stage
from tests.story import Said

KEY = "close:2026-11-28[UTC]"


def configure(stage: Stage, command: str, probe: str) -> None:
    command, probe = (text.replace("{folder}", str(stage.folder)) for text in (command, probe))
    (stage.folder / "duly.toml").write_text(
        f"""
[jobs.close]
command = ["sh", "-c", {command!r}]
period = "daily"
zone = "UTC"
at = "06:00"
catch_up = "each"
probe = {probe}
"""
    )


def poke(stage: Stage, *words: str) -> Said:
    return stage.duly("exec", "close", *words, DULY_CONFIG=str(stage.folder / "duly.toml"))


def resolve(stage: Stage, *words: str, job: str = "close") -> Said:
    config = str(stage.folder / "duly.toml")
    return stage.duly("resolve", job, "2026-11-28", "--probe", *words, DULY_CONFIG=config)


def asking(shell: str, *more: str) -> str:
    return "{" + ", ".join([f"command = ['sh', '-c', {json.dumps(shell)}, 'probe', '{{date}}']", *more]) + "}"


def test_a_poke_asks_what_happened_and_leaves_alone_what_did(stage: Stage) -> None:
    configure(stage, "exit 80", asking("echo $1 $DULY_RUN_KEY $DULY_ATTEMPT > {folder}/asked; echo happened"))
    assert poke(stage).code == 80
    assert poke(stage).code == 80  # too early to ask
    stage.clock.advance("1m")

    said = poke(stage, "-v")

    assert said.code == 0
    assert f'{KEY}: its probe says that it happened: it printed "happened"; it is completed' in said.talk
    assert (stage.folder / "asked").read_text() == f"2026-11-28 {KEY} 1\n"
    assert stage.state() == "completed"


def test_what_did_not_happen_is_worked_by_the_poke_that_believes_it(stage: Stage) -> None:
    configure(stage, "echo $DULY_ATTEMPT >> {folder}/worked; [ $DULY_ATTEMPT = 2 ] || exit 80", asking("echo did not"))
    assert poke(stage).code == 80
    for code in (80, 0):
        stage.clock.advance("1m")
        assert poke(stage).code == code

    assert (stage.folder / "worked").read_text() == "1\n2\n"


def test_a_named_window_is_asked_about_too(stage: Stage) -> None:
    configure(stage, "exit 80", asking("echo happened", "after = '2m'"))
    poke(stage)
    stage.clock.advance("2m")

    assert poke(stage, "--window", "2026-11-28").code == 0


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("exit 1", "the probe ended with exit 1"),
        ("echo perhaps", 'the probe said neither "happened" nor "did not"'),
        ("exec sleep 60", "the probe did not end within 1 s"),
    ],
)
def test_a_person_asks_the_probe_and_is_told_what_it_said(stage: Stage, shell: str, said: str) -> None:
    configure(stage, "exit 80", asking(shell, "timeout = '1s'"))
    poke(stage)
    stage.clock.advance("1m")

    dry = resolve(stage, "--dry-run")
    asked = resolve(stage, "--format", "json")
    again = resolve(stage)

    assert (dry.code, dry.out) == (0, f"{KEY}: it would be asked\n")
    assert (asked.code, asked.document["state"], asked.document["said"]) == (
        80,
        "unknown",
        f"it cannot be told: {said}",
    )
    assert again.code == 75
    assert f"it said last that it cannot tell: {said}" in again.talk
    assert (
        f"Its probe was asked once, and said last that it cannot tell: {said}"
        in stage.duly("explain", "close", "2026-11-28").out
    )


def test_the_end_of_a_line_that_was_cut_tells_nothing(stage: Stage) -> None:
    configure(stage, "exit 80", asking("printf 'ERROR: %5000sdid not' ''"))
    poke(stage)
    stage.clock.advance("1m")

    said = resolve(stage)

    assert (said.code, 'neither "happened" nor "did not"' in said.out) == (80, True)


def test_of_a_long_output_the_last_line_is_meant(stage: Stage) -> None:
    configure(stage, "exit 80", asking("yes perhaps | head -c 100000; echo; echo happened"))
    poke(stage)
    stage.clock.advance("1m")

    assert resolve(stage).code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--as", "done"), "--probe asks what happened"),
        ((), "no probe is declared for other"),
        (("--message", "a"), "a message's probe belongs to its destination"),
    ],
)
def test_what_cannot_be_asked_is_said(stage: Stage, words: tuple[str, ...], why: str) -> None:
    configure(stage, "exit 80", asking("echo happened"))
    stage.exec("other", "--period", "daily", "--zone", "UTC", command=["sh", "-c", "exit 80"])

    said = resolve(stage, *words, job="other")

    assert said.code in (64, 78)
    assert why in said.talk
    assert "try:" in said.talk or words


def test_the_doubt_has_to_have_an_age_and_the_run_to_be_unknown(stage: Stage) -> None:
    configure(stage, "exit 80", asking("echo happened"))
    poke(stage)

    early = resolve(stage)
    assert (early.code, "its probe is asked 1m after the doubt" in early.talk) == (75, True)
    stage.clock.advance("1m")
    assert resolve(stage).code == 0
    assert "is completed" in resolve(stage).talk


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ("'./did-it.sh'", 'write probe = ["./did-it.sh"]'),
        ("{after = '5m'}", "write probe = {command = "),
        ("{command = ['x'], atfer = '5m'}", "probe.atfer: a probe has no such part; did you mean after?"),
        ("{command = ['x'], after = 5}", 'probe.after: 5 has no unit; write probe.after = "5s"'),
    ],
)
def test_a_probe_that_is_written_wrongly_is_refused_with_the_text_to_write(stage: Stage, probe: str, why: str) -> None:
    configure(stage, "true", probe)

    said = poke(stage)

    assert said.code == 78
    assert why in said.talk
    assert stage.rows("select count(*) from duly_job") == [(0,)]
