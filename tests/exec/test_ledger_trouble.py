"""A ledger that cannot be used: nothing is run, and the code says whether to come back."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duly.store.lock import WriterLock
from tests.exec.stage import DAILY, Running, Stage, environment, until
from tests.story import Said

# Root without its power over files is an owner like any other.
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
AS_OWNER: tuple[str, ...] | None = () if os.geteuid() else WITHOUT_OVERRIDE if shutil.which("setpriv") else None
as_owner = pytest.mark.skipif(
    AS_OWNER is None, reason="root may write everything, and there is no setpriv to give that up"
)


def step_of(talk: str) -> str:
    """The one next step that a complaint ends with."""
    last = talk.splitlines()[-1]
    assert last.startswith("  try: "), talk
    return last.removeprefix("  try: ")


@contextmanager
def lock_held(path: str) -> Iterator[None]:
    """Another writer of duly's that stopped while it held the lock."""
    lock = WriterLock(path)
    assert lock.acquire(10)
    try:
        yield
    finally:
        lock.close()


def test_a_ledger_that_stays_busy_is_75_and_nothing_is_run(stage: Stage) -> None:
    with stage.foreign_writer():
        said = stage.exec("close", *DAILY, "--busy-timeout", "1s", command=stage.effect())

    assert said.code == 75
    assert "busy" in said.talk
    assert step_of(said.talk).startswith("duly exec close ")
    assert stage.effects() == []


def test_a_stopped_writer_of_dulys_own_is_75_too(stage: Stage) -> None:
    with lock_held(stage.path):
        said = stage.exec("close", *DAILY, "--busy-timeout", "1s", command=stage.effect())

    assert said.code == 75
    assert stage.effects() == []


def test_a_ledger_that_is_busy_for_a_moment_is_waited_for(stage: Stage) -> None:
    with stage.foreign_writer():
        running = stage.start("close", *DAILY, command=stage.effect())
        until(lambda: has_open(running.pid, "ledger.db-lock"), "it has come as far as its claim")
        assert not running.is_over()

    assert running.ended().code == 0
    assert len(stage.effects()) == 1


def has_open(pid: int, name: str) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(os.readlink(folder / fd).endswith(name) for fd in os.listdir(folder))
    except OSError:
        return False


def test_a_database_that_another_holds_alone_is_75(stage: Stage) -> None:
    connection = sqlite3.connect(stage.path, isolation_level=None)
    try:
        connection.execute("pragma locking_mode = exclusive")
        connection.execute("begin exclusive")
        said = stage.exec("close", *DAILY, "--busy-timeout", "1s", command=stage.effect())
        connection.execute("rollback")
    finally:
        connection.close()

    assert said.code == 75
    assert stage.effects() == []


# -- at the command's end ----------------------------------------------------------------------------------------------


def test_a_completion_that_cannot_be_written_is_80_with_honest_words(stage: Stage) -> None:
    gate = stage.gate("child")
    flags = ("--settle", "1s", "--busy-timeout", "1s")
    running = stage.start("close", *DAILY, *flags, command=stage.effect(gate.shell))
    gate.arrived()

    with stage.foreign_writer():
        gate.open()
        said = running.ended()

    assert said.code == 80
    assert "it ended well, but that could not be written down" in said.talk
    assert stage.state() == "running"


def test_a_completion_that_could_not_be_written_is_unknown_to_the_next_poke(stage: Stage) -> None:
    test_a_completion_that_cannot_be_written_is_80_with_honest_words(stage)
    stage.clock.advance("5m")

    assert stage.exec("close", command=stage.effect()).code == 80
    assert len(stage.effects()) == 1


def test_a_ledger_that_is_free_again_in_time_is_written(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, "--busy-timeout", "1s", command=stage.effect(gate.shell))
    pid = gate.arrived()

    with stage.foreign_writer():
        gate.open()
        until(lambda: not Path(f"/proc/{pid}").exists(), "the child has ended")

    assert running.ended().code == 0
    assert stage.state() == "completed"


def test_a_failure_that_cannot_be_written_has_its_own_code_and_is_said(stage: Stage) -> None:
    gate = stage.gate("child")
    flags = ("--settle", "1s", "--busy-timeout", "1s")
    running = stage.start("close", *DAILY, *flags, command=stage.effect(f"{gate.shell}; exit 3"))
    gate.arrived()

    with stage.foreign_writer():
        gate.open()
        said = running.ended()

    assert said.code == 3
    assert "could not be written down" in said.talk


def test_whoever_does_not_want_to_wait_so_long_may_end_exec(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, "--busy-timeout", "1s", command=stage.effect(gate.shell))
    pid = gate.arrived()

    with stage.foreign_writer():
        gate.open()
        until(lambda: not Path(f"/proc/{pid}").exists(), "the child has ended")
        running.signal(signal.SIGTERM)
        said = running.ended()  # not ten minutes later

    assert said.code == 80


def test_while_the_ledger_is_busy_a_command_goes_on_and_hears_signals(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=stage.effect(gate.heeding("TERM", "exit 0")))
    gate.arrived()

    with stage.foreign_writer():
        running.signal(signal.SIGTERM)
        until(lambda: (running.is_over(), True)[1], "it was sent")

    assert running.ended().code == 0


# -- a file that is no ledger ------------------------------------------------------------------------------------------


