"""`duly runs export`: how each window of a range ended, as a file that shows when it was changed. `duly runs verify-export`:
whether such a file is whole; 0: it is, 1: it is not, or a ledger says otherwise.

The file goes to whoever asks; its last hash is printed, to be kept elsewhere: with it, or with a key, nobody can write
the file anew unseen.
"""

from __future__ import annotations

import os
import sys
from itertools import chain

from duly import __version__
from duly.cli import codes
from duly.cli.bar import Bar
from duly.cli.complain import look_at
from duly.cli.ledgers import open_to_look
from duly.cli.output import note, show, table
from duly.cli.runs_argument import known_job
from duly.errors import Misuse, TimeInvalid, WindowInvalid
from duly.evidence.chain import Chain, Reading
from duly.evidence.export import Comparison, Wanted
from duly.evidence.export import export as export_windows
from duly.records import record
from duly.redaction import shown_url
from duly.times import parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from duly.cli.output import Json

NOT_WHOLE = 1
_SHORTEST_KEY = 16  # bytes: a word that can be guessed signs nothing


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `runs export` and `runs verify-export`."""
    flags = parser.add_argument_group("export and verify-export")
    flags.add_argument("-o", "--output", metavar="FILE", help="where to write; a new file, or - (default)")
    flags.add_argument("--at", metavar="INSTANT", help="the instant by which it is judged what is late (default: now)")
    flags.add_argument("--key-file", metavar="FILE", help="a secret that signs the export, or by which it was signed")
    flags.add_argument("--expect", metavar="HASH", help="the last hash, as it was printed when the file was written")
    flags.add_argument("-q", "--quiet", action="store_true", help="do not say how far it is")
    flags.add_argument("--against", metavar="URL", help="a ledger: say what it says otherwise than the file")


# -- writing -----------------------------------------------------------------------------------------------------------


def export(args: argparse.Namespace, words: list[str]) -> int:
    """Write a range of the ledger, or of one job."""
    match words:
        case [between]:
            job = None
        case [between, name]:
            job = name
        case _:
            raise Misuse(
                "runs export: name a range, and then a job, if not all are meant",
                next_step="duly runs export 2026-11-01..2026-12-01 -o november.jsonl",
            )
    key = _key(args.key_file)
    store = open_to_look(args.ledger)
    job = None if job is None else store.read(known_job(job, args.scope))
    links = Chain()
    wanted = Wanted(between, job, args.scope, _instant(args.at), __version__)
    path = args.output or "-"
    # On the terminal itself what is written is to be seen.
    with (
        _Sink(path) as write,
        Bar(between, "windows written", quiet=args.quiet or (path == "-" and sys.stdout.isatty())) as bar,
    ):

        def line(fields: dict[str, Json]) -> None:
            write(links.line(fields))
            bar(links.windows)

        store.read(export_windows(wanted, line))
        write(links.trailer(key))
    where = "stdout" if path == "-" else path
    note(f"{links.windows} windows written to {where}; keep this elsewhere, it closes the file:")
    note(f"hash {links.hash}")
    return codes.DONE


def _instant(text: str | None) -> int | None:
    try:
        return None if text is None else parse_instant(text)
    except TimeInvalid as e:
        raise Misuse(f"at: {e}", next_step="duly runs export 2026-11-01..2026-12-01 --at 2026-12-01T00:00:00Z") from e


def _key(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as f:
            key = f.read().rstrip(b"\r\n")
    except OSError as e:
        raise Misuse(f"key-file: cannot read {path}: {e.strerror}", next_step=look_at(path)) from e
    if len(key) < _SHORTEST_KEY:
        raise Misuse(
            f"key-file: {path} has {len(key)} bytes, and a key has {_SHORTEST_KEY} at least",
            next_step=f"openssl rand -hex 32 > {_quoted(path)}",
        )
    return key


class _Sink:
    """Where an export goes. It is written beside the file that it is to be, which is there whole, or not at all; one that is
    there already is never written over.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._beside = f"{path}.{os.getpid()}.part"
        self._file: BinaryIO | None = None

    def __enter__(self) -> Callable[[bytes], object]:
        if self._path == "-":
            return sys.stdout.buffer.write
        if os.path.lexists(self._path):
            raise self._is_there()
        try:
            self._file = open(self._beside, "xb")
        except OSError as e:
            folder = os.path.dirname(self._path) or "."
            raise Misuse(f"output: {self._path}: {e.strerror}", next_step=look_at(folder)) from e
        return self._file.write

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is None:
            sys.stdout.buffer.flush()
            return
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                os.link(self._beside, self._path)
        except FileExistsError as e:
            raise self._is_there() from e
        finally:
            self._file.close()
            os.unlink(self._beside)

    def _is_there(self) -> Misuse:
        return Misuse(
            f"output: {self._path} is there already, and is not written over",
            next_step=f"duly runs verify-export {_quoted(self._path)}",
        )


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


