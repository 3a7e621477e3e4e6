"""Stack the last frames: positions alone hide velocities, two frames show them.

The stack restarts at a reset with copies of the first frame, so nothing of the last episode remains.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats


class FrameStack:
    """The last `size` observations, the oldest first."""

    def __init__(self, size: int) -> None:
        self.frames: deque[Floats] = deque(maxlen=size)

    def reset(self, observation: Floats) -> Floats:
        """Fill the stack with the first observation of an episode."""
        for _ in range(self.frames.maxlen or 1):
            self.frames.append(observation)
        return self.stacked()

    def step(self, observation: Floats) -> Floats:
        """Add an observation."""
        self.frames.append(observation)
        return self.stacked()

    def stacked(self) -> Floats:
        return np.concatenate(list(self.frames))


def explained(features: Floats, target: Floats) -> float:
    """Return the share of the target's variance that a linear fit explains, on the second half of the data."""
    half = len(target) // 2
    design = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    weights = np.linalg.lstsq(design[:half], target[:half], rcond=None)[0]
    missed = ((design[half:] @ weights - target[half:]) ** 2).mean()
    return float(1 - missed / target[half:].var())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Predict the velocity of an oscillator from one and from two stacked positions."""
    rng = np.random.default_rng(seed)
    features: dict[int, list[Floats]] = {1: [], 2: []}
    velocities = []
    for _ in range(int(40 * scale) + 10):
        position, velocity = rng.normal(size=2)
        stacks = {size: FrameStack(size) for size in features}
        for stack in stacks.values():
            stack.reset(np.array([position]))
        for _ in range(20):
            velocity += 0.1 * (-position)
            position += 0.1 * velocity
            velocities.append(velocity)
            for size, stack in stacks.items():
                features[size].append(stack.step(np.array([position])))
    target = np.array(velocities)
    restarted = FrameStack(3).reset(np.array([7.0]))
    return [
        at_least("velocity explained by two frames", explained(np.array(features[2]), target), 0.99),
        at_most("velocity explained by one frame", explained(np.array(features[1]), target), 0.5),
        at_most("old frames after a reset", float(np.abs(restarted - 7.0).max()), 0.0),
    ]
