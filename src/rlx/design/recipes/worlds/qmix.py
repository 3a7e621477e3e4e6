"""QMIX on the two-step game of its paper: the first agent chooses between a safe game (7) and a risky one (8 at best).

Q_total mixes the agents' values with weights that a hypernetwork keeps non-negative. So the joint greedy action is the
agents' own greedy action. Independent learners average over each other and stay at 7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most

RISKY = torch.tensor([[0.0, 1.0], [1.0, 8.0]])
STATES = 3
"""The first choice, the safe game and the risky game."""
GAMMA = 0.99


class MonotoneMixer(nn.Module):
    """Mixes two values, with weights from the state that are never negative."""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.hidden = hidden
        self.first = nn.Linear(STATES, 2 * hidden)
        self.first_bias = nn.Linear(STATES, hidden)
        self.second = nn.Linear(STATES, hidden)
        self.second_bias = nn.Sequential(nn.Linear(STATES, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, values: Tensor, states: Tensor) -> Tensor:
        first = self.first(states).abs().view(-1, 2, self.hidden)
        inner = nn.functional.elu((values[:, None, :] @ first).squeeze(1) + self.first_bias(states))
        mixed: Tensor = (inner * self.second(states).abs()).sum(dim=1) + self.second_bias(states).squeeze(1)
        return mixed


class TwoStepGame:
    """The game as a parallel environment of PettingZoo: both agents see the state and share the reward."""

    metadata: dict[str, Any] = {"name": "two_step_v0", "render_modes": []}  # noqa: RUF012  PettingZoo's API
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["one", "two"]
        self.agents: list[str] = []
        self.observation_spaces = {name: spaces.Box(0.0, 1.0, (STATES,), np.float32) for name in self.possible_agents}
        self.action_spaces = {name: spaces.Discrete(2) for name in self.possible_agents}
        self.state = 0

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents = list(self.possible_agents)
        self.state = 0
        return self._seen(), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        names = list(self.agents)
        reward = 0.0
        is_over = self.state > 0
        if self.state == 1:
            reward = 7.0
        elif self.state == 2:
            reward = float(RISKY[int(actions["one"]), int(actions["two"])])
        else:
            self.state = int(actions["one"]) + 1
        answer: tuple[dict[str, Any], ...] = (
            self._seen(),
            dict.fromkeys(names, reward),
            dict.fromkeys(names, is_over),
            dict.fromkeys(names, False),
            {name: {} for name in names},
        )
        if is_over:
            self.agents = []
        return answer

    def _seen(self) -> dict[str, Any]:
        return {name: np.eye(STATES, dtype=np.float32)[self.state] for name in self.agents}

    def close(self) -> None:
        """Nothing to close."""


def explore(episodes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Play at random, and return states, joint actions, rewards and next states (−1 ends)."""
    game = TwoStepGame()
    rows = []
    for _ in range(episodes):
        observations, _ = game.reset()
        while game.agents:
            state = int(observations["one"].argmax())
            actions = torch.randint(0, 2, (2,))
            observations, rewards, ended, _, _ = game.step({"one": int(actions[0]), "two": int(actions[1])})
            after = -1 if ended["one"] else int(observations["one"].argmax())
            rows.append((state, actions, rewards["one"], after))
    states, joint, paid, following = zip(*rows, strict=True)
    return torch.tensor(states), torch.stack(joint), torch.tensor(paid), torch.tensor(following)


def train(*, is_mixed: bool, steps: int) -> Tensor:
    """Return the agents' values [state, agent, action] after training on batches of random play."""
    data = explore(500)
    agents = nn.Parameter(torch.zeros(STATES, 2, 2))
    mixer = MonotoneMixer()
    optimizer = torch.optim.Adam([agents, *mixer.parameters()], lr=1e-2)
    one_hot = torch.eye(STATES)
    for _ in range(steps):
        batch = torch.randint(0, len(data[0]), (64,))
        states, actions, rewards, following = (column[batch] for column in data)
        chosen = agents[states].gather(2, actions[:, :, None]).squeeze(2)
        with torch.no_grad():
            after = following.clamp(min=0)
            best = agents[after].max(dim=2).values
            is_open = (following >= 0).float()
        if is_mixed:
            with torch.no_grad():
                target = rewards + GAMMA * is_open * mixer(best, one_hot[after])
            loss = (mixer(chosen, one_hot[states]) - target).pow(2).mean()
        else:
            target = rewards[:, None] + GAMMA * is_open[:, None] * best
            loss = (chosen - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return agents.detach()


def greedy_return(values: Tensor) -> float:
    """Return what the agents' own greedy actions earn."""
    game = int(values[0, 0].argmax()) + 1
    if game == 1:
        return 7.0
    return float(RISKY[int(values[2, 0].argmax()), int(values[2, 1].argmax())])


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train QMIX and independent learners on the same exploration."""
    torch.manual_seed(seed)
    steps = int(1500 * scale) + 1500
    mixed = greedy_return(train(is_mixed=True, steps=steps))
    independent = greedy_return(train(is_mixed=False, steps=steps))
    return [at_least("return of QMIX", mixed, 8.0), at_most("return of independent learners", independent, 7.0)]
