"""What the demo does, one function a step. Its docstring is what is said before; what it answers is said after."""

from __future__ import annotations

import os
import signal
from datetime import UTC, date, datetime, timedelta

from duly.demo.stage import Stage, expect, go, heard
from duly.evidence.next import previous_change
from duly.records import record
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NIGHT = "2026-10-25"  # Berlin's clocks go from 03:00 CEST back to 02:00 CET


@record
class Days:
    """The four days before today, in UTC: what the account is credited for."""

    first: str
    second: str
    third: str
    fourth: str


def days_before(today: date) -> Days:
    """The four days before a day, oldest first."""
    return Days(*((today - timedelta(days=back)).isoformat() for back in (4, 3, 2, 1)))


def eight_at_once(stage: Stage, days: Days) -> str:
    """Eight workers at once credit the account ten units for {first}; the losers wait for the winner."""
    said = stage.work_at_once(8, "well", days.first)

    expect("what the workers say", sorted(said), ["AlreadyCompleted"] * 7 + ["Completed"])
    expect("attempts", stage.attempts(days.first), ["completed"])
    expect("units", stage.units(), 10)
    return "1 applied it, 7 were told that it is done; 1 attempt on record, and the account has 10 units"


def failure_before_commit(stage: Stage, days: Days) -> str:
    """A worker credits {second}, and raises before its transaction commits; another then does it."""
    expect("what the first says", stage.work("badly", days.second), "FeedBroken")
    expect("units after it", stage.units(), 10)
    expect("attempts after it", stage.attempts(days.second), ["failed"])

    expect("what the second says", stage.work("well", days.second), "Completed")
    expect("attempts", stage.attempts(days.second), ["failed", "completed"])
    expect("units", stage.units(), 20)
    return "the failed attempt left 10 units and its own record; the second completed the day: 20 units"


def killed_in_the_middle(stage: Stage, days: Days) -> str:
    """A worker credits {third}, and gets SIGKILL before it commits; the next one waits until its lease (1 s) is over."""
    doomed = stage.worker("stuck", days.third)
    heard(doomed, "ready")
    go(doomed)
    heard(doomed, "stuck")
    doomed.kill()
    expect("how the worker ended", doomed.wait(), -signal.SIGKILL)
    expect("units after it", stage.units(), 20)
    expect("state after it", stage.state(days.third), "running")

    expect("what the next says", stage.work("well", days.third), "Completed")
    expect("attempts", stage.attempts(days.third), ["lost", "completed"])
    expect("units", stage.units(), 30)
    return "attempt 1 is on record as lost, and left nothing; attempt 2 completed the day once: 30 units"


def the_next_day(stage: Stage, days: Days) -> str:
    """A poke as cron would give it, and a second one: what is owed is worked, and that is {fourth}."""
    first, second = stage.work("owed", ""), stage.work("owed", "")

    key = f"credit:{days.fourth}[UTC]"
    expect("whether the first poke did it", key in first.split(), True)
    expect("whether the second did it again", key in second.split(), False)
    expect("attempts", stage.attempts(days.fourth), ["completed"])
    expect("units", stage.units(), 10 * stage.completions())
    return f"the first completed {key}, the second had nothing to do: {stage.units()} units"


def outcome_unknown(stage: Stage, days: Days) -> str:
    """`duly exec` runs a command that calls a provider, and dies by kill -9 before it can say what came of it."""
    calls = os.path.join(stage.folder, "provider.log")
    call = ["sh", "-c", 'echo "charge $DULY_RUN_KEY" >> "$1" && kill -9 $$', "sh", calls]
    poke = ["exec", "charge", "--period", "daily", "--zone", "UTC", "--", *call]
    stage.duly(*poke, ends_with=80)
    stage.duly(*poke, ends_with=80)
    expect("calls before it is resolved", _lines_of(calls), 1)
    (unknown,) = stage.document("runs", "charge")["runs"]
    expect("state", unknown["state"], "unknown")

    stage.duly("resolve", unknown["key"], "--as", "done", "--evidence", "the provider's log has one charge")
    expect("state when resolved", stage.document("runs", "charge")["runs"][0]["state"], "complete")
    return "exit 80: unknown, so the next poke (80 too) did not call again; resolved by a person as done: 1 call in all"


