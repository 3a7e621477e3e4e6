"""Call use cases for a model: in a thread, with errors as messages that it can act on."""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ToolError

from rlx import files
from rlx.errors import Refused, RlxError
from rlx.hosts.mcp.answer import LIMIT_BYTES, clip

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


async def in_thread(function: Callable[..., Returned], *args: Any, **kwargs: Any) -> Returned:
    """Run a slow function without blocking the other calls."""
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), abandon_on_cancel=True)


def tool(function: Callable[Parameters, Awaitable[Returned]]) -> Callable[Parameters, Awaitable[Returned]]:
    """Turn errors into messages that a model can act on: message, code and hint."""

    @wraps(function)
    async def reporting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return await function(*args, **kwargs)
        except (RlxError, OSError) as error:
            raise ToolError(error_text(error)) from error
        except ToolError:
            raise
        except Exception as error:  # the top of this host: a bug is reported, never a bare "Error executing tool"
            bug = RlxError(f"{type(error).__name__}: {error} (a bug in rlx or a plug-in)", hint="rlx doctor")
            raise ToolError(error_text(bug)) from error

    return reporting


def error_text(error: RlxError | OSError) -> str:
    """Return an error as JSON that fits: message, kind, exit code of the CLI, hint, and the codes of a refusal."""
    if isinstance(error, OSError):
        error = RlxError(error.strerror or str(error), hint="rlx doctor")
    data: dict[str, Any] = {
        "error": error.message, "kind": type(error).__name__, "code": error.exit_code, "hint": error.hint,
    }  # fmt: skip
    if isinstance(error, Refused) and error.reasons:
        data["reasons"] = sorted({str(reason.get("code")) for reason in error.reasons})
    for chars in (1200, 600, 300, 150):  # a character may take several bytes
        if len(files.encode(data)) <= LIMIT_BYTES:
            break
        data = clip(data, chars)
    return files.encode(data).decode()
