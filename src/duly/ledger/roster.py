"""Roster: which scopes a job has, from when, and until when.

A scope is on the roster from the moment that it is added, whether or not it ever runs: what comes due of it is owed, and is
missing when nobody works it. One that is retired keeps its record, and what was owed of it. A first poke adds its scope by
itself where the roster is open; code that declares `scopes` closes it, and is believed about who is on it, but takes nobody
off: that is said by a person.
"""

from __future__ import annotations

from datetime import date, datetime

from duly.errors import Misuse, NotAllowed, Refused, TimeInvalid, UnknownJob, UnknownScope, WindowInvalid
from duly.ledger.address import DAYS_BACK, date_text
from duly.ledger.ask import Statement, count, every, now
from duly.ledger.ends import Ended, end_line, hold_job, resume_line
from duly.ledger.events import tell
from duly.ledger.named import TO_FILL_IN, quoted
from duly.ledger.records import LINE_COLUMNS, Known, Line
from duly.ledger.register import ADD_LINE, Declaration, add_series, declare, declare_job, find, start_line
from duly.ledger.resolve import Word
from duly.ledger.spells import lookup, spells_of_job
from duly.records import record, replace
from duly.schedule.keys import check_scope
from duly.times import Zone, from_datetime, instant_text, parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LINES_OF = Statement(
    "lines_of",
    f"""
select {LINE_COLUMNS}
  from duly_line l
  join duly_job j on j.id = l.job
 where j.name = :name
 order by l.scope
""",
)

SET_UNDECLARED = Statement(
    "set_undeclared",
    "update duly_line set undeclared_at = case when :declared = 1 then null else {now} end where id = :line",
)

ADDED, RESUMED, RETIRED, KEPT = "added", "resumed", "retired", "unchanged"


@record
class Scope:
    """A scope with its beginning and its end: nothing due before `since`, or at or after `until`, is owed of it.

    Each is a window of the schedule, which stands for its due time (`2026-11-01`, `2026-W45`: the first that is owed, the
    first that is not), or an instant as `2026-11-01T00:00:00Z`; a date, or an aware datetime. A `since` counts when the
    scope is first seen; without one it begins with its newest window that is due.
    """

    name: str
    since: str | date | None = None
    until: str | date | None = None


@record
class Change:
    """What became of one scope: `added`, `resumed`, `retired` or `unchanged`. `ended`: what a retirement left."""

    what: str
    known: Known
    ended: Ended | None = None

    @property
    def line(self) -> Line:
        assert self.known.line is not None
        return self.known.line


async def lines_of(name: str) -> list[Line]:
    """The roster of a job, by scope. Raises `UnknownJob`."""
    lines = await every(LINES_OF, Line, name=name)
    if not lines:
        raise UnknownJob(f"the ledger knows no job {name!r}; its first `duly exec` registers it")
    return lines


async def add_scopes(
    name: str, scopes: Sequence[str], word: Word, *, since: str | None = None, until: str | None = None
) -> list[Change]:
    """Put scopes on a job's roster, from their newest window that is due or from `since` on. Retired ones are resumed.

    Raises `UnknownJob`, `NameInvalid`, `NotAllowed` for a job that is retired and for an end of a scope that is on the
    roster without one, and `WindowInvalid` for bounds that cannot be read.
    """
    known = await _held(name)
    begins = await bound_of(known, "from", since)
    ends = await bound_of(known, "until", until)
    check_bounds(known, begins, ends)
    return [await _add(known, scope, begins, ends, word) for scope in sorted(set(scopes))]


async def retire_scopes(
    name: str, scopes: Sequence[str], word: Word, *, at: str | None = None, skip_owed: bool = False
) -> list[Change]:
    """Let nothing be owed of scopes that comes due from now on, or from `at` on. Their record stays.

    Raises as `add_scopes`, and `UnknownScope`.
    """
    known = await _held(name)
    given = await bound_of(known, "at", at)
    ends = await now() if given is None else given
    return [await _retire(await _on_roster(known, scope), ends, word, skip_owed) for scope in sorted(set(scopes))]


async def _held(name: str) -> Known:
    """What is known of a job, whose row is held from here on, with any line of it."""
    job = await hold_job(name)
    lines = await lines_of(name)
    assert job is not None
    known = await _found(name, lines[0].scope)
    if known.job.retired_at is not None:
        raise NotAllowed(
            f"{name} was retired at {instant_text(known.job.retired_at)}, with all its scopes",
            next_step=f"duly jobs retire {name} --undo --reason '{TO_FILL_IN}'",
        )
    return known


