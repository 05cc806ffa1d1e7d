"""Actions: what may be changed through the dashboard; a file for each kind of thing that is changed."""

from __future__ import annotations

from duly.web.actions import of_backfill, of_message, of_run

ACTIONS = (*of_run.ACTIONS, *of_message.ACTIONS, *of_backfill.ACTIONS)
