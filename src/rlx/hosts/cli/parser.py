"""The argument parser of a command: argparse that raises rlx's errors."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from rlx.errors import UsageError, did_you_mean
from rlx.hosts.cli.commands import module_name


class Parser(argparse.ArgumentParser):
    """An argument parser that raises rlx's errors instead of printing its own, and accepts no abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Help, "allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments in the name of the subcommand, not of its parent."""
        if args is None:
            args = sys.argv[1:]
        parsed, unknown = super().parse_known_args(self._joined(args), namespace)
        if unknown:
            message = f"unrecognized arguments: {' '.join(unknown)}"
            if "--seeds" in self._option_string_actions and unknown[0].partition("=")[0] == "--seed":
                number = (unknown[0].partition("=")[2] or " ".join(unknown[1:2])).strip() or "3"
                raise UsageError(message, hint=f"--seeds {number}, trains only the seed {number} (with the comma)")
            if "--set" in self._option_string_actions and _is_setting(unknown[0]):
                raise UsageError(message, hint=f"a setting needs -s: -s {unknown[0]}")
            self.error(message)
        return parsed, unknown

    def _joined(self, words: Sequence[str]) -> list[str]:
        """Join an option with a value that begins with a dash (`--guard -energy:2`) and is not an option itself."""
        joined: list[str] = []
        for index, word in enumerate(words):
            if word == "--":
                return [*joined, *words[index:]]
            is_value = word.startswith("-") and word.partition("=")[0] not in self._option_string_actions
            if is_value and joined and self._takes_one_value(joined[-1]):
                sign = "=" if joined[-1].startswith("--") else ""
                joined[-1] += sign + word
            else:
                joined.append(word)
        return joined

    def _takes_one_value(self, word: str) -> bool:
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs is None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices, and name the closest one."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = did_you_mean(str(value), [str(choice) for choice in action.choices or ()])
            if near is None:
                raise
            raise UsageError(str(error), hint=f"did you mean `{near}`?") from None

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help")


def _is_setting(word: str) -> bool:
    return "=" in word and not word.startswith("-")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, without importing `shutil` as argparse would."""

    def __init__(self, prog: str) -> None:
        try:
            width = os.get_terminal_size(1).columns
        except OSError:
            width = 100
        super().__init__(prog, width=min(width, 120) - 2)


def parser_of(command: str) -> argparse.ArgumentParser:
    """Build the parser of one command from its module."""
    module = importlib.import_module(module_name(command))
    parser = Parser(prog=f"rlx {command}", description=module.__doc__)
    module.arguments(parser)
    for leaf in leaves(parser):
        leaf.add_argument("--json", action="store_true", help="print the data as JSON")
    return parser


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of all subcommands, or the parser itself if there are none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return [leaf for child in action.choices.values() for leaf in leaves(child)]
    return [parser]
