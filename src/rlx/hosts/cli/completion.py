"""Print the completion script for a shell. It completes commands, options, run names and config files.

Example: rlx completion bash >> ~/.bashrc
"""

import argparse
import os
from collections.abc import Iterable
from typing import Any

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
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell to print a script for")


def run(args: argparse.Namespace) -> dict[str, Any]:
    return {"shell": args.shell, "script": SCRIPTS[args.shell]}


def render(data: dict[str, Any]) -> str:
    return str(data["script"])


def candidates(typed: list[str]) -> list[str]:
    """Return the completions of the last word after `rlx`; none means that the shell completes files."""
    from rlx.hosts.cli.commands import COMMANDS

    *before, current = typed or [""]
    names: Iterable[str] = ()
    if before and before[0] in COMMANDS:
        from rlx.hosts.cli.parser import parser_of

        names = _for_parser(parser_of(before[0]), before[1:], current)
    elif not before or before[0] == "help":
        names = COMMANDS
        if current and not before:
            names = [*COMMANDS, "--help", "--version"]
    return [name for name in names if name.startswith(current)]


def _for_parser(parser: argparse.ArgumentParser, before: list[str], current: str) -> list[str]:
    options = {name: action for action in parser._actions for name in action.option_strings}
    positionals = [action for action in parser._actions if not action.option_strings]
    place = 0
    words = iter(before)
    for word in words:
        option = options.get(word)
        if option is None and not word.startswith("-"):
            action = _at(positionals, place)
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                return _for_parser(action.choices[word], list(words), current)
            place += 1
        elif option is not None and option.nargs != 0 and next(words, None) is None:
            return _values(option, current)
    if current.startswith("-"):
        return list(options)
    return _values(_at(positionals, place), current)


def _at(positionals: list[argparse.Action], place: int) -> argparse.Action | None:
    """Return the positional argument of word number `place`; the last one may take several words."""
    if place < len(positionals):
        return positionals[place]
    if positionals and positionals[-1].nargs in ("+", "*"):
        return positionals[-1]
    return None


def _values(action: argparse.Action | None, current: str) -> list[str]:
    """Return the values of an argument: its choices, run names, or YAML files in the typed folder."""
    if action is None:
        return []
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.dest in RUN_ARGUMENTS:
        return _run_names()
    if action.dest in CONFIG_ARGUMENTS:
        return _config_files(current)
    return []


def _run_names() -> list[str]:
    from rlx.runs import project

    try:
        with os.scandir(project.runs_folder(project.root())) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] != "." and entry.is_dir())
    except OSError:
        return []


def _config_files(current: str) -> list[str]:
    """Return the YAML files of the typed folder; without one, those here and in `configs/`."""
    import glob

    typed = os.path.dirname(current)  # noqa: PTH120  as typed, not as resolved
    folders = [typed] if typed else ["", "configs"]
    patterns = [os.path.join(glob.escape(folder), f"*.{ending}") for folder in folders for ending in ("yaml", "yml")]  # noqa: PTH118
    return sorted(path for pattern in patterns for path in glob.glob(pattern))  # noqa: PTH207
