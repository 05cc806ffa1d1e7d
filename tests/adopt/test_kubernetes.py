"""CronJobs of Kubernetes: a manifest keeps its layout and comments, is one that Kubernetes takes, and comes back whole."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from duly.adopt.kubernetes import Context, read_manifest, words_of
from duly.times import SECOND, from_datetime
from tests.adopt.crons import TWO_YEARS, ticks
from tests.story import Said, here

MANIFESTS = sorted((Path(__file__).parent / "manifests").iterdir())


def imported(*words: str) -> Said:
    return here("/nonexistent/l.db", "import", "kubernetes", *words)


def cron_jobs(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for document in yaml.safe_load_all(text):
        found += [one for one in document.get("items", [document]) if one["kind"] == "CronJob"]
    return found


def pod_of(cron_job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_a_command_is_wrapped_and_all_else_stays(manifest: Path, tmp_path: Path) -> None:
    copy = tmp_path / manifest.name
    copy.write_bytes(manifest.read_bytes())

    proposed = imported(str(copy), "--json")
    assert copy.read_bytes() == manifest.read_bytes()
    said = imported(str(copy), "--json", "--write")

    assert said.code == 0, said
    assert proposed.document == {**said.document, "written": False}
    before, after = manifest.read_text(encoding="utf-8"), copy.read_text(encoding="utf-8")
    assert [
        line for line in before.splitlines() if "#" in line and "/poll" not in line and "OnFailure" not in line
    ] == [line for line in after.splitlines() if "#" in line and "/poll" not in line and "duly import" not in line]
    for old, new, job in zip(cron_jobs(before), cron_jobs(after), said.document["jobs"], strict=True):
        (was,), (now,) = pod_of(old)["containers"], pod_of(new)["containers"]
        place = now["command"].index("--")
        assert now["command"][place + 1 :] == was["command"]
        assert now["command"][:3] == ["duly", "exec", job["job"]]
        assert now.get("args") == was.get("args")
        assert pod_of(new)["restartPolicy"] == "Never"
        policy = new["spec"]["jobTemplate"]["spec"].pop("podFailurePolicy")
        assert policy["rules"][0]["onExitCodes"] == {
            "containerName": was["name"],
            "operator": "In",
            "values": [79, 80, 81],
        }
        ledger = [one for one in now.get("env", []) if one["name"] == "DULY_LEDGER"]
        assert bool(ledger) == ("envFrom" not in was)
        rest = [one for one in now.get("env", []) if one not in ledger]
        pod_of(new)["containers"] = [{**now, "command": was["command"], "env": rest}]
        pod_of(old)["containers"] = [{**was, "env": was.get("env", [])}]
        pod_of(old)["restartPolicy"] = "Never"
        assert new == old


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_again_changes_nothing_and_undo_gives_the_bytes_back(manifest: Path, tmp_path: Path) -> None:
    copy = tmp_path / manifest.name
    copy.write_bytes(manifest.read_bytes())
    first = imported(str(copy), "--write", "--json")
    written = copy.read_bytes()
    assert written != manifest.read_bytes()

    again = imported(str(copy), "--write")

    assert again.code == 0
    assert "nothing to import" in again.talk
    assert copy.read_bytes() == written

    undone = imported(str(copy), "--undo", "--write", "--json")

    assert undone.code == 0
    assert undone.document["undone"] == [job["job"] for job in first.document["jobs"]]
    assert copy.read_bytes() == manifest.read_bytes()


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_what_is_written_is_valid_by_the_published_schema(manifest: Path, tmp_path: Path) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate, which has the schemas and 100 MB, is not installed"
    )
    copy = tmp_path / manifest.name
    copy.write_bytes(manifest.read_bytes())
    imported(str(copy), "--write")

    for cron_job in cron_jobs(copy.read_text(encoding="utf-8")):
        validate.validate(cron_job, "1.31", strict=True)


def test_what_a_person_has_changed_stays(tmp_path: Path) -> None:
    copy = tmp_path / "two.yaml"
    copy.write_bytes(next(path for path in MANIFESTS if path.name == "two.yaml").read_bytes())
    original = copy.read_text(encoding="utf-8")
    imported(str(copy), "--write")
    copy.write_text(copy.read_text(encoding="utf-8").replace('- "latest"\n', '- "each"\n'), encoding="utf-8")
    edited = copy.read_text(encoding="utf-8")

    said = imported(str(copy), "--undo", "--write")

    assert said.code == 0
    assert "export was changed since it was imported, and stays" in said.talk
    first, second = copy.read_text(encoding="utf-8").split("---\napiVersion: v1\n")
    assert first == edited.split("---\napiVersion: v1\n")[0]
    assert second == original.split("---\napiVersion: v1\n")[1]


CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: a
spec:
  schedule: "0 1 * * *"
  timeZone: UTC
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: a:1
            command: [/a]
"""


