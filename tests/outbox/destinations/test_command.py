"""Command: how a program ends, and what it means. Real processes."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from duly.errors import Misuse
from duly.outbox.destinations import (
    CannotTell,
    Delivered,
    DidNot,
    Happened,
    Message,
    NotSent,
    Refused,
    Unknown,
    destination_of,
)
from duly.records import replace
from duly.work.destinations import Destinations
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names

LATE = 20.0


def sh(script: str, seconds: float = LATE, **settings: object) -> Callable[[], object]:
    """A shell's script that is given the message, and repeats its body wherever it can."""

    def told() -> object:
        told = f"body=$(cat); echo $body; echo $body >&2; {script}"
        table = {"kind": "command", "argv": ["sh", "-c", told], **settings}
        return destination_of("post", table).deliver(MESSAGE, seconds=seconds)

    return told


def not_there() -> object:
    return destination_of("post", {"kind": "command", "argv": ["/nowhere/send"]}).deliver(MESSAGE, seconds=LATE)


def without_reading() -> object:
    table = {"kind": "command", "argv": ["sh", "-c", "exec <&-; exit 0"]}
    return destination_of("post", table).deliver(replace(MESSAGE, body=b"x" * 1_000_000), seconds=LATE)


COMMAND_ROWS = (
    Row("it cannot be started", NotSent, not_there),
    Row("the body is longer than `max_length`", Refused, sh("exit 0", max_length=10)),
    Row("exit 0", Delivered, sh("exit 0"), "exit 0"),
    Row("exit 0, and it did not read the body", Delivered, without_reading, "exit 0"),
    Row("exit 75: come again later", NotSent, sh("exit 75"), "exit 75"),
    Row("an exit that is in `clean_exits`", NotSent, sh("exit 69", clean_exits=[69]), "exit 69"),
    Row("exit 80: it does not know itself", Unknown, sh("exit 80", clean_exits=[80]), "exit 80"),
    Row("death by a signal", Unknown, sh("kill -KILL $$"), "signal 9"),
    Row("an exit from 129 to 192, how a shell says that", Unknown, sh("exit 137"), "signal 9"),
    Row("one of these that is in `clean_exits`", NotSent, sh("exit 130", clean_exits=[130]), "exit 130"),
    Row("it does not end in time", Unknown, sh("sleep 60", 0.3), "it did not end within 0.3 s, and was stopped"),
    Row("any other exit", Refused, sh("exit 1"), "exit 1"),
)


@pytest.mark.parametrize("row", COMMAND_ROWS, ids=names(COMMAND_ROWS))
def test_what_a_command_does_means(row: Row) -> None:
    agrees(row.how(), row)


def test_it_is_told_of_the_message_and_of_nothing_else_that_duly_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_LEDGER", "postgresql://ada:l3dger-5ecret@db/ledger")
    monkeypatch.setenv("SHOP_LEDGER", "postgresql://ada:l3dger-5ecret@db/ledger")
    monkeypatch.setenv("TEAM", "ops")
    script = f"cd {shlex.quote(str(tmp_path))}; env > env; cat > body; echo $1 > args"
    table = {"kind": "command", "argv": ["sh", "-c", script, "sh", "{name}/{key}/{else}"]}

    destination = destination_of("post", table, hidden=["SHOP_LEDGER"])
    outcome = destination.deliver(replace(MESSAGE, attempt=3), seconds=LATE)

    assert outcome == Delivered("exit 0")
    environment = dict(line.partition("=")[::2] for line in (tmp_path / "env").read_text().splitlines())
    assert {name: value for name, value in environment.items() if name.startswith("DULY_")} == {
        "DULY_IDEMPOTENCY_KEY": MESSAGE.key,
        "DULY_RUN_KEY": MESSAGE.run,
        "DULY_MESSAGE": "invoice",
        "DULY_MESSAGE_ATTEMPT": "3",
        "DULY_CONTENT_TYPE": "application/json",
    }
    assert environment["TEAM"] == "ops"
    assert "SHOP_LEDGER" not in environment
    assert (tmp_path / "body").read_bytes() == MESSAGE.body
    assert (tmp_path / "args").read_text() == f"invoice/{MESSAGE.key}/{{else}}\n"


