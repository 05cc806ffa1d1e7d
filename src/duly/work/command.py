"""Command: what a child is told of its run, in its environment and its arguments."""

from __future__ import annotations

from duly.errors import Misuse
from duly.records import record
from duly.times import Zone, civil_text
from duly.work.identity import idempotency_key, uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from duly.ledger.records import Claim, Run
    from duly.schedule.keys import RunKey

_NAMES = ("label", "date", "scope", "run.key", "window.start", "window.end")
_HIDDEN = ("DULY_LEDGER",)  # a child has no business with the ledger's address, which may hold a password


def inherited(environment: Mapping[str, str], hidden: Collection[str] = ()) -> dict[str, str]:
    """What a command may see of the environment that duly was called in. `hidden` are variables that hold secrets.

    What an exec or a daemon around this one was told of its own run, or by systemd, is none of the command's business; nor is
    the locale that Python gives itself.
    """
    unwanted = {
        *_set_by_python(environment),
        *_HIDDEN,
        "DULY_OUTCOME_FILE",
        "DULY_OUTPUT",
        "DULY_OUTBOX",
        "DULY_WEB_TOKEN",
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        *hidden,
    }
    return {name: value for name, value in environment.items() if name not in unwanted}


def _set_by_python(environment: Mapping[str, str]) -> tuple[str, ...]:
    """LC_CTYPE, where Python has set it as it started, for want of a better locale (PEP 538): cron and systemd give none, and
    what sort, grep and wc make of bytes depends on it.
    """
    if environment.get("LC_CTYPE") not in ("C.UTF-8", "C.utf8", "UTF-8"):
        return ()
    try:
        with open("/proc/self/environ", "rb") as f:  # as it was when the process began (proc(5))
            given = b"\0" + f.read()
    except OSError:
        return ()
    return () if b"\0LC_CTYPE=" in given else ("LC_CTYPE",)


@record
class Briefing:
    """What a child may know of the run that it works."""

    key: RunKey
    claim: Claim
    row: Run
    namespace: str
    deadline: int | None
    first_name: str = ""  # of the job, where it was renamed since
    traceparent: str = ""  # the span of the attempt, where one is recorded

    @property
    def date(self) -> str:
        """The business date; empty for an ad-hoc run."""
        return "" if self.key.adhoc else civil_text(self.key.nominal >> 1)[:10]

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The inherited environment with what the child may know of its run."""
        own = {name: value for name, value in inherited.items() if name not in _HIDDEN}
        own.update(
            DULY_JOB=self.key.job,
            DULY_SCOPE=self.key.scope,
            DULY_RUN_KEY=str(self.key),
            DULY_LABEL=self.key.label,
            DULY_DATE=self.date,
            DULY_WINDOW_START=self._local(self.row.window_start),
            DULY_WINDOW_END=self._local(self.row.window_end),
            DULY_WINDOW_ZONE=self.key.zone,
            DULY_TRIGGER=self.claim.trigger,
            DULY_ATTEMPT=str(self.claim.number),
            DULY_ATTEMPT_ID=uuid_text(self.claim.attempt_id),
            DULY_IDEMPOTENCY_KEY=idempotency_key(self.namespace, self.key, first_name=self.first_name),
            DULY_DEADLINE=self._local(self.deadline),
            TRACEPARENT=self.traceparent or self._traceparent(inherited.get("TRACEPARENT", "")),
        )
        return own

    def called_by(self, inherited: Mapping[str, str]) -> str:
        """The traceparent of whoever called us, if there is one that is valid; else empty."""
        traceparent = inherited.get("TRACEPARENT", "")
        return traceparent if _trace_of(traceparent) is not None else ""

    def argument(self, text: str) -> str:
        """An argument with its placeholders filled in; all other braces pass, and `{{label}` is a literal `{label}`.

        Raises `Misuse` for a placeholder that this run has nothing for.
        """
        filled, rest = "", text
        while True:
            before, brace, after = rest.partition("{")
            filled += before
            if not brace:
                return filled
            inside, closing, beyond = after.partition("}")
            if closing and inside[:1] == "{" and _names_one(inside[1:]):
                filled, rest = filled + inside + "}", beyond
            elif closing and _names_one(inside):
                filled, rest = filled + self._value(inside), beyond
            else:
                filled, rest = filled + brace, after

    def command(self, argv: Sequence[str]) -> list[str]:
        """The child's arguments."""
        return [self.argument(text) for text in argv]

    def _value(self, placeholder: str) -> str:
        name, _, form = placeholder.partition(":")
        instant = {"window.start": self.row.window_start, "window.end": self.row.window_end}.get(name)
        if name.startswith("window."):
            if instant is None:
                raise Misuse(f"{{{placeholder}}}: {self.key} has no window")
            local = Zone(self.key.zone).local(instant)
            return local.strftime(form) if form else local.isoformat(timespec="seconds")
        if name == "date" and not self.date:
            raise Misuse(f"{{date}}: {self.key} has no business date")
        plain = {"label": self.key.label, "date": self.date, "scope": self.key.scope, "run.key": str(self.key)}
        return plain[name]

    def _local(self, instant: int | None) -> str:
        return "" if instant is None else Zone(self.key.zone or "UTC").local_text(instant)

    def _traceparent(self, inherited: str) -> str:
        """The trace that called us, or one of our own, with this attempt as the parent span (W3C Trace Context)."""
        known = _trace_of(inherited)
        trace, flags = known or (self.claim.attempt_id.hex(), "01")
        return f"00-{trace}-{self.claim.attempt_id[8:].hex()}-{flags}"


def _trace_of(traceparent: str) -> tuple[str, str] | None:
    """Trace id and flags of a traceparent that is one (W3C Trace Context, section 3.2)."""
    version, _, rest = traceparent.partition("-")
    trace, parent, flags = (*rest.split("-"), "", "", "")[:3]
    lengths = [len(part) for part in (version, trace, parent, flags)]
    if lengths != [2, 32, 16, 2] or version == "ff" or not trace.strip("0") or not parent.strip("0"):
        return None
    return None if (version + trace + parent + flags).strip("0123456789abcdef") else (trace, flags)


def literal(text: str) -> str:
    """The text that an argument has to be so that the command gets this one: what looks like a placeholder is none."""
    found, rest = "", text
    while True:
        before, brace, after = rest.partition("{")
        found += before
        if not brace:
            return found
        inside, closing, beyond = after.partition("}")
        if closing and _names_one(inside):
            found, rest = f"{found}{{{{{inside}}}", beyond
        else:
            found, rest = found + brace, after


def not_literal(text: str) -> str | None:
    """The text that `literal` made this one of; None where it has a placeholder that is one."""
    found, rest = "", text
    while True:
        before, brace, after = rest.partition("{")
        found += before
        if not brace:
            return found if literal(found) == text else None
        inside, closing, beyond = after.partition("}")
        if closing and inside[:1] == "{" and _names_one(inside[1:]):
            found, rest = f"{found}{inside}}}", beyond
        else:
            found, rest = found + brace, after


def _names_one(inside: str) -> bool:
    name, colon, _ = inside.partition(":")
    return name in _NAMES and (not colon or name.startswith("window."))
