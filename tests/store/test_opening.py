"""A ledger is opened while others close it: whoever closes it last locks the file for a moment, and nobody may notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duly

OPENS_AND_CLOSES = """
import sys, duly
for _ in range(100):
    ledger = duly.sqlite(sys.argv[1])
    with ledger.take(f"{sys.argv[2]}/visit:adhoc-{_}") as claim:
        claim.complete()
    ledger.close()
"""


def test_a_ledger_opens_while_others_close_it(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    duly.sqlite(path).close()

    visitors = [
        subprocess.Popen([sys.executable, "-c", OPENS_AND_CLOSES, path, str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    said = [visitor.communicate()[1] for visitor in visitors]

    assert said == [""] * 4


MAKES_WHAT_IT_IS_TOLD = """
import sys, duly
print("ready", flush=True)
for line in sys.stdin:
    duly.sqlite(line.strip())
    print("made", flush=True)
"""


def test_a_ledger_is_made_by_many_at_once(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKES_WHAT_IT_IS_TOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    assert all_say("ready", makers)

    for n in range(50):
        for maker in makers:
            assert maker.stdin is not None
            print(tmp_path / f"{n}.db", file=maker.stdin, flush=True)
        assert all_say("made", makers)

    for maker in makers:
        maker.communicate()


def all_say(word: str, makers: list[subprocess.Popen[str]]) -> bool:
    """Whether the next line of each is this word. One that met an error has ended, and says nothing."""
    return [maker.stdout.readline() if maker.stdout else "" for maker in makers] == [f"{word}\n"] * len(makers)
