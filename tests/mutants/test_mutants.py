"""The suite is tested: a fault is planted in a copy of duly, and a test must find it.

Each fault is one that somebody made elsewhere, or that a reader might think harmless. `find` and `plant` are texts of the
file; where `find` is not there exactly as often as it is planted, the mutant is out of date and says so.

All of them take longer than all other tests together. So a run plants a share of them (tests/shares.py); `make mutants` plants
all. That each can be planted is looked at in every run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import duly
from tests.servers import Server

pytestmark = pytest.mark.mutants

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
SOURCE = Path(duly.__file__).parent


class Fault(NamedTuple):
    """A text to find in a file of duly, and what to plant in its place."""

    file: str
    find: str
    plant: str
    times: int = 1


class Mutant(NamedTuple):
    """What is wrong with it, how it is made, and the tests of which one must fail. Some need a server to be found."""

    name: str
    faults: tuple[Fault, ...]
    found_by: tuple[str, ...]
    on_postgres: bool = False


COMPLETE, TAKE, RESOLVE, OPEN = "ledger/complete.py", "ledger/take.py", "ledger/resolve.py", "ledger/open.py"
WINDOWS, VERSIONS = "ledger/windows.py", "ledger/versions.py"
BOUNDS, MEMORY = "ledger/bounds.py", "ledger/remembered.py"
REGISTER, SPELLS, POLICY = "ledger/register.py", "schedule/spells.py", "ledger/policy.py"
SERIES, LABELS = "tests/ledger/test_series.py::test_", "tests/ledger/test_labels.py::test_"
ENDS, RENAME = "ledger/ends.py", "ledger/rename.py"
ROSTER = "tests/ledger/test_roster.py::test_"
SCOPES = "tests/cli/test_jobs_scopes.py::test_"
REMEMBERED = "tests/ledger/test_remembered.py::test_"
IN_ZONES = "tests/ledger/test_remembered_in_zones.py::test_"
BACKFILL, BACKFILL_CLAIM = "ledger/backfill.py", "ledger/backfill_claim.py"
BACKFILLS = "tests/ledger/test_backfill.py::test_"
WAITS = "tests/work/test_waits.py::test_"
IN_LEDGER = "tests/ledger/test_take.py", "tests/ledger/test_take_over.py", "tests/ledger/test_people.py"
TAKING, TAKING_OVER, PEOPLE = (f"{file}::test_" for file in IN_LEDGER)
OWED = "tests/ledger/test_owed.py::test_"
CANCELLING = "tests/ledger/test_cancel.py::test_"
RULES = "tests/ledger/test_rules.py::test_"
TX = "tests/work/test_run_tx.py::test_"
TRIGGER = "store/migrations/0001_ledger.sqlite.sql"
IN_SQL = "tests/store/test_complete_in_sql.py::test_"
SQLALCHEMY, DJANGO = "store/borrowed/sqlalchemy.py", "store/borrowed/django.py"
LENT_BY_SQLALCHEMY, LENT_BY_DJANGO = (f"tests/borrowed/test_{name}.py::test_" for name in ("sqlalchemy", "django"))
HTTP, SMTP, INBOX = (f"outbox/destinations/{kind}.py" for kind in ("http", "smtp", "inbox"))
OF_HTTP, OF_SMTP, OF_INBOX, OF_COMMANDS = (
    f"tests/outbox/destinations/test_{kind}.py::test_" for kind in ("http", "smtp", "inbox", "command")
)


def history(race: str) -> str:
    """The test that tells every history of a race on a database, as `sqlite-take-complete`."""
    return f"tests/histories/test_races.py::test_every_history_of_two_keeps_the_invariants[{race}]"


MUTANTS = (
    Mutant(
        "the cause of a failure holds the message of an exception",
        (
            Fault(
                "work/job.py", "ending_of(job, claim, type(error).__qualname__, ", "ending_of(job, claim, str(error), "
            ),
        ),
        ("tests/secrets/test_nothing_leaks.py::test_no_secret_is_written_with_a_ledger_in_a_file",),
    ),
    Mutant(
        "the ledger keeps a payload",
        (
            Fault(
                "work/payload.py",
                "{sha256(canonical(payload, 'payload').encode('utf-8', 'surrogatepass')).hexdigest()}",
                "{canonical(payload, 'payload')}",
            ),
        ),
        ("tests/secrets/test_nothing_leaks.py::test_no_secret_is_written_with_a_ledger_in_a_file",),
    ),
    Mutant(
        "a ledger is named with its password",
        (
            Fault(
                "redaction.py",
                "    if not slashes:\n        return _without_words(url)",
                "    if True:\n        return url",
            ),
        ),
        ("tests/secrets/test_nothing_leaks.py::test_no_secret_is_written_with_a_ledger_in_a_file",),
    ),
    Mutant(
        "the outcome file and the ledger have the command that cannot be executed",
        (Fault("work/child.py", 'not any(sign.isspace() or sign in "=@" for sign in command)', "True"),),
        ("tests/secrets/test_nothing_leaks.py::test_no_secret_is_written_with_a_ledger_in_a_file",),
    ),
    Mutant(
        "kept output is not redacted",
        (Fault("work/kept.py", "redaction.of(text, start=start)", "text[start:]"),),
        ("tests/exec/test_keep_output.py::test_the_streams_are_shown_as_before_and_kept_apart_without_secrets",),
    ),
    Mutant(
        "kept output is cut before it is redacted",
        (Fault("work/kept.py", "redaction.of(text, start=start)", "redaction.of(text[start:])"),),
        ("tests/exec/test_keep_output.py::test_a_secret_across_a_cut_is_hidden",),
    ),
    Mutant(
        "what is kept grows with what comes",
        (
            Fault("work/kept.py", "while self._held - len(self._pieces[0]) >= self._most:", "while False:"),
            Fault("work/kept.py", "if len(self._pieces) > 64:", "if False:"),
        ),
        ("tests/exec/test_keep_output.py::test_no_more_than_its_share_is_ever_held",),
    ),
    Mutant(
        "exec waits for whoever holds the pipe",
        (Fault("work/kept.py", "PATIENCE_SECONDS = 0.5", "PATIENCE_SECONDS = 500.0"),),
        ("tests/exec/test_keep_output.py::test_what_outlives_the_command_holds_nobody_up",),
    ),
    Mutant(
        "the message of an exception is kept",
        (
            Fault(
                "work/exception.py",
                'return kind + (f" {state}" if state else "") + place',
                'return kind + (f" {state}" if state else "") + place + str(error)',
            ),
        ),
        ("tests/secrets/test_redaction.py::test_of_an_exception_type_and_place_are_kept_and_no_word_of_its_message",),
    ),
    Mutant(
        "PostgreSQL's DETAIL is kept",
        (Fault("redaction.py", "DETAIL|HINT", "HINT"),),
        ("tests/secrets/test_redaction.py::test_of_a_message_no_detail_is_kept",),
    ),
    Mutant(
        "a traceback shows a database's message",
        (
            Fault(
                "redaction.py", "said = state_of(error) or in_few_words(str(error))", "said = in_few_words(str(error))"
            ),
        ),
        ("tests/secrets/test_redaction.py::test_a_traceback_shows_no_secret_and_of_a_database_no_message",),
    ),
    Mutant(
        "a step to type shows the command as it was typed",
        (Fault("work/schedule_flags.py", "*command.words(words[place:])", "*words[place:]"),),
        ("tests/secrets/test_redaction.py::test_a_command_line_is_shown_without_its_secrets",),
    ),
    Mutant(
        "a step to type shows the ledger's password",
        (Fault("work/schedule_flags.py", "*ours.words(words[:place])", "*words[:place]"),),
        ("tests/secrets/test_redaction.py::test_a_command_line_is_shown_without_its_secrets",),
    ),
    Mutant(
        "a command in one word is named whole",
        (Fault("work/child.py", 'not any(sign.isspace() or sign in "=@" for sign in command)', "True"),),
        ("tests/secrets/test_redaction.py::test_a_command_line_in_one_word_is_not_named",),
    ),
    Mutant(
        "what is percent-encoded is not hidden",
        (Fault("redaction.py", '    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))\n', ""),),
        ("tests/secrets/test_redaction.py::test_what_is_declared_is_hidden_in_the_forms_that_programs_write_it_in",),
    ),
    Mutant(
        "what is in base64 is hidden at one place of three",
        (Fault("redaction.py", "for before in range(3):", "for before in range(1):"),),
        ("tests/secrets/test_redaction.py::test_what_is_declared_is_hidden_in_the_forms_that_programs_write_it_in",),
    ),
    Mutant(
        "a secret that was begun is left at the end",
        (Fault("redaction.py", "range(min(len(needle) - 1, len(text)), SHORTEST - 1, -1)", "range(0)"),),
        ("tests/exec/test_keep_output.py::test_a_secret_that_came_in_pieces_or_only_begun_is_hidden",),
    ),
    Mutant(
        "a row count decides whether a commit may happen",
        (
            Fault(COMPLETE, "       (select started_at\n", "       (select coalesce(max(started_at), 0)\n"),
            Fault(
                COMPLETE,
                "    await do(COMPLETE_IF_HELD, **claim_parameters(claim))\n",
                "    if not await count(COMPLETE_IF_HELD, **claim_parameters(claim)):\n        raise ClaimLost\n",
            ),
        ),
        (TX + "a_commit_after_a_lost_claim_finds_nothing_to_commit",),
    ),
    Mutant(
        "the refusal ends the statement and not the transaction",
        (Fault(COMPLETE, "insert {or_rollback} into duly_attempt", "insert into duly_attempt"),),
        (TX + "a_commit_after_a_lost_claim_finds_nothing_to_commit",),
    ),
    Mutant(
        "an attempt may end twice",
        (Fault(COMPLETE, "insert {or_rollback} into duly_attempt", "insert or replace into duly_attempt"),),
        (TX + "completing_twice_undoes_the_second_effect_and_keeps_the_first",),
    ),
    Mutant(
        "the guard names the number without the attempt",
        (Fault(COMPLETE, "and attempt_id = :attempt_id and fence = :number", "and fence = :number", 5),),
        (TAKING_OVER + "an_attempt_needs_its_own_id_even_with_the_right_number",),
    ),
    Mutant(
        "the guard names the attempt without the number",
        (Fault(COMPLETE, "and attempt_id = :attempt_id and fence = :number", "and attempt_id = :attempt_id", 5),),
        (TAKING_OVER + "an_attempt_needs_its_own_number_even_with_the_right_id",),
    ),
    Mutant(
        "a take-over leaves the old attempt without an end",
        (
            Fault(
                TAKE,
                "seen_attempt=seen.attempt_id):\n            await close_lost(seen)\n",
                "seen_attempt=seen.attempt_id):\n            pass\n",
            ),
        ),
        (TAKING_OVER + "a_vanished_transactional_attempt_did_nothing_and_its_run_is_taken_again",),
    ),
    Mutant(
        "a reopen only adds the next revision",
        (
            Fault(RESOLVE, "   set state = {to}, fence = fence + 1\n", "   set settled_at = settled_at\n"),
            Fault(
                RESOLVE,
                "   and r.state = 'replaced' and r.fence = :seen_fence + 1 {share}\n",
                "   and :seen_fence > 0\n",
            ),
        ),
        (PEOPLE + "a_reopened_run_is_done_again_under_a_key_of_its_own",),
    ),
    Mutant(
        "a claim does not look at the horizon",
        (
            Fault(WINDOWS, " where s.id = :series and s.horizon <= :nominal {share}\n", " where s.id = :series\n"),
            Fault(TAKE, "    if run.nominal < series.horizon:\n", "    if False:\n"),
        ),
        (TAKING + "a_window_below_the_horizon_is_never_executed_and_leaves_evidence",),
    ),
    Mutant(
        "a claim looks at the horizon only before it writes",
        (Fault(WINDOWS, " where s.id = :series and s.horizon <= :nominal {share}\n", " where s.id = :series\n"),),
        (TAKING + "a_claimer_that_looked_before_the_horizon_rose_is_refused_by_its_write",),
    ),
    Mutant(
        "a claim from memory does not look at the horizon",
        (Fault(MEMORY, " where s.id = :series and s.horizon <= :nominal\n", " where s.id = :series\n"),),
        (REMEMBERED + "nor_one_below_the_horizon[sqlite-1]",),
    ),
    Mutant(
        "a claim from memory does not hold the series against a prune",
        (Fault(MEMORY, "{{absent}} {{share}}\n", "{{absent}}\n"),),
        (history("postgres-recall-forget-overlap"),),
        on_postgres=True,
    ),
    Mutant(
        "a claim from memory does not look whether the job is what it was",
        (Fault(MEMORY, "exists (select 1 from duly_job where id = :job and edition = :edition)\n   and :due", ":due"),),
        (REMEMBERED + "nor_one_whose_job_has_other_policies_since[sqlite-0]",),
    ),
    Mutant(
        "a change of a job's row leaves its edition as it was",
        (Fault(TRIGGER, "set edition = random() where", "set edition = edition where"),),
        (REMEMBERED + "nor_one_whose_job_has_other_policies_since[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory does not look whether its run is due",
        (Fault(MEMORY, "   and :due <= {now}\n", "   and :due = :due\n"),),
        (REMEMBERED + "nor_one_that_is_not_due[sqlite]",),
    ),
    Mutant(
        "a claim from memory does not look at skipped ranges",
        (Fault(MEMORY, "from_nominal <= :nominal and to_nominal > :nominal)", "from_nominal > to_nominal)"),),
        (REMEMBERED + "nor_one_that_a_range_skips[sqlite]",),
    ),
    Mutant(
        "a claim from memory takes a line that is held",
        (Fault(MEMORY, "   and (:overlap = 1 or exists (\n", "   and (1 = 1 or exists (\n"),),
        (REMEMBERED + "nor_one_whose_line_is_held[sqlite]",),
    ),
    Mutant(
        "a claim from memory notes itself on a line that is held",
        (Fault(MEMORY, "r.revision = duly_line.holder_revision and r.state = 'running')", "r.state = 'asleep')"),),
        (REMEMBERED + "nor_one_whose_line_is_held[sqlite]",),
    ),
    Mutant(
        "a claim from memory looks at its line without a lock",
        (Fault(MEMORY, "   {lock}\n", ""),),
        (history("postgres-recall-next-window"),),
        on_postgres=True,
    ),
    Mutant(
        "a claim from memory locks its line only where overlap is judged",
        (
            Fault(
                MEMORY,
                "    await do(LOCK_LINE_IF_ABSENT, line=",
                "    if not job.overlap:\n        await do(LOCK_LINE_IF_ABSENT, line=",
            ),
        ),
        (history("postgres-recall-other-rules-overlap"),),
        on_postgres=True,
    ),
    Mutant(
        "a claim from memory takes any zone for UTC",
        (Fault(MEMORY, '    if version.zone != "UTC":  # whose rules never change\n', "    if False:\n"),),
        (REMEMBERED + "nor_where_the_window_before_ends_earlier_as_it_is_stored[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory does not look whether the rules are on record",
        (Fault(MEMORY, '_BOUNDS_STILL = f"""exists {_FACTS}\n', '_BOUNDS_STILL = f"""1 = 1\n'),),
        (REMEMBERED + "not_where_nobody_has_written_down_what_the_rules_are[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory asks nothing of the rules of any zone",
        (Fault(MEMORY, "    in_utc = recalled.beside is None\n", "    in_utc = True\n"),),
        (REMEMBERED + "nor_where_the_window_before_ends_earlier_as_it_is_stored[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory takes one reading of the rules for another",
        (Fault(MEMORY, " and source = :source and fingerprint = :fingerprint)", " and source = :source)"),),
        (REMEMBERED + "nor_where_what_is_written_down_is_of_other_rules[sqlite-fingerprint-0]",),
    ),
    Mutant(
        "a claim from memory does not write down the rules of its zone",
        (Fault(MEMORY, "(_STILL_BY_RULES, _FACTS)", '(_STILL_BY_RULES, "null")'),),
        (IN_ZONES + "over_a_night_in_which_clocks_are_moved[daily-Europe/Paris-back]",),
    ),
    Mutant(
        "a claim from memory does not tell the rules of its zone",
        (Fault(MEMORY, "zone_facts=sight.zone_facts,", "zone_facts=None,"),),
        (IN_ZONES + "over_a_night_in_which_clocks_are_moved[daily-Europe/Paris-back]",),
    ),
    Mutant(
        "a claim from memory does not look where the window before ends",
        (Fault(MEMORY, "(window_end is null or window_end <> :window_start)", "window_end is null"),),
        (REMEMBERED + "nor_where_the_window_before_ends_earlier_as_it_is_stored[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory does not look whether the window before has a time of its own",
        (Fault(MEMORY, "(window_end is null or window_end <> :window_start)", "window_end <> :window_start"),),
        (REMEMBERED + "nor_where_the_window_before_was_settled_without_a_time_of_its_own[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory does not look at the line's place",
        (Fault(MEMORY, "opened_until > :window_start and opened_until < :window_end", "opened_until is null"),),
        (REMEMBERED + "nor_where_the_line_was_opened_into_it[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory does not look where the window after starts",
        (Fault(MEMORY, ":after and window_start <> :window_end", ":after and window_start < :window_end"),),
        (REMEMBERED + "nor_where_the_window_after_starts_later_as_it_is_stored[sqlite-0]",),
    ),
    Mutant(
        "a claim from memory is made over a window of other rules",
        (
            Fault(
                MEMORY,
                "                   or (window_start < :window_end and window_end > :window_start)))",
                "                   ))",
            ),
        ),
        (REMEMBERED + "nor_over_a_window_that_other_rules_have_named[sqlite-at its end-a later name-0]",),
    ),
    Mutant(
        "windows of other rules are looked for among the nearest names only",
        (
            Fault(
                BOUNDS,
                "    return 2 * (max(end - start, 0) + RULES_MAY_MOVE) // SECOND\n",
                "    return (end - start) // SECOND\n",
            ),
        ),
        (REMEMBERED + "nor_over_a_window_that_other_rules_have_named[sqlite-at its end-a later name-0]",),
    ),
    Mutant(
        "a duplicate is told of a job that is another since",
        (Fault(MEMORY, "if sight.is_same and sight.state", "if sight.state"),),
        (REMEMBERED + "nor_a_completed_one_of_a_job_that_is_another_since[sqlite]",),
    ),
    Mutant(
        "from memory a payload is not compared",
        (Fault(MEMORY, "sight.state == states.COMPLETED and not differs", "sight.state == states.COMPLETED"),),
        (REMEMBERED + "nor_one_that_was_completed_with_another_payload[sqlite]",),
    ),
    Mutant(
        "an attempt does not recognise its own claim",
        (Fault(TAKE, "seen.state == states.RUNNING and seen.attempt_id == claimer.attempt_id:", "False:"),),
        (REMEMBERED + "the_same_attempt_is_told_its_claim_again[sqlite]",),
    ),
    Mutant(
        "a duplicate takes a lock",
        (
            Fault(
                "store/migrations/0001_ledger.postgres.sql",
                "l.id = $9 and not exists (select 1 from duly.run where series = $6 and nominal = $7)",
                "l.id = $9",
            ),
        ),
        (WAITS + "a_duplicate_takes_no_lock_and_has_nothing_to_commit",),
        on_postgres=True,
    ),
    Mutant(
        "in an event loop a forked child uses its parent's connections",
        (Fault("store/postgres_async.py", "if self._pid != os.getpid():", "if self._pid < 0:"),),
        ("tests/faults/test_fork.py::test_in_an_event_loop_too_a_child_has_connections_of_its_own[on_postgres]",),
        on_postgres=True,
    ),
    Mutant(
        "a savepoint that comes first is a transaction",
        (
            Fault(
                "store/owned/postgres.py",
                "        self.begin()  # then it is a savepoint\n",
                "",
            ),
        ),
        (WAITS + "and_where_the_function_fails_nothing_of_it_is_kept",),
        on_postgres=True,
    ),
    Mutant(
        "a transaction that somebody else ended and began anew is not noticed",
        (
            Fault(
                "store/owned/postgres.py",
                "        if self._begins > 1:\n            raise TransactionOwned(ANOTHER)\n",
                "",
            ),
        ),
        (WAITS + "a_transaction_that_a_foreign_cursor_ended_before_any_of_ours_began_is_noticed",),
        on_postgres=True,
    ),
    Mutant(
        "overlap is not looked at",
        (Fault(TAKE, "    if in_the_way is not None:\n", "    if in_the_way:\n"),),
        (TAKING + "two_windows_of_a_line_do_not_run_at_once",),
    ),
    Mutant(
        "a dead holder keeps its line for ever",
        (
            Fault(
                TAKE,
                "    if not await gone(held):\n        return _busy(held)\n",
                "    if True:\n        return _busy(held)\n",
            ),
        ),
        (TAKING + "a_dead_holder_is_ended_by_the_next_claim_of_its_line",),
    ),
    Mutant(
        "an unknown run is taken again",
        (
            Fault(TAKE, "        case states.UNKNOWN:\n            return OutcomeUnknown()\n", ""),
            Fault(
                "ledger/states.py",
                '"take": {ABSENT: RUNNING, OPEN: RUNNING, FAILED: RUNNING},',
                '"take": {ABSENT: RUNNING, OPEN: RUNNING, FAILED: RUNNING, UNKNOWN: RUNNING},',
            ),
        ),
        (TAKING_OVER + "a_vanished_external_attempt_leaves_its_run_unknown_and_never_taken_again",),
    ),
    Mutant(
        "an unknown run's attempt is cut off from reporting",
        (
            Fault(
                "ledger/states.py",
                '"complete": {RUNNING: COMPLETED, UNKNOWN: COMPLETED},',
                '"complete": {RUNNING: COMPLETED},',
            ),
        ),
        (TAKING_OVER + "the_same_attempt_may_still_complete",),
    ),
    Mutant(
        "a renewal from unknown does not look at the line",
        (Fault(TAKE, "          and (j.overlap = 1 or (l.holder", "          and (1 = 1 or (l.holder"),),
        (TAKING_OVER + "the_same_attempt_may_not_renew_once_another_run_holds_the_line",),
    ),
    Mutant(
        "the payload is not compared",
        (
            Fault(
                TAKE,
                "    return payload is not None and seen.payload is not None and payload != seen.payload\n",
                "    return False\n",
            ),
        ),
        (TAKING + "the_same_key_with_another_payload_is_refused_whatever_its_state",),
    ),
    Mutant(
        "a lease is judged without the pulse",
        (Fault(TAKE, " and not await alive(run.attempt_id)\n", "\n"),),
        (TAKING_OVER + "a_run_is_not_judged_while_its_holder_shows_a_pulse",),
    ),
    Mutant(
        "the renewal of a lost attempt counts for its successor",
        (
            Fault(
                "ledger/records.py",
                " and n.revision = r.revision and n.attempt_id = r.attempt_id",
                " and n.revision = r.revision",
            ),
        ),
        (TAKING_OVER + "the_renewal_of_a_lost_attempt_does_not_prolong_its_successor",),
    ),
    Mutant(
        "what the destination remembers is counted from the last attempt",
        (
            Fault(
                TAKE,
                "    elapsed = instant - (held.first_started_at or instant)\n",
                "    elapsed = instant - (held.started_at or instant)\n",
            ),
        ),
        (TAKING_OVER + "what_the_destination_remembers_is_counted_from_the_first_attempt",),
    ),
    Mutant(
        "a request to stop means whichever attempt is made",
        (
            Fault(
                "ledger/records.py",
                "self.cancel_number is not None and self.cancel_number == self.fence",
                "self.cancel_number is not None",
            ),
            Fault(TAKE, "fence = :number and cancel_number = :number\n", "fence = :number and cancel_number > 0\n"),
        ),
        (CANCELLING + "a_later_attempt_is_not_meant",),
    ),
    Mutant(
        "a failure of a later attempt is not retried either",
        (Fault(COMPLETE, "case when cancel_number = fence then", "case when cancel_number > 0 then"),),
        (CANCELLING + "a_later_attempt_is_not_meant",),
    ),
    Mutant(
        "a heartbeat does not hear what was asked",
        (Fault(TAKE, " is None else ASKED_TO_STOP\n", " is None else HELD\n"),),
        (CANCELLING + "the_attempt_hears_of_it_with_its_next_heartbeat",),
    ),
    Mutant(
        "an exit proves what a command did that was told to stop",
        (Fault("ledger/contracts.py", "and code not in terms.clean_exits):", "and code is None):"),),
        (CANCELLING + "the_contract_says_what_a_cancelled_attempt_means",),
    ),
    Mutant(
        "what was cancelled in an event loop cancels whoever waits for it",
        (Fault("work/aio/attempt.py", "self._task.uncancel() <= self._asked_before", "False"),),
        (
            "tests/aio/test_aio.py::test_the_task_of_a_run_that_a_person_cancels_is_cancelled_and_its_caller_is_not[sqlite]",
        ),
    ),
    Mutant(
        "a superseded attempt tells how far it is",
        (Fault("ledger/progress.py", "and r.attempt_id = :attempt_id and r.fence = :number\n", "and :number > 0\n"),),
        (
            "tests/ledger/test_progress.py::test_an_attempt_that_was_taken_over_tells_nothing_more_and_its_successor_begins_anew",
        ),
    ),
    Mutant(
        "a cancelled run that fails is retried by policy",
        (Fault(COMPLETE, "case when cancel_number = fence then null else {now} + :retry_in end", "{now} + :retry_in"),),
        (CANCELLING + "what_fails_before_it_has_heard_is_not_retried_by_policy",),
    ),
    Mutant(
        "a cancelled run that is given back is worked again",
        (Fault(COMPLETE, "   and coalesce(cancel_number, 0) < fence\n", ""),),
        (CANCELLING + "what_gives_the_run_back_ends_as_cancelled_and_is_not_taken_again",),
    ),
    Mutant(
        "a cancelled attempt that vanished is taken for one that may be tried again",
        (Fault(TAKE, "    if held.cancel_is_asked:\n", "    if False:\n"),),
        (CANCELLING + "an_attempt_that_vanished_after_it_was_asked_leaves_its_run_to_a_person",),
    ),
    Mutant(
        "a take-over does not look for a request that came meanwhile",
        (Fault(TAKE, "   and coalesce(cancel_number, 0) < fence\n", ""),),
        (CANCELLING + "whoever_looked_before_it_was_asked_does_not_let_it_be_tried_again",),
    ),
    Mutant(
        "a lost attempt is retried though it was asked to stop",
        (Fault(TAKE, "retry_at = case when cancel_number = fence then null else {now} end", "retry_at = {now}"),),
        (CANCELLING + "whoever_looked_before_it_was_asked_does_not_let_it_be_tried_again",),
    ),
    Mutant(
        "once takes over what was asked to stop",
        (
            Fault("ledger/once.py", "   and (state <> 'running' or coalesce(cancel_number, 0) < fence)\n", ""),
            Fault(
                "ledger/once.py",
                "            if not ending.retry:\n",
                "            if ending.state == states.UNKNOWN:\n",
            ),
        ),
        (CANCELLING + "nor_does_once",),
    ),
    Mutant(
        "a cancelled run that is resolved as not done is begun anew",
        (Fault(RESOLVE, "retry_at = case when cancel_number = fence then null else {now} end", "retry_at = {now}"),),
        (CANCELLING + "one_that_is_resolved_as_not_done_waits_for_a_person",),
    ),
    Mutant(
        "completed windows are done again though missing ones were asked for",
        (Fault(BACKFILL, "        if kind not in what:\n", "        if kind not in (*what, COMPLETED):\n"),),
        (BACKFILLS + "completed_windows_are_not_done_again_unless_that_is_said",),
    ),
    Mutant(
        "a backfill that was cancelled is still claimed",
        (
            Fault(BACKFILL_CLAIM, "        if each.state == backfills.ACTIVE:\n", "        if True:\n"),
            Fault(BACKFILL_CLAIM, "        if mine.state != backfills.ACTIVE:\n", "        if False:\n"),
        ),
        (BACKFILLS + "cancelled_it_is_over_and_what_was_given_back_is_skipped_with_the_reason",),
    ),
    Mutant(
        "a backfill does not hold the horizon",
        (Fault("ledger/forget.py", "in (beyond, kept, skipped, asked_for) if", "in (beyond, kept, skipped) if"),),
        (BACKFILLS + "it_holds_the_horizon_below_its_range_until_it_is_over",),
    ),
    Mutant(
        "a claim by name takes no slot of the backfill that owes the run",
        (Fault(TAKE, "        if answer is None and seen.backfill is not None:\n", "        if False:\n"),),
        (BACKFILLS + "a_window_of_it_that_is_named_takes_a_slot_too",),
    ),
    Mutant(
        "a renewal from unknown takes a slot that another has",
        (Fault(TAKE, "    if seen is not None and seen.backfill is not None:\n", "    if False:\n"),),
        (BACKFILLS + "one_that_is_unknown_has_no_slot_and_comes_back_only_to_a_free_one",),
    ),
    Mutant(
        "a backfill's holder that is gone keeps its slot for ever",
        (Fault(BACKFILL_CLAIM, "    if not vanished:\n", "    if True:\n"),),
        (BACKFILLS + "a_holder_that_is_gone_has_its_slot_until_it_is_ended_by_contract",),
    ),
    Mutant(
        "the policy works and drops what a backfill owes",
        (Fault("ledger/owed.py", "if run.backfill is None]", "if run]"),),
        (BACKFILLS + "what_a_backfill_owes_is_none_of_the_policys",),
    ),
    Mutant(
        "a backfill goes before what its line owes",
        (Fault(BACKFILL_CLAIM, "        if await self._live_goes_first(running, instant):\n", "        if False:\n"),),
        (BACKFILLS + "what_the_line_owes_goes_first",),
    ),
    Mutant(
        "a backfill has no share beside what its line owes",
        (Fault(BACKFILL_CLAIM, "        if has_share:\n", "        if False:\n"),),
        (BACKFILLS + "while_much_is_owed_every_fourth_claim_is_the_backfills",),
    ),
    Mutant(
        "what has failed once stops a backfill again when it is resumed",
        (Fault(BACKFILL, '{"{now}" if event == "resume" else "counts_from"}', "counts_from"),),
        (BACKFILLS + "after_so_many_failures_it_stops_and_goes_on_when_it_is_resumed",),
    ),
    Mutant(
        "latest drops what a person asked for",
        (Fault(POLICY, " or run.asked_at is not None\n", "\n"),),
        (OWED + "latest_never_drops_a_run_that_a_person_asked_for",),
    ),
    Mutant(
        "latest drops without a record",
        (Fault(OPEN, "    for span in due.dropped:\n", "    for span in due.dropped[:0]:\n"),),
        (OWED + "after_five_days_down_the_latest_day_is_worked_and_the_others_are_one_range_with_its_reason",),
    ),
    Mutant(
        "a statement that was cached is not authorised again",
        (
            Fault("store/owned/sqlite.py", ", cached_statements=0", ""),
            Fault(
                "store/owned/sqlite.py", "connection._open and connection.in_transaction and", "connection._open and"
            ),
        ),
        (TX + "after_sqlite_ended_the_transaction_nothing_more_can_be_written",),
    ),
    Mutant(
        "a window starts where the rules of today say",
        (Fault(BOUNDS, "replace(occurrence, start=edge, end=end)", "replace(occurrence, end=end)"),),
        (RULES + "hosts_that_poke_by_the_hour_under_any_releases_lose_no_window_and_work_no_time_twice",),
    ),
    Mutant(
        "a window reaches over stored time to the next one of the schedule",
        (Fault(BOUNDS, "end=self.until(row.start, edge))", "end=row.start)"),),
        (RULES + "windows_named_under_other_rules_are_not_worked_over",),
    ),
    Mutant(
        "a window skipped ahead keeps its time when the schedule changes",
        (Fault(VERSIONS, "    await _put_ahead_anew(known, known.series, coming, opening.until, by)\n", ""),),
        ("tests/ledger/test_edits.py::test_a_window_skipped_ahead_takes_no_time_from_the_schedule_that_follows",),
    ),
    Mutant(
        "a window is opened over one that was named under other rules",
        (Fault(BOUNDS, "while self._place < len(self._spans) and", "while self._place < 0 and"),),
        ("tests/ledger/test_bounds.py::test_nothing_is_opened_over_what_is_stored_nor_before_the_place",),
    ),
    Mutant(
        "a window that is named is chained to the neighbours of today alone",
        (Fault(BOUNDS, "   and window_start < :end and window_end > :start\n", "   and :start > :end\n"),),
        (RULES + "windows_that_are_named_while_hosts_disagree_are_not_worked_twice",),
    ),
    Mutant(
        "every line begins a new version where the rules here have the seam",
        (Fault(VERSIONS, "until=opening.until, next_due", "until=coming.since or 0, next_due"),),
        (RULES + "edits_of_a_schedule_while_hosts_disagree_lose_no_time_and_work_none_twice",),
    ),
    Mutant(
        "a new series begins without a horizon",
        (Fault(VERSIONS, "NO_HORIZON if horizon is None else horizon", "NO_HORIZON"),),
        (SERIES + "earlier_keys_of_the_new_zone_are_refused_as_below_its_horizon",),
    ),
    Mutant(
        "the horizon of a new series is the name of its first window, also where others have lower ones",
        (Fault(SPELLS, "        lowest = min(lowest, occurrence.nominal)\n", "        pass\n"),),
        (SERIES + "intervals_become_fires_in_the_night_in_which_clocks_go_back",),
    ),
    Mutant(
        "a series keeps the horizon of a version that was never in force",
        (Fault(VERSIONS, "        await count(BEGIN_ANEW, **series)\n", "        pass\n"),),
        (SERIES + "a_series_that_was_replaced_before_it_began_has_no_horizon_of_its_own",),
    ),
    Mutant(
        "the first new window begins where its schedule has it, and not at the seam",
        (
            Fault(
                VERSIONS,
                "until=opening.until, next_due",
                "until=opening.until if first is None else next(coming.schedule.after(first.due - 1)).start, next_due",
            ),
        ),
        (SERIES + "a_zone_change_is_a_new_series_that_goes_on_where_the_old_one_ends",),
    ),
    Mutant(
        "the window that straddles a seam is shown from before it",
        (Fault(SPELLS, "        return replace(occurrence, start=self.since)\n", "        return occurrence\n"),),
        ("tests/schedule/test_versions.py::test_another_zone_begins_where_the_old_one_ends",),
    ),
    Mutant(
        "the newest window that is due is looked for in the series in force alone",
        (
            Fault(
                POLICY,
                "    for each in await every(SERIES_OF_LINE, Series, line=known.line.id):\n",
                "    for each in [series]:\n",
            ),
        ),
        (SERIES + "a_poke_under_latest_drops_the_last_window_of_before_for_no_older_one",),
    ),
    Mutant(
        "a label that was replaced is taken for one that is in force",
        (
            Fault(
                REGISTER,
                "    if labelled is None:\n",
                "    if labelled is None or same_schedule(labelled, schedule):\n",
            ),
        ),
        (LABELS + "a_label_that_was_replaced_does_not_come_back",),
    ),
    Mutant(
        "a label that was replaced turns the schedule back",
        (
            Fault(
                REGISTER,
                "    if labelled is None:\n",
                "    if labelled is None or same_schedule(labelled, schedule):\n",
            ),
            Fault(
                VERSIONS,
                "    if await one(FIND_LABEL, Version, job=job.id, label=label) is not None:\n        return\n",
                "",
            ),
        ),
        (LABELS + "a_label_that_was_replaced_does_not_come_back",),
    ),
    Mutant(
        "a label is known only while its own schedule was in force",
        (
            Fault(
                VERSIONS,
                "effective_from=since, by=by, reason=reason, label=label)",
                'effective_from=since, by=by, reason=reason, label="")',
            ),
        ),
        (LABELS + "the_same_schedule_under_a_new_label_is_known_by_it_and_changes_no_window",),
    ),
    Mutant(
        "a scope is added beside an edit that does not see it",
        (Fault(REGISTER, "        await do(HOLD_JOB_STILL, job=known.job.id)\n", ""),),
        ("tests/ledger/test_edits.py::test_a_scope_that_comes_while_a_schedule_is_edited_is_edited_too",),
        on_postgres=True,
    ),
    Mutant(
        "a line begins with the newest of several windows that are due at once",
        (Fault("ledger/register.py", "spell.after(starts - 1), None)", "spell.before(starts), None)"),),
        ("tests/ledger/test_days_off.py::test_a_line_that_begins_when_several_windows_are_due_begins_with_the_oldest",),
    ),
    Mutant(
        "a command completes its run by the number alone",
        (
            Fault(TRIGGER, "       and lower(hex(r.attempt_id)) = replace(lower(new.attempt_id), '-', '')\n", ""),
            Fault(TRIGGER, "       and lower(hex(attempt_id)) = replace(lower(new.attempt_id), '-', '')\n", ""),
        ),
        (IN_SQL + "on_sqlite_too_the_attempt_is_named_by_id_and_number_both",),
    ),
    Mutant(
        "a command completes its run by the attempt alone",
        (
            Fault(TRIGGER, "       and r.fence = cast(new.attempt as integer);", ";"),
            Fault(TRIGGER, "       and fence = cast(new.attempt as integer);", ";"),
        ),
        (IN_SQL + "on_sqlite_too_the_attempt_is_named_by_id_and_number_both",),
    ),
    Mutant(
        "a command that completes its run reads the runs of all years",
        (
            Fault(
                TRIGGER,
                "(r.state = 'open' or r.state = 'running' or r.state = 'failed' or r.state = 'unknown')\n       and ",
                "",
            ),
        ),
        (IN_SQL + "the_trigger_finds_the_run_of_an_attempt_among_the_unsettled_ones",),
    ),
    Mutant(
        "a run's own transaction does not look whether the ledger may still be written",
        (Fault("store/owned/sqlite.py", "            refuse_newer(connection)\n", ""),),
        ("tests/store/test_migrations.py::test_a_process_whose_ledger_is_closed_to_it_meanwhile_writes_no_more",),
    ),
    Mutant(
        "each question that is asked of a file is remembered by its connection",
        (
            Fault(
                "store/sqlite.py",
                "cursor = sqlite3.Connection.cursor(connection)",
                "cursor = sqlite3.Cursor(connection)",
            ),
        ),
        ("tests/store/test_memory.py::test_what_is_asked_leaves_nothing_behind",),
    ),
    Mutant(
        "whoever lets the lock go has it again before those who wait for it",
        (Fault("store/lock.py", "    if HAS_PULSE:\n        command", "    if False:\n        command"),),
        ("tests/store/test_lock.py::test_nobody_has_two_turns_in_a_row_while_another_waits",),
    ),
    Mutant(
        "one that is next and was stopped holds up all that come after it",
        (Fault("store/lock.py", "(descriptor := _taken(self._path)) is not None", "(descriptor := None) is not None"),),
        ("tests/store/test_lock.py::test_one_that_is_next_and_was_stopped_is_passed_by",),
    ),
    Mutant(
        "each turn waits anew for one that is next and was stopped",
        (Fault("store/lock.py", "                    self._next = waiting\n", ""),),
        ("tests/store/test_lock.py::test_one_that_is_next_and_was_stopped_is_passed_by",),
    ),
    Mutant(
        "a lock that comes too late is kept",
        (Fault("store/lock.py", "            if self._given_up or not held:\n", "            if not held:\n"),),
        (
            "tests/store/test_lock.py::test_a_stopped_holder_makes_the_ledger_busy_after_the_time_out_and_not_before",
            "tests/store/test_lock.py::test_a_lock_that_comes_too_late_is_let_go_at_once",
        ),
    ),
    Mutant(
        "a savepoint whose release commits is taken for a transaction",
        (Fault(SQLALCHEMY, "if connection.in_nested_transaction() and not", "if False and not"),),
        (LENT_BY_SQLALCHEMY + "a_savepoint_that_would_commit_by_itself_is_refused",),
    ),
    Mutant(
        "the guard speaks before the objects of a session are written",
        (Fault(SQLALCHEMY, "        lent.flush()\n", "        pass\n"),),
        (LENT_BY_SQLALCHEMY + "objects_that_cannot_be_written_leave_the_run_unsettled",),
    ),
    Mutant(
        "a lent transaction of SQLite looks before it writes",
        (Fault(SQLALCHEMY, "_run(connection, WRITE_FIRST, {})", "pass"),),
        (LENT_BY_SQLALCHEMY + "it_writes_before_it_looks",),
    ),
    Mutant(
        "SQLAlchemy does not hear that a claim is gone",
        (Fault(SQLALCHEMY, "        connection.invalidate(lost)\n", ""),),
        (LENT_BY_SQLALCHEMY + "a_lost_claim_says_so_again_at_the_commit",),
    ),
    Mutant(
        "of a lost claim only the block of Django is marked",
        (Fault(DJANGO, "    connection.close()\n", ""),),
        (LENT_BY_DJANGO + "taking_the_mark_away_keeps_nothing_of_a_lost_claim",),
    ),
)


ROSTERS = (
    Mutant(
        "a claim does not look at the end of its line",
        (
            Fault(
                TAKE,
                "    if line is None or line.ends is None or line.owes(due):\n",
                "    if line is None or line.ends is None or due:\n",
            ),
        ),
        (ROSTER + "no_way_leads_to_a_window_that_comes_due_after_the_end[sqlite]",),
    ),
    Mutant(
        "a claim looks at the end of its line as it was before it held it",
        (
            Fault(
                TAKE,
                "        known = await hold_line(known)\n        answer = await _answer_absent(",
                "        await hold_line(known)\n        answer = await _answer_absent(",
            ),
        ),
        (history("postgres-retire-take-overlap"),),
        on_postgres=True,
    ),
    Mutant(
        "who claims from memory does not notice an end",
        (Fault(ENDS, "job is not None and await count(CHANGE_JOB, job=job, name=name):", "job is not None:"),),
        (history("sqlite-retire-recall"),),
    ),
    Mutant(
        "who claims from memory does not look at an end to come",
        (Fault(MEMORY, "    if not line.owes(found.due):", "    if found.due < 0:"),),
        (ROSTER + "a_window_after_an_end_to_come_is_not_claimed_from_memory[sqlite]",),
    ),
    Mutant(
        "what is owed of a retired line is dropped for a window that is not",
        (
            Fault(
                POLICY,
                "_newest_due(known, spell, known.series, known.line.owed_by(as_of))",
                "_newest_due(known, spell, known.series, as_of)",
            ),
        ),
        (SCOPES + "under_latest_the_last_day_of_a_retired_scope_is_not_dropped_for_one_that_is_not_owed",),
    ),
    Mutant(
        "a scope that is resumed owes the time that it was away",
        (
            Fault(
                ENDS,
                "        until = await _skip_before(known, spell, until, first, word)\n",
                "        first = unopened\n",
            ),
        ),
        (ROSTER + "a_scope_that_is_resumed_owes_nothing_for_the_time_between[sqlite-UTC]",),
    ),
    Mutant(
        "a name that is given up is forgotten",
        (
            Fault(
                RENAME,
                "    await count(GIVE_UP_NAME, name=before, job=job, by=word.by, reason=word.reason)\n",
                "",
            ),
        ),
        (ROSTER + "no_way_leads_to_a_job_by_a_name_that_it_gave_up[sqlite]",),
    ),
    Mutant(
        "an effect is known by the name that its job has now",
        (Fault("work/identity.py", "    if first_name and first_name != key.job:\n", "    if False:\n"),),
        ("tests/work/test_roster.py::test_a_job_that_was_renamed_says_so_to_who_still_declares_it",),
    ),
)

DESTINATIONS = (
    Mutant(
        "a proxy that lost its server is believed to have sent nothing",
        (Fault(HTTP, "case 503 if answer.retry_after is not None:", "case 503:"),),
        (OF_HTTP + "every_status_has_a_meaning[503-Unknown]",),
    ),
    Mutant(
        "an answer that was cut short counts",
        (Fault(HTTP, "    if response.length:", "    if False:"),),
        (OF_HTTP + "what_a_receiver_does_means[its_answer_ends_within_the_body]",),
    ),
    Mutant(
        "an answer that was cut off at the deadline counts",
        (Fault(HTTP, "            if deadline.passed:\n", "            if False:\n"),),
        (OF_HTTP + "what_a_receiver_does_means[its_answer_has_no_length_and_does_not_end_in_time]",),
    ),
    Mutant(
        "a stored error is a new one",
        (Fault(HTTP, "return Unknown(said, stored=True)", "return Unknown(said)"),),
        (OF_HTTP + "what_a_receiver_does_means[5xx_with_Idempotent-Replayed:_true:_what_came_of_the_first_request]",),
    ),
    Mutant(
        "a connection is kept where keys are never remembered",
        (Fault(HTTP, "keep and self.remembers != 0 and not closes", "keep and not closes"),),
        (OF_HTTP + "where_they_never_are_each_message_has_a_connection_of_its_own",),
    ),
    Mutant(
        "a kept connection is used without a look at it",
        (Fault(HTTP, "if kept_place == place and _is_quiet(line.sock):", "if kept_place == place:"),),
        (OF_HTTP + "a_connection_that_was_closed_while_it_was_idle_costs_nothing",),
    ),
    Mutant(
        "a time-out begins anew with each byte",
        (Fault("outbox/destinations/line.py", "                self._do()\n", "                pass\n"),),
        (OF_HTTP + "what_a_receiver_does_means[its_answer_comes_byte_by_byte_and_does_not_end_in_time]",),
    ),
    Mutant(
        "a mail whose dot was said and not answered was not sent",
        (Fault(SMTP, "return Unknown(deadline.why(", "return NotSent(deadline.why("),),
        (OF_SMTP + "what_a_mail_server_does_means[it_goes_away_after_the_dot_that_ends_them]",),
    ),
    Mutant(
        "a mail goes to those recipients who are taken",
        (Fault(SMTP, "        if refused:\n", "        if len(refused) == len(self._recipients):\n"),),
        (OF_SMTP + "what_a_mail_server_does_means[it_takes_one_recipient,_and_another_never]",),
    ),
    Mutant(
        "a password goes over any line",
        (Fault(SMTP, "if not isinstance(session.line(), SSLSocket) and", "if False and"),),
        (OF_SMTP + "what_a_mail_server_does_means[it_offers_no_encryption,_and_we_have_a_password]",),
    ),
    Mutant(
        "what fails at a commit was not committed",
        (Fault(INBOX, 'return Unknown(f"{lost}, at the commit") if committing else ', "return "),),
        (OF_INBOX + "what_a_sqlstate_means[57P01-NotSent-Unknown]",),
    ),
    Mutant(
        "another body under the same key is a duplicate",
        (
            Fault(
                INBOX,
                'Delivered("its row was there") if found == message.body else',
                'Delivered("its row was there") if found else',
            ),
        ),
        (OF_INBOX + "what_a_file_of_sqlite_does_means[a_row_with_its_key_is_there,_with_another_body]",),
    ),
    Mutant(
        "a command that was killed said no",
        (Fault("outbox/destinations/command.py", "        if 129 <= code <= 192:\n", "        if False:\n"),),
        (OF_COMMANDS + "what_a_command_does_means[death_by_a_signal]",),
    ),
    Mutant(
        "a probe that failed is believed",
        (Fault("outbox/destinations/probes.py", "    if ended.code:\n", "    if False:\n"),),
        (
            OF_COMMANDS
            + "a_probe_says_it_in_a_word_and_whatever_else_it_does_tells_nothing[echo did not; exit 1-finding4]",
        ),
    ),
    Mutant(
        "a message shows its body",
        (Fault("outbox/destinations/__init__.py", "{len(self.body)} bytes", "{self.body!r}"),),
        (OF_HTTP + "no_secret_is_in_what_is_printed_of_a_destination_or_a_message",),
    ),
    Mutant(
        "a command inherits the address of the ledger",
        (Fault("outbox/destinations/child.py", 'if not name.startswith("DULY_") and', "if"),),
        (OF_COMMANDS + "it_is_told_of_the_message_and_of_nothing_else_that_duly_knows",),
    ),
)

HISTORIES = (
    Mutant(
        "a cancel does not wait for the end that is being written",
        (Fault("ledger/cancel.py", "    await one(LOCK_RUN, int, **run_parameters(run))\n", ""),),
        (history("postgres-cancel-fail"),),
        on_postgres=True,
    ),
    Mutant(
        "overlap is looked at without holding the line",
        (Fault(TAKE, " where l.id = :line {{lock}}", " where l.id = :line"),),
        (history("postgres-next-window"),),
        on_postgres=True,
    ),
    Mutant(
        "a free run is claimed under any later number",
        (
            Fault(
                TAKE,
                "   and state in {from} and fence = :seen_fence\n",
                "   and state in {from} and fence >= :seen_fence\n",
            ),
        ),
        (history("postgres-take-fail-failed"),),
        on_postgres=True,
    ),
    Mutant(
        "once completes under any later number",
        (
            Fault(
                "ledger/once.py",
                "   and state in {from} and fence = :seen_fence\n",
                "   and state in {from} and fence >= :seen_fence\n",
            ),
        ),
        (history("postgres-once-take-failed"),),
        on_postgres=True,
    ),
    Mutant(
        "the runs of a backfill are counted without its lock",
        (Fault(BACKFILL, "duly_backfill f where f.id = :id {{lock}}", "duly_backfill f where f.id = :id"),),
        (history("postgres-backfill-backfill"),),
        on_postgres=True,
    ),
    Mutant(
        "what live work took first is the backfill's",
        (
            Fault(
                BACKFILL_CLAIM,
                "        if isinstance(taken, Claim):  # else",
                "        if row is not None or isinstance(taken, Claim):  # else",
            ),
        ),
        (history("postgres-backfill-take"),),
        on_postgres=True,
    ),
    Mutant(
        "a take-over closes the lost attempt before it has the run",
        (
            Fault(
                TAKE,
                "        if await count(TAKE_OVER, **claim, seen_fence=seen.fence, seen_attempt=seen.attempt_id):\n"
                "            await close_lost(seen)\n",
                "        await close_lost(seen)\n"
                "        await count(TAKE_OVER, **claim, seen_fence=seen.fence, seen_attempt=seen.attempt_id)\n",
            ),
        ),
        (history("postgres-take-over-complete"),),
        on_postgres=True,
    ),
    Mutant(
        "a take-over writes the payload anew",
        (
            Fault(
                TAKE,
                "   set state = {to}, fence = fence + 1, attempt_id = :attempt_id, started_at = {now},\n",
                "   set state = {to}, fence = fence + 1, attempt_id = :attempt_id, started_at = {now}, payload = 'none',\n",
            ),
        ),
        (history("sqlite-take-over-payload"),),
    ),
    Mutant(
        "completing twice is accepted",
        (
            Fault(
                COMPLETE,
                "       {now}, :outcome, :contract, :owner, :trigger, :error)\n",
                "       {now}, :outcome, :contract, :owner, :trigger, :error)\n    on conflict do nothing\n",
            ),
        ),
        (history("sqlite-complete-complete"),),
    ),
    Mutant(
        "a connection outlives the claim that was lost on it",
        (Fault("store/borrowed/postgres.py", "        connection.close()\n        raise\n", "        raise\n"),),
        (history("postgres-take-over-savepoint"),),
        on_postgres=True,
    ),
    Mutant(
        "the time stands still inside a transaction",
        (Fault("store/postgres_sql.py", "(extract(epoch from clock_timestamp())", "(extract(epoch from now())"),),
        ("tests/histories/test_clock.py::test_a_lease_that_lapses_during_a_long_transaction_is_seen_to_have_lapsed",),
        on_postgres=True,
    ),
)

RECEIVE, DOOR = "ledger/receive.py", "outbox/receiver/door.py"
RECEIVED, LENT_TO_RECEIVE = "tests/ledger/test_receive.py::test_", "tests/borrowed/test_receive.py::test_"
SERVED = "tests/receiver/test_servers.py::test_"
BY_WSGI, BY_ASGI = "[sqlite-wsgi]", "[sqlite-asgi]"

HORIZON = """   and s.horizon <= case when cast(:first_sent as bigint) is not null then cast(:first_sent as bigint)
                         when cast(:undated as text) = 'apply' then s.horizon else 0 end
