"""The scripts that complete, for bash, zsh and fish: one way through the tree of commands, written in three languages.

Each walks over the words before the cursor: past flags and their values, down the tree as far as words are verbs, counting
those that are none. Then it offers what the flag before the cursor takes, else flags, verbs or what stands in that place.
What comes from the ledger is never given to a shell to be expanded: a scope may be called `$(rm -r ~)`.
"""

from __future__ import annotations

from duly.cli.tree import COMMAND_LINE, FROM_THE_LEDGER, NOTHING, Flag, Place, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HELP = ("--help", "what it does, with an example")
_AT_ROOT = (("--version", "which release this is"), _HELP)


class _Everywhere:
    """What may be typed where, flattened: each path of verbs, with `` for the beginning."""

    def __init__(self) -> None:
        commands = tree()
        self.nodes = [node for command in commands for node in command.walk()]
        self.verbs = {"": [(node.name, node.help) for node in commands]}
        self.verbs |= {node.name: [(v.path[-1], v.help) for v in node.verbs] for node in self.nodes if node.verbs}
        self.flags = {"": list(_AT_ROOT)}
        self.flags |= {
            node.name: [*((max(flag.names, key=len), flag.means) for flag in node.flags), _HELP] for node in self.nodes
        }

    @property
    def paths(self) -> list[str]:
        return [node.name for node in self.nodes]

    @property
    def taking(self) -> list[str]:
        """Each flag that takes a word, after its path; none whose value may be left out, for it is written with `=`."""
        return [each for flag, named in self._flags() if flag.takes and not flag.value_is_optional for each in named]

    @property
    def values(self) -> list[tuple[list[str], Place]]:
        """What each flag takes of which something is known, by all its names after its path."""
        return [(named, flag.value) for flag, named in self._flags() if flag.takes and _is_known(flag.value)]

    def _flags(self) -> Iterator[tuple[Flag, list[str]]]:
        for node in self.nodes:
            for flag in node.flags:
                yield flag, [f"{node.name} {name}" for name in flag.names]

    def places(self) -> Iterator[tuple[str, int | None, Place]]:
        """For each path what stands in each place: by its number, None for all that follow."""
        for node in self.nodes:
            for number, word in enumerate(node.words):
                if word.place.kind != COMMAND_LINE and _is_known(word.place):
                    yield node.name, None if word.repeats else number, word.place


def _is_known(place: Place) -> bool:
    return place.kind != NOTHING or bool(place.words)


def _offer(place: Place) -> str:
    return f"_duly_offer {' '.join([place.kind, *place.words])}"


def _number(number: int | None) -> str:
    return "*" if number is None else str(number)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# -- bash ---------------------------------------------------------------------------------------------------------------


def bash() -> str:
    """For bash 4.2 and newer."""
    all_of = _Everywhere()

    def names(path: str, variable: str, named: list[tuple[str, str]]) -> str:
        return f'        "{path}") {variable}="{" ".join(name for name, _ in named)}" ;;'

    return _BASH.format(
        paths=_either(all_of.paths),
        taking=_either(all_of.taking),
        values="\n".join(f"        {_either(named)}) {_offer(value)} ;;" for named, value in all_of.values),
        places="\n".join(f'        "{path}:"{_number(at)}) {_offer(place)} ;;' for path, at, place in all_of.places()),
        flags="\n".join(names(path, "flags", named) for path, named in all_of.flags.items()),
        verbs="\n".join(names(path, "verbs", named) for path, named in all_of.verbs.items()),
        kinds=" | ".join(FROM_THE_LEDGER),
    )


def _either(words: list[str]) -> str:
    return " | ".join(f'"{word}"' for word in words)


_BASH = r"""# bash completion for duly. Made by `duly completion bash`; do not edit.

# What is to be completed stands in $cur, the command in $duly, and --ledger, where it was typed, in $ledger.
_duly_offer() {{
    local kind=$1 name
    shift
    for name; do
        [[ $name == "$cur"* ]] && COMPREPLY+=("$name")
    done
    case $kind in
        {kinds})
            # Never by compgen -W, which expands what it is given.
            while IFS= read -r name; do
                [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")
            done < <("$duly" completion --names "$kind" ${{ledger:+--ledger "$ledger"}} 2>/dev/null </dev/null)
            ;;
        files)
            compopt -o filenames 2>/dev/null
            while IFS= read -r name; do
                COMPREPLY+=("$name")
            done < <(compgen -f -- "$cur")
            ;;
    esac
}}

_duly() {{
    local duly=$1 cur=${{COMP_WORDS[COMP_CWORD]}} at=0 here="" flag="" ledger="" flags="" verbs="" word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        if [[ $word == = ]]; then
            continue
        elif [[ -n $flag ]]; then
            [[ $flag == --ledger ]] && ledger=$word
            flag=""
        elif [[ $here == exec && $word == -- ]]; then
            if ((i + 1 == COMP_CWORD)); then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$cur")
            else
                _duly_offer files
            fi
            return
        elif [[ $word == -* ]]; then
            case "$here $word" in
                {taking}) flag=$word ;;
            esac
        else
            case "$here${{here:+ }}$word" in
                {paths}) here="$here${{here:+ }}$word" ;;
                *) ((at++)) ;;
            esac
        fi
    done
    [[ $cur == = ]] && cur=""
    if [[ -n $flag ]]; then
        case "$here $flag" in
{values}
        esac
        return
    fi
    if [[ $cur == -* ]]; then
        case $here in
{flags}
        esac
        _duly_offer nothing $flags
        return
    fi
    case $here in
{verbs}
    esac
    ((at == 0)) && _duly_offer nothing $verbs
    case "$here:$at" in
{places}
    esac
}}

complete -F _duly duly
"""


