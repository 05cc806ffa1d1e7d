"""`duly daemon`: works the jobs of the configuration and of Python modules, as they come due."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from duly.cli import codes
from duly.cli.arguments import add_ledger, count_from_1
from duly.cli.ledgers import open_or_make_ledger
from duly.cli.secrets import redaction
from duly.errors import ConfigurationInvalid, DulyError, Misuse, TimeInvalid, WrongLedger
from duly.store.beside import store_beside
from duly.times import SECOND, parse_duration
from duly.work.command import inherited
from duly.work.configuration import read_configuration
from duly.work.daemon.commands import Commands
from duly.work.daemon.crew import Hand, Loop, Tasks, Threads
from duly.work.daemon.looking import Looking
from duly.work.daemon.modules import app_named, ledger_named
from duly.work.daemon.probing import Probing
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits
from duly.work.ledger import Ledger
from duly.work.log import LOGGER, Lines, note
from duly.work.relay import relay_of
from duly.work.told import FORMS, MESSAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from duly.cli.daemon_web import Beside
    from duly.outbox.relay import Relay, Told
    from duly.redaction import Redaction
    from duly.store.protocol import Store
    from duly.work.aio.ledger import Ledger as AsyncLedger
    from duly.work.configuration import Configuration, JobEntry
    from duly.work.configuration import Daemon as Configured
    from duly.work.job import Job

    Carriers: TypeAlias = Callable[[Store, ExitStack], Callable[[Job[Any]], Hand]]

T = TypeVar("T")

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
    parser.add_argument(
        "--log-format", choices=FORMS, default="text", help="text, or a JSON object or logfmt a line (default: text)"
    )
    parser.add_argument(
        "--celery",
        metavar="MODULE:APP",
        help="an app of Celery's whose workers make the attempts at jobs of modules; its module calls duly.celery.carry",
    )
    parser.add_argument(
        "--again",
        metavar="TIME",
        help="with --celery: how long a message may wait for a worker before its line is asked for again (default: 1m)",
    )
    parser.add_argument("--poll", metavar="TIME", help="how often to look where nothing is known to come (default: 5s)")
    parser.add_argument(
        "--web",
        metavar="[ADDRESS:]PORT",
        help="serve the dashboard too, to look and nothing else; without an address for this machine, as `duly web` does",
    )
    add_ledger(parser)


def _imported(name: str, find: Callable[[str], T]) -> T:
    """The ledger or app of a module. What the module itself raises is shown, without secrets. Raises `Misuse`."""
    try:
        return find(name)
    except DulyError:
        raise
    except Exception as e:
        from duly.redaction import traceback_of

        print(traceback_of(e), file=sys.stderr)
        raise ConfigurationInvalid(
            f"{name}: the module raised {type(e).__name__} when it was imported, as shown above; nothing was run"
        ) from None


def run(args: argparse.Namespace) -> int:
    _log_to_stderr(args.log_format)
    configured = read_configuration(os.getcwd())
    limits = _limits(args, configured.daemon)
    if args.ledgers and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: what is installed is not to be taken from where we happen to be
    with ExitStack() as stack:
        dashboard = _dashboard(args, stack)
        ledgers = [_imported(name, ledger_named) for name in args.ledgers]
        carriers = _carriers(args, ledgers)
        entries = [entry for entry in configured.jobs.values() if entry.command is not None]
        secrets = redaction(ledger=args.ledger) if any(entry.keeps_output for entry in entries) else None
        hidden = () if configured.ledger is None else configured.ledger.hidden
        store, hands = _crew(
            ledgers, entries, args.ledger, limits, inherited(os.environ, hidden), secrets, carriers, stack
        )
        relay = _relay(store, configured, ledgers, limits, stack)
        heard = relay.wake if relay is not None else lambda: None
        daemon = Daemon(store, hands, limits, Notifier(os.environ), note, heard)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        _begin_probing(store, hands, limits, stack)
        _begin_looking(store, configured, ledgers, limits, heard, stack)
        if dashboard is not None:
            dashboard.serve(store, note)
        note(f"duly: {len(hands)} jobs on {store.path}, {limits.places} runs at once")
        is_over = threading.Event()

        def wake() -> None:
            daemon.wake()
            heard()

        threading.Thread(target=store.listen, args=(wake, is_over.is_set), daemon=True).start()
        if not daemon.work():
            note("duly: stopped at once; what was being attempted is judged by its contract when its lease is over")
            sys.stderr.flush()
            os._exit(codes.DONE)
        is_over.set()
    return codes.DONE


def _dashboard(args: argparse.Namespace, stack: ExitStack) -> Beside | None:
    """The dashboard that was asked for; it listens, so that nothing is begun where it cannot. Raises `Misuse`."""
    if args.web is None:
        return None
    from duly.cli.daemon_web import Beside

    beside = Beside(args.web, args.ledger)
    stack.callback(beside.end)
    return beside


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
    relay = relay_of(store, routes, _tell_message)

    def serve() -> None:
        relay.serve(poll=limits.poll, trouble=note)
        store.close()  # this thread's connection

    thread = threading.Thread(target=serve, name="duly-relay")
    thread.start()

    def end() -> None:
        relay.stop()
        thread.join()

    stack.callback(end)
    return relay


def _tell_message(told: Told) -> None:
    fields = {"run": told.run, "name": told.name, "destination": told.destination, "state": told.state}
    note(f"{told.run} message {told.name} to {told.destination} {told.state}", {"event": MESSAGE, **fields})


def _log_to_stderr(form: str) -> None:
    """This process is an application, whose log is stderr. The root of the logging is left to the modules of the jobs."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(form))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False  # a module that configures the root would have each line twice


