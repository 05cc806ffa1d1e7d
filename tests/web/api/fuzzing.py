"""Fuzzing: schemathesis asks a real server whatever its description allows, and what it does not, and looks at every answer.

All of its checks are on. Its requests are made from the description alone; so a ledger has to hold what some of them find.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duly.web import dashboard
from duly.web.api import PREFIX
from duly.web.credentials import Credentials
from duly.web.settings import Settings
from tests.books import Book
from tests.web.api.conftest import some_of_everything
from tests.web.conftest import served

TOKEN = "correct-horse-battery-staple"

# What a description cannot say of a value is refused with 400 all the same: a zone that there is not, a range that ends before
# it begins, a message that this run does not have. A key that was used for something else is answered with 422.
CONFIGURATION = """
[phases.coverage]
unexpected-methods = ["PUT", "TRACE"]

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]

[[operations]]
include-operation-id = ["grid", "resolve", "resolve-message", "retry-message", "skip-message", "start-backfill"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "409", "422"]
"""


@contextmanager
def seeded(book: Book) -> Iterator[int]:
    """The port of a server that allows changes to a ledger with some of everything."""
    some_of_everything(book)
    settings = Settings(allow_writes=True, credentials=Credentials(TOKEN, ()))
    with served(dashboard(book.path, settings)) as browser:
        yield browser.port


def fuzz(port: int, folder: Path, *, examples: int, seed: int, seconds: int) -> subprocess.CompletedProcess[str]:
    """Ask a server so many things of each operation, for so long at most; what was found."""
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    line = [str(Path(sys.executable).with_name("schemathesis")), "run", f"http://localhost:{port}{PREFIX}/openapi.json"]
    line += ["--checks", "all", "--max-examples", str(examples), "--seed", str(seed), "--generation-database", "none"]
    line += ["--header", f"Authorization: Bearer {TOKEN}", "--no-color", "--workers", "1", "--no-shrink"]
    line += ["--max-time", str(seconds)] if seconds else []
    return subprocess.run(
        line, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}
    )
