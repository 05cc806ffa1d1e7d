"""Services that a timer started: which firing it was is asked of the timer, and never believed of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

import duly
from duly.errors import TriggerUnclear
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell
from duly.times import instant_text
from duly.trigger import Firing, adhoc_id, read, systemd, trigger_words
from tests.trigger.systemctl import SERVICE, STARTED, TIMER, environment, of_service, of_timer, played

BERLIN = "Europe/Berlin"


def firing(folder: Path, timer: str, service: str = "") -> Firing:
    return read("systemd", environment(played(folder, {TIMER: timer, SERVICE: service or of_service()})))


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
@pytest.mark.parametrize(
    ("last", "schedule", "name"),
    [
        ("Sun 2026-03-29 01:00:04 UTC", duly.cron("30 2 * * *", zone=BERLIN), "2026-03-29T02:30:00[Europe/Berlin]"),
        ("Sun 2026-10-25 00:30:00 UTC", duly.cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:30:00[Europe/Berlin]"),
        ("Sun 2026-10-25 00:30:59 UTC", duly.cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:30:00[Europe/Berlin]"),
        (
            "Sun 2026-10-25 01:31:00 UTC",
            duly.cron("30 * * * *", zone=BERLIN, fold="both"),
            "2026-10-25T02:30:00~2[Europe/Berlin]",
        ),
        ("Mon 2026-10-26 01:30:17 UTC", duly.daily(BERLIN, at="02:30"), "2026-10-25[Europe/Berlin]"),
        # Off for three days, and Persistent: once, for the newest that was missed.
        ("Wed 2026-10-28 09:12:40 UTC", duly.daily(BERLIN, at="02:30"), "2026-10-27[Europe/Berlin]"),
        ("Sun 2026-10-25 00:30:00.000455 UTC", duly.daily("UTC"), "2026-10-24[UTC]"),
        ("@1792888200", duly.cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:30:00[Europe/Berlin]"),
        ("@1792888200.000455", duly.cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:30:00[Europe/Berlin]"),
    ],
)
def test_the_newest_window_that_was_due_when_the_timer_last_fired_is_meant(
    last: str, schedule: duly.Schedule, name: str, tmp_path: Path
) -> None:
    found = firing(tmp_path, of_timer(last))

    assert found.kind == "scheduled"
    assert found.meant is not None
    assert window_meant([Spell(schedule, 1, None, None)], found.meant).name == name
    fired = instant_text(found.meant.at)
    assert trigger_words(found) == f"systemd scheduled plain.timer@{fired} {STARTED}"


def test_the_time_in_the_environment_is_that_of_the_first_firing_and_says_nothing(tmp_path: Path) -> None:
    first = firing(tmp_path, of_timer("Sun 2026-03-29 01:30:00 UTC"))
    third = firing(tmp_path, of_timer("Tue 2026-03-31 01:30:00 UTC"))

    assert first.meant is not None
    assert third.meant is not None
    assert third.meant.at - first.meant.at == 2 * 86_400_000_000


def test_whoever_starts_the_service_while_its_timer_waits_is_a_person_whatever_the_environment_says(
    tmp_path: Path,
) -> None:
    found = firing(tmp_path, of_timer("Tue 2026-03-31 01:30:00 UTC", "waiting"))

    assert (found.kind, found.meant) == ("manual", None)
    assert adhoc_id(found) == STARTED


def test_a_service_that_no_timer_has_started_yet_was_started_by_a_person() -> None:
    found = read("systemd", {"INVOCATION_ID": STARTED, "PATH": "/nowhere"})

    assert (found.kind, found.meant, found.run) == ("manual", None, STARTED)


@pytest.mark.parametrize(
    ("timer", "service", "what"),
    [
        (of_timer(""), of_service(), "does not say LastTriggerUSec"),
        (of_timer("n/a"), of_service(), "'n/a' is no time"),
        (of_timer("Sun 2026-10-25 02:30:00 CEST"), of_service(), "'Sun 2026-10-25 02:30:00 CEST' is no time"),
        (of_timer("Sun 2026-10-25 00:30:00 UTC"), of_service("f" * 32), "was started again since"),
        (of_timer("Sun 2026-10-25 00:30:00 UTC", "waiting"), of_service(restarts=1), "leave its Restart= out"),
        ("", of_service(), "does not say LastTriggerUSec"),
    ],
)
def test_what_cannot_be_told_is_refused(timer: str, service: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(TriggerUnclear, match=what):
        firing(tmp_path, timer, service)


@pytest.mark.parametrize("unit", ["drop.path", "-H evil.timer", "a b.timer", "x\n.timer"])
def test_nothing_but_the_name_of_a_timer_is_asked_about(unit: str, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\necho >> '{asked}'\n")
    program.chmod(0o755)

    with pytest.raises(TriggerUnclear, match="is no timer"):
        read("systemd", environment(str(tmp_path), timer=unit))

    assert not asked.exists()


def test_without_systemctl_or_where_it_fails_nothing_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(TriggerUnclear, match="systemctl is not on this service's PATH"):
        read("systemd", environment(str(tmp_path)))
    answers = {TIMER: of_timer("Sun 2026-10-25 00:30:00 UTC"), SERVICE: of_service()}
    with pytest.raises(TriggerUnclear, match=r"exit 1"):
        read("systemd", environment(played(tmp_path, answers, code=1)))


def test_a_process_that_no_service_is_has_no_trigger() -> None:
    with pytest.raises(TriggerUnclear, match="INVOCATION_ID is not set"):
        read("systemd", {"TRIGGER_UNIT": "plain.timer"})


def test_a_systemd_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(systemd, "PATIENCE_SECONDS", 0.1)

    with pytest.raises(TriggerUnclear, match="TimeoutExpired"):
        read("systemd", environment(str(tmp_path)))
