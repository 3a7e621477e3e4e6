"""The fast backend: PPO for small networks in NumPy, without torch; equal to SB3's PPO up to rounding.

The work is in the `fast_*` files beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Checkpoint
    from rlx.train.session import Session


class FastTrainer:
    """Trains `ppo` and `maskable_ppo` with mlp policies on the CPU."""

    name = "fast"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Say what stands against training this experiment."""
        from rlx.train.backends import fast_check

        return fast_check.problems(experiment, facts)

    def train(self, session: Session) -> None:
        """Train from the session's checkpoint, or from nothing, until it is complete or the session says stop."""
        from rlx.train.backends import fast_loop

        fast_loop.train([session])

    def train_together(self, sessions: Sequence[Session]) -> dict[int, Exception]:
        """Train several seeds in one process, each to the very numbers it would reach alone."""
        from rlx.train.backends import fast_loop

        return fast_loop.train(sessions)

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild the policy from config, spaces and weights."""
        from rlx.train.backends import fast_policy

        return fast_policy.load(checkpoint)
