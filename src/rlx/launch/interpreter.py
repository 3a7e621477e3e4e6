"""What an interpreter must have been started with, so that workers may be forked from it; imports next to nothing."""

from __future__ import annotations

import os
import sys

from rlx import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
INTERPRETER_VARIABLES = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",  # sets of strings keep their order between attempts
}


def lasting_environment(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a worker that count when an interpreter starts or NumPy is loaded, and not later."""
    cores = str(config.get("resources", {}).get("cores", 1))
    return {**INTERPRETER_VARIABLES, **dict.fromkeys(THREAD_VARIABLES, cores)}


def inherited(config: Mapping[str, Any]) -> bool:
    """Say whether this process was started with the variables that a worker of this config needs from its start."""
    return all(os.environ.get(name) == value for name, value in lasting_environment(config).items())


def start_anew() -> None:
    """Start this command line again, as what a supervisor may be forked from; returns where it is that, or cannot be.

    -P: nothing is imported from where it stands.
    """
    is_so = sys.flags.safe_path and inherited({})
    if sys.platform == "linux" and sys.executable and not is_so and not sys.flags.ignore_environment:
        environment = {**os.environ, **lasting_environment({})}
        os.execve(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]], environment)  # noqa: S606


def is_new() -> bool:
    """Say whether this process is what a fresh supervisor would be: rightly started, and nothing computed yet."""
    return sys.flags.safe_path and not sys.flags.hash_randomization and "numpy" not in sys.modules
