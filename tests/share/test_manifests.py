"""The manifests that ship are those that Kubernetes takes, by its schemas, and their containers' commands are run."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import ValidationError, validate

from duly import codes
from duly.times import MINUTE, parse_instant
from tests.docs.test_readme import ROOT
from tests.exec.stage import Stage

SHIPPED = ROOT / "share" / "kubernetes"
MANIFESTS = sorted(file.name for file in SHIPPED.glob("*.yaml"))
RELEASES = ("1.31", "1.34", "1.36")  # podFailurePolicy is stable since the first of them


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((SHIPPED / name).read_text(encoding="utf-8"))
    return found


def job_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = manifest(name)["spec"]["jobTemplate"]["spec"]
    return found


def container_of(name: str) -> dict[str, Any]:
    (found,) = job_of(name)["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_takes_each_manifest(name: str, release: str) -> None:
    validate(manifest(name), release, strict=True)


def test_what_kubernetes_does_not_take_is_seen() -> None:
    wrong = copy.deepcopy(manifest("cronjob.yaml"))
    wrong["spec"]["jobTemplate"]["spec"]["backofLimit"] = 3

    with pytest.raises(ValidationError, match="backofLimit"):
        validate(wrong, RELEASES[-1], strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_wants_a_person_fails_its_job_and_another_try_is_counted(name: str) -> None:
    job = job_of(name)
    failing, ignored = job["podFailurePolicy"]["rules"]

    assert failing["action"] == "FailJob"
    assert failing["onExitCodes"]["containerName"] == container_of(name)["name"]
    assert set(failing["onExitCodes"]["values"]) == {
        codes.USAGE,
        codes.CONFIGURATION,
        codes.WAITS_FOR_A_PERSON,
        codes.UNKNOWN,
        codes.TAKEN_OVER,
    }
    assert "onExitCodes" not in ignored  # 75 is in no rule
    assert job["backoffLimit"] > 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy wants it


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_ledgers_address_is_a_secret(name: str) -> None:
    (ledger,) = [each for each in container_of(name)["env"] if each["name"] == "DULY_LEDGER"]

    assert "value" not in ledger
    assert ledger["valueFrom"]["secretKeyRef"]["name"]


def command_of(name: str, stage: Stage) -> tuple[list[str], list[str]]:
    """The words of a container's command up to `--`, and a command in the place of its own, with its placeholders."""
    duly, exec_, *words = container_of(name)["command"]
    assert (duly, exec_) == ("duly", "exec")
    dashes = words.index("--")
    own = " ".join(words[dashes + 2 :])
    return words[:dashes], stage.effect(f'echo "{own}" >> {stage.file("words")}')


def test_a_pod_needs_nothing_but_its_line(stage: Stage) -> None:
    """As its container's command stands in the manifest, with no other variable than the ledger's."""
    flags, command = command_of("cronjob.yaml", stage)

    codes_seen = [stage.exec(*flags, command=command).code for _ in range(2)]

    assert codes_seen == [0, 0]
    assert stage.effects() == ["close-day:2026-11-28[Europe/Paris]"]
    assert stage.effects("words") == ["--day 2026-11-28"]


def test_a_pod_that_is_told_its_jobs_name_works_that_jobs_window(stage: Stage) -> None:
    flags, command = command_of("cronjob-trigger.yaml", stage)
    job = f"nightly-{parse_instant('2026-11-26T01:30:00Z') // MINUTE}"
    told = {each["name"] for each in container_of("cronjob-trigger.yaml")["env"]}
    assert told == {"JOB_NAME", "POD_NAME", "DULY_LEDGER"}

    said = stage.exec(*flags, command=command, environ={"JOB_NAME": job, "POD_NAME": f"{job}-aaaaa"})

    assert said.code == 0, said.talk
    assert stage.effects() == ["nightly:2026-11-26T02:30:00[Europe/Berlin]"]


def test_the_schedule_of_a_cronjob_whose_jobs_are_told_of_is_the_jobs_own() -> None:
    spec = manifest("cronjob-trigger.yaml")["spec"]
    words = container_of("cronjob-trigger.yaml")["command"]

    assert spec["schedule"] == words[words.index("--cron") + 1]
    assert spec["timeZone"] == words[words.index("--zone") + 1]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
