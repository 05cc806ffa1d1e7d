"""Secrets that a command of duly knows of: those of its environment, of the configuration, and of the ledger that is meant."""

from __future__ import annotations

import os

from duly.cli.ledgers import configured, url_of_caller
from duly.redaction import Redaction, passwords_in, secrets_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.work.configuration import Layers


def redaction(layers: Layers | None = None, ledger: str | None = None) -> Redaction:
    """What is to be hidden here. Raises `ConfigurationInvalid` for a `[redact]` that cannot be understood."""
    of_ledger = passwords_in(ledger or url_of_caller())
    layers = layers or configured()
    if layers is None:
        return Redaction([*secrets_of(os.environ), *of_ledger])
    return layers.redaction(os.environ, of_ledger)
