"""The shared time cases: bug reports of other schedulers, and derivations. See tests/cases/README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from duly.errors import ScheduleError
from duly.testing.cases import Case, check, is_drift, main, occurrences, read, schedule_of
from duly.testing.releases import ReleaseMissing, package_version, release
from tests.conftest import RELEASES

FILE = Path(__file__).parent.parent / "cases" / "time.jsonl"
CASES = read(FILE)


def run(chosen: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def test_there_are_cases_of_every_kind() -> None:
    assert len(CASES) == 228
    assert {c["kind"] for c in CASES} == {"next", "sequence", "window", "parse_error", "parse_ok"}


@run([case for case in CASES if not is_drift(case)])
def test_the_case_comes_out_as_it_says(case: Case) -> None:
    outcome = check(case)

    assert outcome.got == outcome.expected


@run([case for case in CASES if is_drift(case)])
def test_two_releases_drift_apart_as_the_case_says(case: Case, releases: dict[str, Path]) -> None:
    outcome = check(case, releases.__getitem__)

    assert outcome.got == outcome.expected
    assert outcome.weaker == ""
    assert not check(wrong(case), releases.__getitem__).passed


@run([case for case in CASES if case["kind"] in ("next", "sequence")])
def test_the_same_occurrences_are_found_by_name_and_backwards(case: Case) -> None:
    schedule = schedule_of(case)
    found = occurrences(case, schedule)

    assert [schedule.find(o.nominal) for o in found] == found
    assert list(islice(schedule.before(found[-1].due), len(found))) == found[::-1]


@run([case for case in CASES if case["kind"] == "parse_error"])
def test_a_refusal_begins_with_the_field_and_the_token(case: Case) -> None:
    with pytest.raises(ScheduleError) as refused:
        schedule_of(case)

    if refused.value.field:
        assert refused.value.token is not None
        assert str(refused.value).startswith(f"{refused.value.field}: {refused.value.token!r}")


# -- the runner ----------------------------------------------------------------------------------------------------------


def wrong(case: Case) -> Case:
    """The case with something else expected of it."""
    match case["expect"]:
        case [str(first), *rest]:
            return {**case, "expect": [f"1800{first[4:]}", *rest]}
        case [dict(window), *rest]:
            return {**case, "expect": [{**window, "seconds": window["seconds"] + 1}, *rest]}
        case {"drift": bool(drift)} as bounds:
            return {**case, "expect": {**bounds, "drift": not drift}}
        case {"error": str()} as refusal:
            return {**case, "expect": {**refusal, "error": "bad_luck"}}
        case accepted:
            return {**case, "expect": {**accepted, "minute": [61]}}


@run([case for case in CASES if not is_drift(case)])
def test_a_case_that_expects_something_else_fails(case: Case) -> None:
    outcome = check(wrong(case))

    assert not outcome.passed
    assert str(outcome).startswith(f"FAILED {case['id']}: expected ")
    assert "\n" not in str(outcome)


def test_the_runner_ends_with_a_count_of_what_passed_and_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(case for case in CASES if case["kind"] == "next")
    nothing = {"id": "nothing", "kind": "next", "cron": "0 0 * * *", "zone": "UTC", "from": "2026-01-01T00:00:00Z"}
    lines = [first, wrong(first), {**nothing, "expect": []}, {"id": "odd", "kind": "moon", "expect": []}]
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join([*map(json.dumps, lines), "", "no JSON"]))

    assert main([str(file)]) == 1

    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "1 passed, 4 failed"
    assert [line.split(":")[0] for line in said[:-1]] == [
        f"FAILED {first['id']}",
        "FAILED nothing",
        "FAILED odd",
        f"FAILED {file}",
    ]


def test_the_runner_is_a_command(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(next(case for case in CASES if case["kind"] == "sequence")))
    command = [sys.executable, "-W", "error", "-m", "duly.testing.cases"]

    told = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    lost = subprocess.run([*command, str(tmp_path / "none.jsonl")], capture_output=True, text=True, check=False)

    assert (told.returncode, told.stdout) == (0, "1 passed, 0 failed\n")
    assert lost.returncode == 2
    assert "none.jsonl" in lost.stderr


def test_without_the_releases_the_installed_one_must_agree_with_one_of_the_two() -> None:
    def none(version: str) -> Path:
        raise ReleaseMissing(f"{version} is not here")

    case = next(case for case in CASES if is_drift(case))
    neither = json.loads(json.dumps(case).replace("T22:00", "T20:00").replace("T21:00", "T19:00"))

    assert check(case, none).passed
    assert "installed release only" in check(case, none).weaker
    assert not check(neither, none).passed


def test_releases_have_other_versions_on_pypi() -> None:
    assert [package_version(version) for version in ("2020a", "2026f")] == ["2020.1", "2026.6"]
    with pytest.raises(ReleaseMissing, match="write it like 2022e"):
        package_version("2022.5")


def test_a_release_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ReleaseMissing, match="could not be installed"):
        release("1999a", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_release_that_a_case_needs_is_pinned() -> None:
    needed = {case["expect"][which]["tzdata"] for case in CASES if is_drift(case) for which in ("old", "new")}

    assert needed <= set(RELEASES)
