"""Access: may this request be answered, and who sent it? Pure: from headers and addresses to a verdict.

The deal, in the order in which it is asked. The *host* is a name that the dashboard is known by: else a page of the web whose
own name points here would read whose jobs there are. *Who* somebody is, they show themselves, or a proxy says that was asked
to, from an address that is listed. A *change* comes from a page of this very origin (Fetch Metadata; where a browser is too
old for that, `Origin`), and only where the server was started to allow changes: what is not offered is refused as well.
"""

from __future__ import annotations

from duly.records import record
from duly.web.settings import LOOPBACK, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SAFE = ("GET", "HEAD", "OPTIONS")

# Everything from here, nothing written within a page: neither script nor style can be slipped in by what others wrote.
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # none at all would make the browser send `Origin: null` with our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-robots-tag": "noindex, nofollow",
}


@record
class Refusal:
    """Why a request is not answered: the status, what is wrong, and what to do next. `challenge`: by which way to say who."""

    status: int
    says: str
    next_step: str
    challenge: str = ""


@record
class Who:
    """Somebody who may look: their name, and by what it is known."""

    name: str
    by: str


def hand_of(who: Who | None) -> str:
    """Whose hand it is that changes something through the dashboard, as the ledger keeps it."""
    if who is None or not who.name:
        return "somebody on this machine (dashboard)"
    return f"{who.name} (dashboard)"


def refuse_host(header: str, hosts: tuple[str, ...]) -> Refusal | None:
    """Whether the request is for a name that the dashboard does not have."""
    name = host_name(header)
    if name and name in hosts:
        return None
    return Refusal(
        421,
        f"This server does not answer to the name {name[:100]!r}.",
        "duly web --allow-host NAME",
    )


def host_name(header: str) -> str:
    """The name in a Host header, without its port, in lower case; empty for what is none."""
    header = header.strip().lower()
    if header.startswith("["):
        inside, bracket, port = header[1:].partition("]")
        return inside if bracket and (not port or (port[0] == ":" and port[1:].isdecimal())) else ""
    name, colon, port = header.partition(":")
    return name if not colon or port.isdecimal() else ""


def is_loopback(address: str | None) -> bool:
    """Whether an address is this machine's own."""
    from ipaddress import ip_address

    try:
        return address is not None and ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address in LOOPBACK


def by_proxy(headers: Mapping[str, str], peer: str | None, settings: Settings) -> Who | Refusal | None:
    """Who somebody is by the word of a proxy that is trusted. A header of that name from elsewhere is refused, not passed over:
    whoever sends it wants to be somebody else.
    """
    trust = settings.trust
    if trust is None:
        return None
    name = headers.get(trust.header, "").strip()
    if not name:
        return None
    if not is_within(peer, settings):
        return Refusal(
            403,
            f"The header {trust.header} came from an address that is not trusted with it.",
            "duly web --trust-from CIDR",
        )
    if len(name) > 200 or not name.isprintable():
        return Refusal(403, f"The header {trust.header} holds no name.", "duly web --help")
    return Who(name, trust.header)


def is_within(peer: str | None, settings: Settings) -> bool:
    """Whether an address is in the networks that are trusted."""
    from ipaddress import ip_address

    if settings.trust is None or peer is None:
        return False
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in settings.trust.networks)


_BEHIND_PROXY = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def of_this_machine(headers: Mapping[str, str], peer: str | None) -> Who | Refusal:
    """Where nobody has to say who they are: whoever is on this machine. A proxy is on it, and whom it speaks for is not."""
    if not is_loopback(peer):
        return Refusal(
            403, "Only this machine is answered, as nobody has to say who they are.", "duly web --token-file FILE"
        )
    if any(name in headers for name in _BEHIND_PROXY):
        return Refusal(
            403,
            "This came through a proxy, and nobody has said who may look.",
            "duly web --trust-header NAME --trust-from CIDR",
        )
    return Who("", "this machine")


def refuse_change(method: str, headers: Mapping[str, str], *, allow_writes: bool) -> Refusal | None:
    """Whether a request that may change something comes from elsewhere, or where nothing may be changed."""
    if method in SAFE:
        return None
    if not is_same_origin(headers):
        return Refusal(
            403, "A change has to come from a page of this dashboard; this came from elsewhere.", "duly --help"
        )
    if not allow_writes:
        return Refusal(403, "This server only shows: it was started without --allow-writes.", "duly web --allow-writes")
    return None


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this origin, or from no page at all (W3C Fetch Metadata; else RFC 6454 Origin).

    A client that is no browser sends neither, and has no cookies or passwords of somebody else that it could be tricked with.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return True
    scheme, mark, place = origin.partition("://")
    return bool(mark) and scheme in ("http", "https") and place.lower() == headers.get("host", "").strip().lower()
