"""Healthchecks: a ping for an alert, as healthchecks.io and those who are compatible with it take it.

    raised      POST URL/fail
    recovered   POST URL, when no other alert is open that it was told of; else POST URL/log, which changes nothing there
    noted       POST URL/log

A check is up or down, so that a ping that is said twice says no more than one. It is one check for all jobs, or with `{job}` in
its URL one for each. The key travels as that of any request; what an answer means is as for `http`.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit, urlunsplit

from duly.outbox.destinations import Refused
from duly.outbox.destinations.http import KEY_HEADER, Http
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import Secret
from duly.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Settings

JOB = "{job}"
OF_NO_JOB = "duly"  # the check of what is about no job
LONGEST_TEXT = 10_000  # of a ping's body, in characters; a check keeps no more
_SLUG = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


def declared(settings: Settings) -> Healthchecks:
    """The destination that a table with `kind = "healthchecks"` declares."""
    return Healthchecks(
        url=settings.url(as_in="https://hc-ping.com/00000000-0000-4000-8000-000000000000"),
        ca_file=settings.maybe("ca_file", as_in="/etc/ssl/own-ca.pem"),
        probe=probe_of(settings),
        remembers=settings.remembers(None),
        max_length=settings.number("max_length", None),
    )


class Healthchecks:
    """Checks that are told that something is wrong, and that it is well again."""

    kind = "healthchecks"
    key_form = f"{KEY_HEADER} header"
    reads_own_writes = False

    def __init__(
        self,
        *,
        url: Secret,
        ca_file: str | None,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self._url = url
        self._ca_file = ca_file
        self._probe = probe

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Ping the check, and say what its answer means."""
        try:
            ping = ping_of(message.body)
        except (ValueError, KeyError, TypeError):
            return Refused("it is no alert: a check takes nothing else")
        pinged = Http(
            url=Secret(self._url.where, lambda: url_of(self._url.read(), ping)),
            key_header=KEY_HEADER,
            key_quoted=True,
            headers={},
            secret_headers={},
            signing_secret=None,
            bearer=None,
            ca_file=self._ca_file,
            certificate_file=None,
            key_file=None,
            look_up=None,
            probe=self._probe,
            remembers=0,  # a line is kept for nothing: the next ping is hours away
            max_length=self.max_length,
            reads_own_writes=False,
        )
        said = replace(message, body=ping.text.encode(), content_type="text/plain; charset=utf-8")
        return pinged.deliver(said, seconds=seconds)

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Ask the declared command: a check cannot be asked."""
        return self._probe.ask(message, seconds=seconds)

    def close(self) -> None:
        """Nothing is kept between pings."""


@record
class Ping:
    """What a check is told of an alert: its `state`, of which job, what else is open, and a text."""

    state: str
    job: str | None
    open: int
    open_of_job: int
    text: str


def ping_of(body: bytes) -> Ping:
    """What a message of an alert says. Pure. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
    alert = json.loads(body)
    if alert["schema"] != "duly.alert.v1" or alert["state"] not in ("raised", "recovered", "noted"):
        raise ValueError
    text = f"{alert['text']}\nnext: {alert['next_step']}\n"
    return Ping(alert["state"], alert.get("job"), int(alert["open"]), int(alert["open_of_job"]), text[:LONGEST_TEXT])


def url_of(base: str, ping: Ping) -> str:
    """Where a ping goes. Pure."""
    still_open = ping.open_of_job if JOB in base else ping.open
    end = "/fail" if ping.state == "raised" else "/log" if ping.state == "noted" or still_open else ""
    parts = urlsplit(base.replace(JOB, slug_of(ping.job or OF_NO_JOB)))
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + end))


def slug_of(job: str) -> str:
    """A job's name as a check may be called. Pure."""
    return "".join(sign if sign in _SLUG else "-" for sign in job.lower())
