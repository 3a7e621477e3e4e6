"""The argument parser of a command: argparse, raising our errors."""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any, NoReturn

from rlx.errors import UsageError
from rlx.hosts.cli.commands import module_name


class Parser(argparse.ArgumentParser):
    """An argument parser that raises our errors instead of printing its own, and takes no abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Help, "allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what a sub-command does not know in its own name, not in its parent's."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

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
