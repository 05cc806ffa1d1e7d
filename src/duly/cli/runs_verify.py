"""`duly runs verify`: is there what the ledger says is there? Each completed run's file, attempt and messages are looked at.

0: all of it is there; 1: something is not, and each finding ends with the line to type.
"""

from __future__ import annotations

from duly.cli import codes
from duly.cli.ledgers import open_to_look
from duly.cli.output import GLYPHS, Cell, as_json, iso, line_name, note, show, table, typed, window_name
from duly.cli.runs_argument import addressed, echo, known_job, run_argument
from duly.errors import UnknownRun
from duly.evidence import verdict
from duly.evidence.next import parse_range
from duly.evidence.verdict import line_zone, window_of
from duly.evidence.verify import Claimed, claimed_of, completed
from duly.ledger.ask import now as ledger_now
from duly.records import record
from duly.work.output import GONE, left_beside, wrong_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.ledger.address import Addressed

NOT_THERE = 1
_ALL = 1 << 31


@record
class Finding:
    """Something that is not as the ledger says: of which kind, in words, and the line to type."""

    kind: str
    text: str
    step: str


@record
class _Verified:
    claimed: Claimed
    findings: list[Finding]
    left: list[str]  # temporaries beside the file; they do no harm


def verify(args: argparse.Namespace, words: list[str]) -> int:
    """Look at one run, several keys, or the completed runs of a job, a range of it or the whole ledger."""
    store = open_to_look(args.ledger)
    match words:
        case []:
            found = store.read(completed(None, args.scope, first=None, beyond=None, limit=args.n))
        case [job] if ":" not in job:
            found = store.read(_of_job(job, args.scope, None, args.n))
        case [job, between] if ".." in between and ":" not in job:
            found = store.read(_of_job(job, args.scope, between, _ALL))
        case [job, window] if ":" not in job:
            found = [_named(args, [job, window])]
        case keys:
            found = [_named(args, [key]) for key in keys]
    looked = [_look(claimed, args) for claimed in found]
    wrong = sum(bool(one.findings) for one in looked)
    facts: dict[str, Json] = {"as_of": iso(store.now()), "looked_at": len(looked), "wrong": wrong}
    show(
        args,
        "duly.verify.v1",
        facts,
        "runs",
        [_flat(one) if args.format == "csv" else _as_json(one) for one in looked],
        lambda: _in_words(looked),
    )
    if args.format == "table":
        note(f"{_many(len(looked))} looked at; " + (f"{wrong} not as the ledger says" if wrong else "all is there"))
    return NOT_THERE if wrong else codes.DONE


def _many(runs: int) -> str:
    return "1 completed run" if runs == 1 else f"{runs} completed runs"


async def _of_job(job: str, scope: str | None, between: str | None, limit: int) -> list[Claimed]:
    job = await known_job(job, scope)
    first = beyond = None
    if between is not None:
        wanted = parse_range(between, await line_zone(job), await ledger_now())
        first = None if wanted.begin is None else 2 * wanted.begin
        beyond = None if wanted.end is None else 2 * wanted.end
    return await completed(job, scope, first=first, beyond=beyond, limit=limit)


def _named(args: argparse.Namespace, words: list[str]) -> Claimed:
    found, claimed = open_to_look(args.ledger).read(_see(words, args.scope))
    echo(found)
    return claimed


async def _see(words: list[str], scope: str | None) -> tuple[Addressed, Claimed]:
    found = await addressed(run_argument(words, "runs verify"), scope)
    if found.row is None:
        raise UnknownRun(
            f"{found.key} has no row in the ledger: it was never opened", next_step=f"duly explain {' '.join(words)}"
        )
    return found, await claimed_of(await window_of(found, await ledger_now()))


# -- looking -----------------------------------------------------------------------------------------------------------


def _look(claimed: Claimed, args: argparse.Namespace) -> _Verified:
    """Hold what the ledger says of a run against what is there."""
    window = claimed.window
    if not claimed.is_completed:
        said = window.verdict
        step = typed(said.verb or "explain", window, args.ledger)
        return _Verified(claimed, [Finding("state", f"it is not complete but {said.word}", step)], [])
    findings: list[Finding] = []
    left: list[str] = []
    if not claimed.has_its_attempt:
        text = "the attempt that completed it is not on record: something else wrote to the ledger's tables"
        findings.append(Finding("attempt", text, typed("runs show", window, args.ledger)))
    if not claimed.messages.is_settled:
        findings.append(Finding("messages", claimed.messages.words, typed("outbox show", window, args.ledger)))
    if (output := claimed.output) is not None:
        if wrong := wrong_with(output):
            again = typed("reopen", window, args.ledger)
            aside = "" if wrong == GONE else "; move it aside first"
            findings.append(Finding("output", f"{output.path} {wrong}{aside}", again))
        left = left_beside(output, claimed.attempts)
    return _Verified(claimed, findings, left)


# -- telling -----------------------------------------------------------------------------------------------------------


def _as_json(one: _Verified) -> dict[str, Json]:
    output, messages = one.claimed.output, one.claimed.messages
    return {
        **as_json(one.claimed.window),
        "verified": not one.findings,
        "output": one.claimed.elsewhere if output is None else output.path,
        "size": None if output is None else output.size,
        "sha256": None if output is None else output.sha256,
        "messages": messages.total,
        "messages_settled": messages.settled,
        "findings": [{"kind": found.kind, "text": found.text, "next_step": found.step} for found in one.findings],
        "left_over": list(one.left),
    }


def _flat(one: _Verified) -> dict[str, Json]:
    """The same for a table of a program: a cell holds one text."""
    texts = "; ".join(found.text for found in one.findings)
    return {**_as_json(one), "findings": texts, "left_over": " ".join(one.left)}


def _in_words(looked: list[_Verified]) -> str:
    return table([row for one in looked for row in _rows(one)])


def _rows(one: _Verified) -> list[list[str | Cell]]:
    window = one.claimed.window
    name: list[str | Cell] = [line_name(window), window_name(window)]
    sign = verdict.FAILED if one.findings else verdict.COMPLETE
    rows: list[list[str | Cell]] = [
        [Cell(GLYPHS[sign], sign), *name, found.text, found.step] for found in one.findings
    ] or [[Cell(GLYPHS[sign], sign), *name, _what_is_there(one.claimed)]]
    return rows + [["", *name, f"{path} was left by a killed attempt", f"rm {_quoted(path)}"] for path in one.left]


def _what_is_there(claimed: Claimed) -> str:
    parts = []
    if claimed.output is not None:
        parts.append(f"{claimed.output.path}, {claimed.output.size} bytes")
    elif claimed.elsewhere is not None:
        parts.append(f"{claimed.elsewhere}, which is not looked at")
    if claimed.messages.total:
        parts.append(claimed.messages.words)
    return "; ".join(parts) or "no file and no message"


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)
