"""Recurrent PPO with burn-in on a memory task: an early cue decides the right action in the last step.

Sequences are replayed from a stored hidden state. The first `BURN_IN` steps only refresh that state, without gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most

LENGTH = 6
BURN_IN = 2
EPISODES = 64


class MemoryPolicy(nn.Module):
    """A GRU with a policy and a value head; without memory, the hidden state is cleared in every step."""

    def __init__(self, *, has_memory: bool) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 24)
        self.policy = nn.Linear(24, 2)
        self.value = nn.Linear(24, 1)
        self.has_memory = has_memory

    def forward(self, observation: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self.has_memory:
            hidden = torch.zeros_like(hidden)
        hidden = self.cell(observation, hidden)
        return self.policy(hidden), self.value(hidden).squeeze(1), hidden


def observe(step: int, cues: Tensor) -> Tensor:
    """Return the cue in the step after the burn-in, a flag in the last step, and nothing else."""
    shown = cues * float(step == BURN_IN)
    is_last = torch.full_like(cues, float(step == LENGTH - 1))
    return torch.stack([shown, is_last, torch.ones_like(cues)], dim=1)


def rollout(policy: MemoryPolicy, *, is_greedy: bool = False) -> dict[str, Tensor]:
    """Play a batch of episodes; the reward of 1 comes in the last step, if the action is the cue."""
    cues = torch.randint(0, 2, (EPISODES,)).float() * 2 - 1
    hidden = torch.zeros(EPISODES, 24)
    rows: dict[str, list[Tensor]] = {"observations": [], "hidden": [], "actions": [], "log_probs": [], "values": []}
    with torch.no_grad():
        for step in range(LENGTH):
            observation = observe(step, cues)
            rows["observations"].append(observation)
            rows["hidden"].append(hidden)
            logits, value, hidden = policy(observation, hidden)
            actions = logits.argmax(dim=1)
            if not is_greedy:
                actions = torch.multinomial(logits.softmax(dim=1), 1).squeeze(1)
            rows["actions"].append(actions)
            rows["log_probs"].append(logits.log_softmax(dim=1).gather(1, actions[:, None]).squeeze(1))
            rows["values"].append(value)
    stacked = {name: torch.stack(values) for name, values in rows.items()}
    stacked["rewards"] = (stacked["actions"][-1].float() * 2 - 1 == cues).float()
    return stacked


def update(policy: MemoryPolicy, optimizer: torch.optim.Optimizer, data: dict[str, Tensor]) -> None:
    """Take PPO steps on whole sequences: burn in without gradient, then unroll with it."""
    advantages = data["rewards"][None, :] - data["values"]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(4):
        hidden = data["hidden"][0]
        with torch.no_grad():  # the stored state is from older weights: refresh it
            for step in range(BURN_IN):
                hidden = policy(data["observations"][step], hidden)[2]
        losses = []
        for step in range(BURN_IN, LENGTH):
            logits, value, hidden = policy(data["observations"][step], hidden)
            log_prob = logits.log_softmax(dim=1).gather(1, data["actions"][step][:, None]).squeeze(1)
            ratio = (log_prob - data["log_probs"][step]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            surrogate = torch.minimum(ratio * advantages[step], clipped * advantages[step])
            entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1)
            losses.append((-surrogate + 0.5 * (value - data["rewards"]).pow(2) - 0.01 * entropy).mean())
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()


def train(*, has_memory: bool, updates: int) -> float:
    """Return the mean return of the greedy policy after training."""
    policy = MemoryPolicy(has_memory=has_memory)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(updates):
        update(policy, optimizer, rollout(policy))
    return float(torch.stack([rollout(policy, is_greedy=True)["rewards"].mean() for _ in range(5)]).mean())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train with and without memory."""
    torch.manual_seed(seed)
    updates = int(60 * scale) + 60
    return [
        at_least("return with memory", train(has_memory=True, updates=updates), 0.9),
        at_most("return without memory (chance is 0.5)", train(has_memory=False, updates=updates), 0.65),
    ]
