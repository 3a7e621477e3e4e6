"""Batch arithmetic of on-policy learning: samples, minibatches that fit, and updates in a run."""

from __future__ import annotations

from dataclasses import dataclass

from rlx.config.defaults import divisors
from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most


@dataclass(frozen=True)
class BatchPlan:
    """One rollout and how it is used."""

    num_envs: int
    rollout_steps: int
    batch_size: int
    update_epochs: int
    total_steps: int

    @property
    def samples(self) -> int:
        return self.num_envs * self.rollout_steps

    @property
    def remainder(self) -> int:
        return self.samples % self.batch_size

    @property
    def updates(self) -> int:
        """Gradient steps in the whole run."""
        rollouts = self.total_steps // self.samples
        return rollouts * self.update_epochs * (self.samples // self.batch_size)


def fitting_sizes(num_envs: int, rollout_steps: int, *, low: int = 32, high: int = 4096) -> list[int]:
    """Return the minibatch sizes that divide a rollout."""
    return [size for size in divisors(num_envs * rollout_steps) if low <= size <= high]


def counted_updates(plan: BatchPlan) -> int:
    """Count the gradient steps of a run by walking through it."""
    count = 0
    for _ in range(plan.total_steps // plan.samples):
        for _ in range(plan.update_epochs):
            for first in range(0, plan.samples, plan.batch_size):
                count += first + plan.batch_size <= plan.samples
    return count


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Check the suggestions and the formula on many shapes."""
    left_over = 0
    errors = 0
    shapes = 0
    for num_envs in (1, 4, 6, 8, 32, 48):
        for steps in (24, 100, 128, 256):
            for size in fitting_sizes(num_envs, steps):
                plan = BatchPlan(num_envs, steps, size, 4, int(20_000 * scale) + 20_000)
                left_over += plan.remainder
                errors += plan.updates != counted_updates(plan)
                shapes += 1
    return [
        at_most("samples left over by suggested sizes", left_over, 0.0),
        at_most("wrong numbers of updates", errors, 0.0),
        at_least("shapes tried", shapes, 100.0),
    ]
