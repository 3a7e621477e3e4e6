"""The settings that an interpreter needs at its start, so that workers can be forked from it; imports very little."""

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
    """Return the variables that have an effect only when an interpreter starts or NumPy is loaded."""
    cores = str(config.get("resources", {}).get("cores", 1))
    return {**INTERPRETER_VARIABLES, **dict.fromkeys(THREAD_VARIABLES, cores)}


def has_lasting_environment(config: Mapping[str, Any]) -> bool:
    """Say whether this process was started with the variables that a worker of this config needs."""
    return all(os.environ.get(name) == value for name, value in lasting_environment(config).items())


def reexec() -> None:
    """Start this command line again with the settings that a supervisor can be forked from.

    It returns if the settings are in place, or if this platform cannot do it. `-P` keeps Python from importing
    modules of the current folder.
    """
    is_set = sys.flags.safe_path and has_lasting_environment({})
    if sys.platform == "linux" and sys.executable and not is_set and not sys.flags.ignore_environment:
        environment = {**os.environ, **lasting_environment({})}
        os.execve(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]], environment)  # noqa: S606


def is_fresh() -> bool:
    """Say whether this process is like a new supervisor: the right settings, and NumPy is not loaded yet."""
    return sys.flags.safe_path and not sys.flags.hash_randomization and "numpy" not in sys.modules
