"""Every test sees the pinned tzdata, not the system's copy, and a PostgreSQL server where one can be had."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from duly.testing.releases import ReleaseMissing, release
from tests.servers import MACHINES_OWN, Server, answers, from_wheel
from tests.shares import TODAY, told_today

# A busy machine is no fault of a law: nothing is timed here.
hypothesis.settings.register_profile("laws", deadline=None)
hypothesis.settings.load_profile("laws")

# Under nohup, or started with & by a shell without job control, they come ignored, and so would every process of a test.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["PYTHONTZPATH"] = ""  # for the processes that a test starts
os.environ["XDG_CONFIG_HOME"] = os.devnull  # of whoever runs the tests: a configuration is none of theirs
zoneinfo.reset_tzpath(())


MEMORY = Path("/dev/shm")  # Linux keeps it in memory
ROOM = 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Files of tests lie in memory where there is room: processes die here, never the machine, so that no disk need be waited
    for. `--basetemp` says otherwise.
    """
    if hasattr(config, "workerinput") or config.option.basetemp is not None or not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free >= ROOM:
        config.option.basetemp = folder = tempfile.mkdtemp(prefix="duly-tests-", dir=MEMORY)
        os.chmod(folder, 0o755)  # some processes are another user's
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of what is told many times over, a share; all of what is named."""
    if not tells_all(config):
        items[:], left_out = told_today(items)
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was not told."""
    if not tells_all(config):
        terminalreporter.write_line(
            f"Of what is told many times over, a share was told (tests/shares.py): again by DULY_TESTS_DAY={TODAY},"
            " all of it by DULY_TESTS=all"
        )


def tells_all(config: pytest.Config) -> bool:
    """Whether all is told: where it is asked for, or where tests were named."""
    named = config.option.keyword or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return bool(named) or os.environ.get("DULY_TESTS") == "all"


RELEASES = [
    line
    for line in (Path(__file__).parent / "tzdata-releases.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture(scope="session")
def releases() -> dict[str, Path]:
    """The zone files of each pinned release of the database of zones, oldest first: for what must hold when rules change."""
    try:
        return {version: release(version) for version in RELEASES}
    except ReleaseMissing as e:
        pytest.skip(f"RELEASES OF TZDATA ARE MISSING, so drift between them is not tested here: {e}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A PostgreSQL server: the one that DULY_TEST_POSTGRES names, the machine's own, or one from a wheel."""
    named = os.environ.get("DULY_TEST_POSTGRES")
    if named == "none":
        pytest.skip("DULY_TEST_POSTGRES=none: no story on PostgreSQL is told")
    if named is None and answers(MACHINES_OWN):
        named = MACHINES_OWN
    if named is not None:
        server = Server(named)
        yield server
        server.close()
        return
    with from_wheel(tmp_path_factory.mktemp("postgres")) as url:
        yield Server(url)
