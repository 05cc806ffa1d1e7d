"""Invariants: what must hold of every history, whoever stepped when and whatever went wrong.

Each is a function that yields a complaint where it is broken. They look at what any reader of the database could have seen
after each commit (`history.sights`), at the rows that are left, and at what the actors were told. I1 to I12 are those of the
design.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeAlias

from duly.errors import Conflict, DulyError, LedgerBusy, OutcomeUnknown, RunFailed
from duly.ledger import message_states, states
from duly.ledger.records import AlreadyCompleted, Claim, NotDue, Run, RunId
from duly.testing.histories.play import History
from duly.testing.histories.points import READ_COMMITTED
from duly.testing.histories.stage import Seen, SeenMessage

Invariant: TypeAlias = Callable[[History], Iterator[str]]

COMPLETE = (states.COMPLETED, states.REPLACED)


def at_most_one_completion(history: History) -> Iterator[str]:
    """I1: at most one completion per run key and revision."""
    completed = Counter(e.run for e in history.attempts if e.attempt.outcome == "completed")
    for run, times in completed.items():
        if times > 1:
            yield f"{run} was completed {times} times"
    for seen in history.sights[-1]:
        if seen.run.state in COMPLETE and not completed[seen.run.id]:
            yield f"{seen.run.id} is {seen.run.state}, and no attempt completed it"


def effects_and_completions_commit_together(history: History) -> Iterator[str]:
    """I1: a local effect is committed if and only if its completion is. I2: no effect of an attempt that lost its claim."""
    effects = Counter(history.effects)
    ours = {
        e.attempt.attempt_id for e in history.attempts if e.attempt.outcome == "completed" and e.attempt.error is None
    }
    for attempt_id, times in effects.items():
        if times > 1:
            yield f"{times} effects of {attempt_id!r}"
        if attempt_id not in ours:
            yield f"an effect of {attempt_id!r}, which completed nothing"
    given = {seen.run.attempt_id for seen in history.sights[0] if seen.run.state in COMPLETE}
    if effects:  # a race without effects has none to miss
        for attempt_id in ours - set(effects) - given:
            yield f"{attempt_id!r} completed its run without its effect"


def only_the_holder_ends_its_run(history: History) -> Iterator[str]:
    """I2: whatever ends an attempt names its id and its number; a fenced one ends nothing."""
    for before, after in _changes(history):
        if before is None or before.run.state not in (states.RUNNING, states.UNKNOWN):
            continue
        same_attempt = before.run.attempt_id == after.run.attempt_id
        if before.run.fence == after.run.fence and not same_attempt:
            yield f"{_change(before, after)} by {after.run.attempt_id!r}, which is not its attempt"
        if same_attempt and after.run.state == states.RUNNING and after.run.fence != before.run.fence:
            yield f"{_change(before, after)}: the number of an attempt changed"
    seen = {(each.run.id, each.run.fence, each.run.attempt_id) for sight in history.sights for each in sight}
    numbers = {(run, number) for run, number, _ in seen}
    for ended in history.attempts:
        named = (ended.run, ended.attempt.number)
        if named in numbers and (*named, ended.attempt.attempt_id) not in seen:
            yield f"{ended.run} was ended by {ended.attempt.attempt_id!r}, which never held it as number {named[1]}"


def a_live_holder_is_not_taken_over(history: History) -> Iterator[str]:
    """I3, I4: another attempt may take a run when its holder's lease has lapsed, by the database's clock, and not before.

    A renewal that commits after it was judged is too late: that holder learns of it at its next one.
    """
    leases: dict[bytes | None, int] = {}
    for before, after in _changes(history):
        for seen in (before, after):
            if seen is not None:
                until = seen.run.lease_until or 0
                leases[seen.run.attempt_id] = min(until, leases.get(seen.run.attempt_id, until))
        if before is None or before.run.state != states.RUNNING or before.run.attempt_id == after.run.attempt_id:
            continue
        if leases[before.run.attempt_id] > (after.run.started_at or 0):
            yield f"{_change(before, after)}: taken over while its holder's lease lasted"


def fences_only_rise(history: History) -> Iterator[str]:
    """I3: the fence of a run only rises, and a new attempt has a new number."""
    for before, after in _changes(history):
        if before is None:
            continue
        if after.run.fence < before.run.fence:
            yield f"{_change(before, after)}: the fence fell from {before.run.fence} to {after.run.fence}"
        if before.run.attempt_id not in (None, after.run.attempt_id) and after.run.fence == before.run.fence:
            yield f"{_change(before, after)}: a new attempt under the old number {after.run.fence}"


def unknown_is_never_taken(history: History) -> Iterator[str]:
    """I5: a run whose outcome is unknown is never taken again until its attempt, a probe or a person says what happened."""
    for before, after in _changes(history):
        if before is not None and before.run.state == states.UNKNOWN and before.run.attempt_id != after.run.attempt_id:
            yield f"{_change(before, after)}: an unknown run got another attempt"


def what_is_cancelled_is_not_tried_again(history: History) -> Iterator[str]:
    """A request to stop means the attempt that was being made then, and after it nothing is tried again by policy."""
    for before, after in _changes(history):
        if before is None:
            continue
        was = before.run
        if after.run.cancel_number not in (None, was.cancel_number) and (
            (after.run.cancel_number, after.run.attempt_id) != (was.fence, was.attempt_id)
            or was.state != states.RUNNING
        ):
            yield f"{_change(before, after)}: attempt {after.run.cancel_number} was asked to stop, which was not being made"
        if was.cancel_is_asked and was.state in (states.RUNNING, states.UNKNOWN):
            if after.run.fence > was.fence:
                yield f"{_change(before, after)}: it was asked to stop, and another attempt was made"
            if after.run.state == states.OPEN or (after.run.state == states.FAILED and after.run.retry_at is not None):
                yield f"{_change(before, after)}: it was asked to stop, and is to be tried again"


def payload_is_fixed(history: History) -> Iterator[str]:
    """I6: the payload is fixed by the first claim; only a person's retry of a failed run with a new one mends it."""
    for before, after in _changes(history):
        if before is not None and before.run.payload not in (None, after.run.payload):
            by_a_person = before.run.state == states.FAILED and after.run.payload is None
            if not by_a_person:
                yield f"{_change(before, after)}: payload {before.run.payload!r} became {after.run.payload!r}"


