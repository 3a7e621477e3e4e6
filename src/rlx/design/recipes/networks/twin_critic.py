"""Twin critics and Polyak targets: the minimum of two noisy critics overestimates less than the maximum of one.

A target network moves by τ per update: after n updates towards a fixed value the gap is (1 − τ)ⁿ.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats


def polyak(target: Floats, online: Floats, *, tau: float = 0.005) -> Floats:
    """Move a target towards the online weights."""
    return (1 - tau) * target + tau * online


def twin_target(rewards: Floats, first: Floats, second: Floats, ended: Floats, *, gamma: float) -> Floats:
    """Return r + γ min(Q1, Q2) of the next action; a termination has no future. No gradient flows through it."""
    target: Floats = rewards + gamma * (1 - ended) * np.minimum(first, second)
    return target


def learned_values(rng: np.random.Generator, *, steps: int, is_twin: bool) -> float:
    """Learn the values of a state whose actions are all worth 0, from noisy rewards; return the estimated value."""
    actions = 10
    critics = np.zeros((2, actions))
    for _ in range(steps):
        action = int(rng.integers(actions))
        reward = rng.normal()
        if is_twin:
            best = int(critics[0].argmax())
            target = twin_target(np.array(reward), critics[0][best], critics[1][best], np.array(0.0), gamma=0.9)
        else:
            target = reward + 0.9 * critics[0].max()
        for critic in critics:
            critic[action] += 0.1 * rng.random() * 2 * (float(target) - critic[action])
    return float(critics[0].mean())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Measure the bias of one critic and of two, and the closed form of the target's movement."""
    rng = np.random.default_rng(seed)
    repeats = int(30 * scale) + 5
    single = float(np.mean([learned_values(rng, steps=1500, is_twin=False) for _ in range(repeats)]))
    twin = float(np.mean([learned_values(rng, steps=1500, is_twin=True) for _ in range(repeats)]))
    target = np.zeros(3)
    for _ in range(100):
        target = polyak(target, np.ones(3))
    return [
        at_least("bias of one critic", single, 0.3),
        at_most("bias of twin critics / bias of one", abs(twin) / single, 0.85),
        at_most("error of the Polyak average", float(np.abs(target - (1 - 0.995**100)).max()), 1e-12),
    ]
