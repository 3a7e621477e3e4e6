"""rlx: the operating layer for reinforcement-learning experiments."""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # `typing` alone would double the time that `rlx --help` takes on top of Python's start
if TYPE_CHECKING:
    from rlx.compare.task_runs import aggregate
    from rlx.envs.record_episodes import RecordEpisodes
    from rlx.evaluate.trained_policy import load
    from rlx.hosts.notebook import plot
    from rlx.launch.launch import run
    from rlx.loop.sweep.python_sweep import sweep
    from rlx.runs.index import find
    from rlx.runs.run import open
    from rlx.train.own_script import start

_WHERE = {
    "aggregate": "rlx.compare.task_runs",
    "run": "rlx.launch.launch",
    "sweep": "rlx.loop.sweep.python_sweep",
    "find": "rlx.runs.index",
    "open": "rlx.runs.run",
    "load": "rlx.evaluate.trained_policy",
    "plot": "rlx.hosts.notebook",
    "start": "rlx.train.own_script",
    "RecordEpisodes": "rlx.envs.record_episodes",
}

__all__ = ["RecordEpisodes", "__version__", "aggregate", "find", "load", "open", "plot", "run", "start", "sweep"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import rlx` costs nothing heavy."""
    if name not in _WHERE:
        raise AttributeError(f"module 'rlx' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)