def nothing_below_the_horizon_is_executed(history: History) -> Iterator[str]:
    """I7: nothing below the horizon is ever executed."""
    for before, after in _changes(history):
        began = after.run.fence > (0 if before is None else before.run.fence) and after.run.state != states.REPLACED
        absent_or_open = before is None or before.run.fence == 0
        if began and absent_or_open and after.run.nominal < after.horizon:
            yield f"{after.run.id} lies below the horizon and was executed"


def nothing_after_the_end_is_executed(history: History) -> Iterator[str]:
    """What comes due of a line after it has ended is not executed, unless it had its row before."""
    for before, after in _changes(history):
        due, ends = after.run.due, after.ends
        if before is None and after.run.fence > 0 and due is not None and ends is not None and due >= ends:
            yield f"{after.run.id} comes due after its line ended, and was executed"


def sealed_windows_never_change(history: History) -> Iterator[str]:
    """I8: a window whose first attempt has started, or that has ended, never changes."""
    for before, after in _changes(history):
        if before is None or before.run.window_end is None:
            continue
        sealed = before.run.fence > 0 or before.run.window_end <= before.at
        bounds = [(seen.run.window_start, seen.run.window_end) for seen in (before, after)]
        if sealed and bounds[0] != bounds[1]:
            yield f"{after.run.id}: {bounds[0]} became {bounds[1]}"


def windows_tile_time(history: History) -> Iterator[str]:
    """I9: the windows of a line tile time: no overlap anywhere, and no gap between two that follow each other."""
    for sight in history.sights:
        windows = sorted(
            (seen.line, seen.run.window_start, seen.run.window_end, seen.run.nominal)
            for seen in sight
            if seen.run.revision == 1 and seen.run.window_start is not None and seen.run.window_end is not None
        )
        for (line, start, end, nominal), (other, next_start, _, next_nominal) in pairwise(windows):
            if line != other:
                continue
            follows = next_nominal - nominal == 2 * (end - start) // 1_000_000
            if next_start < end or (follows and next_start != end):
                yield f"a window of line {line} ends at {end}, and the next one starts at {next_start}"


def every_change_is_in_the_table(history: History) -> Iterator[str]:
    """I10: a run changes only as the table of states says; what is not there does not exist."""
    moves = {(before, after) for event in states.TRANSITIONS.values() for before, after in event.items()}
    moves |= {(states.SKIPPED, was) for was in (states.OPEN, states.FAILED)}  # unskip: as before
    for before, after in _changes(history):
        move = states.ABSENT if before is None else before.run.state, after.run.state
        if move[0] != move[1] and move not in moves:
            yield f"{after.run.id} went from {move[0]} to {move[1]}"
    for sight in history.sights:
        live = Counter((s.run.series, s.run.nominal) for s in sight if s.run.state != states.REPLACED)
        yield from (f"{run} has two revisions that live" for run, times in live.items() if times > 1)


