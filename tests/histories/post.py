"""The races of messages: relays that take and report, people, and whoever adds or forgets. As those in `races`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.deliver import record_words, take_messages
from duly.ledger.messages import resolve_message, retry_message, skip_message
from duly.ledger.parcel import Limits, Parcel
from duly.ledger.records import Claim, RunId
from duly.ledger.send import Letter, send_in
from duly.schedule.keys import parse_key
from duly.testing.histories import Hand, Race
from duly.work.letters import key_of_message
from tests.books import WORD, Book
from tests.histories.races import KEY, Act, book_of, forgets, reopens, says, take
from tests.outbox import post as said
from tests.outbox.post import FOREVER, HOUR, PROBE_AFTER, Post

if TYPE_CHECKING:
    from duly.ledger.parcel import Word

Given = tuple[RunId, Parcel | None]

# -- what is given ------------------------------------------------------------------------------------------------------


def completed(book: Book) -> Given:
    """A run that is complete, without messages."""
    book.job()
    return Post(book).complete(take(book)), None


def sent(book: Book) -> Given:
    """A run that is complete, with two messages."""
    book.job()
    return Post(book).complete(take(book), "a", "b"), None


def sent_one(book: Book) -> Given:
    book.job()
    return Post(book).complete(take(book), "a"), None


def held(book: Book) -> Claim:
    """A run that is being worked."""
    book.job()
    return take(book)


def being_sent(book: Book) -> Given:
    """A message that an attempt has, whose lease lasts."""
    run, _ = sent(book)
    return run, _taken(book)


def lapsed(book: Book) -> Given:
    """A message whose attempt let its lease run out, and may be alive after all."""
    run, parcel = being_sent(book)
    Post(book).lapse()
    return run, parcel


def doubted(book: Book) -> Given:
    """A message that an attempt may have delivered; it may be looked for."""
    run, parcel = being_sent(book)
    assert parcel is not None
    Post(book).report(parcel, said.UNKNOWN)
    book.clock.advance(PROBE_AFTER)
    return run, parcel


def refused(book: Book) -> Given:
    run, parcel = being_sent(book)
    assert parcel is not None
    Post(book).report(parcel, said.REFUSED)
    return run, parcel


def _taken(book: Book) -> Parcel:
    """An attempt that is given; its id is the same whenever the race is prepared."""
    taking = take_messages(Post(book).limits, [b"g000000000000009"], owner="host/g", put_off_by=lambda _: HOUR)
    (parcel,) = book.write(taking)
    return parcel


# -- what an actor does -------------------------------------------------------------------------------------------------


def delivers(word: Word = said.DELIVERED, *, found: Word = said.CANNOT_TELL, remembers: int = 0) -> Act:
    """Take what is due and say what became of it: of a sending, or of a probe."""
    limits = Limits(said.TO, 16, 0, said.LEASE, remembers, PROBE_AFTER)

    async def script(hand: Hand, given: object) -> object:
        mine = hand.claimer().attempt_id
        taken: list[Parcel] = await hand.write(
            take_messages(limits, [mine], owner=hand.name, put_off_by=lambda _: HOUR)
        )
        for parcel in taken:
            await hand.write(record_words([(parcel, found if parcel.probing else word)]))
        return [parcel.name for parcel in taken]

    return script


def vanishes(*, remembers: int = 0) -> Act:
    """Take what is due, and say nothing any more."""
    limits = Limits(said.TO, 16, 0, said.LEASE, remembers, PROBE_AFTER)

    async def script(hand: Hand, given: object) -> object:
        mine = hand.claimer().attempt_id
        return await hand.write(take_messages(limits, [mine], owner=hand.name, put_off_by=lambda _: HOUR))

    return script


def reports(word: Word) -> Act:
    """What the attempt that was given says."""

    async def script(hand: Hand, given: Given) -> object:
        assert given[1] is not None
        return await hand.write(record_words([(given[1], word)]))

    return script


def sends(name: str) -> Act:
    """Add a message to the run, in a transaction of the caller's."""
    letter = Letter(said.TO, name, "application/json", b"{}")

    async def add() -> object:
        return await send_in(parse_key(KEY), letter, "host/s", key_of_message)

    return says(lambda given: add())


async def completes_with_letters(hand: Hand, claim: Claim) -> Any:
    """Complete the run that is given, with two messages."""
    letters = [(Letter(said.TO, name, "application/json", b"{}"), f"key-of-{name}") for name in ("a", "b")]
    return await hand.write(complete_or_raise(claim, Left(letters=letters)))


