"""rlx: the operating layer for reinforcement-learning experiments."""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # `typing` alone would double the time that `rlx --help` takes on top of Python's start
if TYPE_CHECKING:
    from rlx.envs.record import RecordEpisodes
    from rlx.evaluate.policy import load
    from rlx.launch.launch import run
    from rlx.runs.index import find
    from rlx.runs.run import open
    from rlx.train.start import start

_WHERE = {
    "run": "rlx.launch.launch",
    "find": "rlx.runs.index",
    "open": "rlx.runs.run",
    "load": "rlx.evaluate.policy",
    "start": "rlx.train.start",
    "RecordEpisodes": "rlx.envs.record",
}

__all__ = ["RecordEpisodes", "__version__", "find", "load", "open", "run", "start"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import rlx` costs nothing heavy."""
    if name not in _WHERE:
        raise AttributeError(f"module 'rlx' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)
