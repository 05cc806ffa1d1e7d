"""A crontab: its lines as cron reads them, and with the commands wrapped.

Each line is kept as the text it is; of those that are changed, all but the command is kept too: the fields, the blanks, the
user. What cron makes of `%` is made of the wrapped line as it was of the original one: of what is put around a command each `%`
is written `\\%`.
"""

from __future__ import annotations

import re

from duly.adopt.found import Found, Left, Note, Place, Reading, Undone, When
from duly.adopt.naming import LONGEST, name_of
from duly.adopt.remarks import remarks
from duly.adopt.shell import Wrapper, calls_duly, job_called, quoted_call, unwrap
from duly.adopt.vixie import in_our_words, read_fields
from duly.errors import Misuse
from duly.records import record
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from duly.adopt.shell import Unwrapped

DEBIAN, CRONIE = "debian", "cronie"
CRONS = (DEBIAN, CRONIE)
PATH = "/usr/bin:/bin"  # what cron gives a command, unless the crontab says otherwise
LONGEST_COMMAND = 998  # bytes that Debian's cron takes; it refuses the whole crontab for one that is longer

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SETTING = re.compile(
    r"""[ \t]*(?:(?P<quote>["'])(?P<quoted>[^=]*?)(?P=quote)|(?P<name>[^\s=]+))\s*=\s*"""
    r"""(?:(?P<q>["'])(?P<in_quotes>.*?)(?P=q)\s*|(?P<value>[^\s"'].*?)\s*)$"""
)
_ENTRY = re.compile(
    r"(?P<lead>[ \t]*-?)(?P<when>@[^ \t]*|[^ \t]+(?:[ \t]+[^ \t]+){4})(?P<blanks>[ \t]+)(?P<rest>[^ \t].*)", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")  # as a user may have one
_USER = re.compile(r"(?P<user>[^ \t]+[ \t]+)(?P<rest>[^ \t].*)", re.DOTALL)
_PERCENT = re.compile(r"(?P<command>(?:\\.|[^%\\]|\\$)*)(?P<stdin>%.*)?", re.DOTALL)


@record
class Context:
    """What is known beside the file: how cron reads it, and how duly is put before a command.

    `zone` is the one of the host whose cron reads the file. `cron` is `debian` or `cronie`, empty where nobody knows. `found`
    is the configuration where a poke looks for one by itself, for a crontab that says nothing about it.
    """

    system: bool
    zone: str
    cron: str = ""
    duly: str = ""  # its path, or `PYTHON -m duly`; empty: as it is found on the PATH of the line
    installed: tuple[str, ...] = ()  # folders that have this duly; the first is taken where none is on the PATH
    config: str = ""  # the configuration that the entries go to
    is_found: bool = True  # by a poke, without being named
    prefix: str = ""
    has_ledger: bool = False  # named there, for whoever pokes
    source: str = ""  # what the entries say that they come from


@record
class Line:
    """A line that is to be wrapped."""

    number: int
    before: str  # all that stands before the command
    command: str
    stdin: str  # from the % on
    shell: str
    wrapper: Wrapper
    end: str

    def wrapped(self, job: str) -> str | None:
        """The line as a poke of a job; None where it cannot be put so."""
        inner = self.wrapper.wrap(job, self.command, self.shell)
        if inner is None:
            return None
        again = unwrap(inner)
        assert again is not None
        assert (again.job, again.config, again.command) == (job, self.wrapper.config, self.command)
        return f"{self.before}{inner}{self.stdin}{self.end}"


@record
class Poke:
    """A line that calls duly already; `job` is empty where it names none, `when` None where nobody can tell."""

    place: Place
    job: str
    when: When | None


@record
class Crontab:
    """What was read of a crontab. `lines` are those of the reading's jobs, in their order."""

    texts: tuple[str, ...]
    lines: tuple[Line, ...]
    reading: Reading
    pokes: tuple[Poke, ...]
    users: tuple[str, ...] = ()  # as whom its jobs run, where it says so

    def rewritten(self, names: Sequence[str]) -> str:
        """The crontab with its lines wrapped as jobs of these names, one for each."""
        texts = list(self.texts)
        for line, name in zip(self.lines, names, strict=True):
            wrapped = line.wrapped(name)
            assert wrapped is not None
            texts[line.number - 1] = wrapped
        return "".join(texts)


def read_crontab(text: str, file: str, context: Context) -> Crontab:
    """What is in a crontab. Raises `Misuse` where nobody can tell what it means."""
    texts = tuple(_LINE.findall(text))
    settings: dict[str, str] = {}
    found: list[Found] = []
    notes: list[Note] = []
    lines: list[Line] = []
    pokes: list[Poke] = []
    users: set[str] = set()
    without_ledger: set[str] = set()
    for number, whole in enumerate(texts, start=1):
        place, line = Place(file, number), whole.removesuffix("\n")
        if not line.strip(" \t") or line.lstrip(" \t").startswith("#"):
            continue
        if (setting := _SETTING.fullmatch(line)) is not None:
            name, value = _setting(setting)
            settings[name] = value
            notes += _notes_on(name, value, place, context, settings)
            continue
        try:
            entry = _entry(line, context)
            if (poked := job_called(entry["rest"])) is not None:
                pokes.append(Poke(place, poked, _when_or_none(entry, settings, place, context)))
                continue
            when = _when(entry, settings, place, context)
            one = _line(number, entry, settings, whole, context)
        except Left as e:
            notes.append(e.note(place))
            continue
        lines.append(one)
        users.add(entry["user"].strip())
        if "DULY_LEDGER" not in settings:
            without_ledger.add(entry["user"].strip())
        same = (entry["user"].strip(), one.shell, tuple(sorted(settings.items())), one.command, one.stdin)
        twin = next((other for other in found if (other.same, other.when) == (same, when)), None)
        if twin is not None:
            notes.append(Note("twice", place, _SAYS_TWICE.format(twin.place.line)))
        found.append(Found(place, context.source, line.strip(), name_of(one.command), when, same))
        notes += [Note(code, place, says) for code, says in remarks(one.command)]
    if len(without_ledger) > 1 and not context.has_ledger:
        users_named = ", ".join(sorted(without_ledger))
        says = f"its lines run as {users_named}: each has a ledger of its own, unless --ledger names one for all"
        notes.append(Note("ledger", Place(file), says))
    return Crontab(
        texts, tuple(lines), Reading(tuple(found), len(pokes), tuple(notes)), tuple(pokes), tuple(sorted(users - {""}))
    )


_SAYS_TWICE = (
    "does the same as line {} at the same times: cron runs both, so they are two jobs; delete one, if it is a mistake"
)


def _setting(found: re.Match[str]) -> tuple[str, str]:
    name = found["name"] if found["name"] is not None else found["quoted"]
    return name, found["in_quotes"] if found["in_quotes"] is not None else found["value"]


def _entry(line: str, context: Context) -> dict[str, str]:
    """The parts of a line that is neither blank nor comment nor setting. Raises `Left`."""
    match = _ENTRY.fullmatch(line)
    if match is None:
        raise Left("not_accepted", "is neither a setting nor a schedule with a command: cron does not run this line")
    parts = {"lead": match["lead"], "when": match["when"], "blanks": match["blanks"], "user": "", "rest": match["rest"]}
    if not context.system:
        return parts
    named = _USER.fullmatch(match["rest"])
    if named is None:
        raise Left("not_accepted", "no command follows the user: cron does not run this line")
    return {**parts, "user": named["user"], "rest": named["rest"]}


def _when_or_none(entry: dict[str, str], settings: Mapping[str, str], place: Place, context: Context) -> When | None:
    try:
        return _when(entry, settings, place, context)
    except (Left, Misuse):
        return None


def _when(entry: dict[str, str], settings: Mapping[str, str], place: Place, context: Context) -> When:
    """The schedule of a line, in duly's words. Raises `Left`."""
    if entry["lead"].endswith("-") and context.cron == DEBIAN:
        raise Left(
            "not_accepted", "begins with -, which cronie knows and Debian's cron does not: it does not run this line"
        )
    words = entry["when"].split()
    if words[0] == "@reboot":
        raise Left(
            "reboot",
            "@reboot is no schedule: no period is owed, so there is nothing for duly to keep; cron goes on starting it",
        )
    text, gap, fold = in_our_words(words)
    wildcard = read_fields(words).wildcard
    zone = context.zone
    if "CRON_TZ" in settings:
        if not context.cron:
            raise Misuse(
                f"{place}: CRON_TZ={settings['CRON_TZ']} is the zone of what follows for cronie, and one more variable of the "
                "environment for Debian's cron; say which one reads this file: --cron cronie or --cron debian",
                next_step=f"duly import crontab {place.file} --cron cronie",
            )
        if context.cron == CRONIE and settings["CRON_TZ"]:
            zone = settings["CRON_TZ"]
            # cronie looks at the clock of such a line's zone, and at nothing that this clock has skipped or repeated.
            gap, fold = "skip", "both" if wildcard or zone != context.zone else "first"
            _refuse_zone(zone)
    return When((text,), zone, gap, fold)


def _refuse_zone(zone: str) -> None:
    try:
        Zone(zone)
    except Misuse as e:
        raise Left("zone", f"CRON_TZ={zone} is no zone that is known here: {e}") from e


def _line(number: int, entry: dict[str, str], settings: Mapping[str, str], whole: str, context: Context) -> Line:
    """What is needed to wrap a line. Raises `Left` where it cannot be."""
    end = "\n" if whole.endswith("\n") else ""
    if not end:
        raise Left(
            "not_accepted", "is the last line and has no end: Debian's cron refuses the file; end it with a newline"
        )
    if "\r" in whole:
        raise Left(
            "carriage_return",
            "ends with a carriage return, which cron hands to the shell: the line does not run; mend it",
        )
    if "\0" in whole:
        raise Left("not_accepted", "has a NUL in it: cron does not run this line")
    parts = _PERCENT.fullmatch(entry["rest"])
    assert parts is not None
    is_named = not context.is_found or any(name in settings for name in ("HOME", "XDG_CONFIG_HOME", "DULY_CONFIG"))
    duly = quoted_call(context.duly or _duly_on(settings.get("PATH", PATH), context.installed))
    before = f"{entry['lead']}{entry['when']}{entry['blanks']}{entry['user']}"
    shell = settings.get("SHELL", "/bin/sh")
    wrapper = Wrapper(duly, context.config if is_named else "")
    line = Line(number, before, parts["command"], parts["stdin"] or "", shell, wrapper, end)
    longest = f"{context.prefix}{'x' * LONGEST}-999"
    wrapped = line.wrapped(longest)
    if wrapped is None:
        raise Left(
            "shell",
            f"SHELL={shell} is no shell whose quotes are known here; put the command into a script, and import again",
        )
    hint = f"{context.prefix}{name_of(line.command)}-99"
    shortest = (
        len(wrapped.encode("utf-8", "surrogateescape"))
        - len(before.encode("utf-8", "surrogateescape"))
        - len(longest)
        + len(hint)
        - 1
    )
    if shortest > LONGEST_COMMAND:
        raise Left(
            "too_long",
            f"would be a command of {shortest} bytes, and Debian's cron refuses a crontab with one of more than "
            f"{LONGEST_COMMAND}; put the command into a script, and import again",
        )
    return line


def _duly_on(path: str, installed: Collection[str]) -> str:
    """How duly is called where this is the PATH: by its name, where that finds it."""
    folders = path.split(":")
    return "duly" if any(folder in folders for folder in installed) else f"{next(iter(installed))}/duly"


def _notes_on(name: str, value: str, place: Place, context: Context, settings: Mapping[str, str]) -> list[Note]:
    if name == "RANDOM_DELAY" and context.cron != DEBIAN:
        return [
            Note(
                "random_delay",
                place,
                f"cronie starts what follows up to {value} minutes late: a poke may come late, harmlessly",
            )
        ]
    if name == "CRON_TZ" and context.cron == DEBIAN:
        return [
            Note(
                "cron_tz",
                place,
                f"to Debian's cron CRON_TZ={value} is a variable for commands; the schedule is in {context.zone}",
            )
        ]
    if name == "CRON_TZ" and context.cron == CRONIE and context.zone not in ("UTC", value):
        hour = f"in the hour in which the clocks of {context.zone} go back"
        return [Note("cron_tz", place, f"{hour} cronie skips lines at fixed times in {value}; duly does not")]
    if name == "TZ":
        zone = settings.get("CRON_TZ", context.zone) if context.cron == CRONIE else context.zone
        return [Note("tz", place, f"TZ={value} is the zone of the commands; the schedule is in {zone}")]
    return []


# -- whose crontab it is -------------------------------------------------------------------------------------------------


def is_system(text: str, path: str, is_user: Callable[[str], bool], is_program: Callable[[str], bool]) -> bool | None:
    """Whether the lines name a user before the command; None where neither the path tells it nor the lines do.

    `is_user` and `is_program` say what this host knows of a word.
    """
    if path == "/etc/crontab" or path.startswith("/etc/cron.d/"):
        return True
    if path.startswith("/var/spool/cron/"):
        return False
    commands = list(filter(None, map(_after_schedule, text.split("\n"))))
    words = [command.split()[0] for command in commands]
    if not words or any(
        _NAME.fullmatch(word) is None for word in words
    ):  # a file with no user in one line runs none of it
        return False
    if any(map(calls_duly, commands)) != any(calls_duly(command.partition(" ")[2].lstrip()) for command in commands):
        return not any(map(calls_duly, commands))
    surely_commands = any(is_program(word) and not is_user(word) for word in words)
    surely_users = any(is_user(word) and not is_program(word) for word in words)
    return False if surely_commands and not surely_users else None


def _after_schedule(line: str) -> str:
    """What comes after the schedule, in a line that has one."""
    if not line.strip(" \t") or line.lstrip(" \t").startswith("#") or _SETTING.fullmatch(line):
        return ""
    match = _ENTRY.fullmatch(line)
    return "" if match is None else match["rest"]


# -- and back ------------------------------------------------------------------------------------------------------------


def undo_crontab(text: str, file: str, *, system: bool, imported: Collection[str]) -> Undone:
    """The crontab with the lines unwrapped whose jobs were imported."""
    texts = _LINE.findall(text)
    names: set[str] = set()
    kept: set[str] = set()
    notes: list[Note] = []
    for place, whole in enumerate(texts):
        line = whole.removesuffix("\n")
        if not line.strip(" \t") or line.lstrip(" \t").startswith("#") or _SETTING.fullmatch(line):
            continue
        try:
            entry = _entry(line, Context(system, "UTC"))
        except Left:
            continue
        poked = job_called(entry["rest"])
        if poked is None:
            continue
        parts = _PERCENT.fullmatch(entry["rest"])
        assert parts is not None
        unwrapped = unwrap(parts["command"])
        if unwrapped is None or unwrapped.job not in imported:
            kept.add(poked)
            where = Place(file, place + 1)
            if poked in imported:
                notes.append(
                    Note("edited", where, f"{poked} was changed since it was imported, and stays", carried=False)
                )
            elif unwrapped is not None:
                notes.append(Note("not_imported", where, _says_elsewhere(unwrapped)))
            continue
        before = f"{entry['lead']}{entry['when']}{entry['blanks']}{entry['user']}"
        texts[place] = f"{before}{unwrapped.command}{parts['stdin'] or ''}{whole[len(line) :]}"
        names.add(unwrapped.job)
    return Undone("".join(texts), frozenset(names), frozenset(kept), tuple(notes))


def _says_elsewhere(line: Unwrapped) -> str:
    """What is to be said of a line of ours whose job the configuration does not have."""
    config = f"; it names --config {line.config}" if line.config else ", if it was imported at all"
    return f"{line.job} stays: the configuration that was looked at has no imported entry of it{config}"
