"""The claim of a backfill's next window: who may work it, and when.

How many of its runs are running is counted under the lock of the backfill's row, by whoever claims one of them, here or by
name, on whatever host; a holder that is gone counts until it is ended, which is done here, by contract, as overlap does it.

What the line owes by itself goes first. So that the backfill does not starve either it has a minimum share: where runs may
overlap, one run at a time; where they may not, every fourth claim of the line.

Locks come in the order: backfill, line, series, run.
"""

from __future__ import annotations

from itertools import islice

from duly.errors import Misuse, NotAllowed, Refused, RunPaused
from duly.ledger import backfill_states as backfills
from duly.ledger import states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.backfill import (
    ADOPT,
    COMPLETED,
    FAILED,
    LOCK_BACKFILL,
    OLDEST,
    SKIPPED,
    Backfill,
    backfills_of,
    look_at,
    move,
    place_after,
    windows_left,
    windows_not_owed,
)
from duly.ledger.open import Idle, Taken, claim_again, take_row
from duly.ledger.owed import owed
from duly.ledger.peek import holder_in_the_way, in_order, is_workable
from duly.ledger.records import LEASES, RUN_COLUMNS, Busy, Claim, Known, NotDue, Run, RunId, pause_of
from duly.ledger.register import declare
from duly.ledger.resolve import Word, cut_out, reopen, retry, unskip
from duly.ledger.spells import spells_of
from duly.ledger.take import LOCK_LINE_OF, end_gone, gone, hold_line, look, look_newest, run_parameters, take
from duly.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from duly.ledger.records import AlreadyCompleted, Claimer
    from duly.ledger.register import Declaration
    from duly.schedule.occurrence import Occurrence

# Of so many claims of a line without overlap the last is a backfill's, though live work is owed.
ONE_IN = 4

# How many windows are looked at in one statement: few, for the next is likely to be free; more where they are settled.
_LOOKS = (16, 256, 1_024)

