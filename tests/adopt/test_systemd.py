"""Timers of systemd: what OnCalendar= says is said in cron, or refused; a service is wrapped by one file, which may go."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from duly.adopt.found import Left
from duly.adopt.oncalendar import when_of
from duly.times import SECOND, as_datetime, from_datetime
from duly.work.configuration import Layers
from tests.adopt.test_crontab import a_duly
from tests.story import Said, here

CARRIED = [
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "yearly",
    "Mon..Fri *-*-* 00/2:00:00",
    "*-*~03",
    "*-*~01 23:59",
    "*-*~1..3",
    "*-02~01",
    "Mon *-05~07/1",
    "Sat,Sun *-*~07/1 5:00",
    "Mon *-*-1..7",
    "Tue,Thu *-*-15..21 12:30",
    "Fri *-*-29..31",
    "Sat,Mon..Tue 2:5",
    "Monday,Wed 22:00",
    "12-31",
    "*-*-1/2 0:0",
    "Mon *-*-1/2 6:00",
    "*:0/15",
    "*:7/20",
    "8..18/2:00",
    "1..3,5:10,40",
    "*-*-* 02:30:00",
    "*-*-* 02:00:00",
    "*:30",
    "*-*-* 00:00:00",
    "*-1,7-1 4:00",
    "*-*-31 6:00",
    "*-02-29",
]
REFUSED = {
    "*-*-* 4:00:30": "seconds",
    "*:*:0/10": "seconds",
    "2026-01-02 03:04": "years",
    "2026..2027-*-01": "years",
    "@1234567890": "no schedule",
    "Fri *-*-13": "both of these dates",
    "Mon *-*~03": "both of these dates",
    "*-*~3/2": "steps",
    "*-02-30": "no year",
    "gibberish": "no weekday",
    "Fri..Mon": "backwards",
    "25:00": "between",
}
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze to compare with"
)


def told_by_systemd(spec: str, zone: str, since: datetime, count: int) -> list[datetime]:
    """The next instants of a specification, as systemd has them."""
    words = ["systemd-analyze", "calendar", f"--base-time={since:%Y-%m-%d %H:%M:%S} UTC", f"--iterations={count}"]
    said = subprocess.run(
        [*words, f"{spec} {zone}"], capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"}
    )
    found = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", said.stdout)
    return [datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) for text in found]


@needs_systemd
@pytest.mark.parametrize("spec", CARRIED)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_what_is_carried_over_comes_when_the_timer_would(spec: str, zone: str) -> None:
    schedule = when_of([spec], zone).schedule()

    # From before each change of the clocks, and far enough beyond it; and from a leap year's beginning.
    for since in ("2026-03-07", "2026-03-28", "2026-10-24", "2026-10-31", "2027-12-31"):
        begin = datetime.fromisoformat(f"{since}T00:00:00+00:00")
        expected = told_by_systemd(spec, zone, begin, 60)
        assert expected
        found = schedule.instants(from_datetime(begin), from_datetime(expected[-1]))
        assert [as_datetime(at).replace(tzinfo=UTC) for at in found] == expected, (spec, since)


@needs_systemd
@pytest.mark.parametrize("spec", [spec for spec in REFUSED if spec not in ("gibberish", "Fri..Mon", "25:00")])
def test_what_is_refused_is_something_to_systemd(spec: str) -> None:
    told = subprocess.run(["systemd-analyze", "calendar", spec], capture_output=True, text=True, check=False)

    assert told.returncode == 0, told


@pytest.mark.parametrize(("spec", "why"), REFUSED.items())
def test_what_no_line_of_cron_says_is_refused(spec: str, why: str) -> None:
    with pytest.raises(Left, match=why):
        when_of([spec], "UTC")


def test_a_zone_in_the_specification_wins_and_two_zones_are_two_jobs() -> None:
    assert when_of(["Mon 5:00 Asia/Tokyo"], "Europe/Berlin").zone == "Asia/Tokyo"
    assert when_of(["5:00", "6:00"], "Europe/Berlin").cron == ("0 5 * * *", "0 6 * * *")
    with pytest.raises(Left, match="several zones"):
        when_of(["5:00 UTC", "6:00"], "Europe/Berlin")


# -- units ---------------------------------------------------------------------------------------------------------------


class Host:
    """A folder that stands for a host's root."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.units = self.root / "etc/systemd/system"
        self.units.mkdir(parents=True)
        self.config = self.root / "etc/duly/duly.toml"

    def unit(self, name: str, text: str) -> Path:
        path = self.units / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def duly(self, *words: str) -> Said:
        zone = () if "--undo" in words else ("--zone", "Europe/Berlin")
        return here(
            str(self.root / "l.db"),
            "import",
            "systemd",
            "--root",
            str(self.root),
            "--duly",
            "/usr/bin/duly",
            *zone,
            *words,
        )

    def drop_in(self, service: str) -> Path:
        return self.units / f"{service}.d" / "duly.conf"

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


