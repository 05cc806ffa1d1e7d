"""`duly import crontab`: the lines of a crontab, wrapped in `duly exec` where they stand."""

from __future__ import annotations

import os
import re
import shutil
import sys
from shlex import quote

from duly.adopt.crontab import CRONIE, CRONS, DEBIAN, Context, is_system, read_crontab, undo_crontab
from duly.adopt.files import Change, read
from duly.adopt.found import Note, Place
from duly.adopt.propose import adopt, merged_night, names_of
from duly.adopt.shell import BUILTINS
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
from duly.times import Zone
from duly.work.whereabouts import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from duly.adopt.crontab import Poke
    from duly.adopt.declare import Declarations

EXAMPLE = (
    "duly import crontab /etc/cron.d/shop\n"
    "  crontab -l > mine && duly import crontab mine --write && crontab mine\n"
    "  duly import crontab /etc/cron.d/shop --undo --write"
)
STDIN = "-"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`crontab`, as a verb of `duly import`."""
    parser = verbs.add_parser(
        "crontab",
        help="lines of cron, wrapped where they stand",
        description="Read a crontab, and propose an entry of duly.toml for each line, and the line wrapped in duly exec. What "
        "cannot be carried over is said and left as it is. Exits with 0 once it was written; a proposal with 1 if something "
        "would be left.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    parser.add_argument(
        "file", metavar="FILE", help="a crontab; - is standard input, and then --write prints the new one"
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--system", action="store_true", help="its lines name a user before the command, as in /etc/cron.d"
    )
    whose.add_argument("--user", action="store_true", help="its lines name none, as those that crontab -l prints")
    parser.add_argument(
        "--cron", choices=CRONS, help="which cron reads it, where that matters (CRON_TZ=); else this host's"
    )
    add_common(
        parser,
        f"the configuration that the jobs go to; else $DULY_CONFIG, else {SYSTEM} for a system crontab, and the user's "
        "(~/.config/duly/duly.toml) for another",
    )


def run(args: argparse.Namespace) -> int:
    refuse_flags(args)
    content = sys.stdin.buffer.read() if args.file == STDIN else read(args.file)
    if content is None:
        raise Misuse(f"{args.file} is not there", next_step="duly import crontab /etc/crontab")
    text = content.decode("utf-8", "surrogateescape")
    system = _is_system(args, text)
    config, is_found = config_of(args, system=system)
    declared, before = declarations_in(config)
    if args.write:
        _refuse_spool(args.file)
    if args.undo:
        return _undo(args, text, content, declared, before, system=system)
    context = _context(args, declared, system=system, is_found=is_found)
    crontab = read_crontab(text, args.file, context)
    mode, instant = mode_of_new([args.file], system=system), now()
    adopted = adopt(
        crontab.reading.jobs,
        declared,
        prefix=args.prefix,
        poked={poke.job for poke in crontab.pokes},
        shown=is_as_private(config, [args.file], mode),
        now=instant,
    )
    after = crontab.rewritten(names_of(crontab.reading.jobs, adopted)).encode("utf-8", "surrogateescape")
    merged = [said for one in adopted if (said := merged_night(one, instant)) is not None]
    notes = (
        *crontab.reading.notes,
        *merged,
        *_at_other_times(crontab.pokes, declared, is_found=is_found),
        *readers(config, before, mode, crontab.users if adopted else ()),
        *first_poke(adopted, config, is_found=is_found),
    )
    proposal = Proposal(
        "crontab",
        {"file": args.file, "zone": context.zone, "config": config, "system": system},
        tuple(adopted),
        (config_change(config, declared, before, adopted, args.ledger, mode), Change(args.file, content, after)),
        notes,
        crontab.reading.already,
    )
    return conclude(args, proposal)


def _context(args: argparse.Namespace, declared: Declarations, *, system: bool, is_found: bool) -> Context:
    zone = args.zone or host_zone()
    if not zone:
        raise Misuse(
            "--zone: neither /etc/localtime nor /etc/timezone says in which zone this host's cron is; name it",
            next_step=f"duly import crontab {quote(args.file)} --zone Europe/Berlin",
        )
    Zone(zone)
    duly, installed = own_call(args.duly)
    return Context(
        system,
        zone,
        args.cron or host_cron(),
        duly,
        installed,
        declared.path,
        is_found,
        args.prefix,
        bool(ledger_named(args, declared)),
        _source(args.file),
    )


def _at_other_times(pokes: Sequence[Poke], declared: Declarations, *, is_found: bool) -> list[Note]:
    """What is to be said of jobs that were imported, and whose lines have other times now than their entries."""
    notes = []
    named = "" if is_found else f" --config {quote(declared.path)}"
    for job in sorted(declared.imported()):
        lines = [poke for poke in pokes if poke.job == job]
        entry = declared.when(job)
        if not lines or entry is None or any(poke.when is None for poke in lines):
            continue
        whens = [poke.when for poke in lines if poke.when is not None]
        times = {line for when in whens for line in when.cron}
        if times != {*entry.cron} or {when.zone for when in whens} != {entry.zone}:
            says = (
                f"pokes {job} at {', '.join(sorted(times))} in {whens[0].zone}, and [jobs.{job}] of {declared.path} says "
                f"{', '.join(entry.cron)} in {entry.zone}: that counts, and a poke at another time works what is owed. To "
                f"change the schedule, write it there, and: duly jobs apply {job}{named} --reason 'other times'"
            )
            notes.append(Note("other_times", lines[0].place, says))
    return notes


def _undo(
    args: argparse.Namespace, text: str, content: bytes, declared: Declarations, before: bytes | None, *, system: bool
) -> int:
    imported = declared.imported()
    undone = undo_crontab(text, args.file, system=system, imported=imported)
    # An import that did not come to its end has left entries that no line pokes.
    mine = declared.of(_source(args.file))
    elsewhere = {name: path for name in undone.names if (path := _called_by(declared.source(name), name, args.file))}
    change, gone, said = config_undone(
        declared.path, declared, before, (undone.names | mine) - undone.kept - elsewhere.keys()
    )
    stay = [
        Note(
            "called_elsewhere",
            Place(declared.path),
            f"[jobs.{name}] stays: {path}, from which it was imported, calls it",
        )
        for name, path in sorted(elsewhere.items())
    ]
    after = undone.text.encode("utf-8", "surrogateescape")
    proposal = Proposal(
        "crontab",
        {"file": args.file, "config": declared.path, "system": system},
        (),
        (Change(args.file, content, after), change),
        (*undone.notes, *stay, *said),
        undone=tuple(sorted(undone.names | set(gone))),
    )
    return conclude(args, proposal)


def _called_by(source: str, job: str, file: str) -> str:
    """The file from which a job was imported, where that is another one and calls the job."""
    path = source.removesuffix(_BY)
    if path == source or (file != STDIN and os.path.realpath(path) == os.path.realpath(file)):
        return ""
    content = read(path) or b""
    called = re.search(rf"\sexec\s+{re.escape(job)}\s".encode(), content)
    return path if called is not None else ""


_BY = " (duly import crontab)"


def _source(file: str) -> str:
    return "a crontab on standard input" if file == STDIN else f"{os.path.abspath(file)}{_BY}"


# -- what is known beside the file ---------------------------------------------------------------------------------------


def _is_system(args: argparse.Namespace, text: str) -> bool:
    if args.system or args.user:
        return bool(args.system)
    path = args.file if args.file == STDIN else os.path.realpath(args.file)
    found = is_system(text, path, _is_user, lambda word: word in BUILTINS or shutil.which(word) is not None)
    if found is None:
        raise Misuse(
            f"{args.file}: whether the word after the schedule is a user or a command cannot be told from here; say --system "
            "or --user",
            next_step=f"duly import crontab {quote(args.file)} --user",
        )
    return found


def _is_user(word: str) -> bool:
    from pwd import getpwnam

    try:
        getpwnam(word)
    except KeyError:
        return False
    return True


def host_cron(sbin: str = "/usr/sbin") -> str:
    """Which cron this host has, empty where none is found or it is another one."""
    for name in ("crond", "cron"):
        try:
            with open(f"{sbin}/{name}", "rb") as file:
                program = file.read(1 << 22)
        except OSError:
            continue
        if b"busybox" in program.lower():
            return ""
        return CRONIE if b"CRON_TZ" in program else DEBIAN
    return ""


def _refuse_spool(file: str) -> None:
    if file != STDIN and os.path.realpath(file).startswith("/var/spool/"):
        raise Misuse(
            f"{file} is cron's own copy, which crontab(1) writes; take a file, and give it back",
            next_step="crontab -l > mine && duly import crontab mine --write && crontab mine",
        )
