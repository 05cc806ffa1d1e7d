"""What every verb of `duly import` takes, knows of its host, prints and writes.

Exit codes: of a proposal 0 where all would be carried over, 1 where something would not be; 0 as soon as `--write` has done
what could be done, so that what comes after it in a line is done too. What was left is said in either case.
"""

from __future__ import annotations

import os
import re
import sys
from difflib import unified_diff
from shlex import quote

from duly.adopt.declare import Declarations
from duly.adopt.files import Change, read, write
from duly.adopt.found import Note, Place
from duly.adopt.shell import is_callable
from duly.cli.output import document, note, table
from duly.errors import ConfigurationInvalid, Misuse
from duly.records import record
from duly.redaction import Redaction, passwords_in, secrets_of
from duly.work.whereabouts import SYSTEM, users_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from duly.adopt.propose import Adopted
    from duly.cli.output import Json

CARRIED, NOT_CARRIED = 0, 1
PRIVATE, PUBLIC = 0o600, 0o644  # of a new configuration
_READABLE = 0o044


def add_common(parser: argparse.ArgumentParser, config_means: str = "") -> None:
    """The flags that all verbs have."""
    parser.add_argument("--write", action="store_true", help="do it; without it nothing is changed")
    parser.add_argument(
        "--dry-run", action="store_true", help="nothing is changed: as without --write; every command has this flag"
    )
    parser.add_argument("--undo", action="store_true", help="take an import back; with --write")
    parser.add_argument("--zone", metavar="ZONE", help="the zone in which the schedules are meant; else this host's")
    parser.add_argument("--prefix", metavar="TEXT", default="", help="what the names of the jobs begin with, as web1-")
    parser.add_argument("--duly", metavar="PATH", help="where duly is there, or 'PYTHON -m duly'; else as this one")
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        default="table",
        dest="format",
        help="print one document for programs",
    )
    if config_means:
        parser.add_argument("--config", metavar="FILE", help=config_means)
        parser.add_argument(
            "--ledger",
            metavar="URL",
            help="written into that file, where it has none; absolute, and without a password",
        )


