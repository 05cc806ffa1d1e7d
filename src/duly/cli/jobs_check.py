"""`duly jobs check`: a configuration in words: each job with its next occurrences, its lints, and what the ledger has else;
and whether each destination can be served.

`duly jobs schema` prints what an editor may check a file by.
"""

from __future__ import annotations

import os
from itertools import islice
from shlex import join

from duly.cli import codes
from duly.cli.complain import in_same_ledger, say
from duly.cli.ledgers import configured, named_ledger, open_to_look
from duly.cli.output import iso, note, show, table, when
from duly.errors import ConfigurationInvalid, DulyError
from duly.evidence.explain_words import length
from duly.evidence.next import night_note
from duly.ledger.named import TO_FILL_IN
from duly.ledger.register import find, same_schedule
from duly.records import record
from duly.redaction import Redaction
from duly.schedule.facts import release_in_use
from duly.schedule.keys import nominal_text
from duly.schedule.lints import lints_of
from duly.times import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from duly.cli.output import Json
    from duly.ledger.ask import Value
    from duly.ledger.records import Known
    from duly.schedule.lints import Lint
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger
    from duly.work.configuration import JobEntry, Layers

COMING = 3
_SPANS = ("remembers", "retry_delay", "retry_ceiling", "timeout", "lease", "grace", "retain")
_SWITCHES = ("overlap", "ordered")
_KEYS = {"contract": "effect", "roster": "scopes"}  # columns that a file has another name for

NEW, SAME, CHANGED, UNSEEN = "new", "same", "schedule changed", "unseen"


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="else those that count in the working directory")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""


def run_schema() -> int:
    from importlib.resources import files

    print(files("duly.work.configuration").joinpath("duly.schema.json").read_text(encoding="utf-8"), end="")
    return codes.DONE


# -- what is looked at --------------------------------------------------------------------------------------------------


@record
class _Checked:
    """A job of a file. `known` is what the ledger has of it; `beside` says how the two stand beside each other."""

    entry: JobEntry
    occurrences: list[Occurrence]
    lints: list[Lint]
    known: Known | None
    beside: str

    @property
    def schedule(self) -> Schedule | None:
        return self.entry.declaration.schedule


def run_check(args: argparse.Namespace) -> int:
    if args.file is not None:
        os.environ["DULY_CONFIG"] = os.path.abspath(args.file)
    layers = configured()
    if layers is None:
        raise ConfigurationInvalid(
            "there is no duly.toml here or above, none of this user and none of the system",
            next_step="duly jobs schema",
        )
    store, now, problems = None, _now(), []
    try:
        _warn_of_password(layers)
        layers.daemon()
        layers.redact()
        store = _ledger(args, layers)
    except ConfigurationInvalid as e:
        problems.append(e)
    _check_destinations(layers, problems)
    _check_alerts(layers, problems)
    now = now if store is None else store.now()
    checked: list[_Checked] = []
    for name in _names(layers.names, problems):
        try:
            checked.append(_check(layers.job_or_raise(name), store, now))
        except ConfigurationInvalid as e:
            problems.append(e)
    facts: dict[str, Json] = {
        "as_of": iso(now),
        "files": list(layers.files),
        "problems": [str(problem) for problem in problems],
    }
    show(
        args,
        "duly.configuration.v1",
        facts,
        "jobs",
        [_as_json(one) for one in checked],
        lambda: "\n\n".join(_in_words(one, args, now) for one in checked),
    )
    return _conclude(args, checked, problems)


def _conclude(args: argparse.Namespace, checked: list[_Checked], problems: list[ConfigurationInvalid]) -> int:
    """Say what is wrong, and what is not as in the ledger, with one step to take."""
    for problem in problems:
        say(f"duly: {problem}")
    changed = [one for one in checked if one.beside == CHANGED]
    for one in changed:
        say(f"duly: {one.entry.name} has another schedule in the ledger, so nothing of it is run")
    if problems:
        step = problems[-1].next_step
        say(f"  try: {step if step and not step.startswith('duly jobs check') else 'duly jobs schema'}")
        return codes.CONFIGURATION
    if changed:
        step = join(["duly", "jobs", "apply", changed[0].entry.name, "--reason", TO_FILL_IN, "--dry-run"])
        named = {"--ledger": args.ledger, "--config": args.file or args.config}
        typed = [word for flag, value in named.items() if value for word in (flag, value)]
        say(f"  try: {in_same_ledger(step, typed)}")
        return codes.CONFIGURATION
    if not checked:
        note("no job is configured")
    return codes.DONE


def _check_destinations(layers: Layers, problems: list[ConfigurationInvalid]) -> None:
    """Whether each of them can be served as its table says. Nothing is connected."""
    for name in _names(layers.destination_names, problems):
        try:
            layers.destination(name)
        except ConfigurationInvalid as e:
            problems.append(e)


def _check_alerts(layers: Layers, problems: list[ConfigurationInvalid]) -> None:
    """Whether those who are to be told of alerts are declared."""
    try:
        layers.alerts()
    except ConfigurationInvalid as e:
        if str(e) not in map(str, problems):
            problems.append(e)


def _names(ask: Callable[[], list[str]], problems: list[ConfigurationInvalid]) -> list[str]:
    try:
        return ask()
    except ConfigurationInvalid as e:
        if str(e) not in map(str, problems):
            problems.append(e)
        return []


def _warn_of_password(layers: Layers) -> None:
    entry = layers.ledger()
    if entry is not None and entry.shows_password:
        note(f"{entry.source} has a password, for whoever may read the file; url_env or url_file keep it elsewhere")


