"""The races that the ledger is built for. To add one, add it to _RACES: a name, what is given, what each actor does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duly.errors import ClaimLost, LedgerUnavailable
from duly.ledger.address import by_window
from duly.ledger.backfill import FAILED, Asked, cancel_backfill, pause_backfill, start
from duly.ledger.backfill_claim import claim_backfill
from duly.ledger.cancel import cancel
from duly.ledger.complete import NOTHING, complete_or_raise, doubt_or_raise, fail_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.forget import forgettable, raise_horizon
from duly.ledger.group import Group, claim_group, complete_group, members
from duly.ledger.open import Taken, claim_next
from duly.ledger.records import Claim, Claimer, Known, RunId
from duly.ledger.register import Declaration, declare, find
from duly.ledger.remembered import Recalled, claim_remembered, recall, remember
from duly.ledger.rename import rename
from duly.ledger.resolve import reopen, resolve, retry, skip, unskip
from duly.ledger.retire import retire_job
from duly.ledger.roster import Scope, add_scopes, enrol, retire_scopes
from duly.ledger.take import beat, renew
from duly.ledger.take import take as take_run
from duly.ledger.versions import apply
from duly.records import replace
from duly.schedule.spec import Schedule, daily, weekly
from duly.store.borrowed import run_in
from duly.testing.histories import READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, Hand, Race, Script, Stage
from duly.times import HOUR, MINUTE, SECOND, parse_instant
from tests.books import WORD, Book, PostgresBook

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

DAY_BEFORE, DAY, NEXT_DAY = "2026-10-03", "2026-10-04", "2026-10-05"
KEY = f"export:{DAY}[UTC]"
BERLIN, NEW_YORK = daily("Europe/Berlin"), daily("America/New_York")
CHARGE = f"charge:{DAY}[UTC]"
FAR_AHEAD = 1 << 60

# -- what is given ------------------------------------------------------------------------------------------------------

Given = Callable[[Book], Any]
_ALL: dict[str, Any] = {"as_of": None, "tried": frozenset()}


def absent(book: Book) -> None:
    """A job, and no run of it yet."""
    book.job()


def absent_with_overlap(book: Book) -> None:
    book.job(overlap=1)


def take(book: Book, number: int = 1, *, payload: str | None = None) -> Claim:
    """An attempt that is given; its id is the same whenever the race is prepared."""
    claim = book.ask(DAY, payload=payload, attempt=f"g{number:015}".encode())
    assert isinstance(claim, Claim), claim
    return claim


def opened(book: Book) -> None:
    """A run that was taken and given back."""
    book.job()
    book.release(take(book))


def failed(book: Book) -> Claim:
    """A run that failed and may be tried again."""
    book.job()
    claim = take(book)
    book.fail(claim)
    return claim


def failed_for_a_person(book: Book) -> Claim:
    """A run that failed and waits for a person."""
    book.job()
    claim = take(book)
    book.fail(claim, retry_in=None)
    return claim


def held(book: Book) -> Claim:
    """A run that is being worked."""
    book.job()
    return take(book)


def lapsed(book: Book, contract: str = "transactional") -> Claim:
    """A run whose attempt has let its lease run out, and may be alive after all."""
    book.job(contract=contract)
    claim = take(book)
    book.lapse()
    return claim


def lapsed_external(book: Book) -> Claim:
    return lapsed(book, "external")


def lapsed_with_payload(book: Book) -> Claim:
    book.job()
    claim = take(book, payload="json1:aa")
    book.lapse()
    return claim


def asked_and_lapsed(book: Book) -> Claim:
    """A run whose attempt was asked to stop, and has let its lease run out."""
    book.job()
    claim = take(book)
    book.cancel(DAY)
    book.lapse()
    return claim


def unknown(book: Book) -> Claim:
    """A run of which nobody knows what its attempt did."""
    claim = lapsed_external(book)
    book.ask(DAY)
    return claim


def _place(book: Book, window: str) -> Recalled:
    known = book.declare()
    assert isinstance(known, Known)
    remembered = remember(known, book.declaration())
    assert remembered is not None
    place = recall(remembered, window)
    assert place is not None
    return place


def remembered(book: Book) -> Recalled:
    """A job whose line somebody has worked, and a window that nobody has touched."""
    book.job()
    return _place(book, DAY)


def remembered_with_overlap(book: Book) -> Recalled:
    book.job(overlap=1)
    return _place(book, DAY)


def remembered_beside_one_held(book: Book) -> Recalled:
    """The line of the window is held by the next one, of which somebody is about to complete."""
    book.job()
    claim = book.take(NEXT_DAY)
    book.lapse()
    assert claim.number == 1
    return _place(book, DAY)


def remembered_in_berlin(book: Book, overlap: int = 0) -> Recalled:
    """A line in a zone with rules, which are on record; of the window, and of those beside it, nobody has touched any."""
    book.job(schedule=daily("Europe/Berlin"), overlap=overlap)
    claim = book.ask("2026-10-02", attempt=b"g" * 16)
    assert isinstance(claim, Claim)
    book.complete(claim)
    return _place(book, DAY)


def remembered_in_berlin_with_overlap(book: Book) -> Recalled:
    return remembered_in_berlin(book, overlap=1)


def owed_in_berlin(book: Book) -> Recalled:
    """The same, of a line that is owed the window and those beside it."""
    book.clock.set("2026-10-02T03:00:00Z")
    book.job(schedule=daily("Europe/Berlin"), overlap=1)
    claim = book.ask("2026-10-01", attempt=b"g" * 16)
    assert isinstance(claim, Claim)
    book.complete(claim)
    book.clock.set("2026-10-06T03:00:00Z")
    return _place(book, DAY)


def skipped(book: Book) -> None:
    book.job()
    book.skip(DAY)


def two_opened(book: Book) -> None:
    """Two windows that are owed and have their rows: the first was taken and given back."""
    book.clock.advance(-24 * HOUR)
    book.job()
    book.clock.advance(24 * HOUR)
    taken = book.write(claim_next(book.declaration(), Claimer(b"g000000000000001", "host/1@1+a", "test"), **_ALL))
    assert isinstance(taken, Taken), taken
    book.release(taken.claim)


def three_owed(book: Book, zone: str = "UTC") -> None:
    """A line that began on one day and was not looked at until the third day after it."""
    book.job(schedule=daily(zone))
    book.clock.advance(2 * 24 * HOUR)


def three_owed_in_berlin(book: Book) -> None:
    three_owed(book, "Europe/Berlin")


def remembered_next(book: Book) -> Recalled:
    """As remembered, with the window that comes due last."""
    book.job()
    return _place(book, NEXT_DAY)


def remembered_next_with_overlap(book: Book) -> Recalled:
    book.job(overlap=1)
    return _place(book, NEXT_DAY)


def retired(book: Book) -> None:
    """A line that ended before the next day came due."""
    book.job()
    book.write(retire_scopes("export", [""], WORD, at=BETWEEN))


def lost(book: Book) -> tuple[Claim, Claim]:
    """An attempt that lost its run, and the one that completed it."""
    stale = lapsed(book)
    holder = take(book, 2)
    book.complete(holder)
    return stale, holder


def unknown_resolved(book: Book) -> tuple[Claim, Claim]:
    """An attempt of which a person said that it was done, and which does not know."""
    claim = unknown(book)
    book.resolve(claim.run, done=True)
    return claim, claim


def zombie(book: Book) -> tuple[Claim, Claim]:
    """A claim that was lost in a crash of the database, and another that was given the same number."""
    book.job()
    stale = take(book)
    book.amend("delete from duly_run")
    return stale, take(book, 2)


def asked_for(book: Book, **policies: Any) -> None:
    """A backfill of two days before the line began, one at a time, of a job whose runs may overlap."""
    book.job(**{"overlap": 1, **policies})
    book.work_all()
    book.clock.advance(MINUTE)
    book.backfill(DAY_BEFORE, NEXT_DAY)


def asked_for_and_given_back(book: Book) -> None:
    """Its first window was taken and given back, and may be taken by name."""
    asked_for(book)
    book.release(_of_backfill(book))


def asked_for_and_held(book: Book) -> Claim:
    """Its first window is worked."""
    asked_for(book)
    return _of_backfill(book)


def asked_for_and_lapsed(book: Book, **policies: Any) -> Claim:
    """The attempt of its first window has let its lease run out, and may be alive after all."""
    asked_for(book, **policies)
    claim = _of_backfill(book)
    book.lapse()
    return claim


def asked_for_and_unknown(book: Book) -> Claim:
    """Of its first window nobody knows what its attempt did; the second is taken."""
    claim = asked_for_and_lapsed(book, contract="external")
    book.write(claim_backfill(book.declaration(), Claimer(b"g000000000000002", "host/1@1+a", "test")))
    return claim


def failed_and_asked_for(book: Book) -> None:
    """A backfill of a window that failed and is tried again tomorrow, of a job whose runs may not overlap."""
    book.job()
    book.fail(take(book), retry_in=24 * HOUR)
    book.work_all()
    book.clock.advance(MINUTE)
    book.backfill(DAY, NEXT_DAY, what=(FAILED,))


def _of_backfill(book: Book) -> Claim:
    taken = book.write(claim_backfill(book.declaration(), Claimer(b"g000000000000001", "host/1@1+a", "test")))
    assert isinstance(taken, Taken), taken
    return taken.claim


def to_be_asked_for(book: Book) -> None:
    """A line of which all is settled, and windows before it that nobody has touched."""
    book.job(overlap=1)
    book.work_all()
    book.clock.advance(24 * HOUR)
    book.work_all()


def unregistered(book: Book) -> None:
    """A ledger that knows no job."""


def charged_before(book: Book) -> None:
    """A job without a schedule, with a line and a series, whose run is not there yet."""
    claim = book.ask_key(f"charge:{NEXT_DAY}[UTC]")
    assert isinstance(claim, Claim)
    book.complete(claim)


# -- what an actor does -------------------------------------------------------------------------------------------------

Act = Callable[[Hand, Any], Script]


def works(window: str = DAY, payload: str | None = None) -> Act:
    """Take a window and, if it is given, do and complete it."""

    async def script(hand: Hand, given: object) -> object:
        claim = await hand.take("export", window, payload=payload)
        if isinstance(claim, Claim):
            await hand.finish(claim)
        return claim

    return script


def takes(window: str = DAY) -> Act:
    """Take a window, and vanish."""

    async def script(hand: Hand, given: object) -> object:
        return await hand.take("export", window)

    return script


async def recalls(hand: Hand, place: Recalled) -> object:
    """Claim the window from memory and, if that succeeds, do and complete it; else from the beginning."""
    named = await hand.write(claim_remembered(place, hand.claimer()))
    if named is None:
        return await works()(hand, None)
    hand.told.append(named.answer)
    if isinstance(named.answer, Claim):
        await hand.finish(named.answer)
    return named.answer


def works_longer(window: str) -> Act:
    """Take a window as a host with other rules of the zone does, by which it ends an hour later; do and complete it."""

    async def take_longer(claimer: Claimer) -> object:
        found = await by_window("export", "", window)
        assert found.occurrence is not None
        assert found.known.series is not None
        longer = replace(found.occurrence, end=found.occurrence.end + HOUR)
        return await take_run(found.known, found.known.series, longer, found.run, found.row, claimer)

    async def script(hand: Hand, given: object) -> object:
        claim = await hand.write(take_longer(hand.claimer()))
        if isinstance(claim, Claim):
            await hand.finish(claim)
        return claim

    return script


async def changes_policies(hand: Hand, given: object) -> object:
    """Give the job another lease."""
    return await hand.write(declare(Declaration("export", "", daily("UTC"), {"lease": MINUTE // 2}, hand.name)))


async def edits(hand: Hand, given: object) -> object:
    """Put another schedule in force; windows that have begun are opened first, under the old one."""
    return await hand.write(apply("export", daily("UTC", at="06:00"), by=hand.name, reason="later"))


def edits_to(schedule: Schedule) -> Act:
    """Another zone or grain: the windows that have begun are opened, and a series begins."""

    async def script(hand: Hand, given: object) -> object:
        return await hand.write(apply("export", schedule, by=hand.name, reason="they moved"))

    return script


async def begins_a_scope(hand: Hand, given: object) -> object:
    """Bring a scope that is new, and work what is owed of it, under whichever schedule is in force."""
    taken = await hand.write(
        claim_next(Declaration("export", "acme", by=hand.name), hand.claimer(), as_of=None, tried=frozenset())
    )
    if isinstance(taken, Taken):
        hand.told.append(taken.claim)
        await hand.finish(taken.claim)
    return taken


async def completes(hand: Hand, claim: Claim | tuple[Claim, Claim]) -> object:
    """Effect and completion of the attempt that was given: of two, the first."""
    await hand.finish(claim if isinstance(claim, Claim) else claim[0])
    return "completed"


async def second_completes(hand: Hand, claims: tuple[Claim, Claim]) -> object:
    await hand.finish(claims[1])
    return "completed"


def says(operation: Callable[[Any], Operation[object]]) -> Act:
    """One operation, in a transaction of its own."""

    async def script(hand: Hand, given: Any) -> object:
        return await hand.write(operation(given))

    return script


async def _skip(window: str) -> object:
    found = await by_window("export", "", window)
    return await skip(found.known, found.run, found.occurrence, WORD)


async def _cancel(window: str) -> object:
    found = await by_window("export", "", window)
    run = await cancel(found.known, found.run, found.occurrence, WORD)
    assert run.cancel_is_asked or run.state == "skipped", f"it was said to be cancelled, and is {run.state}"
    return run


async def _unskip(window: str) -> object:
    found = await by_window("export", "", window)
    return await unskip(found.known, found.run, found.occurrence, WORD)


async def _reopen() -> object:
    found = await by_window("export", "", DAY)
    return await reopen(found.run, WORD)


def does_once(key: str, isolation: str = READ_COMMITTED) -> Act:
    """`once` and its effect, in the caller's transaction."""

    async def script(hand: Hand, given: object) -> object:
        async with hand.transaction(isolation):
            attempt_id = await hand.once(key)
            if attempt_id is not None:
                await hand.effect(attempt_id)
        return attempt_id is not None

    return script


