"""The configuration file: what it may say, what it means, who wins, and that no mistake in it runs anything."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from duly.cli.exec_flags import OPTIONS
from duly.errors import ConfigurationInvalid
from duly.outbox.destinations.kinds import KINDS
from duly.schedule.spec import cron, daily, every
from duly.schedule.written import FLAGS
from duly.times import DAY, MINUTE, SECOND
from duly.work.configuration import Daemon, JobEntry, Layers, read_configuration
from duly.work.configuration import schema as schemas
from duly.work.configuration.fields import DESTINATION, JOB, LEDGER, TABLES
from tests.exec.stage import Running, Stage, environment
from tests.story import Said

ROOT = Path(__file__).parents[2]
USAGE, CONFIGURATION = 64, 78
SECRET = "hunter2"

EXAMPLE = """
[ledger]
url = "sqlite:////var/lib/duly/ledger.db"

[jobs.close-day]
command   = ["./close.sh", "--day", "{date}"]
period    = "daily"
zone      = "Europe/Paris"
at        = "02:30"
catch_up  = { policy = "each", max = 3, max_age = "7d" }
effect    = "external"
grace     = "45m"
timeout   = "2h"
owner     = "finance-data"
"""

CLOSE = """
[jobs.close]
command = ["sh", "-c", "echo run {date} >> effects"]
period = "daily"
zone = "UTC"
at = "06:00"
catch_up = "latest"
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder with a ledger whose clock is set by hand, and nothing that names it but a file."""
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def write(folder: Path, text: str, name: str = "duly.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def duly(folder: Path, *words: str, **environ: str) -> Said:
    """A whole command line, typed in a folder, by a user whose home it is."""
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    return Running(words, environment(**{**home, **environ}), cwd=folder).ended()


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


def here(ledger: str = 'url = "sqlite:///ledger.db"') -> str:
    return f"[ledger]\n{ledger}\n"


def job(folder: Path, text: str) -> JobEntry:
    """What the text says of the job `j`."""
    write(folder, f"[jobs.j]\n{text}\n")
    return read_configuration(str(folder), {}, system="").jobs["j"]


# -- what a file means --------------------------------------------------------------------------------------------------


def test_the_example_means_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, EXAMPLE)

    found = read_configuration(str(tmp_path), {}, system="")
    entry = found.jobs["close-day"]

    assert found.files == (str(tmp_path / "duly.toml"),)
    assert found.ledger is not None
    assert found.ledger.url({}) == "sqlite:////var/lib/duly/ledger.db"
    assert found.daemon == Daemon(concurrency=8, per_job=2, poll=5 * SECOND)
    assert entry.command == (str(tmp_path / "close.sh"), "--day", "{date}")
    assert entry.declaration.schedule == daily("Europe/Paris", at="02:30")
    assert entry.declaration.policies == {
        "catch_up": "each max=3 max_age=7d",
        "contract": "external",
        "remembers": None,
        "grace": 45 * MINUTE,
        "timeout": 120 * MINUTE,
        "owner": "finance-data",
    }


def test_every_key_is_read(tmp_path: Path) -> None:
    entry = job(
        tmp_path,
        """
        command = ["true"]
        cron = ["0 6 * * *", "0 18 * * *"]
        zone = "Europe/Berlin"
        catch_up = "each max=3"
        effect = "idempotent"
        remembers = "1d"
        clean_exits = [75, 111]
        retries = 3
        retry_delay = "10s"
        retry_ceiling = "10m"
        lease = "30s"
        retain = "90d"
        overlap = "yes"
        ordered = true
        scopes = ["acme", "globex"]
        no_retry = true
        one = true
        output = "out/{date}.csv"
        replace = true
        chronic = true
        outcome_file = "/run/outcome"
        exit_duplicate = 99
        settle = "5m"
        """,
    )

    order = entry.order({"A": "b"}, "daemon")

    assert entry.declaration.schedule == cron("0 6 * * *", "0 18 * * *", zone="Europe/Berlin")
    assert entry.declaration.scopes == ("acme", "globex")
    assert entry.declaration.policies == {
        "catch_up": "each max=3",
        "contract": "idempotent",
        "remembers": DAY,
        "clean_exits": "75,111",
        "retries": 3,
        "retry_delay": 10 * SECOND,
        "retry_ceiling": 10 * MINUTE,
        "lease": 30 * SECOND,
        "retain": 90 * DAY,
        "overlap": 1,
        "ordered": 1,
        "roster": "closed",
    }
    assert (order.argv, order.environment, order.trigger) == (["true"], {"A": "b"}, "daemon")
    assert (order.settle_seconds, order.retry_in_place, order.only_one, order.chronic) == (300.0, False, True, True)
    assert order.output is not None
    assert (order.output.final, order.output.may_replace) == (str(tmp_path / "out/{date}.csv"), True)
    assert entry.flags["exit-duplicate"] == ["99"]
    assert entry.flags["outcome-file"] == ["/run/outcome"]


def test_an_interval_and_a_calendar_are_read(tmp_path: Path) -> None:
    write(tmp_path, "sat sun", "days/trading")

    assert job(tmp_path, 'every = "15m"\ncatch_up = "fresh"').declaration.schedule == every("15m")
    schedule = job(
        tmp_path, 'period = "daily"\nzone = "UTC"\ncatch_up = "each"\ncalendar = "days/trading"\ndays_off = "skip"'
    ).declaration.schedule

    assert schedule is not None
    assert schedule.calendar is not None
    assert (schedule.calendar.calendar.name, schedule.calendar.policy) == ("trading", "skip")


def test_a_job_may_leave_its_schedule_and_its_command_to_others(tmp_path: Path) -> None:
    entry = job(tmp_path, 'grace = "5m"')

    assert (entry.command, entry.declaration.schedule) == (None, None)
    with pytest.raises(ValueError, match=r"does not say what is run; write command = "):
        entry.order({}, "daemon")


def test_what_remembers_for_ever_says_so(tmp_path: Path) -> None:
    policies = job(tmp_path, 'effect = "idempotent"\nremembers = "forever"').declaration.policies

    assert policies == {"contract": "idempotent", "remembers": None}


def test_the_daemon_is_told_its_bounds(tmp_path: Path) -> None:
    write(tmp_path, '[daemon]\nconcurrency = 3\nper_job = 1\npoll = "250ms"')

    assert read_configuration(str(tmp_path), {}, system="").daemon == Daemon(3, 1, SECOND // 4)


def test_a_relative_path_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, '[ledger]\nurl = "sqlite:///jobs.db"\n[jobs.j]\ncommand = ["bin/close", "./a"]\n')
    (tmp_path / "deep" / "er").mkdir(parents=True)

    found = read_configuration(str(tmp_path / "deep" / "er"), {}, system="")

    assert found.ledger is not None
    assert found.ledger.url({}) == f"sqlite:///{tmp_path}/jobs.db"
    assert found.jobs["j"].command == (f"{tmp_path}/bin/close", "./a")


# -- mistakes -----------------------------------------------------------------------------------------------------------

SCHEDULED = 'zone = "UTC"\ncatch_up = "latest"\n'

MISTAKES: dict[str, tuple[str, tuple[str, ...]]] = {
    "unknown key": ('zome = "UTC"', ("[jobs.j] has no key 'zome'", "did you mean zone?")),
    "unknown key with a dash": ('days-off = "skip"', ("'days-off'", "did you mean days_off?")),
    "unknown key like nothing": ("qqqqqq = 1", ("has no key 'qqqqqq'",)),
    "command as a text": (
        'command = "./close.sh --day {date}"',
        ("[jobs.j] command: ", 'write command = ["./close.sh", "--day", "{date}"]'),
    ),
    "command for a shell": ('command = "a | b"', ('write command = ["sh", "-c", "a | b"]',)),
    "command that is empty": ("command = []", ("command: it is a list of words",)),
    "command of a number": ('command = ["sleep", 5]', ('command: 5 is no text; write "5"',)),
    "command with a NUL": ('command = ["a\\u0000"]', ("command: a word with a NUL",)),
    "a period that is none": (
        SCHEDULED + 'period = "dayly"',
        ("period: 'dayly' is none of hourly, daily", "did you mean daily?"),
    ),
    "a schedule without a zone": (
        'period = "daily"\ncatch_up = "latest"',
        ("[jobs.j] period needs a zone", 'this host would write zone = "'),
    ),
    "a zone that is none": (
        'period = "daily"\nzone = "Mars/Olympus"\ncatch_up = "latest"',
        ("[jobs.j] zone: ", "Mars/Olympus"),
    ),
    "two schedules": (SCHEDULED + 'period = "daily"\ncron = "0 6 * * *"', ("cron and period are two schedules",)),
    "how but not when": ('zone = "UTC"', ("zone says how, but not when; add cron, period or every",)),
    "a key that does not fit": (
        'every = "15m"\nat = "02:30"\ncatch_up = "latest"',
        ("at does not fit every, which takes anchor",),
    ),
    "a key that does not fit the period": (
        SCHEDULED + 'period = "hourly"\nat = "02:30"',
        ('at does not fit period = "hourly"',),
    ),
    "a cron line": (SCHEDULED + 'cron = "61 2 * * *"', ("[jobs.j] cron: ", "minute", "61")),
    "a cron line of several": (SCHEDULED + 'cron = ["0 2 * * *", "0 2 * * 9"]', ("[jobs.j] cron: ", "9")),
    "a cron line that is a number": (SCHEDULED + "cron = 5", ('cron: 5 is no text; write cron = "5"',)),
    "an interval without a unit": ("every = 15", ('every: 15 has no unit; write every = "15s"',)),
    "an interval that is none": ('every = "often"\ncatch_up = "latest"', ("every: 'often'",)),
    "a time of day of TOML's": (
        SCHEDULED + 'period = "daily"\nat = 02:30:00',
        ('at: 02:30:00 is no text; write at = "02:30"',),
    ),
    "a time of day that is none": (SCHEDULED + 'period = "daily"\nat = "25:00"', ("at: '25:00'",)),
    "an instant of TOML's": (
        'every = "1h"\nanchor = 2026-01-01T00:00:00Z\ncatch_up = "latest"',
        ('write anchor = "2026-01-01T00:00:00Z"',),
    ),
    "an anchor that is none": ('every = "1h"\nanchor = "dawn"\ncatch_up = "latest"', ("anchor: 'dawn'",)),
    "a calendar that is not there": (
        SCHEDULED + 'period = "daily"\ncalendar = "no.days"\ndays_off = "skip"',
        ("calendar: ", "no.days cannot be read"),
    ),
    "a calendar without days_off": (
        SCHEDULED + 'period = "daily"\ncalendar = "no.days"',
        ("calendar says which days are off, days_off what is done about them",),
    ),
    "no catch_up beside a schedule": ('period = "daily"\nzone = "UTC"', ("catch_up: beside a schedule", '"latest"')),
    "a catch_up that is none": ('catch_up = "some"', ("[jobs.j] catch_up.policy: 'some'", "each, latest, fresh")),
    "a catch_up that is a number": ("catch_up = 3", ("catch_up: 3 is no policy",)),
    "an age without a unit": (
        'catch_up = {policy = "each", max_age = 7}',
        ('catch_up.max_age: 7 has no unit; write max_age = "7d"',),
    ),
    "a key of catch_up": ('catch_up = {policy = "each", maxage = "7d"}', ("catch_up.maxage",)),
    "a duration without a unit": ("timeout = 120", ('timeout: 120 has no unit; write timeout = "120s"',)),
    "a duration that is none": ('grace = "soon"', ("grace: 'soon' is not a duration; write it like 90s",)),
    "a duration beyond all time": (f'grace = "{"9" * 30}d"', ("grace: ", "thousand years")),
    "a duration that is true": ("grace = true", ("grace: true is no text",)),
    "a lease too short": ('lease = "1ms"', ("[jobs.j] lease: it lies between",)),
    "an effect that is none": ('effect = "idempotentt"', ("effect: ", "did you mean idempotent?")),
    "idempotent without remembers": ('effect = "idempotent"', ("remembers: ", 'write remembers = "24h"')),
    "remembers without idempotent": ('remembers = "1d"', ("remembers: an idempotent effect, and no other",)),
    "retries as a text": ('retries = "3"', ("retries: '3' is not a whole number", "write retries = 3")),
    "retries that are true": ("retries = true", ("retries: true is not a whole number",)),
    "retries below nothing": ("retries = -1", ("retries: -1 is not a whole number between 0",)),
    "clean exits as a text": ('clean_exits = "75,111"', ("write clean_exits = [75,111]",)),
    "clean exits as a number": ("clean_exits = 75", ("write clean_exits = [75]",)),
    "clean exit 80": ("clean_exits = [80]", ("clean_exits: 80 is how a command says",)),
    "clean exit 193": ("clean_exits = [193]", ("clean_exits: 193 is not an exit code",)),
    "overlap that is none": ('overlap = "maybe"', ("overlap: 'maybe' is neither true nor false",)),
    "a switch as a text": ('chronic = "yes"', ("chronic: 'yes' is neither true nor false; write chronic = true",)),
    "an owner that is a number": ("owner = 5", ('owner: 5 is no text; write owner = "5"',)),
    "an owner that is blank": ('owner = " "', ("owner: it is blank",)),
    "scopes as a text": ('scopes = "acme"', ('write scopes = ["acme"]',)),
    "scopes of nothing": ("scopes = []", ("scopes: an empty list",)),
    "a scope twice": ('scopes = ["a", "a"]', ("scopes: a name is listed twice",)),
    "a scope that is none": ('scopes = ["a "]', ("[jobs.j] scope",)),
    "replace without output": ("replace = true", ("replace: it goes with output",)),
    "a code that no process has": ("exit_duplicate = 256", ("exit_duplicate: 256",)),
}

MISTAKES_OF_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "not TOML": ("a = = 1", ("it is not TOML: ", "line 1")),
    "an unknown table": ("[job.j]", ("[job] is none of the tables", "did you mean jobs?")),
    "the table of a project": ("[tool.duly.jobs.j]", ("[tool] is none of the tables", "stands by itself")),
    "jobs that are no table": ("jobs = 1", ("jobs: it is no table; write [jobs]",)),
    "a job that is no table": ("[jobs]\nj = 1", ("jobs.j: it is no table; write [jobs.j]",)),
    "a name that is none": ('[jobs."a b"]', ("[jobs.a b]", "'a b'")),
    "an unknown key of the ledger": ('[ledger]\nulr = "x"', ("[ledger] has no key 'ulr'; did you mean url?",)),
    "two addresses": ('[ledger]\nurl = "a.db"\nurl_env = "B"', ("[ledger] url and url_env both say",)),
    "a busy time-out without a unit": ("[ledger]\nbusy_timeout = 5", ('write busy_timeout = "5s"',)),
    "a variable that is none": ('[ledger]\nurl_env = "$B"', ("url_env: it takes the name of a variable, without $",)),
    "an unknown key of the daemon": ("[daemon]\nconcurency = 5", ("[daemon] has no key", "concurrency?")),
    "no concurrency": ("[daemon]\nconcurrency = 0", ("[daemon] concurrency: 0", "write concurrency = 1")),
    "a poll without a unit": ("[daemon]\npoll = 5", ('[daemon] poll: 5 has no unit; write poll = "5s"',)),
}


@pytest.mark.parametrize("name", [*MISTAKES, *MISTAKES_OF_FILES])
def test_a_mistake_is_named_with_its_file_its_table_and_its_key(tmp_path: Path, name: str) -> None:
    text, said = MISTAKES_OF_FILES.get(name) or (f"[jobs.j]\n{MISTAKES[name][0]}\n", MISTAKES[name][1])
    path = write(tmp_path, text)

    with pytest.raises(ConfigurationInvalid) as caught:
        read_configuration(str(tmp_path), {}, system="")

    assert str(caught.value).startswith(f"{path}: ")
    for each in said:
        assert each in str(caught.value)
    assert caught.value.next_step == f"duly jobs check {path}"


def test_bytes_that_are_no_text_are_named_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "duly.toml").write_bytes(b"[jobs.j]\nowner = '\xff'")

    with pytest.raises(ConfigurationInvalid, match=r"not text in UTF-8 \(byte 18\)"):
        read_configuration(str(tmp_path), {}, system="")


def test_a_mark_of_order_and_ends_of_lines_from_elsewhere_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "duly.toml").write_bytes(b'\xef\xbb\xbf[jobs.j]\r\nowner = "ana"\r\n')

    assert read_configuration(str(tmp_path), {}, system="").jobs["j"].declaration.policies == {"owner": "ana"}


def test_nothing_runs_after_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, here() + CLOSE + "timeout = 120\n")

    said = duly(tmp_path, "exec", "close")

    assert (said.code, said.out) == (CONFIGURATION, "")
    assert said.talk == (
        f'duly: {path}: [jobs.close] timeout: 120 has no unit; write timeout = "120s" if seconds are meant\n'
        f"  try: duly jobs check {path}\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["duly.toml"]


def test_a_mistake_in_one_job_does_not_stop_another(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE + "[jobs.other]\ntimeout = 120\n")

    assert duly(stage.folder, "exec", "close").code == 0
    assert duly(stage.folder, "exec", "other", "--", "true").code == CONFIGURATION


# -- where files lie ----------------------------------------------------------------------------------------------------


def test_the_nearest_file_upwards_counts_then_the_users_then_the_systems(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    near = write(tmp_path / "a", '[jobs.j]\nowner = "near"')
    write(tmp_path, '[jobs.j]\nowner = "further"\n[jobs.k]')
    user = write(tmp_path / "config", '[jobs.j]\nowner = "user"\n[jobs.u]\nowner = "user"', "duly/duly.toml")
    system = write(tmp_path, '[jobs.u]\nowner = "system"\n[jobs.s]\nowner = "system"', "etc/duly.toml")

    found = read_configuration(str(deep), {"XDG_CONFIG_HOME": str(tmp_path / "config")}, system=str(system))

    assert found.files == (str(near), str(user), str(system))
    owners = {name: entry.declaration.policies["owner"] for name, entry in found.jobs.items()}
    assert owners == {"j": "near", "u": "user", "s": "system"}


def test_a_table_comes_whole_from_the_nearest_file_that_has_it(tmp_path: Path) -> None:
    write(tmp_path, '[jobs.j]\nowner = "near"')
    user = write(
        tmp_path, '[ledger]\nurl = "/l.db"\n[jobs.j]\ngrace = "5m"\n[daemon]\nper_job = 3', "h/.config/duly/duly.toml"
    )

    found = read_configuration(str(tmp_path), {"HOME": str(tmp_path / "h")}, system="")

    assert found.files[1] == str(user)
    assert found.jobs["j"].declaration.policies == {"owner": "near"}
    assert found.daemon.per_job == 3
    assert found.ledger is not None
    assert found.ledger.url({}) == "/l.db"


def test_a_file_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path, "[jobs.near]")
    write(tmp_path, "[jobs.user]", "duly/duly.toml")
    named = write(tmp_path, "[jobs.named]", "other.toml")

    environ = {"DULY_CONFIG": str(named), "XDG_CONFIG_HOME": str(tmp_path)}

    assert list(read_configuration(str(tmp_path), environ).jobs) == ["named"]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.duly.jobs.j]\nowner = 'ana'",
        "[ tool . duly . jobs . j ]\nowner = 'ana'",
        "[tool.'duly'.jobs.j]\nowner = 'ana'",
        "[tool]\nduly.jobs.j.owner = 'ana'",
        "tool.duly.jobs.j.owner = 'ana'",
        "tool = {duly = {jobs = {j = {owner = 'ana'}}}}",
    ],
)
def test_a_project_has_it_among_its_tools(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text, "pyproject.toml")

    found = read_configuration(str(tmp_path), {}, system="")

    assert found.files == (str(path),)
    assert found.jobs["j"].declaration.policies == {"owner": "ana"}


def test_a_project_that_does_not_speak_of_duly_is_passed_by(tmp_path: Path) -> None:
    write(tmp_path, "[jobs.j]")
    write(tmp_path, "[project]\nname = 'duly-jobs'\n[tool.ruff]\n[this is no TOML", "a/pyproject.toml")

    assert list(read_configuration(str(tmp_path / "a"), {}, system="").jobs) == ["j"]


def test_a_mistake_in_a_project_is_named_with_its_whole_table(tmp_path: Path) -> None:
    path = write(tmp_path, "[tool.duly.jobs.j]\nowner = 5", "pyproject.toml")

    with pytest.raises(ConfigurationInvalid) as caught:
        read_configuration(str(tmp_path), {}, system="")

    assert str(caught.value).startswith(f"{path}: [tool.duly.jobs.j] owner: ")


def test_its_own_file_goes_before_the_projects(tmp_path: Path) -> None:
    write(tmp_path, "[jobs.own]")
    write(tmp_path, "[tool.duly.jobs.project]", "pyproject.toml")

    assert list(read_configuration(str(tmp_path), {}, system="").jobs) == ["own"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_a_stranger_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, here() + CLOSE)
    os.chown(path, 12345, 12345)

    said = duly(tmp_path, "exec", "close", "--", "true")

    assert said.code == CONFIGURATION
    assert f"{path} belongs to another user (uid 12345)" in said.talk
    assert said.talk.endswith(f"try: export DULY_CONFIG={path}\n")
    assert duly(tmp_path, "exec", "close", "--config", str(path)).code == 0
    assert len(effects(tmp_path)) == 1


def test_a_file_that_is_named_and_not_there_is_an_error(tmp_path: Path) -> None:
    for said in (duly(tmp_path, "status", "--config", "no.toml"), duly(tmp_path, "status", DULY_CONFIG="no.toml")):
        assert said.code == CONFIGURATION
        assert f"duly: {tmp_path}/no.toml: it cannot be read: No such file or directory" in said.talk


# -- the ledger ---------------------------------------------------------------------------------------------------------


def test_the_ledger_is_that_of_the_flag_the_environment_the_files_in_this_order(tmp_path: Path) -> None:
    write(tmp_path, here('url = "sqlite:///near.db"'))
    write(tmp_path, here('url = "sqlite:////user/user.db"'), "config/duly/duly.toml")

    def named(*words: str, **environ: str) -> str:
        return duly(tmp_path, "status", *words, **environ).talk.splitlines()[0]

    there = "duly: there is no ledger at {}; `duly exec` makes one at its first run"
    by_flag, by_variable = there.format("/flag.db"), there.format("/variable.db")
    assert named("--ledger", "/flag.db", DULY_LEDGER="/variable.db") == f"{by_flag} (named by --ledger)"
    assert named(DULY_LEDGER="/variable.db") == f"{by_variable} (named by $DULY_LEDGER)"
    near = f"(named by url in [ledger] of {tmp_path}/duly.toml)"
    assert named() == f"{there.format(tmp_path / 'near.db')} {near}"
    (tmp_path / "duly.toml").write_text("[jobs.j]\n")
    user = f"(named by url in [ledger] of {tmp_path}/config/duly/duly.toml)"
    assert named() == f"{there.format('/user/user.db')} {user}"
    (tmp_path / "config/duly/duly.toml").unlink()
    assert named(XDG_STATE_HOME=str(tmp_path)).startswith("duly: there is no ledger at ")


def test_a_ledger_is_named_by_a_variable_or_in_a_file_of_its_own(stage: Stage) -> None:
    for ledger, environ in (('url_env = "SHOP"', {"SHOP": stage.path}), ('url_file = "secret"', {})):
        write(stage.folder, f"sqlite:///{stage.path}\n", "secret")
        write(stage.folder, here(ledger) + CLOSE)

        assert duly(stage.folder, "exec", "close", **environ).code == 0

    assert stage.states() == {"2026-11-28": "completed"}
    assert effects(stage.folder) == ["run 2026-11-28"]


def test_a_command_does_not_see_the_variable_that_names_the_ledger(stage: Stage) -> None:
    write(stage.folder, here('url_env = "SHOP"') + CLOSE)

    said = duly(stage.folder, "exec", "close", "--", "env", SHOP=stage.path)

    assert "DULY_JOB=close" in said.out
    assert stage.path not in said.out


SECRETS: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "a URL of another kind": (f'url = "mysql://duly:{SECRET}@db/shop"', {}, ("mysql://…", "named by url in [ledger]")),
    "a list of URLs": (f'url = ["postgresql://duly:{SECRET}@db/shop"]', {}, ("[ledger] url: it takes one text",)),
    "a URL for a variable's name": (f'url_env = "postgresql://duly:{SECRET}@db/shop"', {}, ("url_env: it takes the",)),
    "a URL for a file's name": (f'url_file = "postgresql://duly:{SECRET}@db/shop"', {}, ("url_file: it takes the",)),
    "a variable that is not set": ('url_env = "SHOP"', {}, ("url_env: the variable SHOP is not set", "export SHOP=")),
    "a variable of another kind": ('url_env = "SHOP"', {"SHOP": f"mysql://duly:{SECRET}@db"}, ("url_env ($SHOP) in",)),
    "a file that is not there": ('url_file = "no"', {}, ("url_file: ", "no cannot be read")),
    "a file of two lines": ('url_file = "two"', {}, ("two holds no URL on one line",)),
    "a file of bytes": ('url_file = "bytes"', {}, ("bytes is not text in UTF-8",)),
    "a server that is not there": (
        f'url = "postgresql://duly:{SECRET}@127.0.0.1:1/shop?password={SECRET}"',
        {},
        ("named by url in [ledger] of",),
    ),
}


@pytest.mark.parametrize("name", list(SECRETS))
def test_no_error_shows_a_password(tmp_path: Path, name: str) -> None:
    ledger, environ, words = SECRETS[name]
    write(tmp_path, f"postgresql://duly:{SECRET}@a/b\npostgresql://duly:{SECRET}@c/d\n", "two")
    (tmp_path / "bytes").write_bytes(b"postgresql://duly:" + SECRET.encode() + b"\xff@a/b")
    write(tmp_path, here(ledger) + CLOSE)

    for command in (("exec", "close"), ("status",), ("jobs", "check")):
        said = duly(tmp_path, *command, **environ)

        assert SECRET not in said.out + said.talk
        if command[0] != "jobs":
            assert said.code != 0
            assert all(word in said.talk for word in words), said
    assert effects(tmp_path) == []


def test_nothing_that_python_prints_shows_a_password(tmp_path: Path) -> None:
    write(tmp_path, here(f'url = "postgresql://duly:{SECRET}@db/shop"'))

    found = read_configuration(str(tmp_path), {}, system="")

    assert SECRET not in repr(found)
    assert found.ledger is not None
    assert found.ledger.shows_password
    assert SECRET in found.ledger.url({})


# -- exec ---------------------------------------------------------------------------------------------------------------


def test_exec_takes_all_of_a_job_from_the_file(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE + 'grace = "45m"\nowner = "ana"\n')
    (stage.folder / "below").mkdir()

    assert duly(stage.folder, "exec", "close").code == 0
    assert duly(stage.folder, "exec", "close").code == 0

    assert effects(stage.folder) == ["run 2026-11-28"]
    assert stage.rows("select owner, grace, catch_up from duly_job") == [("ana", 45 * MINUTE, "latest")]


def test_a_command_and_flags_win_over_the_file_key_by_key(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE + 'grace = "45m"\nowner = "ana"\n')

    said = duly(stage.folder, "exec", "close", "--owner", "ben", "--", "sh", "-c", "echo mine >> effects")

    assert said.code == 0
    assert effects(stage.folder) == ["mine"]
    assert stage.rows("select owner, grace from duly_job") == [("ben", 45 * MINUTE)]


def test_a_schedule_of_flags_takes_the_place_of_the_files_whole(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE)

    assert duly(stage.folder, "exec", "close", "--period", "daily", "--zone", "UTC").code == 0

    assert stage.rows("select at from duly_version") == [("",)]  # not the 06:00 of the file


def test_a_file_that_declares_another_schedule_runs_nothing(stage: Stage) -> None:
    path = write(stage.folder, here() + CLOSE)
    assert duly(stage.folder, "exec", "close").code == 0
    stage.clock.advance("1d")
    path.write_text(path.read_text().replace("06:00", "07:00"))

    said = duly(stage.folder, "exec", "close")

    assert said.code == CONFIGURATION
    assert "worked at 07:00" in said.talk
    assert said.talk.splitlines()[-1] == "  try: duly jobs plan close --period daily --zone UTC --at 07:00"
    assert duly(stage.folder, "jobs", "apply", "close", "--reason", "why it changes").code == 0
    assert duly(stage.folder, "exec", "close").code == 0
    assert effects(stage.folder) == ["run 2026-11-28", "run 2026-11-29"]


def test_remembers_may_be_typed_for_an_idempotent_job_of_the_file(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE + 'effect = "idempotent"\nremembers = "1d"\n')

    assert duly(stage.folder, "exec", "close", "--remembers", "2d").code == 0
    assert stage.rows("select contract, remembers from duly_job") == [("idempotent", 2 * DAY)]
    assert duly(stage.folder, "exec", "close", "--effect", "external").code == 0
    assert stage.rows("select contract, remembers from duly_job") == [("external", None)]
    said = duly(stage.folder, "exec", "close", "--effect", "external", "--remembers", "2d")
    assert (said.code, "--remembers" in said.talk) == (USAGE, True)


def test_how_it_is_worked_comes_from_the_file_too(stage: Stage) -> None:
    write(
        stage.folder,
        here()
        + CLOSE.replace("echo run {date} >> effects", "echo whole > $DULY_OUTPUT; echo talk")
        + 'output = "{label}.txt"\nchronic = true\nexit_duplicate = 99\noutcome_file = "outcome.json"\n',
    )

    said = duly(stage.folder, "exec", "close")

    assert (said.code, said.out) == (0, "")
    assert (stage.folder / "2026-11-28.txt").read_text() == "whole\n"
    assert json.loads((stage.folder / "outcome.json").read_text())["code"] == 0
    assert duly(stage.folder, "exec", "close").code == 99


def test_the_scopes_of_a_file_are_worked_in_turn_and_no_others(stage: Stage) -> None:
    command = 'command = ["sh", "-c", "echo {scope} >> effects"]\n'
    write(stage.folder, here() + CLOSE.replace("command", "#") + command + 'scopes = ["globex", "acme"]\n')

    assert duly(stage.folder, "exec", "close").code == 0
    said = duly(stage.folder, "exec", "close", "--scope", "initech")

    assert effects(stage.folder) == ["globex", "acme"]
    assert said.code == CONFIGURATION
    assert "close has the scopes globex, acme, not 'initech'" in said.talk


def test_a_job_that_is_not_configured_needs_a_command(tmp_path: Path) -> None:
    path = write(tmp_path, here() + CLOSE)

    said = duly(tmp_path, "exec", "closed")

    assert said.code == CONFIGURATION
    assert said.talk.startswith(f"duly: no job 'closed' is configured in {path}; did you mean close?\n")
    path.write_text(here() + CLOSE.replace("command", "#"))
    said = duly(tmp_path, "exec", "close")
    assert said.code == USAGE
    assert said.talk.endswith("try: duly exec close -- ./command\n")


def test_a_job_that_no_file_has_is_worked_as_before(stage: Stage) -> None:
    write(stage.folder, here() + CLOSE)

    assert duly(stage.folder, "exec", "other", "--every", "1d", "--", "true").code == 0


def test_a_busy_ledger_is_waited_for_as_the_file_says(stage: Stage) -> None:
    write(stage.folder, here('url = "sqlite:///ledger.db"\nbusy_timeout = "10ms"') + CLOSE)

    with stage.foreign_writer():
        said = duly(stage.folder, "exec", "close")

    assert said.code == 75


# -- jobs check ---------------------------------------------------------------------------------------------------------


def test_check_says_what_a_file_means(stage: Stage) -> None:
    path = write(stage.folder, here() + CLOSE + 'grace = "45m"\n')

    said = duly(stage.folder, "jobs", "check")

    assert (said.code, said.talk) == (0, "")
    assert said.out.splitlines() == [
        f"close   {path}",
        "  schedule   daily in UTC, worked at 06:00 the next morning",
        "  command    sh -c 'echo run {date} >> effects'",
        "  catch_up   latest",
        "  grace      45m",
        "  ledger     does not have it; its first run registers it",
        "  2026-11-29   24 h   due Mon 30 Nov 06:00Z",
        "  2026-11-30   24 h   due Tue 1 Dec 06:00Z",
        "  2026-12-01   24 h   due Wed 2 Dec 06:00Z",
    ]


def test_check_says_what_the_ledger_has_otherwise(stage: Stage) -> None:
    path = write(stage.folder, here() + CLOSE)
    duly(stage.folder, "exec", "close")
    assert "ledger     has it so, as version 1" in duly(stage.folder, "jobs", "check").out
    path.write_text(path.read_text().replace("06:00", "07:00") + 'grace = "45m"\n')

    said = duly(stage.folder, "jobs", "check", str(path))

    assert said.code == CONFIGURATION
    assert "ledger     has version 1 in force: daily in UTC, worked at 06:00" in said.out
    assert "grace      45m   (the ledger has none until the next run)" in said.out
    step = f"duly jobs apply close --reason '…' --dry-run --config {path}"
    assert said.talk.endswith(f"  try: {step}\n")


def test_check_goes_on_after_a_mistake_and_names_each(tmp_path: Path) -> None:
    write(tmp_path, CLOSE + "[jobs.a]\ntimeout = 120\n[jobs.b]\nowner = 5\n[daemon]\npoll = 5\n")

    said = duly(tmp_path, "jobs", "check", "--json")

    assert said.code == CONFIGURATION
    assert [one["job"] for one in said.document["jobs"]] == ["close"]
    assert len(said.document["problems"]) == 3
    assert all(problem in said.talk for problem in said.document["problems"])


def test_check_needs_no_ledger(tmp_path: Path) -> None:
    write(tmp_path, here() + CLOSE)

    said = duly(tmp_path, "jobs", "check", "--json")

    assert said.code == 0
    assert "the files alone are checked: there is no ledger at " in said.talk
    assert said.document["schema"] == "duly.configuration.v1"
    assert said.document["jobs"][0]["ledger"] == "unseen"


def test_check_shows_lints(tmp_path: Path) -> None:
    write(tmp_path, '[jobs.j]\ncron = "0 0 * * *"\nzone = "UTC"\ncatch_up = "latest"\n')

    out = duly(tmp_path, "jobs", "check").out

    assert "instead: period daily" in out


def test_check_warns_of_a_password_in_a_file(tmp_path: Path) -> None:
    write(tmp_path, here(f'url = "postgresql://duly:{SECRET}@127.0.0.1:1/shop"') + CLOSE)

    said = duly(tmp_path, "jobs", "check")

    assert "has a password, for whoever may read the file" in said.talk


def test_without_a_file_there_is_nothing_to_check(tmp_path: Path) -> None:
    said = duly(tmp_path, "jobs", "check", "--config", "/dev/null")
    assert (said.code, said.talk) == (0, said.talk)
    assert "no job is configured" in said.talk


# -- one table of fields ------------------------------------------------------------------------------------------------


def test_a_file_can_say_all_that_the_flags_can() -> None:
    of_one_call = {"scope", "window", "adhoc", "verbose", "quiet", "config", "backfill", "log-format", "trigger"}
    of_the_ledger = {"ledger": "url", "busy-timeout": "busy_timeout"}

    flags = {name.replace("-", "_") for name in {*FLAGS, *OPTIONS} - of_one_call - set(of_the_ledger)}

    assert flags - set(JOB) == set()
    assert set(JOB) - flags == {"command", "probe", "on_late", "retry_delay", "retry_ceiling", "scopes"}
    assert set(of_the_ledger.values()) <= set(LEDGER)


def test_the_schema_that_is_shipped_is_that_of_the_fields(tmp_path: Path) -> None:
    printed = duly(tmp_path, "jobs", "schema").out

    assert printed == schemas.text()
    jsonschema.Draft202012Validator.check_schema(json.loads(printed))


def is_valid(text: str) -> bool:
    validator = jsonschema.Draft202012Validator(schemas.schema())
    found = tomllib.loads(text)
    return bool(validator.is_valid(found["tool"]["duly"] if text.startswith("[tool.duly.jobs.nightly") else found))


def test_the_schema_takes_what_the_reader_takes() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = [part.partition("```")[0] for text in (page, readme) for part in text.split("```toml\n")[1:]]

    assert len(examples) >= 2
    for text in (EXAMPLE, CLOSE, "", *examples):
        assert is_valid(text), text


# What only a reader of schedules, zones, files and texts can see.
BEYOND_A_SCHEMA = {
    "command with a NUL", "a zone that is none", "how but not when", "a key that does not fit", "a cron line",
    "a key that does not fit the period", "a cron line of several", "an interval that is none", "a time of day that is none",
    "an anchor that is none", "a calendar that is not there", "a duration that is none", "a duration beyond all time",
    "a lease too short", "an owner that is blank", "a scope that is none", "not TOML",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*MISTAKES, *MISTAKES_OF_FILES} - BEYOND_A_SCHEMA))
def test_the_schema_refuses_what_the_reader_refuses(name: str) -> None:
    text = MISTAKES_OF_FILES[name][0] if name in MISTAKES_OF_FILES else f"[jobs.j]\n{MISTAKES[name][0]}\n"

    assert not is_valid(text)


def test_the_page_has_the_table_of_fields() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    assert schemas.page() in page


def test_the_kinds_of_destinations_that_it_names_are_there() -> None:
    named = re.findall(r"`(\w+)`", DESTINATION["kind"].means)

    assert named
    assert set(named) <= set(KINDS)


def test_the_examples_of_the_page_are_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    for place, text in enumerate(part.partition("```")[0] for part in page.split("```toml\n")[1:]):
        project = "[tool.duly" in text
        path = write(tmp_path, text, f"{place}/{'pyproject' if project else 'duly'}.toml")
        layers = Layers([str(path)])

        assert all(layers.job_or_raise(name).command for name in layers.names())
        assert layers.ledger() is not None or project


def described(fields: dict[str, Any]) -> bool:
    return all(field.means and field.kind.words and field.kind.schema for field in fields.values())


def test_every_key_says_what_it_means() -> None:
    assert all(described(fields) for fields in TABLES.values())