def every_attempt_ends_once_on_record(history: History) -> Iterator[str]:
    """I11: an attempt that ended has one row of its own, a lost one too; one that goes on has none."""
    rows: dict[RunId, set[int]] = {}
    for ended in history.attempts:
        rows.setdefault(ended.run, set()).add(ended.attempt.number)
    for seen in history.sights[-1]:
        expected = set(range(1, seen.run.fence + 1))
        if seen.run.state in (
            states.RUNNING,
            states.UNKNOWN,
            states.REPLACED,
        ):  # the last of these: by a person's number
            expected.discard(seen.run.fence)
        if rows.get(seen.run.id, set()) != expected:
            yield f"{seen.run.id} is {seen.run.state} at {seen.run.fence}; ended on record: {rows.get(seen.run.id)}"


def one_run_of_a_line_at_a_time(history: History) -> Iterator[str]:
    """Overlap is off: no two runs of a line are running with holders that live."""
    for sight in history.sights:
        held = Counter(seen.line for seen in sight if seen.is_held and not seen.overlap)
        yield from (f"{times} runs of line {line} are held at once" for line, times in held.items() if times > 1)


def a_backfill_keeps_its_bound(history: History) -> Iterator[str]:
    """No more runs of a backfill are running than it says, whoever claimed them; a holder that is gone counts until it ends."""
    for sight in history.sights:
        bounds = {seen.run.backfill: seen.bound for seen in sight if seen.bound is not None}
        running = Counter(seen.run.backfill for seen in sight if seen.run.state == states.RUNNING)
        for number, bound in bounds.items():
            if running[number] > (bound or 0):
                yield f"{running[number]} runs of backfill {number} are running, which does {bound} at a time"


def a_run_that_waits_for_a_person_is_not_taken(history: History) -> Iterator[str]:
    """A failure without a retry time waits for a person; no attempt takes it before."""
    for before, after in _changes(history):
        if before is not None and before.run.waits_for_a_person and after.run.fence > before.run.fence:
            yield f"{_change(before, after)}: nobody had said that it may be tried again"


def answers_are_true(history: History) -> Iterator[str]:
    """I12: whoever was told that it has a claim, or that a run is complete, was told what somebody could have seen."""
    ever = [seen.run for sight in history.sights for seen in sight]
    for answer in history.told:
        match answer:
            case Claim(run=run, attempt_id=attempt_id):
                if not any(r.id == run and r.attempt_id == attempt_id for r in ever):
                    yield f"{attempt_id!r} was told that it has a claim, and never had it"
            case AlreadyCompleted(run=run):
                if not any(r.id == run and r.state in (*COMPLETE, states.SKIPPED) for r in ever):
                    yield f"{run} was said to be complete, and never was"


def errors_mean_what_they_say(history: History) -> Iterator[str]:
    """I12: what the database raises comes out as an error of duly's; and at READ COMMITTED nobody meets a deadlock.

    All operations lock in one order: backfill, line, series, run, what lies under it.
    """
    for actor in history.actors:
        if actor.error is not None and not isinstance(actor.error, DulyError):
            yield f"{actor.name} was told {actor.error!r}"
    if not any(READ_COMMITTED not in line.what and line.what.startswith("begin ") for line in history.lines):
        for error in history.errors:
            if isinstance(error, Conflict) and not isinstance(error, LedgerBusy):
                yield f"transactions met in a ring: {error}"


def no_run_is_stuck(history: History) -> Iterator[str]:
    """When all are gone and the leases are over, a fresh take works each run, or says what a person has to do."""
    for run, answer in history.afterwards:
        if isinstance(answer, Claim) and run.state != states.UNKNOWN:
            continue
        if isinstance(answer, OutcomeUnknown) and run.state in (states.UNKNOWN, states.RUNNING):
            continue
        was_cancelled = run.state == states.RUNNING and run.cancel_is_asked
        if isinstance(answer, RunFailed) and (run.waits_for_a_person or was_cancelled):
            continue
        if (
            isinstance(answer, NotDue) and run.state == states.OPEN and run.due == answer.due
        ):  # opened ahead, by an edit
            continue
        yield f"{run.id} is {run.state}, and a fresh take answers {answer!r}"


def a_message_changes_as_the_table_says(history: History) -> Iterator[str]:
    """I10 for messages: what is not in their table does not exist, and nothing leads out of a settled state."""
    moves = {(before, after) for event in message_states.TRANSITIONS.values() for before, after in event.items()}
    # A relay takes over in one transaction what it finds to have vanished.
    moves.add((message_states.SENDING, message_states.SENDING))
    for before, after in _mail_changes(history):
        was = message_states.ABSENT if before is None else before.message.state
        if was != after.message.state and (was, after.message.state) not in moves:
            yield f"{_letter(after)} went from {was} to {after.message.state}"


