"""CQL on a fixed dataset: Q-learning whose loss also pushes down log Σ exp Q and pushes up the data's actions.

The world costs −1 per step, so an action that was never tried keeps its start value 0 and looks best. Plain Q-learning
follows it. CQL values it low. Behaviour cloning copies the random half of the data.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least
from rlx.design.recipes.small_worlds import (
    Floats,
    TabularMdp,
    Transition,
    best_values,
    exact_return,
    greedy,
    grid,
    sample_episode,
    softmax,
)


def mixed_data(mdp: TabularMdp, rng: np.random.Generator, *, episodes: int) -> list[Transition]:
    """Return transitions of a policy that is right half of the time, and never tries the last action in most states."""
    expert = greedy(best_values(mdp))
    behaviour = 0.5 * expert + 0.5 / mdp.actions
    for state in range(mdp.states):
        unused = int(rng.integers(mdp.actions))
        if expert[state, unused] == 0:
            behaviour[state, unused] = 0.0
    behaviour /= behaviour.sum(axis=1, keepdims=True)
    return [step for _ in range(episodes) for step in sample_episode(mdp, behaviour, rng, horizon=100)]


def counts_of(mdp: TabularMdp, data: list[Transition]) -> Floats:
    """Return how often each action was tried in each state."""
    counts = np.zeros((mdp.states, mdp.actions))
    for step in data:
        counts[step.state, step.action] += 1
    return counts


def cloned(mdp: TabularMdp, data: list[Transition]) -> Floats:
    """Return the behaviour policy as the data shows it."""
    counts = counts_of(mdp, data) + 1e-9
    policy: Floats = counts / counts.sum(axis=1, keepdims=True)
    return policy


def q_learning(mdp: TabularMdp, data: list[Transition], *, conservatism: float, sweeps: int) -> Floats:
    """Return action values after sweeps over the data; `conservatism` weighs CQL's term, and 0 is plain Q-learning."""
    states = np.array([step.state for step in data])
    actions = np.array([step.action for step in data])
    rewards = np.array([step.reward for step in data])
    after = np.array([step.next_state for step in data])
    is_open = np.array([not step.terminated for step in data])
    tried = counts_of(mdp, data)
    visits = tried.sum(axis=1, keepdims=True)
    shares = tried / np.maximum(visits, 1)
    counts = np.maximum(tried, 1)
    values = np.zeros((mdp.states, mdp.actions))
    for _ in range(sweeps):
        targets = rewards + mdp.gamma * is_open * values[after].max(axis=1)
        errors = np.zeros_like(values)
        np.add.at(errors, (states, actions), targets - values[states, actions])
        # the gradient of log Σ exp Q is softmax(Q), that of the data's mean value is the share of each action
        values += 0.5 * errors / counts - conservatism * (visits > 0) * (softmax(values) - shares)
    return values


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Learn from mixed data with cloning, plain Q-learning and CQL; measure all in the real world."""
    rng = np.random.default_rng(seed)
    mdp = grid(6, slip=0.1)
    data = mixed_data(mdp, rng, episodes=int(100 * scale) + 100)
    clone = exact_return(mdp, cloned(mdp, data))
    plain = exact_return(mdp, greedy(q_learning(mdp, data, conservatism=0.0, sweeps=300)))
    conservative = exact_return(mdp, greedy(q_learning(mdp, data, conservatism=0.2, sweeps=300)))
    best = exact_return(mdp, greedy(best_values(mdp)))
    return [
        at_least("gain of CQL over cloning", conservative - clone, 3.0),
        at_least("gain of CQL over plain Q-learning", conservative - plain, 3.0),
        at_least("best return / return of CQL (1 is equal)", best / conservative, 0.85),
    ]
