"""Settings: who may reach the dashboard, and whether anything may be changed through it.

The deal: what nobody said is the narrow way. Without settings the dashboard answers this machine alone, by its own names, and
changes nothing.
"""

from __future__ import annotations

from duly.errors import Misuse
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from ipaddress import IPv4Network, IPv6Network
    from typing import Any, TypeAlias

    from duly.web.credentials import Credentials

    Scope: TypeAlias = MutableMapping[str, Any]
    Identify: TypeAlias = Callable[[Scope], "str | None"]
    Network: TypeAlias = IPv4Network | IPv6Network

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@record
class Trust:
    """A proxy that has asked who somebody is: the header that it names them in, and the networks that it speaks from."""

    header: str
    networks: tuple[Network, ...]


@record
class Settings:
    """How a dashboard is guarded.

    `hosts`: the names that it is reached by; a page of the web that has its own name point here is refused. `credentials`,
    `trust` and `identify` say who somebody is; one of them that knows is enough, and without any only this machine is
    answered. `identify` is asked with the ASGI scope, by an application that this one is mounted in: a name, or None for
    somebody who may not look. `ledger` is what is typed after `--ledger` in the lines that are shown.
    """

    hosts: tuple[str, ...] = LOOPBACK
    allow_writes: bool = False
    credentials: Credentials | None = None
    trust: Trust | None = None
    identify: Identify | None = None
    root_path: str = ""
    ledger: str | None = None

    @property
    def asks_who(self) -> bool:
        """Whether somebody has to say who they are."""
        return self.credentials is not None or self.trust is not None or self.identify is not None


def trust(header: str, networks: list[str]) -> Trust:
    """A proxy that is trusted. Raises `Misuse`, naming the flag."""
    from ipaddress import ip_network

    name = header.strip().lower()
    if not name or any(not (sign.isascii() and (sign.isalnum() or sign == "-")) for sign in name):
        raise Misuse(f"--trust-header: {header!r} is no name of a header", next_step="duly web --help")
    try:
        return Trust(name, tuple(ip_network(network.strip()) for network in networks))
    except ValueError as e:
        raise Misuse(
            f"--trust-from: {e}; write an address or a network, as 10.0.0.0/8", next_step="duly web --help"
        ) from e
