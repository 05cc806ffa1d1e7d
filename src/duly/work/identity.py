"""Who an attempt is: its id, its owner, and the key that remote systems know its run by."""

from __future__ import annotations

import os
from time import time_ns

from duly.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.keys import RunKey

_owner: tuple[int, str] | None = None


def new_attempt_id() -> bytes:
    """A UUIDv7 (RFC 9562, section 5.7): ordered by when it was made, and never made twice."""
    stamp = (time_ns() // 1_000_000).to_bytes(6, "big")
    chance = bytearray(os.urandom(10))
    chance[0] = 0x70 | (chance[0] & 0x0F)
    chance[2] = 0x80 | (chance[2] & 0x3F)
    return stamp + bytes(chance)


def uuid_text(uuid: bytes) -> str:
    """The 36 characters of a UUID."""
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def owner() -> str:
    """This process, `host/pid@start+random`: random for each start, since pids come again; anew in a forked child."""
    global _owner
    if _owner is None or _owner[0] != os.getpid():
        _owner = (os.getpid(), f"{os.uname().nodename}/{os.getpid()}@{_started()}+{os.urandom(4).hex()}")
    return _owner[1]


def _started() -> str:
    """When this process started, in clock ticks since boot (proc(5), field 22); empty where there is no /proc."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def actor() -> str:
    """Whose hand it is, for the evidence: the person behind sudo, else the login name, at this host: `ana@db1`."""
    name = os.environ.get("SUDO_USER") or os.environ.get("LOGNAME") or os.environ.get("USER") or str(os.getuid())
    return f"{name}@{os.uname().nodename}".encode(errors="replace").decode()


def idempotency_key(namespace: str, key: RunKey, name: str = "", *, first_name: str = "") -> str:
    """The UUIDv5 (RFC 9562, section 5.5) that a remote system knows an effect of a run by.

    The same for every attempt of a revision, another for each environment, run, revision and message name. It is made of
    the name that the job was registered under: a retry after the job was renamed is still the same effect.
    """
    if first_name and first_name != key.job:
        key = replace(key, job=first_name)
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # what hashlib falls back to: it spares a start OpenSSL
    except ImportError:
        from hashlib import sha1

    bare = key.bare if key.revision in (None, 1) else str(key)
    digest = bytearray(sha1(bytes.fromhex(namespace) + f"{bare}\n{name}".encode(), usedforsecurity=False).digest()[:16])
    digest[6] = 0x50 | (digest[6] & 0x0F)
    digest[8] = 0x80 | (digest[8] & 0x3F)
    return uuid_text(bytes(digest))
