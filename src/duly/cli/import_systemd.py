"""`duly import systemd`: timers, whose services get a drop-in that wraps their command."""

from __future__ import annotations

import os
import re
import subprocess
from shlex import quote

from duly.adopt.files import Change, read
from duly.adopt.found import Note, Place
from duly.adopt.propose import adopt, names_of
from duly.adopt.systemd import HEAD, Context, Unit, read_timers, read_unit, source_of, undo_drop_in
from duly.cli.import_words import (
    Proposal,
    add_common,
    conclude,
    config_change,
    config_of,
    config_undone,
    declarations_in,
    first_poke,
    host_zone,
    is_as_private,
    ledger_named,
    mode_of_new,
    now,
    own_call,
    readers,
    refuse_flags,
)
from duly.errors import Misuse
from duly.records import record
from duly.times import Zone
from duly.work.whereabouts import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from duly.adopt.declare import Declarations
    from duly.cli.output import Json

EXAMPLE = (
    "duly import systemd backup.timer\n"
    "  duly import systemd backup.timer report.timer --write && systemctl daemon-reload\n"
    "  duly import systemd backup.timer --undo --write"
)
DROP_IN = "duly.conf"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`systemd`, as a verb of `duly import`."""
    parser = verbs.add_parser(
        "systemd",
        help="timers, whose services get a drop-in",
        description="Read timers and their services, and propose an entry of duly.toml for each, and a drop-in that wraps the "
        "service's command in duly exec. What cannot be carried over is said. Exits with 0 once it was written; a proposal "
        "with 1 if something would be left.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    parser.add_argument(
        "units", metavar="UNIT", nargs="+", help="a timer, by its name or the path of its file; or its service"
    )
    parser.add_argument("--user", action="store_true", help="units of this user, not of the system")
    parser.add_argument("--root", metavar="FOLDER", default="", help="look for units below this folder, as in an image")
    add_common(
        parser, f"the configuration that the jobs go to; else $DULY_CONFIG, else {SYSTEM}, with --user the user's"
    )


@record
class _Seen:
    """A timer with its service, and the drop-in that the service has, or is to have."""

    timer: Unit
    service: Unit | None
    drop_in: str
    before: bytes | None

    @property
    def is_taken(self) -> bool:
        """Whether the drop-in's place has a file that is none of ours."""
        return self.before is not None and not self.before.startswith(HEAD.encode())


def run(args: argparse.Namespace) -> int:
    refuse_flags(args)
    config, is_found = config_of(args, system=not args.user, root=args.root)
    declared, before = declarations_in(config)
    seen = _look_at_all(args)
    if args.undo:
        return _undo(args, seen, declared, before)
    zone = args.zone or host_zone(f"{args.root}/etc")
    if zone:
        Zone(zone)
    named = "" if is_found else config.removeprefix(args.root)
    context = Context(zone, _called(args.duly), named, ledger_named(args, declared), args.root)
    timers = read_timers([(one.timer, one.service) for one in seen if not one.is_taken], context)
    found = timers.reading.jobs
    sources = {path for service in timers.services for path in _paths(service)}
    sources |= {path for one in seen for path in _paths(one.timer)}
    mode = mode_of_new(sources, system=not args.user)
    shown = is_as_private(config, sources, mode)
    adopted = adopt(found, declared, prefix=args.prefix, shown=shown, now=now())
    changes = [config_change(config, declared, before, adopted, args.ledger, mode)]
    places = {(one.service.path, one.service.name): one for one in seen if one.service is not None}
    for service, text in zip(timers.services, timers.rewritten(names_of(found, adopted)), strict=True):
        place = places[service.path, service.name]
        changes.append(Change(place.drop_in, place.before, text.encode()))
    users = [user.value for one in timers.services if (user := one.last("Service", "User")) is not None]
    notes = (
        *(Note("drop_in", Place(one.drop_in), _SAYS_TAKEN, carried=False) for one in seen if one.is_taken),
        *timers.reading.notes,
        *readers(config, before, mode, users),
        *first_poke(adopted, config, is_found=is_found),
        *_reload(args, changes[1:]),
    )
    facts: dict[str, Json] = {"units": list(args.units), "zone": zone or None, "config": config}
    return conclude(args, Proposal("systemd", facts, tuple(adopted), tuple(changes), notes, timers.reading.already))


_SAYS_TAKEN = "is there, and no import has written it: give it another name, and import again"


def _paths(unit: Unit) -> set[str]:
    return {unit.path, *(one.place.file for one in unit.settings)}


def _reload(args: argparse.Namespace, changes: Sequence[Change]) -> list[Note]:
    if not changes or args.root:
        return []
    reload = "systemctl --user daemon-reload" if args.user else "systemctl daemon-reload"
    return [Note("reload", Place(changes[0].path), f"counts after {reload}")]


