"""Whose hand it was, for the evidence: the person behind sudo, else the login name, at this host."""

from __future__ import annotations

import os


def actor() -> str:
    """As `ana@db1`."""
    name = os.environ.get("SUDO_USER") or os.environ.get("LOGNAME") or os.environ.get("USER") or str(os.getuid())
    return f"{name}@{os.uname().nodename}"
