"""`manage.py duly …`: a door, which Django finds only here. What is behind it is `duly.cli.manage`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from duly.cli.manage import HELP, run

OF_DJANGO = ("--settings", "--pythonpath")  # manage.py has heeded them


class Command(BaseCommand):
    """The words after `duly` are its own: none of Django's flags is among them but those that name the settings."""

    help = HELP
    requires_system_checks = ()  # a poke says nothing when all is well

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "words", nargs=argparse.REMAINDER, metavar="…", help="work, or a command of duly with its words"
        )

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            code = self._run(without_settings(argv[2:]))
        finally:
            connections.close_all()
        sys.exit(code)

    def handle(self, *args: Any, **options: Any) -> None:
        """As `call_command` calls it: whatever is not well is a `SystemExit` with the code."""
        if code := self._run(options["words"]):
            sys.exit(code)

    def _run(self, words: list[str]) -> int:
        return run(
            words, alias=getattr(settings, "DULY_DATABASE", "default"), jobs=getattr(settings, "DULY_JOBS", None)
        )


def without_settings(words: list[str]) -> list[str]:
    """The words without Django's own, as far as they are duly's: what follows `--` is a command's."""
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*kept, word, *rest]
        if word in OF_DJANGO:
            rest[:1] = []
        elif not word.startswith(tuple(f"{flag}=" for flag in OF_DJANGO)):
            kept.append(word)
    return kept
