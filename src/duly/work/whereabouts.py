"""Whereabouts: which files configure duly, the nearest first. On the path of every `duly exec`, so it only looks: a file is
understood by `duly.work.configuration`, which is imported where one was found.

`$DULY_CONFIG` names one, and then there is no other. Else: the nearest `duly.toml`, or `pyproject.toml` that has a table
`[tool.duly]`, from the working directory upwards; the user's; the system's.
"""

from __future__ import annotations

import os

from duly.errors import ConfigurationInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM = "/etc/duly/duly.toml"


def files_of(start: str, environ: Mapping[str, str], *, system: str = SYSTEM) -> list[str]:
    """The files that count where `start` is the working directory. Raises `ConfigurationInvalid` for one of a stranger."""
    if named := environ.get("DULY_CONFIG"):
        return [os.path.abspath(named)]
    found = []
    if (near := _nearest(start)) is not None:
        _refuse_strangers(near)
        found.append(near)
    found += [path for path in (users_file(environ), system) if path and path != near and os.path.isfile(path)]
    return found


def working_directory() -> str:
    """The working directory; the root where it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _nearest(folder: str) -> str | None:
    while True:
        path = os.path.join(folder, "duly.toml")
        if os.path.isfile(path):
            return path
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path) and _may_speak_of_duly(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _may_speak_of_duly(path: str) -> bool:
    """Whether a pyproject.toml may have a table for us. Most have none, and are not worth a parser of TOML.

    The table begins with `[tool.duly`, or it is written inside `[tool]`, or as `tool.duly.… = …`, which nobody does.
    """
    try:
        with open(path, "rb") as f:
            text = b"\n" + f.read().translate(None, b" \t\"'")
    except OSError:  # what cannot be read says nothing
        return False
    return b"[tool.duly" in text or b"\n[tool]" in text or b"\ntool.duly" in text or b"\ntool=" in text


def users_file(environ: Mapping[str, str]) -> str | None:
    """The user's configuration, whether it is there or not; None where nobody says where the user's home is."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not folder.startswith("/"):  # the XDG specification: a relative path is to be ignored
        home = environ.get("HOME", "")
        folder = f"{home}/.config" if home.startswith("/") else ""
    return f"{folder}/duly/duly.toml" if folder else None


def _refuse_strangers(path: str) -> None:
    """Whoever may write where we happen to work, as in /tmp, must not say what we run (as git has it since CVE-2022-24765)."""
    for owner in (os.stat(path).st_uid, os.lstat(path).st_uid):
        if owner not in (0, os.geteuid()):
            from shlex import quote

            raise ConfigurationInvalid(
                f"{path} belongs to another user (uid {owner}), and it would say what is run; name it, if it is to be believed",
                next_step=f"export DULY_CONFIG={quote(path)}",
            )
