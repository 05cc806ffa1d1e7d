"""systemd: a service that a timer started, asked of the timer.

A service that a timer starts has `TRIGGER_UNIT` and `TRIGGER_TIMER_REALTIME_USEC` in its environment, since systemd 252. The
first one to start a service is remembered for as long as the service is loaded (systemd/systemd, src/core/unit.c, unit_start;
issue 28939), so from the second firing on they tell of the first one, and so they do when a person starts the service. They
are taken for the name of a timer, and for nothing else: what has happened is asked of systemd itself.

    systemctl show -p LastTriggerUSec,SubState,Unit -- TIMER

A timer is `running` exactly while what it started runs, so whoever starts the service otherwise finds it waiting. When it
last fired is told to the second, and it fires late: by its accuracy, by a random delay, and where it is `Persistent` by the
time that the machine was off. So the newest window that was due by then is meant. Nothing tells a late firing from others.
"""

from __future__ import annotations

import re

from duly.errors import TriggerUnclear
from duly.times import SECOND
from duly.trigger import MANUAL, SCHEDULED, Firing, Meant, at_time, instant_of, shown, within_reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = "systemd"
PATIENCE_SECONDS = 10

# Which systemd is asked, and over what; TZ and LC_ALL make what it says the same everywhere.
_PASSED_ON = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "PATH")

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}")
_INVOCATION = re.compile(r"[0-9a-f]{32}")
_WHEN = re.compile(
    r"(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d{1,9})? UTC|@(\d{1,12})(?:\.\d{1,9})?", re.ASCII
)


def read(environment: Mapping[str, str]) -> Firing:
    """What the timer says that started this service. Raises `TriggerUnclear` where systemd cannot be asked or does not tell."""
    invocation = environment.get("INVOCATION_ID", "")
    if not invocation:
        raise TriggerUnclear("INVOCATION_ID is not set: no service of systemd has started this")
    if not _INVOCATION.fullmatch(invocation):
        raise TriggerUnclear(f"INVOCATION_ID: {shown(invocation)} is none of systemd's")
    timer = environment.get("TRIGGER_UNIT", "")
    if not timer:
        return Firing(SOURCE, MANUAL, invocation, "", "no TRIGGER_UNIT in the environment", None)
    if not timer.endswith(".timer") or not _UNIT.fullmatch(timer):
        raise TriggerUnclear(f"TRIGGER_UNIT: {shown(timer)} is no timer, and nothing else has times")
    told = _show(timer, ("LastTriggerUSec", "SubState", "Unit"), environment)
    service = _show(told["Unit"], ("InvocationID", "NRestarts"), environment)
    if service["InvocationID"] != invocation:
        raise TriggerUnclear(
            f"INVOCATION_ID: this is not what {timer} starts, or no longer: {told['Unit']!r} was started again since"
        )
    if told["SubState"] == "running":
        place = f"LastTriggerUSec of {timer}"
        at = _fired(place, told["LastTriggerUSec"])
        return Firing(SOURCE, SCHEDULED, at_time(timer, at), invocation, place, Meant(at, is_exact=False))
    if service["NRestarts"] != "0":
        raise TriggerUnclear(
            f"{told['Unit']} was restarted after a failure, and systemd does not say whether {timer} or a person had"
            " started it; leave its Restart= out, and let duly try again: --retries"
        )
    return Firing(SOURCE, MANUAL, invocation, "", f"{timer} is not what started this", None)


def _fired(place: str, text: str) -> int:
    """When the timer last fired. Seconds are all that every release tells: rounded down, as windows are due on them."""
    found = _WHEN.fullmatch(text)
    if found is None:
        raise TriggerUnclear(f"{place}: {shown(text)} is no time")
    day, clock, unix = found.groups()
    return within_reach(place, int(unix) * SECOND) if unix else instant_of(place, f"{day}T{clock}Z")


def _show(unit: str, names: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, str]:
    """Properties of a unit, all of them, as systemctl prints them."""
    from shutil import which
    from subprocess import DEVNULL, PIPE, SubprocessError, run

    systemctl = which("systemctl", path=environment.get("PATH") or "/usr/bin:/bin")
    if systemctl is None:
        raise TriggerUnclear("systemctl is not on this service's PATH, and the timer is asked by it")
    # A manager of a user's tells whom it starts its pid, the system's does not (systemd.exec(5)).
    whose = ["--user"] if environment.get("MANAGERPID") else ["--system"]
    passed_on = {name: environment[name] for name in _PASSED_ON if name in environment}
    try:
        ended = run(  # noqa: S603  no shell, and the unit is checked
            [systemctl, *whose, "--no-pager", "show", "-p", ",".join(names), "--", unit],
            env={**passed_on, "TZ": "UTC", "LC_ALL": "C"},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, SubprocessError) as e:
        raise TriggerUnclear(f"systemctl show {unit}: {type(e).__name__}") from e
    told = dict(line.split("=", 1) for line in ended.stdout.decode(errors="replace").splitlines() if "=" in line)
    if ended.returncode or not all(told.get(name) for name in names):
        raise TriggerUnclear(f"systemctl show {unit} does not say {' and '.join(names)} (exit {ended.returncode})")
    return {name: told[name] for name in names}
