"""The tree of commands: every verb with its flags and words, as the parsers have them. Completion and manual are made of it.

What may stand in a place is told from how the help names it: `FILE` is a file, `JOB` a job of the ledger, and so on.
"""

from __future__ import annotations

import argparse

from duly.cli.arguments import Parser
from duly.cli.dispatch import COMMANDS, module_of
from duly.cli.exec_flags import EXAMPLE, OPTIONS, SHORT, SWITCHES
from duly.records import record
from duly.schedule.calendar import POLICIES
from duly.schedule.catch_up import POLICIES as CATCH_UPS
from duly.schedule.written import FLAGS, PERIODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What completes a place: words that are known, or one of these.
JOBS, SCOPES, ZONES, FILES, COMMAND_LINE, NOTHING = "jobs", "scopes", "zones", "files", "command", "nothing"
FROM_THE_LEDGER = (JOBS, SCOPES, ZONES)

_KINDS = {
    **dict.fromkeys(("JOB", "RUN", "OLD", "JOB|EXPR"), JOBS),
    **dict.fromkeys(("FILE", "PATH", "URL"), FILES),
    "SCOPE": SCOPES,
    "ZONE": ZONES,
}
_WINDOWS = ("yesterday", "today")
_WORDS = {
    **dict.fromkeys(("W", "WINDOW", "WINDOW|RANGE", "W|INSTANT"), _WINDOWS),
    "yes|no": ("yes", "no"),
    "PERIOD": PERIODS,
    "CONTRACT": ("transactional", "idempotent", "external"),
    "FORM": ("text", "json", "logfmt"),
}
_WORDS_OF_FLAG = {
    "--gap": ("shift_to_transition", "shift_forward", "skip"),
    "--fold": ("first", "second", "both"),
    "--catch-up": CATCH_UPS,
    "--days-off": POLICIES,
}


@record
class Place:
    """What may stand somewhere: some words, or what `kind` says."""

    kind: str
    words: tuple[str, ...] = ()


@record
class Flag:
    """A flag by all its names; `takes` is what the help calls its value, empty for a switch."""

    names: tuple[str, ...]
    takes: str
    means: str
    value: Place
    value_is_optional: bool = False


@record
class Word:
    """A word that is no flag, as the help names it; `repeats`: more of its kind may follow."""

    name: str
    means: str
    place: Place
    repeats: bool
    is_optional: bool


@record
class Node:
    """A command or a verb of one: `jobs scopes add`."""

    path: tuple[str, ...]
    help: str
    description: str
    example: str
    flags: list[Flag]
    words: list[Word]
    verbs: list[Node]

    @property
    def name(self) -> str:
        return " ".join(self.path)

    def walk(self) -> Iterator[Node]:
        """It and all below it, in the order of the help."""
        yield self
        for verb in self.verbs:
            yield from verb.walk()


def tree() -> list[Node]:
    """Every command, in the order of the help."""
    return [_exec() if name == "exec" else _command(name) for names in COMMANDS.values() for name in names]


def _exec() -> Node:
    from duly.cli.exec import HELP

    shorts = {name: short for short, name in SHORT.items()}
    flags = [
        Flag(
            tuple(filter(None, (shorts.get(name), f"--{name}"))),
            takes,
            means,
            _place(f"--{name}", takes),
            takes.startswith("["),
        )
        for name, (takes, means) in (FLAGS | OPTIONS).items()
    ]
    assert all(flag.takes or flag.names[-1].removeprefix("--") in SWITCHES for flag in flags)
    words = [
        Word("JOB", "the job", Place(JOBS), repeats=False, is_optional=False),
        Word("-- COMMAND…", "what it runs", Place(COMMAND_LINE), repeats=True, is_optional=True),
    ]
    return Node(("exec",), HELP, HELP, EXAMPLE, flags, words, [])


def _command(name: str) -> Node:
    module = module_of(name)
    parser = Parser(prog=f"duly {name}", description=module.HELP)
    module.add_arguments(parser)
    return _node((name,), module.HELP, module.EXAMPLE, parser)


def _node(path: tuple[str, ...], means: str, example: str, parser: argparse.ArgumentParser) -> Node:
    flags: list[Flag] = []
    words: list[Word] = []
    verbs: list[Node] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, below in action.choices.items():
                shown = (below.epilog or "").partition("example:\n")[2].strip()
                verbs.append(_node((*path, name), helps.get(name, ""), shown, below))
        elif action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        elif action.option_strings:
            flags.append(_flag(action))
        else:
            words += _words(action)
    return Node(path, means, parser.description or means, example, flags, words, verbs)


def _flag(action: argparse.Action) -> Flag:
    takes = "" if action.nargs == 0 else _takes(action)
    means = (action.help or "").replace("%%", "%")
    longest = max(action.option_strings, key=len)
    value = _place(longest, takes) if action.choices is None else Place(NOTHING, tuple(map(str, action.choices)))
    return Flag(tuple(action.option_strings), takes, means, value, action.nargs == "?")


def _takes(action: argparse.Action) -> str:
    if action.choices is not None:
        takes = "|".join(map(str, action.choices))
    else:
        takes = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"[{takes}]" if action.nargs == "?" else takes


def _words(action: argparse.Action) -> list[Word]:
    """The words that an argument takes. `JOB | show RUN` is a choice: its lower-case words may stand where a job may."""
    named = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    repeats, is_optional = action.nargs in ("*", "+"), action.nargs in ("*", "?")
    first, *others = named.split(" | ")
    means = (action.help or "").replace("%%", "%")
    if not others:
        place = _place("", named) if action.choices is None else Place(NOTHING, tuple(map(str, action.choices)))
        return [Word(named, means, place, repeats, is_optional)]
    verbs = tuple(verb for other in others if (verb := other.partition(" ")[0]).islower())
    return [Word(named, means, Place(_KINDS[first], verbs), False, is_optional), Word("", "", Place(JOBS), True, True)]


def _place(flag: str, takes: str) -> Place:
    bare = takes.strip("[]")
    if flag in _WORDS_OF_FLAG:
        return Place(NOTHING, _WORDS_OF_FLAG[flag])
    return Place(NOTHING, _WORDS[bare]) if bare in _WORDS else Place(_KINDS.get(bare, NOTHING))
