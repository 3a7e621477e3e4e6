"""A gradient attack on observations (FGSM): ε times the sign of the gradient, compared with noise of the same size.

The attack pushes the policy towards its other action. The noise arm has the same largest change per number.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.networks.integrated_gradients import SmallNetwork
from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import EXPERT, Floats, cartpole_returns

SIZES = (0.1, 0.3, 0.5, 0.7)
SCALE = np.array([0.5, 0.5, 0.1, 0.5])
"""The usual size of each number: ε is relative to it."""


def cloned_network(seed: int) -> SmallNetwork:
    """Fit the last layer of a network to the expert's decision."""
    network = SmallNetwork(4, seed=seed, hidden=64)
    inputs = np.random.default_rng(seed).normal(size=(4000, 4))
    target = np.tanh(3 * (inputs * SCALE) @ EXPERT)
    network.second = np.linalg.lstsq(np.tanh(inputs @ network.first), target, rcond=None)[0]
    return network


def attacked(network: SmallNetwork, inputs: Floats, epsilon: float) -> Floats:
    """Move every number by ε against the current decision."""
    direction = np.sign(network.value(inputs)) * np.sign(network.gradient(inputs))
    return inputs - epsilon * direction


def mean_return(network: SmallNetwork, epsilon: float, *, kind: str, episodes: int) -> float:
    """Return the mean return if every observation is disturbed."""
    rng = np.random.default_rng(0)

    def act(observation: Floats) -> int:
        inputs = observation / SCALE
        if kind == "attack":
            inputs = attacked(network, inputs, epsilon)
        elif kind == "noise":
            inputs = inputs + epsilon * rng.choice((-1.0, 1.0), size=4)
        return int(network.value(inputs) > 0)

    return float(cartpole_returns(act, episodes=episodes).mean())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Sweep ε for the attack and for noise."""
    network = cloned_network(seed)
    episodes = int(8 * scale) + 4
    clean = mean_return(network, 0.0, kind="none", episodes=episodes)
    attack = [mean_return(network, size, kind="attack", episodes=episodes) for size in SIZES]
    noise = [mean_return(network, size, kind="noise", episodes=episodes) for size in SIZES]
    return [
        at_least("return without a disturbance", clean, 400.0),
        at_most("return under the largest attack / clean", attack[-1] / clean, 0.6),
        at_least("return under noise − under the attack, largest ε", noise[-1] - attack[-1], 50.0),
    ]