@record
class Proposal:
    """What would be done, or was."""

    source: str
    facts: dict[str, Json]
    adopted: tuple[Adopted, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    already: int = 0
    undone: tuple[str, ...] = ()


def conclude(args: argparse.Namespace, proposal: Proposal) -> int:
    """Print what is proposed, do it where that is asked for, and answer the exit code."""
    to_stdout = next((change for change in proposal.changes if change.path == "-"), None)
    changes = [change for change in proposal.changes if change.path != "-" and change.before != change.after]
    if args.write:
        write(changes)
    if args.format == "json":
        print(_as_json(proposal, changes, to_stdout, written=args.write))
    elif args.write and to_stdout is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(to_stdout.after or b"")
        for rows in _done(proposal, changes):
            for line in rows.splitlines():
                note(line)
        _talk(proposal)
    else:
        shown = [*changes, *([to_stdout] if to_stdout is not None and to_stdout.before != to_stdout.after else [])]
        _in_words(args, proposal, shown)
        _talk(proposal)
    _last_words(args, proposal, changes, to_stdout)
    return CARRIED if args.write or all(one.carried for one in proposal.notes) else NOT_CARRIED


def _in_words(args: argparse.Namespace, proposal: Proposal, changes: Sequence[Change]) -> None:
    if args.write:
        print("\n\n".join(filter(None, _done(proposal, changes))))
        return
    if proposal.adopted:
        print(table([_row(one) for one in proposal.adopted]))
    for change in changes:
        print()
        print(_difference(change))


def _done(proposal: Proposal, changes: Sequence[Change]) -> list[str]:
    """The jobs, and the files that were written."""
    rows = [[f"{change.verb}d", change.path] for change in changes]
    return [table(rows) for rows in ([_row(one) for one in proposal.adopted], rows) if rows]


def _row(adopted: Adopted) -> list[str]:
    when = adopted.entry.when
    return [adopted.name, ", ".join(when.cron), f"in {when.zone}", ", ".join(str(one.place) for one in adopted.found)]


def _difference(change: Change) -> str:
    """The change as a difference of two files, without what looks like a secret."""
    redaction = Redaction(secrets_of(os.environ))
    before, after = ((text or b"").decode("utf-8", "replace").splitlines() for text in (change.before, change.after))
    label = "standard input" if change.path == "-" else change.path
    names = "/dev/null" if change.before is None else label, "/dev/null" if change.after is None else label
    lines = unified_diff(before, after, *names, lineterm="", n=1)
    return "\n".join(redaction.of(line) for line in lines)


def _talk(proposal: Proposal) -> None:
    """What a person should know, on stderr: first what was not carried over."""
    for one in sorted(proposal.notes, key=lambda one: one.carried):
        note(f"{one.place}: {'' if one.carried else 'left as it is: '}{Redaction().of(one.says)}")


def _last_words(
    args: argparse.Namespace, proposal: Proposal, changes: Sequence[Change], to_stdout: Change | None
) -> None:
    changed = bool(changes) or (to_stdout is not None and to_stdout.before != to_stdout.after)
    if proposal.already and not args.undo:
        one = proposal.already == 1
        note(
            f"{proposal.already} {'of them calls duly already, and stays' if one else 'call duly already, and stay'} so"
        )
    if not changed:
        note("nothing to take back" if args.undo else "nothing to import: no file would change")
    elif not args.write:
        note("nothing was changed; --write does it")


def _as_json(proposal: Proposal, changes: Sequence[Change], to_stdout: Change | None, *, written: bool) -> str:
    redaction = Redaction(secrets_of(os.environ))
    jobs: list[Json] = [
        {
            "job": one.name,
            "cron": list(one.entry.when.cron),
            "zone": one.entry.when.zone,
            "gap": one.entry.when.gap or None,
            "fold": one.entry.when.fold or None,
            "from": [
                {"file": found.place.file, "line": found.place.line, "original": redaction.of(found.original)}
                for found in one.found
            ],
        }
        for one in proposal.adopted
    ]
    notes: list[Json] = [
        {
            "code": one.code,
            "file": one.place.file,
            "line": one.place.line or None,
            "says": redaction.of(one.says),
            "carried": one.carried,
        }
        for one in proposal.notes
    ]
    files: list[Json] = [{"file": change.path, "change": change.verb} for change in changes]
    content = None if to_stdout is None or to_stdout.after is None else to_stdout.after.decode("utf-8", "replace")
    return document(
        "duly.import.v1",
        {
            "source": proposal.source,
            **proposal.facts,
            "written": written,
            "jobs": jobs,
            "undone": list(proposal.undone),
            "already": proposal.already,
            "changes": files,
            "content": content,
            "notes": notes,
        },
    )


# -- the configuration ---------------------------------------------------------------------------------------------------


def declarations_in(path: str) -> tuple[Declarations, bytes | None]:
    """The configuration that entries go to, with its bytes. Raises `ConfigurationInvalid`."""
    content = read(path)
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError as e:
        raise ConfigurationInvalid(
            f"{path}: it is not text in UTF-8 (byte {e.start})", next_step=f"duly jobs check {path}"
        ) from e
    return Declarations(path, text), content


def config_change(
    path: str, declared: Declarations, content: bytes | None, adopted: Sequence[Adopted], ledger: str | None, mode: int
) -> Change:
    """The change of the configuration that declares what was adopted. Raises `Misuse` for a ledger that does not fit."""
    new = [one.entry for one in adopted if not one.is_declared]
    named = _ledger_to_write(declared, ledger) if new else ""
    if not new:
        return Change(path, content, content)
    return Change(path, content, declared.with_entries(new, named).text.encode(), mode)


def _ledger_to_write(declared: Declarations, ledger: str | None) -> str:
    if ledger is None:
        return ""
    if passwords_in(ledger):
        raise Misuse(
            "--ledger: it has a password, and the configuration may be read by others; write [ledger] with url_env or url_file "
            "there, and leave --ledger out",
            next_step="duly jobs check",
        )
    from duly.cli.ledgers import is_postgres, path_of_ledger

    url = ledger if is_postgres(ledger) else f"sqlite:///{os.path.abspath(path_of_ledger(ledger))}"
    there = declared.ledger()
    if there is None:
        return url
    if there.get("url") not in (url, ledger):
        raise Misuse(
            f"--ledger: {declared.path} names a ledger already; leave --ledger out, or change it there",
            next_step=f"duly jobs check {declared.path}",
        )
    return ""


def config_undone(
    path: str, declared: Declarations, content: bytes | None, names: Collection[str]
) -> tuple[Change, list[str], list[Note]]:
    """The configuration without the entries of these jobs: the change, the names taken out, and what is to be said of them."""
    blocks = declared.imported()
    wanted = sorted(name for name in names if name in blocks)
    gone = [name for name in wanted if declared.is_as_written(name)]
    notes = [
        Note("edited", Place(path), f"[jobs.{name}] was changed since it was imported, and stays", carried=False)
        for name in wanted
        if name not in gone
    ]
    notes += [
        Note(
            "retire",
            Place(path),
            f"[jobs.{name}] goes from here; a ledger that knows it goes on expecting it, until: duly jobs retire {name} "
            "--reason 'import taken back'",
        )
        for name in gone
    ]
    if not gone:
        return Change(path, content, content), gone, notes
    left = declared.without([blocks[name] for name in gone]).text
    return Change(path, content, left.encode() if left.strip() else None), gone, notes


def config_of(args: argparse.Namespace, *, system: bool, root: str = "") -> tuple[str, bool]:
    """The configuration that entries go to, and whether a poke finds it by itself. Raises `Misuse`."""
    found = [
        f"{root}{path}"
        for path in ([SYSTEM] if system else [f"{os.path.expanduser('~')}/.config/duly/duly.toml", SYSTEM])
    ]
    named = args.config or os.environ.get("DULY_CONFIG")
    users = users_file(os.environ)
    if named:
        path = os.path.abspath(named)
    elif system:
        path = found[0]
    elif users is not None:
        path = f"{root}{users}"
    else:
        raise Misuse(
            "--config: nobody says where this user's home is; name the file",
            next_step=f"duly import {args.verb} --help",
        )
    if re.search(r"[\0-\x1f\x7f'\"\\]", path):
        raise Misuse(
            f"--config: {path} has a quote, a backslash or a control character, which a line of cron cannot have",
            next_step=f"duly import {args.verb} --help",
        )
    return path, path in found


def ledger_named(args: argparse.Namespace, declared: Declarations) -> str:
    """The ledger that whoever pokes with this configuration has; empty where each user has one."""
    if args.ledger is not None:
        from duly.cli.ledgers import is_postgres, path_of_ledger

        url: str = args.ledger
        return url if is_postgres(url) else f"sqlite:///{os.path.abspath(path_of_ledger(url))}"
    there = declared.ledger()
    return "" if there is None else str(there.get("url") or "elsewhere")


# -- who may read it -----------------------------------------------------------------------------------------------------


def mode_of_new(sources: Collection[str], *, system: bool) -> int:
    """The mode of a new configuration: it says what the sources say, and is open to no more people."""
    return PUBLIC if system and all(_readable_by(one) == _READABLE for one in sources) else PRIVATE


def is_as_private(config: str, sources: Collection[str], mode: int) -> bool:
    """Whether a configuration that gets this mode, if it is a new one, is read by nobody who may not read the sources."""
    try:
        told = os.stat(config)
    except FileNotFoundError:
        readable, owner, group = mode & _READABLE, os.geteuid(), os.getegid()
    else:
        readable, owner, group = told.st_mode & _READABLE, told.st_uid, told.st_gid
    for source in sources:
        its = _readable_by(source)
        if its == _READABLE:
            continue
        if readable & ~its or (source != "-" and not _is_of(source, owner, group, readable)):
            return False
    return True


def _is_of(source: str, owner: int, group: int, readable: int) -> bool:
    told = os.stat(source)
    return owner in (0, told.st_uid) and (not readable & 0o040 or group == told.st_gid)


def _readable_by(source: str) -> int:
    """Who but its owner may read a source; standard input is nobody else's."""
    return 0 if source == "-" else os.stat(source).st_mode & _READABLE


def readers(config: str, before: bytes | None, mode: int, users: Collection[str]) -> list[Note]:
    """What is to be said where a new configuration is private, and others poke with it."""
    others = sorted({*users} - {"", "root", "0"})
    if before is not None or mode == PUBLIC or not others:
        return []
    says = f"can be read by root alone, as what it is made of, and {', '.join(others)} must read it to poke: chmod 644 {config}"
    return [Note("unreadable", Place(config), says)]


# -- what is said of all -------------------------------------------------------------------------------------------------


def first_poke(adopted: Sequence[Adopted], config: str, *, is_found: bool) -> list[Note]:
    """What the first poke of each job does, where there is a job."""
    if not any(not one.is_declared for one in adopted):
        return []
    named = "" if is_found else f" --config {quote(config)}"
    line = f"duly exec {adopted[0].name}{named} -- true"
    says = (
        "the first poke of a job works the newest window that is due by then; at its own time that is the one it comes for. By "
        f"hand before, it would be the last one, which has been worked without duly: `{line}` puts that one on record instead"
    )
    return [Note("first_poke", Place(config), says)]


# -- the host ------------------------------------------------------------------------------------------------------------


def refuse_flags(args: argparse.Namespace) -> None:
    """Raise `Misuse` for a flag that could not stand in what would be written."""
    step = f"duly import {args.verb} --help"
    if args.write and args.dry_run:
        raise Misuse("--write does it, --dry-run does not; leave one out", next_step=step)
    if re.fullmatch(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,29})?", args.prefix) is None:
        raise Misuse(
            f"--prefix: {args.prefix!r} cannot begin a job's name: up to 30 letters, digits and ._-, as web1-",
            next_step=step,
        )
    if args.duly and not is_callable(args.duly):
        raise Misuse(
            f"--duly: {args.duly!r} is no path of a program that is called duly, by which the line would be known again, nor "
            "'PYTHON -m duly'; and it may have no quotes and no backslashes",
            next_step=step,
        )


