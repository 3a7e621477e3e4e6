"""The argument parser of a command: argparse, raising our errors."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from rlx.errors import UsageError
from rlx.hosts.cli.commands import module_name


class Parser(argparse.ArgumentParser):
    """An argument parser that raises our errors instead of printing its own, and takes no abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Help, "allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what a sub-command does not know in its own name, not in its parent's."""
        words = sys.argv[1:] if args is None else args
        found, unknown = super().parse_known_args(self._joined(words), namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _joined(self, words: Sequence[str]) -> list[str]:
        """Join an option with a value that begins with a dash (`--guard -energy:2`) and is no option itself."""
        joined: list[str] = []
        for word in words:
            before = joined[-1] if joined and "--" not in joined else ""
            if word.startswith("-") and word != "--" and self._takes_one(before) and not self._is_option(word):
                joined[-1] = f"{before}={word}" if before.startswith("--") else f"{before}{word}"
            else:
                joined.append(word)
        return joined

    def _takes_one(self, word: str) -> bool:
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs is None

    def _is_option(self, word: str) -> bool:
        return word.partition("=")[0] in self._option_string_actions

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, found without importing `shutil` as argparse would."""

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
        leaf.add_argument("--json", action="store_true", help="print machine-readable data")
    return parser


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers that end a command line: the sub-commands where there are any, else the parser itself."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return [leaf for child in action.choices.values() for leaf in leaves(child)]
    return [parser]
