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
    from duly.work.alerts import Alerting
    from duly.work.configuration import Layers


class Destinations:
    """What one ledger may send to. What files say is read when a name is first asked for that code does not declare; and then
    of that name alone, for a run does not fail because of a mistake in the table of another one.
    """

    def __init__(self) -> None:
        self._in_code: dict[str, Route | None] = {}
        self._files: Layers | None = None
        self._in_files: dict[str, Route] = {}
        self._alerting: Alerting | None = None

    def declare(self, name: str, settings: dict[str, object], make: Callable[[], Destination] | None) -> None:
        """Declare one in code; without settings and `make` it is a name, and whoever delivers knows the rest.

        Raises `Misuse`, and `ConfigurationInvalid` for a file that cannot be understood.
        """
        from duly.outbox.routes import route_of

        check_destination_name(name)
        route = None
        if settings or make is not None:
            route = route_of(name, settings, make, hidden=self._layers().hidden() if make is None else ())
        self._in_code[name] = route

    def check(self, name: str) -> None:
        """Raise `UnknownDestination` for a name that nobody declared, and `ConfigurationInvalid` for a table that is wrong."""
        if name in self._in_code or name in self._in_files:
            return
        layers = self._layers()
        route = layers.destination(name)
        if route is None:
            raise unknown_destination(name, [*self._in_code, *layers.destination_names()])
        self._in_files[name] = route

    def alert(self, alerting: Alerting) -> None:
        """Say in code who is told of alerts. Raises `UnknownDestination`, and `ConfigurationInvalid` for a wrong table."""
        for name in alerting.to:
            self.check(name)
        self._alerting = alerting

    def alerting(self) -> Alerting | None:
        """Who is told of alerts: what code says, else the files; None where neither does. Raises `ConfigurationInvalid`."""
        from duly.work.alerts import with_mail

        if self._alerting is not None:
            return with_mail(self._alerting, self.routes())
        layers = self._layers()
        return None if layers.alerts_every() is None else layers.alerts()

    def routes(self) -> dict[str, Route]:
        """How each is served: what code says, else what the files say. Raises `ConfigurationInvalid`."""
        in_code = {name: route for name, route in self._in_code.items() if route is not None}
        return {**self._layers().destinations(), **in_code}

    def _layers(self) -> Layers:
        if self._files is None:
            self._files = configured_here()
        return self._files


def configured_here() -> Layers:
    """What the files say that configure duly here; nothing where there is none."""
    from duly.work.configuration import Layers

    return Layers(files_of(os.getcwd(), os.environ))


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
