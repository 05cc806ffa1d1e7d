"""The outcome file: how exec ended, as one JSON object. Off the path of a call that asks for none."""

from __future__ import annotations

import json
import os

from duly.cli.complain import say
from duly.errors import Misuse
from duly.ledger.named import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from duly.work.poke import Report


def forget_outcome(path: str) -> None:
    """Remove what an earlier call wrote: if this one is killed, that must not be taken for its outcome."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise Misuse(f"--outcome-file: there is no folder {folder}", next_step=f"mkdir -p {quoted(folder)}")
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as e:
        raise Misuse(f"--outcome-file: {path} cannot be written: {e.strerror}") from e


def write_outcome(path: str, job: str, reports: Collection[Report], code: int, why: str) -> None:
    """The outcome as one JSON object, for callers who must tell duly's own codes from a child's."""
    runs = [
        {"run": str(r.key), "attempt": r.number, "code": r.code, "state": r.state, "cause": r.cause} for r in reports
    ]
    outcome = {"schema": "duly.outcome.v1", "job": job, "code": code, "reason": why, "runs": runs}
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "x", encoding="utf-8") as f:  # "x": never through a link that somebody laid there
            json.dump(outcome, f)
            f.write("\n")
        os.replace(temporary, path)
    except OSError as e:  # the code tells the most of it
        say(f"duly: --outcome-file: {path} cannot be written: {e.strerror}")