UNSETTLED_OF_BACKFILL = Statement(
    "unsettled_of_backfill",
    # By the index of what is unsettled, which is little: nothing that a completion writes is counted anywhere.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  join duly_backfill_run m on m.series = r.series and m.nominal = r.nominal and m.revision = r.revision
  {LEASES}
 where r.series = :series and {{unsettled}} and m.backfill = :backfill
 order by r.due, r.nominal
""",
)

MOVE_PLACE = Statement("move_place", "update duly_backfill set place = :place where id = :id")

SHARE_TAKEN = Statement("share_taken", "update duly_line set live_claims = 0 where id = :line")


async def claim_backfill(
    declared: Declaration, claimer: Claimer, *, backfill: int | None = None, tried: Container[RunId] = ()
) -> Taken | Idle | Refused | Misuse:
    """Take the next window of the oldest active backfill of a line that has a slot free, or of one that is named.

    `Idle` with `live`: what the line owes by itself goes first. With `writes`: more windows are to be looked at. One
    transaction. `Misuse` for a number that is none of the line's.
    """
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    assert known.line is not None
    mine = [each for each in await backfills_of(known) if backfill in (None, each.id)]
    if backfill is not None and not mine:
        return Misuse(
            f"backfill: {declared.job} has no backfill {backfill}", next_step=f"duly backfill list {declared.job}"
        )
    found = Idle(known, None, known.line.next_due, paused=pause_of(known, await now()))
    if found.paused is not None:
        return found
    for each in mine:
        if each.state == backfills.ACTIVE:
            answer = await _Claiming(known, claimer, tried, each.id).answer()
            if isinstance(answer, Taken) or answer.live or answer.writes:
                return answer
            found = answer if found.standing is None else found
    return found


async def claim_once_more(
    declared: Declaration, run: RunId, claimer: Claimer, *, backfill: int | None
) -> Taken | Idle | Refused | Misuse:
    """Take a run of a backfill that was attempted once more. What an inline attempt wrote of it went with its effect."""
    answer = await claim_again(declared, run, claimer)
    if isinstance(answer, Taken) and backfill is not None:
        await count(ADOPT, **run_parameters(run), backfill=backfill)
    return answer


class _Claiming:
    """One attempt to claim a window of one backfill."""

    def __init__(self, known: Known, claimer: Claimer, tried: Container[RunId], number: int) -> None:
        self._known = known
        self._claimer = claimer
        self._tried = tried
        self._number = number

    async def answer(self) -> Taken | Idle:
        mine = await one(LOCK_BACKFILL, Backfill, id=self._number)
        assert mine is not None  # a backfill is never deleted
        if mine.state != backfills.ACTIVE:
            return self._idle()
        if self._known.series is None or self._known.series.id != mine.series:
            await move(
                mine.id, "stop", "backfill_stopped", Word("duly", "the schedule counts by another zone or grain")
            )
            return self._idle()
        unsettled = await _end_those_gone(mine)
        failures = sum(_counts_as_failure(mine, run) for run in unsettled)
        if mine.stop_after is not None and failures >= mine.stop_after:
            await move(mine.id, "stop", "backfill_stopped", Word("duly", f"{failures} of its windows need a person"))
            return self._idle()
        running = [run for run in unsettled if run.state == states.RUNNING]
        if len(running) >= mine.concurrency:
            return self._idle(running[0])
        instant = await now()
        if await self._live_goes_first(running, instant):
            return replace(self._idle(), live=True)
        if (holder := await holder_in_the_way(self._known)) is not None:
            return self._idle(holder)
        return await self._next(mine, unsettled, instant)

    def _idle(self, standing: Run | None = None, *, more: bool = False) -> Idle:
        assert self._known.line is not None
        return Idle(self._known, standing, self._known.line.next_due, writes=more)

    async def _live_goes_first(self, running: list[Run], instant: int) -> bool:
        """Whether what the line owes by itself is to be worked before the backfill's next window."""
        assert self._known.line is not None
        has_share = not running if self._known.job.overlap else self._known.line.live_claims >= ONE_IN - 1
        if has_share:
            return False
        due = await owed(self._known, as_of=instant)
        if any(not o.off for o in due.fresh):
            return True
        rows = [run for run in in_order(self._known, due.rows) if run.id not in self._tried]
        return any([await is_workable(run, instant) for run in rows])

    async def _next(self, mine: Backfill, unsettled: list[Run], instant: int) -> Taken | Idle:
        """Take its next window in its direction: one that it opened before and that is free again, or one beyond its place."""
        free = [run for run in unsettled if run.id not in self._tried and _is_free(run, instant)]
        if mine.direction != OLDEST:
            free.reverse()
        assert self._known.line is not None
        walk = windows_left(mine, await spells_of(self._known), self._known.line)
        place = mine.place
        for many in _LOOKS:
            some = list(islice(walk, many))
            names = [o.nominal for o in some]
            sights = await look_at(mine.series, min(names, default=0), max(names, default=0) + 1)
            for occurrence in some:
                while free and _comes_first(mine, free[0], occurrence):
                    answer = await self._take_free(free.pop(0), unsettled)
                    if answer is not None:
                        return await self._standing_at(mine, place, answer)
                kind = sights.wanted(occurrence, mine.wanted, mine.asked_at)
                answer = None if kind is None else await self._take_window(mine, occurrence, kind, unsettled)
                if not isinstance(answer, Idle):
                    place = place_after(mine, occurrence)
                if answer is not None:
                    return await self._standing_at(mine, place, answer)
            if len(some) < many:
                break
        else:
            return await self._standing_at(mine, place, self._idle(more=True))
        for run in free:
            answer = await self._take_free(run, unsettled)
            if answer is not None:
                return await self._standing_at(mine, place, answer)
        return await self._standing_at(mine, place, await self._ended(mine, unsettled))

    async def _standing_at(self, mine: Backfill, place: int, answer: Taken | Idle) -> Taken | Idle:
        if place != mine.place:
            await count(MOVE_PLACE, id=mine.id, place=place)
        return answer

    async def _take_free(self, run: Run, unsettled: list[Run]) -> Taken | Idle | None:
        """Take a run that it has opened before."""
        waits = self._waits_for(run.due, unsettled)
        if waits is not None:
            return self._idle(waits)
        return await self._answer(run.id, await take_row(self._known, run, self._claimer, heed_retry_time=True))

    async def _take_window(
        self, mine: Backfill, occurrence: Occurrence, kind: str, unsettled: list[Run]
    ) -> Taken | Idle | None:
        """Take a window beyond its place. None: it is not to be done after all, or somebody else does it."""
        waits = self._waits_for(occurrence.due, unsettled)
        if waits is not None:
            return self._idle(waits)
        freed = await self._freed(mine, occurrence, kind)
        if freed is not None:  # its own from here on, whoever takes it
            await count(ADOPT, **run_parameters(freed.id), backfill=mine.id)
        row = freed or await look_newest(mine.series, occurrence.nominal)
        run = RunId(mine.series, occurrence.nominal) if row is None else row.id
        assert self._known.series is not None
        window = occurrence if row is None else None  # what has a row has its bounds there (I8)
        taken = await take(self._known, self._known.series, window, run, row, self._claimer, heed_retry_time=True)
        if isinstance(taken, Claim):  # else it is live work's, which came first
            await count(ADOPT, **run_parameters(run), backfill=mine.id)
        return await self._answer(run, taken)

    async def _freed(self, mine: Backfill, occurrence: Occurrence, kind: str) -> Run | None:
        """The row of a window that was settled, or waited for a person, made free by the word of whoever asked for it.

        The line is held before its run is changed: whoever retires the line holds it, and then skips its runs.
        """
        self._known = await hold_line(self._known)
        word = Word(mine.by, f"backfill {mine.id}: {mine.reason}")
        row = await look_newest(mine.series, occurrence.nominal)
        if row is None:
            if kind == SKIPPED:
                await cut_out(RunId(mine.series, occurrence.nominal), word)
            return None
        try:
            if kind == FAILED:
                return await retry(row.id, word)
            if kind == SKIPPED:
                return await unskip(self._known, row.id, occurrence, word)
            if kind == COMPLETED:
                return await reopen(row.id, word)
        except NotAllowed:  # somebody was there meanwhile: take tells what it is now
            return None
        return None

    def _waits_for(self, due: int | None, unsettled: list[Run]) -> Run | None:
        """Of an ordered job: its run that has to be settled before one that was due then."""
        if not self._known.job.ordered:
            return None
        return next((run for run in unsettled if (run.due or 0) < (due or 0)), None)

    async def _answer(
        self, run: RunId, answer: Claim | AlreadyCompleted | Busy | NotDue | Refused
    ) -> Taken | Idle | None:
        if isinstance(answer, Claim):
            line = self._known.line
            assert line is not None
            if not self._known.job.overlap:
                await count(SHARE_TAKEN, line=line.id)
            row = answer.row or await look(answer.run)
            assert row is not None  # it was claimed just now
            return Taken(self._known, await key_of(answer.run), answer, row, line.next_due, self._number)
        if isinstance(answer, Busy) and answer.run != run:
            return self._idle(await look(answer.run))
        if isinstance(answer, NotDue):  # a clock that was set back: it comes due again, and is not passed over
            return self._idle()
        return None

    async def _ended(self, mine: Backfill, unsettled: list[Run]) -> Idle:
        """Nothing is left to take: the backfill is done, unless a run of it goes on, or is to be tried again later."""
        left = [run for run in unsettled if run.state in (states.OPEN, states.RUNNING) or run.retry_at is not None]
        if not left:
            said = "every window of it has been worked or settled"
            if not_owed := await self._not_owed(mine):
                said = f"{said}, but {not_owed} that come due after the line ended, and are not owed"
            await move(mine.id, "finish", "backfill_done", Word("duly", said))
        return self._idle(next((run for run in left if run.state != states.RUNNING), None))

    async def _not_owed(self, mine: Backfill) -> int:
        """How many windows it was asked for that its line, which has ended meanwhile, does not owe."""
        line = self._known.line
        assert line is not None
        if line.ends is None:
            return 0
        beyond_end = list(windows_not_owed(mine, await spells_of(self._known), line))
        names = [o.nominal for o in beyond_end]
        sights = await look_at(mine.series, min(names, default=0), max(names, default=0) + 1)
        return sum(sights.wanted(o, mine.wanted, mine.asked_at) is not None for o in beyond_end)


def _comes_first(mine: Backfill, run: Run, occurrence: Occurrence) -> bool:
    due = run.due or 0
    return due < occurrence.due if mine.direction == OLDEST else due > occurrence.due


def _is_free(run: Run, instant: int) -> bool:
    return run.state == states.OPEN or (run.retry_at is not None and run.retry_at <= instant)


def _counts_as_failure(mine: Backfill, run: Run) -> bool:
    """Whether a run of it needs a person, since it was started or resumed."""
    needs_a_person = run.waits_for_a_person or run.state == states.UNKNOWN
    return needs_a_person and (run.started_at or 0) >= mine.counts_from


async def _end_those_gone(mine: Backfill, but: RunId | None = None) -> list[Run]:
    """The unsettled runs of a backfill that is locked, after those whose holder is gone have been ended by contract."""
    unsettled = await every(UNSETTLED_OF_BACKFILL, Run, series=mine.series, backfill=mine.id)
    vanished = [run for run in unsettled if run.state == states.RUNNING and run.id != but and await gone(run)]
    if not vanished:
        return unsettled
    await one(LOCK_LINE_OF, int, series=mine.series)
    for run in vanished:
        await end_gone(run)
    return await every(UNSETTLED_OF_BACKFILL, Run, series=mine.series, backfill=mine.id)


async def admit(seen: Run, *, heed_pause: bool) -> Busy | RunPaused | None:
    """Whether a run that a backfill owes may be claimed now, by whoever names it; None: it may.

    A person who names it may work it while the backfill is paused: to see whether it works again.
    """
    assert seen.backfill is not None
    mine = await one(LOCK_BACKFILL, Backfill, id=seen.backfill)
    if mine is None or mine.state not in backfills.LIVE:
        return None
    if heed_pause and mine.state != backfills.ACTIVE:
        return RunPaused(f"backfill {mine.id} is {mine.state} by {mine.said_by}: {mine.said}; nothing was run")
    unsettled = await _end_those_gone(mine, seen.id)
    running = [run for run in unsettled if run.state == states.RUNNING and run.id != seen.id]
    if len(running) < mine.concurrency:
        return None
    return Busy(running[0].id, running[0].lease_until or 0, running[0].owner or "")
