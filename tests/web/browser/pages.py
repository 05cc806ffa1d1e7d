"""The pages that a browser is shown: one line each. The tests look at all of them, `make pictures` draws those of the docs.

They are of the ledger in `shop.py`. A page that is added gets a line here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Scheme: TypeAlias = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


class Shown(NamedTuple):
    """A page as somebody looks at it. `pictures`: in which colours the docs show it; `height` of those, in points."""

    name: str
    path: str
    pictures: tuple[Scheme, ...] = ()
    height: int = 800
    status: int = 200


PAGES = (
    Shown("now", "/", ("light", "dark"), 900),
    Shown("grid", "/grid?from=2026-10-08&n=20", ("light", "dark"), 760),
    Shown("hours", "/grid?unit=hour&from=2026-10-25&n=30", ("light",), 640),
    Shown("weeks", "/grid?unit=week"),
    Shown("job", "/job/backup", ("light",), 900),
    Shown("range", "/job/rates?since=2026-10-25&until=2026-10-26"),
    Shown("run", "/run/files%2Fbackup:2026-10-26T02:30:00%5BEurope%2FBerlin%5D", ("light",), 900),
    Shown("unknown", "/run/payouts:2026-10-24%5BUTC%5D", ("light",), 900),
    Shown("running", "/run/stock:2026-10-26T00:00:00Z"),
    Shown("unknown-outcomes", "/unknown", ("light",), 560),
    Shown("backfills", "/backfill?job=rates&range=2026-10-25..", ("light",), 1000),
    Shown("backfill", "/backfill/1", ("light",), 640),
    Shown("lab", "/lab?cron=30+2+*+*+*&zone=Europe%2FBerlin&range=2026-10-24..2026-10-27", ("light",), 900),
    Shown("lab-refused", "/lab?cron=61+2+*+*+*&zone=UTC", status=400),
    Shown("retry", "/run/files%2Fbackup:2026-10-26T02:30:00%5BEurope%2FBerlin%5D/retry"),
    Shown("nowhere", "/nowhere", status=404),
)
