"""A timer of systemd and the service that it starts: its schedule, and a drop-in that wraps the service's command.

The units stay as they are. What is added is one file, `NAME.service.d/duly.conf`: it resets `ExecStart=` and sets it anew,
behind `duly exec`, and tells systemd what duly's exit codes mean, as `share/systemd/duly.conf` does. It asks nothing before
(`docs/decisions/0030`). Taking that file away is the way back.
"""

from __future__ import annotations

import os
import re

from duly.adopt.found import Found, Left, Note, Place, Reading, Undone
from duly.adopt.naming import slug
from duly.adopt.oncalendar import has_zone, when_of
from duly.adopt.shell import calls_duly
from duly.errors import Misuse
from duly.records import record
from duly.work.command import literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD = "# Written by duly import systemd; `duly import systemd --undo` takes it back."
# What ships as share/systemd/duly.conf, with its reasons; the command stands after the first of them.
_TYPE = "Type=exec"
_SETTINGS = (
    "SuccessExitStatus=75",
    "RestartForceExitStatus=75",
    "RestartSec=1min",
    "RestartPreventExitStatus=64 78 79 80 81",
    "KillMode=mixed",
    "TimeoutStopSec=5min",
    "OOMPolicy=continue",
)
_OWN = ("RestartSec", "TimeoutStopSec", "OOMPolicy")  # where the service has one of these, that stays
_NOT_FOR_ONESHOT = frozenset({_TYPE, "RestartForceExitStatus=75", "RestartSec=1min"})
# What is another thing to a service of Type=oneshot: before, after and how long its command runs, and what comes of it then.
_OF_ONESHOT = ("ExecStartPre", "ExecStartPost", "TimeoutStartSec", "TimeoutSec", "RemainAfterExit")

_MONOTONIC = {
    "OnActiveSec": "since the timer was started",
    "OnBootSec": "since the host was booted",
    "OnStartupSec": "since systemd was started",
    "OnUnitActiveSec": "since the service was last started",
    "OnUnitInactiveSec": "since the service last ended",
}
_SPECIAL = "@-:+!|"
_SANDBOX = (
    "ProtectSystem",
    "ProtectHome",
    "DynamicUser",
    "ReadOnlyPaths",
    "RootDirectory",
    "RootImage",
    "PrivateUsers",
)


@record
class Setting:
    """One assignment of a unit."""

    section: str
    key: str
    value: str
    place: Place


@record
class Unit:
    """A unit as its file and its drop-ins make it. `path` is the file's, `settings` stand in the order in which they count."""

    name: str
    path: str
    settings: tuple[Setting, ...]

    def all(self, section: str, key: str) -> list[Setting]:
        """The assignments of a list, after the last that emptied it."""
        found: list[Setting] = []
        for one in self.settings:
            if (one.section, one.key) == (section, key):
                found = [*found, one] if one.value else []
        return found

    def last(self, section: str, key: str) -> Setting | None:
        """The assignment that counts."""
        return next((one for one in reversed(self.settings) if (one.section, one.key) == (section, key)), None)


def read_unit(name: str, files: Sequence[tuple[str, str]]) -> Unit:
    """The unit of a file and its drop-ins, each a path with its text."""
    return Unit(name, files[0][0], tuple(one for path, text in files for one in _settings(path, text)))


def _settings(path: str, text: str) -> Iterator[Setting]:
    section, begun, joined = "", 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped.startswith(("#", ";")) or (not stripped and not joined):
            continue
        begun = begun or number
        if stripped.endswith("\\") and not stripped.endswith("\\\\"):
            joined += stripped[:-1].rstrip() + " "
            continue
        whole, first, begun, joined = f"{joined}{stripped}", begun, 0, ""
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
        elif "=" in whole:
            key, _, value = whole.partition("=")
            yield Setting(section, key.strip(), value.strip(), Place(path, first))


# -- what is proposed ----------------------------------------------------------------------------------------------------


@record
class Context:
    """What is known beside the units. `zone` is the host's, empty where nobody knows it; `config` what has to be named."""

    zone: str
    duly: str  # its path, or `PYTHON -m duly`
    config: str = ""
    ledger: str = ""  # that the configuration names; empty: each user has one
    root: str = ""  # of an image, which paths begin with


