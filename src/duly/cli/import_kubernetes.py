"""`duly import kubernetes`: manifests of CronJobs, whose containers' commands are wrapped."""

from __future__ import annotations

import os
from shlex import quote

from duly.adopt.declare import Declarations
from duly.adopt.files import Change, read
from duly.adopt.kubernetes import Context, read_manifest, undo_manifest
from duly.adopt.propose import adopt, names_of
from duly.cli.import_words import Proposal, add_common, conclude, refuse_flags
from duly.errors import Misuse
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.adopt.found import Note
    from duly.adopt.propose import Adopted
    from duly.cli.output import Json

EXAMPLE = (
    "duly import kubernetes cronjob.yaml --zone UTC\n"
    "  duly import kubernetes cronjob.yaml --zone UTC --write && kubectl diff -f cronjob.yaml\n"
    "  duly import kubernetes cronjob.yaml --undo --write"
)


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`kubernetes`, as a verb of `duly import`."""
    parser = verbs.add_parser(
        "kubernetes",
        help="CronJobs, whose commands are wrapped in their manifests",
        description="Read manifests, and propose them with the commands of their CronJobs wrapped in duly exec. What cannot be "
        "carried over is said and left as it is. Exits with 0 once it was written; a proposal with 1 if something would "
        "be left.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="a manifest in YAML or JSON, with one document or several"
    )
    parser.add_argument(
        "--container", metavar="NAME", default="", help="the container that does the work, where there are several"
    )
    parser.add_argument(
        "--secret", metavar="NAME", default="duly", help="the secret that has the ledger's URL under the key url (duly)"
    )
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    refuse_flags(args)
    contents: dict[str, bytes] = {}
    for file in {os.path.realpath(file): file for file in args.files}.values():  # each once, by whatever name
        content = read(file)
        if content is None:
            raise Misuse(f"{file} is not there", next_step="kubectl get cronjob NAME -o yaml > cronjob.yaml")
        contents[file] = content
    texts = {file: _text(file, content) for file, content in contents.items()}
    if args.undo:
        return _undo(args, contents, texts)
    if args.zone:
        Zone(args.zone)
    context = Context(args.zone or "", args.container, args.duly or "duly", args.secret, args.prefix)
    adopted: list[Adopted] = []
    changes: list[Change] = []
    notes: list[Note] = []
    already = 0
    for file, text in texts.items():
        manifest = read_manifest(text, file, context)
        names = {one.name for one in adopted}
        nowhere = Declarations("", "")
        mine = adopt(manifest.reading.jobs, nowhere, prefix=args.prefix, poked=names, now=0)
        rewritten = manifest.rewritten(names_of(manifest.reading.jobs, mine))
        adopted += mine
        notes += manifest.reading.notes
        already += manifest.reading.already
        changes.append(Change(file, contents[file], rewritten.encode()))
    facts: dict[str, Json] = {"files": list(args.files), "zone": args.zone}
    return conclude(args, Proposal("kubernetes", facts, tuple(adopted), tuple(changes), tuple(notes), already))


def _undo(args: argparse.Namespace, contents: dict[str, bytes], texts: dict[str, str]) -> int:
    changes: list[Change] = []
    notes: list[Note] = []
    names: list[str] = []
    for file, text in texts.items():
        undone = undo_manifest(text, file)
        changes.append(Change(file, contents[file], undone.text.encode()))
        names += sorted(undone.names)
        notes += undone.notes
    facts: dict[str, Json] = {"files": list(args.files)}
    return conclude(args, Proposal("kubernetes", facts, (), tuple(changes), tuple(notes), undone=tuple(names)))


def _text(file: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Misuse(f"{file}: it is not text in UTF-8 (byte {e.start})", next_step=f"file {quote(file)}") from e
