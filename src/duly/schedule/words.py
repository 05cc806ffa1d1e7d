"""A schedule in words, for whoever reads a preview, an event or an error."""

from __future__ import annotations

from duly.times import duration_text, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.resolver import Rule
    from duly.schedule.spec import Schedule

_GAP_WORDS = {
    "shift_to_transition": "counts at the change",
    "shift_forward": "counts later by as much",
    "skip": "does not count",
}
_FOLD_WORDS = {
    "first": "counts the first time",
    "second": "counts the second time",
    "both": "counts both times",
}


def words_of(schedule: Schedule) -> str:
    """What it is, and what becomes of a time that the clocks skip or repeat, and of days off."""
    days_off = "" if schedule.calendar is None else schedule.calendar.words()
    return f"{what_of(schedule)}{_policies_of(schedule)}{days_off}"


def what_of(schedule: Schedule) -> str:
    """What it is, as `daily in Europe/Berlin, worked at 02:30 the next morning`."""
    if schedule.kind == "every":
        return f"every {duration_text(schedule.interval)}, counted from {instant_text(schedule.anchor)}"
    if schedule.kind == "cron":
        what = "cron " + " and ".join(line.text for line in schedule.lines)
    else:
        what = f"{schedule.kind} from {schedule.offset}" if schedule.offset else schedule.kind
    return f"{what} in {schedule.zone}{_work_of(schedule)}"


def _work_of(schedule: Schedule) -> str:
    if schedule.at is None:
        return ""
    if schedule.kind != "daily" or schedule.offset:
        return f", worked at {schedule.at} after its end"
    return f", worked at {schedule.at} the next {'morning' if schedule.at < '12' else 'day'}"


def _policies_of(schedule: Schedule) -> str:
    if schedule.zone == "UTC":  # its clocks are never moved
        return ""
    policies = [(rule.line.text, _policy_words(rule)) for rule in schedule.rules]
    if len({words for _, words in policies}) == 1:
        return f"; {policies[0][1]}"
    return "".join(f"; for {line} {words}" for line, words in policies)


def _policy_words(rule: Rule) -> str:
    return f"a time that the clocks skip {_GAP_WORDS[rule.gap]}, one that they repeat {_FOLD_WORDS[rule.fold]}"
