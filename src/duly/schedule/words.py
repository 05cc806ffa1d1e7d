"""A schedule in words, for whoever reads a preview, an event or an error."""

from __future__ import annotations

from duly.times import duration_text, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


def flags_of(schedule: Schedule) -> str | None:
    """The schedule as flags of the command line; None where they cannot say it: on a calendar, whose file is not known, or of
    cron lines that differ in their policies.
    """
    from shlex import join

    if schedule.calendar is not None:
        return None
    if schedule.kind == "every":
        anchor = ["--anchor", instant_text(schedule.anchor)] if schedule.anchor else []
        return join(["--every", duration_text(schedule.interval), *anchor])
    if schedule.kind == "cron":
        flags = [word for line in schedule.lines for word in ("--cron", line.text)]
    else:
        flags = ["--period", schedule.kind]
    flags += ["--zone", schedule.zone]
    for flag, value in (("--at", schedule.at), ("--offset", schedule.offset)):
        flags += [flag, value] if value else []
    policies = _flags_of_policies(schedule)
    return None if policies is None else join([*flags, *policies])


def _flags_of_policies(schedule: Schedule) -> list[str] | None:
    """`--gap` and `--fold`, where they are not what they are if they are left out."""
    from duly.schedule import spec

    if schedule.kind == "cron":
        plain = spec.cron(*(line.text for line in schedule.lines), zone=schedule.zone)
    else:
        make: Callable[[str], Schedule] = getattr(spec, schedule.kind)
        plain = make(schedule.zone)
    if [(rule.gap, rule.fold) for rule in plain.rules] == [(rule.gap, rule.fold) for rule in schedule.rules]:
        return []
    alike = len({(rule.gap, rule.fold) for rule in schedule.rules}) == 1
    return ["--gap", schedule.gap, "--fold", schedule.fold] if alike else None


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