async def _found(name: str, scope: str) -> Known:
    known = await find(name, scope)
    assert known is not None  # its row is held
    return known


async def _on_roster(known: Known, scope: str) -> Known:
    found = await _found(known.job.name, scope)
    if found.line is None:
        raise UnknownScope(
            f"{known.job.name} has no scope {scope!r}; nothing was changed",
            next_step=f"duly jobs scopes list {known.job.name}",
        )
    return found


async def bound_of(known: Known, field: str, text: str | None) -> int | None:
    """The instant that a bound means: when its window is due, or the one that is written. Raises `WindowInvalid`."""
    if text is None:
        return None
    if known.version is None:
        return _instant(field, text)
    if text in DAYS_BACK:
        text = date_text(Zone(known.version.zone), await now(), DAYS_BACK[text])
    try:
        return lookup(await spells_of_job(known.job, known.version), text).due
    except Misuse as e:
        try:
            return parse_instant(text)
        except TimeInvalid:
            raise WindowInvalid(f"{field}: {e}", next_step=f"duly next {known.job.name}") from e


def _instant(field: str, text: str) -> int:
    try:
        return parse_instant(text)
    except TimeInvalid as e:
        raise WindowInvalid(f"{field}: the job has no schedule, and so no windows; give an instant ({e})") from e


def check_bounds(known: Known, begins: int | None, ends: int | None) -> None:
    """Raise `Misuse` for bounds that nothing can lie between, and for a beginning under an earlier version. Pure."""
    if begins is not None and ends is not None and begins >= ends:
        raise Misuse(f"until: it ends at {instant_text(ends)}, before it begins at {instant_text(begins)}")
    if begins is None:
        return
    if known.version is None:
        raise Misuse("from: the job has no schedule, so that nothing comes due; leave it out")
    if begins < known.version.effective_from:
        raise Misuse(
            f"from: version {known.version.number} of the schedule answers for what ends after "
            f"{instant_text(known.version.effective_from)}; a scope cannot begin before that"
        )


async def _add(known: Known, scope: str, begins: int | None, ends: int | None, word: Word) -> Change:
    job = known.job
    found = await _found(job.name, scope)
    if found.line is not None and found.line.ends is None:
        if ends is not None:
            raise NotAllowed(
                f"{scope or 'the line without a scope'} is on the roster of {job.name} already, and has no end; "
                "nothing was changed",
                next_step=f"duly jobs scopes retire {job.name} {quoted(scope)} --at {instant_text(ends)} "
                f"--reason {quoted(word.reason)}",
            )
        return Change(KEPT, found)
    if found.line is not None:
        before = _standing(found.line)
        found = await resume_line(found, begins, word)
        what, kind = RESUMED, "scope_resumed"
    else:
        check_scope(scope)
        await count(ADD_LINE, job=job.id, scope=scope)
        found = await _started(job.name, scope, begins)
        what, kind, before = ADDED, "scope_added", "absent"
    if ends is not None:
        found = (await end_line(found, ends, word, skip_owed=False)).known
    if found.line is not None and found.line.undeclared_at is not None:
        await count(SET_UNDECLARED, line=found.line.id, declared=1)
    found = await _found(job.name, scope)
    changed = (before, _standing(found.line))
    await tell(kind, job=job.id, by=word.by, reason=word.reason, detail=_detail(scope, begins, ends), changed=changed)
    return Change(what, found)


def _standing(line: Line | None) -> str:
    """How a scope stands on the roster, as events say it."""
    assert line is not None
    since = "no window yet" if line.starts is None else f"owed from {instant_text(line.starts)}"
    return since if line.ends is None else f"{since} until {instant_text(line.ends)}"


async def _started(name: str, scope: str, begins: int | None) -> Known:
    """The new line with its series and its beginning."""
    found = await _found(name, scope)
    if found.version is None:
        return found
    if begins is None:
        declared = await declare(Declaration(name, scope))
        if isinstance(declared, (Refused, Misuse)):
            raise declared
        return declared
    await add_series(found)
    await start_line(found, begins)
    return await _found(name, scope)


def _detail(scope: str, begins: int | None, ends: int | None) -> str:
    since = "" if begins is None else f" from {instant_text(begins)}"
    until = "" if ends is None else f" until {instant_text(ends)}"
    return f"{scope}{since}{until}"


