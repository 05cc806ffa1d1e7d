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
