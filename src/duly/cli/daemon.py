"""`duly daemon`: works the jobs of the configuration and of Python modules, as they come due."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from duly.cli import codes
from duly.cli.arguments import add_ledger, count_from_1
from duly.cli.complain import say
from duly.cli.ledgers import is_postgres, open_ledger, open_or_make_ledger
from duly.errors import ConfigurationInvalid, DulyError, Misuse, TimeInvalid, WrongLedger
from duly.times import SECOND, parse_duration
from duly.work.command import inherited
from duly.work.configuration import read_configuration
from duly.work.daemon.commands import Commands
from duly.work.daemon.crew import Hand, Loop, Tasks, Threads
from duly.work.daemon.modules import ledger_named
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits
from duly.work.ledger import Ledger
from duly.work.relay import relay_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from duly.outbox.relay import Relay
    from duly.store.protocol import Store
    from duly.work.aio.ledger import Ledger as AsyncLedger
    from duly.work.configuration import Configuration, JobEntry
    from duly.work.configuration import Daemon as Configured

HELP = "work jobs as they come due, beside any number of other daemons and of other triggers"
EXAMPLE = "duly daemon shop.jobs:ledger --concurrency 16"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ledgers",
        metavar="MODULE:LEDGER",
        nargs="*",
        help="a ledger in a Python module, with the jobs declared on it; the jobs of duly.toml are worked beside them",
    )
    parser.add_argument("--concurrency", metavar="N", type=count_from_1, help="runs at once (default: 8)")
    parser.add_argument("--per-job", metavar="N", type=count_from_1, help="runs of one job at once (default: 2)")
    parser.add_argument("--poll", metavar="TIME", help="how often to look where nothing is known to come (default: 5s)")
    add_ledger(parser)


def _imported(name: str) -> Ledger[Any] | AsyncLedger[Any]:
    """The ledger of a module. What the module itself raises is shown, as Python shows it. Raises `Misuse`."""
    try:
        return ledger_named(name)
    except DulyError:
        raise
    except Exception as e:
        from traceback import print_exception

        print_exception(e)
        raise ConfigurationInvalid(
            f"{name}: the module raised {type(e).__name__} when it was imported, as shown above; nothing was run"
        ) from None


def run(args: argparse.Namespace) -> int:
    configured = read_configuration(os.getcwd())
    limits = _limits(args, configured.daemon)
    if args.ledgers and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: what is installed is not to be taken from where we happen to be
    with ExitStack() as stack:
        ledgers = [_imported(name) for name in args.ledgers]
        entries = [entry for entry in configured.jobs.values() if entry.command is not None]
        hidden = () if configured.ledger is None else configured.ledger.hidden
        store, hands = _crew(ledgers, entries, args.ledger, limits, inherited(os.environ, hidden), stack)
        relay = _relay(store, configured, ledgers, limits, stack)
        heard = relay.wake if relay is not None else lambda: None
        daemon = Daemon(store, hands, limits, Notifier(os.environ), say, heard)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        say(f"duly: {len(hands)} jobs on {store.path}, {limits.places} runs at once")
        is_over = threading.Event()

        def wake() -> None:
            daemon.wake()
            heard()

        threading.Thread(target=store.listen, args=(wake, is_over.is_set), daemon=True).start()
        if not daemon.work():
            say("duly: stopped at once; what was being attempted is judged by its contract when its lease is over")
            sys.stderr.flush()
            os._exit(codes.DONE)
        is_over.set()
    return codes.DONE


def _relay(
    store: Store,
    configured: Configuration,
    ledgers: list[Ledger[Any] | AsyncLedger[Any]],
    limits: Limits,
    stack: ExitStack,
) -> Relay | None:
    """Delivers messages in a thread of its own, until the daemon has ended. None where no destination is declared."""
    routes = dict(configured.destinations)
    for ledger in ledgers:
        routes |= ledger.destinations.routes()
    if not routes:
        return None
    relay = relay_of(
        store, routes, lambda told: say(f"{told.run} message {told.name} to {told.destination} {told.state}")
    )

    def serve() -> None:
        relay.serve(poll=limits.poll, trouble=say)
        store.close()  # this thread's connection

    thread = threading.Thread(target=serve, name="duly-relay")
    thread.start()

    def end() -> None:
        relay.stop()
        thread.join()

    stack.callback(end)
    return relay


def _store_of(ledgers: list[Ledger[Any] | AsyncLedger[Any]]) -> Store:
    """The ledger that modules name, for the threads of the daemon."""
    plain = next((ledger for ledger in ledgers if isinstance(ledger, Ledger)), None)
    if plain is not None:
        return plain.store
    store = ledgers[0].store
    url = getattr(store, "url", store.path)
    return open_ledger(url if os.path.exists(store.path) or is_postgres(url) else None)


def _limits(args: argparse.Namespace, configured: Configured) -> Limits:
    """What flags say, else the configuration, else what goes without saying."""
    try:
        poll = configured.poll if args.poll is None else parse_duration(args.poll)
    except TimeInvalid as e:
        raise Misuse(f"--poll: {e}") from e
    return Limits(args.concurrency or configured.concurrency, args.per_job or configured.per_job, poll / SECOND)


def _crew(
    ledgers: list[Ledger[Any] | AsyncLedger[Any]],
    entries: list[JobEntry],
    flag: str | None,
    limits: Limits,
    environment: Mapping[str, str],
    stack: ExitStack,
) -> tuple[Store, list[Hand]]:
    """Who works the jobs, and the ledger that all of them are of. Raises `Misuse` for two jobs of one name."""
    plain = [ledger for ledger in ledgers if isinstance(ledger, Ledger)]
    store = _store_of(ledgers) if ledgers and flag is None else open_or_make_ledger(flag)
    pool = stack.enter_context(ThreadPoolExecutor(limits.places, thread_name_prefix="duly-work"))
    hands: list[Hand] = [Threads(job, pool) for ledger in plain for job in ledger.jobs.values()]
    hands += [Commands(entry, pool, store, environment) for entry in entries]
    others = [ledger for ledger in ledgers if not isinstance(ledger, Ledger)]
    if others:
        loop = Loop()
        stack.callback(lambda: loop.close(*(ledger.close for ledger in others)))
        for ledger in others:
            loop.run(ledger.store.open()).result()
            hands += [Tasks(job, loop) for job in ledger.jobs.values()]
    for ledger_id in {ledger.store.ledger_id for ledger in ledgers}:
        if ledger_id != store.ledger_id:
            raise WrongLedger(f"the daemon works one ledger, {store.path}; another one was named beside it")
    names = [hand.name for hand in hands]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Misuse(f"{twice} is declared twice, in two of the ledgers or in a file too; leave one out")
    if not hands:
        raise Misuse(
            "there is no job to work; name a ledger that jobs are declared on, as shop.jobs:ledger, or write them into "
            "duly.toml, each with its command"
        )
    return store, hands
