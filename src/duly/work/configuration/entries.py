"""Entries: what the tables of a configuration mean: a ledger's address, a job's declaration and order, a daemon's bounds."""

from __future__ import annotations

import os

from duly.errors import Misuse
from duly.ledger import contracts
from duly.ledger.register import Declaration, check_policies
from duly.records import record
from duly.schedule.keys import check_job_name
from duly.times import SECOND, parse_duration
from duly.work.configuration.fields import ALERTS, DAEMON, JOB, LEDGER, ORDER, REDACT, SCHEDULE, did_you_mean
from duly.work.identity import actor
from duly.work.poke import Order
from duly.work.schedule_flags import as_key, schedule_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from duly.ledger.ask import Value
    from duly.outbox.routes import Route
    from duly.schedule.spec import Schedule
    from duly.work.configuration.document import Table
    from duly.work.probe import CommandProbe

FORMS = ("url", "url_env", "url_file")


# -- the ledger ---------------------------------------------------------------------------------------------------------


class LedgerEntry:
    """What `[ledger]` says. The URL may hold a password: it is fetched when it is used, and never shown."""

    def __init__(self, table: Table, form: str, value: str, busy_micros: int | None) -> None:
        self._table = table
        self._form = form
        self._value = value
        self.busy_micros = busy_micros

    def __repr__(self) -> str:
        return f"<LedgerEntry of {self.source}>"

    @property
    def names_one(self) -> bool:
        """Whether it says where the ledger is; else it only says how to use it."""
        return bool(self._form)

    @property
    def source(self) -> str:
        """Where the URL comes from, for an error to say."""
        which = f" (${self._value})" if self._form == "url_env" else ""
        return f"{self._form}{which} in [{self._table.label}] of {self._table.file}"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The variables of the environment that no command is to see."""
        return (self._value,) if self._form == "url_env" else ()

    @property
    def shows_password(self) -> bool:
        """Whether a password stands in the file itself, where whoever may read the file reads it."""
        user, at, _ = self._value.partition("://")[2].rpartition("@")
        return self._form == "url" and bool(at) and ":" in user

    def url(self, environ: Mapping[str, str]) -> str:
        """The ledger's URL; a relative path of SQLite starts at the folder of the file. Raises `ConfigurationInvalid`."""
        match self._form:
            case "url_env":
                url = environ.get(self._value, "").strip()
                if not url:
                    error = self._table.wrong(f"url_env: the variable {self._value} is not set")
                    error.next_step = f"export {self._value}=sqlite:////var/lib/duly/ledger.db"
                    raise error
            case "url_file":
                url = self._from_file(self._table.path(self._value))
            case _:
                url = self._value
        return self._rooted(url)

    def _from_file(self, path: str) -> str:
        try:
            with open(path, encoding="utf-8") as f:
                lines = f.read().split("\n")
        except OSError as e:
            raise self._table.wrong(f"url_file: {path} cannot be read: {e.strerror}") from e
        except UnicodeDecodeError:  # its text would show what is in the file
            raise self._table.wrong(f"url_file: {path} is not text in UTF-8") from None
        url, *rest = (line.strip() for line in lines if line.strip()) if any(map(str.strip, lines)) else ("",)
        if not url or rest:
            raise self._table.wrong(f"url_file: {path} holds no URL on one line")
        return url

    def _rooted(self, url: str) -> str:
        scheme, slashes, rest = url.partition("://")
        if ":memory:" in url or (slashes and scheme != "sqlite"):
            return url
        if not slashes:
            return self._table.path(url)
        return f"sqlite:///{self._table.path(rest[1:])}" if rest[:1] == "/" and rest[1:] else url


def ledger_entry(table: Table) -> LedgerEntry:
    """What `[ledger]` means. Raises `ConfigurationInvalid`; no error shows a URL."""
    values = table.read(LEDGER)
    forms = [form for form in FORMS if form in values]
    if len(forms) > 1:
        raise table.wrong(f"{forms[0]} and {forms[1]} both say where the ledger is; leave one out")
    form = forms[0] if forms else ""
    return LedgerEntry(table, form, values.get(form, ""), values.get("busy_timeout"))


# -- jobs ---------------------------------------------------------------------------------------------------------------