def completes_at(isolation: str) -> Act:
    """Effect and completion in a transaction above READ COMMITTED."""

    async def script(hand: Hand, claim: Claim) -> object:
        async with hand.transaction(isolation):
            await hand.effect(claim.attempt_id)
            await hand.complete(claim)
        return "completed"

    return script


async def swallows(hand: Hand, claim: Claim) -> object:
    """Have the effect, swallow that the claim is lost, and commit whatever is left."""
    refused = False
    with suppress(sqlite3.OperationalError, LedgerUnavailable):  # there may be nothing left to commit
        async with hand.transaction():
            await hand.effect(claim.attempt_id)
            try:
                await hand.use("complete", lambda connection: run_in(connection, complete_or_raise(claim)))
            except ClaimLost:
                refused = True
    return "refused" if refused else "completed"


async def swallows_in_savepoint(hand: Hand, claim: Claim) -> object:
    """Complete inside a savepoint; where that is refused, give up the savepoint and have the effect without it."""
    refused = False
    with suppress(sqlite3.OperationalError, LedgerUnavailable):
        async with hand.transaction():
            await hand.execute("savepoint mine")
            try:
                await hand.use("complete", lambda connection: run_in(connection, complete_or_raise(claim)))
            except ClaimLost:
                refused = True
                await hand.execute("rollback to savepoint mine")
            await hand.effect(claim.attempt_id)
    return "refused" if refused else "completed"


