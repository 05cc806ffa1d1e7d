"""A job in words: its policies, and the pauses that are in force. The same at every door."""

from __future__ import annotations

from duly.evidence.documents.job import span_text
from duly.ledger.records import own_pause, pause_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.jobs import JobSeen
    from duly.ledger.records import Job


def pauses(seen: JobSeen, now: int) -> list[str]:
    """The pauses that are in force: of the job as a whole, and of each scope by itself."""
    whole = own_pause(seen.lines[0].job)
    words = [pause_words(whole)] if whole is not None and whole.covers(now) else []
    for line in (known.line for known in seen.lines):
        own = own_pause(line)
        if line is not None and own is not None and own.covers(now):
            words.append(f"{line.scope or '(none)'}: {pause_words(own)}")
    return words


def policies(row: Job) -> list[tuple[str, str]]:
    """The policies of a job, each with its name."""
    remembers = "" if row.contract != "idempotent" else f", remembers {span_text(row.remembers) or 'forever'}"
    retries = (
        "none"
        if not row.retries
        else f"{row.retries}, from {span_text(row.retry_delay)} doubling to {span_text(row.retry_ceiling)}"
    )
    facts = [
        ("catch-up", row.catch_up),
        ("contract", f"{row.contract}{remembers}"),
        ("retries", retries),
        ("grace", span_text(row.grace) or "a tenth of the period, at most 1h"),
        ("timeout", span_text(row.timeout) or "none"),
        ("lease", span_text(row.lease) or ""),
        ("retain", span_text(row.retain) or "forever"),
        ("overlap", "yes" if row.overlap else "no"),
        ("ordered", "yes" if row.ordered else "no"),
    ]
    return [*facts, ("owner", row.owner)] if row.owner else facts
