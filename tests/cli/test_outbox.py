"""What is seen of messages on the command line, what a person may say of one, and what `deliver` answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.deliver import record_words, take_messages
from duly.ledger.parcel import Limits
from duly.ledger.send import Letter
from duly.schedule.spec import daily
from duly.times import MINUTE
from duly.work.identity import new_attempt_id
from tests.outbox import post as said
from tests.outbox.receivers import Receiver, receiver
from tests.story import Said, Story

SECRET = b'{"iban":"DE02"}'
RUN = ("push", "2026-11-28")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A run of this night that has sent three messages; it is not late yet."""
    story = Story(tmp_path, at="2026-11-29T00:30:00Z")
    story.job("push", daily("UTC"), catch_up="each")
    letters = [(Letter("billing", name, "application/json", SECRET), f"key-of-{name}") for name in "abc"]
    story.store.write(complete_or_raise(story.begin("push"), Left(letters=letters)))
    return story


@pytest.fixture
def to() -> Iterator[Receiver]:
    with receiver(remembers=True) as made:
        yield made


def take(story: Story, word: said.SaidNotSent | said.SaidRefused | said.SaidUnknown | said.SaidDelivered) -> None:
    """One message is sent, and this is what became of it."""
    taking = take_messages(
        Limits("billing", 4, 0, MINUTE, 0, MINUTE), [new_attempt_id()], owner="host/r", put_off_by=lambda _: MINUTE
    )
    (parcel,) = story.store.write(taking)
    story.store.write(record_words([(parcel, word)]))


def configured(tmp_path: Path, to: Receiver, more: str = "") -> str:
    path = tmp_path / "duly.toml"
    path.write_text(f'[destinations.billing]\nkind = "http"\nurl = "{to.url}"\nremembers = "1h"\n{more}')
    return str(path)


def test_a_run_is_complete_when_its_messages_are_delivered(story: Story) -> None:
    take(story, said.DELIVERED)

    check = story.duly("check", *RUN)

    assert check.code == 3
    assert "undelivered" in check.out
    assert "completed, 1/3 delivered" in check.out
    for words in (("status", "push"), ("runs", "push"), ("explain", *RUN), ("runs", "show", *RUN)):
        assert "completed, 1/3 delivered" in story.duly(*words).out, words

    take(story, said.DELIVERED)
    take(story, said.DELIVERED)
    assert story.duly("check", *RUN).code == 0


def test_what_is_not_delivered_and_late_is_not_complete(story: Story) -> None:
    story.clock.advance("2h")

    assert story.duly("check", *RUN).code == 1


@pytest.mark.parametrize("word", [said.UNKNOWN, said.REFUSED, said.LAST_TRY], ids=["unknown", "refused", "dead"])
def test_what_no_relay_will_deliver_needs_a_person_at_once(
    word: said.SaidNotSent | said.SaidRefused | said.SaidUnknown, story: Story
) -> None:
    take(story, word)

    assert story.duly("check", *RUN).code == 1
    status = story.duly("status")
    assert "1 period needs you" in status.out
    assert "duly outbox show push 2026-11-28" in status.out


def test_the_list_and_the_run_show_each_message_and_no_body(story: Story) -> None:
    take(story, said.UNKNOWN)

    listed, shown = story.duly("outbox", "list"), story.duly("outbox", "show", *RUN)

    assert [line.split()[1:4] for line in listed.out.splitlines()] == [
        ["a", "?", "unknown"],
        ["b", "○", "pending"],
        ["c", "○", "pending"],
    ]
    assert "after the one before it" in listed.out
    assert "no answer came" in shown.out
    assert "key key-of-a" in shown.out
    (first, *_) = story.duly("outbox", "show", *RUN, "--json").document["messages"]
    assert (first["state"], first["sendings"][0]["outcome"], first["in_doubt"]) == ("unknown", "unknown", True)
    everything = "".join(
        story.duly(*words, "--format", form).out
        for words in (("outbox", "list"), ("outbox", "show", *RUN), ("runs", "show", *RUN))
        for form in ("table", "json", "csv")
    )
    assert "DE02" not in everything + story.duly("explain", *RUN).out


