"""Beat with its schedule in Django's database: the scheduler of django-celery-beat, whose messages say what they mean.

    beat_scheduler = "duly.trigger.celery.django_beat:Scheduler"

A crontab there has a zone of its own, which goes with its message. What else counts is said in `beat`.
"""

from __future__ import annotations

from django_celery_beat.schedulers import DatabaseScheduler

from duly.trigger.celery.beat import Meaning


class Scheduler(Meaning, DatabaseScheduler):  # type: ignore[misc]
    """The scheduler of django-celery-beat, whose messages say what they mean."""
