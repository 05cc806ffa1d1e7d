"""Fields: what may stand in a configuration, once: the reader, the JSON Schema and the page of the documentation have it
from here, so that none can say what another does not.

A *kind* reads a value as TOML has it. What it refuses, it refuses with the text to write instead.
"""

from __future__ import annotations

from duly.codes import UNKNOWN
from duly.errors import Misuse
from duly.ledger.contracts import CONTRACTS
from duly.records import record
from duly.schedule.catch_up import POLICIES, parse_catch_up
from duly.schedule.keys import check_scope
from duly.schedule.resolver import FOLDS, GAPS
from duly.schedule.written import FLAGS, PERIODS
from duly.times import DAY, parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FOREVER = "forever"
DAYS_OFF = ("skip", "next", "previous")  # as duly.schedule.calendar has them, which few jobs need
KINDS = (
    "late",
    "failed",
    "unknown",
    "stuck",
    "superseded",
    "drift",
)  # as duly.ledger.alerts has them, which a poke spares
NEVER_MORE_THAN = 36_500 * DAY


@record
class Kind:
    """What a value may be: in words, as a JSON Schema, and `read(key, value)`, which raises `Misuse` naming the key."""

    words: str
    schema: dict[str, Any]
    read: Callable[[str, object], Any]


@record
class Field:
    """What a key takes, and what it means."""

    kind: Kind
    means: str


# -- reading a value ----------------------------------------------------------------------------------------------------


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise Misuse(f"{key}: {_shown(value)} is no text; {_write(key, value)}")
    if not value.strip():
        raise Misuse(f"{key}: it is blank; leave it out, or write something")
    if "\0" in value:
        raise Misuse(f"{key}: a text with a NUL can be given to no command")
    return value