def a_message_is_with_one_attempt(history: History) -> Iterator[str]:
    """I2, I3 for messages: a new attempt has a new number, and none begins while another's lease lasts."""
    for before, after in _mail_changes(history):
        if before is None:
            continue
        was, now = before.message, after.message
        if now.fence < was.fence or (now.fence == was.fence and now.attempt_id != was.attempt_id):
            yield f"{_letter(after)}: attempt {was.attempt_id!r} at {was.fence} became {now.attempt_id!r} at {now.fence}"
        began = now.fence > was.fence and was.state == message_states.SENDING
        if began and (was.lease_until or 0) > (now.started_at or 0):
            yield f"{_letter(after)} was taken while the lease of its attempt lasted"


def messages_go_in_order(history: History) -> Iterator[str]:
    """A message begins when those before it are settled; and the first that is not settled is never left lying."""
    for sight in history.mail:
        first: dict[RunId, int] = {}
        for seen in sight:
            message, run = seen.message, seen.message.id.run
            if message.is_settled:
                continue
            if run not in first:
                first[run] = message.number
                if message.state == message_states.PENDING and message.due_at is None:
                    yield f"{_letter(seen)} is the next of its run, and nobody will come for it"
            elif message.fence:
                yield f"{_letter(seen)} was begun before number {first[run]}"


def a_message_has_its_run(history: History) -> Iterator[str]:
    """I1, I7: a message is there if its run is complete, and the run stays as it is until the message is settled."""
    for sight in history.mail:
        for seen in sight:
            if seen.run_state not in COMPLETE and not (seen.message.is_settled and seen.run_state is None):
                yield f"{_letter(seen)} is {seen.message.state}, and its run {seen.run_state}"
            if not seen.message.is_settled and seen.run_state != states.COMPLETED:
                yield f"{_letter(seen)} is {seen.message.state}, and its run was {seen.run_state} meanwhile"
            if not seen.message.is_settled and seen.message.nominal < seen.horizon:
                yield f"{_letter(seen)} is {seen.message.state} below the horizon"


def what_nobody_remembers_is_not_sent_again(history: History) -> Iterator[str]:
    """I5 for messages: one that is unknown is begun again only where its receiver remembers its key."""
    if "remembered" in history.race:
        return
    for before, after in _mail_changes(history):
        was_unknown = before is not None and before.message.state == message_states.UNKNOWN
        if before is not None and was_unknown and after.message.fence > before.message.fence:
            yield f"{_letter(after)} was unknown, and was sent again"
    for sight in history.mail:
        for seen in sight:
            message = seen.message
            if message.doubt_number is not None and message.fence > message.doubt_number:
                yield f"{_letter(seen)}: attempt {message.fence} began while {message.doubt_number} was in doubt"


def _mail_changes(history: History) -> Iterator[tuple[SeenMessage | None, SeenMessage]]:
    """Each message that a commit changed, as it was seen before it and after."""
    for before, after in pairwise(history.mail):
        known = {seen.message.id: seen for seen in before}
        for seen in after:
            was = known.get(seen.message.id)
            if was is None or was.message != seen.message:
                yield was, seen


def _letter(seen: SeenMessage) -> str:
    return f"message {seen.message.name} of {seen.message.id.run}"


INVARIANTS: tuple[Invariant, ...] = (
    at_most_one_completion,
    effects_and_completions_commit_together,
    only_the_holder_ends_its_run,
    a_live_holder_is_not_taken_over,
    fences_only_rise,
    unknown_is_never_taken,
    what_is_cancelled_is_not_tried_again,
    payload_is_fixed,
    nothing_below_the_horizon_is_executed,
    nothing_after_the_end_is_executed,
    sealed_windows_never_change,
    windows_tile_time,
    every_change_is_in_the_table,
    every_attempt_ends_once_on_record,
    one_run_of_a_line_at_a_time,
    a_backfill_keeps_its_bound,
    a_run_that_waits_for_a_person_is_not_taken,
    answers_are_true,
    errors_mean_what_they_say,
    no_run_is_stuck,
    a_message_changes_as_the_table_says,
    a_message_is_with_one_attempt,
    messages_go_in_order,
    a_message_has_its_run,
    what_nobody_remembers_is_not_sent_again,
)


def _changes(history: History) -> Iterator[tuple[Seen | None, Seen]]:
    """Each run that a commit changed, as it was seen before it and after."""
    for before, after in pairwise(history.sights):
        known = {seen.run.id: seen for seen in before}
        for seen in after:
            was = known.get(seen.run.id)
            if was is None or was.run != seen.run:
                yield was, seen


def _change(before: Seen, after: Seen) -> str:
    return f"{_named(before.run)} → {_named(after.run)}"


def _named(run: Run) -> str:
    return f"{run.id} {run.state} at {run.fence}"