"""


def receivers(race: str) -> str:
    """The test that tells every history of receivers, as `receive-receive-postgres`."""
    return f"tests/histories/test_receiving.py::test_whatever_the_order_of_their_steps_a_key_is_applied_once[{race}]"


RECEIVERS = (
    Mutant(
        "an answer is stored for a receipt that is gone",
        (Fault(RECEIVE, "       (select received_at\n", "       (select coalesce(max(received_at), 0)\n"),),
        (LENT_TO_RECEIVE + "an_effect_whose_receipt_went_with_a_savepoint_is_not_committed[sqlite3]",),
    ),
    Mutant(
        "a lost receipt ends the statement and not the transaction",
        (Fault(RECEIVE, "insert {or_rollback} into duly_answer", "insert into duly_answer"),),
        (LENT_TO_RECEIVE + "an_answer_is_stored_once[sqlite3]",),
    ),
    Mutant(
        "an answer is stored outside of the transaction of its effect",
        (
            Fault(RECEIVE, "       (select received_at\n", "       (select coalesce(max(received_at), 0)\n"),
            Fault(
                "outbox/receiver/receipt.py",
                "        run_in(self._tx, ledger.",
                "        elsewhere = __import__('psycopg').connect(self._tx.info.dsn, password=self._tx.info.password)\n"
                "        with elsewhere:\n"
                "            run_in(elsewhere, ledger.",
            ),
        ),
        (LENT_TO_RECEIVE + "rolled_back_it_was_never_there[psycopg]",),
        on_postgres=True,
    ),
    Mutant(
        "the payload of a key that is known is not compared",
        (Fault(RECEIVE, "    if seen.payload != delivery.payload:\n", "    if False:\n"),),
        (LENT_TO_RECEIVE + "another_payload_is_refused_and_leaves_the_transaction_to_its_caller[sqlite3]",),
    ),
    Mutant(
        "a key is received without a look at the horizon",
        (Fault(RECEIVE, HORIZON, ""),),
        (RECEIVED + "a_key_is_remembered_for_as_long_as_was_declared_and_refused_when_it_has_been_forgotten[sqlite]",),
    ),
    Mutant(
        "the horizon is compared with when a key came, and not with when it was first sent",
        (Fault(RECEIVE, HORIZON, "   and s.horizon <= {now}\n"),),
        (RECEIVED + "no_clock_has_to_be_right_for_a_late_duplicate_to_be_refused[sqlite]",),
    ),
    Mutant(
        "keys are deleted by their age and not by the horizon",
        (
            Fault(
                RECEIVE,
                '"horizon": held.horizon, "many": many}',
                '"horizon": await now() - (held.remembers or 0), "many": many}',
            ),
        ),
        (RECEIVED + "nothing_is_deleted_that_the_horizon_does_not_refuse[sqlite]",),
    ),
    Mutant(
        "a key at the horizon is deleted",
        (Fault(RECEIVE, "counts_from < :horizon", "counts_from <= :horizon"),),
        (RECEIVED + "a_key_is_remembered_for_as_long_as_was_declared_and_refused_when_it_has_been_forgotten[sqlite]",),
    ),
    Mutant(
        "a key without a time is taken where keys are forgotten",
        (
            Fault(
                RECEIVE,
                "        if (forgets or has_forgotten) and delivery.undated != APPLY:\n",
                "        if has_forgotten and delivery.undated != APPLY:\n",
            ),
        ),
        (RECEIVED + "a_key_without_a_time_is_refused_where_keys_are_forgotten[sqlite]",),
    ),
    Mutant(
        "a key without a time is taken where keys have been forgotten and are to be no more",
        (
            Fault(
                RECEIVE,
                "        if (forgets or has_forgotten) and delivery.undated != APPLY:\n",
                "        if forgets and delivery.undated != APPLY:\n",
            ),
            Fault(RECEIVE, "then s.horizon else 0 end", "then s.horizon else s.horizon end"),
        ),
        (RECEIVED + "a_key_without_a_time_is_refused_where_keys_have_been_forgotten_whatever_is_said_now[sqlite--1]",),
    ),
    Mutant(
        "a key without a time passes the horizon where it is written",
        (Fault(RECEIVE, "then s.horizon else 0 end", "then s.horizon else s.horizon end"),),
        (RECEIVED + "the_horizon_is_asked_again_where_the_key_is_written[sqlite]",),
    ),
    Mutant(
        "who says nothing of how long keys are remembered has them remembered for ever",
        (
            Fault(
                RECEIVE,
                "        return None if seen is None else seen.remembers\n",
                "        return None\n",
            ),
        ),
        (RECEIVED + "who_says_nothing_of_how_long_keys_are_remembered_changes_nothing[sqlite]",),
    ),
    Mutant(
        "an answer to what was rolled back is stored for whoever committed",
        (Fault(RECEIVE, "and r.key = :key and r.receipt = :receipt\n", "and r.key = :key\n"),),
        (SERVED + "an_answer_to_what_was_rolled_back_is_not_stored_for_the_delivery_that_committed" + BY_WSGI,),
    ),
    Mutant(
        "what was stated goes before what a key says itself",
        (Fault(RECEIVE, "return stated if own is None else own", "return own if stated is None else stated"),),
        (RECEIVED + "a_uuid_of_version_7_says_when_it_was_made",),
    ),
    Mutant(
        "who receives a key waits for whoever is at it",
        (Fault(RECEIVE, "    if not await _is_free(delivery.source, delivery.key):\n", "    if False:\n"),),
        (receivers("receive-receive-postgres"),),
        on_postgres=True,
    ),
    Mutant(
        "who receives the first key of a source waits for whoever does",
        (Fault(RECEIVE, "    if not await _is_free(delivery.source):\n", "    if False:\n"),),
        (LENT_TO_RECEIVE + "so_is_the_first_key_of_a_source[psycopg]",),
        on_postgres=True,
    ),
    Mutant(
        "whoever saw nobody before it is the first",
        (Fault(RECEIVE, "    if bytes(seen.receipt) == delivery.receipt:\n", "    if True:\n"),),
        (receivers("receive-receive-again-postgres"),),
        on_postgres=True,
    ),
    Mutant(
        "the middleware receives the key in a transaction of its own",
        (
            Fault(
                RECEIVE,
                "    if mark is None or bytes(mark.holder) == delivery.receipt:\n",
                "    if mark is None or bytes(mark.holder) == delivery.receipt:\n        await receive(delivery)\n",
            ),
        ),
        (SERVED + "what_the_application_rolled_back_was_never_received_and_may_be_tried_again" + BY_WSGI,),
    ),
    Mutant(
        "a mark is taken from whoever works",
        (Fault(RECEIVE, " where duly_receiving.until <= {now}\n", " where duly_receiving.until > 0\n"),),
        (RECEIVED + "who_comes_meanwhile_is_told_how_long_at_the_latest[sqlite]",),
    ),
    Mutant(
        "a mark never lapses",
        (Fault(RECEIVE, " where duly_receiving.until <= {now}\n", " where duly_receiving.until <= 0\n"),),
        (RECEIVED + "a_mark_whose_server_was_killed_lapses_by_the_clock_of_the_ledger[sqlite]",),
    ),
    Mutant(
        "who leaves takes any mark away",
        (Fault(RECEIVE, "and key = :key and holder = :holder", "and key = :key and holder = holder"),),
        (RECEIVED + "who_leaves_takes_its_own_mark_away_and_no_other[sqlite]",),
    ),
    Mutant(
        "a 5xx is stored",
        (Fault("outbox/receiver/http.py", "    return 200 <= status < 500\n", "    return 200 <= status\n"),),
        (SERVED + "a_5xx_after_the_commit_is_not_stored_and_the_application_is_asked_again" + BY_WSGI,),
    ),
    Mutant(
        "an answer is stored whatever became of the key",
        (
            Fault(
                RECEIVE,
                " where r.source = :source and r.key = :key and r.receipt = :receipt\n",
                " where r.source = :source\n",
            ),
        ),
        (RECEIVED + "an_answer_is_stored_for_a_key_that_was_committed_and_for_no_other[sqlite]",),
    ),
    Mutant(
        "every header of an answer is stored",
        (
            Fault(
                "outbox/receiver/http.py",
                " for name, value in headers if name.lower() in rules.stored_headers)",
                " for name, value in headers)",
            ),
        ),
        ("tests/receiver/test_http.py::test_of_headers_those_are_stored_that_were_named_and_never_a_cookie",),
    ),
    Mutant(
        "a long answer is stored",
        (Fault(DOOR, " or len(response.body) > rules.longest_answer:", ":"),),
        (SERVED + "an_answer_that_is_too_long_is_not_stored_and_the_application_is_asked_again" + BY_WSGI,),
    ),
    Mutant(
        "an answer in an event loop is sent and not stored",
        (
            Fault(
                "outbox/receiver/asgi.py",
                'self.leave(None if more else Response(start["status"], _plain(start["headers"]), self._held))',
                "self.leave(None)",
            ),
        ),
        (SERVED + "of_headers_a_replay_has_those_that_describe_the_answer_and_no_cookie" + BY_ASGI,),
    ),
)

# Faults that a story finds, and a history without being told where to look.
FOUND_AGAIN = {
    "a row count decides whether a commit may happen": "sqlite-take-over-swallowed",
    "the refusal ends the statement and not the transaction": "sqlite-take-over-swallowed",
    "an attempt may end twice": "sqlite-complete-complete",
    "the guard names the number without the attempt": "sqlite-zombie-complete",
    "a take-over leaves the old attempt without an end": "sqlite-take-over-take-over",
    "a reopen only adds the next revision": "sqlite-reopen-complete",
}

AGAIN = tuple(
    mutant._replace(name=f"{mutant.name}, in a history", found_by=(history(FOUND_AGAIN[mutant.name]),))
    for mutant in MUTANTS
    if mutant.name in FOUND_AGAIN
)

GROUP, JOB, GROUPS = "ledger/group.py", "work/job.py", "tests/work/test_group.py::test_"
COMMITS = (
    Mutant(
        "a run of a group is completed whatever it is by then",
        (
            Fault(
                GROUP, "and state in {from} and state <> 'running' and fence = :seen_fence", "and fence = :seen_fence"
            ),
        ),
        (GROUPS + "what_is_not_free_any_more_is_not_completed_and_takes_its_group_along",),
    ),
    Mutant(
        "what was done before a failure in a group is committed without its completions",
        (
            Fault(
                JOB,
                "                worked[-1]._abandon()\n                if not isinstance(e, Exception):",
                "                if not isinstance(e, Exception):",
            ),
        ),
        (GROUPS + "one_that_fails_is_on_record_and_the_others_are_done_once",),
    ),
    Mutant(
        "a run of a group goes on writing after its turn",
        (Fault(JOB, "                worked[-1]._leave()\n", "                pass\n"),),
        (GROUPS + "a_run_of_before_cannot_write_for_the_next_one",),
    ),
    Mutant(
        "each run of a group is committed by itself",
        (
            Fault(
                JOB,
                "            if monotonic() - began > GROUP_SECONDS:\n                break\n",
                "            break\n",
            ),
        ),
        (GROUPS + "what_is_owed_is_worked_in_one_commit_each_run_on_record",),
    ),
    Mutant(
        "a group whose commit failed is told as done",
        (
            Fault(
                JOB,
                "is_done = self._store.read(has_completed(group.first.claim))",
                "is_done = True",
            ),
        ),
        (
            "tests/work/test_group_on_postgres.py::test_where_a_commit_fails_they_are_worked_one_by_one_and_the_guilty_one_is_found",
        ),
        on_postgres=True,
    ),
)

SEND, DELIVER, MESSAGES, RELAY = "ledger/send.py", "ledger/deliver.py", "ledger/messages.py", "outbox/relay.py"
MESSAGE_PROBE = "ledger/message_probe.py"
POST = "tests/outbox/test_messages.py::test_"
KILLS = "tests/outbox/test_kills.py::test_"
MAIL = "tests/exec/test_outbox.py::test_"


def mail(race: str) -> str:
    """The test that tells every history of two that meet at a message."""
    return f"tests/histories/test_post.py::test_every_history_of_two_keeps_the_invariants[{race}]"


OUTBOX = (
    Mutant(
        "an attempt at a message needs no id",
        (
            Fault(
                DELIVER,
                '   and state in {{from}} and attempt_id = :attempt_id and fence = :fence\n"',
                '   and state in {{from}} and fence = :fence\n"',
            ),
        ),
        (POST + "the_right_number_needs_the_right_attempt_as_well[sqlite]",),
    ),
    Mutant(
        "an attempt at a message needs no number",
        (
            Fault(
                DELIVER,
                '   and state in {{from}} and attempt_id = :attempt_id and fence = :fence\n"',
                '   and state in {{from}} and attempt_id = :attempt_id\n"',
            ),
        ),
        (POST + "an_attempts_right_id_needs_the_right_number_as_well[sqlite]",),
    ),
    Mutant(
        "an unknown message is sent again though its receiver forgets",
        (
            Fault(
                DELIVER, "   and stored = 0 and first_sent_at + :remembers > :instant + :lease\n", "   and stored = 0\n"
            ),
        ),
        (POST + "a_receiver_that_does_not_is_never_sent_it_again[sqlite]",),
    ),
    Mutant(
        "a relay forgets what a receiver does not remember",
        (
            Fault(
                DELIVER, "   and stored = 0 and first_sent_at + :remembers > :instant + :lease\n", "   and stored = 0\n"
            ),
        ),
        (KILLS + "a_receiver_that_does_not_is_sent_nothing_twice[sqlite-after-sending]",),
    ),
    Mutant(
        "the receiver is thought to remember from the last sending",
        (
            Fault(
                DELIVER,
                "   and stored = 0 and first_sent_at + :remembers",
                "   and stored = 0 and started_at + :remembers",
            ),
        ),
        (POST + "the_receiver_remembers_from_the_first_sending_and_not_from_the_last[sqlite]",),
    ),
    Mutant(
        "a message is sent again at the last moment",
        (
            Fault(
                DELIVER, "first_sent_at + :remembers > :instant + :lease\n", "first_sent_at + :remembers > :instant\n"
            ),
        ),
        (POST + "it_is_not_sent_so_late_that_it_would_arrive_after_the_receiver_forgot[sqlite]",),
    ),
    Mutant(
        "an answer that the receiver keeps is asked for again",
        (Fault(DELIVER, "   and stored = 0 and first_sent_at", "   and first_sent_at"),),
        (POST + "an_answer_that_the_receiver_keeps_is_not_asked_for_again[sqlite]",),
    ),
    Mutant(
        "what surely failed makes one forget an earlier doubt",
        (Fault(DELIVER, "   and coalesce(doubt_number, fence) = fence\\n", ""),),
        (POST + "what_surely_failed_after_a_doubt_leaves_the_doubt[sqlite-not sent]",),
    ),
    Mutant(
        "a question that nobody answered counts as a sending that failed",
        (
            Fault(
                MESSAGE_PROBE,
                "       denials = 0, failures = 0, probe_until = null",
                "       denials = 0, probe_until = null",
            ),
        ),
        ("tests/outbox/test_relay.py::test_tries_are_counted_anew_when_a_probe_has_denied_a_message[sqlite]",),
    ),
    Mutant(
        "a sending that surely failed counts as the first",
        (
            Fault(
                DELIVER,
                "first_sent_at = case when first_sent_at < started_at then first_sent_at end",
                "first_sent_at = first_sent_at",
                2,
            ),
        ),
        (POST + "a_sending_that_surely_failed_does_not_begin_that_time[sqlite]",),
    ),
    Mutant(
        "a vanished relay has sent nothing",
        (Fault("ledger/message_states.py", '"lapse": {SENDING: UNKNOWN}', '"lapse": {SENDING: PENDING}'),),
        (POST + "a_vanished_attempt_leaves_its_message_unknown[sqlite]",),
    ),
    Mutant(
        "a relay that was stopped has vanished",
        (Fault(DELIVER, "        if await alive(gone.attempt_id):\n", "        if False:\n"),),
        (POST + "a_relay_that_shows_a_pulse_has_not_vanished[sqlite]",),
    ),
    Mutant(
        "a message does not wait for the one before it",
        (Fault(SEND, "       case when not exists (select 1\n", "       case when 1 = 1 or not exists (select 1\n"),),
        (POST + "the_messages_of_a_run_go_one_after_the_other[sqlite]",),
    ),
    Mutant(
        "the next message is not told that its turn has come",
        (
            Fault(
                DELIVER,
                "    if state in message_states.SETTLED:\n        await count(WAKE_NEXT, **run_parameters(message.run))\n",
                "",
            ),
        ),
        (POST + "the_next_message_goes_when_the_one_before_it_is_settled[sqlite]",),
    ),
    Mutant(
        "did not is believed the first time",
        (Fault("ledger/found.py", "word.at_once or denials > 0", "True"),),
        (POST + "did_not_is_believed_twice[sqlite]",),
    ),
    Mutant(
        "a new doubt was denied before",
        (Fault(DELIVER, "doubted_at = {{now}}, denials = 0,\n", "doubted_at = {{now}},\n", times=2),),
        (POST + "a_new_doubt_forgets_that_it_was_denied[sqlite]",),
    ),
    Mutant(
        "a probe does not wait",
        (Fault(MESSAGE_PROBE, "   and doubted_at + :probe_after <= {{now}}\n", ""),),
        (POST + "a_probe_waits_until_the_effect_could_be_seen[sqlite]",),
    ),
    Mutant(
        "a message is looked for while its attempt lives",
        (
            Fault(
                DELIVER, "    gone = seen.attempt_id is None or not await alive(seen.attempt_id)\n", "    gone = True\n"
            ),
        ),
        (POST + "an_attempt_that_may_be_alive_is_not_looked_for[sqlite]",),
    ),
    Mutant(
        "two probes ask at once",
        (
            Fault(
                MESSAGE_PROBE,
                "probe_until = {{now}} + :lease, due_at = {{now}} + :lease\n",
                "probe_until = {{now}} + :lease\n",
            ),
            Fault(MESSAGE_PROBE, " and coalesce(probe_until, 0) <= {{now}}\n", "\n"),
        ),
        (POST + "two_probes_do_not_ask_at_once[sqlite]",),
    ),
    Mutant(
        "what a probe finds needs no question of its own",
        (
            Fault(
                MESSAGE_PROBE,
                "   and state in {{from}} and probe_id = :probe_id and fence = :fence and doubted_at = :doubted_at\n",
                "   and fence = :fence and :probe_id is not null and :doubted_at is not null\n",
            ),
        ),
        (POST + "what_a_probe_says_after_a_person_is_too_late[sqlite]",),
    ),
    Mutant(
        "each relay counts its own sendings alone",
        (
            Fault(
                DELIVER,
                "    free = min(limits.at_once - sending, len(attempts))\n",
                "    free = min(limits.at_once, len(attempts))\n",
            ),
        ),
        (POST + "no_more_are_sent_at_once_than_the_destination_takes[sqlite]",),
    ),
    Mutant(
        "the rate is kept by nobody",
        (Fault(DELIVER, "set next_at = :next_at where name", "set next_at = 0 * :next_at where name"),),
        (POST + "no_more_are_sent_in_a_time_than_the_rate_allows[sqlite]",),
    ),
    Mutant(
        "what was to be sent before the ledger went back is sent",
        (
            Fault(
                "ledger/restore.py",
                "    messages = await count(DOUBT_MESSAGES, at=at, cause=cause, lost=NUMBERS_LOST)\n",
                "    messages = 0\n",
            ),
        ),
        (POST + "what_was_to_be_sent_when_the_ledger_went_back_may_have_been_sent_since[sqlite]",),
    ),
    Mutant(
        "an ordered run does not wait for messages",
        (Fault(TAKE, "        if undelivered is not None:\n", "        if undelivered is not None and False:\n"),),
        (POST + "in_an_ordered_job_a_run_waits_for_the_messages_of_the_one_before_it[sqlite]",),
    ),
    Mutant(
        "a run is reopened whatever its messages are",
        (Fault(RESOLVE, '        await refuse_undelivered(run, "reopen")\n', "        assert refuse_undelivered\n"),),
        (POST + "a_run_is_not_reopened_before_its_messages_are_delivered[sqlite]",),
    ),
    Mutant(
        "a run is pruned whatever its messages are",
        (
            Fault(
                "ledger/forget.py",
                "                      and (m.settled_at is null or m.settled_at > :settled_by)))\n",
                "                      and 1 = 0))\n",
            ),
        ),
        (POST + "a_run_is_not_pruned_before_its_messages_are_delivered_for_as_long[sqlite]",),
    ),
    Mutant(
        "a view shows what a message says",
        (
            Fault(
                TRIGGER,
                "m.fence as attempts, m.doubt_number",
                "(select body from duly_message_body) as body, m.fence as attempts, m.doubt_number",
            ),
        ),
        (POST + "no_view_and_no_row_but_its_own_shows_a_body[sqlite]",),
    ),
    Mutant(
        "messages are written though the run was lost",
        (
            Fault(
                COMPLETE,
                '    await record_end_or_raise(claim, states.COMPLETED, "completed")\n    await keep',
                "    await keep",
            ),
        ),
        (POST + "a_stale_attempt_sends_nothing[sqlite]",),
    ),
    Mutant(
        "messages of a command that failed are sent",
        (
            Fault(
                "work/wrapping.py",
                '        discarded = f"{messages_in_words(many)} of',
                '        discarded = "" if many else f"{messages_in_words(many)} of',
            ),
        ),
        (MAIL + "messages_of_a_command_that_did_not_end_well_are_discarded_with_evidence[failed]",),
    ),
    Mutant(
        "half a line is a message",
        (Fault("work/mail.py", '    if not text.endswith(b"\\n"):\n', "    if not text:\n"),),
        (MAIL + "a_line_that_has_no_end_may_be_half_a_message",),
    ),
    Mutant(
        "a destination that raised has sent nothing",
        (
            Fault(
                RELAY,
                "            return SaidUnknown(cause, self._after(parcel))\n",
                "            return SaidNotSent(cause, 0, 0)\n",
            ),
        ),
        ("tests/outbox/test_relay.py::test_a_destination_that_raises_says_nothing_of_the_message",),
    ),
    Mutant(
        "what no destination could be made for may have been sent",
        (
            Fault(
                RELAY,
                "            return self._said(parcel, NotSent(cause))\n",
                "            return self._said(parcel, Unknown(cause))\n",
            ),
        ),
        ("tests/outbox/test_relay.py::test_what_no_destination_could_be_made_for_was_surely_not_sent[sqlite]",),
    ),
    Mutant(
        "one who is to end waits for as long as anything is due",
        (Fault(RELAY, "any(seconds < lane.patience and self._has_due(lane)", "any(self._has_due(lane)"),),
        ("tests/outbox/test_relay.py::test_one_who_is_to_end_does_not_wait_for_what_it_may_not_take[sqlite-rate]",),
    ),
    Mutant(
        "one who is to end waits for no rate",
        (
            Fault(RELAY, "interval if interval <= LONGEST_WAIT_FOR_RATE else 0", "0"),
            Fault(RELAY, "MOMENT = 2 *", "MOMENT = 0 *"),
        ),
        ("tests/outbox/test_relay.py::test_a_rate_that_lets_the_next_one_pass_soon_is_waited_for",),
    ),
    Mutant(
        "a destination's command holds no pulse",
        (Fault("outbox/destinations/child.py", "            pass_fds=_inherited.get(),\n", ""),),
        (MAIL + "a_relay_that_was_killed_has_not_vanished_while_its_command_works",),
    ),
    Mutant(
        "a destination's command sees where the ledger is",
        (Fault("outbox/routes.py", "name, others, hidden=hidden)", "name, others)"),),
        (MAIL + "the_variable_that_names_the_ledger_is_hidden_from_a_destinations_command_and_its_probe",),
    ),
    Mutant(
        "a destination that nobody declared is shown",
        (Fault("work/mail.py", "        except UnknownDestination:", "        except ZeroDivisionError:"),),
        (MAIL + "what_cannot_be_understood_sends_nothing_and_the_runs_end_says_so",),
    ),
    Mutant(
        "a check does not look at destinations",
        (Fault("cli/jobs_check.py", "    _check_destinations(layers, problems)\n", ""),),
        (MAIL + "a_mistake_in_another_destinations_table_fails_no_command_and_is_found_by_a_check[kind]",),
    ),
    Mutant(
        "a relay begins what it took before its host slept",
        (Fault(RELAY, "        if awake() - began > self.lease_seconds - seconds:", "        if False:"),),
        ("tests/outbox/test_relay.py::test_what_was_taken_before_the_host_slept_is_not_begun",),
    ),
    *(
        Mutant(name, faults, (mail(race),), on_postgres=True)
        for name, faults, race in (
            (
                "a reopen looks at messages without holding the run",
                (
                    Fault(
                        RESOLVE,
                        "    await one(HOLD_RUN, str, **run_parameters(run))\n    seen = await look_newest(",
                        "    seen = await look_newest(",
                    ),
                ),
                "postgres-send-reopen",
            ),
            (
                "a message is added without holding the run",
                (
                    Fault(
                        SEND,
                        "if await one(HOLD_RUN, str, **run_parameters(run)) !=",
                        "if await one(LOOK_AT_RUN, str, **run_parameters(run)) !=",
                    ),
                    Fault(
                        SEND,
                        "SENT_AS = Statement(",
                        'LOOK_AT_RUN = Statement("look_at_run", HOLD_RUN.sql.replace("{lock}", ""))\n\nSENT_AS = Statement(',
                    ),
                ),
                "postgres-send-deliver",
            ),
            (
                "a message is settled without holding the run",
                (Fault(DELIVER, "    await one(HOLD_RUN, str, **run_parameters(message.run))\n", ""),),
                "postgres-send-deliver",
            ),
            (
                "a message is added without holding the series",
                (Fault(SEND, "s.horizon <= :nominal {share}", "s.horizon <= :nominal"),),
                "postgres-send-forget",
            ),
        )
    ),
)

END_TO_END = "tests/outbox/test_end_to_end.py::test_a_shop_that_"
ONCE = END_TO_END + "remembers_keys_for_a_time_has_each_effect_once_in_a_storm[sqlite]"
BY_A_WORD = END_TO_END + "remembers_nothing_is_sent_nothing_twice_without_a_word_in_a_storm[sqlite]"
# Each of these shows from end to end; of what is nearer to the fault, OUTBOX and RECEIVERS tell.
STORM = (
    Mutant(
        "in a storm: another first sending is named each time",
        (
            Fault(
                HTTP,
                "instant_text(message.first_sent_at)",
                "instant_text(message.first_sent_at + message.attempt * SECOND)",
            ),
        ),
        (ONCE,),
    ),
    Mutant(
        "in a storm: the effect is had for each delivery",
        (
            Fault(
                "outbox/receiver/door.py",
                "        self.outcome = answer = received_or_replayed(tx, self._delivery, found)\n",
                "        self.outcome = answer = received_or_replayed(tx, self._delivery, found)\n        return True\n",
            ),
        ),
        (ONCE,),
    ),
    Mutant(
        "in a storm: an answer that was cut off says that nothing was sent",
        (Fault(HTTP, "raise NoAnswer(deadline.why(_why(e))) from None", 'raise NotTaken("no answer") from None'),),
        (BY_A_WORD,),
    ),
    Mutant(
        "in a storm: a vanished relay has sent nothing",
        (Fault("ledger/message_states.py", '"lapse": {SENDING: UNKNOWN}', '"lapse": {SENDING: PENDING}'),),
        (BY_A_WORD,),
    ),
)

PLACES, OUTPUTS, RUN = "work/output.py", "ledger/output.py", "work/run.py"
PUBLISH, VERIFY = "tests/faults/test_publish.py::test_", "tests/cli/test_runs_verify.py::test_"
PUBLISHED = (
    Mutant(
        "an attempt clears away what its successors have written",
        (
            Fault(
                OUTPUTS,
                "and revision = :revision and number < :number\n",
                "and revision = :revision and number <> :number\n",
            ),
            Fault(
                OUTPUTS, "   and state in ('running', 'unknown') and attempt_id = :attempt_id and fence = :number\n", ""
            ),
        ),
        (PUBLISH + "a_superseded_attempt_is_told_that_and_not_to_overwrite_what_is_there[on_postgres]",),
        on_postgres=True,
    ),
    Mutant(
        "a function that answers nothing says that it did not happen",
        (
            Fault(
                "outbox/destinations/probes.py",
                '    return CannotTell(f"the probe answered neither Happened nor DidNot, but a {type(found).__name__}")\n',
                '    return DidNot("the probe says that it did not")\n',
            ),
        ),
        (OF_COMMANDS + "a_function_that_answers_anything_else_tells_nothing",),
    ),
    Mutant(
        "a file is moved though another attempt has the run",
        (Fault(PLACES, "        transaction.drive(hold_and_record_output_or_raise(claim, self.finish()))\n", ""),),
        (PUBLISH + "a_superseded_attempt_never_overwrites[on_postgres-with-rows-True]",),
        on_postgres=True,
    ),
    Mutant(
        "a file is moved while nobody holds the run",
        (Fault(OUTPUTS, "    await one(HOLD_RUN, str, **run_parameters(claim.run))\n", ""),),
        (PUBLISH + "a_run_whose_file_is_being_moved_is_not_taken_over[on_postgres]",),
        on_postgres=True,
    ),
    Mutant(
        "a file is a sign that its result was kept",
        (Fault(RUN, "        return left == Left(self._place.final)\n", "        return True\n"),),
        (PUBLISH + "killed_with_a_result_unwritten_the_work_is_done_again[on_sqlite]",),
    ),
    Mutant(
        "a command's file is a sign that its messages were sent",
        (Fault("work/wrapping.py", "            if not letters:  #", "            if True:  #"),),
        (MAIL + "killed_between_link_and_commit_a_file_is_no_sign_that_its_messages_were_sent[idempotent-0]",),
    ),
    Mutant(
        "nothing is on record when a file is moved",
        (Fault(RUN, "            place.record(self._store, self._claim)\n", "            pass\n"),),
        (PUBLISH + "killed_between_link_and_commit_the_next_attempt_completes_and_calls_nothing[on_sqlite-contract0]",),
    ),
    Mutant(
        "what an earlier attempt had on record is kept while the work is done again",
        (Fault(PLACES, "        store.write(forget_output(claim))\n", ""),),
        (PUBLISH + "what_was_on_record_of_a_file_says_nothing_of_the_same_file_with_rows[on_sqlite]",),
    ),
    Mutant(
        "the file of an attempt that was killed is nobody's",
        (Fault(PLACES, "        _unlink(final)\n    _unlink(temporary)\n", "        pass\n    _unlink(temporary)\n"),),
        (PUBLISH + "killed_with_rows_uncommitted_the_work_is_done_again_and_its_file_replaced[on_sqlite]",),
    ),
    Mutant(
        "any file of that length is the one that was written",
        (Fault(PLACES, "_digest(intent.path)[1] == intent.sha256", "True"),),
        (
            PUBLISH + "a_file_with_another_digest_proves_nothing[on_sqlite-other]",
            VERIFY + "a_file_that_is_another_is_found[other-has another digest]",
        ),
    ),
    Mutant(
        "an attempt that fails leaves what it wrote",
        (
            Fault(
                RUN,
                "        self._over = True\n        if self._place is not None:\n            self._place.discard()\n",
                "",
            ),
        ),
        (PUBLISH + "an_attempt_that_fails_leaves_no_file[on_sqlite]",),
    ),
    Mutant(
        "a file stays though its commit was refused",
        (Fault(RUN, "                    self._place.withdraw()\n", "                    pass\n"),),
        (PUBLISH + "a_completion_that_the_database_refuses_takes_its_file_back[on_postgres]",),
        on_postgres=True,
    ),
    Mutant(
        "an unknown run is never known by its file",
        (Fault(PLACES, "    if standing.state != states.UNKNOWN or ", "    if True or "),),
        (PUBLISH + "an_external_run_that_is_killed_so_is_known_by_its_file[on_sqlite-run]",),
    ),
    Mutant(
        "a run is verified without its messages",
        (Fault("cli/runs_verify.py", "    if not claimed.messages.is_settled:\n", "    if False:\n"),),
        (VERIFY + "messages_that_are_not_delivered_are_found",),
    ),
    Mutant(
        "a run is verified without its attempt",
        (Fault("evidence/verify.py", " and a.attempt_id = r.attempt_id and a.outcome = 'completed'\n", "\n"),),
        (VERIFY + "a_completion_without_its_attempt_is_found",),
    ),
)

CHAIN = "evidence/chain.py"
RECORD, EXPORTED = "tests/ledger/test_audit.py::test_", "tests/evidence/test_export.py::test_"

RECORDED = (
    Mutant(
        "a line's hash forgets the line before it",
        (Fault(CHAIN, "hashlib.sha256(previous.encode() + canonical(fields))", "hashlib.sha256(canonical(fields))"),),
        (EXPORTED + "tampering_is_found[two lines are swapped]",),
    ),
    Mutant(
        "another text of the same meaning is the same line",
        (Fault(CHAIN, ' and canonical(found) + b"\\n" == line', ""),),
        (EXPORTED + "tampering_is_found[a line is written otherwise]",),
    ),
    Mutant(
        "an export without a trailer is whole",
        (Fault(CHAIN, "        if not self.closing:\n", "        if False:\n"),),
        (EXPORTED + "tampering_is_found[it is cut off]",),
    ),
    Mutant(
        "what stands after the trailer is read like the rest",
        (Fault(CHAIN, "        if self.closing:\n", "        if False:\n"),),
        (EXPORTED + "tampering_is_found[a line that fits the last is added after the trailer]",),
    ),
    Mutant(
        "what a trailer counts is believed",
        (Fault(CHAIN, "for name in counted} != counted:", "for name in counted} is None:"),),
        (EXPORTED + "tampering_is_found[the trailer counts less]",),
    ),
    Mutant(
        "an export that is not signed passes with a key",
        (
            Fault(
                CHAIN, "        if not self.is_signed:\n", "        if not self.is_signed:\n            return None\n"
            ),
        ),
        (EXPORTED + "a_file_that_was_written_anew_is_found_by_the_key",),
    ),
    Mutant(
        "an export holds what the schedule names, and no other row",
        (
            Fault(
                "evidence/export.py",
                "            windows += await mine.off_the_grid(",
                "            await mine.off_the_grid(",
            ),
        ),
        (EXPORTED + "rows_that_no_schedule_names_any_more_are_there_too",),
    ),
    Mutant(
        "a range that is skipped leaves no event",
        (Fault(OPEN, '    await tell("range_skipped"', '    changed or await tell("range_skipped"'),),
        (RECORD + "a_change_says_who_when_why_and_what[sqlite-catch-up, of windows without rows]",),
    ),
    Mutant(
        "an event of a run is none of its job",
        (Fault("ledger/events.py", "line_of=series if run is None else run.series", "line_of=series"),),
        (RECORD + "the_list_is_narrowed_by_job_who_kind_and_time[sqlite]",),
    ),
    Mutant(
        "the doctor complains of what is paused",
        (Fault("evidence/doctor/ledger.py", " or pause_of(known, instant) is not None:", ":"),),
        ("tests/evidence/test_doctor.py::test_what_is_meant_to_wait_is_not_found",),
    ),
)

FORGET, BACKUP_FILE, TRUTHS_FILE = "ledger/forget.py", "store/backup.py", "ledger/truths.py"
PRUNE, BACKUP_TESTS = "tests/cli/test_db_prune.py::test_", "tests/cli/test_db_backup.py::test_"
FORGETTING = "tests/ledger/test_forget.py::test_"

KEPT = (
    Mutant(
        "a prune leaves nothing to judge a line by",
        (Fault(FORGET, "settled_by=settled_by, ended_by=before_newest)", "settled_by=settled_by)"),),
        (PRUNE + "the_newest_window_stays_however_old[sqlite]",),
    ),
    Mutant(
        "a prune goes as far as it may though there is nothing to forget",
        (Fault(FORGET, "    if not below.runs and not below.ranges:", "    if False:"),),
        (PRUNE + "what_was_never_on_record_may_yet_be_asked_for_however_old_it_is[sqlite]",),
    ),
    Mutant(
        "what catch-up works is forgotten",
        (Fault(FORGET, "    if max_age is not None and retain < max_age:\n", "    if False:\n"),),
        (PRUNE + "what_a_policy_still_needs_is_refused[sqlite-catch-up]",),
    ),
    Mutant(
        "what a destination remembers is forgotten here",
        (Fault(FORGET, "job.remembers is not None and retain < job.remembers", "False"),),
        (PRUNE + "what_a_policy_still_needs_is_refused[sqlite-remembers]",),
    ),
    Mutant(
        "a flag keeps less than the job says",
        (Fault("work/prune.py", "    if job.retain is not None and retain < job.retain:\n", "    if False:\n"),),
        (PRUNE + "what_a_policy_still_needs_is_refused[sqlite-retain]",),
    ),
    Mutant(
        "windows that were dropped a moment ago are forgotten",
        (Fault(FORGET, "in (beyond, kept, skipped, asked_for) if", "in (beyond, kept, asked_for) if"),),
        (FORGETTING + "windows_that_were_dropped_a_moment_ago_are_kept_for_as_long_as_any[sqlite]",),
    ),
    Mutant(
        "a batch goes up to a horizon that was never set",
        (Fault(FORGET, '"horizon": turn.horizon,', '"horizon": series.horizon,'),),
        (PRUNE + "a_batch_goes_no_further_than_the_horizon_that_the_series_has[sqlite]",),
    ),
    Mutant(
        "a batch deletes what is not settled",
        (
            Fault(
                FORGET,
                " and nominal between :first and :last and state in {settled}\n   and settled_at <= :settled_by\n",
                " and nominal between :first and :last\n",
            ),
            Fault(FORGET, ":horizon and state in {settled}\n           and settled_at <= :settled_by\n", ":horizon\n"),
        ),
        (PRUNE + "what_is_not_settled_stays_whatever_the_horizon_says[sqlite]",),
    ),
    Mutant(
        "what was settled a moment ago goes with the batch",
        (
            Fault(FORGET, '   and settled_at <= :settled_by\n"""', '"""'),
            Fault(
                FORGET,
                " and state in {settled}\n           and settled_at <= :settled_by\n",
                " and state in {settled}\n",
            ),
        ),
        (FORGETTING + "what_was_settled_meanwhile_is_kept_for_as_long_as_any[sqlite]",),
    ),
    Mutant(
        "a prune does not look again for what is unsettled once it holds the series",
        (
            Fault(
                FORGET,
                "    horizon = await _lowest_kept(unsettled, series",
                "    horizon = await _lowest_kept(None, series",
            ),
        ),
        (FORGETTING + "what_came_meanwhile_holds_the_horizon_back[sqlite]",),
    ),
    Mutant(
        "of a run outside the schedule nothing is left",
        (Fault(FORGET, "        await count(KEEP_ADHOC_STATE, **batch)\n", "        pass\n"),),
        (PRUNE + "of_a_run_outside_the_schedule_id_and_state_stay[sqlite]",),
    ),
    Mutant(
        "a refusal goes with the next prune",
        (Fault(FORGET, " and e.at <= :settled_by\n", " and :settled_by is not null\n"),),
        (PRUNE + "a_refusal_is_on_record_as_long_as_anything_and_words_of_a_job_stay[sqlite]",),
    ),
    Mutant(
        "a prune holds everybody up who claims",
        (
            Fault(
                FORGET,
                "from duly_series s where s.id = :series {{lock}}",
                "from duly_series s where s.id = :series {{alone}}",
            ),
        ),
        (PRUNE + "on_a_server_nobody_who_claims_waits_for_a_batch",),
        on_postgres=True,
    ),
    Mutant(
        "a batch may take for ever",
        (Fault(FORGET, "    await do(BOUND_STATEMENTS, millis=STATEMENT_MILLIS)\n", ""),),
        (PRUNE + "on_a_server_no_statement_of_a_batch_takes_for_ever",),
        on_postgres=True,
    ),
    Mutant(
        "a copy is of whatever instant each of its pages was read",
        (
            Fault(BACKUP_FILE, '    source.execute("begin")\n', ""),
            Fault(BACKUP_FILE, '    source.execute("rollback")\n', ""),
        ),
        (BACKUP_TESTS + "who_writes_goes_on_and_the_copy_is_of_one_instant",),
    ),
    Mutant(
        "a copy takes the place of another without a word",
        (
            Fault(BACKUP_FILE, "    if not may_replace:\n", "    if False:\n"),
            Fault(
                BACKUP_FILE, "            os.link(temporary, target)", "            os.link(temporary, target + 'x')"
            ),
        ),
        (BACKUP_TESTS + "a_copy_takes_the_place_of_another_only_if_that_is_said",),
    ),
    Mutant(
        "a copy that is not sound takes the place of one that is",
        (Fault(BACKUP_FILE, "    if found:\n", "    if False:\n"),),
        (BACKUP_TESTS + "nothing_is_left_of_a_copy_that_is_not_sound",),
    ),
    Mutant(
        "a copy that was put back stays one",
        (Fault("ledger/restore.py", "    await count(IS_PUT_BACK)\n", ""),),
        (BACKUP_TESTS + "a_copy_that_was_put_back_knows_it_once",),
    ),
    Mutant(
        "an attempt with too high a number is nothing to speak of",
        (Fault(TRUTHS_FILE, "having max(a.number) > r.fence\n", "having max(a.number) > r.fence + 1000\n"),),
        ("tests/ledger/test_truths.py::test_a_planted_corruption_is_found_by_its_truth[sqlite]",),
    ),
    Mutant(
        "an unsettled run below the horizon is nothing to speak of",
        (Fault(TRUTHS_FILE, " where r.nominal < s.horizon\n", " where r.nominal < s.horizon - s.horizon\n"),),
        ("tests/ledger/test_truths.py::test_a_planted_corruption_is_found_by_its_truth[sqlite]",),
    ),
)

PROBE, OF_PROBES = "ledger/probe.py", "tests/ledger/test_probe.py::test_"

PROBES = (
    Mutant(
        "that it did not happen is believed the first time",
        (Fault("ledger/found.py", "word.at_once or denials > 0", "True"),),
        ("tests/work/test_probe.py::test_a_run_that_did_not_happen_is_left_alone_until_it_was_said_twice",),
    ),
    Mutant(
        "it is asked though the attempt shows a pulse",
        (Fault(PROBE, " and not await alive(seen.attempt_id)\n", "\n"),),
        (OF_PROBES + "nobody_asks_while_the_attempt_shows_a_pulse[sqlite]",),
    ),
    Mutant(
        "it is asked at once",
        (
            Fault(PROBE, " and :doubted_at + :probe_after <= {now}\n", "\n"),
            Fault(PROBE, " and (await _doubt_of(seen.id)).at + probe_after <= await now()\n", "\n"),
        ),
        (OF_PROBES + "it_is_asked_a_while_after_the_doubt[sqlite]",),
    ),
    Mutant(
        "two ask at one time",
        (
            Fault(
                PROBE,
                " where duly_probe.next_at <= {now}\n    or",
                " where 1 = 1 or duly_probe.next_at <= {now}\n    or",
            ),
        ),
        (OF_PROBES + "two_do_not_ask_at_once_and_one_who_never_answers_is_followed[sqlite]",),
    ),
    Mutant(
        "a denial of another doubt counts",
        (Fault(PROBE, "then duly_probe.denials else 0 end", "then duly_probe.denials else duly_probe.denials end"),),
        (OF_PROBES + "an_attempt_that_went_on_is_asked_about_anew_when_it_is_in_doubt_again[sqlite]",),
    ),
    Mutant(
        "what was found of another doubt is written",
        (Fault(PROBE, " or (await _doubt_of(run)).id != question.doubt:", ":"),),
        (OF_PROBES + "an_attempt_that_went_on_is_asked_about_anew_when_it_is_in_doubt_again[sqlite]",),
    ),
    Mutant(
        "once waits for the commit of a stranger",
        (Fault("ledger/once.py", "    if not await try_lock(lock_of_run(run)):\n", "    if False:\n"),),
        ("tests/work/test_postgres.py::test_nobody_waits_for_the_commit_of_a_stranger_who_is_doing_the_same",),
        on_postgres=True,
    ),
    Mutant(
        "a claim waits for the commit of a stranger",
        (Fault("ledger/take.py", "None if found.is_free else", "None if True else"),),
        ("tests/work/test_postgres.py::test_nobody_waits_for_the_commit_of_a_stranger_who_is_doing_the_same",),
        on_postgres=True,
    ),
    Mutant(
        "of two doubts the one counts whose clock is ahead",
        (Fault(PROBE, " order by id desc limit 1\n", " order by at desc limit 1\n"),),
        (OF_PROBES + "a_clock_that_was_put_back_hides_no_doubt[sqlite]",),
    ),
    Mutant(
        "a new doubt rests as long as the one before",
        (Fault(PROBE, "and p.doubt = (select max(e.id)", "and 0 < (select max(e.id)"),),
        (OF_PROBES + "a_new_doubt_does_not_rest_as_long_as_the_one_before[sqlite]",),
    ),
    Mutant(
        "what was unknown before a restore is in the same doubt",
        (
            Fault(
                "ledger/restore.py",
                "    if run.state == states.UNKNOWN:\n        return True\n",
                "    if run.state == states.UNKNOWN:\n        return False\n",
            ),
        ),
        (OF_PROBES + "a_restored_ledger_begins_a_new_doubt[sqlite]",),
    ),
    Mutant(
        "who is in doubt is told that another has its run",
        (Fault(TAKE, "        if not is_in_doubt:\n            return LOST\n", "        return LOST\n"),),
        ("tests/ledger/test_take_over.py::test_an_attempt_whose_line_went_on_is_not_told_to_stop[sqlite]",),
    ),
    Mutant(
        "the end of a long output is its last line",
        (Fault("outbox/destinations/probes.py", "ended.is_cut and not newline", "False"),),
        ("tests/exec/test_probe.py::test_the_end_of_a_line_that_was_cut_tells_nothing",),
    ),
    Mutant(
        "a question outlives its run",
        (Fault("ledger/forget.py", '"probe", ', ""),),
        (OF_PROBES + "a_pruned_run_leaves_no_question[sqlite]",),
    ),
)

ALERTS, CONDITIONS, LOOKS = "ledger/alerts.py", "evidence/conditions.py", "tests/alerts/test_looks.py::test_"
PINGS = "tests/outbox/destinations/test_healthchecks.py::test_"
POKES = "tests/alerts/test_poke.py::test_"

TOLD = (
    Mutant(
        "a look writes though a later one has begun",
        (Fault(ALERTS, " where number = :number and recorded < :number\n", " where recorded < :number\n"),),
        (LOOKS + "of_two_who_look_at_once_one_writes[sqlite]",),
    ),
    Mutant(
        "a look is written twice",
        (Fault(ALERTS, " where number = :number and recorded < :number\n", " where number = :number\n"),),
        (LOOKS + "one_look_is_written_once[sqlite]",),
    ),
    Mutant(
        "everybody looks at every poke",
        (Fault(ALERTS, "looked_at <= {now} - :every or", "looked_at <= {now} - :every * 0 or"),),
        (LOOKS + "nobody_looks_twice_within_a_minute[sqlite]",),
    ),
    Mutant(
        "a look in the future keeps everybody from looking",
        (Fault(ALERTS, " or looked_at > {now}", ""),),
        (LOOKS + "a_clock_that_was_set_back_does_not_keep_anybody_from_looking[sqlite]",),
    ),
    Mutant(
        "that something was told is not noted with it",
        (Fault(ALERTS, "        await count(TELL_OF, id=id_)\n", "        pass\n"),),
        (LOOKS + "a_line_is_late_once_however_often_somebody_looks_and_whatever_else_becomes_late[sqlite]",),
    ),
    Mutant(
        "what is silenced is told",
        (Fault("ledger/silence.py", "alert.job_id == self.job_id", "alert.job_id is None"),),
        (LOOKS + "a_silence_keeps_quiet_and_what_is_still_so_afterwards_is_told[sqlite]",),
    ),
    Mutant(
        "what was silenced is forgotten",
        (
            Fault(
                ALERTS, "alert.id for alert in news if look.is_first", "alert.id for alert in alerts if look.is_first"
            ),
        ),
        (LOOKS + "a_silence_keeps_quiet_and_what_is_still_so_afterwards_is_told[sqlite]",),
    ),
    Mutant(
        "the first look is a storm",
        (Fault(ALERTS, "if look.is_first or len(theirs)", "if len(theirs)"),),
        (LOOKS + "the_first_look_says_in_one_message_how_much_there_is[sqlite]",),
    ),
    Mutant(
        "what had happened before anybody looked is news",
        (Fault(ALERTS, "max(first_at, recorded_at - LONGEST_TRANSACTION)", "recorded_at - LONGEST_TRANSACTION"),),
        (LOOKS + "what_had_happened_before_the_first_look_is_no_news[sqlite]",),
    ),
    Mutant(
        "what ends an alert overtakes what began it",
        (
            Fault(
                ALERTS,
                "            if await one(UNSENT_OF_RUN, int, job=JOB, adhoc=run) is not None:\n",
                "            if False:\n",
            ),
        ),
        (LOOKS + "what_ends_an_alert_waits_for_what_began_it[sqlite]",),
    ),
    Mutant(
        "that it was over is told after it has begun again",
        (Fault(ALERTS, "    news = [alert for alert in news if alert not in stale]\n", ""),),
        (LOOKS + "that_it_was_over_is_no_news_where_it_is_so_again[sqlite]",),
    ),
    Mutant(
        "a ledger without one of its tables is whole",
        (Fault("store/sound.py", "    return [*missed, *changed]\n", "    return []\n"),),
        ("tests/cli/test_db_backup.py::test_what_a_ledger_lacks_is_found",),
    ),
    Mutant(
        "a number that was given before makes the same key",
        (
            Fault(
                ALERTS, '    return f"{alert.id}-{alert.raised_at // SECOND}-{word}', '    return f"{alert.id}-{word}'
            ),
        ),
        (LOOKS + "a_ledger_that_went_back_gives_no_key_again[sqlite]",),
    ),
    Mutant(
        "to begin is to be in time",
        (Fault(CONDITIONS, "RETRYING, RUNNING, FAILED, UNKNOWN)\n\n", "RETRYING, FAILED, UNKNOWN)\n\n"),),
        (LOOKS + "it_is_late_until_the_window_is_complete_not_until_somebody_begins[sqlite]",),
    ),
    Mutant(
        "a doubt is told at once",
        (Fault(CONDITIONS, "<= {{now}} - :doubt_lasts", "<= {{now}} - 0 * :doubt_lasts"),),
        (LOOKS + "a_doubt_is_told_when_neither_a_sending_nor_a_probe_has_settled_it[sqlite]",),
    ),
    Mutant(
        "what a poke has looked for is left for somebody else to deliver",
        (Fault("cli/exec_look.py", "    if told or everything:\n", "    if everything:\n"),),
        (POKES + "when_every_scheduler_of_a_job_is_dead_a_poke_of_another_tells_that_it_is_late",),
    ),
    Mutant(
        "a check is up while something is open",
        (Fault("outbox/destinations/healthchecks.py", ' or still_open else ""', ' else ""'),),
        (PINGS + "a_check_is_down_while_anything_is_open",),
    ),
)

MEANT = "schedule/meant.py"
SYSTEMD, AIRFLOW, APS, EVENTBRIDGE, CLOUD = (
    f"trigger/{source}.py" for source in ("systemd", "airflow", "apscheduler", "eventbridge", "cloud_scheduler")
)
WHICH_WINDOW = "tests/trigger/test_meant.py::test_"
FIRINGS, HOSTILE = "trigger/__init__.py", "tests/trigger/test_hostile.py::test_"
OF_FIRINGS = "tests/trigger/test_firings.py::test_"
FIRED = (
    Mutant(
        "whatever is given as a scope enters the roster",
        (Fault("work/job.py", '    if scope != "":\n        check_scope(scope)\n', ""),),
        ("tests/work/test_job.py::test_what_cannot_be_a_scope_enters_no_roster",),
    ),
    Mutant(
        "a command has the locale that Python gives itself",
        (Fault("work/command.py", "        *_set_by_python(environment),\n", ""),),
        ("tests/exec/test_child_sees.py::test_the_locale_that_python_gives_itself_is_not_the_commands",),
    ),
    Mutant(
        "a time that is none of the schedule is rounded to one that is",
        (Fault(MEANT, "(meant.is_exact and newest.occurrence.due != meant.at)", "False"),),
        (f"{WHICH_WINDOW}a_time_that_is_none_of_the_schedule_is_refused_and_not_rounded",),
    ),
    Mutant(
        "a scheduler may count in another zone",
        (Fault(MEANT, 'meant.zone in ("", schedule.zone)', "True"),),
        (f"{WHICH_WINDOW}a_scheduler_that_counts_in_another_zone_is_refused_before_the_clocks_part_them",),
    ),
    Mutant(
        "of two windows that are due at once the newer one is guessed",
        (Fault(MEANT, "earlier is not None and earlier.occurrence.due == newest.occurrence.due", "False"),),
        (f"{WHICH_WINDOW}two_windows_that_are_due_at_once_are_not_guessed_between",),
    ),
    Mutant(
        "an interval of a week is for the day at its end",
        (Fault(MEANT, "return length in (until - since, until - since + moved)", "return True"),),
        (f"{WHICH_WINDOW}an_interval_of_another_length_is_refused_though_a_window_is_due_at_its_end",),
    ),
    Mutant(
        "a Job that a person named after a day is for a minute of 2008",
        (Fault("trigger/kubernetes.py", " and int(suffix) in plausible", " and unit"),),
        ("tests/trigger/test_kubernetes.py::test_a_job_with_another_name_was_made_by_a_person",),
    ),
    Mutant(
        "a Job that a person made borrows the window of now",
        (
            Fault(
                "trigger/kubernetes.py",
                'return Firing(SOURCE, MANUAL, job, pod, "the Job\'s name, which no CronJob gives", None)',
                "cronjob, suffix, unit = job, str(__import__('time').time_ns() // 60_000_000_000), MINUTE",
            ),
        ),
        (
            "tests/trigger/test_kubernetes.py::test_a_job_with_another_name_was_made_by_a_person",
            "tests/exec/test_trigger.py::test_a_job_made_by_hand_borrows_no_window",
        ),
    ),
    Mutant(
        "the time in the environment of a timer's service is believed",
        (
            Fault(
                SYSTEMD,
                'at = _fired(place, told["LastTriggerUSec"])',
                'at = int(environment["TRIGGER_TIMER_REALTIME_USEC"])',
            ),
        ),
        (
            "tests/trigger/test_systemd.py::test_the_time_in_the_environment_is_that_of_the_first_firing_and_says_nothing",
        ),
    ),
    Mutant(
        "who starts a timer's service by hand borrows the window of its last firing",
        (Fault(SYSTEMD, 'if told["SubState"] == "running":', "if True:"),),
        ("tests/exec/test_trigger.py::test_a_service_works_the_window_of_its_timers_firing_and_by_hand_none",),
    ),
    Mutant(
        "a manual run of Airflow's borrows the interval that it has",
        (Fault(AIRFLOW, '"manual": MANUAL,', '"manual": SCHEDULED,'),),
        (
            "tests/trigger/test_airflow.py::test_a_run_that_no_schedule_made_is_for_no_window_whatever_interval_it_has",
            "tests/scenarios/test_triggers.py::test_a_manual_run_that_has_the_interval_of_a_window_does_not_settle_it",
        ),
    ),
    Mutant(
        "the number of Airflow's try makes another run of a manual one",
        (Fault(AIRFLOW, 'name, attempt = f"{dag}/{run}", ', 'name, attempt = f"{dag}/{run}/{tries}", '),),
        ("tests/trigger/test_airflow.py::test_each_try_of_a_manual_run_is_at_the_same_run_and_no_other_dags",),
    ),
    Mutant(
        "what waits for a person is tried again by Airflow",
        (Fault(AIRFLOW, "        kind = kinds.AirflowFailException", "        kind = kinds.AirflowException"),),
        ("tests/trigger/test_airflow_tasks.py::test_what_waits_for_a_person_fails_without_another_try",),
    ),
    Mutant(
        "a job of APScheduler's that a person fired borrows the window of now",
        (Fault(APS, "if isinstance(trigger, DateTrigger) or not _is_its_own(trigger, time):", "if False:"),),
        ("tests/trigger/test_apscheduler.py::test_a_person_who_fires_it_works_no_window",),
    ),
    Mutant(
        "a call of APScheduler's is for the time of the last one of its list",
        (Fault(APS, "            _NOW.set(fired)", "            _NOW.set(self.fired[-1])"),),
        ("tests/trigger/test_apscheduler.py::test_each_of_the_times_that_were_missed_works_its_own_window",),
    ),
    Mutant(
        "the execution id of EventBridge is part of what is fired",
        (Fault(EVENTBRIDGE, "        at_time(schedule, at),\n", "        at_time(schedule + execution, at),\n"),),
        ("tests/trigger/test_eventbridge.py::test_another_attempt_has_another_execution_id_and_is_for_the_same_run",),
    ),
    Mutant(
        "an input that EventBridge has not filled in is believed",
        (Fault(EVENTBRIDGE, '        if not told[name] or str(told[name]).startswith("<aws."):', "        if False:"),),
        ("tests/trigger/test_eventbridge.py::test_a_word_that_was_not_replaced_is_told_apart_from_one_that_is_wrong",),
    ),
    Mutant(
        "a run of Cloud Scheduler's that was forced is for the minute in which it was",
        (Fault(CLOUD, "    if at % MINUTE:", "    at -= at % MINUTE\n    if at % MINUTE:"),),
        ("tests/trigger/test_cloud_scheduler.py::test_a_forced_run_has_seconds_and_borrows_no_window",),
    ),
    Mutant(
        "a process that a timer started long ago is taken for its last firing",
        (Fault(SYSTEMD, 'if service["InvocationID"] != invocation:', "if False:"),),
        ("tests/trigger/test_systemd.py::test_what_cannot_be_told_is_refused",),
    ),
    Mutant(
        "a time beyond every calendar is handed on to what works with calendars",
        (Fault(FIRINGS, "    if at not in _REACH:", "    if False:"),),
        (HOSTILE + "in_an_environment", HOSTILE + "of_a_timer"),
    ),
    Mutant(
        "a time of more lines than one is a time",
        (Fault(FIRINGS, "not isinstance(text, str) or not text.isprintable()", "not isinstance(text, str)"),),
        (HOSTILE + "in_an_environment",),
    ),
    Mutant(
        "digits of every script are a number",
        (Fault(FIRINGS, "number.isascii() and number.isdigit()", "number.isdigit()"),),
        (HOSTILE + "in_an_environment",),
    ),
    Mutant(
        "a name may be lines of a log",
        (Fault(FIRINGS, " or not name.isprintable():", ":"),),
        (HOSTILE + "in_an_environment",),
    ),
    Mutant(
        "a zone in beat's header is asked about when its window is looked up",
        (Fault(FIRINGS, "return Zone(name).name", "return name"),),
        (HOSTILE + "in_the_header_of_a_message",),
    ),
    Mutant(
        "a trigger of APScheduler's that raises keeps the calls from being made",
        (Fault(APS, "except Exception as e:  # whatever", "except MemoryError as e:  # whatever"),),
        (HOSTILE + "of_a_call_and_the_others_are_called",),
    ),
    *(
        Mutant(
            f"all firings of a schedule of {source} have one name",
            (Fault(file, find, plant, times),),
            (OF_FIRINGS + "a_firing_has_one_name_at_each_attempt_and_no_other_firing_has_it",)
            if file != SYSTEMD
            else (OF_FIRINGS + "so_it_is_with_a_timer",),
        )
        for source, file, find, plant, times in (
            ("Cloud Scheduler's", CLOUD, "else SCHEDULED, at_time(name, at)", "else SCHEDULED, name", 1),
            ("EventBridge's", EVENTBRIDGE, "        at_time(schedule, at),\n", "        schedule,\n", 1),
            ("systemd's", SYSTEMD, "at_time(timer, at)", "timer", 1),
        )
    ),
    Mutant(
        "beat's message is a catch-up where others were missed before it",
        (Fault("trigger/celery/beat.py", "is_late(from_datetime(newest), from_datetime(end))", "newest != first"),),
        (OF_FIRINGS + "what_is_on_time_is_scheduled_though_others_were_missed_before_it",),
    ),
    Mutant(
        "a call of APScheduler's that is late is on time",
        (Fault(APS, "CATCH_UP if is_late(at, now) else SCHEDULED", "SCHEDULED"),),
        (f"{OF_FIRINGS}what_comes_more_than_a_minute_after_its_time_is_caught_up_with_by_both_that_know",),
    ),
)

DUE, DUES = "cli/due.py", "tests/cli/test_check.py::test_due_"
ASKED = (
    Mutant(
        "due asks about a job as the ledger has it, whatever is declared",
        (Fault(DUE, "Declaration(args.job) if entry is None else entry.declaration", "Declaration(args.job)"),),
        (DUES + "is_0_for_a_job_that_its_first_poke_would_register", DUES + "asks_as_the_configuration_has_it"),
    ),
    Mutant(
        "due says yes where a ledger is named in a folder that is not there",
        (
            Fault(
                DUE,
                "return named.unnamed or os.path.isdir(os.path.dirname(os.path.abspath(named.path)))",
                "return True",
            ),
        ),
        (DUES + "is_0_where_the_first_poke_would_make_the_ledger_and_makes_none",),
    ),
    Mutant(
        "due says yes to a file that is no ledger",
        (Fault(DUE, "if is_postgres(named.url) or os.path.lexists(named.path):", "if is_postgres(named.url):"),),
        (DUES + "is_0_where_the_first_poke_would_make_the_ledger_and_makes_none",),
    ),
)

POST, TASK, BEAT = "work/daemon/celery.py", "trigger/celery/__init__.py", "trigger/celery/beat.py"
OF_POST, OF_TASKS, OF_BEAT = (f"tests/on_celery/test_{name}.py::test_" for name in ("post", "task", "beat"))

CARRIED = (
    Mutant(
        "a message is lost for good",
        (Fault(POST, "if now - each.at >= self._again]", "if False]"),),
        (OF_POST + "one_whose_lease_is_over_works_for_no_place",),
    ),
    Mutant(
        "a line is asked for again while its run is in hands",
        (Fault(POST, "if under_way[line] > worked.get(line, 0):", "if True:"),),
        (OF_POST + "a_place_is_kept_while_a_run_of_its_line_is_in_hands_and_given_back_when_none_is",),
    ),
    Mutant(
        "one run in hands keeps the places of all messages of its line",
        (Fault(POST, "if under_way[line] > worked.get(line, 0):", "if not worked.get(line):"),),
        (OF_POST + "of_more_messages_than_runs_in_hands_only_those_that_are_too_many_are_given_back",),
    ),
    Mutant(
        "who holds a run for ever holds its place for ever",
        (Fault("ledger/ripe.py", " and coalesce(n.until, r.lease_until) > {now}\n group by j.name, l.scope\n", ""),),
        (OF_POST + "one_whose_lease_is_over_works_for_no_place",),
    ),
    Mutant(
        "a worker works for whatever ledger asks",
        (Fault(POST, "if ledger.store.ledger_id != ledger_id:", "if False:"),),
        (OF_POST + "a_worker_makes_no_attempt_for_another_ledger_or_at_a_job_that_it_does_not_know",),
    ),
    Mutant(
        "Celery is told what a function raised",
        (Fault(POST, "{type(each.outcome).__name__}", "{each.outcome!r}"),),
        (OF_POST + "what_a_function_raised_is_for_the_ledger_and_celery_sees_that_it_failed",),
    ),
    Mutant(
        "a queue that nobody empties keeps everything",
        (Fault(POST, "            expires=WORTH * self._again,\n", ""),),
        (OF_POST + "a_message_names_a_line_and_nothing_else",),
    ),
    Mutant(
        "an app's task is every app's",
        (Fault(POST, "name=TASK, shared=False", "name=TASK"),),
        (OF_POST + "an_app_that_sends_nothing_is_no_carrier",),
    ),
    Mutant(
        "beat's message is for the oldest time that was missed",
        (Fault(BEAT, "newest = fires[-1]", "newest = first"),),
        (OF_BEAT + "what_was_missed_is_sent_once_late_and_for_the_newest_of_it",),
    ),
    Mutant(
        "beat's message is for what is due when it is sent",
        (Fault(BEAT, "until = self._reserved.pop(entry.name, None)", "until = None"),),
        (OF_BEAT + "none_is_sent_twice_where_a_minute_begins_while_beat_is_at_it",),
    ),
    Mutant(
        "a time that does not exist is for the instant at which Celery fires it",
        (Fault(BEAT, 'said["exact"] = False', "pass"),),
        (OF_BEAT + "in_the_nights_when_clocks_change_each_message_means_a_window_of_the_jobs_own_schedule",),
    ),
    Mutant(
        "a retry of Celery's is a firing by hand",
        (Fault(TASK, "    if said is None and not (", "    if attempt or said is None and not ("),),
        (OF_TASKS + "a_retry_is_another_attempt_at_the_same_window_and_says_so",),
    ),
    Mutant(
        "a message whose run is in other hands is thrown away",
        (Fault(TASK, "        raise _Again(said, _seconds_until(job, answer.until))", "        return said"),),
        (OF_TASKS + "a_message_whose_run_is_in_other_hands_comes_again_and_is_no_retry",),
    ),
    Mutant(
        "an interval is a firing by hand",
        (
            Fault(
                TASK,
                '    if said is None and not ({"celery_beat_task", "periodic_task_name"} & set(headers)):',
                '    if said is None or "at" not in said:',
            ),
        ),
        (OF_TASKS + "or_a_run_outside_the_schedule_that_its_retries_share",),
    ),
    Mutant(
        "a message whose ledger is damaged goes round for ever",
        (Fault("errors.py", "    (LedgerCorrupt, FOR_GOOD),\n", ""),),
        (OF_TASKS + "a_ledger_that_is_damaged_fails_the_task_and_no_message_goes_round",),
    ),
    Mutant(
        "an error of another ledger that a function raises is said of its run",
        (Fault("work/job.py", "with OfTheJob(run):", "if True:"),),
        (OF_TASKS + "what_the_function_raises_fails_the_task_though_it_is_an_error_of_another_ledgers",),
    ),
    Mutant(
        "an error of another ledger that a coroutine raises is said of its run",
        (Fault("work/aio/job.py", "with OfTheJob(run):", "if True:"),),
        ("tests/trigger/test_meanings.py::test_what_a_coroutine_raises_is_the_jobs",),
    ),
    Mutant(
        "what the ledger says of a run is the job's",
        (Fault("work/raised.py", "error is not None and not self._is_about_the_run(error)", "error is not None"),),
        ("tests/trigger/test_meanings.py::test_what_the_ledger_says_of_the_run_is_none_of_the_jobs",),
    ),
    Mutant(
        "what no try mends is retried by Celery",
        (Fault(TASK, "if isinstance(exc, Exception) and meaning_of(exc) == FOR_GOOD:", "if False:"),),
        (OF_TASKS + "what_no_try_mends_fails_at_once_whatever_is_retried",),
    ),
    Mutant(
        "messages go round while a job is paused",
        (Fault(TASK, "if meaning == DECIDED or set(kinds) == {RunPaused}:", "if meaning == DECIDED:"),),
        (OF_TASKS + "what_is_paused_is_told_and_no_message_goes_round",),
    ),
    Mutant(
        "manage.py leaves in the process which ledger it meant",
        (
            Fault(
                "cli/ledgers.py",
                "        _meant.append(self._named)\n",
                "        os.environ['DULY_LEDGER'] = self._named.url\n        _meant.append(self._named)\n",
            ),
        ),
        ("tests/cli/test_manage.py::test_a_program_that_calls_it_has_the_environment_that_it_had",),
    ),
)

ADOPTED = (
    Mutant(
        "a line of cron stays as it is whatever it means to duly",
        (Fault("adopt/vixie.py", "if line.times == fields.times and all(", "if line.times == fields.times or all("),),
        ("tests/adopt/test_crontab.py::test_no_line_is_lost_and_what_stays_stays_to_the_byte[refused]",),
    ),
    Mutant(
        "a wildcard that is written anew is a fixed line to the clocks",
        (Fault("adopt/vixie.py", "*(WILDCARD if fields.wildcard else FIXED)", "*FIXED"),),
        ("tests/adopt/test_crontab.py::test_a_line_that_duly_would_read_in_another_way_is_said_in_its_words",),
    ),
    Mutant(
        "two lines that meet in an instant are one job",
        (
            Fault(
                "adopt/propose.py",
                "                return False\n    return not any(",
                "                pass\n    return not any(",
            ),
        ),
        ("tests/adopt/test_crontab.py::test_what_the_configuration_says_fires_when_the_lines_did[Europe/Berlin-same]",),
    ),
    Mutant(
        "two lines that the clocks put into one instant are one job",
        (
            Fault(
                "adopt/propose.py",
                "    return not any(both for both in _in_gaps(",
                "    return True or any(both for both in _in_gaps(",
            ),
        ),
        ("tests/adopt/test_crontab.py::test_what_the_configuration_says_fires_when_the_lines_did[Europe/Berlin-same]",),
    ),
    Mutant(
        "a command may have what duly takes for a placeholder",
        (Fault("adopt/shell.py", "text = literal(command).replace(", "text = command.replace("),),
        ("tests/adopt/test_crontab.py::test_what_cron_hands_to_the_shell_is_what_the_wrapped_line_hands_on",),
    ),
    Mutant(
        "a placeholder that a person wrote is taken for a text of ours",
        (Fault("work/command.py", "return found if literal(found) == text else None", "return found"),),
        ("tests/adopt/test_crontab.py::test_a_placeholder_that_a_person_wrote_is_not_taken_out",),
    ),
    Mutant(
        "a builtin of the shell is taken for a program",
        (Fault("adopt/shell.py", "        and argv[0] not in BUILTINS\n", ""),),
        ("tests/adopt/test_crontab.py::test_a_wrapped_line_does_once_what_the_original_did[/bin/sh-umask 077]",),
    ),
    Mutant(
        "a file that changed meanwhile is overwritten",
        (Fault("adopt/files.py", "if read(change.path) != change.before:", "if False:"),),
        ("tests/adopt/test_crontab.py::test_a_file_that_changed_meanwhile_is_not_overwritten",),
    ),
    Mutant(
        "a file that is changed while another is written is overwritten",
        (Fault("adopt/files.py", "        check()\n", ""),),
        ("tests/adopt/test_crontab.py::test_what_somebody_changes_between_two_files_is_left_to_them",),
    ),
    Mutant(
        "a configuration has the passwords of a crontab",
        (Fault("adopt/propose.py", "tuple(redacted(one.original) if", "tuple(one.original if"),),
        ("tests/adopt/test_crontab.py::test_secrets_of_a_crontab_are_shown_nowhere",),
    ),
    Mutant(
        "an entry that a person has changed is taken out",
        (Fault("cli/import_words.py", "if declared.is_as_written(name)]", "if True]"),),
        ("tests/adopt/test_crontab.py::test_what_a_person_has_changed_stays",),
    ),
    Mutant(
        "cronie's zone of a line has the clocks of cron",
        (
            Fault(
                "adopt/crontab.py",
                'gap, fold = "skip", "both" if wildcard or zone != context.zone else "first"',
                "pass",
            ),
        ),
        ("tests/adopt/test_crontab.py::test_cron_tz_means_what_the_cron_that_reads_it_makes_of_it",),
    ),
    Mutant(
        "systemd's clocks are cron's",
        (Fault("adopt/oncalendar.py", 'When(lines, found, "skip", "first")', "When(lines, found)"),),
        ("tests/adopt/test_systemd.py::test_a_service_is_wrapped_by_one_file_that_may_go_again",),
    ),
    Mutant(
        "a configuration has the commands of a crontab that fewer people may read",
        (Fault("cli/import_words.py", "        if readable & ~its or", "        if False and"),),
        (
            "tests/adopt/test_crontab.py::test_a_command_is_shown_to_nobody_who_may_not_read_the_crontab",
            "tests/adopt/test_systemd.py::test_a_private_unit_is_not_shown_by_the_configuration",
        ),
    ),
    Mutant(
        "a bare % of a path ends the command of a line",
        (Fault("adopt/shell.py", '-- ".replace("%", "\\\\%")', '-- "'),),
        ("tests/adopt/test_crontab.py::test_paths_with_a_percent_or_a_blank_reach_the_command_and_go_again",),
    ),
    Mutant(
        "duly's own path is not put in quotes",
        (Fault("adopt/shell.py", "return quote(call) if python == call", "return call if python == call"),),
        ("tests/adopt/test_crontab.py::test_paths_with_a_percent_or_a_blank_reach_the_command_and_go_again",),
    ),
    Mutant(
        "a file may become two things",
        (Fault("adopt/files.py", "        if path in once:", "        if False:"),),
        ("tests/adopt/test_crontab.py::test_no_file_is_written_twice",),
    ),
    Mutant(
        "an undo that takes nothing back removes an empty configuration",
        (
            Fault(
                "cli/import_words.py",
                "    if not gone:\n        return Change(path, content, content), gone, notes\n",
                "",
            ),
        ),
        ("tests/adopt/test_crontab.py::test_undo_that_takes_nothing_back_leaves_an_empty_configuration",),
    ),
    Mutant(
        "an entry goes though another crontab calls it",
        (
            Fault(
                "cli/import_crontab.py", "(undone.names | mine) - undone.kept - elsewhere.keys()", "undone.names | mine"
            ),
        ),
        ("tests/adopt/test_crontab.py::test_what_another_file_calls_stays_when_a_copy_of_its_lines_is_taken_back",),
    ),
    Mutant(
        "a service has the schedule of one of its timers",
        (Fault("adopt/systemd.py", "            if others:\n", "            if False:\n"),),
        ("tests/adopt/test_systemd.py::test_a_service_that_two_timers_start_has_no_schedule",),
    ),
    Mutant(
        "the job of a drop-in is the last word after an exec",
        (Fault("adopt/systemd.py", '(?: -m duly)?)"""\n', '(?: -m duly)?.*)"""\n'),),
        ("tests/adopt/test_systemd.py::test_what_was_put_before_any_command_is_taken_back",),
    ),
    Mutant(
        "a drop-in that a person has written is overwritten",
        (
            Fault(
                "cli/import_systemd.py", "for one in seen if not one.is_taken], context)", "for one in seen], context)"
            ),
        ),
        ("tests/adopt/test_systemd.py::test_a_drop_in_of_the_same_name_is_not_overwritten",),
    ),
    Mutant(
        "a oneshot becomes another type though it has commands for after its end",
        (Fault("adopt/systemd.py", "if _why_oneshot(service) else frozenset(own)", "if False else frozenset(own)"),),
        ("tests/adopt/test_systemd.py::test_what_only_a_oneshot_has_keeps_it_one",),
    ),
    Mutant(
        "a part of a manifest is changed in two places",
        (Fault("adopt/kubernetes.py", "if any(counts[part] > 1 for part in own):", "if False:"),),
        ("tests/adopt/test_kubernetes.py::test_a_part_that_stands_in_two_places_is_left",),
    ),
    Mutant(
        "a manifest that a person has changed is taken apart",
        (Fault("adopt/kubernetes.py", "    return edited.changed() == text\n", "    return True\n"),),
        ("tests/adopt/test_kubernetes.py::test_what_a_person_has_changed_stays",),
    ),
)

OF_LIFE, IN_A_BROWSER = "tests/web/test_life.py::test_", "tests/web/browser/test_life.py::test_"
OF_PAGES = "tests/web/browser/test_pages.py::test_"
ACCESS, OVER_TIME = "web/access.py", "evidence/over_time.py"
OF_ACCESS, OF_TIME = "tests/web/test_access.py::test_", "tests/evidence/test_over_time.py::test_"

SHOWN = (
    Mutant(
        "in an event loop each run opens a connection of its own",
        (Fault("store/sqlite_async.py", "if owned.is_fresh and len(self._free_owned) < _KEPT:", "if False:"),),
        ("tests/aio/test_kept_connections.py::test_runs_one_after_the_other_open_one_connection",),
    ),
    Mutant(
        "in an event loop a run has the connection on which another failed",
        (Fault("store/owned/sqlite.py", "return not self.is_spent and self._connection", "return self._connection"),),
        ("tests/aio/test_kept_connections.py::test_what_a_run_that_failed_left_is_not_met_by_the_next",),
    ),
    Mutant(
        "a dashboard answers to every name",
        (Fault(ACCESS, "if name and name in hosts:", "if name:"),),
        (OF_ACCESS + "a_name_that_is_not_ours_is_refused[evil.example]",),
    ),
    Mutant(
        "whoever sends the header of the proxy is believed",
        (Fault(ACCESS, "if not is_within(peer, settings):", "if False:"),),
        (OF_ACCESS + "a_header_of_a_proxy_is_believed_from_where_it_speaks_only",),
    ),
    Mutant(
        "whom a proxy on this machine speaks for is on this machine",
        (Fault(ACCESS, "if any(name in headers for name in _BEHIND_PROXY):", "if False:"),),
        (OF_ACCESS + "a_proxy_on_this_machine_does_not_speak_for_it",),
    ),
    Mutant(
        "who reaches the server need not be on this machine",
        (Fault(ACCESS, "if not is_loopback(peer):", "if False:"),),
        (OF_ACCESS + "without_credentials_only_this_machine_is_answered",),
    ),
    Mutant(
        "what changes is a matter of buttons that are not shown",
        (Fault(ACCESS, "    if not allow_writes:", "    if False:"),),
        (OF_ACCESS + "a_server_that_only_shows_refuses_whatever_would_change[POST]",),
    ),
    Mutant(
        "a page of a neighbour may change what this one may",
        (Fault(ACCESS, 'site in ("same-origin", "none")', 'site in ("same-origin", "same-site", "none")'),),
        (OF_ACCESS + "a_change_from_another_page_is_refused_whatever_the_server_allows",),
    ),
    Mutant(
        "an origin of no scheme is ours",
        (Fault(ACCESS, "return bool(mark) and scheme in", "return not mark or scheme in"),),
        (OF_ACCESS + "where_a_change_comes_from",),
    ),
    Mutant(
        "a path that was a token is said again",
        (
            Fault(
                "web/credentials.py",
                "takes the path of a file, and what was given cannot be read",
                "takes the path of a file, and {path} cannot be read",
            ),
        ),
        (OF_ACCESS + "a_token_that_was_typed_for_a_path_is_not_said_again",),
    ),
    Mutant(
        "a password that was right once opens for everybody of that name",
        (Fault("web/credentials.py", "return known is not None and hmac", "return known is not None or hmac"),),
        (OF_ACCESS + "people_have_passwords_that_are_kept_as_what_became_of_them",),
    ),
    Mutant(
        "headers are those of pages alone",
        (
            Fault(
                "web/guard.py",
                "for name, value in HEADERS.items():",
                "for name, value in () if status > 200 else HEADERS.items():",
            ),
        ),
        (OF_ACCESS + "every_answer_has_its_headers[sqlite]",),
    ),
    Mutant(
        "templates trust what they are given",
        (Fault("web/showing.py", "autoescape=True", "autoescape=False"),),
        ("tests/web/test_inert.py::test_nothing_that_others_wrote_becomes_a_mark",),
    ),
    Mutant(
        "an owner is markup in the grid",
        (Fault("web/drawings/grid.py", "{escaped(known.job.owner)}", "{known.job.owner}"),),
        ("tests/web/test_inert.py::test_nothing_that_others_wrote_becomes_a_mark",),
    ),
    Mutant(
        "a server that ends waits for those who listen",
        (Fault("cli/web.py", "            application.end()", "            application.end"),),
        (OF_LIFE + "a_server_that_ends_waits_for_no_listener[SIGTERM]",),
    ),
    Mutant(
        "as many listen as come",
        (Fault("web/life.py", "self._listeners >= AT_MOST", "self._listeners > 10 * AT_MOST"),),
        (OF_LIFE + "no_more_listen_than_may_and_one_look_serves_them_all",),
    ),
    Mutant(
        "who reads a ledger is news to all who look at it",
        (Fault("store/stamp.py", "log is not None and log.st_size > 0", "log is not None"),),
        ("tests/store/test_stamp.py::test_who_comes_to_read_a_file_and_goes_again_leaves_it_as_it_is",),
    ),
    Mutant(
        "on a server what was written is news when it has been counted",
        (
            Fault(
                "store/postgres.py",
                "          from duly.run\n         where state in",
                "          from duly.run\n         where null in",
            ),
        ),
        ("tests/store/test_stamp.py::test_each_thing_that_happens_makes_it_another[postgres]",),
        on_postgres=True,
    ),
    Mutant(
        "a ledger's file is shown from memory",
        (Fault("cli/web.py", "keeps = is_postgres(url)", "keeps = True"),),
        ("tests/web/test_command.py::test_a_ledger_that_is_restored_while_it_serves_is_shown_as_it_is",),
    ),
    Mutant(
        "a form that is sent twice is done twice",
        (
            Fault(
                "web/writing.py",
                "found = await receive(delivery)",
                "found = await receive(replace(delivery, key=delivery.receipt.hex()))",
            ),
            Fault("web/writing.py", "from duly.records import record", "from duly.records import record, replace"),
        ),
        ("tests/web/test_backfills.py::test_started_twice_with_one_form_it_is_one[sqlite]",),
    ),
    Mutant(
        "what is said of one attempt counts for the next",
        (Fault("web/actions/of_run.py", "if seen is not None and seen != newest:", "if False:"),),
        ("tests/web/test_actions.py::test_what_is_said_of_an_attempt_does_not_count_for_the_next_one[sqlite]",),
    ),
    Mutant(
        "a backfill starts whatever count was typed",
        (Fault("web/actions/of_backfill.py", 'expect=given.count("expect")', "expect=None"),),
        ("tests/web/test_backfills.py::test_a_count_that_is_not_the_plans_starts_nothing[sqlite]",),
    ),
    Mutant(
        "a run whose holder has vanished is in no doubt before somebody takes note",
        (Fault("evidence/unknown.py", "coalesce(n.until, r.lease_until) <= {{now}}", "1 = 0"),),
        (
            "tests/web/test_unknown.py::test_a_run_whose_holder_has_vanished_is_in_doubt_before_anybody_takes_note[sqlite]",
        ),
    ),
    Mutant(
        "a form that no ledger has answered gets another key",
        (Fault("web/forms.py", "action, sent, wrong, key)", "action, sent, wrong, str(uuid4()))"),),
        ("tests/web/test_actions.py::test_a_form_that_no_ledger_answers_is_shown_as_sent_and_done_when_sent_again",),
    ),
    Mutant(
        "a probe asks before the person wanted who cannot tell yet",
        (Fault("ledger/put_off.py", ":nobody, {now} + :again_in, 0", ":nobody, {now}, 0"),),
        ("tests/ledger/test_put_off.py::test_no_probe_asks_before_and_one_does_after[sqlite]",),
    ),
    Mutant(
        "a dashboard that fails stops the daemon",
        (
            Fault(
                "cli/daemon_web.py",
                "except BaseException as e:",
                "except BaseException as e:\n                import os\n\n                os._exit(3)",
            ),
        ),
        ("tests/daemon/test_web.py::test_a_dashboard_that_fails_takes_no_daemon_with_it[sqlite]",),
    ),
    Mutant(
        "a command is told the token of the dashboard",
        (Fault("work/command.py", '        "DULY_WEB_TOKEN",\n', ""),),
        (
            "tests/daemon/test_web.py::test_a_token_of_the_environment_is_asked_for_and_is_none_of_a_commands_business[sqlite]",
        ),
    ),
    Mutant(
        "links of a mounted dashboard forget its prefix",
        (Fault("web/app.py", "            root=root,", '            root="",'),),
        ("tests/web/test_mounted.py::test_every_link_of_a_page_stays_below_its_prefix_and_is_there",),
    ),
    Mutant(
        "a reader is never forgotten",
        (
            Fault("web/reading.py", "THREADS = 4\n", "THREADS = 4\n_EVERY = []\n"),
            Fault(
                "web/reading.py",
                "        self._threads = threads\n",
                "        self._threads = threads\n        _EVERY.append(self)\n",
            ),
        ),
        (
            "tests/web/test_mounted.py::test_an_application_that_is_forgotten_leaves_neither_thread_nor_connection[sqlite]",
        ),
    ),
    Mutant(
        "the demo kills its daemon, which has no end of its own then",
        (Fault("demo/serve.py", "lambda *_: daemon.terminate()", "lambda *_: daemon.kill()"),),
        ("tests/cli/test_demo.py::test_it_goes_on_until_it_is_ended_and_leaves_nothing_behind",),
    ),
    Mutant(
        "the first page asks for each line",
        (
            Fault(
                "evidence/proof.py",
                "settled = whole.get(known.line.id) or await _settled(known, begin, end)",
                "settled = await _settled(known, begin, end)",
            ),
        ),
        ("tests/web/test_thousand.py::test_every_page_answers_with_so_many_statements_and_no_more_than_a_page",),
    ),
    Mutant(
        "what settled under another line's name is proof",
        (
            Fault(
                "evidence/proof.py",
                "line: settled.get(series, (0, 0)) for",
                "line: next(iter(settled.values()), (0, 0)) for",
            ),
        ),
        ("tests/evidence/test_over_time.py", "tests/web/test_pages.py"),
    ),
    Mutant(
        "the grid asks for each line",
        (
            Fault(
                "evidence/over_time.py",
                "judged = iter(await windows_of_many([ask for plan in plans for ask in plan.asks], instant))",
                "judged = iter([w for plan in plans for w in await windows_of_many(plan.asks, instant)])",
            ),
        ),
        ("tests/web/test_thousand.py::test_a_grid_of_a_hundred_lines_asks_no_more_than_one_of_ten[sqlite]",),
    ),
    Mutant(
        "PostgreSQL may read the whole table for some spans of it",
        (
            Fault(
                "store/postgres_sql.py",
                "_IN_SPANS.sub(IN_SPANS, statement.sql)",
                'statement.sql.replace("{in_spans}", "")',
            ),
        ),
        ("tests/store/test_plans_on_postgres.py",),
        on_postgres=True,
    ),
    Mutant(
        "what is read for many lines is taken for the first of them",
        (
            Fault(
                "evidence/on_record.py",
                "return self.rows.get(series, {}).get(nominal)",
                "return next(iter(self.rows.values()), {}).get(nominal)",
            ),
        ),
        (OF_TIME + "what_is_counted_says_what_is_judged", "tests/web/test_pages.py"),
    ),
    Mutant(
        "the lab reads the file that a URL names",
        (Fault("web/pages/lab.py", '.removesuffix(".txt"), days)', '.removesuffix(".txt"), open(days).read())'),),
        ("tests/web/test_lab.py::test_days_off_are_written_and_never_read_from_a_file",),
    ),
    Mutant(
        "the lab needs a ledger",
        (
            Fault(
                "web/app.py",
                "looker.read(operation) if page.needs_ledger else operation()",
                "looker.read(operation)",
                2,
            ),
        ),
        ("tests/web/test_lab.py::test_an_empty_form_shows_what_can_be_tried",),
    ),
    Mutant(
        "what the clocks skip is said to be moved",
        (
            Fault(
                "evidence/nights.py",
                "    if not resolved:\n        return SKIPPED,",
                "    if not resolved:\n        return MOVED,",
            ),
        ),
        ("tests/web/test_lab.py::test_what_is_done_on_the_nights_of_the_clocks",),
    ),
    Mutant(
        "a filter that a page does not have is passed over",
        (Fault("web/asked.py", "if name not in self._taken:", "if False:"),),
        ("tests/web/test_pages.py::test_a_filter_that_the_page_does_not_have_is_refused_and_named[sqlite]",),
    ),
    Mutant(
        "a piece is well whose rows are all settled, however few they are",
        (Fault(OVER_TIME, "if rows[place] == done == total and", "if rows[place] == done and done and"),),
        (OF_TIME + "what_is_counted_says_what_is_judged",),
    ),
    Mutant(
        "a day is what its first hour is",
        (Fault(OVER_TIME, "sum(cell.done for cell in counted)", "counted[0].done"),),
        (OF_TIME + "what_is_counted_by_the_hour_says_what_is_judged",),
    ),
    Mutant(
        "an hour that is not whole has its day judged",
        (Fault(OVER_TIME, "return {line: hours if pays and n >= _MANY * of_hour else pieces", "return {line: pieces"),),
        (OF_TIME + "of_a_dense_line_only_the_hours_are_judged_that_are_not_whole",),
    ),
    Mutant(
        "messages that are to be delivered are not looked for in what is counted",
        (Fault(OVER_TIME, " and place not in waiting:", ":"),),
        (OF_TIME + "a_completed_run_with_a_message_to_deliver_is_not_counted_as_well",),
    ),
    Mutant(
        "what came due is what has a row",
        (Fault("evidence/proof.py", "return spell.schedule.count(begin, end)", "return 0"),),
        (OF_TIME + "what_came_due_is_counted_from_the_schedules_and_not_from_the_rows",),
    ),
)

# What a browser finds, where there is one.
SEEN = (
    Mutant(
        "a page that hears of something shows what was so",
        (Fault("web/assets/life.js", "if (event.data === stampOf()) live();", "if (event.data) live();"),),
        (IN_A_BROWSER + "a_run_that_completes_is_seen_on_a_page_that_is_open",),
    ),
    Mutant(
        "a page goes on asking that nobody sees",
        (Fault("web/assets/life.js", "byHand || document.hidden", "byHand"),),
        (IN_A_BROWSER + "a_tab_that_nobody_sees_is_paused",),
    ),
    Mutant(
        "a page that is read again is another page",
        (Fault("web/assets/life.js", 'swap: "innerMorph"', 'swap: "innerHTML"'),),
        (IN_A_BROWSER + "what_somebody_is_at_stays_when_the_page_is_read_again",),
    ),
    Mutant(
        "a server that dies is waited for, for ever",
        (Fault("web/assets/life.js", 'later("grace", GRACE, deaf)', 'later("grace", GRACE, hush)'),),
        (IN_A_BROWSER + "a_server_that_died_makes_the_page_stale_and_its_return_live",),
    ),
    Mutant(
        "the last cell of a range is not of it",
        (Fault("web/assets/duly.js", "`${range.from}..${range.to}`", "`${range.from}..${first.dataset.to}`"),),
        (OF_PAGES + "shift_and_arrows_select_a_range_to_backfill",),
    ),
    Mutant(
        "each line of the grid is a stop of its own",
        (Fault("web/assets/duly.js", '"tbody a:not([tabindex])"', '"td a:not([tabindex])"'),),
        (OF_PAGES + "the_grid_is_one_stop_and_walked_by_arrows",),
    ),
    Mutant(
        "what is aside is pale",
        (Fault("web/assets/duly.css", "--soft: light-dark(#5a636a, #a3abb1)", "--soft: light-dark(#8a939a, #a3abb1)"),),
        (OF_PAGES + "nobody_is_shut_out_in_light_or_in_dark[now]",),
    ),
)


ROUTES, BATCHES = "web/api/routes.py", "evidence/batches.py"
WRITES, READS, PAGING = (f"tests/web/api/test_{name}.py::test_" for name in ("writes", "reads", "paging"))

BY_PROGRAMS = (
    Mutant(
        "a change without a key is made all the same",
        (
            Fault(
                ROUTES,
                "    if not any(value.strip() for value in values):\n",
                '    if not any(value.strip() for value in values):\n        return "none"\n    if not values:\n',
            ),
        ),
        (WRITES + "a_change_without_a_key_is_refused[sqlite]",),
    ),
    Mutant(
        "who asks again has it done again",
        (
            Fault(
                ROUTES,
                "received = delivery(action, given, key)",
                'received = delivery(action, given, key + __import__("uuid").uuid4().hex)',
            ),
        ),
        (WRITES + "who_asks_again_is_told_what_was_done_and_nothing_is_done_again[sqlite]",),
    ),
    Mutant(
        "what is only tried is done",
        (Fault(ROUTES, "lambda: action.act(given), dry_run=True)", "lambda: action.act(given), dry_run=False)"),),
        (WRITES + "what_is_only_tried_changes_nothing_and_uses_no_key_up[sqlite]",),
    ),
    Mutant(
        "of a name that is sent twice the last counts",
        (Fault("web/api/body.py", "if len(found) != len(pairs):", "if False:"),),
        (WRITES + "what_is_no_body_is_refused",),
    ),
    Mutant(
        "a bug is told of in its own words",
        (
            Fault(
                ROUTES,
                '"Something went wrong that nobody foresaw; the server\'s log says where."',
                "str(e)",
            ),
        ),
        (WRITES + "a_bug_is_told_of_without_a_word_of_it[sqlite]",),
    ),
    Mutant(
        "a run between two batches is skipped",
        (Fault(BATCHES, "return windows, _place(found[limit - 1][1])", "return windows, _place(found[limit][1])"),),
        (PAGING + "runs_that_are_added_while_a_list_is_followed_move_nothing[sqlite]",),
    ),
    Mutant(
        "batches of windows are counted from the newest",
        (
            Fault(
                BATCHES,
                "return found, (line, placed[-1].occurrence.due - 1)",
                "return found, (line, instant - 60_000_000 * 60 * len(placed))",
            ),
        ),
        (PAGING + "windows_that_come_due_while_a_list_is_followed_move_nothing[sqlite]",),
    ),
    Mutant(
        "a parameter that a path does not have is passed over",
        (
            Fault(
                "web/api/values.py", 'raise NoSuchField(name, f"there is no such parameter here; {there}")', "continue"
            ),
        ),
        (READS + "what_cannot_be_answered_is_a_problem_that_names_its_field",),
    ),
)


ALL = (
    MUTANTS
    + ASKED
    + ROSTERS
    + DESTINATIONS
    + HISTORIES
    + RECEIVERS
    + AGAIN
    + COMMITS
    + OUTBOX
    + STORM
    + PUBLISHED
    + PROBES
    + TOLD
    + RECORDED
    + KEPT
    + FIRED
    + CARRIED
    + ADOPTED
    + SHOWN
    + BY_PROGRAMS
    + (SEEN if CHROMIUM is not None else ())
)


def planted(mutant: Mutant, folder: Path) -> Path:
    """A copy of duly with the mutant's faults in it."""
    shutil.copytree(SOURCE, folder / "duly", ignore=shutil.ignore_patterns("__pycache__"))
    for fault in mutant.faults:
        file = folder / "duly" / fault.file
        text = file.read_text(encoding="utf-8")
        assert text.count(fault.find) == fault.times, f"{fault.file} has changed: {fault.find!r}"
        file.write_text(text.replace(fault.find, fault.plant), encoding="utf-8")
    return folder


