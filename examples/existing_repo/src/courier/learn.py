"""Evolution strategies: networks that differ a little are tried in the same worlds, and the better ones pull."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from courier import policy
from courier.reward import RewardWeights, terms
from courier.world import HORIZON, Square

Report = Callable[[int, Mapping[str, float]], None]


def learn(
    settings: Mapping[str, float], weights: RewardWeights, *, seed: int, steps: int, report: Report
) -> np.ndarray:
    """Train for so many steps of a courier; `report` gets the step and the figures of every generation."""
    rng = np.random.default_rng(seed)
    hidden, population, worlds = (int(settings[key]) for key in ("hidden", "population", "worlds"))
    mean = rng.normal(0.0, 0.3, policy.size(hidden))
    momentum, square = np.zeros_like(mean), np.zeros_like(mean)
    taken, generation = 0, 0
    while taken < steps:
        generation += 1
        half = rng.normal(size=(population // 2, len(mean)))
        noise = np.concatenate([half, -half])
        scores, figures = play(mean + settings["sigma"] * noise, weights, hidden, worlds, int(rng.integers(2**63)))
        ranks = scores.argsort().argsort() / (population - 1) - 0.5
        slope = ranks @ noise / population / settings["sigma"]
        momentum = 0.9 * momentum + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        mean = mean + settings["rate"] * momentum / (1 - 0.9**generation) / (
            np.sqrt(square / (1 - 0.99**generation)) + 1e-8
        )
        taken += population * worlds * HORIZON
        report(min(taken, steps), figures)
    return mean


def play(
    networks: np.ndarray, weights: RewardWeights, hidden: int, worlds: int, seed: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the mean reward of every network in the same worlds, and figures over all of them."""
    count = len(networks)
    square = Square(worlds, np.random.default_rng(seed))
    for name in ("position", "velocity", "door", "breeze", "alive", "success"):
        value = getattr(square, name)
        setattr(square, name, np.tile(value, (count, *[1] * (value.ndim - 1))))
    totals: dict[str, np.ndarray] = {}
    while not square.is_over:
        actions = policy.act(networks, square.observe().reshape(count, worlds, -1), hidden)
        for name, paid in terms(square.step(actions.reshape(count * worlds, -1)), weights).items():
            totals[name] = totals.get(name, 0.0) + paid
    reward = np.sum(list(totals.values()), axis=0)
    figures = {f"Reward/{name}": float(paid.mean()) for name, paid in totals.items()}
    figures |= {"Train/mean_reward": float(reward.mean()), "Train/success": float(square.success.mean())}
    return reward.reshape(count, worlds).mean(axis=1), figures
