"""Destinations as they are declared: in code, `ledger.destination(…)`, or in a file, `[destinations.NAME]`.

A message names its destination and never holds an address, so that what a run may reach is written down by whoever deploys it.
A name that nobody declared is refused where it is sent to, while the run can still fail.
"""

from __future__ import annotations

import os

from duly.errors import UnknownDestination
from duly.work.whereabouts import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duly.outbox.destinations import Destination
    from duly.outbox.routes import Route


class Destinations:
    """What one ledger may send to. What files say is read when a name is first asked for that code does not declare."""

    def __init__(self) -> None:
        self._in_code: dict[str, Route | None] = {}
        self._in_files: dict[str, Route] | None = None

    def declare(self, name: str, settings: dict[str, object], make: Callable[[], Destination] | None) -> None:
        """Declare one in code; without settings and `make` it is a name, and whoever delivers knows the rest.

        Raises `Misuse`.
        """
        from duly.outbox.routes import route_of

        check_destination_name(name)
        hidden = hidden_here() if make is None else ()
        self._in_code[name] = route_of(name, settings, make, hidden=hidden) if settings or make is not None else None

    def check(self, name: str) -> None:
        """Raise `UnknownDestination` for a name that nobody declared."""
        if name not in self._in_code and name not in self._files():
            raise unknown_destination(name, [*self._in_code, *self._files()])

    def routes(self) -> dict[str, Route]:
        """How each is served: what code says, else what the files say."""
        return {**self._files(), **{name: route for name, route in self._in_code.items() if route is not None}}

    def _files(self) -> dict[str, Route]:
        if self._in_files is None:
            self._in_files = configured_routes()
        return self._in_files


def configured_routes() -> dict[str, Route]:
    """The destinations of the files that configure duly here. Raises `ConfigurationInvalid`."""
    files = files_of(os.getcwd(), os.environ)
    if not files:
        return {}
    from duly.work.configuration import Layers

    return Layers(files).destinations()


def hidden_here() -> tuple[str, ...]:
    """The variables that the files name for the ledger's URL: none of a destination's commands sees them."""
    files = files_of(os.getcwd(), os.environ)
    if not files:
        return ()
    from duly.work.configuration import Layers

    return Layers(files).hidden()


def check_destination_name(name: str) -> str:
    """The name, if it may be one of a destination: as that of a job. Raises `Misuse`."""
    from duly.schedule.keys import check_job_name

    return check_job_name(name)


def unknown_destination(name: str, known: Iterable[str]) -> UnknownDestination:
    """The error for a destination that nobody declared, with those that somebody did."""
    from difflib import get_close_matches

    names = sorted(set(known))
    close = get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}" if names else ""
    return UnknownDestination(
        f"send: no destination {name!r} is declared, by ledger.destination({name!r}, …) or as [destinations.{name}] in "
        f"duly.toml{hint}"
    )
