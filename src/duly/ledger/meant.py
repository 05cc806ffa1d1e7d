"""Meant: the window of a job that a scheduler elsewhere meant, by the schedule in force in the ledger. Looks only."""

from __future__ import annotations

from duly.errors import NoSchedule
from duly.ledger.register import Declaration, find, refused
from duly.ledger.spells import every_spell_of
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.errors import Misuse, Refused
    from duly.schedule.meant import Meant


async def name_meant(declared: Declaration, meant: Meant) -> str | Refused | Misuse:
    """The name of the window that is meant, with its zone, as `take_window` reads it: `2026-10-05[Europe/Berlin]`.

    A job that is new is asked as it is declared. Raises `NoSchedule`, and `WindowInvalid` as `window_meant` does.
    """
    known = await find(declared.job, declared.scope)
    refusal = await refused(known, declared)
    if refusal is not None:
        return refusal
    if known is not None and known.version is not None:
        spells = [spell for spell in await every_spell_of(known.job) if not spell.is_empty]
    elif declared.schedule is not None:
        spells = [Spell(declared.schedule, 1, None, None)]
    else:
        raise NoSchedule(f"{declared.job} has no schedule, so that no time names a window of it")
    return window_meant(spells, meant).name
