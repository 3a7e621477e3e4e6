"""Independent PPO with shared parameters on a parallel multi-agent environment, as a baseline for central methods.

Every agent treats the others as part of the world. The policy is a table over both places, so the loss is that of the
recipe `ppo-losses`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlx.design.recipes.networks.ppo_losses import gae, policy_loss
from rlx.design.recipes.recipe_claim import RecipeClaim, at_least
from rlx.design.recipes.small_worlds import Floats, softmax
from rlx.design.recipes.worlds.pettingzoo_checks import LENGTH, MeetOnLine

ACTIONS = 3


def state_of(agent: str, observation: Any) -> int:
    """Return a row of the shared table: the agent's role and both places."""
    own, other = (round(float(value) * (LENGTH - 1)) for value in observation)
    return ((agent == "right") * LENGTH + own) * LENGTH + other


Step = tuple[int, int, float, bool, int]
"""State, action, reward, terminated, and the state after it."""


def play(env: MeetOnLine, logits: Floats, rng: np.random.Generator, *, seed: int) -> dict[str, list[Step]]:
    """Play one episode and return the steps of every agent."""
    observations, _ = env.reset(seed=seed)
    steps: dict[str, list[Step]] = {agent: [] for agent in env.possible_agents}
    while env.agents:
        states = {agent: state_of(agent, observations[agent]) for agent in env.agents}
        actions = {agent: int(rng.choice(ACTIONS, p=softmax(logits[state]))) for agent, state in states.items()}
        observations, rewards, terminated, _, _ = env.step(actions)
        for agent, state in states.items():
            after = state_of(agent, observations[agent])
            steps[agent].append((state, actions[agent], rewards[agent], terminated[agent], after))
    return steps


def train(rng: np.random.Generator, *, updates: int) -> Floats:
    """Train the shared table on the experience of all agents."""
    env = MeetOnLine()
    rows = 2 * LENGTH * LENGTH
    logits = np.zeros((rows, ACTIONS))
    values = np.zeros(rows)
    for update in range(updates):
        parts = []
        for episode in range(8):
            for steps in play(env, logits, rng, seed=100 * update + episode).values():
                states, actions, rewards, ended, after = (np.array(column) for column in zip(*steps, strict=True))
                following = np.append(values[states], values[after[-1]])  # a time limit does not end the value
                advantages = gae(rewards.astype(float), following, ended.astype(float), gamma=0.95, lam=0.9)
                parts.append((states, actions, advantages, advantages + values[states]))
        states, actions, advantages, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
        old = np.log(softmax(logits)[states, actions])
        np.add.at(values, states, 0.05 * (targets - values[states]))
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(5):
            logits -= 20.0 * policy_loss(logits, states, actions, old, advantages)[1]
    return logits


def mean_return(logits: Floats, rng: np.random.Generator, *, episodes: int = 60) -> float:
    """Return the mean team return."""
    env = MeetOnLine()
    totals = [sum(step[2] for step in play(env, logits, rng, seed=10_000 + seed)["left"]) for seed in range(episodes)]
    return float(np.mean(totals))


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train, and compare with the random policy and the best possible return (1 minus a small cost per step)."""
    rng = np.random.default_rng(seed)
    untrained = mean_return(np.zeros((2 * LENGTH * LENGTH, ACTIONS)), rng)
    trained = mean_return(train(rng, updates=int(40 * scale) + 40), rng)
    return [
        at_least("team return (the best is about 0.9)", trained, 0.8),
        at_least("gain over the random policy", trained - untrained, 0.5),
    ]
