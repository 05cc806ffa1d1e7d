"""`duly web`: the dashboard, served from here; and the line of a person who may look, for its file."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from duly.cli import codes
from duly.cli.arguments import add_ledger
from duly.cli.complain import say
from duly.cli.ledgers import is_postgres, open_ledger, open_to_look, url_of_ledger
from duly.errors import Conflict, LedgerUnavailable, Misuse, NoLedger
from duly.web import NEEDED, need

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Sequence

    import uvicorn

    from duly.web.credentials import Credentials
    from duly.web.guard import Guard
    from duly.web.settings import Settings, Trust

HELP = "the dashboard in a browser: what needs somebody now, the grid, each job and run"
EXAMPLE = (
    "duly web                                      http://127.0.0.1:8327, for this machine, and only to look\n"
    "  duly web --host 10.0.0.7 --token-file /etc/duly/token --allow-host ops.example\n"
    "  duly web --password-for ana >> people         the line of a person for --basic-file; the password is read from stdin"
)

PORT = 8327
GRACEFUL_SECONDS = 5
HEAD_SECONDS = 15.0  # in which a connection has to have asked something
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  they are asked for, not bound to


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=PORT, metavar="PORT", help=f"default: {PORT}; 0: any that is free"
    )
    parser.add_argument("--allow-writes", action="store_true", help="answer what changes something, too")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that it is reached by; may be repeated",
    )
    parser.add_argument("--root-path", default="", metavar="PATH", help="where a proxy has it, as /duly")
    who = parser.add_argument_group("who may look")
    who.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file that holds a token; or $DULY_WEB_TOKEN. A browser takes it as a password",
    )
    who.add_argument("--basic-file", metavar="FILE", help="a file of people, with lines that --password-for prints")
    who.add_argument("--password-for", metavar="NAME", help="print the line of a person, and serve nothing")
    who.add_argument(
        "--trust-header", metavar="NAME", help="a proxy says in this header who somebody is, as X-Remote-User"
    )
    who.add_argument(
        "--trust-from",
        action="append",
        default=[],
        metavar="CIDR",
        help="where that proxy speaks from; may be repeated",
    )
    for flag in ("--token", "--password"):  # of a line that was typed every process of this machine can read every word
        parser.add_argument(flag, action=_Secret, help=argparse.SUPPRESS)
    add_ledger(parser)


class _Secret(argparse.Action):
    """Refuses a secret on the command line, without saying it again."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        raise Misuse(
            f"web: {option_string} would show a secret to every process of this machine; give a file",
            next_step="duly web --token-file token",
        )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def run(args: argparse.Namespace) -> int:
    if args.password_for is not None:
        return _print_line(args.password_for)
    need((*NEEDED, "uvicorn"))
    settings = settings_of(args)
    url = url_of_ledger(args.ledger)
    _look(url)
    return _serve(args, url, settings)


def _print_line(name: str) -> int:
    """Read a password, and print the line of a person."""
    from duly.web.credentials import password_line

    if sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"password of {name}: ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    print(password_line(name, password))
    return codes.DONE