@pytest.mark.parametrize(
    ("find", "put", "code"),
    [
        ("apiVersion: batch/v1", "apiVersion: batch/v1beta1", "version"),
        ("  name: a\n", "  generateName: a-\n", "no_name"),
        ('"0 1 * * *"', '"TZ=Asia/Tokyo 0 1 * * *"', "zone_in_schedule"),
        ('"0 1 * * *"', '"CRON_TZ=Asia/Tokyo 0 1 * * *"', "zone_in_schedule"),
        ('"0 1 * * *"', '"@every 1h"', "interval"),
        ('"0 1 * * *"', '"0 1 * * 7"', "not_accepted"),
        ('"0 1 * * *"', '"0 0 */2 * 1"', "ambiguous"),
        ('"0 1 * * *"', '"0 0 31 2 *"', "never_fires"),
        ("  timeZone: UTC\n", "  timeZone: UTC\n  concurrencyPolicy: Replace\n", "replace"),
        ("    spec:\n      template:", "    spec:\n      completions: 3\n      template:", "many_pods"),
        ("            command: [/a]\n", "", "no_command"),
        ("            command: [/a]\n", "            args: [/a]\n", "no_command"),
        ("            command: [/a]\n", '            command: [/a, "{date}"]\n', "placeholder"),
        (
            "          - name: main\n",
            "          - name: side\n            image: b\n          - name: main\n",
            "several_containers",
        ),
        (
            "    spec:\n      template:",
            "    spec:\n      podFailurePolicy: {rules: []}\n      template:",
            "pod_failure_policy",
        ),
    ],
)
def test_what_cannot_be_carried_over_is_said_and_nothing_is_written(
    find: str, put: str, code: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "m.yaml"
    assert CRON_JOB.count(find) == 1
    manifest.write_text(CRON_JOB.replace(find, put), encoding="utf-8")
    before = manifest.read_bytes()

    said = imported(str(manifest), "--json", "--write")

    assert said.code == 0
    (left,) = [note for note in said.document["notes"] if not note["carried"]]
    assert left["code"] == code
    assert left["line"]
    assert manifest.read_bytes() == before


def test_the_container_that_is_named_is_wrapped(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    two = CRON_JOB.replace(
        "          - name: main\n", "          - name: side\n            image: b\n          - name: main\n"
    )
    manifest.write_text(two, encoding="utf-8")

    said = imported(str(manifest), "--container", "main", "--write")

    assert said.code == 0, said
    (cron_job,) = cron_jobs(manifest.read_text(encoding="utf-8"))
    side, main = pod_of(cron_job)["containers"]
    assert "command" not in side
    assert main["command"][0] == "duly"
    imported(str(manifest), "--undo", "--write")
    assert manifest.read_text(encoding="utf-8") == two


def test_a_zone_that_the_manifest_does_not_say_is_asked_for(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(CRON_JOB.replace("  timeZone: UTC\n", ""), encoding="utf-8")

    refused = imported(str(manifest))
    said = imported(str(manifest), "--zone", "Europe/Berlin", "--json")

    assert refused.code == 64
    assert f"{manifest}:6: spec.timeZone is missing" in refused.talk
    assert said.document["jobs"][0]["zone"] == "Europe/Berlin"


def test_a_part_that_stands_in_two_places_is_left(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    shared = CRON_JOB.replace("      template:\n", "      template: &pod\n")
    alias = CRON_JOB.replace("  name: a\n", "  name: b\n").split("      template:\n")[0] + "      template: *pod\n"
    indented = "".join(f"  {line}\n" for line in alias.splitlines())
    first = "".join(f"  {line}\n" for line in shared.splitlines())
    manifest.write_text(f"apiVersion: v1\nkind: List\nitems:\n-\n{first}-\n{indented}", encoding="utf-8")

    said = imported(str(manifest), "--json")

    assert [note["code"] for note in said.document["notes"] if not note["carried"]] == ["alias", "alias"]
    assert said.code == 1


def test_a_file_that_is_named_twice_is_one(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(CRON_JOB, encoding="utf-8")

    said = imported(str(manifest), f"{tmp_path}/./m.yaml", "--json", "--write")

    assert [job["job"] for job in said.document["jobs"]] == ["a"]


def test_a_zone_that_is_none_leaves_its_cron_job_and_no_other(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    bad = CRON_JOB.replace("  name: a\n", "  name: b\n").replace("timeZone: UTC", "timeZone: Foo/Bar")
    manifest.write_text(f"{bad}---\n{CRON_JOB}", encoding="utf-8")

    said = imported(str(manifest), "--json")

    assert [job["job"] for job in said.document["jobs"]] == ["a"]
    assert [note["code"] for note in said.document["notes"] if not note["carried"]] == ["zone"]


def test_a_path_with_a_blank_is_known_again(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(CRON_JOB, encoding="utf-8")
    imported(str(manifest), "--write", "--duly", "/opt/my tools/duly")

    assert imported(str(manifest), "--json", "--duly", "/opt/my tools/duly").document["already"] == 1
    imported(str(manifest), "--undo", "--write")
    assert manifest.read_text(encoding="utf-8") == CRON_JOB


def test_a_chart_is_no_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text("metadata:\n  name: {{ .Release.Name }}-a\n  labels: {{- include x }}\n", encoding="utf-8")

    said = imported(str(manifest))

    assert said.code == 64
    assert f"{manifest}:" in said.talk
    assert "helm template" in said.talk


def test_without_pyyaml_the_way_to_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(CRON_JOB, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "yaml", None)

    said = imported(str(manifest))

    assert said.code == 64
    assert "pip install 'duly[kubernetes]'" in said.talk


@pytest.mark.parametrize(
    "schedule",
    ["30 2 * * *", "*/30 * * * *", "0 0-3 * * *", "15 2 * * sun", "5/20 1,2 * * *", "0 12 1-7 * mon", "@hourly"],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_what_the_flags_say_fires_when_kubernetes_would(schedule: str, zone: str) -> None:
    """Its library steps through the hours that are: each minute of a wall clock that shows what the line says."""
    text = CRON_JOB.replace("0 1 * * *", schedule).replace("timeZone: UTC", f"timeZone: {zone}")
    (found,) = read_manifest(text, "m.yaml", Context()).reading.jobs
    since = datetime(2026, 10, 24, tzinfo=UTC)
    for begin in (since, datetime(2027, 3, 13, tzinfo=UTC), datetime(2027, 3, 27, tzinfo=UTC)):
        end = begin + timedelta(days=9)
        instants = found.when.schedule().instants(from_datetime(begin), from_datetime(end))
        expected = [at for at, local in ticks(ZoneInfo(zone), begin, end) if matches(schedule, local)]
        assert [datetime.fromtimestamp(at // SECOND, UTC) for at in instants] == expected
    assert TWO_YEARS[0] < since < TWO_YEARS[1]


def matches(schedule: str, local: datetime) -> bool:
    """Whether the wall clock shows what the line says; written out for the lines of the test above."""
    minute, hour, day, weekday = local.minute, local.hour, local.day, local.isoweekday()
    return {
        "30 2 * * *": (minute, hour) == (30, 2),
        "*/30 * * * *": minute in (0, 30),
        "0 0-3 * * *": minute == 0 and hour in (0, 1, 2, 3),
        "15 2 * * sun": (minute, hour, weekday) == (15, 2, 7),
        "5/20 1,2 * * *": minute in (5, 25, 45) and hour in (1, 2),
        "0 12 1-7 * mon": (minute, hour) == (0, 12) and (day <= 7 or weekday == 1),
        "@hourly": minute == 0,
    }[schedule]


def test_the_words_before_the_command_are_flags_that_exec_takes() -> None:
    from duly.cli.exec_flags import declaration, parse

    (found,) = read_manifest(CRON_JOB.replace("UTC", "Europe/Berlin"), "m.yaml", Context()).reading.jobs

    given = parse([*words_of("a", found.when, "duly")[2:], "/a"])

    assert declaration(given).schedule == found.when.schedule()
    assert given.argv == ["/a"]


def test_json_on_one_line_is_edited_too() -> None:
    text = json.dumps(yaml.safe_load(CRON_JOB))
    manifest = read_manifest(text, "m.json", Context())

    wrapped = json.loads(manifest.rewritten(["a"]))

    assert pod_of(wrapped)["containers"][0]["command"][-2:] == ["--", "/a"]


def test_two_of_them_on_one_line_are_two_jobs(tmp_path: Path) -> None:
    one = yaml.safe_load(CRON_JOB)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [one, {**one, "metadata": {"name": "b"}}]})
    manifest = tmp_path / "m.json"
    manifest.write_text(text, encoding="utf-8")

    said = imported(str(manifest), "--write", "--json")

    assert [job["job"] for job in said.document["jobs"]] == ["a", "b"]
    names = [pod_of(each)["containers"][0]["command"][2] for each in cron_jobs(manifest.read_text(encoding="utf-8"))]
    assert names == ["a", "b"]
    imported(str(manifest), "--undo", "--write")
    assert manifest.read_text(encoding="utf-8") == text