BACKUP = '[Service]\nType=oneshot\nExecStart=/usr/local/bin/backup --all ${TARGET} "%i of {date}"\n'


def test_a_service_is_wrapped_by_one_file_that_may_go_again(host: Host) -> None:
    host.unit(
        "backup.timer",
        "[Timer]\nOnCalendar=Mon..Fri 02:30\nOnCalendar=Sat 04:00\nPersistent=true\nRandomizedDelaySec=5m\n",
    )
    host.unit("backup.service", BACKUP)
    before = host.files()

    proposed = host.duly("backup.timer", "--json")

    assert proposed.code == 0, proposed
    assert host.files() == before
    assert {note["code"] for note in proposed.document["notes"]} == {"persistent", "late", "type", "first_poke"}
    (job,) = proposed.document["jobs"]
    assert (job["job"], job["cron"], job["gap"], job["fold"]) == (
        "backup",
        ["30 2 * * 1-5", "0 4 * * 6"],
        "skip",
        "first",
    )

    host.duly("backup", "--write")

    assert host.drop_in("backup.service").read_text(encoding="utf-8") == (
        "# Written by duly import systemd; `duly import systemd --undo` takes it back.\n"
        "[Service]\n"
        "Type=exec\n"
        "ExecStart=\n"
        'ExecStart=/usr/bin/duly exec backup -- /usr/local/bin/backup --all ${TARGET} "%i of {{date}"\n'
        "SuccessExitStatus=75\n"
        "RestartForceExitStatus=75\n"
        "RestartSec=1min\n"
        "RestartPreventExitStatus=64 78 79 80 81\n"
        "KillMode=mixed\n"
        "TimeoutStopSec=5min\n"
        "OOMPolicy=continue\n"
    )
    assert Layers([str(host.config)]).job_or_raise("backup").declaration.schedule is not None
    written = host.files()

    again = host.duly("backup.service", "--write")

    assert again.code == 0
    assert "nothing to import" in again.talk
    assert host.files() == written

    undone = host.duly("backup", "--undo", "--write")

    assert undone.code == 0
    assert host.files() == before
    assert not host.drop_in("backup.service").parent.exists()


@needs_systemd
def test_the_drop_in_is_one_to_systemd(host: Host) -> None:
    host.unit("backup.timer", "[Timer]\nOnCalendar=02:30\n")
    host.unit("backup.service", "[Service]\nType=oneshot\nExecStart=-/bin/echo a 'b c' \"d\"\n")
    duly = host.root / "duly"
    duly.symlink_to("/bin/true")
    host.duly("backup", "--write", "--duly", str(duly))

    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(host.units / "backup.service")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "duly.conf" not in said.stderr, said
    assert said.returncode == 0, said


