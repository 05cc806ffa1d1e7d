"""`duly metrics`: what a monitor may watch, in the text format of Prometheus: printed, into a file, or served."""

from __future__ import annotations

import os
import sys
from time import monotonic

from duly import __version__
from duly.cli import codes
from duly.cli.arguments import add_ledger
from duly.cli.complain import look_at
from duly.cli.ledgers import open_to_look
from duly.errors import DulyError, Misuse
from duly.evidence.metrics import Scrape, snapshot, text
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "what a monitor may watch, for Prometheus: printed, into a file, or served"
EXAMPLE = (
    "duly metrics\n"
    "  duly metrics --textfile /var/lib/prometheus/node-exporter/duly.prom      from cron, each minute\n"
    "  duly metrics --listen 127.0.0.1:9469                                     http://127.0.0.1:9469/metrics"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    to = parser.add_mutually_exclusive_group()
    to.add_argument(
        "--textfile", metavar="PATH", help="write them there, all at once, for the textfile collector of node_exporter"
    )
    to.add_argument(
        "--listen", metavar="[HOST:]PORT", help="serve them at /metrics; without HOST on 127.0.0.1, to nobody else"
    )
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    if args.listen is not None:
        from duly.cli.metrics_http import serve

        return serve(args.listen, lambda: scraped(args.ledger)[0])
    scrape, trouble = scraped(args.ledger)
    if args.textfile is not None:
        _write(args.textfile, text(scrape))  # of a ledger that cannot be read too: what stands there is no longer so
    if trouble is not None:
        raise trouble
    if args.textfile is None:
        sys.stdout.write(text(scrape))
    return codes.DONE


def scraped(ledger: str | None) -> tuple[Scrape, DulyError | None]:
    """Open the ledger and look; what was seen, or why nothing could be."""
    began = monotonic()
    try:
        store = open_to_look(ledger)
        try:
            seen = store.read(snapshot())
        finally:
            store.close()
    except DulyError as e:
        return Scrape(None, _since(began), __version__), e
    return Scrape(seen, _since(began), __version__), None


def _since(began: float) -> int:
    return int((monotonic() - began) * SECOND)


def _write(path: str, content: str) -> None:
    """Into a temporary beside the file, then renamed: the collector reads the old one or the new one, and never a half."""
    temporary = f"{path}.{os.urandom(4).hex()}"  # the collector reads what ends with .prom, and this does not
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with open(descriptor, "w", encoding="utf-8") as f:
                f.write(content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as e:
        raise Misuse(
            f"--textfile: {path} cannot be written: {e.strerror}", next_step=look_at(os.path.dirname(path))
        ) from e
