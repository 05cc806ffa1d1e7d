"""duly and Celery: the names that an application imports. docs/celery.md says what to do with them.

from duly.celery import carry, task_of

carry(app, ledger)                                   its workers make attempts; `duly daemon … --celery` asks them to
credit_task = task_of(app, credit)                   a task that works the window for which beat, or a caller, sends it
"""

from __future__ import annotations

from duly.trigger.celery import task_of
from duly.work.daemon.celery import carry

__all__ = ["carry", "task_of"]
