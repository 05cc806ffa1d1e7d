"""Of messages: those of all runs that are not settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.evidence.batches import messages_after
from duly.evidence.documents.message import message_as_json
from duly.evidence.documents.window import iso
from duly.ledger import message_states
from duly.ledger.ask import now
from duly.web.api.read import Found, Read, listed
from duly.web.api.values import NAME, Parameter, place, place_of, words

if TYPE_CHECKING:
    from duly.web.api.read import Wanted


async def _messages(wanted: Wanted) -> Found:
    found, after = await messages_after(wanted.after, wanted.text("to"), state=wanted.text("state"), limit=wanted.limit)
    records = [message_as_json(str(key), message) for key, message in found]
    return Found({"as_of": iso(await now()), "messages": [*records]}, place_of(after))


READS = (
    Read(
        "messages",
        "/messages",
        "Messages that are not settled, run by run",
        "duly.messages.v1",
        (
            Parameter("to", NAME, "Only to this destination."),
            Parameter("state", words(*message_states.UNSETTLED), "Only in this state."),
            *listed(place(4)),
        ),
        _messages,
        is_list=True,
    ),
)
