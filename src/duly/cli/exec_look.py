"""What a poke looks for when its own work is done: whether somebody is to be told that another job is late, or in need.

So an alert needs no daemon, and no scheduler of the job that it is about: any poke of the ledger will do.
"""

from __future__ import annotations

from duly.cli.complain import say
from duly.cli.exec_deliver import deliver
from duly.errors import DulyError, LedgerBusy
from duly.work.alerts import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.store.protocol import Store
    from duly.work.configuration import Layers


def look_and_deliver(store: Store, layers: Layers, *, everything: bool) -> None:
    """Look, and deliver what is due to those who are told of alerts; with `everything` also what the poke has sent.

    The runs are what they are, whatever comes of this: it changes no exit code.
    """
    told: tuple[str, ...] = ()
    try:
        alerting = layers.alerts()
        told = alerting.destinations
        look(store, alerting)
    except LedgerBusy:  # the next poke looks
        pass
    except DulyError as e:
        step = e.next_step or "duly alerts look"
        say(f"duly: nobody looked for alerts: {e}\n  try: {step}")
    except Exception:  # a bug of ours, which is no reason to say that the run failed
        from traceback import print_exc

        print_exc()
    if told or everything:
        deliver(store, only=None if everything else told)
