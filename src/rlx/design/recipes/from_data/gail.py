"""GAIL: a discriminator learns to tell the expert's actions from the learner's, and its answer is the reward.

Occupancies are exact in this small world, so the whole algorithm fits on a page. The reward is log D. The other common
form, −log(1 − D), is positive and pays for staying alive. If the goal ends the episode, it teaches to avoid the goal.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import (
    Floats,
    TabularMdp,
    best_values,
    exact_return,
    greedy,
    grid,
    sample_episode,
    softmax,
)

HORIZON = 60


def occupancy(mdp: TabularMdp, policy: Floats) -> Floats:
    """Return how often each state and action is visited, discounted and normalised; ended states do not count."""
    present = mdp.starts.copy()
    pairs = np.zeros((mdp.states, mdp.actions))
    weight = 1.0
    for _ in range(HORIZON):
        visited = present[:, None] * policy
        pairs += weight * visited * ~mdp.ends[:, None]
        present = np.einsum("sa,san->n", visited, mdp.transitions)
        weight *= mdp.gamma
    return pairs / pairs.sum()


def expert_occupancy(mdp: TabularMdp, expert: Floats, rng: np.random.Generator, *, episodes: int) -> Floats:
    """Return the same from a few sampled demonstrations."""
    pairs = np.zeros((mdp.states, mdp.actions))
    for _ in range(episodes):
        for index, step in enumerate(sample_episode(mdp, expert, rng, horizon=HORIZON)):
            pairs[step.state, step.action] += mdp.gamma**index
    return pairs / pairs.sum()


def discriminator_gradient(logits: Floats, wanted: Floats, shown: Floats) -> Floats:
    """Return the gradient of the log-likelihood that the expert's pairs are real and the learner's are not."""
    guess = 1 / (1 + np.exp(-logits))
    gradient: Floats = wanted * (1 - guess) - shown * guess
    return gradient


def reward_of(logits: Floats) -> Floats:
    """Return log D."""
    reward: Floats = -np.log1p(np.exp(-logits))
    return reward


def imitate(mdp: TabularMdp, wanted: Floats, *, rounds: int) -> tuple[Floats, float]:
    """Alternate discriminator and policy; return the policy and the discriminator's last accuracy."""
    logits = np.zeros_like(wanted)
    values = np.zeros_like(wanted)
    policy = softmax(values)
    for _ in range(rounds):
        shown = occupancy(mdp, policy)
        logits += 50.0 * discriminator_gradient(logits, wanted, shown)
        logits = np.clip(logits, -6, 6)
        reward = reward_of(logits)
        for _ in range(20):
            soft = np.log(np.exp(values).sum(axis=1)) * ~mdp.ends
            values = reward + mdp.gamma * mdp.transitions @ soft
        policy = softmax(values)
    guess = 1 / (1 + np.exp(-logits))
    accuracy = 0.5 * float((wanted * (guess > 0.5)).sum() + (occupancy(mdp, policy) * (guess <= 0.5)).sum())
    return policy, accuracy


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Imitate an expert from a few episodes, without its reward."""
    rng = np.random.default_rng(seed)
    mdp = grid(5, slip=0.1)
    expert = greedy(best_values(mdp))
    wanted = expert_occupancy(mdp, expert, rng, episodes=int(20 * scale) + 20)
    policy, accuracy = imitate(mdp, wanted, rounds=int(200 * scale) + 200)
    best = exact_return(mdp, expert)
    uniform = np.full_like(policy, 0.25)
    share = (exact_return(mdp, policy) - exact_return(mdp, uniform)) / (best - exact_return(mdp, uniform))
    return [
        at_least("return between random (0) and the expert (1)", share, 0.9),
        at_most("accuracy of the discriminator at the end", accuracy, 0.85),
    ]