@record
class Wrapped:
    """A service whose command can be wrapped: what `ExecStart=` becomes, with the job's name to be filled in."""

    prefix: str  # the special characters before the command
    command: str
    without: frozenset[str] = frozenset()  # lines that are left to the service

    def drop_in(self, job: str, duly: str, config: str) -> str:
        """The drop-in that pokes a job."""
        named = f" --config {_quoted(config)}" if config else ""
        poke = f"ExecStart={self.prefix}{_quoted_words(duly)} exec {job}{named} -- {self.command}"
        settings = (one for one in _SETTINGS if one not in self.without)
        lines = [HEAD, "[Service]", *({_TYPE} - self.without), "ExecStart=", poke, *settings]
        return "\n".join(lines) + "\n"


@record
class Timers:
    """What was read of timers. `wrapped` and `services` are of the reading's jobs, in their order."""

    reading: Reading
    wrapped: tuple[Wrapped, ...]
    services: tuple[Unit, ...]
    context: Context

    def rewritten(self, names: Sequence[str]) -> list[str]:
        """The drop-in of each service that is poked under one of these names, one for each."""
        both = zip(self.wrapped, names, strict=True)
        return [wrapped.drop_in(name, self.context.duly, self.context.config) for wrapped, name in both]


def read_timers(pairs: Sequence[tuple[Unit, Unit | None]], context: Context) -> Timers:
    """What timers and the services that they start are to become. Raises `Misuse` where nobody knows in which zone."""
    found: list[Found] = []
    notes: list[Note] = []
    wrapped: list[Wrapped] = []
    services: list[Unit] = []
    already = 0
    for timer, service in pairs:
        said = list(_notes_on_timer(timer))
        try:
            if service is None:
                raise Left("no_service", "starts a service that is not here")
            if _calls_duly(service):
                already += 1
                continue
            others = [one.name for one, its in pairs if one != timer and its == service]
            if others:
                raise Left(
                    "several_timers",
                    f"starts {service.name}, and so does {', '.join(others)}: a job has one schedule; write all OnCalendar= "
                    "into one timer, and import that",
                )
            job, wrap, more = _job(timer, service, context)
        except Left as e:
            notes += [*said, e.note(Place(timer.path))]
            continue
        found.append(job)
        wrapped.append(wrap)
        services.append(service)
        notes += [*said, *more, *_notes_on_service(service, wrap, context)]
    return Timers(Reading(tuple(found), already, tuple(notes)), tuple(wrapped), tuple(services), context)


def _job(timer: Unit, service: Unit, context: Context) -> tuple[Found, Wrapped, list[Note]]:
    """What a timer and its service are as a job. Raises `Left`, and `Misuse` where nobody knows in which zone."""
    calendars = timer.all("Timer", "OnCalendar")
    monotonic = [one for key in _MONOTONIC for one in timer.all("Timer", key)]
    if not calendars:
        raise _no_calendar(timer, monotonic)
    if not context.zone and not all(has_zone(one.value) for one in calendars):
        raise Misuse(
            f"--zone: {calendars[0].place} names no zone, and nothing here says in which one this host's timers are; name it",
            next_step=f"duly import systemd {timer.name} --zone Europe/Berlin",
        )
    notes = [
        Note(
            "monotonic",
            one.place,
            f"{one.key}={one.value} stays in the timer: it pokes then too, and what is owed is worked",
        )
        for one in monotonic
    ]
    try:
        when = when_of([one.value for one in calendars], context.zone)
    except Left as e:
        says = f"OnCalendar={e.says}; the timer may go on poking: {_BY_HAND}"
        raise Left(e.code, says, calendars[0].place) from e
    wrapped = _wrapped(service)
    original = "; ".join(f"OnCalendar={one.value}" for one in calendars)
    name = slug(service.name.removesuffix(".service").replace("\\x2d", "-").replace("@", "-"))
    told = f"{original}; ExecStart={wrapped.prefix}{wrapped.command}"
    return Found(calendars[0].place, source_of(timer, context.root), told, name, when, (service.name,)), wrapped, notes


def source_of(timer: Unit, root: str) -> str:
    """What an entry says that it comes from: the timer, with its instance, as its own host knows it."""
    return f"{timer.path.removeprefix(root)}{_INSTANCE.format(timer.name) if '@.' in timer.path else ''}{_BY}"


_INSTANCE, _BY = " as {}", " (duly import systemd)"
_BY_HAND = "write a schedule for it by hand, and `duly exec JOB --` before the command"


