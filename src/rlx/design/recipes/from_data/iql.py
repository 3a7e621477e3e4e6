"""IQL on a fixed dataset: expectile regression of the value on tried actions only, then weighted cloning.

No value of an untried action is ever used. The expectile τ near 1 approaches the best tried action.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.from_data.cql import cloned, counts_of, mixed_data
from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, TabularMdp, Transition, best_values, exact_return, greedy, grid


def expectile(values: Floats, weights: Floats, *, tau: float, steps: int = 200) -> float:
    """Return the τ-expectile of weighted values: errors above it weigh τ, errors below weigh 1 − τ."""
    estimate = float((values * weights).sum() / weights.sum())
    for _ in range(steps):
        error = values - estimate
        slope = weights * np.where(error > 0, tau, 1 - tau)
        estimate += float((slope * error).sum() / slope.sum())
    return estimate


def implicit_q(mdp: TabularMdp, data: list[Transition], *, tau: float, sweeps: int) -> tuple[Floats, Floats]:
    """Return action values and state values from the data."""
    counts = counts_of(mdp, data)
    reward_sums = np.zeros_like(counts)
    arrivals = np.zeros((mdp.states, mdp.actions, mdp.states))
    for step in data:
        reward_sums[step.state, step.action] += step.reward
        arrivals[step.state, step.action, step.next_state] += not step.terminated
    tried = np.maximum(counts, 1)
    rewards = reward_sums / tried
    arrivals /= tried[:, :, None]
    states = np.zeros(mdp.states)
    values = np.zeros_like(counts)
    for _ in range(sweeps):
        values = rewards + mdp.gamma * arrivals @ states
        for state in np.flatnonzero(counts.sum(axis=1)):
            is_tried = counts[state] > 0
            states[state] = expectile(values[state][is_tried], counts[state][is_tried], tau=tau, steps=8)
    return values, states


def weighted_clone(counts: Floats, values: Floats, states: Floats, *, temperature: float = 3.0) -> Floats:
    """Return the policy that clones actions in proportion to exp(temperature × advantage)."""
    advantage = np.clip(temperature * (values - states[:, None]), -20, 20)
    policy: Floats = counts * np.exp(advantage) + 1e-12
    return policy / policy.sum(axis=1, keepdims=True)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Learn from mixed data, and compare with cloning in the real world."""
    rng = np.random.default_rng(seed)
    mdp = grid(5, slip=0.1)
    data = mixed_data(mdp, rng, episodes=int(100 * scale) + 100)
    values, states = implicit_q(mdp, data, tau=0.9, sweeps=int(60 * scale) + 60)
    policy = weighted_clone(counts_of(mdp, data), values, states)
    learned = exact_return(mdp, policy)
    clone = exact_return(mdp, cloned(mdp, data))
    best = exact_return(mdp, greedy(best_values(mdp)))
    error = abs(expectile(np.array([0.0, 1.0]), np.ones(2), tau=0.9) - 0.9)
    return [
        at_least("gain of IQL over cloning", learned - clone, 2.0),
        at_least("best return / return of IQL (1 is equal)", best / learned, 0.8),
        at_most("error of the expectile of {0, 1}", error, 1e-9),
    ]