resolves_done = says(lambda given: resolve_message(given[0], "a", WORD, done=True))
resolves_not = says(lambda given: resolve_message(given[0], "a", WORD, done=False))
skips = says(lambda given: skip_message(given[0], "a", WORD))
skips_next = says(lambda given: skip_message(given[0], "b", WORD))
retries = says(lambda given: retry_message(given[0], "a", WORD))

# -- the races ----------------------------------------------------------------------------------------------------------

_RACES: tuple[tuple[str, Callable[[Book], Any], tuple[Act, ...]], ...] = (
    ("deliver-deliver", sent, (delivers(), delivers())),
    ("deliver-vanish", sent, (delivers(), vanishes())),
    ("deliver-deliver-lapsed", lapsed, (delivers(), delivers())),
    ("deliver-deliver-remembered", lapsed, (delivers(remembers=FOREVER), delivers(remembers=FOREVER))),
    ("deliver-report-lapsed", lapsed, (delivers(), reports(said.DELIVERED))),
    ("deliver-report-not-sent", lapsed, (delivers(), reports(said.NOT_SENT))),
    ("deliver-report-remembered", lapsed, (delivers(remembers=FOREVER), reports(said.NOT_SENT))),
    ("deliver-refused-remembered", lapsed, (delivers(remembers=FOREVER), reports(said.REFUSED))),
    ("deliver-resolve", doubted, (delivers(), resolves_done)),
    ("deliver-resolve-not", doubted, (delivers(), resolves_not)),
    ("deliver-resolve-remembered", doubted, (delivers(remembers=FOREVER), resolves_not)),
    ("report-resolve", lapsed, (reports(said.DELIVERED), resolves_not)),
    ("report-resolve-done", lapsed, (reports(said.NOT_SENT), resolves_done)),
    ("resolve-resolve", doubted, (resolves_done, resolves_not)),
    ("probe-probe", doubted, (delivers(found=said.DID_NOT), delivers(found=said.DID_NOT))),
    ("probe-found", doubted, (delivers(found=said.HAPPENED), delivers(found=said.DID_NOT_AT_ONCE))),
    ("probe-report", doubted, (delivers(found=said.DID_NOT_AT_ONCE), reports(said.DELIVERED))),
    ("probe-resolve", doubted, (delivers(found=said.DID_NOT_AT_ONCE), resolves_done)),
    ("skip-deliver", sent, (skips, delivers())),
    ("skip-next-deliver", sent, (skips_next, delivers())),
    ("skip-report", being_sent, (skips_next, reports(said.DELIVERED))),
    ("retry-retry", refused, (retries, retries)),
    ("retry-skip", refused, (retries, skips)),
    ("retry-deliver", refused, (retries, delivers())),
    ("send-send", completed, (sends("a"), sends("b"))),
    ("send-send-same", completed, (sends("a"), sends("a"))),
    ("send-deliver", sent_one, (sends("b"), delivers())),
    ("send-skip", sent_one, (sends("b"), skips)),
    ("send-reopen", completed, (sends("a"), reopens)),
    ("send-forget", completed, (sends("a"), forgets)),
    ("complete-deliver", held, (completes_with_letters, delivers())),
    ("complete-reopen", held, (completes_with_letters, reopens)),
    ("complete-forget", held, (completes_with_letters, forgets)),
    ("deliver-reopen", sent_one, (delivers(), reopens)),
    ("deliver-forget", sent_one, (delivers(), forgets)),
    ("retry-forget", refused, (retries, forgets)),
    ("skip-forget", sent_one, (skips, forgets)),
    ("skip-reopen", sent_one, (skips, reopens)),
)

_CROWDS: tuple[tuple[str, Callable[[Book], Any], tuple[Act, ...]], ...] = (
    ("three-deliver", sent, (delivers(), delivers(said.NOT_SENT), vanishes())),
    ("three-remembered", lapsed, (delivers(remembers=FOREVER), reports(said.UNKNOWN), resolves_not)),
    ("three-lapsed", lapsed, (delivers(), reports(said.DELIVERED), resolves_not)),
    ("three-send", sent_one, (sends("b"), delivers(), sends("c"))),
    ("three-forget", sent_one, (delivers(), forgets, reopens)),
)


def _race(name: str, given: Callable[[Book], Any], actors: tuple[Act, ...]) -> Race[Any]:
    return Race(name, lambda stage: given(book_of(stage)), actors, has_mail=True)


MAIL = {name: _race(name, given, actors) for name, given, actors in (*_RACES, *_CROWDS)}
PAIRS = tuple(name for name, *_ in _RACES)
CROWDS = tuple(name for name, *_ in _CROWDS)
