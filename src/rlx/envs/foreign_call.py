"""The one place that catches everything: calls of environments, wrappers and other code that rlx did not write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rlx.errors import RlxError

T = TypeVar("T")


class ForeignError(Exception):
    """Foreign code raised `cause`."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(" ".join(f"{type(cause).__name__}: {cause}".split()))
        self.cause = cause


def call_foreign(call: Callable[[], T], *, passes: tuple[type[Exception], ...] = ()) -> T:
    """Return the result of foreign code. Raise `ForeignError` if it fails; rlx's errors and `passes` go through."""
    try:
        return call()
    except (Exception, SystemExit) as error:  # foreign code may raise anything, and may call sys.exit
        if isinstance(error, (RlxError, *passes)):
            raise
        raise ForeignError(error) from error
