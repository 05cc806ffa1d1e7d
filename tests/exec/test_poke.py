"""A trigger is a poke: the ledger says what is owed, and exec works it, oldest first, each run at most once."""

import shlex

import pytest

from tests.exec.stage import DAILY, Stage
from tests.next_steps import filled


def test_the_first_exec_of_a_job_owes_its_newest_due_window_and_nothing_older(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=stage.effect())

    assert said.code == 0
    assert stage.effects() == ["close:2026-11-28[UTC]"]
    assert stage.states() == {"2026-11-28": "completed"}


def test_a_duplicate_runs_nothing_says_nothing_and_commits_nothing(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    before = stage.file("ledger.db-wal").read_bytes() if stage.file("ledger.db-wal").exists() else b""
    dump = (
        stage.rows("select * from duly_run"),
        stage.rows("select * from duly_event"),
        stage.rows("select * from duly_line"),
    )

    said = stage.exec("close", *DAILY, command=stage.effect())

    assert (said.code, said.out, said.talk) == (0, "", "")
    assert stage.effects() == ["close:2026-11-28[UTC]"]
    after = stage.file("ledger.db-wal").read_bytes() if stage.file("ledger.db-wal").exists() else b""
    assert before == after
    assert dump == (
        stage.rows("select * from duly_run"),
        stage.rows("select * from duly_event"),
        stage.rows("select * from duly_line"),
    )


def test_a_duplicate_needs_no_lock_so_a_writer_who_holds_it_does_not_matter(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())

    with stage.foreign_writer():
        said = stage.exec("close", *DAILY, command=stage.effect())

    assert (said.code, said.talk) == (0, "")


def test_registered_flags_need_not_be_given_again(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--effect", "transactional", command=stage.effect())
    stage.clock.set("2026-11-30T06:00:00Z")

    said = stage.exec("close", command=stage.effect("exit 3"))

    assert said.code == 3
    assert stage.effects() == ["close:2026-11-28[UTC]", "close:2026-11-29[UTC]"]
    assert stage.rows("select contract from duly_run order by nominal") == [("transactional",), ("transactional",)]


def test_latest_works_only_the_newest_of_five_missed_days_and_records_what_it_dropped(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.clock.set("2026-12-04T12:00:00Z")

    said = stage.exec("close", *DAILY, command=stage.effect())

    assert said.code == 0
    assert stage.effects() == ["close:2026-11-28[UTC]", "close:2026-12-03[UTC]"]
    for day in ("2026-11-29", "2026-12-02"):
        assert "skipped" in stage.duly("explain", "close", day).out
    assert stage.rows("select reason from duly_skipped") == [("catch-up latest: a newer window was due",)]


def test_each_works_all_that_was_missed_oldest_first(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each", command=stage.effect())
    stage.clock.set("2026-12-02T12:00:00Z")

    said = stage.exec("close", *DAILY, command=stage.effect())

    assert said.code == 0
    assert stage.effects() == [f"close:2026-{day}[UTC]" for day in ("11-28", "11-29", "11-30", "12-01")]


def test_each_goes_on_after_a_failure_and_answers_with_the_first_code_that_was_not_0(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each", command=stage.effect())
    stage.clock.set("2026-12-02T12:00:00Z")
    by_day = 'case "$DULY_DATE" in 2026-11-29) exit 7;; 2026-11-30) exit 5;; esac'

    said = stage.exec("close", *DAILY, command=stage.effect(by_day))

    assert said.code == 7
    assert len(stage.effects()) == 4
    assert list(stage.states().values()) == ["completed", "failed", "failed", "completed"]


def test_each_run_is_worked_at_most_once_by_one_poke(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--effect", "transactional", command=stage.effect("kill -9 $$"))

    assert stage.effects() == ["close:2026-11-28[UTC]"]  # its retry time may well have come by hand


def test_one_stops_after_one_run(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each", command=stage.effect())
    stage.clock.set("2026-12-02T12:00:00Z")

    said = stage.exec("close", *DAILY, "--one", command=stage.effect())

    assert said.code == 0
    assert stage.effects() == ["close:2026-11-28[UTC]", "close:2026-11-29[UTC]"]


def test_a_poke_works_only_what_was_owed_when_it_began(stage: Stage) -> None:
    gate = stage.gate("first")
    running = stage.start("close", *DAILY, command=stage.effect(gate.shell))
    gate.arrived()

    stage.clock.set("2026-11-30T12:00:00Z")
    gate.open()

    assert running.ended().code == 0
    assert stage.effects() == ["close:2026-11-28[UTC]"]


def test_a_changed_schedule_runs_nothing_and_ends_with_the_line_that_plans_it(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.clock.set("2026-11-30T12:00:00Z")

    said = stage.exec("close", "--period", "daily", "--zone", "UTC", "--at", "07:00", command=stage.effect())

    assert said.code == 78
    assert stage.effects() == ["close:2026-11-28[UTC]"]
    step = said.talk.splitlines()[-1]
    assert step == "  try: duly jobs plan close --period daily --zone UTC --at 07:00"


def test_the_lines_that_plan_and_apply_a_changed_schedule_can_be_run_and_then_exec_works(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    changed = ("--period", "daily", "--zone", "UTC", "--at", "07:00")
    said = stage.exec("close", *changed, command=stage.effect())
    _, words = said.talk.splitlines()[-1].split("try: duly ", 1)

    planned = stage.duly(*shlex.split(words))
    _, words = planned.talk.splitlines()[-1].split("next: duly ", 1)
    applied = stage.duly(*filled(f"duly {words}", "the feed comes later"))

    assert applied.code == 0, applied
    assert stage.exec("close", *changed, command=stage.effect()).code == 0


def test_an_unknown_job_without_a_schedule_is_64_with_the_line_to_type(stage: Stage) -> None:
    said = stage.exec("close", command=stage.effect())

    assert said.code == 64
    assert stage.effects() == []
    step = said.talk.splitlines()[-1]
    assert step.startswith("  try: duly exec close --period daily --zone ")
    assert step.endswith(" -- sh -c " + step.split(" -- sh -c ")[1])


def test_a_job_that_only_ran_outside_a_schedule_is_64_with_the_line_to_type_too(stage: Stage) -> None:
    stage.exec("close", "--adhoc", "a1", command=stage.effect())

    said = stage.exec("close", command=stage.effect())

    assert said.code == 64
    assert "--period daily --zone " in said.talk.splitlines()[-1]
    assert len(stage.effects()) == 1


# -- a clock a little fast ----------------------------------------------------------------------------------------------


def test_a_poke_half_a_minute_early_waits_for_its_day(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.clock.set("2026-11-30T05:59:30Z")

    running = stage.start("close", *DAILY, command=stage.effect())
    said = stage.step_until_over(running)

    assert said.code == 0
    assert stage.effects()[-1] == "close:2026-11-29[UTC]"
    assert stage.rows("select min(started_at - due) >= 0 from duly_run") == [(1,)]


def test_a_poke_with_registered_flags_waits_for_its_day_too(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.clock.set("2026-11-30T05:59:30Z")

    said = stage.step_until_over(stage.start("close", command=stage.effect()))

    assert said.code == 0
    assert len(stage.effects()) == 2


@pytest.mark.parametrize("flags", [("--every", "1m"), ()], ids=["flags given", "flags registered"])
def test_a_poke_earlier_than_a_quarter_of_the_period_does_not_wait(stage: Stage, flags: tuple[str, ...]) -> None:
    stage.exec("tick", "--every", "1m", command=stage.effect())
    stage.clock.set("2026-11-29T12:00:30Z")

    said = stage.exec("tick", *flags, command=stage.effect())  # or it would never end: nobody moves the clock

    assert said.code == 0
    assert len(stage.effects()) == 1


def test_a_poke_a_second_before_a_short_period_is_over_waits(stage: Stage) -> None:
    stage.exec("tick", "--every", "1m", command=stage.effect())
    stage.clock.set("2026-11-29T12:00:59Z")

    said = stage.step_until_over(stage.start("tick", command=stage.effect()), by=250_000)

    assert said.code == 0
    assert len(stage.effects()) == 2


def test_a_poke_more_than_a_minute_early_does_not_wait(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.clock.set("2026-11-30T05:58:30Z")

    assert stage.exec("close", *DAILY, command=stage.effect()).code == 0
    assert len(stage.effects()) == 1


# -- one that is named --------------------------------------------------------------------------------------------------


def test_a_named_window_is_worked_once(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())

    first = stage.exec("close", "--window", "2026-11-20", command=stage.effect())
    again = stage.exec("close", "--window", "2026-11-20", command=stage.effect())

    assert (first.code, again.code, again.talk) == (0, 0, "")
    assert stage.effects() == ["close:2026-11-28[UTC]", "close:2026-11-20[UTC]"]


def test_a_named_window_may_be_what_a_job_does_first(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--window", "2026-11-20", command=stage.effect())

    assert said.code == 0
    assert stage.effects() == ["close:2026-11-20[UTC]"]


def test_a_named_window_of_a_job_without_schedule_is_64_with_the_line_to_type(stage: Stage) -> None:
    said = stage.exec("close", "--window", "2026-11-20", command=stage.effect())

    assert said.code == 64
    assert "duly exec close --window 2026-11-20 --period daily --zone" in said.talk


def test_a_named_window_that_is_not_due_is_75(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--window", "2026-11-29", command=stage.effect())

    assert said.code == 75
    assert "not due before 2026-11-30T06:00" in said.talk
    assert stage.effects() == []


def test_a_named_window_off_the_grid_is_64_and_names_the_nearest(stage: Stage) -> None:
    schedule = ("--cron", "30 6 * * 1-5", "--zone", "UTC")
    said = stage.exec("close", *schedule, "--window", "2026-11-21T06:30", command=stage.effect())  # a Saturday

    assert said.code == 64
    assert "2026-11-20T06:30" in said.talk
    assert "2026-11-23T06:30" in said.talk
    assert stage.effects() == []


def test_a_named_window_that_failed_and_waits_is_79(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect("exit 2"))

    said = stage.exec("close", "--window", "2026-11-28", command=stage.effect())

    assert said.code == 79
    assert "duly explain close 2026-11-28" in said.talk
    assert len(stage.effects()) == 1


def test_a_named_window_whose_outcome_is_unknown_is_80(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect("exit 80"))

    said = stage.exec("close", "--window", "2026-11-28", command=stage.effect())

    assert said.code == 80
    assert "duly explain close 2026-11-28" in said.talk
    assert len(stage.effects()) == 1


def test_a_named_window_ignores_a_retry_time(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--retries", "2", "--no-retry", command=stage.effect("exit 2"))
    assert stage.exec("close", command=stage.effect()).code == 75

    said = stage.exec("close", "--window", "2026-11-28", command=stage.effect())

    assert said.code == 0
    assert len(stage.effects()) == 2


def test_a_named_window_that_was_skipped_is_0_and_silent(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.duly("skip", "close", "2026-11-20", "--reason", "a holiday")

    said = stage.exec("close", "--window", "2026-11-20", command=stage.effect())

    assert (said.code, said.talk) == (0, "")
    assert len(stage.effects()) == 1


def test_a_skipped_window_is_named_on_request(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())
    stage.duly("skip", "close", "2026-11-20", "--reason", "a holiday")

    said = stage.exec("close", "--window", "2026-11-20", "-v", command=stage.effect())

    assert said.code == 0
    assert "a holiday" in said.talk


def test_a_named_window_that_is_complete_needs_no_lock(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=stage.effect())

    with stage.foreign_writer():
        said = stage.exec("close", "--window", "2026-11-28", command=stage.effect())

    assert (said.code, said.talk) == (0, "")


def test_an_adhoc_run_prints_its_id_and_a_retry_that_passes_it_back_runs_nothing(stage: Stage) -> None:
    first = stage.exec("load", "--adhoc", command=stage.effect())
    adhoc = first.talk.split("--adhoc ")[1].split()[0]

    again = stage.exec("load", "--adhoc", adhoc, command=stage.effect())

    assert (first.code, again.code) == (0, 0)
    assert stage.effects() == [f"load:adhoc-{adhoc}"]


def test_each_adhoc_without_an_id_is_a_run_of_its_own(stage: Stage) -> None:
    stage.exec("load", "--adhoc", command=stage.effect())
    stage.exec("load", "--adhoc", command=stage.effect())

    assert len(set(stage.effects())) == 2


def test_a_failed_adhoc_run_waits_and_says_how_to_go_on(stage: Stage) -> None:
    stage.exec("load", "--adhoc", "a1", command=stage.effect("exit 4"))

    said = stage.exec("load", "--adhoc", "a1", command=stage.effect())

    assert said.code == 79
    assert "load:adhoc-a1" in said.talk.splitlines()[-1]


def test_an_adhoc_id_that_could_not_be_written_in_a_key_is_refused(stage: Stage) -> None:
    for adhoc in ("", " ", "a b", "a/b", "x" * 300):
        said = stage.exec("load", f"--adhoc={adhoc}", command=stage.effect())
        assert said.code == 64, adhoc
    assert stage.effects() == []


def test_a_window_and_an_adhoc_run_at_once_are_refused_before_anything_is_registered(stage: Stage) -> None:
    said = stage.exec("load", *DAILY, "--window", "2026-11-28", "--adhoc", "a", command=stage.effect())

    assert said.code == 64
    assert stage.rows("select * from duly_job") == []
