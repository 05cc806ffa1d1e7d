"""duly metrics: printed, into a file for a collector, and served; the numbers themselves are asked for in tests/evidence."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from duly.cli import main
from duly.cli.metrics import scraped
from duly.cli.metrics_http import Server, address
from duly.errors import Misuse
from duly.schedule.spec import daily
from tests.story import SOURCE, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close", daily("UTC"))
    story.complete("close")
    return story


def test_it_prints_what_a_monitor_may_watch(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["metrics", "--ledger", story.path])

    said = capsys.readouterr()
    assert code == 0
    assert 'duly_complete_through_timestamp_seconds{job_name="close",scope=""} 1795132800\n' in said.out
    assert said.err == ""


def test_a_file_is_replaced_at_once_and_nothing_is_left_beside_it(story: Story, tmp_path: Path) -> None:
    path = tmp_path / "collected" / "duly.prom"
    path.parent.mkdir()
    path.write_text("what was there\n")
    before = path.stat().st_ino

    assert main(["metrics", "--ledger", story.path, "--textfile", str(path)]) == 0

    assert path.read_text().startswith("# HELP duly_complete_through_timestamp_seconds ")
    assert path.stat().st_ino != before, "whoever has it open reads the old one to its end"
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask(), "a collector that is another user reads it"
    assert os.listdir(path.parent) == ["duly.prom"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_of_a_ledger_that_cannot_be_read_the_file_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stood there would be believed for ever."""
    path = tmp_path / "duly.prom"
    path.write_text('duly_windows_late{job_name="close",scope=""} 0\n')
    (tmp_path / "ledger.db").write_text("this is no database, and long enough to be taken for one" * 40)

    code = main(["metrics", "--ledger", str(tmp_path / "ledger.db"), "--textfile", str(path)])

    assert code == 73
    assert "duly_ledger_up 0\n" in path.read_text()
    assert "duly_windows_late" not in path.read_text()
    assert capsys.readouterr().err.splitlines()[-1].startswith("  try: ")


def test_a_folder_that_is_not_there_is_a_usage_error(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--ledger", story.path, "--textfile", "/nowhere/duly.prom"]) == 64
    assert "--textfile: /nowhere/duly.prom cannot be written" in capsys.readouterr().err


# -- served -------------------------------------------------------------------------------------------------------------


@contextmanager
def served(ledger: str) -> Iterator[HTTPConnection]:
    with Server("127.0.0.1", 0, lambda: scraped(ledger)[0]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        client = HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
        yield client
        client.close()
        server.shutdown()
        thread.join()


def ask(client: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    client.request(method, path, headers=headers)
    answer = client.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_a_scrape_looks_at_the_ledger_as_it_is_now(story: Story) -> None:
    with served(story.path) as client:
        status, kind, said = ask(client, "/metrics")
        story.clock.set("2026-11-21T02:00:00Z")
        later = ask(client, "/metrics")[2]

    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'duly_windows_late{job_name="close",scope=""} 0\n' in said
    assert 'duly_windows_late{job_name="close",scope=""} 1\n' in later


def test_who_asks_for_open_metrics_is_given_it(story: Story) -> None:
    with served(story.path) as client:
        _, kind, said = ask(client, "/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")

    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert said.endswith("\n# EOF\n")


def test_nothing_else_is_served_and_nothing_can_be_changed(story: Story) -> None:
    with served(story.path) as client:
        assert ask(client, "/")[0] == 404
        assert ask(client, "/metrics/../etc/passwd")[0] == 404
        assert ask(client, "/metrics", "HEAD")[::2] == (200, "")
        assert ask(client, "/metrics", "POST")[0] == 501


def test_a_page_of_the_web_whose_name_points_here_reads_nothing(story: Story) -> None:
    with served(story.path) as client:
        assert ask(client, "/metrics", Host="rebound.example:9469")[0] == 421
        assert ask(client, "/metrics", Host="localhost:9469")[0] == 200
        assert ask(client, "/metrics", Host="[::1]:9469")[0] == 200


def test_a_ledger_that_cannot_be_read_is_a_number_and_no_error(story: Story, tmp_path: Path) -> None:
    with served(str(tmp_path / "none.db")) as client:
        status, _, said = ask(client, "/metrics")

    assert status == 200
    assert "duly_ledger_up 0\n" in said


def test_it_serves_until_it_is_told_to_end(story: Story) -> None:
    serving = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "duly", "metrics", "--ledger", story.path, "--listen", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    assert serving.stderr is not None
    said = serving.stderr.readline()
    client = HTTPConnection(said.removeprefix("duly: metrics at http://").removesuffix("/metrics\n"), timeout=10)

    answer = ask(client, "/metrics")
    client.close()
    serving.terminate()
    _, rest = serving.communicate(timeout=60)

    assert answer[0] == 200
    assert (serving.returncode, rest) == (0, "")


@pytest.mark.parametrize(
    ("listen", "host", "port"),
    [
        ("9469", "127.0.0.1", 9469),
        (":9469", "127.0.0.1", 9469),
        ("0.0.0.0:80", "0.0.0.0", 80),
        ("[::1]:9469", "::1", 9469),
    ],
)
def test_an_address_without_a_host_is_nobody_elses(listen: str, host: str, port: int) -> None:
    assert address(listen) == (host, port)


@pytest.mark.parametrize("listen", ["", "localhost", "localhost:http", "::1:9469", "x:65536"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(Misuse, match="--listen"):
        address(listen)
