"""Which ledger is meant, which exit code an error has, and which schedule the flags describe: the pieces that exec shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly import errors
from duly.cli import codes
from duly.cli.ledgers import default_ledger_url, open_or_make_ledger, path_of_ledger
from duly.schedule.spec import Schedule, cron, daily, every, hourly, quarterly
from duly.times import parse_instant
from duly.work.schedule_flags import host_zone, line_with, schedule_given


def test_root_has_one_ledger_for_the_host_and_others_their_own() -> None:
    home = {"HOME": "/home/ana"}

    assert default_ledger_url(home, 0) == "sqlite:////var/lib/duly/ledger.db"
    assert default_ledger_url(home, 1000) == "sqlite:////home/ana/.local/state/duly/ledger.db"
    assert default_ledger_url({**home, "XDG_STATE_HOME": "/state"}, 1000) == "sqlite:////state/duly/ledger.db"


def test_a_relative_state_folder_is_ignored_as_its_specification_asks() -> None:
    environ = {"HOME": "/home/ana", "XDG_STATE_HOME": "state"}

    assert default_ledger_url(environ, 1000) == "sqlite:////home/ana/.local/state/duly/ledger.db"


def test_the_environment_names_the_ledger_for_everybody() -> None:
    environ = {"HOME": "/home/ana", "DULY_LEDGER": "sqlite:///jobs.db"}

    assert default_ledger_url(environ, 0) == default_ledger_url(environ, 1000) == "sqlite:///jobs.db"


def test_without_a_home_the_error_says_what_to_type() -> None:
    with pytest.raises(errors.Misuse, match="no home") as caught:
        default_ledger_url({}, 1000)

    assert caught.value.next_step == "export DULY_LEDGER=sqlite:////var/lib/duly/ledger.db"


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_LEDGER", "/of/the/environment.db")

    assert path_of_ledger("sqlite:////of/the/flag.db") == "/of/the/flag.db"
    assert path_of_ledger(None) == "/of/the/environment.db"


def test_the_folder_of_an_unnamed_ledger_is_made_and_that_of_a_named_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DULY_LEDGER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    open_or_make_ledger(None).close()
    with pytest.raises(errors.LedgerUnwritable):
        open_or_make_ledger(str(tmp_path / "typo" / "ledger.db"))

    assert (tmp_path / "state" / "duly" / "ledger.db").exists()
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Misuse(), 64),
        (errors.KeyInvalid(), 64),
        (errors.WindowInvalid(), 64),
        (errors.UnknownJob(), 64),
        (errors.BelowHorizon(), 64),
        (errors.NotAllowed(), 64),
        (errors.LedgerUnavailable(), 69),
        (errors.NoLedger(), 69),
        (errors.LedgerUnwritable(), 73),
        (errors.LedgerCorrupt(), 73),
        (errors.RunBusy(), 75),
        (errors.Conflict(), 75),
        (errors.LedgerBusy(), 75),
        (PermissionError(), 77),
        (errors.ScheduleError(), 78),
        (errors.ScheduleChanged(), 78),
        (errors.PayloadConflict(), 78),
        (errors.WrongLedger(), 78),
        (errors.LedgerTooNew(), 78),
        (errors.UnknownScope(), 78),
        (errors.RunFailed(), 79),
        (errors.OutcomeUnknown(), 80),
        (errors.ClaimLost(), 81),
        (ZeroDivisionError(), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_each_error_has_its_code(error: BaseException, code: int) -> None:
    assert codes.code_of(error) == code


def test_every_error_of_ours_has_a_code_of_its_own() -> None:
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DulyError)]
    bugs = {errors.NoTransaction, errors.TransactionOwned}  # they cannot come from a command line

    assert {kind for kind in ours if codes.code_of(kind()) == codes.OUR_BUG} == bugs


# -- schedule flags -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "schedule"),
    [
        ({"cron": ["30 2 * * *"], "zone": ["UTC"]}, cron("30 2 * * *", zone="UTC")),
        ({"cron": ["0 6 * * *", "0 18 * * *"], "zone": ["UTC"]}, cron("0 6 * * *", "0 18 * * *", zone="UTC")),
        ({"cron": ["CRON_TZ=Europe/Paris 0 6 * * *"]}, cron("0 6 * * *", zone="Europe/Paris")),
        ({"cron": ["0 2 * * *"], "zone": ["UTC"], "gap": ["skip"]}, cron("0 2 * * *", zone="UTC", gap="skip")),
        ({"every": ["15m"]}, every("15m")),
        (
            {"every": ["6h"], "anchor": ["2026-01-01T01:00:00Z"]},
            every("6h", anchor=parse_instant("2026-01-01T01:00:00Z")),
        ),
        ({"period": ["daily"], "zone": ["Europe/Paris"], "at": ["02:30"]}, daily("Europe/Paris", at="02:30")),
        ({"period": ["hourly"], "zone": ["UTC"], "fold": ["first"]}, hourly("UTC", fold="first")),
        ({"period": ["quarterly"], "zone": ["UTC"], "offset": ["apr"]}, quarterly("UTC", offset="apr")),
        ({}, None),
        ({"cron": []}, None),
    ],
)
def test_flags_describe_a_schedule(given: dict[str, list[str]], schedule: Schedule | None) -> None:
    found = schedule_given(given)

    assert (None if found is None else found.spec()) == (None if schedule is None else schedule.spec())


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"cron": ["0 2 * * *"], "every": ["15m"]}, "--cron and --every are two schedules"),
        ({"every": ["15m"], "zone": ["UTC"]}, "--zone does not fit --every"),
        ({"period": ["monthly"], "zone": ["UTC"], "offset": ["apr"]}, "--offset does not fit --period monthly"),
        ({"period": ["fortnightly"], "zone": ["UTC"]}, "'fortnightly' is no period"),
        ({"at": ["02:30"]}, "--at says how, but not when"),
        ({"period": ["daily"], "zone": ["UTC", "Europe/Paris"]}, "--zone is given twice"),
        ({"every": ["15m"], "anchor": ["monday"]}, "not an instant"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(given: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(errors.Misuse, match=complaint) as caught:
        schedule_given(given)

    assert codes.code_of(caught.value) == 64


def test_a_missing_zone_names_the_hosts_and_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Sao_Paulo")
    typed = ["duly", "exec", "close-day", "--period", "daily", "--", "./close.sh", "--zone"]

    with pytest.raises(errors.Misuse, match="this host is in America/Sao_Paulo") as caught:
        schedule_given({"period": ["daily"]}, typed=typed)

    assert caught.value.next_step == (
        "duly exec close-day --period daily --zone America/Sao_Paulo -- ./close.sh --zone"
    )


def test_a_line_to_type_is_quoted_for_the_shell() -> None:
    assert (
        line_with(["duly", "next", "--cron", "30 2 * * *"], "--zone", "UTC")
        == "duly next --cron '30 2 * * *' --zone UTC"
    )


def test_the_host_has_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)

    assert host_zone()