def _ledger(args: argparse.Namespace, layers: Layers) -> Store | RestingLedger | None:
    """The ledger to compare with. A file can be checked without one, as where it is reviewed."""
    try:
        return open_to_look(args.ledger)
    except ConfigurationInvalid:
        raise
    except DulyError as e:
        note(f"the files alone are checked: {named_ledger(args.ledger, layers).said_of(str(e))}")
        return None


def _now() -> int:
    from time import time_ns

    return time_ns() // 1000


def _check(entry: JobEntry, store: Store | RestingLedger | None, now: int) -> _Checked:
    schedule = entry.declaration.schedule
    occurrences = [] if schedule is None else list(islice(schedule.after(now), COMING))
    lints = [] if schedule is None else lints_of(schedule, now)
    known = None if store is None else store.read(find(entry.name, ""))
    if store is None:
        return _Checked(entry, occurrences, lints, None, UNSEEN)
    if known is None or known.version is None:
        return _Checked(entry, occurrences, lints, known, NEW)
    changed = schedule is not None and not same_schedule(known.version, schedule)
    return _Checked(entry, occurrences, lints, known, CHANGED if changed else SAME)


# -- in words -----------------------------------------------------------------------------------------------------------


def _in_words(checked: _Checked, args: argparse.Namespace, now: int) -> str:
    entry, schedule = checked.entry, checked.schedule
    facts = [["schedule", "as the ledger has it" if schedule is None else _schedule_in_words(schedule)]]
    if entry.command is not None:
        facts.append(["command", join(Redaction().words(entry.command))])
    facts += [[_KEYS.get(name, name), _policy(checked, name, value)] for name, value in _policies(entry)]
    facts += [[name.replace("-", "_"), " ".join(values) or "yes"] for name, values in entry.flags.items()]
    facts.append(["ledger", _beside_in_words(checked)])
    said = [f"{entry.name}   {entry.file}", _indented(table(facts))]
    if schedule is not None:
        rows = [_row(schedule, occurrence, args, now) for occurrence in checked.occurrences]
        said.append(_indented(table(rows) if rows else "no occurrence comes"))
        for lint in checked.lints:
            line = f"{lint.line}: " if lint.line else ""
            said.append(_indented(f"{lint.code}: {line}{lint.says}\n  instead: {lint.instead.replace('--', '')}"))
    return "\n".join(said)


def _schedule_in_words(schedule: Schedule) -> str:
    tzdata = "" if schedule.zone == "UTC" else f"; tzdata {release_in_use(schedule.zone).version}"
    return f"{schedule.words()}{tzdata}"


def _row(schedule: Schedule, occurrence: Occurrence, args: argparse.Namespace, now: int) -> list[str]:
    return [
        nominal_text(schedule.grain, occurrence.nominal, schedule.zone),
        length((occurrence.start, occurrence.end)).rjust(4),
        f"due {when(occurrence.due, schedule.zone, time=args.time, now=now)}",
        night_note(schedule, occurrence),
    ]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _policies(entry: JobEntry) -> list[tuple[str, Value]]:
    return [
        (name, value)
        for name, value in entry.declaration.policies.items()
        if name != "remembers" or entry.declaration.policies.get("contract") == "idempotent"
    ]


def _policy(checked: _Checked, name: str, value: Value) -> str:
    """A policy in words, with what the ledger has where that differs: the next run stores it there."""
    if name == "roster":
        return ", ".join(checked.entry.declaration.scopes or ())
    known = checked.known
    if known is None or getattr(known.job, name) == value:
        return _value(name, value)
    return f"{_value(name, value)}   (the ledger has {_value(name, getattr(known.job, name))} until the next run)"


def _value(name: str, value: Value) -> str:
    if isinstance(value, int) and name in _SPANS:
        return duration_text(value)
    if name in _SWITCHES:
        return "yes" if value else "no"
    if value is None:
        return "forever" if name in ("remembers", "retain") else "none"
    return str(value) or "none"


def _beside_in_words(checked: _Checked) -> str:
    version = None if checked.known is None else checked.known.version
    match checked.beside:
        case "unseen":
            return "not looked at"
        case "new":
            return "does not have it; its first run registers it"
        case "same":
            assert version is not None
            return f"has it so, as version {version.number}"
    assert version is not None
    return f"has version {version.number} in force: {version.words}"


# -- for programs -------------------------------------------------------------------------------------------------------


def _as_json(checked: _Checked) -> dict[str, Json]:
    entry, schedule = checked.entry, checked.schedule
    policies: dict[str, Json] = {_KEYS.get(name, name): _value(name, value) for name, value in _policies(entry)}
    if entry.declaration.scopes is not None:
        policies["scopes"] = list(entry.declaration.scopes)
    occurrences: list[Json] = []
    if schedule is not None:
        occurrences += [
            {
                "window": nominal_text(schedule.grain, occurrence.nominal, schedule.zone),
                "due": iso(occurrence.due),
                "window_start": iso(occurrence.start),
                "window_end": iso(occurrence.end),
            }
            for occurrence in checked.occurrences
        ]
    lints: list[Json] = [
        {"code": lint.code, "line": lint.line, "says": lint.says, "instead": lint.instead} for lint in checked.lints
    ]
    return {
        "key": entry.name,
        "job": entry.name,
        "file": entry.file,
        "schedule": None if schedule is None else schedule.words(),
        "command": None if entry.command is None else [*Redaction().words(entry.command)],
        "policies": policies,
        "flags": {name: " ".join(values) or True for name, values in entry.flags.items()},
        "ledger": checked.beside,
        "in_force": None if checked.known is None or checked.known.version is None else checked.known.version.words,
        "next": occurrences,
        "lints": lints,
    }
