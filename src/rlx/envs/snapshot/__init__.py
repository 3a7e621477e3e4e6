"""Saves and restores an environment's state without pickle: `capture`, `restore`, and `probe`, which tests both.

Not covered: Box2D worlds, processes, open files and other state outside Python (refused by name); the global
random generators (the trainer keeps them); the order of sets of strings, which differs between processes.
"""

from __future__ import annotations

from rlx.envs.global_rng import global_generators_kept
from rlx.envs.snapshot.capture import State, capture
from rlx.envs.snapshot.restore import restore
from rlx.envs.snapshot.resumability import Probe, probe
from rlx.envs.snapshot.value_kinds import Uncapturable

__all__ = ["Probe", "State", "Uncapturable", "capture", "global_generators_kept", "probe", "restore"]
