"""Steps: what may be done about a run as it stands, the safe things first. Pure.

Each says what it does and what it does not, with the line to type. Whatever changes something asks for a reason there.
"""

from __future__ import annotations

from shlex import join

from duly.evidence import verdict
from duly.evidence.explain import Explanation
from duly.evidence.shown import typed
from duly.evidence.verdict import Window
from duly.ledger import message_states
from duly.ledger.contracts import EXTERNAL, IDEMPOTENT
from duly.ledger.named import EITHER
from duly.records import record
from duly.redaction import shown_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.messages import Message

LOOK, SAFE, CARE = "look", "safe", "care"


@record
class Step:
    """One thing that may be done. `risk`: it only looks, it is safe as things stand, or somebody has to know something
    first. `asks`: where below the run's path the dashboard asks for what it needs; empty where only a shell does it.
    """

    risk: str
    does: str
    why: str
    command: str
    asks: str = ""


def steps_of(told: Explanation, ledger: str | None) -> list[Step]:
    """What may be done about a run, in the order in which somebody should think of it."""
    window = told.window
    scope = ["--scope", window.key.scope] if window.key.scope else []
    named = ["--ledger", shown_url(ledger)] if ledger else []

    def line(verb: str, outcome: str = EITHER) -> str:
        return typed(verb, window, ledger).replace(EITHER, outcome)

    match window.verdict.word:
        case verdict.UNKNOWN:
            return _of_unknown(
                told,
                line("runs show"),
                line("resolve", "done"),
                line("resolve", "not-done"),
            )
        case verdict.FAILED:
            return [_retry(window, line("retry")), _skip(line("skip"))]
        case verdict.RETRYING:
            return [
                Step(SAFE, "Wait", "It is tried again by itself, as the policy says.", line("explain")),
                _retry(window, line("retry"), soon=True),
                _skip(line("skip")),
            ]
        case verdict.MISSING | verdict.LATE | verdict.DUE:
            poke = join(["duly", "due", window.key.job, *scope, *named])
            return [
                Step(
                    LOOK,
                    "See why nothing has started it",
                    "The scheduler that should have poked it did not, or could not.",
                    poke,
                ),
                _skip(line("skip")),
            ]
        case verdict.RUNNING:
            return [
                Step(SAFE, "Wait", "It is being worked, and nobody else may take it.", line("explain")),
                Step(
                    CARE, "Ask it to stop", "What it did by then is judged by its contract.", line("cancel"), "cancel"
                ),
            ]
        case verdict.UNDELIVERED:
            return [
                Step(LOOK, "Look at its messages", "The run is done; only its messages are not.", line("outbox show"))
            ]
        case verdict.SKIPPED if window.row is not None or told.skipped is not None:
            return [Step(CARE, "Unskip it", "It is owed again, and the next poke works it.", line("unskip"), "unskip")]
        case verdict.COMPLETE:
            return [
                Step(
                    CARE,
                    "Do it again on purpose",
                    "A new revision is opened, and its effect happens a second time.",
                    line("reopen"),
                    "reopen",
                )
            ]
    return []


def _of_unknown(told: Explanation, look: str, done: str, not_done: str) -> list[Step]:
    pending = [sent.message for sent in told.sent if not sent.message.is_settled]
    key = f" It was sent with the idempotency key {pending[0].key}." if pending else ""
    return [
        Step(
            LOOK,
            "Find out whether it happened",
            f"Ask the system that it was sent to, or read its log.{key} Nothing runs it again meanwhile.",
            look,
        ),
        Step(CARE, "It happened", "It is complete, and is never run again.", done, "resolve?as=done"),
        Step(
            CARE,
            "It did not happen",
            "It has failed, and is tried again at the next poke.",
            not_done,
            "resolve?as=not-done",
        ),
        Step(
            SAFE,
            "Ask again later",
            "You cannot tell yet: it stays unknown, nothing runs it, and your word is on record.",
            done.replace("--as done", "--as later"),
            "resolve?as=later",
        ),
    ]


def _retry(window: Window, command: str, *, soon: bool = False) -> Step:
    contract = window.row.contract if window.row is not None else window.known.job.contract
    does = "Retry now" if soon else "Retry"
    if contract == EXTERNAL:
        why = "Its effect is outside the ledger's database: retry only if you know that the failed attempt left nothing behind."
        return Step(CARE, does, why, command, "retry")
    if contract == IDEMPOTENT:
        return Step(
            SAFE, does, "Whatever is sent again has the same key, which the other side knows.", command, "retry"
        )
    return Step(
        SAFE, does, "The failed attempt left nothing behind: its transaction was rolled back.", command, "retry"
    )


def _skip(command: str) -> Step:
    return Step(
        CARE, "Skip it", "Nothing runs it any more, and it counts as settled, with your reason.", command, "skip"
    )


def message_steps(message: Message) -> list[tuple[str, str]]:
    """What a person may do about a message as it stands: the action, and what a button says."""
    match message.state:
        case message_states.UNKNOWN:
            return [("resolve-message", "Say what happened")]
        case message_states.REFUSED | message_states.DEAD:
            return [("retry-message", "Send it again"), ("skip-message", "Leave it out")]
    return []