def test_drop_ins_count_and_an_empty_assignment_resets(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\nUnit=b.service\n")
    host.unit("a.timer.d/10.conf", "[Timer]\n# another time\nOnCalendar=\nOnCalendar=05:00 \\\n  UTC\n")
    host.unit("b.service", "[Service]\nExecStart=/bin/old\n")
    host.unit("b.service.d/20.conf", "[Service]\nExecStart=\nExecStart=/bin/new --now\n")

    said = host.duly("a", "--json")

    (job,) = said.document["jobs"]
    assert (job["job"], job["cron"], job["zone"]) == ("b", ["0 5 * * *"], "UTC")
    assert "ExecStart=/bin/new --now" in job["from"][0]["original"]
    assert job["from"][0]["file"].endswith("a.timer.d/10.conf")
    assert job["from"][0]["line"] == 4


def test_an_instance_is_read_from_its_template(host: Host) -> None:
    host.unit("report@.timer", "[Timer]\nOnCalendar=weekly\n")
    host.unit("report@.service", "[Service]\nExecStart=/bin/report %i\n")

    said = host.duly("report@acme.timer", "--write")

    assert said.code == 0, said
    assert "exec report-acme -- /bin/report %i" in host.drop_in("report@acme.service").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("timer", "service", "code"),
    [
        ("OnBootSec=5m\nOnUnitActiveSec=1h", "ExecStart=/bin/a", "monotonic"),
        ("OnUnitInactiveSec=1h", "ExecStart=/bin/a", "monotonic"),
        ("Persistent=true", "ExecStart=/bin/a", "no_schedule"),
        ("OnCalendar=*:*:0/5", "ExecStart=/bin/a", "no_equal"),
        ("OnCalendar=daily", "Type=oneshot\nExecStart=/bin/a\nExecStart=/bin/b", "several_commands"),
        ("OnCalendar=daily", "Type=oneshot\nExecStart=/bin/a ; /bin/b", "several_commands"),
        ("OnCalendar=daily", "Type=notify\nExecStart=/bin/a", "type"),
        ("OnCalendar=daily", "Type=forking\nExecStart=/bin/a", "type"),
        ("OnCalendar=daily", "ExecStart=@/bin/a another-name", "argv0"),
        ("OnCalendar=daily", "ExecStart=/bin/a ${date}", "placeholder"),
        ("OnCalendar=daily", "ExecStop=/bin/a", "no_command"),
        ("OnCalendar=daily\nUnit=elsewhere.service", "ExecStart=/bin/a", "no_service"),
        ("OnCalendar=daily\nUnit=some.target", "ExecStart=/bin/a", "no_service"),
    ],
)
def test_what_cannot_be_carried_over_is_said_and_nothing_is_written(
    host: Host, timer: str, service: str, code: str
) -> None:
    host.unit("a.timer", f"[Timer]\n{timer}\n")
    host.unit("a.service", f"[Service]\n{service}\n")
    before = host.files()

    proposed = host.duly("a", "--json")
    said = host.duly("a", "--json", "--write")

    assert (proposed.code, said.code) == (1, 0)
    (left,) = [note for note in said.document["notes"] if not note["carried"]]
    assert left["code"] == code
    assert left["file"].startswith(str(host.units))
    assert host.files() == before


