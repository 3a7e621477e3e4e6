"""Run a command of the CLI as a function: the same parser and the same use case, but data instead of text."""

from __future__ import annotations

import importlib
from typing import Any

from rlx import files
from rlx.errors import UsageError
from rlx.hosts.cli.commands import module_name
from rlx.hosts.cli.main import exit_code
from rlx.hosts.cli.parser import parser_of


def document(command: str, *argv: str) -> dict[str, Any]:
    """Return what `rlx COMMAND … --json` prints; words after `--` are never options."""
    module = importlib.import_module(module_name(command))
    end = argv.index("--") if "--" in argv else len(argv)
    try:
        args = parser_of(command).parse_args([*argv[:end], "--json", *argv[end:]])
    except SystemExit as error:
        raise UsageError(f"rlx {command} does not take {' '.join(argv)}", hint=f"rlx {command} --help") from error
    data: dict[str, Any] = module.run(args)
    printed: dict[str, Any] = files.decode(files.encode(data))  # numbers and names as JSON can hold them
    return {**printed, "exit_code": exit_code(data)}


def option(name: str, value: str | None) -> list[str]:
    """Return the words of an option that has a value."""
    if not value:
        return []
    return [name, value]


def run_name(name: str) -> str:
    """Return the name of a run of this project; refuse a path, which the CLI accepts too."""
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise UsageError(f"`{name[:80]}` is not the name of a run", hint="rlx ls")
    return name
