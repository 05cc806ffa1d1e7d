"""Pages: one file each, all alike. `PAGES` is every page, in the order of the navigation; routes are tried in that order."""

from __future__ import annotations

from duly.web.pages import backfill, backfills, grid, job, lab, now, run, unknown

PAGES = (now.PAGE, grid.PAGE, unknown.PAGE, backfills.PAGE, lab.PAGE, backfill.PAGE, job.PAGE, run.PAGE)