def _begin_probing(store: Store, hands: list[Hand], limits: Limits, stack: ExitStack) -> None:
    """Ask about runs of unknown outcome in threads beside, until the daemon has ended."""
    probing = Probing(store, [hand for hand in hands if hand.has_probe], limits.poll, note)
    probing.start()
    stack.callback(probing.stop)


def _begin_looking(
    store: Store,
    configured: Configuration,
    ledgers: list[Ledger[Any] | AsyncLedger[Any]],
    limits: Limits,
    told: Callable[[], None],
    stack: ExitStack,
) -> None:
    """Look for alerts in a thread of its own, until the daemon has ended: as files say, or the first ledger that does."""
    named = (ledger.destinations.alerting() for ledger in ledgers)
    alerting = configured.alerts or next((each for each in named if each is not None), None)
    if alerting is None:
        return
    looking = Looking(store, alerting, limits.poll, note, told)

    def serve() -> None:
        looking.serve()
        store.close()  # this thread's connection

    thread = threading.Thread(target=serve, name="duly-alerts")
    thread.start()

    def end() -> None:
        looking.stop()
        thread.join()

    stack.callback(end)


def _store_of(ledgers: list[Ledger[Any] | AsyncLedger[Any]]) -> Store:
    """The ledger that modules name, for the threads of the daemon."""
    first = ledgers[0]
    plain = (ledger.store for ledger in ledgers if isinstance(ledger, Ledger))
    return first.store if isinstance(first, Ledger) else next(plain, None) or store_beside(first.store)


def _limits(args: argparse.Namespace, configured: Configured) -> Limits:
    """What flags say, else the configuration, else what goes without saying."""
    try:
        poll = configured.poll if args.poll is None else parse_duration(args.poll)
    except TimeInvalid as e:
        raise Misuse(f"--poll: {e}") from e
    return Limits(args.concurrency or configured.concurrency, args.per_job or configured.per_job, poll / SECOND)


def _carriers(args: argparse.Namespace, ledgers: list[Ledger[Any] | AsyncLedger[Any]]) -> Carriers | None:
    """Who makes the attempts at jobs of modules, where that is not this process. Raises `Misuse`."""
    if args.celery is None:
        if args.again is not None:
            raise Misuse("--again says how long a message to Celery may wait; give it with --celery MODULE:APP")
        return None
    if not ledgers or not all(isinstance(ledger, Ledger) for ledger in ledgers):
        raise Misuse(
            "--celery: name a ledger whose jobs Celery's workers are to work, as shop.jobs:ledger; they have no event loop for "
            "one of duly.aio, which wants a daemon of its own"
        )
    try:
        again = None if args.again is None else parse_duration(args.again) / SECOND
    except TimeInvalid as e:
        raise Misuse(f"--again: {e}") from e
    app = _imported(args.celery, app_named)

    def carriers(store: Store, stack: ExitStack) -> Callable[[Job[Any]], Hand]:
        from duly.work.daemon.celery import AGAIN_SECONDS, Carried, Post

        post = Post(app, store, note, again=AGAIN_SECONDS if again is None else again)
        post.start()
        stack.callback(post.close)
        return lambda job: Carried(job, post)

    return carriers


def _crew(
    ledgers: list[Ledger[Any] | AsyncLedger[Any]],
    entries: list[JobEntry],
    flag: str | None,
    limits: Limits,
    environment: Mapping[str, str],
    secrets: Redaction | None,
    carriers: Carriers | None,
    stack: ExitStack,
) -> tuple[Store, list[Hand]]:
    """Who works the jobs, and the ledger that all of them are of. Raises `Misuse` for two jobs of one name."""
    plain = [ledger for ledger in ledgers if isinstance(ledger, Ledger)]
    others = [ledger for ledger in ledgers if not isinstance(ledger, Ledger)]
    hands: list[Hand] = []
    if others:
        loop = Loop()
        stack.callback(lambda: loop.close(*(ledger.close for ledger in others)))
        for ledger in others:
            loop.run(ledger.store.open()).result()
            hands += [Tasks(job, loop) for job in ledger.jobs.values()]
    store = _store_of(ledgers) if ledgers and flag is None else open_or_make_ledger(flag)
    pool = stack.enter_context(ThreadPoolExecutor(limits.places, thread_name_prefix="duly-work"))
    hand_of = carriers(store, stack) if carriers is not None else lambda job: Threads(job, pool)
    hands += [hand_of(job) for ledger in plain for job in ledger.jobs.values()]
    hands += [Commands(entry, pool, store, environment, secrets) for entry in entries]
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
