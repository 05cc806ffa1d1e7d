"""Kubernetes: a CronJob's Job is named after the time for which it was made.

The controller appends that time to the CronJob's name: unix minutes since Kubernetes 1.21, unix seconds by the old controller
(kubernetes/kubernetes, pkg/controller/cronjob/utils.go, getJobName; issue 108609). The Pod learns its Job's name by the
downward API, from the label `batch.kubernetes.io/job-name` (`job-name` before 1.27):

    env:
      - {name: JOB_NAME, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}}
      - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}

A Job with any other name was made by a person (`kubectl create job --from=cronjob/…`). A Pod that follows a failed one is of
the same Job, so it is for the same window. Nothing tells which Pod was the first: that is what the fence is for.
"""

from __future__ import annotations

import re

from duly.errors import TriggerUnclear
from duly.times import MINUTE, SECOND
from duly.trigger import MANUAL, SCHEDULED, Firing, Meant, optional_name_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = "kubernetes"

# Unix minutes of eight digits since 2016, when CronJobs came, and seconds of ten below those that look like an hour of this
# century. Other digits are a person's, as in `nightly-20261128` and `nightly-2026112802`.
_UNITS = {8: (MINUTE, range(24_193_440, 10**8)), 10: (SECOND, range(1_451_606_400, 2_000_000_000))}

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")  # of an object (RFC 1123)


def read(environment: Mapping[str, str]) -> Firing:
    """What the names of its Job and Pod tell. Raises `TriggerUnclear` where the Pod does not know its Job's name."""
    job = environment.get("JOB_NAME", "")
    if not job:
        raise TriggerUnclear(
            "JOB_NAME is not set, and a Pod knows its Job by it: add it to the container's env, from the field"
            " metadata.labels['batch.kubernetes.io/job-name']"
        )
    if not _NAME.fullmatch(job):
        raise TriggerUnclear(f"JOB_NAME: {shown(job)} is no name that a Job can have")
    pod = optional_name_of("POD_NAME", environment.get("POD_NAME") or environment.get("HOSTNAME"))
    cronjob, _, suffix = job.rpartition("-")
    unit, plausible = _UNITS.get(len(suffix), (0, range(0)))
    if not (cronjob and suffix.isdigit() and int(suffix) in plausible):
        return Firing(SOURCE, MANUAL, job, pod, "the Job's name, which no CronJob gives", None)
    at = int(suffix) * unit
    if at % MINUTE:
        raise TriggerUnclear(
            f"JOB_NAME: {job!r} ends with unix seconds that are no whole minute, and a CronJob fires on minutes:"
            " was it made by hand?"
        )
    return Firing(SOURCE, SCHEDULED, job, pod, "the end of the Job's name", Meant(at))
