"""`exec --trigger`: a scheduler elsewhere says which window is meant, and the same one is worked by whoever is told of it."""

from __future__ import annotations

import os

import pytest

from duly.times import MINUTE, parse_instant
from tests.exec.stage import DAILY, Stage
from tests.trigger import systemctl

NIGHTLY = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin")


def pod(at: str, name: str = "aaaaa") -> dict[str, str]:
    """What a Pod of a CronJob has in its environment, of a Job for this time."""
    job = f"nightly-{parse_instant(at) // MINUTE}"
    return {"JOB_NAME": job, "POD_NAME": f"{job}-{name}"}


def test_a_pod_works_the_window_in_its_jobs_name_however_late_it_starts(stage: Stage) -> None:
    said = stage.exec(
        "nightly", *NIGHTLY, "--trigger", "kubernetes", command=stage.effect(), environ=pod("2026-11-26T01:30:00Z")
    )

    assert said.code == 0, said.talk
    assert stage.effects() == ["nightly:2026-11-26T02:30:00[Europe/Berlin]"]
    assert stage.rows("select trigger from duly_run") == [
        ("kubernetes scheduled nightly-29927610 nightly-29927610-aaaaa",)
    ]


def test_the_next_pod_of_a_job_that_failed_tries_the_same_window(stage: Stage) -> None:
    words = ("nightly", *NIGHTLY, "--trigger", "kubernetes", "--retries", "1", "--no-retry")
    stage.exec(*words, command=stage.effect("exit 3"), environ=pod("2026-11-26T01:30:00Z"))
    stage.clock.advance("1h")

    said = stage.exec(*words, command=stage.effect(), environ=pod("2026-11-26T01:30:00Z", "bbbbb"))

    assert said.code == 0, said.talk
    assert stage.effects() == ["nightly:2026-11-26T02:30:00[Europe/Berlin]"] * 2
    assert stage.states() == {"2026-11-26T02:30:00": "completed"}


def test_cron_beside_a_cronjob_is_one_effect(stage: Stage) -> None:
    stage.clock.set("2026-10-25T00:30:00Z")
    stage.exec("nightly", *NIGHTLY, command=stage.effect())

    said = stage.exec("nightly", "--trigger", "kubernetes", command=stage.effect(), environ=pod("2026-10-25T00:30:00Z"))

    assert (said.code, said.talk) == (0, "")
    assert stage.effects() == ["nightly:2026-10-25T02:30:00[Europe/Berlin]"]


def test_a_job_made_by_hand_borrows_no_window(stage: Stage) -> None:
    words = ("nightly", *NIGHTLY, "--trigger", "kubernetes")

    said = stage.exec(*words, command=stage.effect(), environ={"JOB_NAME": "fix-1", "POD_NAME": "fix-1-x"})
    again = stage.exec(*words, command=stage.effect(), environ={"JOB_NAME": "fix-1", "POD_NAME": "fix-1-y"})

    assert (said.code, again.code) == (0, 0)
    assert stage.effects() == ["nightly:adhoc-fix-1"]
    assert stage.duly("check", "nightly").code == 1


@pytest.mark.parametrize(
    ("environ", "flags", "what"),
    [
        ({}, (), "JOB_NAME is not set"),
        (pod("2026-11-26T01:31:00Z"), (), "no window is due at 2026-11-26T01:31:00Z"),
        (pod("2026-11-26T01:30:00Z"), ("--window", "2026-11-26"), "leave one out"),
        (pod("2026-11-26T01:30:00Z"), ("--backfill",), "leave one out"),
    ],
)
def test_what_does_not_name_one_window_runs_nothing(
    stage: Stage, environ: dict[str, str], flags: tuple[str, ...], what: str
) -> None:
    said = stage.exec("nightly", *NIGHTLY, "--trigger", "kubernetes", *flags, command=stage.effect(), environ=environ)

    assert said.code == 64
    assert what in said.talk
    assert "try: " in said.talk
    assert stage.effects() == []


def test_a_source_that_there_is_not_is_named_with_those_that_there_are(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--trigger", "kubernets", command=stage.effect())

    assert said.code == 64
    assert "'kubernets' is none of airflow, cloud-scheduler, eventbridge, kubernetes" in said.talk


def test_a_window_that_is_not_due_yet_waits(stage: Stage) -> None:
    said = stage.exec(
        "nightly", *NIGHTLY, "--trigger", "kubernetes", command=stage.effect(), environ=pod("2026-12-24T01:30:00Z")
    )

    assert said.code == 75
    assert stage.effects() == []


def test_a_service_works_the_window_of_its_timers_firing_and_by_hand_none(stage: Stage) -> None:
    words = ("nightly", *NIGHTLY, "--trigger", "systemd")
    fired = systemctl.played(
        stage.folder,
        {
            systemctl.TIMER: systemctl.of_timer("Sat 2026-11-28 01:30:41 UTC"),
            systemctl.SERVICE: systemctl.of_service(),
        },
    )
    said = stage.exec(*words, command=stage.effect(), environ=on_path(fired))
    systemctl.played(
        stage.folder,
        {
            systemctl.TIMER: systemctl.of_timer("Sat 2026-11-28 01:30:41 UTC", "waiting"),
            systemctl.SERVICE: systemctl.of_service("b" * 32),
        },
    )
    by_hand = stage.exec(*words, command=stage.effect(), environ=on_path(fired, "b" * 32))

    assert (said.code, by_hand.code) == (0, 0), (said, by_hand)
    assert stage.effects() == ["nightly:2026-11-28T02:30:00[Europe/Berlin]", f"nightly:adhoc-{'b' * 32}"]


def on_path(folder: str, invocation: str = systemctl.STARTED) -> dict[str, str]:
    """What a service of a timer finds in its environment, with a PATH on which there is a shell too."""
    found = systemctl.environment(folder, invocation=invocation)
    return {**found, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_what_does_not_tell_may_be_a_plain_poke(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--trigger", "kubernetes", command=stage.effect())

    assert said.code == 64
    assert f"try: duly exec close {' '.join(DAILY)} -- sh -c" in said.talk
