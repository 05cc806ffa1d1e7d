"""Pods of a CronJob: each is for the time in its Job's name, whichever Pod it is and whenever it starts."""

from __future__ import annotations

import pytest

from duly.errors import TriggerUnclear
from duly.times import instant_text
from duly.trigger import Firing, adhoc_id, read, trigger_words


def firing(job: str, pod: str = "") -> Firing:
    return read("kubernetes", {"JOB_NAME": job, "POD_NAME": pod})


@pytest.mark.parametrize(
    ("job", "at"),
    [
        ("nightly-29869830", "2026-10-16T22:30:00Z"),  # minutes, since Kubernetes 1.21
        ("nightly-1619136000", "2021-04-23T00:00:00Z"),  # seconds, by the old controller
        ("a-12345678-29869830", "2026-10-16T22:30:00Z"),
    ],
)
def test_the_end_of_the_jobs_name_is_the_time_that_it_is_for(job: str, at: str) -> None:
    found = firing(job)

    assert found.kind == "scheduled"
    assert found.meant is not None
    assert instant_text(found.meant.at) == at


@pytest.mark.parametrize(
    "job",
    [
        "fix-1",
        "nightly-20261128",
        "nightly-2026112802",
        "nightly-manual-x7k2p",
        "29869830",
        "nightly-2986983",
    ],
)
def test_a_job_with_another_name_was_made_by_a_person(job: str) -> None:
    found = firing(job)

    assert (found.kind, found.meant) == ("manual", None)


def test_seconds_that_are_no_minute_are_refused() -> None:
    with pytest.raises(TriggerUnclear, match="JOB_NAME"):
        firing("nightly-1619136001")


def test_a_pod_that_does_not_know_its_job_is_told_what_to_add() -> None:
    with pytest.raises(TriggerUnclear, match=r"batch.kubernetes.io/job-name"):
        read("kubernetes", {"HOSTNAME": "nightly-29869830-abcde"})


def test_the_pod_is_a_reference_to_the_attempt_and_no_part_of_what_is_meant() -> None:
    first, second = (
        firing("nightly-29869830", "nightly-29869830-aaaaa"),
        firing("nightly-29869830", "nightly-29869830-bbbbb"),
    )

    assert first.meant == second.meant
    assert trigger_words(second) == "kubernetes scheduled nightly-29869830 nightly-29869830-bbbbb"


def test_each_manual_job_has_an_id_of_its_own() -> None:
    ids = {adhoc_id(firing(name)) for name in ("fix-1", "fix-2", "fix.1", "x" * 150, "x" * 151)}

    assert len(ids) == 5
    assert "fix-1" in ids