async def _retire(known: Known, ends: int, word: Word, skip_owed: bool) -> Change:
    line = known.line
    assert line is not None
    instant = await now()
    if line.ends is not None and (line.ends <= instant or line.ends == ends):
        return Change(KEPT, known)
    ended = await end_line(known, ends, word, skip_owed=skip_owed)
    detail = f"{line.scope} at {instant_text(ends)}"
    changed = (_standing(line), _standing(ended.known.line))
    await tell("scope_retired", job=known.job.id, by=word.by, reason=word.reason, detail=detail, changed=changed)
    return Change(RETIRED, ended.known, ended)


# -- scopes that code declares ------------------------------------------------------------------------------------------


def scope_of(given: str | Scope) -> Scope:
    """A scope as code gives it, its bounds as text. Raises `NameInvalid`, and `Misuse` for bounds of another type."""
    scope = given if isinstance(given, Scope) else Scope(given)
    check_scope(scope.name)
    return replace(scope, since=_text("since", scope.since), until=_text("until", scope.until))


def _text(field: str, value: str | date | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Misuse(f"{field}: {value!r} has no time zone; an instant has one")
        return instant_text(from_datetime(value))
    if isinstance(value, date):
        return value.isoformat()
    raise Misuse(f"{field}: {value!r} is neither a text, nor a date, nor a datetime")


async def differs(declared: Declaration, scopes: Sequence[Scope]) -> bool:
    """Whether the roster in the ledger is not yet what the code declares. Looks only."""
    known = await find(declared.job, scopes[0].name)
    return known is None or bool(await _steps(known, scopes))


async def enrol(declared: Declaration, scopes: Sequence[Scope]) -> list[str] | Refused | Misuse:
    """Put the scopes that code declares on the roster, each from its beginning; what was done, or why it cannot be.

    One that is on the roster keeps its beginning. An end is kept too once it has passed: who was retired is not brought
    back by code. One that the code does not name stays, noted as no longer declared.
    """
    await hold_job(declared.job)
    known = await declare_job(replace(declared, scope=scopes[0].name))
    if isinstance(known, (Refused, Misuse)):
        return known
    word = Word(declared.by, "declared in code")
    steps = await _steps(known, scopes)
    for step in steps:
        await _take_step(known, step, word)
    return [step.scope.name for step in steps]


@record
class _Step:
    """What is to be written of one scope so that the roster is as declared. `line`: as it is; None: there is none yet."""

    scope: Scope
    line: Line | None
    declared: bool


async def _steps(known: Known, scopes: Sequence[Scope]) -> list[_Step]:
    lines = {line.scope: line for line in await every(LINES_OF, Line, name=known.job.name)}
    named = {scope.name: scope for scope in scopes}
    steps = []
    for scope in named.values():
        line = lines.get(scope.name)
        if line is None or line.undeclared_at is not None or await _end_differs(known, line, scope):
            steps.append(_Step(scope, line, declared=True))
    gone = (line for line in lines.values() if line.scope not in named and line.undeclared_at is None)
    steps += [_Step(Scope(line.scope), line, declared=False) for line in gone if line.ends is None]
    return sorted(steps, key=lambda step: step.scope.name)


async def _end_differs(known: Known, line: Line, scope: Scope) -> bool:
    """Whether the code gives a line another end than it has; one that has passed is not moved."""
    if scope.until is None or (line.ends is not None and line.ends <= await now()):
        return False
    return await bound_of(known, "until", str(scope.until)) != line.ends


async def _take_step(known: Known, step: _Step, word: Word) -> None:
    job, name = known.job, step.scope.name
    if not step.declared:
        assert step.line is not None
        await count(SET_UNDECLARED, line=step.line.id, declared=0)
        changed = ("declared", "not declared")
        await tell("scope_undeclared", job=job.id, by=word.by, reason=word.reason, detail=name, changed=changed)
        return
    found = await _found(job.name, name)
    if found.line is None:
        begins = await bound_of(known, "since", None if step.scope.since is None else str(step.scope.since))
        ends = await bound_of(known, "until", None if step.scope.until is None else str(step.scope.until))
        check_bounds(known, begins, ends)
        await _add(known, name, begins, ends, word)
        return
    if found.line.undeclared_at is not None:
        await count(SET_UNDECLARED, line=found.line.id, declared=1)
        changed = ("not declared", "declared")
        await tell("scope_declared", job=job.id, by=word.by, reason=word.reason, detail=name, changed=changed)
    if await _end_differs(known, found.line, step.scope):
        ends = await bound_of(known, "until", str(step.scope.until))
        assert ends is not None
        await _retire(found, ends, word, skip_owed=False)