@record
class JobEntry:
    """What a file says of a job.

    `declaration` is what it declares to the ledger, for the line without a scope; `command` is what is run, None where
    somebody else says that. `flags` are those of `duly exec` that say how it is worked, by name, as they would be typed.
    `asked` is what its probe is made of, where it has one.
    """

    name: str
    file: str
    declaration: Declaration
    command: tuple[str, ...] | None
    flags: dict[str, list[str]]
    asked: dict[str, Any] | None = None

    @property
    def keeps_output(self) -> bool:
        """Whether the last of its command's output is kept."""
        return "keep-output" in self.flags

    def probe(self, environment: Mapping[str, str]) -> CommandProbe | None:
        """What is asked about its runs whose outcome is unknown; None where nothing is declared."""
        if self.asked is None:
            return None
        from duly.work.probe import AFTER, TIMEOUT, CommandProbe

        parts = {"after": AFTER, "timeout": TIMEOUT, "reads_own_writes": False, **self.asked}
        argv = parts.pop("command")
        return CommandProbe(argv, environment, **parts)

    def order(self, environment: Mapping[str, str], trigger: str) -> Order:
        """What to run, and how, as `duly exec` would. Raises `Misuse` where the file has no command."""
        if self.command is None:
            raise Misuse(f'{self.name}: {self.file} does not say what is run; write command = ["./command"]')
        output = None
        if "output" in self.flags:
            from duly.work.output import Output

            output = Output(self.flags["output"][0], may_replace="replace" in self.flags)
        settle = parse_duration(self.flags["settle"][0]) / SECOND if "settle" in self.flags else 600.0
        keep_output = 0
        if "keep-output" in self.flags:
            from duly.work.kept import parse_size

            keep_output = parse_size(self.flags["keep-output"][0])
        return Order(
            argv=list(self.command),
            environment=environment,
            trigger=trigger,
            settle_seconds=settle,
            retry_in_place="no-retry" not in self.flags,
            only_one="one" in self.flags,
            chronic="chronic" in self.flags,
            output=output,
            keep_output=keep_output,
        )


def job_entry(name: str, table: Table) -> JobEntry:
    """What a job's table means. Raises `ConfigurationInvalid`, naming the key."""
    values = table.read(JOB)
    try:
        check_job_name(name)
        schedule = _schedule(values, table)
        policies = _policies(values)
        if schedule is not None and "catch_up" not in policies:
            raise Misuse(
                'catch_up: beside a schedule, say what becomes of windows that were missed; write catch_up = "latest" '
                '(reconcile to the newest), "each" or "fresh"'
            )
        flags = _flags(values, table)
    except Misuse as e:
        raise table.wrong(e) from e
    command = values.get("command")
    declared = Declaration(name, "", schedule, policies, actor(), scopes=values.get("scopes"))
    asked = values.get("probe")
    if asked is not None:
        asked["command"] = _rooted(asked["command"], table)
    rooted = None if command is None else _rooted(command, table)
    return JobEntry(name, table.file, declared, rooted, flags, asked)


def _schedule(values: Mapping[str, Any], table: Table) -> Schedule | None:
    given: dict[str, list[str]] = {}
    for key in SCHEDULE:
        if key in values:
            value = values[key]
            texts = value if isinstance(value, list) else [value]
            given[key.replace("_", "-")] = [table.path(text) for text in texts] if key == "calendar" else texts
    return schedule_given(given, write=as_key)


def _policies(values: Mapping[str, Any]) -> dict[str, Value]:
    """The policies that the table names, as columns of the ledger."""
    same = (
        "catch_up",
        "clean_exits",
        "retries",
        "retry_delay",
        "retry_ceiling",
        "timeout",
        "lease",
        "grace",
        "retain",
        "owner",
    )
    policies: dict[str, Value] = {key: values[key] for key in same if key in values}
    for key in ("overlap", "ordered"):
        if key in values:
            policies[key] = int(values[key])
    effect = values.get("effect")
    if (effect == contracts.IDEMPOTENT) != ("remembers" in values):
        raise Misuse(
            "remembers: an idempotent effect, and no other, says how long its destination remembers; "
            'write remembers = "24h", or "forever", beside effect = "idempotent"'
        )
    if effect is not None:
        policies["contract"] = effect
        policies["remembers"] = values.get("remembers")
    if "scopes" in values:
        policies["roster"] = "closed"
    check_policies(policies)
    return policies


def _flags(values: Mapping[str, Any], table: Table) -> dict[str, list[str]]:
    """How it is worked, as flags of exec."""
    if values.get("replace") and "output" not in values:
        raise Misuse("replace: it goes with output")
    flags: dict[str, list[str]] = {}
    for key in ORDER:
        value = values.get(key)
        if value is None or value is False:
            continue
        written = table.values[key]
        text = table.path(str(written)) if key in ("output", "outcome_file") else str(written)
        flags[key.replace("_", "-")] = [] if value is True else [text]
    return flags


