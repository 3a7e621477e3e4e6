"""Commands with verbs of their own (`rlx study new`, `rlx check env`): one module a verb, in the command's folder."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class Verbs:
    """The verbs of a command, by name, with what each does; their modules are like those of commands."""

    def __init__(self, package: str, summaries: Mapping[str, str]) -> None:
        self._package = package
        self._summaries = summaries

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give every verb a parser of its own."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(self._summaries))
        for name, summary in self._summaries.items():
            module = self._module(name)
            leaf = verbs.add_parser(name, help=summary, description=module.__doc__)
            module.arguments(leaf)

    def run(self, args: argparse.Namespace) -> dict[str, Any]:
        """Run the verb that was asked for; its data says which it was."""
        data: dict[str, Any] = self._module(args.verb).run(args)
        return {"verb": args.verb, **data}

    def render(self, data: dict[str, Any]) -> str:
        """Spell the data of a verb."""
        text: str = self._module(data["verb"]).render(data)
        return text

    def _module(self, verb: str) -> ModuleType:
        return importlib.import_module(f"{self._package}.{verb}")
