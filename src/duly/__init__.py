"""duly: every scheduled period, done once, and on the record.

A scheduler starts attempts; a business cares whether a run (this job, this scope, this nominal window) is complete.

    ledger = duly.sqlite("jobs.db")                        the ledger, in the database that owns the effect

    @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run): run.tx.execute(…)                     the effect commits with the run's completion

    credit.run("2026-09-13")                               Completed; again: AlreadyCompleted; elsewhere: Busy; early: NotDue
    credit.catch_up()                                      works what is owed: what cron or a timer calls

    duly.once(connection, "credit:2026-09-13[UTC]")        in a transaction of yours: True, do it now; False, it was done
    ledger.take("credit", "2026-09-13")                    a Claim, whose completion goes into a transaction of yours
    duly.receive(connection, key, body, source="orders")   a message of somebody else's: Received once, Replayed afterwards

    run.send("billing", {"units": 10})                     a message that leaves if and only if the run is complete
    run.publish("exports/2026-09-13.csv")                  where to write a file that stands there once the run is complete

Names are loaded when they are first used: `import duly` is light.
"""

from __future__ import annotations

__version__ = "0.1.0.dev0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.errors import BelowHorizon as BelowHorizon
    from duly.errors import ClaimLost as ClaimLost
    from duly.errors import Conflict as Conflict
    from duly.errors import DulyError as DulyError
    from duly.errors import JobRenamed as JobRenamed
    from duly.errors import LedgerBusy as LedgerBusy
    from duly.errors import LedgerCorrupt as LedgerCorrupt
    from duly.errors import LedgerTooNew as LedgerTooNew
    from duly.errors import LedgerUnavailable as LedgerUnavailable
    from duly.errors import LedgerUnwritable as LedgerUnwritable
    from duly.errors import Misuse as Misuse
    from duly.errors import NoLedger as NoLedger
    from duly.errors import NoSchedule as NoSchedule
    from duly.errors import NotAllowed as NotAllowed
    from duly.errors import NotComplete as NotComplete
    from duly.errors import NoTransaction as NoTransaction
    from duly.errors import OutcomeUnknown as OutcomeUnknown
    from duly.errors import OutputRefused as OutputRefused
    from duly.errors import PayloadConflict as PayloadConflict
    from duly.errors import ReceiptBusy as ReceiptBusy
    from duly.errors import ReceiptLost as ReceiptLost
    from duly.errors import Refused as Refused
    from duly.errors import Retired as Retired
    from duly.errors import RunBusy as RunBusy
    from duly.errors import RunCancelled as RunCancelled
    from duly.errors import RunFailed as RunFailed
    from duly.errors import RunPaused as RunPaused
    from duly.errors import RunSkipped as RunSkipped
    from duly.errors import ScheduleChanged as ScheduleChanged
    from duly.errors import ScheduleError as ScheduleError
    from duly.errors import TransactionOwned as TransactionOwned
    from duly.errors import TriggerUnclear as TriggerUnclear
    from duly.errors import UndatedKey as UndatedKey
    from duly.errors import UnknownDestination as UnknownDestination
    from duly.errors import UnknownJob as UnknownJob
    from duly.errors import UnknownScope as UnknownScope
    from duly.errors import WindowInvalid as WindowInvalid
    from duly.errors import WrongLedger as WrongLedger
    from duly.ledger.roster import Scope as Scope
    from duly.outbox.destinations import CannotTell as CannotTell
    from duly.outbox.destinations import DidNot as DidNot
    from duly.outbox.destinations import Happened as Happened
    from duly.outbox.receiver.receipt import Received as Received
    from duly.outbox.receiver.receipt import Replayed as Replayed
    from duly.schedule.calendar import make_calendar as make_calendar
    from duly.schedule.catch_up import EACH as EACH
    from duly.schedule.catch_up import FRESH as FRESH
    from duly.schedule.catch_up import LATEST as LATEST
    from duly.schedule.catch_up import CatchUp as CatchUp
    from duly.schedule.spec import Schedule as Schedule
    from duly.schedule.spec import cron as cron
    from duly.schedule.spec import daily as daily
    from duly.schedule.spec import every as every
    from duly.schedule.spec import hourly as hourly
    from duly.schedule.spec import monthly as monthly
    from duly.schedule.spec import quarterly as quarterly
    from duly.schedule.spec import weekly as weekly
    from duly.schedule.spec import yearly as yearly
    from duly.work.answers import AlreadyCompleted as AlreadyCompleted
    from duly.work.answers import Busy as Busy
    from duly.work.answers import Completed as Completed
    from duly.work.answers import NotDue as NotDue
    from duly.work.claim import Claim as Claim
    from duly.work.job import Job as Job
    from duly.work.ledger import Ledger as Ledger
    from duly.work.ledger import once as once
    from duly.work.ledger import postgres as postgres
    from duly.work.ledger import sqlite as sqlite
    from duly.work.probe import Doubt as Doubt
    from duly.work.probe import Probe as Probe
    from duly.work.receive import receive as receive
    from duly.work.run import Run as Run
    from duly.work.run import Window as Window
    from duly.work.typed import django as django
    from duly.work.typed import sqlalchemy as sqlalchemy

_HOMES = {
    "duly.errors": "BelowHorizon ClaimLost Conflict DulyError JobRenamed LedgerBusy LedgerCorrupt LedgerTooNew "
    "LedgerUnavailable LedgerUnwritable Misuse NoLedger NoSchedule NoTransaction NotAllowed NotComplete "
    "OutcomeUnknown OutputRefused PayloadConflict ReceiptBusy ReceiptLost Refused Retired RunBusy RunCancelled RunFailed "
    "RunPaused RunSkipped ScheduleChanged ScheduleError TransactionOwned TriggerUnclear UndatedKey UnknownDestination "
    "UnknownJob UnknownScope WindowInvalid WrongLedger",
    "duly.work.answers": "AlreadyCompleted Busy Completed NotDue",
    "duly.ledger.roster": "Scope",
    "duly.outbox.destinations": "CannotTell DidNot Happened",
    "duly.outbox.receiver.receipt": "Received Replayed",
    "duly.schedule.calendar": "make_calendar",
    "duly.schedule.catch_up": "EACH FRESH LATEST CatchUp",
    "duly.schedule.spec": "Schedule cron daily every hourly monthly quarterly weekly yearly",
    "duly.work.claim": "Claim",
    "duly.work.job": "Job",
    "duly.work.ledger": "Ledger once postgres sqlite",
    "duly.work.probe": "Doubt Probe",
    "duly.work.receive": "receive",
    "duly.work.run": "Run Window",
    "duly.work.typed": "django sqlalchemy",
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            found = globals()[name] = getattr(import_module(home), name)
            return found
    raise AttributeError(f"module 'duly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for names in _HOMES.values() for name in names.split())})