def _undo(args: argparse.Namespace, seen: Sequence[_Seen], declared: Declarations, before: bytes | None) -> int:
    names: set[str] = set()
    mine: set[str] = set()
    kept: set[str] = set()
    changes: list[Change] = []
    notes: list[Note] = []
    for one in seen:
        # An import that did not come to its end has left entries that no drop-in pokes.
        source = source_of(one.timer, args.root)
        mine |= declared.of(source)
        undone = undo_drop_in((one.before or b"").decode("utf-8", "replace"), one.drop_in)
        if undone is None:
            continue
        kept |= undone.kept
        notes += undone.notes
        if not undone.names:
            continue
        names |= undone.names
        changes.append(Change(one.drop_in, one.before, None))
        elsewhere = {name: path for name in undone.names if (path := _called_by(declared, name, source, args.root))}
        kept |= elsewhere.keys()
        notes += [
            Note(
                "called_elsewhere",
                Place(declared.path),
                f"[jobs.{name}] stays: it was imported from {path}, which is there",
            )
            for name, path in elsewhere.items()
        ]
    change, gone, said = config_undone(declared.path, declared, before, (names | mine) - kept)
    facts: dict[str, Json] = {"units": list(args.units), "config": declared.path}
    said = [*notes, *said, *_reload(args, changes)]
    undone_names = tuple(sorted(names | set(gone)))
    return conclude(args, Proposal("systemd", facts, (), (*changes, change), tuple(said), undone=undone_names))


def _called_by(declared: Declarations, job: str, source: str, root: str) -> str:
    """The timer from which a job was imported, where that is another one and is there."""
    if job not in declared.imported() or (its := declared.source(job)) == source:
        return ""
    path = its.partition(" as ")[0].removesuffix(" (duly import systemd)")
    return path if path != its and os.path.exists(f"{root}{path}") else ""


def _called(given: str | None) -> str:
    """How duly is called from a unit: by where it is."""
    call, folders = own_call(given)
    return call or f"{folders[0]}/duly"


# -- units ---------------------------------------------------------------------------------------------------------------


def _look_at_all(args: argparse.Namespace) -> list[_Seen]:
    """Each timer that is named, once, however often and by whatever name it is."""
    seen = [_look(args, unit) for unit in args.units]
    return list({(os.path.realpath(one.timer.path), one.timer.name): one for one in seen}.values())


def _look(args: argparse.Namespace, unit: str) -> _Seen:
    """A timer and its service, by name or path. Raises `Misuse` where there is no such timer."""
    if "/" in unit:
        folders: tuple[str, ...] = (os.path.dirname(os.path.abspath(unit)),)
        name = os.path.basename(unit)
    else:
        folders, name = _folders(args), unit
    if name.endswith(".service"):
        name = f"{name.removesuffix('.service')}.timer"
    elif not name.endswith(".timer"):
        name = f"{name}.timer"
    timer = _read(args, name, folders, by_name="/" not in unit)
    if timer is None:
        systemctl = "systemctl --user" if args.user else "systemctl"
        raise Misuse(f"{unit}: there is no {name} in {', '.join(folders)}", next_step=f"{systemctl} cat {quote(name)}")
    named = timer.last("Timer", "Unit")
    service = named.value if named is not None and named.value else f"{name.removesuffix('.timer')}.service"
    found = _read(args, service, folders, by_name="/" not in unit) if service.endswith(".service") else None
    below = folders[0] if "/" in unit else f"{args.root}{_own_folder(args)}"
    drop_in = f"{below}/{service}.d/{DROP_IN}"
    return _Seen(timer, found, drop_in, read(drop_in))


SYSTEM_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


def _folders(args: argparse.Namespace) -> tuple[str, ...]:
    if not args.user:
        return tuple(f"{args.root}{folder}" for folder in SYSTEM_FOLDERS)
    below = (f"{folder.removesuffix('system')}user" for folder in SYSTEM_FOLDERS)
    return (_own_folder(args), *(f"{args.root}{folder}" for folder in below))


def _own_folder(args: argparse.Namespace) -> str:
    """Where drop-ins of our own go."""
    return os.path.expanduser("~/.config/systemd/user") if args.user else SYSTEM_FOLDERS[0]


def _read(args: argparse.Namespace, name: str, folders: Sequence[str], *, by_name: bool) -> Unit | None:
    paths = (by_name and not args.root and _told_by_systemd(args, name)) or _files_of(name, folders)
    files = list(_texts(paths))
    return read_unit(name, files) if files else None


def _told_by_systemd(args: argparse.Namespace, name: str) -> list[str]:
    """The files of which a running systemd says that the unit is made; empty where none answers."""
    words = ["systemctl", *(["--user"] if args.user else []), "show", "--property=FragmentPath,DropInPaths", "--", name]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603  our words
    except (OSError, subprocess.TimeoutExpired):
        return []
    told = dict(line.partition("=")[::2] for line in said.stdout.splitlines())
    path = told.get("FragmentPath", "")
    return [path, *told.get("DropInPaths", "").split()] if said.returncode == 0 and path else []


def _texts(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        content = read(path)
        if content is not None:
            yield path, content.decode("utf-8", "replace")


def _files_of(name: str, folders: Sequence[str]) -> list[str]:
    """The file of a unit and its drop-ins, in the order in which they count; empty where there is none.

    Of two files of one name that of the first folder counts. An instance's file may be its template's.
    """
    template = re.sub(r"@[^.]*\.", "@.", name)
    names = [name] if template == name else [name, template]
    path = next((f"{folder}/{one}" for one in names for folder in folders if os.path.isfile(f"{folder}/{one}")), None)
    if path is None:
        return []
    drop_ins: dict[str, str] = {}
    for one in reversed(names):
        for folder in reversed(folders):
            below = f"{folder}/{one}.d"
            if os.path.isdir(below):
                drop_ins.update({file: f"{below}/{file}" for file in os.listdir(below) if file.endswith(".conf")})
    return [path, *(drop_ins[file] for file in sorted(drop_ins))]
