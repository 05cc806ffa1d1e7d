"""Which events wake a daemon on PostgreSQL: each kind is put on one of two sides, so that a new one is not forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import duly

SOURCE = Path(duly.__file__).parent
KIND = re.compile(r"""(?:tell\(\s*|move\([^"]*?"\w+", |_tell\(|tell_of\(parcel, )"([a-z_]+)\"""")

# Nothing is to be worked because of them: they say what was decided, found, or is to stop.
QUIET = {
    "backfill_cancelled",
    "backfill_done",
    "backfill_paused",
    "backfill_stopped",
    "below_horizon",
    "cancel_asked",
    "job_retired",
    "keys_horizon_raised",
    "message_dead",
    "message_late_word",
    "message_refused",
    "message_unknown",
    "messages_doubted",
    "message_probed",
    "message_put_off",
    "paused",
    "payload_refused",
    "probed",
    "put_off",
    "range_skipped",
    "scope_retired",
    "scope_undeclared",
    "silenced",
    "skipped",
    "tz_drift",
    "unknown",
    "unsilenced",
    "window_moved",
}


def test_every_kind_of_event_wakes_a_daemon_or_is_known_not_to() -> None:
    source = "".join(path.read_text() for path in SOURCE.glob("ledger/*.py"))
    told = set(KIND.findall(source))
    sql = (SOURCE / "store" / "migrations" / "0001_ledger.postgres.sql").read_text()
    (listed,) = re.findall(r"when \(new\.kind in \(([^)]*)\)\)", sql)
    waking = set(re.findall(r"'(\w+)'", listed))

    assert {"retried", "resumed", "backfill_started"} <= told
    assert waking & QUIET == set()
    assert told - waking - QUIET == set()
    assert [kind for kind in waking if f'"{kind}"' not in source] == []