# -- zsh ----------------------------------------------------------------------------------------------------------------


def zsh() -> str:
    """For zsh 5, as a function that is found in $fpath, or sourced."""
    all_of = _Everywhere()
    return _ZSH.format(
        paths=_either(all_of.paths),
        taking=_either(all_of.taking),
        values="\n".join(f"        ({_either(named)}) {_offer(value)} ;;" for named, value in all_of.values),
        places="\n".join(f'        ("{path}:"{_number(at)}) {_offer(place)} ;;' for path, at, place in all_of.places()),
        flags="\n".join(f'        ("{path}") shown=({_described(named)}) ;;' for path, named in all_of.flags.items()),
        verbs="\n".join(f'        ("{path}") shown=({_described(named)}) ;;' for path, named in all_of.verbs.items()),
        kinds="|".join(FROM_THE_LEDGER),
    )


def _described(named: list[tuple[str, str]]) -> str:
    return " ".join(_quoted(f"{name}:{_one_line(means)}") for name, means in named)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_ZSH = r"""#compdef duly
# zsh completion for duly. Made by `duly completion zsh`; do not edit.

_duly_offer() {{
    local kind=$1
    shift
    (( $# )) && compadd -- "$@"
    case $kind in
        ({kinds})
            local -a names
            [[ -n $ledger ]] && set -- --ledger "$ledger" || set --
            names=("${{(@f)$("$duly" completion --names $kind "$@" 2>/dev/null </dev/null)}}")
            compadd -- "${{(@)names:#}}"
            ;;
        (files) _files ;;
    esac
}}

_duly() {{
    local duly=$words[1] cur=$words[CURRENT] here="" flag="" ledger="" word
    local -i at=0 i
    local -a shown
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ -n $flag ]]; then
            [[ $flag == --ledger ]] && ledger=${{(Q)word}}
            flag=""
        elif [[ $here == exec && $word == -- ]]; then
            words=("${{(@)words[i + 1,-1]}}")
            ((CURRENT -= i))
            _normal
            return
        elif [[ $word == -* ]]; then
            case "$here $word" in
                ({taking}) flag=$word ;;
            esac
        else
            case "$here${{here:+ }}$word" in
                ({paths}) here="$here${{here:+ }}$word" ;;
                (*) ((at++)) ;;
            esac
        fi
    done
    if [[ -n $flag ]]; then
        case "$here $flag" in
{values}
        esac
        return
    fi
    if [[ $cur == -* ]]; then
        case $here in
{flags}
        esac
        _describe -o flag shown
        return
    fi
    case $here in
{verbs}
    esac
    ((at == 0 && $#shown)) && _describe command shown
    case "$here:$at" in
{places}
    esac
}}

if [[ $funcstack[1] == _duly ]]; then
    _duly "$@"
else
    compdef _duly duly
fi
"""


# -- fish ---------------------------------------------------------------------------------------------------------------


def fish() -> str:
    """For fish 3."""
    all_of = _Everywhere()

    def case(patterns: list[str], offer: str, indent: int) -> str:
        return f"{' ' * indent}case {' '.join(map(_quoted_fish, patterns))}\n{' ' * (indent + 4)}__{offer[1:]}"

    return _FISH.format(
        paths=" ".join(map(_quoted_fish, all_of.paths)),
        taking=" ".join(map(_quoted_fish, all_of.taking)),
        values="\n".join(case(named, _offer(value), 12) for named, value in all_of.values),
        places="\n".join(case([f"{path}:{_number(at)}"], _offer(place), 8) for path, at, place in all_of.places()),
        flags="\n".join(_fish_list(path, named) for path, named in all_of.flags.items()),
        verbs="\n".join(_fish_list(path, named) for path, named in all_of.verbs.items()),
        kinds=" ".join(FROM_THE_LEDGER),
    )


def _fish_list(path: str, named: list[tuple[str, str]]) -> str:
    rows = " ".join(_quoted_fish(f"{name}\t{_one_line(means)}") for name, means in named)
    return f"{' ' * 12}case '{path}'\n{' ' * 16}printf '%s\\n' {rows}"


def _quoted_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_FISH = r"""# fish completion for duly. Made by `duly completion fish`; do not edit.

function __duly_offer --no-scope-shadowing
    set -l kind $argv[1]
    test (count $argv) -gt 1; and printf '%s\n' $argv[2..-1]
    switch $kind
        case {kinds}
            set -l where
            test -n "$ledger"; and set where --ledger $ledger
            $words[1] completion --names $kind $where 2>/dev/null </dev/null
        case files
            __fish_complete_path $cur
    end
end

function __duly_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l here ''
    set -l flag ''
    set -l ledger ''
    set -l at 0
    for i in (seq 2 (count $words))
        set -l word $words[$i]
        if test -n "$flag"
            test "$flag" = --ledger; and set ledger $word
            set flag ''
        else if test "$here" = exec -a "$word" = --
            set -l rest $words[(math $i + 1)..-1]
            test $i -eq (count $words); and set rest
            complete -C (string join ' ' -- (string escape -- $rest) "$cur")
            return
        else if string match -q -- '-*' $word
            contains -- "$here $word" {taking}
            and set flag $word
        else
            set -l below (string trim -- "$here $word")
            if contains -- $below {paths}
                set here $below
            else
                set at (math $at + 1)
            end
        end
    end
    if test -n "$flag"
        switch "$here $flag"
{values}
        end
        return
    end
    if string match -q -- '-*' $cur
        switch $here
{flags}
        end
        return
    end
    if test $at -eq 0
        switch $here
{verbs}
        end
    end
    switch "$here:$at"
{places}
    end
end

complete -c duly -f -a '(__duly_complete)'
"""

SCRIPTS: dict[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
