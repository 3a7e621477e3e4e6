"""The fast backend: PPO for small networks in NumPy, without torch; equal to SB3's PPO up to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoints.checkpoint import Checkpoint
    from rlx.train.session import Session


class FastTrainer:
    """Trains `ppo` and `maskable_ppo` with mlp policies on the CPU."""

    name = "fast"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Return every reason why this backend cannot train an experiment."""
        from rlx.train.backends.fast import unsupported

        return unsupported.problems(experiment, facts)

    def train(self, session: Session) -> None:
        """Train from the session's checkpoint, or from the start, until training is complete or has to stop."""
        self.train_together([session])

    def train_together(self, sessions: Sequence[Session]) -> dict[int, Exception]:
        """Train several seeds in one process; each reaches exactly the weights that it would reach alone."""
        from rlx.train.backends.fast import training_loop

        return training_loop.train(sessions)

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild the policy from config, spaces and weights."""
        from rlx.train.backends.fast import numpy_policy

        return numpy_policy.load(checkpoint)
