"""Explain in words: sentences, in the order of what a person wants to know who was woken by it.

What the schedule says; what the window is and when it came due; what happened, in the order in which it did; its messages,
in theirs; and last the decision: what stands now, and what the next poke makes of it.
"""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.explain import Explanation
from duly.evidence.explain_messages import message_sentences
from duly.evidence.runs import Attempt, Told
from duly.evidence.verdict import grace_text
from duly.evidence.words import ago, printable, span
from duly.ledger import backfill_states, states
from duly.ledger.cancel import ASKED
from duly.ledger.contracts import CANCELLED
from duly.ledger.records import Run, Version, pause_of, pause_words
from duly.ledger.register import schedule_of
from duly.schedule.versions import what_changes
from duly.times import HOUR, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.events import Event


def sentences(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """The explanation, a sentence an item, in order. Pure. `at` puts an instant in words."""
    return [
        *_of_schedule(told, at),
        *_of_window(told, at),
        *_of_backfill(told, at),
        *_of_history(told, at),
        *message_sentences(told.sent, at),
        *_of_decision(told, at),
    ]


def _of_schedule(told: Explanation, at: Callable[[int], str]) -> list[str]:
    job, counted_by = told.window.known.job, told.window.known.version
    version = next((version for version in told.versions if version.number == job.version), None)
    if version is None or counted_by is None:
        return [f"{job.name} has no schedule: its runs are those that somebody names."]
    said = [f"{job.name} is {version.words}."]
    if version.number > 1:
        said.append(
            f"That is version {version.number}, which answers for windows that end after {at(version.effective_from)}."
        )
    row = told.window.row
    belongs_to = counted_by.number if row is None or row.version is None else row.version
    older = next((v for v in told.versions if v.number == belongs_to != version.number), None)
    if older is None:
        return said
    said.append(f"This window belongs to version {older.number}: {older.words}.")
    if (older.zone, older.grain) != (version.zone, version.grain):
        changes = ", ".join(what_changes(schedule_of(older), schedule_of(version))[: _series_changes(older, version)])
        said.append(f"Since then the schedule has {changes}; this window keeps its key, and what is owed of it.")
    return said


def _series_changes(older: Version, version: Version) -> int:
    return (older.zone != version.zone) + (older.grain != version.grain)


def _of_window(told: Explanation, at: Callable[[int], str]) -> list[str]:
    window = told.window
    name = window.key.middle
    if window.key.grain == "adhoc":
        return [f"{name} is a run outside the schedule."]
    bounds, due = window.bounds, window.due
    if bounds is None and due is not None:
        return [f"{name} has no time of its own."]
    if bounds is None or due is None:
        return [f"{name} was named by a caller; no schedule gave it a window or a due time."]
    comes = "came" if due <= told.as_of else "comes"
    occurrence = window.occurrence
    resolution = window.row.resolution if window.row is not None else None
    night = _night(resolution or ("exact" if occurrence is None else occurrence.resolution))
    said = [
        f"{name} answers for {at(bounds[0])} to {at(bounds[1])}, {length(bounds)}.",
        f"It {comes} due at {at(due)}, {ago(due, told.as_of)}.",
    ]
    if _is_seam(told, bounds[0]):
        said.append("It is the seam: it begins where the last window of the schedule before it ends.")
    return [*said, night] if night else said


def _is_seam(told: Explanation, start: int) -> bool:
    """Whether a window that starts there is the first one of the version that it belongs to."""
    row, counted_by = told.window.row, told.window.known.version
    number = row.version if row is not None else None if counted_by is None else counted_by.number
    return any(v.number == number and v.effective_from and v.effective_from == start for v in told.versions)


def length(bounds: tuple[int, int]) -> str:
    """How long a window is: in hours, where it is whole ones."""
    micros = bounds[1] - bounds[0]
    return f"{micros // HOUR} h" if micros % HOUR == 0 else duration_text(micros)


def _night(resolution: str) -> str:
    return {
        "gap-shifted": "Its wall-clock time does not exist that day: the clocks skip it.",
        "fold-first": "Its wall-clock time exists twice that day; this is the first.",
        "fold-second": "Its wall-clock time exists twice that day; this is the second.",
    }.get(resolution, "")


def _of_backfill(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """Who asked for it beside the schedule, and what has become of that."""
    mine = told.backfill
    if mine is None:
        return []
    asked = f"Backfill {mine.id} asked for it: {mine.asked}, by {mine.by} at {at(mine.asked_at)}: {mine.reason}."
    if mine.state in (backfill_states.ACTIVE, backfill_states.DONE):
        return [asked]
    return [f"{asked[:-1]}; it is {mine.state}, by {mine.said_by}: {mine.said}."]


def _of_history(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """What happened, in the order in which it did; an attempt stands where it began."""
    happened: list[tuple[int, int, str]] = []
    several = len(told.history.revisions) > 1
    for row in told.history.revisions:
        if row.fence == 0 or row.opened_at < (row.first_started_at or 0) or row.revision > 1:
            which = f"Revision {row.revision} was" if several else "It was"
            happened.append((row.opened_at, 0, f"{which} opened at {at(row.opened_at)}."))
    happened += [(a.ended.started_at, 1, _of_attempt(told, a, several, at)) for a in told.history.attempts]
    happened += [
        (t.event.at, 2, _of_event(t, at)) for t in told.history.events if t.event.kind not in _TOLD_BY_SENDINGS
    ]
    happened += [(event.at, 3, _of_pause(told, event, at)) for event in told.paused]
    return [sentence for _, _, sentence in sorted(happened, key=lambda one: one[:2])]


def _of_attempt(told: Explanation, attempt: Attempt, several: bool, at: Callable[[int], str]) -> str:
    ended, request = attempt.ended, told.history.request_to(attempt)
    progress = attempt.progress
    far = "" if progress is None else f" It said {ago(progress.at, told.as_of)} that it had done {progress.words}."
    asked = "" if request is None else f" {request.by} asked it to stop: {attempt.became_of(request)}."
    which = f"Attempt {ended.number} of revision {attempt.revision}" if several else f"Attempt {ended.number}"
    began = f"{which} began at {at(ended.started_at)} (by {ended.owner}, started by {ended.trigger}, contract {ended.contract})"
    if ended.ended_at is None:
        doubt = f"; nobody knows how it ended: {ended.error}" if ended.outcome == states.UNKNOWN else ""
        return f"{began} and has not reported an end{doubt}.{far}{asked}"
    if ended.attempt_id in told.was_resolved:
        return f"{began} and reported no end that could be believed; it was said later.{far}{asked}"
    how = {"lost": "was lost", "released": "gave the run back", "cancelled": "was cancelled"}.get(
        ended.outcome, ended.outcome
    )
    error = f": {ended.error}" if ended.error else ""
    # Nobody saw it end, and another host cannot be looked at.
    late = _LATE[attempt.alive] if attempt.was_superseded else ""
    return f"{began} and {how} after {span(ended.ended_at - ended.started_at)}{error}.{far}{asked}{late}"


_LATE = {
    True: " It was superseded, and its process is alive still: what it reports is refused.",
    False: " It was superseded, and shows no pulse any more; what it reports after all is refused.",
    None: " It was superseded, and may be alive: what it reports is refused.",
}


_DID = {
    ASKED: "asked its attempt to stop",
    "unknown": "said that its outcome is unknown",
    "payload_refused": "was refused, with another payload than the first",
    "below_horizon": "was refused, for it lies below the horizon",
    "message_resolved": "resolved",
    "message_retried": "retried",
    "message_skipped": "skipped",
    "message_probed": "looked for",
    "message_late_word": "came too late with word of",
    "messages_discarded": "discarded its messages",
    "probed": "asked its probe",
    "put_off": "could not tell yet what became of it",
    "message_put_off": "could not tell yet what became of",
}

# What a relay makes of a sending is told with the message.
_TOLD_BY_SENDINGS = ("message_unknown", "message_refused", "message_dead")


def _of_event(told: Told, at: Callable[[int], str]) -> str:
    event = told.event
    who = f"At {at(event.at)} {event.by or 'duly'}"
    if event.kind in _DID and event.detail.startswith("message "):  # which says itself what it is of
        why = f"{'; ' if ': ' in event.detail else ': '}{event.reason}" if event.reason else ""
        return f"{who} {_DID[event.kind]} {event.detail}{why}."
    why = "; ".join(part for part in (event.reason, event.detail) if part)
    did = _DID.get(event.kind, f"{event.kind.replace('_', ' ')} it")
    return f"{who} {did}{': ' + why if why else ''}."


def _of_pause(told: Explanation, event: Event, at: Callable[[int], str]) -> str:
    why = "; ".join(part for part in (event.reason, event.detail) if part)
    return f"At {at(event.at)} {event.by} {event.kind} {told.window.key.job}: {why}."


def _of_decision(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """What stands now, and what the next poke makes of it."""
    window, row = told.window, told.window.row
    said, line = window.verdict, window.known.line
    assert line is not None
    if window.backfill is not None and said.word not in (verdict.RUNNING, verdict.UNKNOWN, verdict.FAILED):
        return [*_of_vanished(told, at), _owed_by_backfill(told, window.backfill)]
    match said.word:
        case verdict.COMPLETE if row is not None:
            when = f" since {at(row.settled_at)}" if row.settled_at is not None else ""
            return [*_left(told, row), f"So it is complete{when}, and nothing will run it again."]
        case verdict.UNDELIVERED:
            then = "a person has to say what becomes of them" if said.stuck else "a relay delivers them"
            return [
                *_left(told, row),
                f"So its effect is there, and not all of its messages are: {said.note}; {then}, and nothing will run it again.",
            ]
        case verdict.SKIPPED if row is None and told.skipped is not None:
            who = f"by {told.skipped.by or 'duly'} at {at(told.skipped.at)}"
            return [
                f"It never had a row: it lies in a range that was skipped {who} ({told.skipped.reason}).",
                "So nothing runs it, unless somebody unskips it.",
            ]
        case verdict.SKIPPED:
            return [f"It was skipped ({said.note}).", "So nothing runs it, unless somebody unskips it."]
        case verdict.PRUNED:
            return [f"It lies below the horizon: it was {said.note}, and it is never executed again."]
        case verdict.NOT_OWED:
            if said.note == verdict.AFTER_END and line.ends is not None:
                who = "" if told.end is None else f", by {told.end.by}: {told.end.reason}"
                return [f"It is not owed: {said.note} at {at(line.ends)}{who}.", "So nothing runs it."]
            began = f" at {at(line.starts)}" if line.starts is not None else ""
            return [
                f"It is not owed: {said.note}{began}.",
                "So no poke works it; `duly exec --window` can name it all the same, and a backfill ask for many.",
            ]
        case verdict.COMING:
            paused = pause_of(window.known, window.due or told.as_of)
            if paused is not None:
                return [f"So nothing is owed yet; and {window.key.job} is {pause_words(paused)}."]
            return ["So nothing is owed yet: a poke works it from its due time on."]
        case verdict.RUNNING if row is not None and row.lease_until is not None:
            late = f" It is late: its grace is {grace_text(window)}." if said.late else ""
            if row.cancel_is_asked:
                return [
                    f"So it is running still, and may be alive; {_hears(told)}. Nothing tries again by itself.{late}"
                ]
            return [
                f"So it is running; its lease lasts until {at(row.lease_until)}, and nobody else may take it before.{late}"
            ]
        case verdict.UNKNOWN:
            return [
                *_of_vanished(told, at),
                *_of_asking(told, at),
                *_held(told, at),
                "So nothing runs it again until somebody says what happened: a second effect could be worse than none.",
            ]
        case verdict.FAILED:
            why = f"Nothing tries it again by itself: {_why_a_person(told)}."
            return [*_of_vanished(told, at), why, *_held(told, at), "So it waits for a person: retry it, or skip it."]
    return _of_owed(told, at)


def _owed_by_backfill(told: Explanation, number: int) -> str:
    mine = told.backfill
    if mine is None or mine.state == backfill_states.ACTIVE:
        return f"So backfill {number} owes it: whoever works that does it in its turn."
    return f"So backfill {number} owes it, and is {mine.state}: nothing works it until that is resumed."


def _of_vanished(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """Of a run that is running by its row alone: its holder is gone, and no poke has judged that yet."""
    row = told.window.row
    if (
        row is None
        or row.state != states.RUNNING
        or told.window.verdict.word == verdict.RUNNING
        or row.lease_until is None
    ):
        return []
    pulse = ", and its process shows no pulse" if told.holder_alive is False else ""
    return [f"Its lease was over at {at(row.lease_until)}{pulse}: whoever worked it is gone."]


def _why_a_person(told: Explanation) -> str:
    """Why nothing tries a failed run again by itself."""
    row, job = told.window.row, told.window.known.job
    if row is not None and row.cause == CANCELLED:
        return "a person stopped it"
    if row is not None and job.retries and row.failures > job.retries:
        return f"its {job.retries} retries are used" if job.retries > 1 else "its one retry is used"
    return "its end left no retry" if job.retries else f"{job.name} has no retries"


def _of_asking(told: Explanation, at: Callable[[int], str]) -> list[str]:
    if told.asked is None or told.asked.said is None:
        return []
    often = "once" if told.asked.asked == 1 else f"{told.asked.asked} times"
    again = f"; it is not asked again before {at(told.asked.next_at)}" if told.asked.next_at > told.as_of else ""
    return [f"Its probe was asked {often}, and said last that it {told.asked.said}{again}."]


def _hears(told: Explanation) -> str:
    """Whether an attempt that was asked to stop can have heard of that."""
    beat = told.window.known.job.lease // 3
    request = told.history.request_to(told.history.attempts[-1])
    if request is not None and told.as_of - request.at > beat:
        return "asked to stop, it has had time to hear of that, and has not ended"
    return f"asked to stop, it hears of that with a heartbeat, within {span(beat)}"


def _left(told: Explanation, row: Run | None) -> list[str]:
    """Where the completing attempt left its output, and its result, if it said."""
    return [
        f"Its {text.kind}: {printable(text.body)}."
        for text in told.history.texts
        if row is not None
        and (text.revision, text.number) == (row.revision, row.fence)
        and text.kind in ("output", "result")
    ]


def _of_owed(told: Explanation, at: Callable[[int], str]) -> list[str]:
    window, row = told.window, told.window.row
    line, job = window.known.line, window.key.job
    said = _of_vanished(told, at)
    if window.verdict.late:
        said.append(f"It is late: it has been due for longer than its grace, {grace_text(window)}.")
    if row is None and told.pause is None and line is not None and line.opened_until is not None:
        opened = f"its windows are open up to {at(line.opened_until)}"
        look = " Look at what calls duly for it." if window.verdict.unattended else ""
        said.append(f"Nothing has asked for the work of {job} since it came due: {opened}.{look}")
    said += _held(told, at)
    if row is not None and row.retry_at is not None and row.retry_at > told.as_of:
        again = f"from {at(row.retry_at)} on, {ago(row.retry_at, told.as_of)}{_which_retry(told)}"
        return [*said, f"So a poke takes it again {again}{_under_pause(told)}."]
    if told.pause is not None:
        return [*said, f"So nothing starts it: {job} is {pause_words(told.pause)}."]
    if told.dropped is not None:
        newest = (
            f", {told.newest}" if told.newest is not None and told.dropped.endswith("a newer window was due") else ""
        )
        return [*said, f"So the next poke skips it: {told.dropped}{newest}."]
    if told.in_the_way is not None:
        return [*said, f"So it is owed, and waits for {told.in_the_way}."]
    return [*said, "So it is owed: the next poke works it."]


def _which_retry(told: Explanation) -> str:
    """Which retry comes next; after a death that proves nothing none is counted."""
    row, retries = told.window.row, told.window.known.job.retries
    return f": retry {row.failures} of {retries}" if row is not None and retries and row.failures else ""


def _held(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """How far the line is complete, where this very window is what holds it."""
    through, bounds = told.completeness.through, told.window.bounds
    if through is None or bounds is None or bounds[0] != through or not told.window.verdict.needs_a_person:
        return []
    last = told.completeness.last
    beyond = (
        "" if last is None or last.window_end <= through else f", though later ones are up to {at(last.window_end)}"
    )
    return [f"{_line(told)} is complete through {at(through)}, where this window holds it{beyond}."]


def _line(told: Explanation) -> str:
    key = told.window.key
    return f"{key.scope}/{key.job}" if key.scope else key.job


def _under_pause(told: Explanation) -> str:
    return (
        "" if told.pause is None else f", unless it is paused then: {told.window.key.job} is {pause_words(told.pause)}"
    )
