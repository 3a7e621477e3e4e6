"""A policy for a team (`rlx.envs.team`): every agent acts on its own observation only, and all share one network.

With a central critic this is MAPPO, with local critics it is independent PPO with shared weights (Yu et al. 2022).

    policy: {type: "rlx.train.backends.sb3.team_policy:TeamPolicy", kwargs: {agents: 2, critic: central}}
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn

from rlx.errors import ConfigError


class TeamPolicy(ActorCriticPolicy):
    """An actor-critic whose actor sees one agent at a time. The agent's number is part of its input."""

    def __init__(
        self, observation_space: Any, action_space: Any, lr_schedule: Any, *, agents: int = 2,
        critic: Literal["central", "local"] = "central", net_arch: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if critic not in ("central", "local"):
            raise ConfigError(f"policy.kwargs.critic: `{critic}`", hint="use central or local")
        size = int(observation_space.shape[0])
        if size % agents:
            why = f"an observation of {size} numbers is not that of {agents} agents with equal spaces"
            raise ConfigError(why, hint="policy.kwargs.agents: the number of agents of the team")
        self.agents = agents
        self.has_central_critic = critic == "central"
        self.width = int((net_arch or [64])[-1])
        super().__init__(observation_space, action_space, lr_schedule, net_arch=net_arch, **kwargs)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _TeamExtractor(self)  # type: ignore[assignment]

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        assert isinstance(self.action_net, nn.Linear)
        head = nn.Linear(self.width, self.action_net.out_features // self.agents)
        nn.init.orthogonal_(head.weight, gain=0.01)
        nn.init.zeros_(head.bias)
        self.action_net = _PerAgent(head, self.agents)
        kwargs = self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **kwargs)  # type: ignore[call-arg]


class _PerAgent(nn.Module):
    """Applies one module to the part of every agent."""

    def __init__(self, module: nn.Module, agents: int) -> None:
        super().__init__()
        self.module = module
        self.agents = agents

    def forward(self, joined: Tensor) -> Tensor:
        parts = joined.view(len(joined), self.agents, -1)
        result: Tensor = self.module(parts).flatten(start_dim=1)
        return result


class _TeamExtractor(nn.Module):
    """The hidden layers: one network per agent's view, and a critic that sees all views or each one alone."""

    def __init__(self, policy: TeamPolicy) -> None:
        super().__init__()
        self.agents = policy.agents
        self.has_central_critic = policy.has_central_critic
        own = policy.features_dim // policy.agents + policy.agents
        sizes = [int(size) for size in policy.net_arch or [64]]
        self.actor = _layers(own, sizes, policy.activation_fn)
        inputs = own * policy.agents if policy.has_central_critic else own
        self.critic = _layers(inputs, sizes, policy.activation_fn)
        self.latent_dim_pi = sizes[-1] * policy.agents
        self.latent_dim_vf = sizes[-1]

    def views(self, features: Tensor) -> Tensor:
        """Return the agents' own observations, each with the agent's number as one-hot [batch, agent, number]."""
        parts = features.view(len(features), self.agents, -1)
        numbers = torch.eye(self.agents, device=features.device).expand(len(features), -1, -1)
        return torch.cat([parts, numbers], dim=2)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        hidden: Tensor = self.actor(self.views(features))
        return hidden.flatten(start_dim=1)

    def forward_critic(self, features: Tensor) -> Tensor:
        views = self.views(features)
        if self.has_central_critic:
            central: Tensor = self.critic(views.flatten(start_dim=1))
            return central
        local: Tensor = self.critic(views)
        return local.mean(dim=1)  # the value is linear in it: the mean of the agents' values


def _layers(inputs: int, sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in sizes:
        linear = nn.Linear(inputs, size)
        nn.init.orthogonal_(linear.weight, gain=2**0.5)
        nn.init.zeros_(linear.bias)
        layers += [linear, activation()]
        inputs = size
    return nn.Sequential(*layers)
