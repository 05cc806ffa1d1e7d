"""Releases of the database of time zones: real ones, from PyPI, side by side with the one that is installed.

Rules change, sometimes with two days' notice and sometimes for the past, and two hosts rarely have the same release.
What must hold in spite of that is tried on the releases themselves:

    with reading(release("2023b")):
        ...  # every zone that is looked up here has the rules of that release

A release is installed once, by pip, into a folder that is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zoneinfo
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class ReleaseMissing(Exception):
    """A release is not here, and pip could not install it."""


def release(version: str, *, folder: Path | None = None) -> Path:
    """The zone files of a release (`2022e`), installed below a folder if they are not there yet.

    Raises `ReleaseMissing`. Processes may try at once: each installs beside the place, and one of them moves it there.
    """
    place = (releases_folder() if folder is None else folder) / version
    if not place.is_dir():
        try:
            _add(version, place)
        except OSError as e:
            raise ReleaseMissing(f"{place} could not be made: {e}") from e
    return place / "tzdata" / "zoneinfo"


def _add(version: str, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        _install(version, beside)
        try:
            os.rename(beside, place)
        except OSError:
            if not place.is_dir():
                raise
        else:
            os.mkdir(beside)  # which is removed on the way out


def releases_folder() -> Path:
    """Where releases are kept: `$DULY_TZDATA_RELEASES`, the virtual environment, or this user's cache."""
    named = os.environ.get("DULY_TZDATA_RELEASES")
    if named:
        return Path(named)
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "tzdata-releases"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duly" / "tzdata-releases"


def package_version(version: str) -> str:
    """The version of the package on PyPI that is this release: `2022.5` for `2022e`."""
    year, letters = version[:4], version[4:]
    if not (year.isdigit() and len(letters) == 1 and "a" <= letters <= "z"):
        raise ReleaseMissing(f"{version!r} is not a release of the database of time zones; write it like 2022e")
    return f"{year}.{ord(letters) - ord('a') + 1}"


def _install(version: str, target: str) -> None:
    wanted = f"tzdata=={package_version(version)}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        target,
        wanted,
    ]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603  pip, and a version that was looked at
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ReleaseMissing(f"{wanted} could not be installed: {e}") from e
    if ended.returncode:
        words = ended.stderr.strip().splitlines() or ["pip said nothing"]
        raise ReleaseMissing(f"{wanted} could not be installed: {words[-1]}")


@contextmanager
def reading(folder: Path | None) -> Iterator[None]:
    """Read zones from this folder, as a host does that has its release; None: from the installed package alone.

    For the whole process, so for one thread of tests. A zone that the release does not have yet comes from the package.
    """
    before = zoneinfo.TZPATH
    _look_in(() if folder is None else (str(folder.resolve()),))
    try:
        yield
    finally:
        _look_in(before)


def _look_in(path: tuple[str, ...]) -> None:
    zoneinfo.reset_tzpath(path)
    zoneinfo.ZoneInfo.clear_cache()
