"""Metrics: each of them is asked of a ledger in which every trouble was planted, and of the nights when clocks are set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.evidence.metrics import METRICS, Scrape, open_metrics_text, seconds, snapshot, text
from duly.ledger.backfill import Asked, start
from duly.ledger.complete import Left, complete_or_raise, release_or_raise
from duly.ledger.messages import skip_message
from duly.ledger.pause import pause
from duly.ledger.resolve import Word
from duly.ledger.roster import retire_scopes
from duly.ledger.send import Letter
from duly.schedule.spec import cron, daily, every, hourly
from duly.store import SCHEMA
from duly.times import HOUR, MINUTE, parse_instant
from tests.books import PostgresBook
from tests.servers import Server
from tests.story import Story

WORD = Word("ops@example", "story")
PAIR = r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{((?:{PAIR},?)*)\}})? (-?\d+(?:\.\d+)?)")


class Seen:
    """What a scrape said, read back by the grammar of the format."""

    def __init__(self, said: str) -> None:
        self.samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for line in said.splitlines():
            if line.startswith("#"):
                continue
            found = SAMPLE.fullmatch(line)
            assert found, line
            named = (found[1], tuple(sorted(re.findall(PAIR, found[2] or ""))))
            assert named not in self.samples, "a sample is said once"
            self.samples[named] = float(found[5])

    def __call__(self, name: str, **labels: str) -> float | None:
        """One sample; of a line the scope may be left out. None: nothing is said of it."""
        if "job" in labels:
            labels["job_name"] = labels.pop("job")
            labels.setdefault("scope", "")
        return self.samples.get((name, tuple(sorted(labels.items()))))

    def windows(self, job: str, scope: str = "") -> dict[str, float]:
        """The windows of a line by state, without those of which there is none."""
        found = {
            dict(labels)["state"]: value
            for (name, labels), value in self.samples.items()
            if name == "duly_windows" and {("job_name", job), ("scope", scope)} <= set(labels)
        }
        return {state: value for state, value in found.items() if value}


def look(story: Story) -> Seen:
    return Seen(text(Scrape(story.store.read(snapshot()), 1_500, "0.1")))


def at(instant: str) -> float:
    return parse_instant(instant) / 1e6


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, at="2026-10-25T12:00:00Z")


def work(story: Story, name: str, *, took: str = "90s") -> None:
    claim = story.begin(name)
    story.clock.advance(took)
    story.store.write(complete_or_raise(claim))


def test_how_far_a_line_is_and_how_long_it_took(story: Story) -> None:
    story.job("close", daily("Europe/Berlin"), lease=HOUR)
    assert look(story)("duly_complete_through_timestamp_seconds", job="close") is None  # it was never heard of
    work(story, "close")

    seen = look(story)

    assert seen("duly_complete_through_timestamp_seconds", job="close") == at("2026-10-24T22:00:00Z")
    assert seen("duly_complete_through_lag_seconds", job="close") == 14 * 3600 + 90
    assert seen("duly_last_completed_window_end_timestamp_seconds", job="close") == at("2026-10-24T22:00:00Z")
    assert seen("duly_last_completed_duration_seconds", job="close") == 90
    assert seen.windows("close") == {}
    assert seen("duly_windows", job="close", state="missing") == 0  # said, so that an alert ends
    assert seen("duly_recent_attempts", job="close", outcome="completed") == 1
    assert seen("duly_recent_attempts", job="close", outcome="failed") == 0


def test_the_night_of_25_hours_is_not_late_after_24_and_missing_once(story: Story) -> None:
    story.job("close", daily("Europe/Berlin"))
    story.job("hours", hourly("Europe/Berlin"), catch_up="each")
    story.complete("close")
    story.complete("hours")

    story.clock.set("2026-10-25T22:59:59Z")  # a minute to midnight in Berlin, 24 h 59 m 59 s after the last one
    assert look(story).windows("close") == {}
    story.clock.set("2026-10-25T23:30:00Z")
    seen = look(story)
    assert seen.windows("close") == {"due": 1}
    assert seen("duly_windows_late", job="close") == 0
    story.clock.set("2026-10-26T00:00:01Z")  # an hour and a second after it was due: its grace is over
    seen = look(story)

    assert seen.windows("close") == {"missing": 1}
    assert seen("duly_windows_late", job="close") == 1
    assert seen("duly_windows_in_need", job="close") == 1
    assert seen("duly_complete_through_lag_seconds", job="close") == 26 * 3600 + 1
    assert seen.windows("hours") == {"missing": 11, "due": 1}


def test_both_passes_of_an_hour_that_is_repeated_are_missing(story: Story) -> None:
    story.clock.set("2026-10-24T23:00:00Z")
    story.job("hours", hourly("Europe/Berlin"), catch_up="each")
    story.complete("hours")  # 00:00 to 01:00 in Berlin

    story.clock.set("2026-10-25T02:10:00Z")  # since then 01:00, 02:00 and 02:00 once more
    assert look(story).windows("hours") == {"missing": 3}


def test_every_state_of_a_window_is_told(story: Story) -> None:
    story.job("failed", daily("UTC"))
    story.job("unknown", daily("UTC"))
    story.job("retrying", daily("UTC"))
    story.job("running", daily("UTC"), lease=24 * HOUR)
    story.job("gone", daily("UTC"), contract="transactional", lease=MINUTE)
    story.job("late", daily("UTC"))
    story.fail("failed")
    story.doubt("unknown")
    story.fail("retrying", retry_in=20 * HOUR)
    story.begin("running")
    story.begin("gone")
    given_back(story, "late")
    story.clock.advance("2m")

    seen = look(story)

    assert {job: seen.windows(job) for job in ("failed", "unknown", "retrying", "running", "gone", "late")} == {
        "failed": {"failed": 1},
        "unknown": {"unknown": 1},
        "retrying": {"retrying": 1},
        "running": {"running": 1},
        "gone": {"retrying": 1},
        "late": {"late": 1},
    }
    assert seen("duly_windows_in_need", job="failed") == seen("duly_windows_in_need", job="unknown") == 1
    assert seen("duly_windows_in_need", job="running") == 0
    assert seen("duly_windows_late", job="running") == 1  # at work, twelve hours after it was due
    assert seen("duly_recent_attempts", job="failed", outcome="failed") == 1
    assert seen("duly_recent_attempts", job="late", outcome="released") == 1
    assert seen("duly_last_completed_window_end_timestamp_seconds", job="failed") is None
    assert seen("duly_last_completed_duration_seconds", job="failed") is None


def given_back(story: Story, name: str) -> None:
    story.store.write(release_or_raise(story.begin(name), "cannot execute"))


def test_what_is_not_delivered_is_told_of_the_line_and_of_the_destination(story: Story) -> None:
    story.job("export", daily("UTC"))
    claim = story.begin("export", scope="acme")
    letters = [(Letter("crm", f"m{n}", "text/plain", b"1"), f"{n:0>36}") for n in range(2)]
    story.store.write(complete_or_raise(claim, Left(letters=letters)))
    story.clock.advance("5m")

    seen = look(story)

    assert seen.windows("export", "acme") == {"undelivered": 1}
    assert seen("duly_messages", destination="crm", state="pending") == 2
    assert seen("duly_messages", destination="crm", state="unknown") == 0
    assert seen("duly_messages_oldest_age_seconds", destination="crm") == 300
    assert seen("duly_complete_through_timestamp_seconds", job="export", scope="acme") == at("2026-10-24T00:00:00Z")
    for letter, _ in letters:
        story.store.write(skip_message(claim.run, letter.name, WORD))
    seen = look(story)
    assert seen.windows("export", "acme") == {}
    assert seen("duly_messages", destination="crm", state="pending") is None
    assert seen("duly_complete_through_timestamp_seconds", job="export", scope="acme") == at("2026-10-25T00:00:00Z")


def test_a_pause_is_told_and_what_it_holds_back_needs_nobody(story: Story) -> None:
    story.job("close", daily("UTC"))
    story.complete("close")
    assert look(story)("duly_paused", job="close") == 0
    story.store.write(pause("close", None, WORD, until=None))
    story.clock.set("2026-10-27T12:00:00Z")

    seen = look(story)

    assert seen("duly_paused", job="close") == 1
    assert seen.windows("close") == {"missing": 2}
    assert seen("duly_windows_late", job="close") == 2
    assert seen("duly_windows_in_need", job="close") == 0


def test_what_a_backfill_has_still_to_come_to_is_counted(story: Story) -> None:
    story.job("close", daily("UTC"))
    story.complete("close")
    assert look(story)("duly_backfill_windows_left", job="close") == 0
    first, beyond = (2 * parse_instant(f"2026-10-{day}T00:00:00Z") // 1_000_000 for day in ("01", "21"))
    story.store.write(start("close", "", Asked("2026-10-01..2026-10-21", first, beyond), WORD, expect=20))

    assert look(story)("duly_backfill_windows_left", job="close") == 20


def test_a_line_of_which_nothing_is_left_is_not_told_of(story: Story) -> None:
    story.job("close", daily("UTC"))
    story.complete("close")
    story.complete("close", scope="acme")
    story.store.write(retire_scopes("close", ["acme"], WORD))

    seen = look(story)

    assert seen("duly_paused", job="close") == 0
    assert seen("duly_paused", job="close", scope="acme") is None


def test_the_scrape_tells_of_itself(story: Story) -> None:
    seen = look(story)

    assert seen("duly_ledger_up") == 1
    assert seen("duly_schema_version") == SCHEMA
    assert seen("duly_snapshot_timestamp_seconds") == at("2026-10-25T12:00:00Z")
    assert seen("duly_scrape_duration_seconds") == 0.0015
    assert seen("duly_build_info", version="0.1") == 1


def test_of_a_ledger_that_cannot_be_read_only_that_is_told() -> None:
    seen = Seen(text(Scrape(None, 20_000, "0.1")))

    assert seen("duly_ledger_up") == 0
    assert {name for name, _ in seen.samples} == {"duly_ledger_up", "duly_scrape_duration_seconds", "duly_build_info"}


def test_a_label_is_escaped_and_a_name_is_a_name(story: Story) -> None:
    """A scope is any printable text: quotes and backslashes too."""
    scope = 'a"b\\c'
    story.job("export", daily("UTC"))
    story.complete("export", scope=scope)
    said = text(Scrape(story.store.read(snapshot()), 0, "0.1"))

    assert r'duly_paused{job_name="export",scope="a\"b\\c"} 0' in said.splitlines()
    for metric in METRICS:
        assert re.fullmatch(r"duly_[a-z_]+", metric.name)
        assert "total" not in metric.name  # a counter only rises; what the ledger forgets does not
        assert "\n" not in metric.says
        assert '"' not in metric.says


def test_each_family_has_its_help_and_its_type_before_its_samples(story: Story) -> None:
    story.job("close", daily("UTC"))
    story.complete("close")
    told: list[str] = []
    for line in text(Scrape(story.store.read(snapshot()), 0, "0.1")).splitlines():
        match line.split():
            case ["#", "HELP", name, *_]:
                told.append(name)
            case ["#", "TYPE", name, kind]:
                assert (name, kind) == (told[-1], "gauge")
            case [sample, _]:
                assert sample.partition("{")[0] == told[-1]
    assert len(told) == len(set(told))


def test_each_metric_is_asked_for_its_value_here() -> None:
    stories = Path(__file__).read_text(encoding="utf-8")

    assert [metric.name for metric in METRICS if f'("{metric.name}"' not in stories] == []


def test_open_metrics_ends_with_its_mark(story: Story) -> None:
    scrape = Scrape(story.store.read(snapshot()), 0, "0.1")

    assert open_metrics_text(scrape) == text(scrape) + "# EOF\n"


def test_seconds_are_exact_to_the_microsecond() -> None:
    assert seconds(1_793_059_200_000_001) == "1793059200.000001"
    assert [seconds(micros) for micros in (0, 1_500_000, -250_000, 3_000_000)] == ["0", "1.5", "-0.25", "3"]


def test_what_is_looked_at_is_bounded_however_long_a_job_was_asleep(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.job("minutes", every("1m"))
    story.job("others", cron("* * * * *", zone="Europe/Paris"))
    story.complete("minutes")
    story.complete("others")
    monkeypatch.setattr("duly.evidence.status.LOOK_IN_ALL", 100)
    story.clock.advance("10d")

    seen = look(story)

    assert sum(seen.windows("minutes").values()) == sum(seen.windows("others").values()) == 50
    assert seen("duly_complete_through_lag_seconds", job="minutes") == 864_000


@pytest.fixture
def on_postgres(server: Server) -> Iterator[PostgresBook]:
    url = server.new_database()
    book = PostgresBook(url)
    yield book
    book.store.close()
    server.drop(url)


def test_postgres_says_the_same(on_postgres: PostgresBook) -> None:
    book = on_postgres
    book.job()
    book.job("push", contract="external")
    book.complete(book.take())
    book.doubt(book.take(job="push"))
    seen = Seen(text(Scrape(book.store.read(snapshot()), 0, "0.1")))

    assert seen("duly_complete_through_timestamp_seconds", job="export") == at("2026-10-06T00:00:00Z")
    assert seen("duly_last_completed_duration_seconds", job="export") == 0
    assert seen.windows("push") == {"unknown": 1}
    assert seen("duly_recent_attempts", job="export", outcome="completed") == 1
    assert seen("duly_schema_version") == SCHEMA
