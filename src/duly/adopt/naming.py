"""Names of jobs: what a command is known by, so that a person recognises it in `duly status`.

The program that does the work, without its folder and ending, and without what stands before it: `cd`, `flock`, `nice`, `sudo`,
an interpreter. A guess, and only that: a name is proposed, and may be changed before the first run.
"""

from __future__ import annotations

import re
import shlex

from duly.adopt.words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONGEST = 60
_ENDINGS = re.compile(r"\.(?:sh|bash|zsh|py|pyz|pl|rb|php|js|mjs|ts|jar|exe|R)$")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

# Commands that only prepare what comes after them.
_PREPARE = words(
    "cd . source [ [[ test set export unset umask ulimit shopt sleep mkdir touch true false : for case esac fi done } exit "
    "wait trap pushd popd eval echo printf date break continue return"
)
_NAMELESS = words("cd for case esac fi done")
_KEYWORDS = words("if then elif else while until do { ! time")
_IN_BACKTICKS = re.compile(r"`[^`]*`")
# Programs whose name says nothing of what is done with them: what they do it to says more.
_WEAK = words("awk cat cp cut echo false find grep gzip install ln ls mv printf rm sed sort tee test touch tr true")
# Commands that run the one after them, with those of their options that take a value.
_RUN_ANOTHER = {
    "sudo": "-u -g -h -p -C -T -D -R -U",
    "doas": "-u -C",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p -t",
    "nohup": "",
    "setsid": "",
    "time": "-f -o",
    "exec": "-a",
    "command": "-v -V",
    "env": "-u -C -S",
    "stdbuf": "-i -o -e",
    "chronic": "",
    "systemd-cat": "-t -p",
    "xvfb-run": "-s -n -e -f -p -w",
    "cronic": "",
    "unbuffer": "",
    "caffeinate": "",
    "dotenv": "-f",
    "systemd-inhibit": "",
    "softlimit": "-a -c -d -f -l -m -o -p -r -s -t",
    "timeout": "-k -s --signal --kill-after",
    "flock": "-w -E -c --timeout --conflict-exit-code",
    "chrt": "",
    "taskset": "",
    "chroot": "",
    "setlock": "",
    "lockrun": "",
    "runuser": "-u -g -G",
    "gosu": "",
    "su-exec": "",
    "chpst": "-u -e",
}
_TAKE_ONE_WORD = words("timeout flock chrt taskset chroot setlock gosu su-exec")
_SHELLS = words("sh bash dash ash ksh zsh")
_INTERPRETERS = re.compile(r"(?:python|pypy|php|perl|ruby|node|nodejs|deno|Rscript|lua|uv|poetry|pipenv|bundle)[0-9.]*")


def name_of(command: str) -> str:
    """What a command line is known by; never empty."""
    commands = _simple_commands(command)
    names = [name for argv in commands if (name := _name_of(argv))]
    strong = next((name for name in names if name not in _WEAK and len(name) > 1), "")
    return strong or _with_object(commands) or _stem(re.split(r"\s", command.strip(), maxsplit=1)[0]) or "job"


def _with_object(commands: Sequence[Sequence[str]]) -> str:
    """What a command is known by that has but a program of everybody's: that, and the first of its words that has a name."""
    for argv in commands:
        program, *rest = argv[1:] if argv[0] in _KEYWORDS and argv[1:] else argv
        if not _stem(program) or program in _NAMELESS or program in _KEYWORDS or _ASSIGNMENT.match(program):
            continue
        object_ = next((stem for word in rest if not word.startswith("-") and len(stem := _stem(word)) > 1), "")
        return slug("-".join(filter(None, (_folder_of(program), _stem(program), object_))))
    return ""


def _folder_of(program: str) -> str:
    """The folder of a program that has but one letter for a name."""
    return _stem(program.rpartition("/")[0]) if len(_stem(program)) == 1 else ""


