"""An environment's state, explicit and without pickle: `capture`, `restore`, and `probe` for whether that is exact.

What is not covered: Box2D worlds, processes, open files and other state outside Python (refused by name); the global
random generators (the trainer keeps them); the order of sets of strings, which differs between processes.
"""

from __future__ import annotations

from rlx.envs.capture import State, capture
from rlx.envs.generators import global_generators_kept
from rlx.envs.kinds import Uncapturable
from rlx.envs.probe import Probe, probe
from rlx.envs.restore import restore

__all__ = ["Probe", "State", "Uncapturable", "capture", "global_generators_kept", "probe", "restore"]