def _secret(key: str, value: object) -> str:
    """A text that may hold a password, so that no error shows it."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Misuse(f'{key}: it takes one text, as {key} = "sqlite:////var/lib/duly/ledger.db"')
    return value.strip()


def _variable(key: str, value: object) -> str:
    name = value if isinstance(value, str) else ""
    if not name.isascii() or not name.replace("_", "a").isalnum() or name[0].isdigit():
        # not shown: it may be the address itself, with a password, written where its name belongs
        raise Misuse(f'{key}: it takes the name of a variable, without $, as {key} = "SHOP_LEDGER"')
    return name


def _secret_file(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "://" in value or "\0" in value:
        raise Misuse(f'{key}: it takes the name of a file that holds the URL, as {key} = "/run/secrets/ledger"')
    return value


def _texts(key: str, value: object) -> list[str]:
    return [_text(key, each) for each in value] if isinstance(value, list) and value else [_text(key, value)]


def _names(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Misuse(f"{key}: {_shown(value)} is no list; {_write(key, [value])}")
    if not value:
        raise Misuse(f"{key}: an empty list would leave nothing to work; name one, or leave {key} out")
    for each in value:
        check_scope(_text(key, each))
    if len(set(value)) < len(value):
        raise Misuse(f"{key}: a name is listed twice")
    return tuple(value)


def _words(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise Misuse(f"{key}: no shell is involved, so it is a list of words; write {key} = {_as_list(value)}")
    if not isinstance(value, list) or not value:
        raise Misuse(f'{key}: it is a list of words, as {key} = ["./close.sh", "--day", "{{date}}"]')
    for each in value:
        if not isinstance(each, str):
            raise Misuse(f"{key}: {_shown(each)} is no text; write {_quoted(str(each))}")
        if "\0" in each:
            raise Misuse(f"{key}: a word with a NUL can be given to no command")
    _text(key, value[0])
    return tuple(value)


def _as_list(text: str) -> str:
    """A command line as the list of words that does the same, as it may be shown."""
    from shlex import split

    from duly.redaction import Redaction

    try:
        words = split(text)
    except ValueError:
        words = []
    if not words or set(text) & set("|&;<>$`*?~"):
        words = ["sh", "-c", text]
    return _quoted(Redaction().words(words))


def _duration(key: str, value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Misuse(f'{key}: {value} has no unit; write {key} = "{value}s" if seconds are meant')
    text = _text(key, value)
    try:
        micros = parse_duration(text)
    except Misuse as e:
        raise Misuse(f"{key}: {e}") from e
    if micros > NEVER_MORE_THAN:
        raise Misuse(f"{key}: {text!r} is longer than a hundred years")
    return micros


def _size(key: str, value: object) -> int:
    from duly.work.kept import parse_size

    if isinstance(value, int) and not isinstance(value, bool):
        raise Misuse(f'{key}: {value} is no text; write {key} = "{value}"')
    try:
        return parse_size(_text(key, value))
    except Misuse as e:
        raise Misuse(str(e) if str(e).startswith(key) else f"{key}: {e}") from e


def _regexes(key: str, value: object) -> tuple[str, ...]:
    import re

    patterns = _list_of_texts(key, value)
    for place, each in enumerate(patterns):
        try:
            found = re.compile(each).fullmatch("")
        except (re.error, RecursionError, OverflowError):  # its words would show the pattern, and that may be a secret
            raise Misuse(f"{key}: the pattern number {place + 1} is none that Python's re understands") from None
        if found is not None:
            raise Misuse(f"{key}: the pattern number {place + 1} matches nothing at all; say what a secret looks like")
    return patterns


def _variables(key: str, value: object) -> tuple[str, ...]:
    return tuple(_variable(key, each) for each in _list_of_texts(key, value))


def _list_of_texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
        raise Misuse(f'{key}: it is a list of texts, as {key} = ["…"]')
    return tuple(value)


def _interval(key: str, value: object) -> str:
    _duration(key, value)
    return str(value)


def _remembers(key: str, value: object) -> int | None:
    return None if value == FOREVER else _duration(key, value)


def _switch(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise Misuse(f"{key}: {_shown(value)} is neither true nor false; write {key} = true")
    return value


def _yes_or_no(key: str, value: object) -> bool:
    return value == "yes" if value in ("yes", "no") else _switch(key, value)


def _count(least: int, most: int) -> Callable[[str, object], int]:
    def read(key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            number = value if isinstance(value, str) and value.isascii() and value.isdigit() else least
            why = f"{_shown(value)} is not a whole number between {least} and {most}"
            raise Misuse(f"{key}: {why}; write {key} = {number}")
        return value

    return read


def _choice(names: tuple[str, ...]) -> Callable[[str, object], str]:
    def read(key: str, value: object) -> str:
        if value not in names:
            near = did_you_mean(value, names) if isinstance(value, str) else ""
            raise Misuse(f"{key}: {_shown(value)} is none of {', '.join(names)}{near}")
        return str(value)

    return read


def _exit_codes(key: str, value: object) -> str:
    """The codes as the ledger keeps them."""
    if not isinstance(value, list):
        written = value if isinstance(value, str) and not value.strip("0123456789, ") else "75, 111"
        raise Misuse(f"{key}: it is a list of numbers; write {key} = [{_shown_bare(value, written)}]")
    for code in value:
        if isinstance(code, bool) or not isinstance(code, int) or not 1 <= code <= 192:
            raise Misuse(f"{key}: {_shown(code)} is not an exit code between 1 and 192")
        if code == UNKNOWN:
            raise Misuse(f"{key}: 80 is how a command says that its outcome is unknown")
    return ",".join(map(str, value))


def _catch_up(key: str, value: object) -> str:
    if not isinstance(value, str | dict):
        raise Misuse(f'{key}: {_shown(value)} is no policy; write {key} = "each", "latest" or "fresh"')
    if isinstance(value, dict) and isinstance(age := value.get("max_age"), int | float):
        raise Misuse(f'{key}.max_age: {age} has no unit; write max_age = "{age}d" if days are meant')
    return str(parse_catch_up(value))


def _probe(key: str, value: object) -> dict[str, Any]:
    """A probe as its parts, whichever way it is written."""
    if not isinstance(value, dict):
        return {"command": _words(key, value)}
    for name in value:
        if name not in _PROBE_PARTS:
            raise Misuse(f"{key}.{name}: a probe has no such part{did_you_mean(name, tuple(_PROBE_PARTS))}")
    if "command" not in value:
        raise Misuse(f'{key}: it says which command is asked; write {key} = {{command = ["./did-it.sh", "{{date}}"]}}')
    return {name: _PROBE_PARTS[name](f"{key}.{name}", each) for name, each in value.items()}


_PROBE_PARTS: dict[str, Callable[[str, object], Any]] = {
    "command": _words,
    "after": _duration,
    "timeout": _duration,
    "reads_own_writes": _switch,
}


def _on_late(key: str, value: object) -> str | tuple[str, ...]:
    """A URL, which may hold a secret, so that no error shows it; or a command."""
    if isinstance(value, str) and "://" not in value:
        raise Misuse(
            f'{key}: it takes a URL, or a command as a list of words; write {key} = "https://hooks.example/late", or '
            f'{key} = ["./page-somebody.sh"]'
        )
    if not isinstance(value, str):
        return _words(key, value)
    if value.partition("://")[0] not in ("http", "https") or not value.isascii() or any(c.isspace() for c in value):
        raise Misuse(f'{key}: it takes a URL of http or https; write {key} = "https://hooks.example/late"')
    return value


def _alert_kinds(key: str, value: object) -> tuple[str, ...]:
    names = _names(key, value)
    for name in names:
        _choice(KINDS)(key, name)
    return names


def _shown(value: object) -> str:
    """A value as an error shows it."""
    text = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _shown_bare(value: object, else_: str) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else else_


def _write(key: str, value: object) -> str:
    """The text to write for a value that lacks its quotes: TOML has numbers, dates and times of day of its own."""
    if isinstance(value, list):
        return f"write {key} = {_quoted([str(each) for each in value])}"
    if isinstance(value, dict):
        return f"write {key} = " + '"…"'
    iso = getattr(value, "isoformat", None)
    text = str(value) if iso is None else iso().removesuffix(":00") if key == "at" else iso().replace("+00:00", "Z")
    return f"write {key} = {_quoted(text)}"


def _quoted(value: str | list[str]) -> str:
    """A text, or a list of them, in TOML; JSON has the same quotes."""
    import json  # for errors alone: it would be half of what a file costs at a start

    return json.dumps(value, ensure_ascii=False)


def did_you_mean(name: str, names: tuple[str, ...]) -> str:
    """`; did you mean …?`, where one of the names is near."""
    from difflib import get_close_matches

    close = get_close_matches(name.replace("-", "_"), names, 1) or get_close_matches(name, names, 1)
    return f"; did you mean {close[0]}?" if close else ""


# -- kinds --------------------------------------------------------------------------------------------------------------

_STRING = {"type": "string", "minLength": 1}

TEXT = Kind("text", _STRING, _text)
SECRET = Kind("text", _STRING, _secret)
VARIABLE = Kind("name of a variable", {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, _variable)
SECRET_FILE = Kind("name of a file", _STRING, _secret_file)
TEXTS = Kind("text, or list of texts", {"anyOf": [_STRING, {"type": "array", "items": _STRING, "minItems": 1}]}, _texts)
NAMES = Kind("list of texts", {"type": "array", "items": _STRING, "minItems": 1, "uniqueItems": True}, _names)
WORDS = Kind("list of words", {"type": "array", "items": {"type": "string"}, "minItems": 1}, _words)
DURATION = Kind('duration, as `"15m"`', {"type": "string", "pattern": "[0-9]", "examples": ["90s", "15m"]}, _duration)
SIZE = Kind('size up to 64k, as `"16k"`', {"type": "string", "pattern": "^[0-9]+k?$", "examples": ["16k"]}, _size)
REGEXES = Kind("list of regular expressions", {"type": "array", "items": _STRING}, _regexes)
VARIABLES = Kind("list of names of variables", {"type": "array", "items": VARIABLE.schema}, _variables)
INTERVAL = Kind(DURATION.words, DURATION.schema, _interval)
MEMORY = Kind('duration, as `"24h"`, or `"forever"`', {"type": "string", "pattern": "[0-9]|^forever$"}, _remembers)
SWITCH = Kind("true or false", {"type": "boolean"}, _switch)
YES_OR_NO = Kind(
    'true or false, or `"yes"`, `"no"`', {"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no"]}]}, _yes_or_no
)
EXIT_CODES = Kind(
    "list of numbers",
    {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 192, "not": {"const": UNKNOWN}}},
    _exit_codes,
)
CATCH_UP = Kind(
    'text, as `"each max=3 max_age=7d"`, or table',
    {
        "anyOf": [
            {"type": "string", "pattern": f"^\\s*({'|'.join(POLICIES)})\\b"},
            {
                "type": "object",
                "properties": {
                    "policy": {"enum": list(POLICIES)},
                    "max": {"type": "integer", "minimum": 1},
                    "max_age": DURATION.schema,
                },
                "required": ["policy"],
                "additionalProperties": False,
            },
        ]
    },
    _catch_up,
)


PROBE = Kind(
    "list of words, or table",
    {
        "anyOf": [
            WORDS.schema,
            {
                "type": "object",
                "properties": {
                    "command": WORDS.schema,
                    "after": DURATION.schema,
                    "timeout": DURATION.schema,
                    "reads_own_writes": {"type": "boolean"},
                },
                "required": ["command"],
                "additionalProperties": False,
            },
        ]
    },
    _probe,
)


ON_LATE = Kind(
    "URL, or list of words", {"anyOf": [{"type": "string", "pattern": "^https?://"}, WORDS.schema]}, _on_late
)
ALERT_KINDS = Kind(
    "list of texts", {"type": "array", "items": {"enum": list(KINDS)}, "minItems": 1, "uniqueItems": True}, _alert_kinds
)


def _number(least: int, most: int) -> Kind:
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(f"number from {least}", schema, _count(least, most))


def _one_of(names: tuple[str, ...]) -> Kind:
    return Kind(", ".join(f'`"{name}"`' for name in names), {"enum": list(names)}, _choice(names))


# -- the tables ---------------------------------------------------------------------------------------------------------

LEDGER = {
    "url": Field(SECRET, "where the ledger is: `sqlite:////var/lib/duly/ledger.db`, `postgresql://…`"),
    "url_env": Field(VARIABLE, "the variable of the environment that holds the URL; commands do not see it"),
    "url_file": Field(SECRET_FILE, "the file that holds the URL, on one line, as a secret is mounted"),
    "busy_timeout": Field(DURATION, "how long to wait for a busy ledger (10s)"),
}

SCHEDULE = {name.replace("-", "_"): Field(TEXT, means.replace("--", "")) for name, (_, means) in FLAGS.items()}
SCHEDULE |= {
    "cron": Field(TEXTS, "five fields or `@daily`; several lines are one schedule"),
    "period": Field(_one_of(PERIODS), "the period is owed once it has ended"),
    "every": Field(INTERVAL, "an interval, counted in UTC from anchor"),
    "anchor": Field(TEXT, "where `every` counts from, as 2026-01-01T00:00:00Z"),
    "gap": Field(_one_of(GAPS), "what becomes of a time that the clocks skip"),
    "fold": Field(_one_of(FOLDS), "which counts of a time that the clocks repeat"),
    "days_off": Field(_one_of(DAYS_OFF), "what is done about days off"),
}

POLICY = {
    "catch_up": Field(CATCH_UP, "after downtime: `each`, `latest` or `fresh`; required beside a schedule"),
    "effect": Field(_one_of(CONTRACTS), "the contract of the effect (external)"),
    "remembers": Field(MEMORY, "idempotent: how long the destination deduplicates"),
    "clean_exits": Field(EXIT_CODES, "exit codes that prove that nothing happened"),
    "retries": Field(_number(0, 1_000_000), "how often a failure is retried, in place until the deadline"),
    "retry_delay": Field(DURATION, "before the first retry; doubled for each that follows (1m)"),
    "retry_ceiling": Field(DURATION, "the longest wait before a retry (1h)"),
    "timeout": Field(DURATION, "end the command after this long: SIGTERM, then SIGKILL"),
    "lease": Field(DURATION, "how long a claim lives without a heartbeat (60s)"),
    "grace": Field(DURATION, "how long after its due time a window may still be open without being late"),
    "retain": Field(MEMORY, "how long what is settled is kept; `duly db prune` forgets it then (forever)"),
    "overlap": Field(YES_OR_NO, "whether runs of one job and scope may overlap (no)"),
    "ordered": Field(YES_OR_NO, "whether a run waits until the one before it is settled (no)"),
    "owner": Field(TEXT, "who is asked about this job"),
    "scopes": Field(NAMES, "the scopes that it has, and no others; each is worked in turn"),
}

# How it is worked, as the flags of exec of the same names say it.
ORDER = {
    "no_retry": Field(SWITCH, "leave retries to whatever calls duly"),
    "one": Field(SWITCH, "stop after one run"),
    "output": Field(TEXT, "the command writes to `$DULY_OUTPUT`; moved to this file when it ends with 0"),
    "replace": Field(SWITCH, "with output: overwrite what is there"),
    "chronic": Field(SWITCH, "show the command's output only if it fails"),
    "keep_output": Field(SIZE, "keep the last of the command's output in the ledger, redacted ([secrets](secrets.md))"),
    "outcome_file": Field(TEXT, "write how it ended to this file, as one JSON object"),
    "exit_duplicate": Field(_number(0, 255), "exit with this code instead of 0 when nothing had to be done"),
    "settle": Field(DURATION, "how long to try to write down how the command ended (10m)"),
}

JOB = {
    "command": Field(WORDS, "what is run, with placeholders as `{date}`; no shell is involved"),
    "probe": Field(PROBE, "what is asked whether a run of unknown outcome happened; it prints `happened` or `did not`"),
    "on_late": Field(ON_LATE, "who is told when it is late: a webhook, or a command that reads the message from stdin"),
    **SCHEDULE,
    **POLICY,
    **ORDER,
}

DAEMON = {
    "concurrency": Field(_number(1, 10_000), "how many runs are worked at once (8)"),
    "per_job": Field(_number(1, 10_000), "how many of them may be of one job (2)"),
    "poll": Field(DURATION, "how often the ledger is asked what is owed (5s)"),
}

# What every destination takes; the rest is its kind's, which reads it (`duly.outbox.routes`, `duly.outbox.destinations`).
RATE = Kind('messages in a time, as `"10/s"`', {"type": "string", "pattern": "^[1-9][0-9]*/[smhd]$"}, _text)
DESTINATION: dict[str, Field] = {
    "kind": Field(
        TEXT, "what it is: `http`, `smtp`, `inbox`, `command`, …; each kind has keys of its own beside these"
    ),
    "concurrency": Field(_number(1, 256), "sendings at once, by all who deliver together (4)"),
    "rate": Field(RATE, "how many messages it is sent at most, by all together; as many as go, if not given"),
    "timeout": Field(DURATION, "how long one sending may take (`30s`)"),
    "tries": Field(
        _number(1, 10_000), "sendings that surely failed, after which a message is dead and waits for a person (10)"
    ),
    "retry_delay": Field(DURATION, "the wait before the second try (`5s`); doubles, jittered"),
    "retry_ceiling": Field(DURATION, "the longest wait between tries (`1h`)"),
    "probe_after": Field(DURATION, "after a doubt, how long until the receiver is asked what happened (`1m`)"),
}

ALERTS = {
    "to": Field(TEXTS, "the destinations that are told, each a `[destinations.NAME]`"),
    "kinds": Field(ALERT_KINDS, f"what they are told of: {', '.join(f'`{kind}`' for kind in KINDS)} (all)"),
    "every": Field(DURATION, "how often somebody looks, all pokes and daemons together (1m)"),
}

REDACT = {
    "variables": Field(
        VARIABLES, "variables of the environment whose values are secrets, beside those whose names say so"
    ),
    "patterns": Field(REGEXES, "what else is a secret, as Python's `re` writes it; all that matches is hidden"),
}

TABLES = {
    "ledger": LEDGER,
    "jobs": JOB,
    "daemon": DAEMON,
    "destinations": DESTINATION,
    "alerts": ALERTS,
    "redact": REDACT,
}