# -- verifying ---------------------------------------------------------------------------------------------------------


@record
class _Finding:
    """What is wrong: with the file (`broken`), or of a window where a ledger says otherwise (`other`)."""

    kind: str
    where: str
    text: str


def verify_export(args: argparse.Namespace, words: list[str]) -> int:
    """Say whether a file is whole, and signed; and what a ledger says otherwise, where one is named."""
    if len(words) != 1:
        raise Misuse("runs verify-export: name one file", next_step="duly runs verify-export november.jsonl")
    (path,) = words
    key = _key(args.key_file)
    try:
        with open(path, "rb") as f:
            reading = Reading(f)
            findings = _read(reading, args.against)
    except OSError as e:
        raise Misuse(f"file: cannot read {path}: {e.strerror}", next_step=look_at(path)) from e
    broken = reading.broken or reading.distrust(key=key, expected=args.expect)
    if broken is not None:
        where = f"line {broken.line}" if broken.line else "trailer"
        findings = [_Finding("broken", where, broken.text), *findings]
    facts: dict[str, Json] = {
        "file": path,
        "whole": broken is None,
        "windows": reading.counted,
        "hash": reading.closing or None,
        "signed": reading.is_signed,
        "signature_checked": key is not None,
        "against": None if args.against is None else shown_url(args.against),
        "header": dict(reading.header),
    }
    records: list[dict[str, Json]] = [{"key": one.where, "kind": one.kind, "text": one.text} for one in findings]
    show(args, "duly.verify_export.v1", facts, "findings", records, lambda: _in_words(findings))
    _talk(reading, args, whole=broken is None)
    return NOT_WHOLE if findings else codes.DONE


def _read(reading: Reading, against: str | None) -> list[_Finding]:
    """Read all of the file; beside the ledger, where one is named."""
    windows = reading.windows()
    first = next(windows, None)  # the header has been read by then
    if against is None or reading.broken is not None:
        for _ in windows:
            pass
        return []
    header = reading.header
    comparison = Comparison(header, chain([] if first is None else [first], windows))
    store = open_to_look(against)
    try:
        at = _instant(str(header["exported_at"]))
        again = Wanted(str(header["range"]), _text(header["job"]), _text(header["scope"]), at)
        store.read(export_windows(again, comparison.see))
    except (Misuse, TimeInvalid, WindowInvalid) as e:  # whatever its hash: no export says such a thing
        return [_Finding("other", "line 1", f"its header cannot be compared: {e}")]
    return [_Finding("other", one.key, one.text) for one in comparison.end()]


def _of_whom(header: Mapping[str, Json]) -> str:
    """Which lines an export is of."""
    job = "all jobs" if header["job"] is None else f"the job {header['job']}"
    return job if header["scope"] is None else f"{job}, scope {header['scope']}"


def _text(value: Json) -> str | None:
    return None if value is None else str(value)


def _in_words(findings: list[_Finding]) -> str:
    return table([[one.where, one.text] for one in findings])


def _talk(reading: Reading, args: argparse.Namespace, *, whole: bool) -> None:
    if args.format != "table":
        return
    if not whole:
        note("the file is not to be trusted")
        return
    header = reading.header
    of = f"{header['range']} as of {header['exported_at']}, {_of_whom(header)}"
    note(f"{reading.counted} windows of {of}, and every line is as it was written; hash {reading.closing}")
    if reading.is_signed and args.key_file is None:
        note("it is signed, which was not looked at: --key-file")
    elif args.expect is None and args.key_file is None:
        note("somebody could have written all of it anew: compare the hash with the one that was kept, by --expect")
