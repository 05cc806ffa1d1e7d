"""$DULY_OUTBOX: what a command adds to it leaves if its run completes, and else there is evidence that it did not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exec.stage import DAILY, SOURCE, Stage, is_alive, until
from tests.outbox.receivers import Receiver, receiver


@pytest.fixture
def to() -> Iterator[Receiver]:
    with receiver(remembers=True) as made:
        yield made


@pytest.fixture
def configured(stage: Stage, to: Receiver) -> dict[str, str]:
    """The environment of an exec that knows one destination."""
    path = stage.file("duly.toml")
    path.write_text(f'[destinations.billing]\nkind = "http"\nurl = "{to.url}"\nremembers = "1h"\n')
    return {"DULY_CONFIG": str(path)}


def line(**fields: Any) -> str:
    return json.dumps({"destination": "billing", "body": {"iban": "DE02"}, **fields})


def adds(*lines: str, then: str = ":") -> list[str]:
    """A command that adds lines to its outbox, then more shell."""
    writes = "; ".join(f"echo '{each}' >> $DULY_OUTBOX" for each in lines)
    return ["sh", "-c", f"{writes}; {then}"]


def messages(stage: Stage) -> list[tuple[str, str]]:
    return [(name, state) for name, state in stage.rows("select name, state from duly_message order by number")]


def test_what_a_command_adds_is_delivered_when_it_has_ended_well(
    stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    said = stage.exec("close", *DAILY, command=adds(line(name="a"), line(name="b", body="Dear")), environ=configured)

    assert (said.code, said.talk) == (0, "")
    assert messages(stage) == [("a", "delivered"), ("b", "unknown")]  # the receiver takes JSON alone, and hangs up
    assert list(to.effects.values()) == [1]


def test_a_childs_child_adds_too_and_nothing_of_it_lies_in_a_file(
    stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    python = f"import os; open(os.environ['DULY_OUTBOX'], 'a').write({line(name='a')!r} + chr(10))"
    before = set(stage.folder.iterdir())
    program = stage.file("adds.py")
    program.write_text(python)

    said = stage.exec("close", *DAILY, command=["sh", "-c", f"sh -c 'python3 {program}'"], environ=configured)

    assert said.code == 0, said
    assert messages(stage) == [("a", "delivered")]
    left = {path.name for path in set(stage.folder.iterdir()) - before}
    assert {name for name in left if not name.startswith("ledger.db")} == {"adds.py"}
    assert not list(Path("/tmp").glob("duly-outbox-*"))


def test_a_receiver_that_is_away_changes_no_code_and_is_tried_again(stage: Stage, configured: dict[str, str]) -> None:
    stage.file("duly.toml").write_text('[destinations.billing]\nkind = "http"\nurl = "http://127.0.0.1:1/"\n')

    said = stage.exec("close", *DAILY, command=adds(line()), environ=configured)

    assert said.code == 0
    assert messages(stage) == [("billing", "pending")]
    assert stage.duly("check", "close", **configured).code in (1, 3)
    assert "completed, 0/1 delivered" in stage.duly("check", "close", **configured).out


@pytest.mark.parametrize(
    ("words", "then", "code", "state"),
    [
        (DAILY, "exit 3", 3, "failed"),
        (DAILY, "exit 80", 80, "unknown"),
        (DAILY, "kill -9 $$", 80, "unknown"),
        ((*DAILY, "--effect", "idempotent", "--remembers", "1h", "--no-retry"), "kill -9 $$", 137, "failed"),
    ],
    ids=["failed", "unknown", "killed", "killed, idempotent"],
)
def test_messages_of_a_command_that_did_not_end_well_are_discarded_with_evidence(
    words: tuple[str, ...], then: str, code: int, state: str, stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    said = stage.exec("close", *words, command=adds(line(name="a"), line(name="b"), then=then), environ=configured)

    assert (said.code, stage.state()) == (code, state)
    assert messages(stage) == []
    assert not to.requests
    ((kind, detail),) = [event for event in stage.events() if event[0].startswith("message")]
    assert kind == "messages_discarded"
    assert detail.startswith("2 messages of attempt 1: ")


def test_messages_of_a_command_that_timed_out_are_discarded(stage: Stage, configured: dict[str, str]) -> None:
    gate = stage.gate("child")
    running = stage.start(
        "close", *DAILY, "--timeout", "10s", command=adds(line(), then=gate.shell), environ=configured
    )
    gate.arrived()

    assert stage.step_until_over(running).code == 80
    assert ("messages_discarded", "1 message of attempt 1: timed out after 10s") in stage.events()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["not JSON, DE02"], "line 1 is not JSON"),
        (["[1]"], "line 1 is no JSON object"),
        ([line(), line(name="b", speed="fast")], "line 2 has a key that says nothing"),
        ([line(DE02=1)], "line 1 has a key that says nothing"),
        (['{"body": 1}'], "line 1 names no destination"),
        (['{"destination": "billing"}'], "line 1 has to have a body"),
        ([line(destination="biling")], "line 1 names a destination that nobody declared"),
        ([line(destination="https://ada:DE02@shop")], "line 1 names a destination that nobody declared"),
        ([line(name="a"), line(name="a", body=2)], "line 2 has the name of another message, and says something else"),
        (
            [line(name="DE02"), line(name="DE02", body=2)],
            "line 2 has the name of another message, and says something else",
        ),
        ([line(name="DE02" * 99)], "line 1: name: 1 to 200"),
        ([line(content_type="json; for=DE02")], "line 1: content_type: this is none"),
        ([line(name="")], "line 1: name: 1 to 200"),
        (['{"destination": "billing", "body": {"a": "\\ud800"}}'], "line 1: body: a text with surrogates"),
        (['{"destination": "billing", "body": NaN}'], "line 1 has a body that is not JSON"),
        (['{"destination": "billing", "body_base64": "DE02?"}'], "line 1 has a body_base64 that is none"),
    ],
)
def test_what_cannot_be_understood_sends_nothing_and_the_runs_end_says_so(
    lines: list[str], why: str, stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    said = stage.exec("close", *DAILY, command=adds(*lines), environ=configured)

    assert (said.code, stage.state()) == (78, "failed")
    assert messages(stage) == []
    ((cause,),) = stage.rows("select cause from duly_run")
    assert cause.startswith(f"its outbox: {why}")
    assert cause.endswith("; nothing is sent")
    everything = said.talk + cause + repr(stage.events()) + stage.duly("explain", "close", "2026-11-28").out
    assert "DE02" not in everything


def test_a_line_that_has_no_end_may_be_half_a_message(stage: Stage, configured: dict[str, str]) -> None:
    command = ["sh", "-c", f"printf '%s' '{line()}' >> $DULY_OUTBOX"]

    assert stage.exec("close", *DAILY, command=command, environ=configured).code == 78
    assert messages(stage) == []


def test_more_than_anybody_means_to_send_is_refused(stage: Stage, configured: dict[str, str]) -> None:
    command = ["sh", "-c", "yes '{}' | head -c 17000000 >> $DULY_OUTBOX"]

    said = stage.exec("close", *DAILY, command=command, environ=configured)

    assert said.code == 78
    assert "more than 16 MiB" in stage.rows("select cause from duly_run")[0][0]


def test_when_duly_itself_is_killed_nothing_is_sent_and_nothing_is_left(
    stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=adds(line(), then=gate.shell), environ=configured)
    child = gate.arrived()
    running.kill()
    gate.open()
    until(lambda: not is_alive(child), "the command has ended")

    assert messages(stage) == []
    assert not to.requests
    assert not list(Path("/tmp").glob("duly-outbox-*"))


def test_a_command_that_completes_its_run_itself_cannot_add_to_it(stage: Stage, configured: dict[str, str]) -> None:
    """Its completion has committed without them: to send them now would be another promise."""
    complete = (
        "python3 -c \"import sqlite3, os; c = sqlite3.connect(os.environ['L']); c.execute('insert into duly_complete "
        "(attempt_id, attempt) values (?, ?)', (os.environ['DULY_ATTEMPT_ID'], os.environ['DULY_ATTEMPT'])); c.commit()\""
    )

    said = stage.exec(
        "close",
        *(*DAILY, "--effect", "transactional"),
        command=adds(line(), then=complete),
        environ={**configured, "L": stage.path},
    )

    assert (said.code, stage.state()) == (78, "completed")
    assert messages(stage) == []
    assert ("messages_discarded", "1 message of attempt 1: completed without them") in stage.events()


def test_without_messages_nothing_of_the_outbox_is_even_imported(stage: Stage, configured: dict[str, str]) -> None:
    from tests.exec.test_start import imported

    stage.exec("close", *DAILY)
    stage.clock.advance("1d")

    found = imported(stage, "exec", "close", *DAILY, "--", "true")

    assert not {name for name in found if "outbox" in name or "mail" in name or "message" in name}


@pytest.mark.parametrize(("contract", "code"), [("idempotent", 0), ("external", 80)])
def test_killed_between_link_and_commit_a_file_is_no_sign_that_its_messages_were_sent(
    stage: Stage, configured: dict[str, str], contract: str, code: int
) -> None:
    effect = ("--effect", contract, "--remembers", "1h") if contract == "idempotent" else ("--effect", contract)
    final = stage.file("report.csv")
    killing = stage.file("killing")
    killing.mkdir()
    (killing / "sitecustomize.py").write_text(
        "import os\nlink = os.link\ndef killed(*names):\n    link(*names)\n    os.kill(os.getpid(), 9)\nos.link = killed\n"
    )
    command = adds(line(name="a"), then='printf whole > "$DULY_OUTPUT"')
    words = ("close", *DAILY, *effect, "--output", str(final))
    said = stage.exec(*words, command=command, environ={**configured, "PYTHONPATH": f"{killing}:{SOURCE}"})
    assert (said.code, final.read_text(), messages(stage)) == (-9, "whole", [])
    stage.clock.advance("5m")

    said = stage.exec(*words, command=command, environ=configured)

    assert said.code == code, said
    assert messages(stage) == ([("a", "delivered")] if code == 0 else [])


def command_destination(stage: Stage, sends: str, probes: str = "", more: str = "") -> dict[str, str]:
    """The environment of an exec whose one destination is a command, with a probe."""
    probe = f"probe = {json.dumps(['sh', '-c', probes])}\n" if probes else ""
    path = stage.file("duly.toml")
    path.write_text(
        f'[destinations.billing]\nkind = "command"\nargv = {json.dumps(["sh", "-c", sends])}\n{probe}{more}\n'
    )
    return {"DULY_CONFIG": str(path)}


def test_the_variable_that_names_the_ledger_is_hidden_from_a_destinations_command_and_its_probe(stage: Stage) -> None:
    sent, asked = stage.file("sent"), stage.file("asked")
    configured = command_destination(
        stage, f"env > '{sent}'; exit 80", f"env > '{asked}'; echo happened", '[ledger]\nurl_env = "SHOP_LEDGER"'
    )
    environ = {**configured, "SHOP_LEDGER": "postgresql://ada:s3cret@shop/ledger", "SHOP": "open"}

    stage.exec("close", *DAILY, command=adds(line()), environ=environ)
    stage.clock.advance("5m")
    stage.duly("outbox", "deliver", **environ)

    assert messages(stage) == [("billing", "delivered")]
    for seen in (sent, asked):
        assert "SHOP=open" in seen.read_text()
        assert "s3cret" not in seen.read_text()


def test_a_relay_that_was_killed_has_not_vanished_while_its_command_works(stage: Stage) -> None:
    """Neither a probe is asked nor a person believed of what is still being done."""
    gate = stage.gate("sending")
    asked = stage.file("asked")
    configured = command_destination(stage, gate.shell, f"echo x >> '{asked}'; echo 'did not'")
    running = stage.start("close", *DAILY, command=adds(line()), environ=configured)
    command = gate.arrived()
    running.kill()
    assert is_alive(command)

    stage.clock.advance("1h")
    stage.duly("outbox", "deliver", **configured)
    refused = stage.duly(
        "resolve", "close", "2026-11-28", "--message", "billing", "--as", "not-done", "--evidence", "gone"
    )

    assert messages(stage) == [("billing", "sending")]
    assert refused.code != 0
    assert "wait for its attempt" in refused.talk
    assert not asked.exists()
    gate.open()
    until(lambda: not is_alive(command), "the command has ended")
    for _ in range(2):  # it has vanished; then it is asked
        stage.clock.advance("1h")
        stage.duly("outbox", "deliver", **configured)
    assert messages(stage) == [("billing", "unknown")]
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('kind = "htpp"\nurl = "http://127.0.0.1:1/"', "destinations.post.kind: there is no 'htpp'"),
        ('kind = "http"\nurl = "http://127.0.0.1:1/"\ntrys = 3', "destinations.post.trys: no such field"),
        ('kind = "http"\nurl = "http://127.0.0.1:1/"\ntries = "3"', "destination post: tries is a whole number"),
    ],
    ids=["kind", "key", "value"],
)
def test_a_mistake_in_another_destinations_table_fails_no_command_and_is_found_by_a_check(
    table: str, why: str, stage: Stage, to: Receiver, configured: dict[str, str]
) -> None:
    with stage.file("duly.toml").open("a") as f:
        f.write(f"[destinations.post]\n{table}\n")

    said = stage.exec("close", *DAILY, command=adds(line()), environ=configured)
    checked = stage.duly("jobs", "check", **configured)

    assert (said.code, said.talk) == (0, "")
    assert messages(stage) == [("billing", "delivered")]
    assert stage.duly("outbox", "deliver", "--to", "billing", **configured).code == 0
    assert checked.code == 78
    assert why in checked.talk
    sent_there = stage.exec("send", *DAILY, command=adds(line(destination="post")), environ=configured)
    assert sent_there.code == 78
