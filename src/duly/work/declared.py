"""Declared: what a program says that a job is, or which run it wants, as the ledger's declarations and operations."""

from __future__ import annotations

from duly.errors import Misuse, TimeInvalid
from duly.ledger import contracts
from duly.ledger.named import peek_adhoc, peek_window, take_adhoc, take_key, take_window
from duly.ledger.register import Declaration, check_policies
from duly.ledger.roster import scope_of
from duly.records import record
from duly.schedule.catch_up import parse_catch_up
from duly.schedule.keys import check_adhoc, check_job_name, check_label, check_scope, parse_key
from duly.times import parse_duration
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duly.errors import Refused
    from duly.ledger.ask import Operation, Value
    from duly.ledger.named import Named
    from duly.ledger.records import Claimer
    from duly.ledger.roster import Scope
    from duly.schedule.catch_up import CatchUp
    from duly.schedule.spec import Schedule
    from duly.work.probe import Doubt, Probe

LARGEST_GROUP = 10_000
FOREVER = "forever"
TRANSACTIONAL_RETRIES = 3  # of a job whose failures prove that nothing happened; others retry only where they say so


def declaration_of(
    name: str,
    schedule: Schedule,
    *,
    catch_up: CatchUp | str,
    effect: str,
    remembers: str | None,
    retries: int | None,
    retry_delay: str | int | None,
    retry_ceiling: str | int | None,
    grace: str | int | None,
    timeout: str | int | None,
    lease: str | int | None,
    retain: str | int | None,
    overlap: bool | None,
    ordered: bool | None,
    inline: bool,
    group: int,
    owner: str | None,
    scopes: Sequence[str | Scope] | None,
    version: str | None,
) -> tuple[Declaration, tuple[Scope, ...] | None]:
    """The declaration of a job, and the roster that it closes, if it does. Raises `Misuse`, naming the argument."""
    check_job_name(name)
    if isinstance(scopes, str):
        raise Misuse(f"scopes: {scopes!r} is one text; give a list of names")
    if retries is not None and not isinstance(retries, int):
        raise Misuse(f"retries: {retries!r} is not a whole number")
    roster = None if scopes is None else tuple(scope_of(scope) for scope in scopes)
    stated: dict[str, Value] = {
        "retries": retries,
        "retry_delay": micros("retry_delay", retry_delay),
        "retry_ceiling": micros("retry_ceiling", retry_ceiling),
        "grace": micros("grace", grace),
        "timeout": micros("timeout", timeout),
        "lease": micros("lease", lease),
        "overlap": None if overlap is None else int(overlap),
        "ordered": None if ordered is None else int(ordered),
        "owner": owner,
        "roster": None if scopes is None else "closed",
    }
    policies: dict[str, Value] = {
        "catch_up": str(parse_catch_up(catch_up)),
        "contract": contract_named(effect, remembers),
        "remembers": None if remembers == FOREVER else micros("remembers", remembers),
        **{name: value for name, value in stated.items() if value is not None},  # left out: as it is stored
        **({} if retain is None else {"retain": None if retain == FOREVER else micros("retain", retain)}),
    }
    check_policies(policies)
    if inline and effect != contracts.TRANSACTIONAL:
        raise Misuse(f"inline: the effect of an inline job is in its transaction, so it is transactional, not {effect}")
    if type(group) is not int or not 1 <= group <= LARGEST_GROUP:
        raise Misuse(f"group: {group!r} is not how many runs at most may share a commit; write 1 to {LARGEST_GROUP}")
    if group > 1 and not inline:
        raise Misuse("group: runs share a commit where each of them is in its transaction; say inline=True as well")
    if group > 1 and ordered:
        raise Misuse("group: the runs of an ordered job are worked one by one; leave one of the two out")
    defaults: dict[str, Value] = {"retries": TRANSACTIONAL_RETRIES} if effect == contracts.TRANSACTIONAL else {}
    names = None if roster is None else tuple(scope.name for scope in roster)
    label = "" if version is None else check_label(version)
    return Declaration(name, "", schedule, policies, actor(), defaults, names, label), roster


def probe_declared(
    name: str, effect: str, probe: Probe | Callable[[Doubt], object] | None, *, may_be_async: bool
) -> Probe | None:
    """The probe of a job, if it is declared with one. Raises `Misuse`, naming the argument."""
    if probe is None:
        return None
    from duly.work.probe import Probe

    if effect == contracts.TRANSACTIONAL:
        raise Misuse(f"probe: {name} is transactional, so what becomes of its runs is always known; leave it out")
    declared = probe if isinstance(probe, Probe) else Probe(probe)
    if declared.is_async and not may_be_async:
        raise Misuse("probe: an async function would be awaited by nobody; jobs in duly.aio may have one")
    return declared


@record
class Wanted:
    """A run that a caller named: the operation that takes it, the one that looks before, but for a whole key, and its window
    where that is what was named.
    """

    declared: Declaration
    window: str | None
    take: Callable[[Claimer], Operation[Named | Refused | Misuse]]
    peek: Callable[[Claimer], Operation[Named | Refused | Misuse | None]] | None = None


def wanted(job: str, window: str | None, scope: str, adhoc: str | None) -> Wanted:
    """What the caller named, of any job. Raises `Misuse` for what names nothing, or two things."""
    if ":" in job:
        if window is not None or adhoc is not None or scope:
            raise Misuse(f"{job!r} is a whole key; leave window, scope and adhoc out")
        key = parse_key(job)
        declared = Declaration(key.job, key.scope, by=actor())
        return Wanted(
            declared,
            None,
            lambda claimer: take_key(key, declared, claimer),
        )
    check_job_name(job)
    if scope:
        check_scope(scope)
    return wanted_of(Declaration(job, scope, by=actor()), window, adhoc)


def wanted_of(declared: Declaration, window: str | None, adhoc: str | None) -> Wanted:
    """What the caller named, of a line. Raises `Misuse` for what names nothing, or two things."""
    if adhoc is not None and window is None:
        check_adhoc(adhoc)
        return Wanted(
            declared,
            None,
            lambda claimer: take_adhoc(declared, adhoc, claimer),
            lambda claimer: peek_adhoc(declared, adhoc, claimer),
        )
    if window is not None and adhoc is None:
        return Wanted(
            declared,
            window,
            lambda claimer: take_window(declared, window, claimer),
            lambda claimer: peek_window(declared, window, claimer),
        )
    raise Misuse(f"name one run of {declared.job}: a window as '2026-10-05', or adhoc='an-id'")


def contract_named(effect: str, remembers: str | None) -> str:
    """The contract that `effect` names. Raises `Misuse` where `idempotent` does not say for how long."""
    if effect not in contracts.CONTRACTS:
        raise Misuse(f"effect: {effect!r} is none of {', '.join(contracts.CONTRACTS)}")
    if (effect == contracts.IDEMPOTENT) != (remembers is not None):
        raise Misuse(
            "remembers: an idempotent effect, and no other, says how long its destination remembers: 24h, forever"
        )
    return effect


def micros(name: str, value: str | int | None) -> int | None:
    """A duration as microseconds, from text as `15m` or a number of them. Raises `Misuse`, naming the argument."""
    if value is None or isinstance(value, int):
        return value
    if not isinstance(value, str):
        raise Misuse(f"{name}: {value!r} is neither a text as 15m nor whole microseconds")
    try:
        return parse_duration(value)
    except TimeInvalid as e:
        raise Misuse(f"{name}: {e}") from e