def slug(text: str) -> str:
    """The text as a part of a job's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:LONGEST].rstrip("-._")


def free(name: str, taken: Collection[str]) -> str:
    """The name, or the first with a number after it that is not taken."""
    number, found = 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command, without redirections; as well as can be told without a shell."""
    try:
        lexer = shlex.shlex(_without_substitutions(command), posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
        tokens = list(lexer)
    except ValueError:
        tokens = command.split()
    found: list[list[str]] = [[]]
    redirected = False
    for token in tokens:
        if redirected:
            redirected = False
        elif token and not token.strip("<>&") and token.strip("&"):
            redirected = True
            if found[-1] and found[-1][-1].isdecimal():
                found[-1].pop()
        elif token and not token.strip("();|&\n"):
            found.append([])
        else:
            found[-1].append(token)
    return [argv for argv in found if argv]


def _without_substitutions(command: str) -> str:
    """The command with one letter for each `$(…)`, `$((…))` and `` `…` ``, whatever is in it."""
    parts, place = [], 0
    while (begun := command.find("$(", place)) >= 0:
        parts.append(f"{command[place:begun]}_")
        depth, place = 1, begun + 2
        while depth and place < len(command):
            depth += {"(": 1, ")": -1}.get(command[place], 0)
            place += 1
    return _IN_BACKTICKS.sub("_", "".join(parts) + command[place:])


def _name_of(argv: Sequence[str]) -> str:
    """What one simple command is known by; empty where it only prepares another."""
    rest = list(argv)
    while rest and (rest[0] in _KEYWORDS or _ASSIGNMENT.match(rest[0])):
        rest.pop(0)
    if not rest:
        return ""
    program, *rest = rest
    base = program.rpartition("/")[2]
    if base in _PREPARE:
        return ""
    if base in _RUN_ANOTHER:
        return _name_of_what_it_runs(base, rest)
    if base in _SHELLS or base in ("su",):
        if "-c" in rest[:-1] or any(word.startswith("-") and word.endswith("c") for word in rest[:-1]):
            place = next(i for i, word in enumerate(rest) if word.startswith("-") and word.endswith("c"))
            return name_of(rest[place + 1])
        return _stem(_first_word(rest)) or slug(base)
    if _INTERPRETERS.fullmatch(base):
        return _name_of_script(base, rest)
    if base == "run-parts":
        return _stem(_first_word(rest)) or "run-parts"
    if base == "java":
        return (
            _stem(rest[rest.index("-jar") + 1])
            if "-jar" in rest[:-1]
            else slug(_first_word(rest).rpartition(".")[2]) or "java"
        )
    if base in ("make", "rake", "npm", "yarn", "pnpm", "just"):
        target = next((word for word in reversed(rest) if re.fullmatch(r"[A-Za-z][\w:.-]*", word)), "")
        return slug(f"{base}-{target}" if base in ("make", "just") and target else target or base)
    if base in ("docker", "podman", "kubectl", "docker-compose"):
        return _name_in_container(base, rest)
    if base in ("curl", "wget"):
        url = next((word for word in rest if "://" in word), "")
        return slug(f"{base}-{url.partition('://')[2].split('/', 1)[0].rpartition('@')[2].split(':')[0]}")
    if base == "cronitor" and rest[:1] == ["exec"]:
        return _name_of(rest[2:])
    return _stem(base)


def _name_of_what_it_runs(base: str, argv: list[str]) -> str:
    takes = _RUN_ANOTHER[base].split()
    rest = list(argv)
    positional = 1 if base in _TAKE_ONE_WORD else 0
    while rest:
        word = rest[0]
        if word == "--":
            rest.pop(0)
            break
        if word in ("-c", "--command") and base == "flock":
            return name_of(" ".join(rest[1:2]))
        if word.startswith("-") and len(word) > 1:
            rest = rest[2:] if word in takes else rest[1:]
        elif _ASSIGNMENT.match(word):
            rest.pop(0)
        elif positional:
            positional -= 1
            rest.pop(0)
        else:
            break
    if positional and rest:
        rest = rest[positional:]
    if base == "flock" and rest[:1] == ["-c"]:
        return name_of(" ".join(rest[1:2]))
    return _name_of(rest) if rest else slug(base)


def _name_of_script(base: str, argv: list[str]) -> str:
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            return slug(rest[0])
        if word in ("-c", "-e", "-r"):
            return "" if base.startswith("perl") else slug(base)
        if base in ("uv", "poetry", "pipenv", "bundle") and word in ("run", "exec"):
            return _name_of(rest)
        if word.startswith("-"):
            continue
        script = word.rpartition("/")[2]
        following = _first_word(rest)
        if (
            script in ("manage.py", "artisan", "console", "bin/console", "wp", "drush", "yii", "cron.php", "index.php")
            and following
        ):
            return slug(following)
        return _stem(word)
    return slug(base)


def _name_in_container(base: str, argv: list[str]) -> str:
    rest = list(argv)
    takes = words(
        "-u --user -e --env -w --workdir -n --namespace --name -v -f --file -p --project-name -c --container --network"
    )
    names: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            return _name_of(rest) or slug(base)
        if word.startswith("-"):
            if word in takes and rest:
                rest.pop(0)
            continue
        names.append(word)
        if len(names) > 1 and names[-2] in ("exec", "run") and names[-1] not in ("exec", "run"):
            return (_name_of(rest) if rest else "") or slug(word.rpartition("/")[2].partition(":")[0])
    return slug("-".join([base, *names[:2]]))


def _first_word(argv: Sequence[str]) -> str:
    return next((word for word in argv if not word.startswith("-")), "")


def _stem(path: str) -> str:
    return slug(_ENDINGS.sub("", path.rstrip("/").rpartition("/")[2]))
