"""Small worlds for recipes: a tabular MDP with exact values, a grid, and CartPole with a linear expert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


@dataclass(frozen=True)
class TabularMdp:
    """Transitions [state, action, next state], rewards [state, action], starts, and states that end an episode."""

    transitions: Floats
    rewards: Floats
    starts: Floats
    ends: NDArray[np.bool_]
    gamma: float

    @property
    def states(self) -> int:
        return len(self.starts)

    @property
    def actions(self) -> int:
        return self.rewards.shape[1]


def grid(width: int = 6, *, slip: float = 0.1, cost: float = -1.0, gamma: float = 0.95) -> TabularMdp:
    """Return a square grid: from the first cell to the last one, each step costs, and a step may slip."""
    count = width * width
    transitions = np.zeros((count, 4, count))
    for state in range(count):
        for action in range(4):
            for move in range(4):
                chance = slip / 4 + (1 - slip) * (move == action)
                transitions[state, action, _moved(state, move, width)] += chance
    rewards = np.full((count, 4), cost)
    ends = np.zeros(count, dtype=bool)
    ends[-1] = True
    rewards[-1] = 0.0
    transitions[-1] = 0.0
    transitions[-1, :, -1] = 1.0
    starts = np.zeros(count)
    starts[0] = 1.0
    return TabularMdp(transitions, rewards, starts, ends, gamma)


def _moved(state: int, move: int, width: int) -> int:
    row = state // width + MOVES[move][0]
    column = state % width + MOVES[move][1]
    if 0 <= row < width and 0 <= column < width:
        return row * width + column
    return state


def best_values(mdp: TabularMdp, *, sweeps: int = 500) -> Floats:
    """Return the optimal action values by value iteration."""
    values = np.zeros((mdp.states, mdp.actions))
    for _ in range(sweeps):
        values = mdp.rewards + mdp.gamma * mdp.transitions @ values.max(axis=1)
    return values


def greedy(values: Floats) -> Floats:
    """Return the greedy policy as probabilities [state, action]."""
    policy = np.zeros_like(values)
    policy[np.arange(len(values)), values.argmax(axis=1)] = 1.0
    return policy


def exact_return(mdp: TabularMdp, policy: Floats, *, horizon: int = 200) -> float:
    """Return the undiscounted expected return of a policy within a horizon, without sampling."""
    occupancy = mdp.starts.copy()
    total = 0.0
    for _ in range(horizon):
        pairs = occupancy[:, None] * policy
        total += float((pairs * mdp.rewards).sum())
        occupancy = np.einsum("sa,san->n", pairs, mdp.transitions)
    return total


@dataclass(frozen=True)
class Transition:
    """One step of a tabular episode."""

    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool


def sample_episode(mdp: TabularMdp, policy: Floats, rng: np.random.Generator, *, horizon: int = 60) -> list[Transition]:
    """Sample one episode."""
    state = int(rng.choice(mdp.states, p=mdp.starts))
    episode = []
    for _ in range(horizon):
        action = int(rng.choice(mdp.actions, p=policy[state]))
        after = int(rng.choice(mdp.states, p=mdp.transitions[state, action]))
        episode.append(Transition(state, action, float(mdp.rewards[state, action]), after, bool(mdp.ends[after])))
        state = after
        if mdp.ends[state]:
            break
    return episode


def softmax(logits: Floats) -> Floats:
    """Return probabilities over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
    return probabilities


EXPERT = np.array([0.3, 0.6, 4.0, 1.2])
"""A linear CartPole policy that balances for the whole episode: push right if the weighted sum is positive."""


def cartpole_expert(observation: Any) -> int:
    """Return the expert's action."""
    return int(observation @ EXPERT > 0)


def cartpole_returns(
    policy: Callable[[Any], int], *, episodes: int, first_seed: int = 1000, **parameters: float
) -> Floats:
    """Return the returns of a policy in CartPole; parameters are attributes of the environment, such as `gravity`."""
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    for name, value in parameters.items():
        setattr(env.unwrapped, name, value)
    returns = []
    for seed in range(first_seed, first_seed + episodes):
        observation, _ = env.reset(seed=seed)
        total = 0.0
        is_done = False
        while not is_done:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total += float(reward)
            is_done = terminated or truncated
        returns.append(total)
    env.close()
    return np.array(returns)