def test_one_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = f"trap '' TERM; sleep 300 & echo $! > {shlex.quote(str(tmp_path))}/pid; wait; wait; sleep 300"
    table = {"kind": "command", "argv": ["sh", "-c", script]}

    outcome = destination_of("post", table).deliver(MESSAGE, seconds=1.0)

    assert type(outcome) is Unknown
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid: int) -> bool:
    """Whether a process has ended, within ten seconds: a kill is seen a moment later, and who reaps it is not us."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                continue
        return True
    return False


# -- probes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "finding"),
    [
        ("echo looking; echo happened", Happened('it printed "happened"')),
        ("echo did not", DidNot('it printed "did not"')),
        ("true", CannotTell('the probe said neither "happened" nor "did not"')),
        (f"echo {BODY_SECRET}", CannotTell('the probe said neither "happened" nor "did not"')),
        ("echo did not; exit 1", CannotTell("the probe ended with exit 1")),
        ("echo happened; kill -KILL $$", CannotTell("the probe ended with exit 137")),
        ("echo did not; sleep 60", CannotTell("the probe did not end within 0.5 s")),
    ],
)
def test_a_probe_says_it_in_a_word_and_whatever_else_it_does_tells_nothing(script: str, finding: object) -> None:
    table = {"kind": "command", "argv": ["true"], "probe": ["sh", "-c", script]}
    slow = "sleep" in script

    assert destination_of("post", table).probe(MESSAGE, seconds=0.5 if slow else LATE) == finding


def test_a_probe_is_given_the_key() -> None:
    told = '[ "$1" = "$DULY_IDEMPOTENCY_KEY" ] && echo happened'
    table = {"kind": "command", "argv": ["true"], "probe": ["sh", "-c", told, "sh", "{key}"]}

    assert type(destination_of("post", table).probe(MESSAGE, seconds=LATE)) is Happened


def probed(function: Callable[..., object]) -> object:
    """What a function says of a message, of a destination that is declared in code."""
    destinations = Destinations()
    destinations.declare("post", {"kind": "command", "argv": ["true"], "probe": function}, None)
    return destinations.routes()["post"].make().probe(MESSAGE, seconds=LATE)


@pytest.mark.parametrize("found", [Happened("batch 4711"), DidNot("no such key"), CannotTell("their log is away")])
def test_a_probe_may_be_a_function_which_says_it_with_its_evidence(found: object) -> None:
    asked: list[tuple[str, float]] = []

    def did_it(message: Message, *, seconds: float) -> object:
        asked.append((message.key, seconds))
        return found

    assert probed(did_it) == found
    assert asked == [(MESSAGE.key, LATE)]


@pytest.mark.parametrize("answer", [None, False, True, "did not"])
def test_a_function_that_answers_anything_else_tells_nothing(answer: object) -> None:
    assert type(probed(lambda message, *, seconds: answer)) is CannotTell


def test_a_function_that_raises_tells_nothing_and_its_text_stays_with_it() -> None:
    def breaks(message: Message, *, seconds: float) -> object:
        raise ConnectionError(BODY_SECRET)

    assert probed(breaks) == CannotTell("the probe raised ConnectionError")


def test_a_function_that_was_only_promised_tells_nothing() -> None:
    async def promised(message: Message, *, seconds: float) -> object:
        return DidNot("nobody looked")

    assert type(probed(promised)) is CannotTell


def test_a_probe_that_cannot_be_started_tells_nothing() -> None:
    table = {"kind": "command", "argv": ["true"], "probe": ["/nowhere/probe"]}

    assert destination_of("post", table).probe(MESSAGE, seconds=LATE) == CannotTell("the probe could not be started")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            "destinations.post.argv: it has to be there, a command as a list of words (no shell is involved); write",
        ),
        ({"argv": "./send.sh"}, "destinations.post.argv: './send.sh' is not a command as a list of words"),
        (
            {"argv": ["true"], "clean_exits": [0]},
            "destinations.post.clean_exits: [0] is not a list of whole numbers from 1",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, object], said: str) -> None:
    with pytest.raises(Misuse) as told:
        destination_of("post", {"kind": "command", **settings})

    assert str(told.value).startswith(said)
