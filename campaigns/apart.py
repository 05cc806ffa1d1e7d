"""Apart: a daemon of the system's runs with files of its own, in namespaces of mounts and processes that end with it.

Nothing of the machine's is touched: what the daemon finds in /etc, /run and /var/spool is put over them where only it sees it.
That wants root. Debian's packages are unpacked beside the campaigns' progress and never installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.exec.stage import SOURCE, until

from campaigns.progress import FOLDER

PACKAGES = FOLDER / "debian"
PREPARED = (
    "set -e; mount --make-rprivate /; mount -t tmpfs -o mode=755 tmpfs /mnt; mount -t tmpfs -o mode=755 tmpfs /run\n"
)


def can_be_apart() -> bool:
    """Whether this user may make namespaces here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0


APART = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


def unpacked(package: str, program: str) -> Path | None:
    """A program of the machine's own, or of a Debian package, unpacked and not installed; None where there is neither."""
    if (own := shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")) is not None:
        return Path(own)
    if _in_package(program) is None and shutil.which("apt-get") is not None:
        _unpack(package)
    return _in_package(program)


def _in_package(program: str) -> Path | None:
    places = (PACKAGES.absolute() / place / program for place in ("usr/sbin", "usr/bin", "sbin", "bin"))
    return next((place for place in places if place.exists()), None)


def _unpack(package: str) -> None:
    PACKAGES.mkdir(parents=True, exist_ok=True)
    for before in ((), ("apt-get", "update", "-q")):
        if before:
            subprocess.run(before, capture_output=True, check=False)
        download = ["apt-get", "download", "-q", package]
        if subprocess.run(download, cwd=PACKAGES, capture_output=True, check=False).returncode == 0:
            break
    for file in PACKAGES.glob(f"{package}_*.deb"):
        subprocess.run(["dpkg-deb", "-x", file.name, "."], cwd=PACKAGES, check=True)


def duly_in(folder: Path) -> Path:
    """A `duly` that is this one, whatever its caller's environment is."""
    command = folder / "bin" / "duly"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{SOURCE}" exec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command


class Apart:
    """A process, and all that it starts. `script` is a shell's: it puts files in place, and ends by becoming the daemon."""

    def __init__(
        self, script: str, *words: str, environ: Mapping[str, str], log: Path, namespaces: Sequence[str] = ()
    ) -> None:
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [*APART, *namespaces, "sh", "-c", PREPARED + script, "sh", *words],
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environ},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    @property
    def pid(self) -> int:
        """Of the first process within, as it is seen from here."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(lambda: self.process.poll() is not None or children.read_text().strip(), "it has begun")
        return int(children.read_text().split()[0])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command within."""
        within = ("nsenter", "--target", str(self.pid), "--mount", "--pid", *words)
        return subprocess.run(within, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})

    def close(self) -> None:
        """End it, and with it all that it has started."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