async def renews_twice(hand: Hand, claim: Claim) -> object:
    """Two heartbeats."""
    first = await hand.write(renew(claim))
    return first, await hand.write(renew(claim))


def run_of(given: Claim | tuple[Claim, Claim]) -> RunId:
    return (given if isinstance(given, Claim) else given[0]).run


async def _forget() -> int | None:
    """Raise the horizon over all that is settled now: what is forgotten is looked for without a lock, then held."""
    known = await find("export", "")
    assert known is not None
    assert known.series is not None
    found = await forgettable(known, known.series, settled_by=FAR_AHEAD)
    return None if found is None else await raise_horizon(found, by="ops@example", reason="old")


BETWEEN = "2026-10-05T12:00:00Z"  # the day is due before it, and the next day after it


def retires(*, skip_owed: bool = False) -> Act:
    """Say that the line ended on the noon before, so that the next day is not owed."""
    return says(lambda given: retire_scopes("export", [""], WORD, at=BETWEEN, skip_owed=skip_owed))


def enrols(*scopes: str) -> Act:
    """Declare the job in code that closes its roster."""
    declared = Declaration("export", "", daily("UTC"), {"roster": "closed"}, "dev@example", scopes=scopes)
    return says(lambda given: enrol(declared, [Scope(scope) for scope in scopes]))


