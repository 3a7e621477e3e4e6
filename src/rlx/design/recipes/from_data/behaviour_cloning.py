"""Behaviour cloning on CartPole: fit a policy to the expert's actions, then measure it in the real environment.

The held-out accuracy on expert states says little: only the return in the environment counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlx.design.recipes.from_data.offline_dataset import Dataset, collect
from rlx.design.recipes.recipe_claim import RecipeClaim, at_least
from rlx.design.recipes.small_worlds import Floats, cartpole_expert, cartpole_returns


class ClonedPolicy:
    """Logistic regression on scaled observations."""

    def __init__(self, dataset: Dataset, *, steps: int = 400, rate: float = 1.0) -> None:
        observations = dataset.observations[dataset.is_step]
        self.scale = observations.std(axis=0) + 1e-8
        self.weights = np.zeros(observations.shape[1])
        inputs = observations / self.scale
        for _ in range(steps):
            error = self._chance(inputs) - dataset.actions
            self.weights -= rate * error @ inputs / len(inputs)

    def _chance(self, inputs: Floats) -> Floats:
        chance: Floats = 1 / (1 + np.exp(-np.clip(inputs @ self.weights, -30, 30)))
        return chance

    def __call__(self, observation: NDArray[np.floating]) -> int:
        return int(float((observation / self.scale) @ self.weights) > 0)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Clone 10 or more expert episodes, and compare the returns on the same starts."""
    demonstrations = collect(cartpole_expert, episodes=int(15 * scale) + 5, first_seed=100 * seed)
    clone = ClonedPolicy(demonstrations)
    episodes = int(20 * scale) + 5
    expert_return = cartpole_returns(cartpole_expert, episodes=episodes).mean()
    clone_return = cartpole_returns(clone, episodes=episodes).mean()
    return [
        at_least("return of the expert", float(expert_return), 450),
        at_least("return of the clone / of the expert", float(clone_return / expert_return), 0.9),
    ]
