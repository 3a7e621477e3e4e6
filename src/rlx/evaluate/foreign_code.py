"""Calls of foreign code: environments, policies and reward functions of a project, which can raise any exception."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rlx.envs.import_object import where
from rlx.errors import JobFailed, RlxError
from rlx.evaluate.protocol import Protocol


class ForeignCode:
    """A block that runs foreign code.

    `handle` gets the exception that the block raised and returns the error to raise instead, or None to end the block
    quietly. It is a class, not a generator: an environment's every step runs in such a block.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[Exception], Exception | None]) -> None:
        self._handle = handle

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception):  # no error, or an interruption that is not the code's own
            return False
        replacement = self._handle(error)
        if replacement is None or replacement is error:
            return replacement is None
        raise replacement from error


def one_line(error: Exception) -> str:
    """Return an exception's type and message on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def env_failure(error: Exception, protocol: Protocol, moment: str) -> RlxError:
    """Return the error for an exception of an environment: what it raised, where in the project, and when."""
    if isinstance(error, RlxError):
        return error
    place = where(error, root=protocol.root)
    message = f"{protocol.env.id} raised {one_line(error)}"
    if place:
        message += f" ({place})"
    return JobFailed(f"{message} at {moment}", hint="fix the error in the environment, then evaluate again")
