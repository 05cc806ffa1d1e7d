"""A real systemd fires a timer: each firing works its own window, and a start by hand none.

A user's manager runs in control groups and a mount namespace of its own, which wants root. The tests are told what a systemd
answered; this asks one.

    python -m campaigns.systemd
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.exec.stage import Stage, environment, until

# Of its own, by every hierarchy in which systemd would look for itself: else it would take all processes for its own. And it
# wants to believe that a systemd has booted the machine.
WITHIN = """
set -e
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    if [ -e "$hierarchy/cgroup.procs" ]; then mkdir -p "$hierarchy/$1"; echo $$ > "$hierarchy/$1/cgroup.procs"; fi
done
if grep -E '^(0:|[0-9]+:name=systemd:)' /proc/self/cgroup | grep -qv ":/$1\\$"; then exit 1; fi
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
exec /lib/systemd/systemd --user --log-target=null
"""


class Systemd:
    """A manager of a user's, and units of it."""

    def __init__(self, folder: Path) -> None:
        self._units = folder / "home/.config/systemd/user"
        self._units.mkdir(parents=True)
        self._group = f"duly-campaign-{os.getpid()}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DBUS_", "XDG_", "DULY_"))}
        self._environ = {**kept, "HOME": str(folder / "home"), "XDG_RUNTIME_DIR": "/run/user/0"}
        self._process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", WITHIN, "sh", self._group], env=self._environ, stdin=subprocess.DEVNULL
        )

    def ctl(self, *words: str) -> str:
        """systemctl, within the namespace."""
        words = ("nsenter", "--mount", "-t", str(self._process.pid), "systemctl", "--user", *words)
        return subprocess.run(words, env=self._environ, capture_output=True, text=True, check=False).stdout.strip()

    def is_up(self) -> bool:
        if self._process.poll() is not None:
            raise SystemExit("no systemd can run here: it wants root, and control groups that may be written")
        return self.ctl("is-system-running") in ("running", "degraded")

    def unit(self, name: str, text: str) -> None:
        (self._units / name).write_text(text)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=30)
        for hierarchy in ("systemd", "unified", ""):
            top = Path("/sys/fs/cgroup", hierarchy, self._group)
            for group in sorted(path for path in top.rglob("*") if path.is_dir())[::-1]:
                group.rmdir()
            if top.exists():
                top.rmdir()


@contextmanager
def systemd(folder: Path) -> Iterator[Systemd]:
    manager = Systemd(folder)
    try:
        until(manager.is_up, "systemd is up")
        yield manager
    finally:
        manager.close()


def tell(stage: Stage, manager: Systemd) -> None:
    """A timer fires three times, then a person starts its service."""
    stage.clock.set("2099-01-01T00:00:00Z")  # whatever is fired for is due
    words = f"{sys.executable} -m duly exec tick --every 1s --trigger systemd --catch-up each"
    said = "".join(f'Environment="{name}={environment()[name]}"\n' for name in ("PYTHONPATH", "PYTHONUTF8", "PATH"))
    manager.unit(
        "tick.service",
        f"[Service]\nType=oneshot\n{said}Environment=DULY_LEDGER={stage.path}\n"
        f"ExecStart={words} -- sh -c 'echo $$DULY_RUN_KEY >> {stage.file('effects')}'\n",
    )
    manager.unit("tick.timer", "[Timer]\nOnActiveSec=1ms\nOnUnitInactiveSec=1100ms\nAccuracySec=1us\n")

    manager.ctl("start", "tick.timer")
    until(lambda: len(stage.effects()) >= 3, "the timer has fired three times")
    manager.ctl("stop", "tick.timer")
    until(lambda: manager.ctl("is-active", "tick.service") == "inactive", "the last one has ended")
    manager.ctl("start", "tick.service")

    *fired, by_hand = stage.effects()
    assert by_hand.startswith("tick:adhoc-"), by_hand
    assert len(set(fired)) == len(fired) >= 3, fired
    assert not any("adhoc" in key for key in fired), fired
    triggers = [trigger for (trigger,) in stage.rows("select trigger from duly_attempt_readable order by started_at")]
    assert all(trigger.startswith("systemd scheduled tick.timer ") for trigger in triggers[:-1]), triggers
    assert triggers[-1].startswith("systemd manual "), triggers
    print(f"{len(fired)} firings worked {', '.join(fired)}; the start by hand worked {by_hand}")


def main() -> int:
    with tempfile.TemporaryDirectory() as name, systemd(Path(name)) as manager:
        print(subprocess.run(["systemctl", "--version"], capture_output=True, text=True).stdout.splitlines()[0])
        stage = Stage(Path(name))
        try:
            tell(stage, manager)
        finally:
            stage.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
