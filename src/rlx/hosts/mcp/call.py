"""Run a command of the CLI as a function: the same parser, the same use case, data instead of text."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ToolError

from rlx import files
from rlx.errors import Refused, RlxError, UsageError
from rlx.hosts.cli.commands import module_name
from rlx.hosts.cli.main import exit_code
from rlx.hosts.cli.parser import parser_of
from rlx.hosts.mcp.answer import LIMIT_BYTES, clip

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def document(command: str, *argv: str) -> dict[str, Any]:
    """Return what `rlx COMMAND … --json` prints; what starts with a dash after `--` is never an option."""
    module = importlib.import_module(module_name(command))
    before = argv.index("--") if "--" in argv else len(argv)
    try:
        args = parser_of(command).parse_args([*argv[:before], "--json", *argv[before:]])
    except SystemExit as end:
        raise UsageError(f"rlx {command} does not take {' '.join(argv)}", hint=f"rlx {command} --help") from end
    data: dict[str, Any] = module.run(args)
    printed: dict[str, Any] = files.decode(files.encode(data))  # numbers and names as JSON can hold them
    return {**printed, "exit_code": exit_code(data)}


def named(run: str) -> str:
    """Return the name of a run of this project; a path, which the CLI takes too, is refused."""
    if not run or "/" in run or "\\" in run or run.startswith("."):
        raise UsageError(f"`{run[:80]}` is not the name of a run", hint="rlx ls")
    return run


async def in_thread(function: Callable[..., Returned], *args: Any, **kwargs: Any) -> Returned:
    """Run something that may take seconds without holding up the other calls."""
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), abandon_on_cancel=True)


def tool(function: Callable[Given, Awaitable[Returned]]) -> Callable[Given, Awaitable[Returned]]:
    """Turn our errors into what a model can act on: message, code and hint."""

    @wraps(function)
    async def told(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return await function(*args, **kwargs)
        except RlxError as error:
            raise ToolError(spelled(error)) from error
        except OSError as error:
            raise ToolError(spelled(RlxError(f"{error.strerror or error}", hint="rlx doctor"))) from error
        except ToolError:
            raise
        except Exception as error:  # this host's top: a bug is reported, never a bare "Error executing tool"
            bug = RlxError(f"{type(error).__name__}: {error} (a bug in rlx or a plug-in)", hint="rlx doctor")
            raise ToolError(spelled(bug)) from error

    return told


def spelled(error: RlxError) -> str:
    """Return an error as JSON that fits: what, which kind, the CLI's exit code, what to do, the codes of a refusal."""
    told: dict[str, Any] = {
        "error": error.message,
        "kind": type(error).__name__,
        "code": error.exit_code,
        "hint": error.hint,
    }
    if isinstance(error, Refused) and error.reasons:
        told["reasons"] = sorted({str(reason.get("code")) for reason in error.reasons})
    for chars in (1200, 600, 300, 150):  # a character may take several bytes
        if len(files.encode(told)) <= LIMIT_BYTES:
            break
        told = clip(told, chars)
    return files.encode(told).decode()