# -- who may look -------------------------------------------------------------------------------------------------------


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings that the flags ask for. Raises `Misuse` where anybody could look who can reach the address."""
    from duly.web.access import is_loopback
    from duly.web.settings import LOOPBACK, Settings

    host = args.host.strip("[]").lower()
    settings = Settings(
        hosts=(*LOOPBACK, *((host,) if host not in _EVERYWHERE else ()), *(name.lower() for name in args.allow_host)),
        allow_writes=args.allow_writes,
        credentials=_credentials(args),
        trust=_trust(args),
        root_path=_root_path(args.root_path),
        ledger=args.ledger,
    )
    if not is_loopback(host):
        if not settings.asks_who:
            raise Misuse(
                f"--host: on {args.host or 'every address'} anybody could look; say who may, by --token-file, --basic-file or "
                "--trust-header",
                next_step=f"duly web --host {args.host or '0.0.0.0'} --token-file token",  # noqa: S104
            )
        if host in _EVERYWHERE and not args.allow_host:
            raise Misuse(
                f"--host: {args.host or 'every address'} has no name of its own; say by which it is reached",
                next_step=f"duly web --host {args.host or '0.0.0.0'} --allow-host ops.example --token-file token",  # noqa: S104
            )
    return settings


def _credentials(args: argparse.Namespace) -> Credentials | None:
    from duly.web.credentials import TOKEN, Credentials, checked_token, read_people, read_token

    token = None
    if args.token_file is not None:
        token = read_token(args.token_file)
    elif os.environ.get(TOKEN):
        token = checked_token(os.environ[TOKEN], f"${TOKEN}")
    people = () if args.basic_file is None else read_people(args.basic_file)
    return Credentials(token, people) if token is not None or people else None


def _trust(args: argparse.Namespace) -> Trust | None:
    from duly.web.settings import trust

    if args.trust_header is None and not args.trust_from:
        return None
    if args.trust_header is None or not args.trust_from:
        raise Misuse(
            "web: --trust-header and --trust-from go together: which header, and from where it is believed",
            next_step="duly web --trust-header X-Remote-User --trust-from 127.0.0.1",
        )
    return trust(args.trust_header, args.trust_from)


def _root_path(text: str) -> str:
    path = text.rstrip("/")
    if path and (not path.startswith("/") or "//" in path or "?" in path or "#" in path):
        raise Misuse(f"--root-path: {text!r} is no path; write it as /duly", next_step="duly web --root-path /duly")
    return path


# -- serving ------------------------------------------------------------------------------------------------------------


def _look(url: str) -> None:
    """Look once whether there is a ledger. One that is only away may come back, and its page says so meanwhile."""
    try:
        open_to_look(url).close()
    except NoLedger:
        raise
    except (LedgerUnavailable, Conflict) as e:
        say(f"duly: {e}; it is looked for again with each page")


def _serve(args: argparse.Namespace, url: str, settings: Settings) -> int:
    import logging

    from duly.web.access import is_loopback
    from duly.web.app import dashboard
    from duly.web.reading import Reader
    from duly.web.writing import Writer

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    listening = listen(args.host, args.port, "--host, --port")
    keeps = is_postgres(url)
    reader = Reader(lambda: open_to_look(url), keeps=keeps)
    writer = Writer(lambda: open_ledger(url), keeps=keeps) if settings.allow_writes else None
    application = dashboard(reader, settings, writer=writer)
    # uvicorn ends well on these, and raises them again when it has: for us that is the end, and no other.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    say(f"duly: {place_of(listening)}{settings.root_path}/")
    if not is_loopback(args.host.strip("[]")):
        say("duly: what is sent there can be read on its way; put a proxy with TLS before it")
    server_of(application).run(sockets=[listening])
    return codes.DONE


def server_of(application: Guard) -> uvicorn.Server:
    """The server of a dashboard."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            application.end()  # a page that is open has a stream, which would be waited for
            await super().shutdown(sockets)

    config = uvicorn.Config(
        application,
        http=_impatient(),
        access_log=False,  # the guard writes what may be written
        log_config=None,
        proxy_headers=False,  # else whoever sits on this machine could say from where it speaks
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        timeout_keep_alive=15,
        limit_concurrency=200,
        ws="none",
    )
    return Server(config)


def _impatient() -> type[asyncio.Protocol]:
    """The protocol of a connection, which is closed where it is not asked anything in time.

    uvicorn waits for ever for the first word of a connection, and for the rest of a head of which a byte comes now and then;
    and answers nobody while it has as many connections as it may.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._waiting.cancel()

        def _wait(self) -> None:
            """Wait for the head of the next request, and for no longer."""
            if (before := getattr(self, "_waiting", None)) is not None:
                before.cancel()
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._end_if_silent)

        def _end_if_silent(self) -> None:
            if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # None before the first
                self.transport.close()

    return Impatient


def place_of(listening: socket.socket) -> str:
    """Where it is, as a browser wants it, without a path."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def listen(host: str, port: int, flag: str) -> socket.socket:
    """A socket that listens. Raises `Misuse`, naming the flag, where it cannot be had."""
    import socket

    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family, backlog=128)
    except OSError as e:
        raise Misuse(
            f"{flag}: {host} port {port} cannot be had: {e.strerror}",
            next_step="duly daemon --web 0" if flag == "--web" else "duly web --port 0",
        ) from e
