"""Modules: the ledger that `MODULE:LEDGER` names, with the jobs that are declared on it; and an app of Celery's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from duly.errors import Misuse
from duly.work.aio.ledger import Ledger as AsyncLedger
from duly.work.ledger import Ledger


def ledger_named(text: str) -> Ledger[Any] | AsyncLedger[Any]:
    """Import the module and find its ledger; `LEDGER` may be dotted. Raises `Misuse`, naming what is not there.

    What the module itself raises is raised.
    """
    found = _named(text, "ledger", "shop.jobs:ledger")
    if not isinstance(found, (Ledger, AsyncLedger)):
        raise Misuse(f"{text}: it is a {type(found).__name__}, not a ledger as duly.sqlite(…) makes one")
    return found


def app_named(text: str) -> Any:
    """Import the module and find its app of Celery's. As `ledger_named`."""
    found = _named(text, "app of Celery's", "shop.jobs:app")
    if not (hasattr(found, "send_task") and hasattr(found, "connection_for_write")):
        raise Misuse(f"{text}: it is a {type(found).__name__}, not an app of Celery's")
    return found


def _named(text: str, what: str, example: str) -> Any:
    module_name, colon, path = text.partition(":")
    if not (module_name and colon and path):
        raise Misuse(f"{text!r} names no {what}; write the module and the name in it, as {example}")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{module_name}.".startswith(f"{e.name}."):
            raise
        raise Misuse(f"{text}: there is no module {e.name!r} here; run it where `python -c 'import …'` finds it") from e
    for name in path.split("."):
        if not hasattr(found, name):
            raise Misuse(f"{text}: {module_name} has no {path!r}")
        found = getattr(found, name)
    return found
