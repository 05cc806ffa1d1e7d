"""Probes of runs in an event loop: the twin of `work.probe`."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from duly.ledger.probe import hold_question, in_doubt, record_finding
from duly.work.identity import new_attempt_id, owner
from duly.work.probe import ASKING_SECONDS, Probed, word_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.records import RunId
    from duly.store.protocol import AsyncStore
    from duly.work.probe import Probe


async def ask_about_all(
    store: AsyncStore, job: str, scope: str | None, probe: Probe, *, is_over: Callable[[], bool]
) -> list[Probed]:
    """Ask about runs of a job that are in doubt: as `work.probe.ask_about_all`."""
    until = monotonic() + ASKING_SECONDS
    probed = []
    for row in await store.read(in_doubt(job, scope, probe_after=probe.after)):
        if is_over():
            break
        if (each := await ask_about(store, row.id, probe)) is not None:
            probed.append(each)
        if monotonic() >= until:
            break
    return probed


async def ask_about(store: AsyncStore, run: RunId, probe: Probe) -> Probed | None:
    """Ask about one run: as `work.probe.ask_about`."""
    question = await store.write(hold_question(run, new_attempt_id(), lease=probe.lease, probe_after=probe.after))
    if question is None:
        return None
    found = await probe.finding_async(question, store.namespace)
    state = await store.write(record_finding(question, word_of(found, question, probe), by=owner()))
    return Probed(str(question.key), state, words_of(found))