def _rooted(command: tuple[str, ...], table: Table) -> tuple[str, ...]:
    """The command; a program that is named by a relative path lies in the folder of the file, as Cargo has it."""
    program, *rest = command
    if "/" in program and not os.path.isabs(program):
        program = table.path(program.removeprefix("./"))
    return (program, *rest)


# -- the daemon ---------------------------------------------------------------------------------------------------------


@record
class Daemon:
    """What `[daemon]` says: how many runs at once, how many of one job, and how often the ledger is asked (microseconds)."""

    concurrency: int = 8
    per_job: int = 2
    poll: int = 5 * SECOND


def daemon_entry(table: Table) -> Daemon:
    """What `[daemon]` means. Raises `ConfigurationInvalid`."""
    return Daemon(**table.read(DAEMON))


# -- secrets ------------------------------------------------------------------------------------------------------------


@record
class Redact:
    """What `[redact]` says: variables whose values are secrets, and patterns of what else is one."""

    variables: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


def redact_entry(table: Table) -> Redact:
    """What `[redact]` means. Raises `ConfigurationInvalid`; no error shows a pattern."""
    return Redact(**table.read(REDACT))


def secrets_named_in(table: Table, environ: Mapping[str, str]) -> list[str]:
    """The secrets that a table names by variable (`…_env`) or file (`…_file`), with the passwords of URLs in it.

    What cannot be read is left out: whoever needs it says so.
    """
    from duly.redaction import names_a_secret, passwords_in

    found: list[str] = []
    for key, value in table.values.items():
        for text in value.values() if isinstance(value, dict) else [value]:
            if not isinstance(text, str):
                continue
            if key.endswith("_env"):
                secret = environ.get(text, "")
            elif key.endswith("_file") and (
                key in ("url_file", "headers_file") or names_a_secret(key[: -len("_file")])
            ):
                secret = _read(table.path(text))
            else:
                found += passwords_in(text)
                continue
            # Of a URL the password is the secret; its host may be shown.
            found += passwords_in(secret) if key in ("url_env", "url_file") else [secret]
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(1 << 16).strip()
    except (OSError, ValueError):
        return ""


# -- destinations -------------------------------------------------------------------------------------------------------


def destination_entry(name: str, table: Table, hidden: Collection[str]) -> Route:
    """What a destination's table means. What its kind takes, the kind reads; its commands see no variable that is `hidden`.

    Raises `ConfigurationInvalid`.
    """
    from duly.outbox.routes import route_of

    try:
        check_job_name(name)
        settings = {key: _in_folder(key, value, table) for key, value in table.values.items()}
        return route_of(name, settings, hidden=hidden)
    except Misuse as e:
        raise table.wrong(e) from e


def on_late_entry(name: str, table: Table, hidden: Collection[str]) -> Route:
    """The destination that a job's `on_late` implies. A doubtful sending is repeated under its key: better twice than never.

    Raises `ConfigurationInvalid`.
    """
    from duly.outbox.routes import route_of

    try:
        said = JOB["on_late"].kind.read("on_late", table.values["on_late"])
        settings: dict[str, object] = {"kind": "http", "url": said}
        if not isinstance(said, str):
            settings = {"kind": "command", "argv": list(_rooted(said, table))}
        return route_of(name, {**settings, "remembers": "forever"}, hidden=hidden)
    except Misuse as e:
        raise table.wrong(e) from e


def _in_folder(key: str, value: object, table: Table) -> object:
    """A value of a destination's table; files, and programs that are named by a path, lie in the folder of the file."""
    if key.endswith("_file") and isinstance(value, str) and value:
        return table.path(value)
    if key.endswith("_file") and isinstance(value, dict):  # headers, each in a file
        return {name: _in_folder(key, each, table) for name, each in value.items()}
    is_command = key in ("argv", "probe") and isinstance(value, list) and value
    if is_command and all(isinstance(word, str) for word in value):  # type: ignore[attr-defined]  # it is a list
        return list(_rooted(tuple(value), table))  # type: ignore[arg-type]
    return value


# -- alerts -------------------------------------------------------------------------------------------------------------


def alerts_entry(table: Table, known: Collection[str]) -> dict[str, Any]:
    """What `[alerts]` says, by key; its destinations are among those that are `known`. Raises `ConfigurationInvalid`."""
    values = table.read(ALERTS)
    for name in values.get("to", ()):
        if name not in known:
            raise table.wrong(
                f"to: no destination {name!r} is declared as [destinations.{name}]{did_you_mean(name, tuple(known))}"
            )
    return values
