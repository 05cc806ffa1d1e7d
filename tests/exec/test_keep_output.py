"""What a command says is shown as it comes, and the last of it is kept beside its attempt, without secrets."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from duly.errors import Misuse
from duly.redaction import LONGEST, Redaction
from duly.work.kept import keeping, last_of, parse_size
from tests.exec.stage import DAILY, Stage

KEEP = ("--keep-output", "1k")


def texts(stage: Stage) -> dict[str, str]:
    return dict(stage.rows("select kind, body from duly_text order by kind"))


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def test_the_streams_are_shown_as_before_and_kept_apart_without_secrets(stage: Stage) -> None:
    said = stage.exec(
        "close",
        *DAILY,
        *KEEP,
        command=shell('echo "pays with $SHOP_TOKEN"; echo "to postgresql://shop:hidden9@db/x" >&2'),
        environ={"SHOP_TOKEN": "tok-4711-abc"},
    )

    assert (said.code, said.out, said.talk) == (0, "pays with tok-4711-abc\n", "to postgresql://shop:hidden9@db/x\n")
    assert texts(stage) == {"stdout": "pays with ***\n", "stderr": "to postgresql://shop:***@db/x\n"}


@pytest.mark.parametrize("code", [0, 3, 80])
def test_it_is_kept_whatever_the_command_comes_to(stage: Stage, code: int) -> None:
    said = stage.exec("close", *DAILY, *KEEP, command=shell(f"echo so far; exit {code}"))

    assert said.code == code
    assert stage.state() == {0: "completed", 3: "failed", 80: "unknown"}[code]
    assert texts(stage) == {"stdout": "so far\n"}
    shown = stage.duly("runs", "show", "close", "2026-11-28")
    assert "stdout of attempt 1\nso far" in shown.out
    for elsewhere in (["status"], ["explain", "close", "2026-11-28"], ["runs", "close"], ["metrics"]):
        assert "so far" not in stage.duly(*elsewhere).out


def test_without_the_flag_nothing_is_kept(stage: Stage) -> None:
    stage.exec("close", *DAILY, command=shell("echo so far; exit 3"))

    assert texts(stage) == {}


def test_of_much_output_the_last_is_kept(stage: Stage) -> None:
    many = 1 << 18
    said = stage.exec("close", *DAILY, "--keep-output=8", command=shell(f"yes | head -c {many}; printf 'the end'"))

    assert len(said.out) == many + len("the end")
    assert texts(stage) == {"stdout": "\nthe end"}


def test_what_outlives_the_command_holds_nobody_up(stage: Stage) -> None:
    gate = stage.gate("grandchild")

    said = stage.exec("close", *DAILY, *KEEP, command=shell(f"({gate.hold}; echo too late) & echo done"))

    assert (said.code, said.out) == (0, "done\n")
    assert texts(stage) == {"stdout": "done\n"}
    gate.open()


def test_chronic_shows_it_only_of_a_failure_and_keeps_it_anyway(stage: Stage) -> None:
    well = stage.exec("close", *DAILY, *KEEP, "--chronic", command=shell("echo one; echo two >&2"))
    stage.clock.advance("1d")
    badly = stage.exec("close", *KEEP, "--chronic", command=shell("echo one; echo two >&2; exit 3"))

    assert (well.out, well.talk) == ("", "")
    assert sorted(badly.out.split()) == ["one", "two"]
    assert stage.rows("select count(*) from duly_text") == [(4,)]


def test_a_signal_is_judged_as_before(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, *KEEP, command=shell(f"echo begun; {gate.heeding('TERM', 'exit 5')}"))
    gate.arrived()

    running.signal(signal.SIGTERM)

    assert running.ended().code == 5
    assert texts(stage) == {"stdout": "begun\n"}


def test_a_reader_who_goes_is_heard_of_by_the_command(stage: Stage) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    running = stage.start("close", *DAILY, *KEEP, command=("yes",), stdout=writer)
    os.close(writer)

    assert running.ended().code in (80, 128 + signal.SIGPIPE)  # as without the flag: it dies of it


def test_it_says_that_a_command_cannot_be_executed(stage: Stage) -> None:
    assert stage.exec("close", *DAILY, *KEEP, command=("./is-not-there",)).code == 127
    assert texts(stage) == {}


def test_a_file_says_it_too(stage: Stage) -> None:
    stage.file("duly.toml").write_text(
        '[redact]\nvariables = ["VISITOR"]\npatterns = ["order-[0-9]+"]\n'
        '[jobs.close]\ncommand = ["sh", "-c", "echo $VISITOR has order-4711 of $PIN; exit 3"]\nkeep_output = "1k"\n'
        'period = "daily"\nzone = "UTC"\nat = "06:00"\ncatch_up = "latest"\n'
    )

    stage.duly("exec", "close", DULY_CONFIG=str(stage.file("duly.toml")), VISITOR="annabel", PIN="123")

    assert texts(stage) == {"stdout": "*** has *** of 123\n"}


def test_a_secret_across_a_cut_is_hidden() -> None:
    redaction = Redaction(["hunter2-hunter2"])
    for spare in range(40):
        raw = b"x" * LONGEST * 5 + b"pin hunter2-hunter2 " + b"y" * spare

        kept = last_of(raw, 30, redaction)

        assert "unter2" not in kept
        assert kept.endswith("y" * min(spare, 30))


def test_a_secret_that_came_in_pieces_or_only_begun_is_hidden(tmp_path: Path) -> None:
    with (
        (tmp_path / "sink").open("wb") as sink,
        keeping(100, Redaction(["hunter2-hunter2"]), (sink.fileno(),) * 2) as kept,
    ):
        out = os.dup(kept.descriptors[0])
        kept.begin()
        for sign in b"a hunter2-hunter2, b hunter2-hun":
            os.write(out, bytes([sign]))
        os.close(out)

        assert kept.said() == [("stdout", "a ***, b ***")]


def test_no_more_than_its_share_is_ever_held(tmp_path: Path) -> None:
    with open(os.devnull, "wb") as sink, keeping(1 << 16, Redaction(), (sink.fileno(),) * 2) as kept:
        stream = kept._streams[0]
        for _ in range(64):
            stream._remember(b"z" * (1 << 16))

        assert len(stream.last()) < (1 << 16) * 7
        kept.begin()


def test_bytes_that_are_no_text_are_kept_as_far_as_a_ledger_can() -> None:
    kept = last_of(b"\xff\x00" * 100, 64, Redaction())

    assert set(kept) == {"\ufffd"}
    assert len(kept.encode()) <= 64


@pytest.mark.parametrize("text", ["0", "65k", "65537", "-1", "1m", "k", "", "1.5k"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="64k"):
        parse_size(text)
