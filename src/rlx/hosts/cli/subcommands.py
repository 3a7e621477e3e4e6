"""Commands with subcommands (`rlx study new`, `rlx check env`): one module per subcommand, in the command's folder."""

import importlib
import keyword
from collections.abc import Mapping
from types import ModuleType

from rlx.hosts.cli.arguments import Args, Data, Parser

INTERFACE = ("arguments", "run", "render")


class Subcommands:
    """The subcommands of a command by name, with a summary each; their modules look like those of commands."""

    def __init__(self, package: str, summaries: Mapping[str, str]) -> None:
        self._package = package
        self._summaries = summaries

    def arguments(self, parser: Parser) -> None:
        """Add a parser for every subcommand."""
        parsers = parser.add_subparsers(dest="verb", required=True, metavar="|".join(self._summaries))
        for name, summary in self._summaries.items():
            module = self._module(name)
            module.arguments(parsers.add_parser(name, help=summary, description=module.__doc__))

    def run(self, args: Args) -> Data:
        """Run the subcommand; its data has the name as `verb`."""
        data: Data = self._module(args.verb).run(args)
        return {"verb": args.verb, **data}

    def render(self, data: Data) -> str:
        """Spell the data of a subcommand."""
        text: str = self._module(data["verb"]).render(data)
        return text

    def _module(self, name: str) -> ModuleType:
        if keyword.iskeyword(name) or name in INTERFACE:
            name += "_"  # a module cannot be called `try`, and `run` is the function of its package
        return importlib.import_module(f"{self._package}.{name}")
