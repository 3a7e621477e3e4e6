"""PPO in the style of CleanRL's single files: one torch agent, a loop over a vector environment, TensorBoard scalars.

    python cleanrl_style.py SPEC.json FOLDER

Written for this benchmark after the published description (Huang et al. 2022, JMLR 23(274)); no line is copied. Like
the original, it neither evaluates nor saves checkpoints. Episodes end within the step, so that no transition is a
dummy.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Categorical, Normal
from torch.utils.tensorboard import SummaryWriter


class Agent(nn.Module):
    """Separate actor and critic of two 64-unit tanh layers."""

    def __init__(self, observations: int, space: Any) -> None:
        super().__init__()
        self.is_discrete = isinstance(space, gym.spaces.Discrete)
        outputs = int(space.n) if self.is_discrete else int(np.prod(space.shape))
        self.critic = _network(observations, 1, gain=1.0)
        self.actor = _network(observations, outputs, gain=0.01)
        self.log_std = nn.Parameter(torch.zeros(1, outputs))

    def act(self, observation: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Return action, its log-probability, the entropy and the value."""
        output = self.actor(observation)
        spread = self.log_std.expand_as(output).exp()
        distribution: Any = Categorical(logits=output) if self.is_discrete else Normal(output, spread)
        action = distribution.sample() if action is None else action
        log_probability, entropy = distribution.log_prob(action), distribution.entropy()
        if not self.is_discrete:
            log_probability, entropy = log_probability.sum(1), entropy.sum(1)
        return action, log_probability, entropy, self.critic(observation).flatten()


def _network(inputs: int, outputs: int, *, gain: float) -> nn.Sequential:
    sizes = [(inputs, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]
    layers: list[nn.Module] = []
    for size_in, size_out, scale in sizes:
        linear = nn.Linear(size_in, size_out)
        nn.init.orthogonal_(linear.weight, scale)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def _make(spec: dict[str, Any]) -> Any:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(spec["env"]["id"]))
    if not isinstance(env.action_space, gym.spaces.Discrete):
        env = gym.wrappers.ClipAction(gym.wrappers.FlattenObservation(env))
    if spec["env"].get("normalize"):
        env = gym.wrappers.NormalizeObservation(env)
        env = gym.wrappers.TransformObservation(env, lambda seen: np.clip(seen, -10, 10), env.observation_space)
        env = gym.wrappers.NormalizeReward(env, gamma=spec["algo"]["gamma"])
    return env


def main(spec_file: str, folder: str) -> None:
    spec = json.loads(Path(spec_file).read_text())
    algo, count, seed = spec["algo"], spec["env"]["num_envs"], spec["seed"]
    length, gamma, lam = algo["rollout_steps"], algo["gamma"], algo["gae_lambda"]
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)
    writer = SummaryWriter(folder)
    envs: Any = SyncVectorEnv([lambda: _make(spec)] * count, autoreset_mode=AutoresetMode.SAME_STEP)
    width = int(np.prod(envs.single_observation_space.shape))
    agent = Agent(width, envs.single_action_space)
    optimizer = torch.optim.Adam(agent.parameters(), lr=algo["learning_rate"], eps=1e-5)

    action_shape = envs.single_action_space.shape
    observations = torch.zeros((length, count, width))
    actions = torch.zeros((length, count, *action_shape))
    log_probabilities, rewards, ends, values = (torch.zeros((length, count)) for _ in range(4))
    step = 0
    observation = torch.as_tensor(envs.reset(seed=seed)[0], dtype=torch.float32)
    ended = torch.zeros(count)
    while step < algo["total_timesteps"]:
        for tick in range(length):
            step += count
            observations[tick], ends[tick] = observation, ended
            with torch.no_grad():
                action, log_probability, _, value = agent.act(observation)
            actions[tick], log_probabilities[tick], values[tick] = action, log_probability, value
            seen, reward, terminated, truncated, info = envs.step(action.numpy())
            observation = torch.as_tensor(seen, dtype=torch.float32)
            rewards[tick] = torch.as_tensor(reward, dtype=torch.float32)
            ended = torch.as_tensor(terminated | truncated, dtype=torch.float32)
            for episode_return in info.get("final_info", {}).get("episode", {}).get("r", ()):
                writer.add_scalar("charts/episodic_return", episode_return, step)
        advantages = torch.zeros_like(rewards)
        with torch.no_grad():
            following, alive, running = agent.critic(observation).flatten(), 1 - ended, torch.zeros(count)
        for tick in reversed(range(length)):
            delta = rewards[tick] + gamma * following * alive - values[tick]
            running = delta + gamma * lam * alive * running
            advantages[tick], following, alive = running, values[tick], 1 - ends[tick]
        returns = (advantages + values).flatten()
        flat = [observations.reshape(-1, width), actions.reshape(-1, *action_shape), log_probabilities.flatten()]
        scalars = _update(agent, optimizer, algo, [*flat, advantages.flatten(), returns])
        for name, scalar in scalars.items():
            writer.add_scalar(f"losses/{name}", scalar, step)
    writer.close()


def _update(agent: Agent, optimizer: Any, algo: dict[str, Any], batch: list[torch.Tensor]) -> dict[str, float]:
    scalars: dict[str, float] = {}
    for _ in range(algo["update_epochs"]):
        for chosen in torch.randperm(len(batch[0])).split(algo["batch_size"]):
            observations, actions, before, advantages, returns = (part[chosen] for part in batch)
            _, log_probabilities, entropy, values = agent.act(observations, actions)
            ratio = (log_probabilities - before).exp()
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            policy_loss = -torch.min(advantages * ratio, advantages * ratio.clamp(0.8, 1.2)).mean()
            value_loss = 0.5 * ((values - returns) ** 2).mean()
            optimizer.zero_grad()
            (policy_loss + 0.5 * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    scalars |= {"policy": policy_loss.item(), "value": value_loss.item(), "entropy": entropy.mean().item()}
    return scalars


if __name__ == "__main__":
    main(*sys.argv[1:])
