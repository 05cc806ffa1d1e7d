"""Try-lock: whether another transaction that is still open tries the same. A courtesy, never the guard.

Who finds it held answers at once instead of waiting for a stranger's commit, which may be long in coming. It is held to the
end of the transaction. On SQLite there is one writer at a time, and nobody to ask.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import RunId

TRY = Statement("try_lock", "select {lockable}")

_PRIMES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # to spread what lies close together


async def try_lock(lock: int) -> bool:
    """Take the lock of this number; whether nobody else's open transaction holds it."""
    return await one(TRY, bool, lock=lock) is True


def lock_of_run(run: RunId) -> int:
    """The number of a run's lock: below zero, unlike the one that all who write share. What shares one by chance only looks
    busy. Pure.
    """
    mixed = sum(part * prime for part, prime in zip((run.series, run.nominal, run.revision), _PRIMES, strict=True))
    return -1 - mixed % (1 << 63)
