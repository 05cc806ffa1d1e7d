"""Store conformance: the contract of the storage seam, for whoever writes a store or changes one.

    @pytest.fixture(scope="module")
    def candidate():
        with conformance.Candidate(new_ledger, MyStore, connect) as candidate:
            yield candidate

    class TestMyStore(conformance.Suite):
        pass

A store promises what `duly.store.protocol` says, and the ledger's operations believe it: that a transaction is whole, that the
guard of a completion ends it, that who has to wait waits, that the clock is the database's. Each promise is a story here, named
for what it claims; its docstring names the invariant of the design that breaks with it. A store for an event loop is told the
same stories: each of its calls is run to its end.

The stories stand in rooms: `Transactions`, `Turns`, `Guards`, `OwnTransactions`, `LentTransactions`, `Clocks`, `Pulses`,
`AtOnce`, `Lifetimes`, `StateTable`, `Forgetting`. `Suite` is all of them. A class may take one room alone, and where a store
cannot keep a promise yet, its class overrides that story, marks it `xfail(strict=True)` and says why.

What the classes inherit from each other is stories, and nothing else: pytest tells an inherited story under the name of the
store that it is about, which functions that are imported cannot do for two stores in one file.
"""

from __future__ import annotations

import pytest

# Before they are imported: an assertion that fails in here is to be as readable as one in a test's own file.
for _room in (
    *("stories", "transactions", "turns", "guards", "own", "lent", "clocks", "pulses", "at_once", "lifetimes", "table"),
    "forgetting",
):
    pytest.register_assert_rewrite(f"{__name__}.{_room}")

from duly.testing.conformance.at_once import AtOnce as AtOnce  # noqa: E402
from duly.testing.conformance.candidate import Candidate as Candidate  # noqa: E402
from duly.testing.conformance.clocks import Clocks  # noqa: E402
from duly.testing.conformance.desk import Desk as Desk  # noqa: E402
from duly.testing.conformance.forgetting import Forgetting  # noqa: E402
from duly.testing.conformance.guards import Guards  # noqa: E402
from duly.testing.conformance.lent import LentTransactions  # noqa: E402
from duly.testing.conformance.lifetimes import Lifetimes  # noqa: E402
from duly.testing.conformance.own import OwnTransactions  # noqa: E402
from duly.testing.conformance.pulses import Pulses  # noqa: E402
from duly.testing.conformance.stories import Stories as Stories  # noqa: E402
from duly.testing.conformance.table import StateTable  # noqa: E402
from duly.testing.conformance.transactions import Transactions  # noqa: E402
from duly.testing.conformance.turns import Turns  # noqa: E402


class Suite(
    Transactions,
    Turns,
    Guards,
    OwnTransactions,
    LentTransactions,
    Clocks,
    Pulses,
    AtOnce,
    Lifetimes,
    StateTable,
    Forgetting,
):
    """Every story. The fixture `candidate` is best made once for all of them."""