def test_a_timer_that_also_pokes_at_boot_is_carried_over(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\nOnBootSec=2m\n")
    host.unit("a.service", "[Service]\nExecStart=+-/bin/a\nUser=app\nProtectSystem=strict\nSuccessExitStatus=3\n")

    said = host.duly("a", "--json", "--write")

    assert said.code == 0
    assert {note["code"] for note in said.document["notes"]} == {
        "monotonic",
        "ignored_failure",
        "user",
        "sandbox",
        "exit_status",
        "first_poke",
    }
    assert "ExecStart=+-/usr/bin/duly exec a -- /bin/a\n" in host.drop_in("a.service").read_text(encoding="utf-8")


def test_a_drop_in_that_a_person_has_changed_stays(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a\n")
    host.duly("a", "--write")
    with host.drop_in("a.service").open("a", encoding="utf-8") as file:
        file.write("Nice=19\n")
    before = host.files()

    said = host.duly("a", "--undo", "--write")

    assert said.code == 0
    assert "was changed since it was written" in said.talk
    assert host.files() == before


def test_a_unit_that_is_not_there_is_a_mistake(host: Host) -> None:
    said = host.duly("nobody.timer")

    assert said.code == 64
    assert "systemctl cat nobody.timer" in said.talk


@pytest.mark.parametrize("named", [("a", "b"), ("b.timer", "a.timer", "a")])
def test_a_service_that_two_timers_start_has_no_schedule(host: Host, named: tuple[str, ...]) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\nUnit=job.service\n")
    host.unit("b.timer", "[Timer]\nOnCalendar=weekly\nUnit=job.service\n")
    host.unit("job.service", "[Service]\nExecStart=/bin/a\n")
    before = host.files()

    said = host.duly(*named, "--json", "--write")

    assert [note["code"] for note in said.document["notes"]] == ["several_timers", "several_timers"]
    assert host.files() == before


def test_a_timer_that_is_named_twice_is_one(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a\n")

    said = host.duly("a.timer", "a.service", "a", "--json", "--write")

    assert [job["job"] for job in said.document["jobs"]] == ["a"]
    assert list(Layers([str(host.config)]).names()) == ["a"]


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/docker exec db -- pg_dump",
        "/usr/bin/docker exec db pg_dump -- x",
        "-/bin/a exec b -- /x exec c -- d",
        "/bin/a 100%% $$x",
    ],
)
@pytest.mark.parametrize("called", ["/usr/bin/duly", "/opt/my tools/50%/duly", "/opt/py thon -m duly"])
def test_what_was_put_before_any_command_is_taken_back(host: Host, command: str, called: str) -> None:
    host.unit("backup.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("backup.service", f"[Service]\nExecStart={command}\n")
    before = host.files()
    config = ("--config", str(host.root / "a b" / "d%.toml"))
    host.duly("backup", "--write", "--duly", called, *config)
    assert host.duly("backup", "--json", "--duly", called, *config).document["already"] == 1

    said = host.duly("backup", "--undo", "--write", *config, "--json")

    assert said.document["undone"] == ["backup"]
    assert host.files() == before


def test_the_drop_in_is_the_one_that_ships(host: Host) -> None:
    shipped = (Path(__file__).parents[2] / "share/systemd/duly.conf").read_text(encoding="utf-8")
    settings = [line for line in shipped.split("\n") if line and not line.startswith("#")]
    host.unit("backup.timer", "[Timer]\nOnCalendar=02:30\n")
    host.unit("backup.service", "[Service]\nExecStart=/usr/local/bin/backup\n")

    host.duly("backup", "--write")

    written = host.drop_in("backup.service").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.partition(" exec ")[0].replace("/usr/bin/", "") for line in written] == [
        line.partition(" exec ")[0] for line in settings
    ]


@pytest.mark.parametrize(
    "setting", ["ExecStartPost=/bin/b", "ExecStartPre=/bin/b", "TimeoutStartSec=2h", "RemainAfterExit=yes"]
)
def test_what_only_a_oneshot_has_keeps_it_one(host: Host, setting: str) -> None:
    """After another type's start the next command runs at once, and its time-out is over."""
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", f"[Service]\nType=oneshot\nExecStart=/bin/a\nTimeoutStopSec=1h\n{setting}\n")
    before = host.files()

    said = host.duly("a", "--write")

    written = host.drop_in("a.service").read_text(encoding="utf-8")
    assert "Type=" not in written
    assert "RestartForceExitStatus=" not in written
    assert "TimeoutStopSec=" not in written
    assert (
        "SuccessExitStatus=75\nRestartPreventExitStatus=64 78 79 80 81\nKillMode=mixed\nOOMPolicy=continue\n" in written
    )
    assert f"Type=oneshot stays, for {setting.partition('=')[0]}=" in said.talk
    host.duly("a", "--undo", "--write")
    assert host.files() == before


def test_a_zone_is_asked_for_where_a_timer_needs_one(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a\n")
    host.unit("b.timer", "[Timer]\nOnCalendar=05:00 Asia/Tokyo\n")
    host.unit("b.service", "[Service]\nExecStart=/bin/b\n")
    words = ["import", "systemd", "--root", str(host.root), "--duly", "/usr/bin/duly"]

    asked = here("", *words, "a")
    told = here("", *words, "b", "--json")

    assert asked.code == 64
    assert "this host's timers are" in asked.talk
    assert "duly import systemd a.timer --zone Europe/Berlin" in asked.talk
    assert [job["zone"] for job in told.document["jobs"]] == ["Asia/Tokyo"]


def test_a_users_unit_that_is_not_there_is_looked_for_among_the_users(host: Host) -> None:
    said = host.duly("nobody.timer", "--user", "--config", str(host.config))

    assert "systemctl --user cat nobody.timer" in said.talk


def test_an_import_of_timers_that_was_cut_short_is_taken_back(host: Host) -> None:
    """The configuration is written first: no drop-in pokes what it has."""
    for name in ("a", "b"):
        host.unit(f"{name}.timer", "[Timer]\nOnCalendar=daily\n")
        host.unit(f"{name}.service", f"[Service]\nExecStart=/bin/{name}\n")
    before = host.files()
    host.duly("a", "b", "--write")
    host.drop_in("a.service").unlink()

    said = host.duly("a", "--undo", "--write", "--json")

    assert said.document["undone"] == ["a"]
    assert list(Layers([str(host.config)]).names()) == ["b"]
    host.duly("b", "--undo", "--write")
    assert host.files().keys() == before.keys()


def test_a_drop_in_of_the_same_name_is_not_overwritten(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a\n")
    host.unit("a.service.d/duly.conf", "[Service]\nNice=19\n")
    before = host.files()

    said = host.duly("a", "--write", "--json")

    assert [note["code"] for note in said.document["notes"]] == ["drop_in"]
    assert host.files() == before


def test_a_user_is_told_of_the_ledger_that_counts(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a\nUser=app\nProtectSystem=strict\n")

    alone = host.duly("a")
    named = host.duly("a", "--ledger", "sqlite:////srv/duly/l.db")
    elsewhere = host.duly("a", "--ledger", "postgresql://db/duly")

    assert "runs as app, and so has a ledger of its own, unless --ledger names one" in alone.talk
    assert "runs as app, who must be able to write /srv/duly/l.db" in named.talk
    assert "ReadWritePaths=/srv/duly" in named.talk
    assert "runs as app" not in elsewhere.talk


def test_a_private_unit_is_not_shown_by_the_configuration(host: Host) -> None:
    host.unit("a.timer", "[Timer]\nOnCalendar=daily\n")
    host.unit("a.service", "[Service]\nExecStart=/bin/a -phunter2\n").chmod(0o600)
    host.config.parent.mkdir(parents=True)
    host.config.write_text("# ours\n", encoding="utf-8")

    host.duly("a", "--write")

    assert "hunter2" not in host.config.read_text(encoding="utf-8")
    host.duly("a", "--undo", "--write")
    assert host.config.read_text(encoding="utf-8") == "# ours\n"
    host.config.unlink()
    host.duly("a", "--write")
    assert host.config.stat().st_mode & 0o777 == 0o600


def test_a_first_poke_is_due_before_the_ledger_knows_the_job(tmp_path: Path) -> None:
    """Else ExecCondition= would fail the unit, and the job would never come to be known."""
    duly = a_duly(tmp_path)
    config = tmp_path / "duly.toml"
    config.write_text('[jobs.a]\ncron = "0 1 * * *"\nzone = "UTC"\ncatch_up = "latest"\n', encoding="utf-8")
    environment = {"PATH": "/usr/bin:/bin", "DULY_LEDGER": f"sqlite:///{tmp_path}/l.db"}

    def condition() -> int:
        words = [duly, "due", "a", "-q", "--config", str(config)]
        return subprocess.run(words, env=environment, check=False, capture_output=True).returncode

    def poke() -> int:
        words = [duly, "exec", "a", "--config", str(config), "--", "/bin/true"]
        return subprocess.run(words, env=environment, check=False, capture_output=True).returncode

    assert condition() == 0  # there is no ledger
    assert poke() == 0
    assert condition() == 1
    config.write_text(config.read_text(encoding="utf-8").replace("jobs.a", "jobs.other"), encoding="utf-8")
    assert (
        subprocess.run([duly, "due", "b", "-q", "--config", str(config)], env=environment, check=False).returncode
        == 255
    )


def test_seconds_are_counted_as_the_clock_has_them() -> None:
    schedule = when_of(["*-*-* 02:30:00"], "Europe/Berlin").schedule()

    (first,) = schedule.instants(
        from_datetime(datetime(2026, 10, 24, 22, tzinfo=UTC)), from_datetime(datetime(2026, 10, 25, 22, tzinfo=UTC))
    )

    assert first // SECOND == datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
