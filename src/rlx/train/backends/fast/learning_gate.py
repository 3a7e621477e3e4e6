"""The learning gate: the tasks on which the fast backend was shown to learn as well as SB3, by kind of action.

The results are in bench/learning.md; a test compares this table with them.
"""

from __future__ import annotations

from typing import Any

from gymnasium import Space

from rlx.config.schema import Experiment

PASSED: dict[str, tuple[str, ...]] = {
    "Discrete": ("CartPole-v1", "Acrobot-v1", "LunarLander-v3", "FrozenLake-v1"),
    "Box": ("Hopper-v5", "Pendulum-v1", "MountainCarContinuous-v0"),
}


def kind(experiment: Experiment, actions: Space[Any]) -> str:
    """Return the key of the table that applies to an experiment; masked actions have a key of their own."""
    prefix = "masked " if experiment.algo.name == "maskable_ppo" else ""
    return prefix + type(actions).__name__
