"""Where the fast backend has been shown to learn as well as SB3: kinds of actions, and the tasks that showed it.

The figures are in bench/learning.md; a test holds this table to them.
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
    """Return the row of the table that speaks for an experiment; masked actions have one of their own."""
    masked = "masked " if experiment.algo.name == "maskable_ppo" else ""
    return masked + type(actions).__name__
