"""The dashboard of a daemon: served from its process, ended with it, and never a reason to work no job."""

from __future__ import annotations

import re
import signal
import socket
import threading

from duly.times import DAY
from tests.daemon.stage import Daemon, Stage, no_effect
from tests.daemon.test_daemon import DAILY
from tests.exec.stage import until
from tests.ledger.test_owed import days
from tests.web.conftest import Browser

TOKEN = "correct-horse-battery-staple"


def browser_of(daemon: Daemon) -> Browser:
    """A browser of the dashboard, when the daemon has said where it is."""
    daemon.until_said("duly: dashboard on ")
    found = re.search(r"dashboard on http://\S+?:(\d+)/", daemon.log)
    assert found is not None
    return Browser(int(found[1]))


def test_pages_are_served_while_jobs_are_worked(stage: Stage) -> None:
    stage.module(DAILY)
    daemon = stage.daemon("--web", "0")
    browser = browser_of(daemon)
    stage.until_done("export:2026-10-05[UTC]")

    until(lambda: "is complete" in browser.get("/"), "the page says what was worked")
    assert browser.ask("/grid").status == browser.ask("/lab?every=1h").status == 200
    assert f"--ledger {stage.book.path}" not in browser.get("/"), "the daemon's environment names it, not its line"
    stage.clock.advance(DAY)
    stage.until_done(*days(5, 6))
    assert daemon.stop() == 0


def test_it_only_shows_and_only_to_this_machine(stage: Stage) -> None:
    stage.module(DAILY)
    browser = browser_of(stage.daemon("--web", "127.0.0.1:0"))

    assert browser.ask("/", "POST", body="").status == 403
    assert browser.ask("/", Host="evil.example").status == 421
    assert browser.ask("/", X_Forwarded_For="10.0.0.9").status == 403


def test_a_token_of_the_environment_is_asked_for_and_is_none_of_a_commands_business(stage: Stage) -> None:
    stage.configuration(
        '[jobs.tell]\nperiod = "daily"\nzone = "UTC"\ncatch_up = "each"\n'
        'command = ["sh", "-c", "echo token:$DULY_WEB_TOKEN. > told"]\n'
    )
    daemon = stage.daemon("--web", "0", modules=(), environ={"DULY_WEB_TOKEN": TOKEN})
    browser = browser_of(daemon)

    assert browser.ask("/").status == 401
    assert browser.ask("/", Authorization=f"Bearer {TOKEN}").status == 200
    told = stage.folder / "told"
    until(lambda: told.exists() and told.read_text().endswith("\n"), "the command was run")
    assert told.read_text() == "token:.\n"
    assert TOKEN not in daemon.log


def test_the_end_of_the_daemon_is_the_end_of_its_dashboard(stage: Stage) -> None:
    """Also while somebody has asked for half a page."""
    stage.module(DAILY)
    daemon = stage.daemon("--web", "0")
    browser = browser_of(daemon)
    browser.get("/")

    with socket.create_connection(("127.0.0.1", browser.port)) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost: ")
        daemon.send(signal.SIGTERM)
        assert daemon.ended() == 0

    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", browser.port)) != 0


def test_a_port_that_is_taken_is_said_before_anything_is_claimed(stage: Stage) -> None:
    stage.module(DAILY)

    with socket.create_server(("127.0.0.1", 0)) as taken, no_effect(stage):
        daemon = stage.daemon("--web", str(taken.getsockname()[1]))
        assert daemon.ended() == 64

    assert "--web: 127.0.0.1 port " in daemon.log
    assert "  try: duly daemon --web 0" in daemon.log
    assert stage.book.rows("select * from duly_run") == []


def test_a_place_that_is_none_or_that_all_could_look_at_is_refused(stage: Stage) -> None:
    stage.module(DAILY)

    for where, says in (
        ("everywhere", "--web: 'everywhere' is no place to listen; write a port"),
        ("0.0.0.0:0", "set $DULY_WEB_TOKEN"),
        ("127.0.0.1:99999", "is no place to listen"),
    ):
        daemon = stage.daemon("--web", where)
        assert daemon.ended() == 64
        assert says in daemon.log
    assert stage.effects() == []


BROKEN = """
import uvicorn

def breaks(*_, **__):
    raise SystemExit(3)

uvicorn.Server.run = breaks
"""


def test_a_dashboard_that_fails_takes_no_daemon_with_it(stage: Stage) -> None:
    stage.module(BROKEN + DAILY)
    daemon = stage.daemon("--web", "0")

    daemon.until_said("the dashboard has ended, and the jobs are worked as before: SystemExit")
    stage.until_done("export:2026-10-05[UTC]")
    stage.clock.advance(DAY)
    stage.until_done(*days(5, 6))
    assert daemon.stop() == 0


def test_however_many_ask_jobs_are_worked(stage: Stage) -> None:
    stage.module(DAILY)
    daemon = stage.daemon("--web", "0")
    browser = browser_of(daemon)
    stage.until_done("export:2026-10-05[UTC]")
    is_over, answers = threading.Event(), []

    def ask() -> None:
        while not is_over.is_set():
            answers.append(browser.ask("/grid").status)

    crowd = [threading.Thread(target=ask) for _ in range(4)]
    for one in crowd:
        one.start()
    try:
        for day in range(6, 9):
            stage.clock.advance(DAY)
            stage.until_done(*days(*range(5, day + 1)))
    finally:
        is_over.set()
        for one in crowd:
            one.join()

    assert set(answers) <= {200, 503}
    assert 200 in answers
    assert daemon.stop() == 0
