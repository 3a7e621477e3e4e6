"""Print the completion script of a shell: commands, options, run names and config files.

Example: rlx completion bash >> ~/.bashrc
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import Any

SHELLS = ("bash", "zsh", "fish")
RUN_ARGUMENTS = ("run", "runs", "baseline", "candidates", "more", "reference")
CONFIG_ARGUMENTS = ("config", "configs", "before", "after")

_BASH = r"""_rlx() {
    local line quoted
    COMPREPLY=()
    while IFS= read -r line; do
        printf -v quoted %q "$line"
        COMPREPLY+=("$quoted")
    done < <("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _rlx rlx
"""

_ZSH = r"""#compdef rlx
_rlx() {
    local -a candidates
    candidates=("${(@f)$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${candidates[1]}" ]]; then
        compadd -- "${candidates[@]}"
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == _rlx ]]; then
    _rlx "$@"
else
    compdef _rlx rlx
fi
"""

_FISH = r"""function __rlx_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates ($words[1] --complete $words[2..-1] 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\n' $candidates
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c rlx -f -a '(__rlx_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print a script for")


def run(args: argparse.Namespace) -> dict[str, Any]:
    return {"shell": args.shell, "script": SCRIPTS[args.shell]}


def render(data: dict[str, Any]) -> str:
    return str(data["script"])


def candidates(typed: list[str]) -> list[str]:
    """Return what the last of the words typed after `rlx` may become; none means: a file."""
    from rlx.hosts.cli.commands import COMMANDS

    *before, current = typed or [""]
    if not before:
        return _starting(current, [*COMMANDS, "--help", "--version"] if current else COMMANDS)
    if before[0] == "help":
        return _starting(current, COMMANDS)
    if before[0] not in COMMANDS:
        return []
    from rlx.hosts.cli.parser import parser_of

    return _starting(current, _for_parser(parser_of(before[0]), before[1:], current))


def _starting(beginning: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(beginning)]


def _for_parser(parser: argparse.ArgumentParser, before: list[str], current: str) -> list[str]:
    options = {name: action for action in parser._actions for name in action.option_strings}
    positionals = [action for action in parser._actions if not action.option_strings]
    place, words = 0, iter(before)
    for word in words:
        option = options.get(word)
        if option is None and not word.startswith("-"):
            action = _at(positionals, place)
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                return _for_parser(action.choices[word], list(words), current)
            place += 1
        elif option is not None and option.nargs != 0 and next(words, None) is None:
            return list(_values(option, current))
    if current.startswith("-"):
        return list(options)
    action = _at(positionals, place)
    return list(_values(action, current)) if action else []


def _at(positionals: list[argparse.Action], place: int) -> argparse.Action | None:
    """Return the positional argument that word number `place` belongs to; the last takes all that follow, if many."""
    if place < len(positionals):
        return positionals[place]
    return positionals[-1] if positionals and positionals[-1].nargs in ("+", "*") else None


def _values(action: argparse.Action, current: str) -> Iterator[str]:
    """Yield what an argument may be: its choices, run names, or YAML files by where the word leads."""
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.dest in RUN_ARGUMENTS:
        yield from _run_names()
    elif action.dest in CONFIG_ARGUMENTS:
        yield from _config_files(current)


def _run_names() -> list[str]:
    from rlx.runs import project

    try:
        with os.scandir(project.runs_folder(project.root())) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] != "." and entry.is_dir())
    except OSError:
        return []


def _config_files(current: str) -> list[str]:
    """Return the YAML files of the folder that was typed; without one, those here and in `configs/`."""
    typed = os.path.dirname(current)  # noqa: PTH120  as typed, not as resolved
    found: list[str] = []
    for folder in [typed] if typed else ["", "configs"]:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208
        except OSError:
            continue
        found += [os.path.join(folder, name) for name in names if name.endswith((".yaml", ".yml"))]  # noqa: PTH118
    return sorted(found)