def now() -> int:
    """The time, for what is looked up in the next years."""
    from time import time_ns

    return time_ns() // 1000


def host_zone(etc: str = "/etc") -> str:
    """The zone of this host: /etc/localtime, else /etc/timezone; empty where neither says."""
    _, found, name = os.path.realpath(f"{etc}/localtime").partition("/zoneinfo/")
    if not (found and name):
        try:
            with open(f"{etc}/timezone", encoding="ascii") as file:
                name = file.read().strip()
        except (OSError, ValueError):
            name = ""
    name = name.removeprefix("posix/")
    return "UTC" if name in ("Etc/UTC", "UCT", "Zulu", "Etc/UCT") else name


def own_call(given: str | None) -> tuple[str, tuple[str, ...]]:
    """How duly is called: as it was said; else by where this one is, with the folders that have it under its name."""
    if given:
        return given, ()
    own = (
        os.path.abspath(sys.argv[0])
        if os.path.basename(sys.argv[0]) == "duly"
        else f"{os.path.dirname(sys.executable)}/duly"
    )
    if not os.access(own, os.X_OK):
        own = f"{sys.executable} -m duly"
    if not is_callable(own):
        raise Misuse(
            f"--duly: this one is {own}, which a line of cron or of a unit does not take; say another",
            next_step="duly import crontab FILE --duly /usr/local/bin/duly",
        )
    if own.endswith(" -m duly"):
        return own, ()
    folders = [folder for folder in ("/usr/local/bin", "/usr/bin", "/bin") if _is_same(f"{folder}/duly", own)]
    return "", tuple(dict.fromkeys([os.path.dirname(own), *folders]))


def _is_same(path: str, own: str) -> bool:
    return os.path.exists(path) and os.path.realpath(path) == os.path.realpath(own)