def test_a_person_says_what_became_of_a_message(story: Story) -> None:
    take(story, said.UNKNOWN)
    resolve = ("resolve", *RUN, "--message", "a", "--as", "done", "--evidence", "their log: batch 4711")

    tried = story.duly(*resolve, "--dry-run")
    assert (tried.code, "✓ delivered" in tried.out) == (0, True)
    assert "? unknown" in story.duly("outbox", "list").out

    assert story.duly(*resolve).code == 0
    assert story.duly(*resolve).code == 64
    assert ": done; their log: batch 4711." in story.duly("explain", *RUN).out


@pytest.mark.parametrize(("verb", "then"), [("retry", "○ pending"), ("skip", "» skipped")])
def test_a_person_retries_or_skips_what_is_stuck(verb: str, then: str, story: Story) -> None:
    take(story, said.REFUSED)

    changed = story.duly("outbox", verb, *RUN, "--message", "a", "--reason", "their schema is mended")

    assert changed.code == 0, changed
    assert then in changed.out


def test_one_that_waits_for_the_one_before_it_is_not_retried(story: Story) -> None:
    said_of = story.duly("outbox", "retry", *RUN, "--message", "b", "--reason", "at once")

    assert said_of.code == 64
    assert "it waits for the one before it" in said_of.talk


def test_a_message_that_is_not_there_is_answered_with_those_that_are(story: Story) -> None:
    found = story.duly("outbox", "skip", *RUN, "--message", "z", "--reason", "why")

    assert found.code == 64
    assert "no message 'z'; it has a, b, c" in found.talk


def deliver(story: Story, config: str, *words: str) -> Said:
    return story.duly("outbox", "deliver", *words, DULY_CONFIG=config)


def test_deliver_works_what_is_due_and_says_that_all_is_delivered(story: Story, to: Receiver, tmp_path: Path) -> None:
    delivered = deliver(story, configured(tmp_path, to))

    assert delivered.code == 0, delivered
    assert to.order == ["key-of-a", "key-of-b", "key-of-c"]
    assert [line.split()[1:3] for line in delivered.out.splitlines()] == [[name, "delivered"] for name in "abc"]
    assert "DE02" not in delivered.out + delivered.talk


def test_deliver_says_with_its_code_what_is_left(story: Story, to: Receiver, tmp_path: Path) -> None:
    config = configured(tmp_path, to)
    Path(config).write_text('[destinations.billing]\nkind = "http"\nurl = "http://127.0.0.1:1/"\nremembers = "never"\n')
    assert deliver(story, config).code == 75  # it is tried again by itself

    story.clock.advance("1h")
    take(story, said.REFUSED)
    assert deliver(story, config).code == 79

    story.duly("outbox", "skip", *RUN, "--message", "a", "--reason", "why")
    take(story, said.UNKNOWN)
    assert deliver(story, config).code == 80


def test_what_goes_to_a_destination_that_nobody_declared_stays_and_is_shown(
    story: Story, to: Receiver, tmp_path: Path
) -> None:
    config = configured(tmp_path, to)
    Path(config).write_text(Path(config).read_text().replace("billing", "other"))

    left = deliver(story, config)

    assert left.code == 75
    assert "3 to billing not delivered yet; no such destination is declared here" in left.talk
    assert "○ pending" in story.duly("outbox", "list").out
    assert "billing   " in story.duly("status").out


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('rate = "fast"', "rate is a number of messages in a time"),
        ("concurrency = 0", "concurrency is a whole number between 1 and 256"),
        ('timeout = "0s"', "timeout"),
        ("tries = true", "tries is a whole number"),
        ('speed = "high"', "speed"),
    ],
)
def test_a_destination_that_cannot_be_understood_is_named_with_its_table(
    more: str, why: str, story: Story, to: Receiver, tmp_path: Path
) -> None:
    wrong = deliver(story, configured(tmp_path, to, more))

    assert wrong.code == 78
    assert "[destinations.billing]" in wrong.talk
    assert why in wrong.talk


def test_a_program_of_a_destination_lies_in_the_folder_of_its_file(story: Story, tmp_path: Path) -> None:
    """Wherever duly is called from, as with the command of a job."""
    program = tmp_path / "send.sh"
    program.write_text(f"#!/bin/sh\ncat >> {tmp_path}/received\n")
    program.chmod(0o755)
    config = tmp_path / "duly.toml"
    config.write_text(
        '[destinations.billing]\nkind = "command"\nargv = ["./send.sh", "{name}"]\nremembers = "forever"\n'
    )

    assert deliver(story, str(config)).code == 0
    assert (tmp_path / "received").read_bytes() == SECRET * 3
