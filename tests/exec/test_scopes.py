"""Scopes: one job, a run for each tenant. A job with scopes poked without --scope works each in turn."""

from __future__ import annotations

import signal

from tests.exec.stage import DAILY, Stage

SCOPES = ("acme", "beta", "gamma")


def with_scopes(stage: Stage, *flags: str) -> None:
    """A job whose three scopes have completed their first day; the next day is due."""
    for scope in SCOPES:
        stage.exec("bill", *DAILY, *flags, "--scope", scope, command=stage.effect(name="first"))
    stage.clock.set("2026-11-30T12:00:00Z")


def test_a_scope_is_part_of_a_runs_identity(stage: Stage) -> None:
    for scope in ("acme", "beta", "acme"):
        assert stage.exec("bill", *DAILY, "--scope", scope, command=stage.effect()).code == 0

    assert stage.effects() == ["acme/bill:2026-11-28[UTC]", "beta/bill:2026-11-28[UTC]"]


def test_a_scope_first_seen_is_added_and_an_event_says_so(stage: Stage) -> None:
    stage.exec("bill", *DAILY, "--scope", "acme", command=stage.effect())
    stage.exec("bill", *DAILY, "--scope", "Ünï/Cödé", command=stage.effect())

    assert [event for event in stage.events() if event[0] == "scope_added"] == [
        ("scope_added", "acme"),
        ("scope_added", "Ünï/Cödé"),
    ]
    assert stage.effects()[1] == "Ünï%2FCödé/bill:2026-11-28[UTC]"


def test_without_a_scope_each_of_the_roster_is_worked_in_turn(stage: Stage) -> None:
    with_scopes(stage)

    said = stage.exec("bill", *DAILY, command=stage.effect())

    assert said.code == 0
    assert stage.effects() == [f"{scope}/bill:2026-11-29[UTC]" for scope in SCOPES]
    assert stage.rows("select scope from duly_line order by scope") == [(scope,) for scope in SCOPES]


def test_without_a_scope_a_duplicate_is_silent_and_runs_nothing(stage: Stage) -> None:
    with_scopes(stage)
    stage.exec("bill", command=stage.effect())

    said = stage.exec("bill", "--exit-duplicate", "99", command=stage.effect())

    assert (said.code, said.talk) == (99, "")
    assert len(stage.effects()) == 3


def test_a_scope_that_fails_does_not_stop_the_others_and_its_code_is_answered(stage: Stage) -> None:
    with_scopes(stage)

    said = stage.exec("bill", command=stage.effect('[ "$DULY_SCOPE" != beta ] || exit 5'))

    assert said.code == 5
    assert len(stage.effects()) == 3
    assert "bill 2026-11-29 --scope beta" in said.talk


def test_a_scope_that_waits_for_a_person_is_said_and_the_others_are_worked(stage: Stage) -> None:
    with_scopes(stage)
    stage.exec("bill", "--scope", "acme", command=["false"])

    said = stage.exec("bill", command=stage.effect())

    assert said.code == 79
    assert stage.effects() == ["beta/bill:2026-11-29[UTC]", "gamma/bill:2026-11-29[UTC]"]
    assert "duly retry bill 2026-11-29 --scope acme" in said.talk


def test_one_stops_after_one_run_of_one_scope(stage: Stage) -> None:
    with_scopes(stage)

    assert stage.exec("bill", "--one", command=stage.effect()).code == 0

    assert stage.effects() == ["acme/bill:2026-11-29[UTC]"]


def test_a_named_window_without_a_scope_is_worked_for_each(stage: Stage) -> None:
    with_scopes(stage)
    stage.exec("bill", "--scope", "acme", "--window", "2026-11-20", command=stage.effect())

    said = stage.exec("bill", "--window", "2026-11-20", command=stage.effect())

    assert said.code == 0
    assert stage.effects() == [f"{scope}/bill:2026-11-20[UTC]" for scope in SCOPES]


def test_a_named_window_that_one_scope_skipped_is_worked_for_the_others(stage: Stage) -> None:
    with_scopes(stage)
    stage.duly("skip", "bill", "2026-11-20", "--scope", "acme", "--reason", "not a customer yet")

    said = stage.exec("bill", "--window", "2026-11-20", command=stage.effect())

    assert (said.code, said.talk) == (0, "")
    assert len(stage.effects()) == 2