async def renames(hand: Hand, given: object) -> object:
    """Give the job another name."""
    return await hand.write(rename("export", "report", WORD))


retires_job = says(lambda given: retire_job("export", WORD, skip_owed=True))
brings_back = says(lambda given: add_scopes("export", [""], WORD, since=DAY))


async def works_backfill(hand: Hand, given: object) -> object:
    """Take the next window of the backfill and, if there is one, do and complete it."""
    taken = await hand.write(claim_backfill(Declaration("export", by=hand.name), hand.claimer()))
    if isinstance(taken, Taken):
        hand.told.append(taken.claim)
        await hand.finish(taken.claim)
    return taken


async def takes_of_backfill(hand: Hand, given: object) -> object:
    """Take the next window of the backfill, and vanish."""
    taken = await hand.write(claim_backfill(Declaration("export", by=hand.name), hand.claimer()))
    if isinstance(taken, Taken):
        hand.told.append(taken.claim)
    return taken


async def _ask(job: str = "export") -> object:
    names = [2 * (parse_instant(f"{day}T00:00:00Z") // SECOND) for day in (DAY_BEFORE, NEXT_DAY)]
    return await start(job, "", Asked(f"{DAY_BEFORE}..{NEXT_DAY}", names[0], names[1]), WORD)


asks = says(lambda given: _ask())
asks_by_new_name = says(lambda given: _ask("report"))
cancels_backfill = says(lambda given: cancel_backfill(1, WORD))
holds_up = says(lambda given: pause_backfill(1, WORD))
renews = says(lambda claim: renew(claim))
fails_to_retry = says(
    lambda claim: fail_or_raise(claim, Ending("failed", "exit 1", retry=True), retry_in=0, error="exit 1")
)
beats = says(lambda claim: beat(claim))
cancels = says(lambda given: _cancel(DAY))
reopens = says(lambda given: _reopen())
skips = says(lambda given: _skip(DAY))
skips_next = says(lambda given: _skip(NEXT_DAY))
forgets = says(lambda given: _forget())
unskips = says(lambda given: _unskip(DAY))
resolves_done = says(lambda claim: resolve(run_of(claim), WORD, done=True))
resolves_not_done = says(lambda claim: resolve(run_of(claim), WORD, done=False))
retries = says(lambda claim: retry(run_of(claim), WORD))
retries_with_new_payload = says(lambda claim: retry(run_of(claim), WORD, new_payload=True))
doubts = says(lambda claim: doubt_or_raise(claim, "time-out at the provider"))
releases = says(lambda claim: release_or_raise(claim, "released"))
fails = says(lambda claim: fail_or_raise(claim, Ending("failed", "exit 1", retry=False), retry_in=None, error="exit 1"))


def pokes(name: str = "export", schedule: Schedule | None = None) -> Act:
    """Take what is owed next and, if there is any, do and complete it."""

    async def script(hand: Hand, given: object) -> object:
        declared = Declaration(name, "", schedule, by=hand.name)
        taken = await hand.write(claim_next(declared, hand.claimer(), as_of=None, tried=frozenset()))
        if isinstance(taken, Taken):
            hand.told.append(taken.claim)
            await hand.finish(taken.claim)
        return taken

    return script


async def groups(hand: Hand, given: object) -> object:
    """Work all that is owed in one transaction, as a job does whose runs share their commit."""
    async with hand.transaction():
        claiming = claim_group(Declaration("export", "", by=hand.name), hand.claimer(), **_ALL, most=9)
        group = await hand.carry_out(claiming)
        if not isinstance(group, Group):
            return group
        claims = [claim for _, claim, _ in members(group, lambda: hand.claimer().attempt_id, lambda: 0)]
        for claim in claims:
            await hand.effect(claim.attempt_id)
        await hand.carry_out(complete_group(group.first, [(claim, NOTHING) for claim in claims]))
    hand.told.extend(claims)
    return len(claims)


async def works_and_fails(hand: Hand, given: object) -> object:
    """Take the window and fail it for a person to look at."""
    claim = await hand.take("export", DAY)
    if isinstance(claim, Claim):
        await hand.write(fail_or_raise(claim, Ending("failed", "exit 1", retry=False), retry_in=None, error="exit 1"))
    return claim


# -- the races ----------------------------------------------------------------------------------------------------------


def _twice(act: Act) -> tuple[Act, Act]:
    return act, act


_RACES: tuple[tuple[str, Given, tuple[Act, ...]], ...] = (
    ("take-take", absent, _twice(works())),
    ("take-take-opened", opened, _twice(works())),
    ("take-take-failed", failed, (works(), works_and_fails)),
    ("take-fail-failed", failed, (takes(), works_and_fails)),
    ("take-take-overlap", absent_with_overlap, _twice(works())),
    ("take-take-payload", absent, (works(payload="json1:aa"), works(payload="json1:bb"))),
    ("recall-recall", remembered, _twice(recalls)),
    ("recall-take", remembered, (recalls, works())),
    ("recall-recall-overlap", remembered_with_overlap, _twice(recalls)),
    ("recall-take-overlap", remembered_with_overlap, (recalls, works())),
    ("recall-next-window", remembered, (recalls, works(NEXT_DAY))),
    ("recall-next-window-dead", remembered_beside_one_held, (recalls, works(NEXT_DAY))),
    ("recall-skip", remembered, (recalls, skips)),
    ("recall-once", remembered, (recalls, does_once(KEY))),
    ("recall-forget", remembered, (recalls, forgets)),
    ("recall-forget-overlap", remembered_with_overlap, (recalls, forgets)),
    ("recall-poke", remembered, (recalls, pokes())),
    ("recall-policies", remembered, (recalls, changes_policies)),
    ("recall-edit", remembered, (recalls, edits)),
    ("recall-edit-overlap", remembered_with_overlap, (recalls, edits)),
    ("recall-recall-berlin", remembered_in_berlin, _twice(recalls)),
    ("recall-take-berlin", remembered_in_berlin, (recalls, works())),
    ("recall-next-window-berlin", remembered_in_berlin_with_overlap, (recalls, works(NEXT_DAY))),
    ("recall-window-before-berlin", remembered_in_berlin_with_overlap, (recalls, works(DAY_BEFORE))),
    ("recall-other-rules", remembered_in_berlin, (recalls, works_longer(DAY_BEFORE))),
    ("recall-other-rules-overlap", remembered_in_berlin_with_overlap, (recalls, works_longer(DAY_BEFORE))),
    ("recall-skip-next-berlin", remembered_in_berlin, (recalls, skips_next)),
    ("recall-once-next-berlin", remembered_in_berlin, (recalls, does_once(f"export:{NEXT_DAY}[Europe/Berlin]"))),
    ("recall-poke-berlin", owed_in_berlin, (recalls, pokes())),
    ("group-group", two_opened, _twice(groups)),
    ("group-take", two_opened, (groups, works(NEXT_DAY))),
    ("group-take-first", two_opened, (groups, works())),
    ("group-skip", two_opened, (groups, skips_next)),
    ("group-once", two_opened, (groups, does_once(f"export:{NEXT_DAY}[UTC]"))),
    ("group-poke", two_opened, (groups, pokes())),
    ("zone-take", absent, (edits_to(BERLIN), works(NEXT_DAY))),
    ("zone-take-opened", opened, (edits_to(BERLIN), works())),
    ("zone-complete", held, (edits_to(BERLIN), completes)),
    ("zone-fail", held, (edits_to(BERLIN), fails)),
    ("zone-poke", three_owed, (edits_to(BERLIN), pokes())),
    ("zone-recall", remembered, (edits_to(BERLIN), recalls)),
    ("zone-recall-overlap", remembered_with_overlap, (edits_to(BERLIN), recalls)),
    ("zone-once", absent, (edits_to(BERLIN), does_once(KEY))),
    ("zone-scope", absent, (edits_to(BERLIN), begins_a_scope)),
    ("zone-zone", three_owed, (edits_to(BERLIN), edits_to(NEW_YORK))),
    ("zone-grain", three_owed, (edits_to(BERLIN), edits_to(weekly("UTC")))),
    ("zone-same", three_owed, _twice(edits_to(BERLIN))),
    ("take-complete", held, (works(), completes)),
    ("complete-complete", held, _twice(completes)),
    ("zombie-complete", zombie, (completes, second_completes)),
    ("take-over-complete", lapsed, (works(), completes)),
    ("take-over-complete-external", lapsed_external, (works(), completes)),
    ("take-over-fail", lapsed, (works(), fails)),
    ("take-over-release", lapsed, (works(), releases)),
    ("take-over-doubt", lapsed_external, (works(), doubts)),
    ("take-over-take-over", lapsed, _twice(works())),
    ("take-over-payload", lapsed_with_payload, (works(), works(payload="json1:bb"))),
    ("take-over-take-over-external", lapsed_external, _twice(works())),
    ("take-skip", absent, (works(), skips)),
    ("take-skip-failed", failed, (works(), skips)),
    ("take-over-skip", lapsed, (works(), skips)),
    ("resolve-complete", unknown, (resolves_not_done, completes)),
    ("resolve-done-complete", unknown, (resolves_done, completes)),
    ("resolve-resolve", unknown, (resolves_not_done, resolves_done)),
    ("reopen-complete", lost, (reopens, completes)),
    ("reopen-complete-resolved", unknown_resolved, (reopens, completes)),
    ("reopen-reopen", lost, _twice(reopens)),
    ("reopen-take-failed", failed, (reopens, works())),
    ("retry-payload-take", failed, (retries_with_new_payload, works(payload="json1:bb"))),
    ("retry-take", failed_for_a_person, (retries, works())),
    ("retry-skip", failed_for_a_person, (retries, skips)),
    ("retry-once", failed_for_a_person, (retries, does_once(KEY))),
    ("resolve-reopen", unknown, (resolves_done, reopens)),
    ("renew-take-over", lapsed, (renews, works())),
    ("renew-take-over-external", lapsed_external, (renews, works())),
    ("renew-next-window", lapsed_external, (renews_twice, works(NEXT_DAY))),
    ("renew-unknown-next", unknown, (renews, works(NEXT_DAY))),
    ("next-window", absent, (works(), works(NEXT_DAY))),
    ("next-window-opened", opened, (works(), works(NEXT_DAY))),
    ("next-window-held", held, (completes, works(NEXT_DAY))),
    ("next-window-dead", lapsed, (works(), works(NEXT_DAY))),
    ("next-window-dead-external", lapsed_external, (completes, works(NEXT_DAY))),
    ("next-window-unknown", unknown, (completes, works(NEXT_DAY))),
    ("once-once", charged_before, _twice(does_once(CHARGE))),
    ("once-once-new-job", unregistered, _twice(does_once(CHARGE))),
    ("once-once-scheduled", absent, _twice(does_once(KEY))),
    ("once-take", absent, (does_once(KEY), works())),
    ("once-take-failed", failed, (does_once(KEY), works())),
    ("once-take-over", lapsed, (does_once(KEY), works())),
    ("once-complete", lapsed, (does_once(KEY), completes)),
    ("once-skip", failed, (does_once(KEY), skips)),
    ("take-unskip", skipped, (works(), unskips)),
    ("skip-unskip", skipped, (skips, unskips)),
    ("skip-skip", absent, _twice(skips)),
    ("resolve-renew", unknown, (resolves_not_done, renews)),
    ("renew-doubt", lapsed_external, (renews, doubts)),
    ("renew-complete", held, (renews, completes)),
    ("once-reopen", lost, (does_once(KEY), reopens)),
    ("once-unskip", skipped, (does_once(KEY), unskips)),
    ("once-renew", lapsed, (does_once(KEY), renews)),
    ("cancel-take", absent, (cancels, works())),
    ("cancel-take-opened", opened, (cancels, works())),
    ("cancel-complete", held, (cancels, completes)),
    ("cancel-fail", held, (cancels, fails_to_retry)),
    ("cancel-release", held, (cancels, releases)),
    ("cancel-doubt", held, (cancels, doubts)),
    ("cancel-beat", held, (cancels, beats)),
    ("cancel-cancel", held, _twice(cancels)),
    ("cancel-take-over", lapsed, (cancels, works())),
    ("cancel-take-over-external", lapsed_external, (cancels, works())),
    ("cancel-once", lapsed, (cancels, does_once(KEY))),
    ("cancel-poke", lapsed, (cancels, pokes())),
    ("cancel-retry", failed_for_a_person, (cancels, retries)),
    ("cancel-skip", failed, (cancels, skips)),
    ("cancelled-take-take", asked_and_lapsed, _twice(works())),
    ("cancelled-once-take", asked_and_lapsed, (does_once(KEY), works())),
    ("cancelled-take-complete", asked_and_lapsed, (works(), completes)),
    ("cancelled-poke-next-window", asked_and_lapsed, (pokes(), works(NEXT_DAY))),
    ("poke-poke", three_owed, _twice(pokes())),
    ("forget-take", absent, (forgets, works())),
    ("forget-take-opened", opened, (forgets, works())),
    ("forget-take-failed", failed, (forgets, works())),
    ("forget-take-over", lapsed, (forgets, works())),
    ("forget-complete", held, (forgets, completes)),
    ("forget-complete-unknown", unknown, (forgets, completes)),
    ("forget-once", absent, (forgets, does_once(KEY))),
    ("forget-skip", absent, (forgets, skips)),
    ("forget-unskip", skipped, (forgets, unskips)),
    ("forget-reopen", lost, (forgets, reopens)),
    ("forget-resolve", unknown, (forgets, resolves_done)),
    ("forget-forget", lost, _twice(forgets)),
    ("backfill-backfill", asked_for, _twice(works_backfill)),
    ("backfill-backfill-given-back", asked_for_and_given_back, _twice(works_backfill)),
    ("backfill-backfill-dead", asked_for_and_lapsed, _twice(takes_of_backfill)),
    ("backfill-take", asked_for, (works_backfill, works(DAY_BEFORE))),
    ("backfill-take-given-back", asked_for_and_given_back, (takes_of_backfill, works(DAY_BEFORE))),
    ("backfill-take-over", asked_for_and_lapsed, (works_backfill, works(DAY_BEFORE))),
    ("backfill-complete", asked_for_and_held, (completes, works_backfill)),
    ("backfill-renew", asked_for_and_lapsed, (renews, works_backfill)),
    ("backfill-renew-unknown", asked_for_and_unknown, (renews, works_backfill)),
    ("backfill-cancel", asked_for, (works_backfill, cancels_backfill)),
    ("backfill-cancel-given-back", asked_for_and_given_back, (works_backfill, cancels_backfill)),
    ("backfill-pause", asked_for_and_given_back, (works_backfill, holds_up)),
    ("backfill-forget", asked_for, (works_backfill, forgets)),
    ("backfill-poke", asked_for_and_lapsed, (works_backfill, pokes())),
    ("backfill-retire", asked_for, (works_backfill, retires_job)),
    ("backfill-retire-failed", failed_and_asked_for, (works_backfill, retires_job)),
    ("ask-forget", to_be_asked_for, (asks, forgets)),
    ("ask-take", to_be_asked_for, (asks, works(DAY_BEFORE))),
    ("ask-poke", three_owed, (asks, pokes())),
    ("ask-ask", to_be_asked_for, _twice(asks)),
    ("ask-rename", to_be_asked_for, (asks, renames)),
    ("poke-take", three_owed, (pokes(), works("2026-10-06"))),
    ("poke-take-berlin", three_owed_in_berlin, (pokes(), works("2026-10-06"))),
    ("poke-skip", three_owed, (pokes(), skips_next)),
    ("poke-once", three_owed, (pokes(), does_once(f"export:{NEXT_DAY}[UTC]"))),
    ("poke-poke-new-job", unregistered, _twice(pokes("report", daily("UTC")))),
    ("poke-complete-lapsed", lapsed, (pokes(), completes)),
    ("poke-complete-unknown", lapsed_external, (pokes(), completes)),
    ("retire-take", absent, (retires(), works(NEXT_DAY))),
    ("retire-take-overlap", absent_with_overlap, (retires(), works(NEXT_DAY))),
    ("retire-take-owed", absent, (retires(skip_owed=True), works())),
    ("retire-complete", held, (retires(skip_owed=True), completes)),
    ("retire-recall", remembered_next, (retires(), recalls)),
    ("retire-recall-overlap", remembered_next_with_overlap, (retires(), recalls)),
    ("retire-poke", absent, (retires(), pokes())),
    ("retire-edit", absent, (retires(), edits)),
    ("retire-retire", absent, _twice(retires())),
    ("retire-job-poke", three_owed, (retires_job, pokes())),
    ("retire-job-policies", absent, (retires_job, changes_policies)),
    ("resume-take", retired, (brings_back, works(NEXT_DAY))),
    ("resume-poke", retired, (brings_back, pokes())),
    ("enrol-enrol", unregistered, _twice(enrols("acme", "globex"))),
    ("enrol-enrol-differs", absent, (enrols("acme"), enrols("globex"))),
    ("enrol-retire", absent, (enrols("acme"), retires())),
    ("rename-enrol", absent, (renames, enrols("acme"))),
    ("rename-take", absent, (renames, works())),
    ("rename-once", absent, (renames, does_once(KEY))),
    ("rename-recall", remembered, (renames, recalls)),
    ("rename-poke", absent, (renames, pokes())),
    ("rename-poke-new", absent, (renames, pokes("report", daily("UTC")))),
    ("rename-complete", held, (renames, completes)),
    ("rename-policies", absent, (renames, changes_policies)),
    ("rename-edit", absent, (renames, edits)),
    ("rename-rename", absent, _twice(renames)),
    ("rename-retire", absent, (renames, retires())),
    ("take-over-swallowed", lapsed, (works(), swallows)),
    ("take-over-savepoint", lapsed, (works(), swallows_in_savepoint)),
)

# Isolation is the caller's: only transactions that are borrowed may have another.
_ISOLATED: tuple[tuple[str, Given, tuple[Act, ...]], ...] = tuple(
    each
    for isolation in (REPEATABLE_READ, SERIALIZABLE)
    for suffix in ("-" + "".join(word[0] for word in isolation.split()) if " " in isolation else "-s",)
    for each in (
        ("once-once" + suffix, charged_before, _twice(does_once(CHARGE, isolation))),
        ("once-once-scheduled" + suffix, absent, _twice(does_once(KEY, isolation))),
        ("once-take" + suffix, absent, (does_once(KEY, isolation), works())),
        ("once-complete" + suffix, lapsed, (does_once(KEY, isolation), completes_at(isolation))),
        ("take-over-complete" + suffix, lapsed, (works(), completes_at(isolation))),
        ("forget-once" + suffix, absent, (forgets, does_once(KEY, isolation))),
        ("complete-complete" + suffix, held, _twice(completes_at(isolation))),
    )
)

# Three at once, by sample only.
_CROWDS: tuple[tuple[str, Given, tuple[Act, ...]], ...] = (
    ("three-workers", absent, (works(), works(), works(NEXT_DAY))),
    ("three-recall", remembered, (recalls, recalls, works(NEXT_DAY))),
    ("three-recall-forget", remembered, (recalls, forgets, works())),
    ("three-take-over", lapsed, (works(), completes, works(NEXT_DAY))),
    ("three-external", lapsed_external, (works(), completes, renews)),
    ("three-unknown", unknown, (resolves_not_done, completes, works())),
    ("three-once", failed, (does_once(KEY), works(), skips)),
    ("three-fail", failed, (works_and_fails, works(), does_once(KEY))),
    ("three-pokes", three_owed, (pokes(), pokes(), works("2026-10-06"))),
    (
        "three-pokes-berlin",
        three_owed_in_berlin,
        (pokes(), works("2026-10-06"), does_once("export:2026-10-07[Europe/Berlin]")),
    ),
    ("three-forget", absent, (forgets, works(), does_once(KEY))),
    ("three-reopen", lost, (reopens, completes, works())),
    ("three-zone", three_owed, (edits_to(BERLIN), pokes(), works("2026-10-06"))),
    ("three-zones", held, (edits_to(BERLIN), completes, edits_to(NEW_YORK))),
    ("three-backfill", asked_for, (works_backfill, takes_of_backfill, works(DAY_BEFORE))),
    ("three-backfill-lapsed", asked_for_and_lapsed, (works_backfill, completes, cancels_backfill)),
    ("three-backfill-forget", asked_for_and_given_back, (works_backfill, forgets, works(DAY_BEFORE))),
)


def _race(name: str, given: Given, actors: tuple[Act, ...]) -> Race[Any]:
    return Race(name, lambda stage: given(book_of(stage)), actors)


def book_of(stage: Stage) -> Book:
    """The stage's ledger, to tell what is given."""
    return PostgresBook(stage.ledger) if stage.name == "postgres" else Book(stage.ledger)


RACES = {name: _race(name, given, actors) for name, given, actors in (*_RACES, *_ISOLATED, *_CROWDS)}
PAIRS = tuple(name for name, *_ in _RACES)
ISOLATED = tuple(name for name, *_ in _ISOLATED)
CROWDS = tuple(name for name, *_ in _CROWDS)

# Those with the most histories: on PostgreSQL the tests tell a sample, the campaign all of them.
LONG = ("poke-take", "poke-take-berlin", "zone-scope", "zone-recall", "zone-poke")

# What a history has found and is not mended yet: the stage and the race, and what is wrong.
KNOWN: dict[tuple[str, str], str] = {}
