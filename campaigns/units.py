"""The units that ship, under a real systemd: what a timer pokes, what systemd calls a failure, and what it tries again.

A systemd of its own, as process 1 of its namespaces, with the files of share/systemd and drop-ins that only make it faster. The
ledger's clock is set by hand. It takes a minute, wants root, and goes on where it stopped.

    python -m campaigns.units           go on
    python -m campaigns.units STORY     tell one again
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.exec.stage import Stage, until

from campaigns.apart import Apart, can_be_apart, duly_in
from campaigns.progress import Progress

SHIPPED = Path(__file__).parents[1] / "share" / "systemd"
SYSTEMD = Path("/lib/systemd/systemd")
TARGETS = (
    "default",
    "sysinit",
    "basic",
    "shutdown",
    "timers",
    "sockets",
    "network-online",
    "multi-user",
    "umount",
    "final",
)

# Of the control groups it sees its own alone, in the one hierarchy that it needs. As in a container it lets the kernel be.
WITHIN = """
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    mkdir /sys/fs/cgroup/systemd
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
mkdir -p /run/systemd/system /mnt/lib /mnt/etc /mnt/bin /mnt/theirs
mount --bind /usr/local/bin /mnt/theirs
for program in /mnt/theirs/*; do if [ -e "$program" ]; then ln -s "$program" /mnt/bin/; fi; done
ln -sf "$1/bin/duly" /mnt/bin/duly
mount --bind /mnt/bin /usr/local/bin
mount --bind /mnt/lib /var/lib
cp -a /etc/. /mnt/etc
rm -rf /mnt/etc/duly
ln -s "$1/etc" /mnt/etc/duly
mount --bind /mnt/etc /etc
touch /mnt/console
mount --bind /mnt/console /dev/console
mount -o bind,ro /proc/sys /proc/sys
exec env -i container=duly PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin SYSTEMD_UNIT_PATH="$1/units" \\
    /lib/systemd/systemd --system --unit=default.target --log-target=console --show-status=no
"""

FASTER = "[Service]\nRestartSec=200ms\nEnvironment=DULY_LEDGER={ledger}\n"
DAILY = 'period = "daily"\nzone = "UTC"\nat = "06:00"\ncatch_up = "each"\n'


class Host:
    """A machine with a systemd, its units, a configuration, and a ledger whose clock is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder)
        self.folder = folder
        self.units = folder / "units"
        (folder / "etc").mkdir()
        self.units.mkdir()
        self.jobs: dict[str, str] = {}
        for target in TARGETS:
            self.unit(f"{target}.target", "[Unit]\nDefaultDependencies=no\n")
        # What nothing speaks of is forgotten when it has ended, and how it did.
        kept = "duly@close-day.service duly-daemon.service backup.service"
        self.unit("default.target.d/kept.conf", f"[Unit]\nAfter={kept}\n")
        for file in ("duly@.service", "duly@.timer", "duly-daemon.service"):
            shutil.copy(SHIPPED / file, self.units)
        faster = FASTER.format(ledger=self.stage.path)
        self.unit("duly@.service.d/faster.conf", faster)
        self.unit("duly-daemon.service.d/faster.conf", f"{faster}WatchdogSec=2\n")
        self.unit("duly@.timer.d/faster.conf", "[Timer]\nOnCalendar=\nOnCalendar=*:*:*\n")
        duly_in(folder)
        self._group = _own_group()
        self._here = Path(f"/proc/{os.getpid()}/cgroup").read_text()
        _move(self._group)  # what is started now begins there; we go back
        try:
            self.systemd = Apart(
                WITHIN, str(folder), environ={}, log=folder / "log", namespaces=("--cgroup", "--uts", "--ipc")
            )
        finally:
            _move(_group_of(self._here))
        until(lambda: self.ctl("is-system-running") in ("running", "degraded"), "systemd is up")

    def unit(self, name: str, text: str) -> None:
        (self.units / name).parent.mkdir(exist_ok=True)
        (self.units / name).write_text(text)

    def drop_in(self, unit: str, shipped: str) -> None:
        (self.units / f"{unit}.d").mkdir(exist_ok=True)
        shutil.copy(SHIPPED / shipped, self.units / f"{unit}.d")

    def job(self, name: str, command: str, more: str = "") -> None:
        """A job of the configuration, whose command is a shell's."""
        self.jobs[name] = f"[jobs.{name}]\ncommand = ['sh', '-c', '''{command}''']\n{DAILY}{more}\n"
        (self.folder / "etc" / "duly.toml").write_text("\n".join(self.jobs.values()))

    def ctl(self, *words: str) -> str:
        return self.systemd.run("systemctl", *words).stdout.strip()

    def start(self, unit: str) -> None:
        self.ctl("daemon-reload")
        self.ctl("start", unit)

    def shown(self, unit: str, *names: str) -> dict[str, str]:
        said = self.ctl("show", unit, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in said.splitlines())

    def becomes(self, unit: str, **wanted: str) -> None:
        """Wait until systemd says so of a unit."""
        until(lambda: self.shown(unit, *wanted) == wanted, f"{unit}: {wanted}")

    def written(self, text: str, file: str = "effects") -> str:
        """The shell's words: write a line."""
        return f'echo "{text}" >> {self.folder}/{file}'

    def close(self) -> None:
        self.systemd.close()
        self.stage.close()
        until(lambda: _is_empty(self._group), "all that it had started is gone")
        for group in (*sorted((path for path in self._group.rglob("*") if path.is_dir()), reverse=True), self._group):
            group.rmdir()


def _hierarchy() -> Path:
    v1 = Path("/sys/fs/cgroup/systemd")
    return v1 if v1.exists() else Path("/sys/fs/cgroup")


def _own_group() -> Path:
    group = _hierarchy() / f"duly-units-{os.getpid()}"
    group.mkdir()
    return group


def _is_empty(group: Path) -> bool:
    return not any(file.read_text() for file in group.rglob("cgroup.procs"))


def _group_of(cgroups: str) -> Path:
    """Where a process is in that hierarchy, as /proc/PID/cgroup has it."""
    for line in cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "name=systemd" or (controllers == "" and not Path("/sys/fs/cgroup/systemd").exists()):
            return _hierarchy() / path.lstrip("/")
    raise SystemExit("no control groups are here for a systemd to use")


def _move(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))


# -- stories -----------------------------------------------------------------------------------------------------------


def timer(host: Host) -> None:
    """A timer that pokes each second works each day once, as it comes due."""
    host.job("close-day", host.written("{date}"))
    host.start("duly@close-day.timer")
    for day in ("2026-11-28", "2026-11-29", "2026-11-30"):
        until(lambda: day in host.stage.effects(), day)  # noqa: B023
        host.stage.clock.advance("1d")
    host.ctl("stop", "duly@close-day.timer")

    assert host.stage.effects()[:3] == ["2026-11-28", "2026-11-29", "2026-11-30"]
    assert len({*host.stage.effects()}) == len(host.stage.effects())
    assert host.ctl("is-failed", "duly@close-day") != "failed"


def busy(host: Host) -> None:
    """75 is no failure, and poked again until another attempt has let go."""
    gate = host.stage.gate("held")
    host.job("close-day", host.written("{date}"))
    holder = host.stage.start(
        "close-day", "--period", "daily", "--zone", "UTC", "--at", "06:00", command=["sh", "-c", gate.shell]
    )
    gate.arrived()

    host.start("duly@close-day.service")
    until(lambda: int(host.shown("duly@close-day", "NRestarts")["NRestarts"]) >= 2, "it is poked again")
    host.becomes("duly@close-day", SubState="auto-restart", Result="success")
    gate.open()
    assert holder.ended().code == 0

    host.becomes("duly@close-day", ActiveState="inactive", Result="success", ExecMainStatus="0")


def failed(host: Host) -> None:
    """What waits for a person is a failure each time, and poked by nobody but the timer."""
    host.job("close-day", f"{host.written('{date}')}; exit 3")

    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="failed", Result="exit-code", ExecMainStatus="3", NRestarts="0")
    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="failed", Result="exit-code", ExecMainStatus="79", NRestarts="0")
    assert host.stage.effects() == ["2026-11-28"]

    assert host.stage.duly("skip", "close-day", "2026-11-28", "--reason", "it was done by hand").code == 0
    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="inactive", Result="success", ExecMainStatus="0")


def unknown(host: Host) -> None:
    """An outcome that nobody knows is a failure, also where a drop-in would restart what failed."""
    host.unit("duly@.service.d/restart.conf", "[Service]\nRestart=on-failure\n")
    host.job("close-day", f"{host.written('{date}')}; kill -9 $$")

    host.start("duly@close-day.service")

    host.becomes("duly@close-day", ActiveState="failed", Result="exit-code", ExecMainStatus="80", NRestarts="0")
    assert host.stage.state() == "unknown"
    assert host.stage.effects() == ["2026-11-28"]


def stopped(host: Host) -> None:
    """SIGTERM goes to duly, which hands it on once; what the command then says is written down."""
    gate = host.stage.gate("begun")
    heeds = gate.heeding("TERM", host.written("asked", "asked") + "; sleep 1")  # in which another word would be heard
    host.job("close-day", f"{heeds}; exit 0")
    host.start("duly@close-day.service")
    gate.arrived()

    host.ctl("stop", "duly@close-day.service")

    host.becomes("duly@close-day", ActiveState="inactive", Result="success", ExecMainStatus="0")
    assert host.stage.effects("asked") == ["asked"]
    assert host.stage.state() == "completed"


def condition(host: Host) -> None:
    """With ExecCondition= the first poke registers the job; what waits for a person then fails no unit."""
    host.drop_in("duly@.service", "duly-condition.conf")
    host.job("close-day", f"{host.written('{date}')}; exit 3")

    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="failed", ExecMainStatus="3")
    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="inactive", Result="exec-condition")
    assert host.stage.effects() == ["2026-11-28"]

    # And a ledger out of reach is 255, which is a failure, and is not tried again.
    host.unit(
        "duly@.service.d/later-away.conf", "[Service]\nEnvironment=DULY_LEDGER=postgresql://nobody@127.0.0.1:1/none\n"
    )
    host.start("duly@close-day.service")
    host.becomes("duly@close-day", ActiveState="failed", Result="exit-code", NRestarts="0")


def away(host: Host) -> None:
    """A ledger out of reach is 75: tried again, and no failure."""
    host.job("close-day", host.written("{date}"))
    host.unit(
        "duly@.service.d/later-away.conf", "[Service]\nEnvironment=DULY_LEDGER=postgresql://nobody@127.0.0.1:1/none\n"
    )

    host.start("duly@close-day.service")

    until(lambda: int(host.shown("duly@close-day", "NRestarts")["NRestarts"]) >= 1, "it is poked again")
    assert host.ctl("is-failed", "duly@close-day") != "failed"
    host.ctl("stop", "duly@close-day.service")
    assert host.stage.effects() == []


def hardened(host: Host) -> None:
    """duly works where it may do little: the ledger is in its own folder, and its command bound as well."""
    host.drop_in("duly@.service", "duly-hardened.conf")
    host.unit(
        "duly@.service.d/later-own.conf",
        f"[Service]\nEnvironment=DULY_LEDGER=sqlite:////var/lib/duly/ledger.db\nBindPaths={host.folder}\nReadWritePaths={host.folder}\n",
    )
    host.job("close-day", f"touch /usr/mark 2> /dev/null || {host.written('{date}')}")

    host.start("duly@close-day.service")

    host.becomes("duly@close-day", ActiveState="inactive", Result="success", ExecMainStatus="0")
    assert len(host.stage.effects()) == 1
    assert host.systemd.run("sh", "-c", "ls /var/lib/duly").stdout.split() == ["ledger.db", "ledger.db-lock"]


def drop_in(host: Host) -> None:
    """A service that was there, and was a oneshot, pokes with its drop-in."""
    host.unit("backup.service", "[Service]\nType=oneshot\nExecStart=/usr/local/bin/backup\n")
    host.drop_in("backup.service", "duly.conf")
    host.unit("backup.service.d/faster.conf", FASTER.format(ledger=host.stage.path))
    given = (SHIPPED / "duly.conf").read_text()
    asked = host.written("$DULY_DATE").replace("$", "$$")
    assert "/usr/local/bin/backup {date}" in given
    (host.units / "backup.service.d" / "duly.conf").write_text(
        given.replace("/usr/local/bin/backup {date}", f"sh -c '{asked}'")
    )

    for _ in range(2):
        host.start("backup.service")
        host.becomes("backup.service", ActiveState="inactive", Result="success", ExecMainStatus="0")

    assert host.stage.effects() == ["2026-11-29"]
    assert host.stage.states() == {"2026-11-29T02:30:00": "completed"}


def daemon(host: Host) -> None:
    """The daemon says that it is ready and what it does; one that hangs is killed and begun anew."""
    host.job("close-day", host.written("{date}"))
    host.start("duly-daemon.service")
    host.becomes("duly-daemon.service", ActiveState="active", SubState="running")
    until(lambda: host.stage.effects() == ["2026-11-28"], "the day is worked")
    assert host.shown("duly-daemon.service", "StatusText")["StatusText"]
    begun = host.shown("duly-daemon.service", "MainPID")["MainPID"]

    host.systemd.run("kill", f"-{int(signal.SIGSTOP)}", begun)
    until(lambda: host.shown("duly-daemon.service", "MainPID")["MainPID"] not in (begun, "0"), "another is begun")
    host.becomes("duly-daemon.service", ActiveState="active", SubState="running")
    host.stage.clock.advance("1d")
    until(lambda: host.stage.effects() == ["2026-11-28", "2026-11-29"], "the next day is worked")

    host.ctl("stop", "duly-daemon.service")
    host.becomes("duly-daemon.service", ActiveState="inactive", Result="success")


STORIES: Mapping[str, Callable[[Host], None]] = {
    story.__name__: story
    for story in (timer, busy, failed, unknown, stopped, condition, away, hardened, drop_in, daemon)
}


@contextmanager
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory(prefix="duly-units-") as name:
        os.chmod(name, 0o755)
        found = Host(Path(name))
        try:
            yield found
        except BaseException:
            print((found.folder / "log").read_text()[-2000:])
            print(found.systemd.run("cat", "/dev/console").stdout[-4000:])
            raise
        finally:
            found.close()


def main(wanted: list[str]) -> int:
    """Go on, or tell what is named."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what it has begun is ended
    if not can_be_apart() or not SYSTEMD.exists():
        print("campaigns.units wants systemd, root, and a kernel that gives it namespaces; nothing was told")
        return 0
    version = subprocess.run([SYSTEMD, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    progress = Progress("units")
    for name, story in STORIES.items():
        if (wanted and name not in wanted) or (not wanted and progress.has(name)):
            continue
        with host() as found:
            story(found)
        progress.note(name, version)
        print(f"{name}: {' '.join((story.__doc__ or '').split())}", flush=True)
    print(f"under {version} the units that ship do what their page says")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