def test_a_named_window_that_waits_in_one_scope_is_worked_for_the_others(stage: Stage) -> None:
    with_scopes(stage)
    stage.exec("bill", "--scope", "acme", "--window", "2026-11-20", command=["false"])

    said = stage.exec("bill", "--window", "2026-11-20", command=stage.effect())

    assert said.code == 79
    assert len(stage.effects()) == 2


def test_an_adhoc_run_of_a_job_with_scopes_must_say_whose_it_is(stage: Stage) -> None:
    with_scopes(stage)

    said = stage.exec("bill", "--adhoc", "a1", command=stage.effect())

    assert said.code == 64
    assert said.talk.splitlines()[-1].startswith("  try: duly exec bill --adhoc a1 --scope acme -- ")
    assert stage.effects() == []
    assert stage.rows("select count(*) from duly_line") == [(3,)]


def test_a_blank_scope_is_refused_and_does_not_mean_all_of_them(stage: Stage) -> None:
    with_scopes(stage)

    for blank in ("", " ", "\t"):
        said = stage.exec("bill", "--scope", blank, command=stage.effect())
        assert said.code == 64, blank
        said = stage.exec("bill", f"--scope={blank}", command=stage.effect())
        assert said.code == 64, blank

    assert stage.effects() == []


def test_after_a_term_no_further_scope_is_started(stage: Stage) -> None:
    with_scopes(stage)
    gate = stage.gate("child")
    running = stage.start(
        "bill",
        command=stage.effect(gate.heeding("TERM", "exit 0")),
    )
    gate.arrived()

    running.signal(signal.SIGTERM)

    assert running.ended().code == 0
    assert len(stage.effects()) == 1


# -- retired scopes -----------------------------------------------------------------------------------------------------


def test_a_poke_of_a_retired_scope_runs_nothing_and_says_so_where_it_is_asked(stage: Stage) -> None:
    stage.exec("bill", *DAILY, "--scope", "acme")
    stage.duly("jobs", "scopes", "retire", "bill", "acme", "--reason", "they left")
    stage.clock.set("2026-11-30T12:00:00Z")

    silent = stage.exec("bill", "--scope", "acme", command=stage.effect())
    said = stage.exec("bill", "--scope", "acme", "-v", command=stage.effect())
    named = stage.exec("bill", "--scope", "acme", "--window", "2026-11-29", "-v", command=stage.effect())
    aside = stage.exec("bill", "--scope", "acme", "--adhoc", "a1", command=stage.effect())

    assert (silent.code, silent.talk) == (0, "")
    assert (said.code, said.talk) == (0, "duly: bill: nothing owed; it was retired at 2026-11-29T12:00:00Z\n")
    assert named.code == 0
    assert "the scope was retired at 2026-11-29T12:00:00Z" in named.talk
    assert (aside.code, stage.effects()) == (0, [])


def test_a_poke_of_all_passes_retired_scopes_by_and_adds_no_other(stage: Stage) -> None:
    for scope in ("acme", "beta"):
        stage.exec("bill", *DAILY, "--scope", scope)
    stage.duly("jobs", "scopes", "retire", "bill", "acme", "--reason", "they left")
    stage.clock.set("2026-11-30T12:00:00Z")

    assert stage.exec("bill", command=stage.effect()).code == 0
    assert stage.effects() == ["beta/bill:2026-11-29[UTC]"]

    stage.duly("jobs", "scopes", "retire", "bill", "beta", "--reason", "they left")
    stage.clock.set("2026-12-02T12:00:00Z")
    assert stage.exec("bill", command=stage.effect()).code == 0
    assert len(stage.effects()) == 1
    assert stage.rows("select scope from duly_line order by scope") == [("acme",), ("beta",)]


def test_what_a_retired_scope_owed_is_worked_by_a_poke_of_all(stage: Stage) -> None:
    with_scopes(stage)
    stage.duly("jobs", "scopes", "retire", "bill", "acme", "--reason", "they left")
    stage.clock.set("2026-12-02T12:00:00Z")

    stage.exec("bill", command=stage.effect())

    assert stage.effects() == ["acme/bill:2026-11-29[UTC]", "beta/bill:2026-12-01[UTC]", "gamma/bill:2026-12-01[UTC]"]
