"""Reads: what the API answers; a file for each kind of thing that is looked at."""

from __future__ import annotations

from duly.web.api.reads import of_backfills, of_jobs, of_lines, of_messages, of_runs

# One whose path is the beginning of another's stands after it.
READS = (
    *of_lines.READS,
    *of_jobs.READS,
    *of_runs.READS,
    *of_messages.READS,
    *of_backfills.READS,
)
