"""systemctl, played: what a real one answered, to whoever asks as it was asked. Debian 12, systemd 252, of a user's manager."""

from __future__ import annotations

from pathlib import Path

STARTED = "36b2db65010d46bdafde0641b18e9363"
TIMER = "--user --no-pager show -p LastTriggerUSec,SubState,Unit -- plain.timer"
SERVICE = "--user --no-pager show -p InvocationID,NRestarts -- plain.service"


def of_timer(last: str, state: str = "running", unit: str = "plain.service") -> str:
    return f"Unit={unit}\nLastTriggerUSec={last}\nSubState={state}\n"


def of_service(invocation: str = STARTED, restarts: int = 0) -> str:
    return f"NRestarts={restarts}\nInvocationID={invocation}\n"


def played(folder: Path, answers: dict[str, str], *, code: int = 0) -> str:
    """A PATH on which systemctl answers so, and says nothing to other questions, nor to whoever has another zone or locale."""
    lines = [f"'{asked}') printf '%s' '{answer}';;" for asked, answer in answers.items()]
    told = 'case "$TZ $LC_ALL $*" in\n' + "\n".join(f"'UTC C '{line}" for line in lines) + f"\nesac\nexit {code}\n"
    program = folder / "systemctl"
    program.write_text(f"#!/bin/sh\n{told}")
    program.chmod(0o755)
    return str(folder)


def environment(path: str, *, invocation: str = STARTED, timer: str = "plain.timer") -> dict[str, str]:
    """What the service found, at its first start by the timer, at its second, and when a person started it: the same."""
    return {
        "PATH": path,
        "INVOCATION_ID": invocation,
        "MANAGERPID": "28844",
        "SYSTEMD_EXEC_PID": "28931",
        "TRIGGER_TIMER_MONOTONIC_USEC": "1233372787",
        "TRIGGER_TIMER_REALTIME_USEC": "1774747800000455",  # 2026-03-29T01:30:00Z, and so for ever
        "TRIGGER_UNIT": timer,
        "XDG_RUNTIME_DIR": "/run/user/0",
    }
