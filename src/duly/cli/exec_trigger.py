"""exec --trigger SOURCE: the run that a scheduler elsewhere meant, in place of all that is owed."""

from __future__ import annotations

from shlex import join

from duly.cli.exec_flags import end_of_flags
from duly.errors import Misuse, TriggerUnclear, raise_if_refused
from duly.ledger.meant import name_meant
from duly.records import replace
from duly.trigger import Firing, adhoc_id, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duly.cli.exec_flags import Given
    from duly.ledger.register import Declaration
    from duly.store.protocol import Store


def firing_given(given: Given, environment: Mapping[str, str]) -> Firing:
    """What the source that is named says of this process. Raises `Misuse`, and `TriggerUnclear` where it does not tell."""
    if given.has("window") or given.has("adhoc"):
        raise Misuse("--trigger asks the scheduler which run is meant, --window and --adhoc name one; leave one out")
    try:
        return read(given.one("trigger") or "", environment)
    except TriggerUnclear as e:
        e.next_step = e.next_step or _as_a_poke(given.typed)
        raise


def named_by(firing: Firing, given: Given, declared: Declaration, store: Store) -> Given:
    """What was typed, with the run that is meant by its name: a window, or an id outside the schedule where a person fired."""
    if firing.meant is None:
        return _with(given, "adhoc", adhoc_id(firing))
    return _with(given, "window", raise_if_refused(store.read(name_meant(declared, firing.meant))))


def _as_a_poke(typed: Sequence[str]) -> str:
    """The line that was typed, asking nobody: it works what is owed."""
    end = end_of_flags(typed)
    words = list(typed[:end])
    for place, word in enumerate(words):
        if word == "--trigger":
            del words[place : place + 2]
            break
        if word.startswith("--trigger="):
            del words[place]
            break
    return join([*words, *typed[end:]])


def _with(given: Given, flag: str, value: str) -> Given:
    others = {name: values for name, values in given.flags.items() if name != "trigger"}
    return replace(given, flags={**others, flag: [value]})