def night_of_25_hours(stage: Stage, days: Days) -> str:
    """Berlin's clocks go back on 25 October 2026: `duly next` tells that day, and its hours, from any other."""
    berlin = ["--zone", "Europe/Berlin", f"{NIGHT}..2026-10-26"]
    (day,) = stage.document("next", "--period", "daily", *berlin)["occurrences"]
    hours = stage.document("next", "--period", "hourly", *berlin)["occurrences"]

    expect("hours of the day", _hours(day), 25)
    names = [hour["window"].removeprefix(NIGHT) for hour in hours]
    expect("its hours", names, ["T00", "T01", "T02", "T02~2", *(f"T{hour:02}" for hour in range(3, 24))])
    expect("how long each is", {_hours(hour) for hour in hours}, {1})
    return "the day is 25 h long, and an hourly job has 25 runs in it, 02:00 twice: T02 and T02~2"


def nothing_left(stage: Stage, days: Days) -> str:
    """What is left for a person to do."""
    status = stage.document("status")

    expect("what needs a person", status["needs"], [])
    complete = stage.document("runs", "--state", "completed", "-n", "1000")["runs"]
    expect("runs complete", len(complete), stage.completions() + 1)
    expect("units", stage.units(), 10 * stage.completions())
    return f"nothing: {stage.completions()} credits and a charge are complete, each once; ten units for each credit"


ARCHIVE = (
    "archive",
    "--period",
    "daily",
    "--zone",
    "Europe/Berlin",
    "--effect",
    "idempotent",
    "--remembers",
    "forever",
)
BACKFILLED_DAYS, DONE_AGAIN = 8, 3


def a_morning_for_somebody(stage: Stage, days: Days) -> str:
    """A morning that needs somebody: failed, unknown, done by nobody, late, and a night that is done again."""
    daily = ["--period", "daily", "--zone", "UTC"]
    stage.duly("exec", "report", *daily, "--retries", "0", "--", "sh", "-c", "exit 3", ends_with=3)
    stage.duly("exec", "refund", *daily, "--", "sh", "-c", "kill -9 $$", ends_with=80)
    stage.duly("exec", "bill", *daily, "--scope", "acme", "--", "true")
    stage.duly("jobs", "scopes", "add", "bill", "globex", "--from", days.first, "--reason", "a customer since that day")
    stage.duly("exec", "invoice", *daily, "--", "true")
    stage.duly("skip", "invoice", days.third, "--reason", "the customer was away")
    stage.duly("unskip", "invoice", days.third, "--reason", "and is back")
    night = night_before(stage.now())
    range_ = f"{night - timedelta(days=BACKFILLED_DAYS - 2)}..{min(night + timedelta(days=2), stage.now().date())}"
    stage.duly("exec", *ARCHIVE, "--", "true")
    stage.duly("backfill", "start", "archive", range_, "--order", "newest", "--reason", "the disk was full")
    for _ in range(DONE_AGAIN):
        stage.duly("exec", *ARCHIVE, "--backfill", "--one", "--", "true")

    seen = {(found["job"], found["state"]) for found in stage.document("runs")["runs"]}
    expect("what stands there", seen >= {("report", "failed"), ("refund", "unknown"), ("invoice", "late")}, True)
    status = stage.document("status")
    expect("what nobody did", [found["job"] for found in status["needs"] if found["state"] == "missing"], ["bill"])
    expect("backfills", [found["state"] for found in status["backfills"]], ["active"])
    (day,) = stage.document("next", "archive", f"{night}..{night + timedelta(days=1)}")["occurrences"]
    expect("the night", (day["state"], _hours(day) in (23, 25)), ("complete", True))
    many = status["counts"]["need_you"]
    return f"each is there to be seen: {many} need somebody; {night}, of {_hours(day):g} h, was done again"


def night_before(now: datetime) -> date:
    """The newest day on which Berlin's clocks were moved, up to an instant."""
    change = previous_change("Europe/Berlin", int(now.timestamp()) * SECOND)
    assert change is not None  # they are moved twice a year
    return datetime.fromtimestamp(change.at / SECOND, UTC).date()  # at 01:00 in UTC, both times


STEPS: tuple[Callable[[Stage, Days], str], ...] = (
    eight_at_once,
    failure_before_commit,
    killed_in_the_middle,
    the_next_day,
    outcome_unknown,
    night_of_25_hours,
    nothing_left,
    a_morning_for_somebody,
)


def title(step: Callable[[Stage, Days], str], days: Days) -> str:
    """What a step says before it begins."""
    return " ".join((step.__doc__ or "").split()).format(
        first=days.first, second=days.second, third=days.third, fourth=days.fourth
    )


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def _hours(occurrence: dict[str, str]) -> float:
    start, end = (datetime.fromisoformat(occurrence[name]) for name in ("window_start", "window_end"))
    return (end - start) / timedelta(hours=1)


def _lines_of(path: str) -> int:
    with open(path, encoding="utf-8") as f:
        return len(f.readlines())
