"""The argument parser of a command: argparse, raising our errors."""

from __future__ import annotations

import argparse
from typing import NoReturn

from rlx.errors import UsageError


class Parser(argparse.ArgumentParser):
    """An argument parser that raises our errors instead of printing its own."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help")


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers that end a command line: the sub-commands where there are any, else the parser itself."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return [leaf for child in action.choices.values() for leaf in leaves(child)]
    return [parser]
