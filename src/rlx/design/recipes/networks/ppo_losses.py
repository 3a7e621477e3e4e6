"""PPO's losses in NumPy: clipped surrogate, value loss, entropy, and generalised advantages, with exact gradients.

The policy is a table of logits, so that the gradient is short enough to read and to check by finite differences.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, Transition, exact_return, grid, sample_episode, softmax

Ints = NDArray[np.int_]
CLIP = 0.2
ENTROPY = 0.01


def gae(rewards: Floats, values: Floats, ended: Floats, *, gamma: float, lam: float) -> Floats:
    """Return generalised advantages; `values` has one more entry, the value after the last step."""
    advantages = np.zeros_like(rewards)
    following = 0.0
    for step in reversed(range(len(rewards))):
        is_open = 1 - ended[step]
        error = rewards[step] + gamma * is_open * values[step + 1] - values[step]
        following = error + gamma * lam * is_open * following
        advantages[step] = following
    return advantages


def policy_loss(logits: Floats, states: Ints, actions: Ints, old: Floats, advantages: Floats) -> tuple[float, Floats]:
    """Return the clipped surrogate loss with its entropy bonus, and its gradient with respect to the logits."""
    count = len(states)
    chances = softmax(logits[states])
    log_chances = np.log(chances)
    ratio = np.exp(log_chances[np.arange(count), actions] - old)
    clipped = np.clip(ratio, 1 - CLIP, 1 + CLIP)
    surrogate = np.minimum(ratio * advantages, clipped * advantages)
    entropy = -(chances * log_chances).sum(axis=1)
    loss = -surrogate.mean() - ENTROPY * entropy.mean()
    # where the clipped value is the smaller one, the surrogate does not depend on the policy
    is_open = ratio * advantages <= clipped * advantages
    chosen = np.zeros_like(chances)
    chosen[np.arange(count), actions] = 1.0
    slope = -(is_open * ratio * advantages)[:, None] * (chosen - chances)
    slope += ENTROPY * chances * (log_chances + entropy[:, None])
    gradient = np.zeros_like(logits)
    np.add.at(gradient, states, slope / count)
    return float(loss), gradient


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare the gradient with finite differences, then train on a grid until it is solved."""
    rng = np.random.default_rng(seed)
    error = _gradient_error(rng)
    world = grid(4, slip=0.0)
    trained = train(rng, updates=int(60 * scale) + 40)
    best = -6.0
    return [
        at_most("largest error of the gradient", error, 1e-6),
        at_least("return of the trained policy (the best is −6)", exact_return(world, trained, horizon=50), best - 1.5),
    ]


def _gradient_error(rng: np.random.Generator) -> float:
    logits = rng.normal(size=(5, 3))
    states = rng.integers(5, size=40)
    actions = rng.integers(3, size=40)
    old = np.log(softmax(logits + 0.3 * rng.normal(size=logits.shape))[states, actions])
    advantages = rng.normal(size=40)
    gradient = policy_loss(logits, states, actions, old, advantages)[1]
    worst = 0.0
    for place in np.ndindex(logits.shape):
        nudge = np.zeros_like(logits)
        nudge[place] = 1e-6
        above = policy_loss(logits + nudge, states, actions, old, advantages)[0]
        below = policy_loss(logits - nudge, states, actions, old, advantages)[0]
        worst = max(worst, abs((above - below) / 2e-6 - float(gradient[place])))
    return worst


def train(rng: np.random.Generator, *, updates: int) -> Floats:
    """Train a table of logits and of values with PPO from random starts, and return the greedy policy."""
    world = grid(4, slip=0.0)
    world = replace(world, starts=np.where(world.ends, 0.0, 1 / (world.states - 1)))
    logits = np.zeros((world.states, world.actions))
    values = np.zeros(world.states)
    for _ in range(updates):
        batch = [_with_advantages(sample_episode(world, softmax(logits), rng, horizon=40), values) for _ in range(8)]
        states, actions = (np.concatenate([part[index] for part in batch]).astype(int) for index in (0, 1))
        advantages, targets = (np.concatenate([part[index] for part in batch]) for index in (2, 3))
        old = np.log(softmax(logits)[states, actions])
        np.add.at(values, states, 0.1 * (targets - values[states]))
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(6):
            logits -= 8.0 * policy_loss(logits, states, actions, old, advantages)[1]
    policy = np.zeros_like(logits)
    policy[np.arange(len(logits)), logits.argmax(axis=1)] = 1.0
    return policy


def _with_advantages(episode: list[Transition], values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return states, actions, advantages and value targets of one episode. A cut episode bootstraps its last value."""
    states = np.array([step.state for step in episode])
    following = np.append(values[states], values[episode[-1].next_state])
    rewards = np.array([step.reward for step in episode])
    ended = np.array([float(step.terminated) for step in episode])
    advantages = gae(rewards, following, ended, gamma=0.95, lam=0.9)
    actions = np.array([float(step.action) for step in episode])
    return states.astype(float), actions, advantages, advantages + values[states]