def outcome(
    source: Path, tests: tuple[str, ...], folder: Path, server: Server | None
) -> subprocess.CompletedProcess[str]:
    """The tests, run against a copy of duly, on a server of PostgreSQL or without. They stop at the first failure."""
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout", "20", "--basetemp", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DULY_TEST_POSTGRES": "none" if server is None else server.url,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def server_for(mutants: tuple[Mutant, ...], request: pytest.FixtureRequest) -> Server | None:
    """A server where one is needed. Skips where it is, and there is none."""
    if not any(mutant.on_postgres for mutant in mutants):
        return None
    server: Server = request.getfixturevalue("server")
    return server


def test_each_can_be_planted_and_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in ALL}) == len(ALL)
    for mutant in ALL:
        for fault in mutant.faults:
            found = (SOURCE / fault.file).read_text(encoding="utf-8").count(fault.find)
            assert found == fault.times, f"{mutant.name}: {fault.file} has changed: {fault.find!r}"


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_planted_fault_is_found(mutant: Mutant, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = planted(mutant, tmp_path / "src")

    run = outcome(source, mutant.found_by, tmp_path / "runs", server_for((mutant,), request))

    assert run.returncode == 1, run.stdout + run.stderr  # 1: tests failed; everything else is another trouble
    assert re.search(r"^FAILED tests/", run.stdout, re.MULTILINE), run.stdout


@pytest.mark.parametrize("on_postgres", [False, True], ids=["without a server", "on PostgreSQL"])
def test_without_a_fault_the_same_tests_pass(on_postgres: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    mutants = tuple(mutant for mutant in ALL if mutant.on_postgres == on_postgres)
    source = planted(Mutant("none", (), ()), tmp_path / "src")
    # That they pass here is seen elsewhere; this one sees that they do in a copy of the sources that nothing is wrong with.
    tests = tuple(sorted({mutant.found_by[0] for mutant in mutants})[::12])

    run = outcome(source, tests, tmp_path / "runs", server_for(mutants, request))

    assert run.returncode == 0, run.stdout + run.stderr
