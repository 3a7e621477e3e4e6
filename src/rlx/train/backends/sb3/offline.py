"""Offline learners for `algo.name`: they train on a fixed dataset and never step the environment.

A step of such a run is one gradient update. Evaluation, checkpoints, resume and comparison are those of every run.
`Cloning` and `ConservativeQ` are for discrete actions, `Td3Cloning` is for continuous ones.

    algo:
      name: rlx.train.backends.sb3.offline:ConservativeQ
      total_timesteps: 5_000
      kwargs: {dataset: data/mixed.npz, conservatism: 1.0}
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN, TD3
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import RolloutReturn
from torch.nn import functional

from rlx.errors import ConfigError
from rlx.runs import project
from rlx.train.episode_dataset import EpisodeDataset, read

UPDATES = 25
"""Updates between two reports to the session."""


class OfflineMixin:
    """Fills the replay buffer with a dataset, and counts updates instead of environment steps."""

    num_timesteps: int
    replay_buffer: ReplayBuffer | None
    observation_space: Any
    action_space: Any

    def _fill(self, dataset: str) -> None:
        data = read(project.tree() / dataset)
        _refuse_other_spaces(self, data, dataset)
        assert self.replay_buffer is not None
        fill(self.replay_buffer, data)

    def collect_rollouts(self, env: Any, callback: Any, *_: Any, **__: Any) -> RolloutReturn:
        """Collect nothing: the data is there. The steps are the updates that follow."""
        callback.on_step()
        self.num_timesteps += UPDATES
        return RolloutReturn(UPDATES, 0, True)


def fill(buffer: ReplayBuffer, data: EpisodeDataset) -> None:
    """Copy a dataset into a replay buffer of its size."""
    before = data.before
    shape = buffer.observations.shape[1:]
    buffer.observations[:] = data.observations[before].reshape(-1, *shape)
    buffer.next_observations[:] = data.observations[before + 1].reshape(-1, *shape)
    buffer.actions[:] = data.actions.reshape(buffer.actions.shape)
    buffer.rewards[:] = data.rewards[:, None]
    buffer.dones[:] = (data.terminations | data.truncations)[:, None]
    buffer.timeouts[:] = (data.truncations & ~data.terminations)[:, None]  # the value goes on after a time limit
    buffer.full = True
    buffer.pos = 0


def _refuse_other_spaces(algorithm: Any, data: EpisodeDataset, name: str) -> None:
    for what, array, space in (
        ("observations", data.observations, algorithm.observation_space),
        ("actions", data.actions, algorithm.action_space),
    ):
        if array.shape[1:] != tuple(space.shape or ()):
            why = f"`{name}`: its {what} have the shape {array.shape[1:]}, the environment has {tuple(space.shape)}"
            raise ConfigError(why, hint="record the dataset in the environment of this config")


def _steps_in(dataset: str, buffer_size: int | None) -> int:
    """Return the size of the buffer. A policy that only predicts gets a size of 1 and needs no dataset."""
    if buffer_size is not None:
        return buffer_size
    return read(project.tree() / dataset).steps


class ConservativeQ(OfflineMixin, DQN):
    """CQL for discrete actions (Kumar et al. 2020): Q-learning that also lowers the values of unseen actions.

    The term is log Σ exp Q(s, ·) − Q(s, a) of the data. `conservatism: 0` is plain offline Q-learning.
    """

    def __init__(
        self, policy: Any, env: Any, *, dataset: str, learning_rate: Any = 3e-4, gamma: float = 0.99,
        buffer_size: int | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.conservatism = float(settings.pop("conservatism", 1.0))
        defaults = {"batch_size": 256, "target_update_interval": 200}
        super().__init__(
            policy, env, learning_rate, buffer_size=_steps_in(dataset, buffer_size), learning_starts=0, gamma=gamma,
            train_freq=1, gradient_steps=-1, **{**defaults, **settings},
        )  # fmt: skip
        if buffer_size is None:
            self._fill(dataset)

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Update the Q-network on minibatches of the dataset."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            losses.append(self._update(batch_size))
            self._n_updates += 1
            if self._n_updates % self.target_update_interval == 0:
                self.q_net_target.load_state_dict(self.q_net.state_dict())
        self.logger.record("train/n_updates", self._n_updates)
        self.logger.record("train/loss", float(np.mean(losses)))

    def _update(self, batch_size: int) -> float:
        assert self.replay_buffer is not None
        batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        with torch.no_grad():
            best = self.q_net_target(batch.next_observations).max(dim=1).values
            target = batch.rewards.flatten() + (1 - batch.dones.flatten()) * self.gamma * best
        values = self.q_net(batch.observations)
        chosen = values.gather(1, batch.actions.long()).flatten()
        loss = functional.smooth_l1_loss(chosen, target)
        loss = loss + self.conservatism * (values.logsumexp(dim=1) - chosen).mean()
        self._step(loss)
        return float(loss.detach())

    def _step(self, loss: torch.Tensor) -> None:
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()


class Cloning(ConservativeQ):
    """Behaviour cloning for discrete actions: the network's outputs are logits of the data's action."""

    def _update(self, batch_size: int) -> float:
        assert self.replay_buffer is not None
        batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        loss = functional.cross_entropy(self.q_net(batch.observations), batch.actions.long().flatten())
        self._step(loss)
        return float(loss.detach())


class Td3Cloning(OfflineMixin, TD3):
    """TD3+BC for continuous actions (Fujimoto and Gu 2021): the actor follows Q and stays near the data's actions.

    `greed` is α of the paper: 2.5 by default, and 0 is behaviour cloning.
    """

    def __init__(
        self, policy: Any, env: Any, *, dataset: str, learning_rate: Any = 3e-4, gamma: float = 0.99,
        buffer_size: int | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.greed = float(settings.pop("greed", 2.5))
        super().__init__(
            policy, env, learning_rate, buffer_size=_steps_in(dataset, buffer_size), learning_starts=0, gamma=gamma,
            train_freq=1, gradient_steps=-1, **{"batch_size": 256, **settings},
        )  # fmt: skip
        if buffer_size is None:
            self._fill(dataset)
            assert self.replay_buffer is not None  # SB3's networks act in [-1, 1]
            scaled = self.policy.scale_action(self.replay_buffer.actions[:, 0])
            self.replay_buffer.actions[:, 0] = scaled

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Update the critics at every step, the actor and the targets at every second one."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        critic_losses = []
        for _ in range(gradient_steps):
            assert self.replay_buffer is not None
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            critic_losses.append(self._update_critic(batch))
            self._n_updates += 1
            if self._n_updates % self.policy_delay == 0:
                self._update_actor(batch)
        self.logger.record("train/n_updates", self._n_updates)
        self.logger.record("train/critic_loss", float(np.mean(critic_losses)))

    def _update_critic(self, batch: Any) -> float:
        with torch.no_grad():
            noise = torch.randn_like(batch.actions) * self.target_policy_noise
            noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
            following = (self.actor_target(batch.next_observations) + noise).clamp(-1, 1)
            values = torch.cat(self.critic_target(batch.next_observations, following), dim=1)
            target = batch.rewards + (1 - batch.dones) * self.gamma * values.min(dim=1, keepdim=True).values
        losses = [functional.mse_loss(value, target) for value in self.critic(batch.observations, batch.actions)]
        loss = torch.stack(losses).sum()
        self.critic.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.critic.optimizer.step()
        return float(loss.detach())

    def _update_actor(self, batch: Any) -> None:
        actions = self.actor(batch.observations)
        values = self.critic.q1_forward(batch.observations, actions)
        weight = self.greed / values.abs().mean().detach().clamp(min=1e-6)
        loss = functional.mse_loss(actions, batch.actions) - weight * values.mean()
        self.actor.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.actor.optimizer.step()
        with torch.no_grad():
            for network, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for parameter, slow in zip(network.parameters(), target.parameters(), strict=True):
                    slow.mul_(1 - self.tau).add_(parameter, alpha=self.tau)
