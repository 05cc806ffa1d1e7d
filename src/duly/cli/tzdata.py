"""Which release of the database of time zones is in use: the system's, where Python finds one there, else the package's."""

from __future__ import annotations

import os
import zoneinfo


def tzdata_version() -> str:
    """As `2026f`; `unknown` where the files do not say."""
    for folder in zoneinfo.TZPATH:
        if os.path.isdir(folder):
            return _version_in(folder)
    try:
        from tzdata import IANA_VERSION  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        return "unknown"
    return str(IANA_VERSION)


def _version_in(folder: str) -> str:
    """Debian and others install tzdata.zi, whose first line is `# version 2026f`; macOS and the BSDs a file +VERSION."""
    for name, mark in (("tzdata.zi", "# version "), ("+VERSION", "")):
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                first = f.readline().strip()
        except OSError:
            continue
        if first.startswith(mark):
            return first.removeprefix(mark)
    return "unknown"