def _no_calendar(timer: Unit, monotonic: Sequence[Setting]) -> Left:
    if not monotonic:
        return Left("no_schedule", "has no OnCalendar=: there is no schedule to carry over")
    one = monotonic[-1]
    return Left(
        "monotonic",
        f'{one.key}={one.value} counts {_MONOTONIC[one.key]}, not on the clock: no period is owed by that. every = "…" counts '
        f"from a fixed instant, which is another schedule; if that one will do, {_BY_HAND}",
        one.place,
    )


def _calls_duly(service: Unit) -> bool:
    return any(calls_duly(one.value.lstrip(_SPECIAL)) for one in service.all("Service", "ExecStart"))


def _wrapped(service: Unit) -> Wrapped:
    commands = service.all("Service", "ExecStart")
    if not commands:
        raise Left("no_command", "has no ExecStart=", Place(service.path))
    if len(commands) > 1:
        raise Left(
            "several_commands",
            f"{len(commands)} lines of ExecStart= run one after the other: they are one run, and duly wraps one command; put "
            "them into a script, and import again",
            commands[1].place,
        )
    (command,) = commands
    kind = service.last("Service", "Type")
    if kind is not None and kind.value in ("notify", "notify-reload", "forking", "dbus"):
        raise Left(
            "type",
            f"Type={kind.value} waits for the command itself to say that it is up; a job ends, a service stays",
            kind.place,
        )
    match = re.fullmatch(rf"(?P<prefix>[{re.escape(_SPECIAL)}]*)\s*(?P<command>.*)", command.value, re.DOTALL)
    assert match is not None
    if "@" in match["prefix"]:
        raise Left("argv0", "@ gives the command another name for itself, which cannot be passed on", command.place)
    if re.search(r"(?:^|\s);(?:\s|$)", match["command"]):
        raise Left("several_commands", "has several commands in one line; put them into a script", command.place)
    if re.search(r"\$\{(?:date|label|scope|run\.key|window\.)", match["command"]):
        raise Left(
            "placeholder", "has a variable whose name is a placeholder of duly's; give it another name", command.place
        )
    program, blank, rest = match["command"].partition(" ")
    # The first word is the one in which systemd replaces no variables; behind duly it is not the first any more.
    text = literal(f"{program.replace('$', '$$')}{blank}{rest}")
    return Wrapped(match["prefix"], text, _left_to(service))


def _left_to(service: Unit) -> frozenset[str]:
    """The lines of the drop-in that a service is better without."""
    own = {one for one in _SETTINGS for key in _OWN if one.startswith(f"{key}=") and service.last("Service", key)}
    return frozenset(own | _NOT_FOR_ONESHOT) if _why_oneshot(service) else frozenset(own)


def _is_oneshot(service: Unit) -> bool:
    kind = service.last("Service", "Type")
    return kind is not None and kind.value == "oneshot"


def _why_oneshot(service: Unit) -> str:
    """What a service has that wants Type=oneshot; empty where it may be another, or is."""
    return ", ".join(f"{key}=" for key in _OF_ONESHOT if _is_oneshot(service) and service.last("Service", key))


def _notes_on_timer(timer: Unit) -> Iterator[Note]:
    for key in ("RandomizedDelaySec", "AccuracySec"):
        one = timer.last("Timer", key)
        if one is not None and one.value and one.value != "0":
            yield Note(
                "late",
                one.place,
                f"{key}={one.value} stays: a poke may come later than the window is due, which does no harm",
            )
    persistent = timer.last("Timer", "Persistent")
    if persistent is not None and persistent.value.lower() in ("yes", "true", "1", "on"):
        yield Note(
            "persistent",
            persistent.place,
            "Persistent= stays: it pokes once after downtime, and catch_up says what is worked then",
        )
    for key in ("OnClockChange", "OnTimezoneChange"):
        one = timer.last("Timer", key)
        if one is not None:
            yield Note("late", one.place, f"{key}= stays: it pokes, and only what is owed is worked")


