"""Automatic domain randomisation: widen a range while the policy succeeds at its boundary, shrink it when it fails.

The world is a mass that a controller must bring to rest. The range of masses grows with the controller's skill.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats

WIDEN_AT = 0.8
SHRINK_AT = 0.5
EPISODES = 10


@dataclass
class AdrController:
    """One randomised factor: its range, its hard limits, and the outcomes at its two boundaries."""

    low: float
    high: float
    limits: tuple[float, float]
    step: float
    outcomes: dict[str, list[bool]] = field(default_factory=lambda: {"low": [], "high": []})

    def sample(self, rng: np.random.Generator) -> float:
        """Return a value for training."""
        return float(rng.uniform(self.low, self.high))

    def record(self, boundary: str, is_success: bool) -> None:
        """Add an outcome at a boundary, and move it after enough of them."""
        results = self.outcomes[boundary]
        results.append(is_success)
        if len(results) < EPISODES:
            return
        rate = float(np.mean(results))
        results.clear()
        if rate >= WIDEN_AT:
            self._move(boundary, self.step)
        elif rate <= SHRINK_AT:
            self._move(boundary, -self.step)

    def _move(self, boundary: str, outwards: float) -> None:
        middle = (self.low + self.high) / 2
        if boundary == "low":
            self.low = min(max(self.low - outwards, self.limits[0]), middle)
        else:
            self.high = max(min(self.high + outwards, self.limits[1]), middle)


def is_stopped(gains: Floats, mass: float, rng: np.random.Generator) -> bool:
    """Drive a mass from a random place to 0 with a PD controller, and say whether it rests there."""
    place = float(rng.uniform(-1, 1))
    speed = 0.0
    for _ in range(60):
        force = float(np.clip(-gains[0] * place - gains[1] * speed, -5, 5))
        speed += 0.1 * force / mass
        place += 0.1 * speed
    return abs(place) < 0.1 and abs(speed) < 0.1


def improved(gains: Floats, controller: AdrController, rng: np.random.Generator) -> Floats:
    """Try a variation of the gains on masses of the current range, and keep it if it is not worse."""
    masses = [controller.low, controller.high, *(controller.sample(rng) for _ in range(6))]
    trial = np.abs(gains * np.exp(0.3 * rng.normal(size=2)))
    before = sum(is_stopped(gains, mass, rng) for mass in masses)
    after = sum(is_stopped(trial, mass, rng) for mass in masses)
    return trial if after >= before else gains


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Let the range grow with the skill, then replace the controller by a useless one and see it shrink."""
    rng = np.random.default_rng(seed)
    controller = AdrController(low=1.0, high=1.0, limits=(0.3, 4.0), step=0.1)
    gains = np.array([1.0, 1.0])
    for _ in range(int(600 * scale) + 300):
        gains = improved(gains, controller, rng)
        for boundary in ("low", "high"):
            mass = getattr(controller, boundary)
            controller.record(boundary, is_stopped(gains, mass, rng))
    widest = controller.high - controller.low
    for _ in range(10 * EPISODES):
        controller.record("high", is_stopped(np.zeros(2), controller.high, rng))
    return [
        at_least("width of the range of masses at the end (it starts at 0)", widest, 0.8),
        at_most("width after a useless controller / before", (controller.high - controller.low) / widest, 0.8),
    ]