def with_ledger(stage: Stage, ledger: object) -> Said:
    return stage.exec("close", *DAILY, command=stage.effect(), environ={"DULY_LEDGER": str(ledger)})


def test_a_file_that_is_no_database_is_73_and_nothing_is_run(stage: Stage) -> None:
    path = stage.file("notes.txt")
    path.write_text("not a database " * 100)

    said = with_ledger(stage, path)

    assert said.code == 73
    assert step_of(said.talk)
    assert stage.effects() == []
    assert path.read_text() == "not a database " * 100


def test_a_damaged_ledger_is_73_and_nothing_is_run(stage: Stage) -> None:
    stage.exec("close", *DAILY)
    path = stage.file("ledger.db")
    content = bytearray(path.read_bytes())
    content[100:] = os.urandom(len(content) - 100)
    for leftover in stage.folder.glob("ledger.db-*"):
        leftover.unlink()
    path.write_bytes(content)

    said = stage.exec("close", command=stage.effect())

    assert said.code == 73, said
    assert stage.effects() == []


def test_a_folder_in_the_ledgers_place_is_no_ledger(stage: Stage) -> None:
    folder = stage.file("folder")
    folder.mkdir()

    said = with_ledger(stage, folder)

    assert said.code in (73, 75)
    assert stage.effects() == []


def test_a_missing_folder_is_73_and_made_by_nobody(stage: Stage) -> None:
    path = stage.file("no") / "ledger.db"

    said = with_ledger(stage, path)

    assert said.code == 73
    assert step_of(said.talk)
    assert not path.parent.exists()
    assert stage.effects() == []


def test_a_ledger_of_a_newer_release_is_78(stage: Stage) -> None:
    connection = sqlite3.connect(stage.path)
    connection.execute("update duly_meta set value = '999' where name = 'min_writer'")
    connection.commit()
    connection.close()

    said = stage.exec("close", *DAILY, command=stage.effect())

    assert said.code == 78
    assert stage.effects() == []


def test_a_url_of_another_kind_is_64(stage: Stage) -> None:
    for url in ("mysql://x/y", "sqlite://", "sqlite:///", ":memory:"):
        said = stage.exec("close", *DAILY, "--ledger", url, command=stage.effect())
        assert said.code == 64, said
        assert step_of(said.talk)
    assert stage.effects() == []


@as_owner
@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("names", [("ledger.db",), ("ledger.db-lock",), ("ledger.db", "ledger.db-lock")])
def test_a_ledger_that_may_not_be_written_is_73_or_77_and_nothing_is_run(
    stage: Stage, mode: int, names: tuple[str, ...]
) -> None:
    stage.exec("close", *DAILY)
    stage.clock.advance("1d")
    for name in names:
        stage.file(name).chmod(mode)

    said = stage.start("close", command=stage.effect(), prefix=AS_OWNER or ()).ended()

    assert said.code in (73, 77), said
    assert step_of(said.talk)
    assert stage.effects() == []
    assert stage.states() == {"2026-11-28": "completed"}


@as_owner
def test_a_ledger_in_a_folder_that_may_not_be_written_is_73_or_77(stage: Stage) -> None:
    folder = stage.file("shut")
    folder.mkdir()
    folder.chmod(0o555)

    words = ("--ledger", str(folder / "ledger.db"))
    said = stage.start("close", *DAILY, *words, command=stage.effect(), prefix=AS_OWNER or ()).ended()

    assert said.code in (73, 77), said
    assert step_of(said.talk)
    assert stage.effects() == []


def test_a_database_of_somebody_elses_is_given_a_ledger_and_keeps_its_journal(stage: Stage) -> None:
    path = stage.file("app.db")
    connection = sqlite3.connect(path)
    connection.execute("create table mine (x)")
    connection.commit()
    connection.close()

    assert with_ledger(stage, f"sqlite:///{path}").code == 0
    connection = sqlite3.connect(path)
    assert connection.execute("pragma journal_mode").fetchone() == ("delete",)
    connection.close()
    assert len(stage.effects()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root's default ledger is the host's own, /var/lib/duly")
def test_the_default_ledger_is_made_with_its_folder(stage: Stage) -> None:
    environ = {"DULY_LEDGER": "", "HOME": str(stage.folder), "XDG_STATE_HOME": str(stage.file("state"))}

    said = stage.exec("close", *DAILY, environ=environ)

    assert said.code == 0, said
    assert (stage.file("state") / "duly" / "ledger.db").exists()


# -- many at once ------------------------------------------------------------------------------------------------------


def test_of_many_first_execs_at_once_exactly_one_runs(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    environ = environment(DULY_LEDGER=str(tmp_path / "new.db"))
    command = ["sh", "-c", f"echo $DULY_RUN_KEY >> {effects}"]

    running = [Running(["exec", "close", *DAILY, "--", *command], environ) for _ in range(8)]
    codes = [one.ended().code for one in running]

    assert set(codes) <= {0, 75}
    assert 0 in codes
    assert len(effects.read_text().splitlines()) == 1


def test_many_jobs_in_one_minute_all_run(stage: Stage) -> None:
    running = [stage.start(f"job{n}", *DAILY, command=stage.effect()) for n in range(12)]

    assert [one.ended().code for one in running] == [0] * 12
    assert len(set(stage.effects())) == 12