def _notes_on_service(service: Unit, wrapped: Wrapped, context: Context) -> Iterator[Note]:
    (command,) = service.all("Service", "ExecStart")
    if (
        command.value.startswith(tuple(_SPECIAL))
        and "-" in command.value[: len(command.value) - len(command.value.lstrip(_SPECIAL))]
    ):
        yield Note(
            "ignored_failure",
            command.place,
            "- before the command: systemd goes on ignoring how it ends, and duly counts a failure as one",
        )
    for key in ("SuccessExitStatus", "RestartForceExitStatus"):
        for one in service.all("Service", key):
            yield Note(
                "exit_status", one.place, f"{key}={one.value} is systemd's; to duly every exit but 0 is a failure"
            )
    kind = service.last("Service", "Type")
    if kind is not None and kind.value == "oneshot":
        stays = _TYPE in wrapped.without
        yield Note("type", kind.place, _SAYS_STAYS.format(_why_oneshot(service)) if stays else _SAYS_BECOMES)
    before = service.last("Service", "ExecStartPre")
    if before is not None:
        yield Note(
            "before",
            before.place,
            "ExecStartPre= runs at each poke, also where nothing is owed; ExecCondition=duly due JOB -q asks first, at a price "
            "(docs/systemd.md)",
        )
    ledger = context.ledger or ("its own" if _names_ledger(service) else "")
    path = ledger.removeprefix("sqlite:///") if ledger.startswith("sqlite:") else ""
    user = service.last("Service", "User")
    if user is not None and user.value not in ("", "root", "0"):
        if not ledger:
            yield Note(
                "user",
                user.place,
                f"runs as {user.value}, and so has a ledger of its own, unless --ledger names one for all",
            )
        elif path:
            yield Note("user", user.place, f"runs as {user.value}, who must be able to write {path}, and its folder")
    limits = [service.last("Service", key) for key in _SANDBOX]
    sandbox = [one for one in limits if one is not None and one.value not in ("", "no", "false")]
    if sandbox and (path or not ledger):
        said = ", ".join(f"{one.key}={one.value}" for one in sandbox)
        folder = os.path.dirname(path) or "/var/lib/duly"
        yield Note(
            "sandbox",
            sandbox[0].place,
            f"{said}: the ledger's folder must be writable in there: ReadWritePaths={folder}",
        )


_SAYS_BECOMES = (
    "Type=oneshot becomes exec, so that a poke that comes to 75 is made again; what is ordered after this unit does not wait "
    "for its end any more"
)
_SAYS_STAYS = (
    "Type=oneshot stays, for {}: so a poke that comes to 75 (another attempt is at work, the ledger is out of reach) is not "
    "made again before the timer's next"
)


def _names_ledger(service: Unit) -> bool:
    return any("DULY_LEDGER=" in one.value for one in service.all("Service", "Environment"))


def _quoted(text: str) -> str:
    """A word of a line of systemd: neither % nor $ means anything in it."""
    escaped = text.replace("%", "%%").replace("$", "$$")
    return (
        escaped
        if re.fullmatch(r"[\w@%+=:,./$-]+", escaped)
        else '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def _quoted_words(call: str) -> str:
    """How duly is called; `python -m duly` are three words."""
    return f"{_quoted(call.removesuffix(' -m duly'))} -m duly" if call.endswith(" -m duly") else _quoted(call)


# -- and back ------------------------------------------------------------------------------------------------------------

_POKE = re.compile(
    rf"""^ExecStart=(?P<prefix>[{re.escape(_SPECIAL)}]*)(?P<duly>(?:"(?:[^"\\]|\\.)*"|[^\s"]+)(?: -m duly)?)"""
    r""" exec (?P<job>[A-Za-z0-9][A-Za-z0-9._-]*)(?: --config (?P<config>"(?:[^"\\]|\\.)*"|[^\s"]+))? -- (?P<command>.*)$""",
    re.MULTILINE,
)


def undo_drop_in(text: str, path: str) -> Undone | None:
    """What becomes of a drop-in: nothing is left of one that is as it was written. None for one that no import has written."""
    if not text.startswith(HEAD):
        return None
    found = _POKE.search(text)
    if found is not None and _is_as_written(text, found):
        return Undone("", frozenset({found["job"]}), frozenset(), ())
    kept = frozenset() if found is None else frozenset({found["job"]})
    note = Note("edited", Place(path), "was changed since it was written, and stays", carried=False)
    return Undone(text, frozenset(), kept, (note,))


def _is_as_written(text: str, found: re.Match[str]) -> bool:
    without = frozenset({_TYPE, *_SETTINGS}) - set(text.split("\n"))
    wrapped = Wrapped(found["prefix"], found["command"], without)
    duly = found["duly"].removesuffix(" -m duly")
    called = _unquoted(duly) + found["duly"].removeprefix(duly)
    return wrapped.drop_in(found["job"], called, _unquoted(found["config"] or "")) == text


def _unquoted(text: str) -> str:
    """What `_quoted` was given."""
    if text.startswith('"'):
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.replace("%%", "%").replace("$$", "$")
