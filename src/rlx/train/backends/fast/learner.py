"""One seed's training with the fast backend: starts it, restores it, logs it and saves it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from rlx.envs import snapshot, spaces
from rlx.envs.global_rng import GlobalGenerators
from rlx.errors import CheckpointInvalid
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint
from rlx.train import finite_checks, rollout_metrics
from rlx.train.backends.fast.env_runner import EnvRunner, seeds_for
from rlx.train.backends.fast.numpy_policy import FastPolicy
from rlx.train.backends.fast.ppo_update import UpdateStats, explained_variance
from rlx.train.backends.fast.rollout_buffer import Samples
from rlx.train.backends.fast.stacked_agent import StackedAgent
from rlx.train.rollout_metrics import EnvShare

BACKEND = "fast"


class FastLearner:
    """One of the seeds that share an agent; `index` is its place in the agent's arrays."""

    def __init__(self, agent: StackedAgent, runner: EnvRunner, *, seed: int, index: int = 0) -> None:
        self.agent = agent
        self.runner = runner
        self.seed = seed
        self.index = index
        self.algo = agent.algo
        self.attempt = 0
        self.updates = 0
        self.fidelity = copy(agent.fidelity)
        self.generator = np.random.default_rng(seed)
        self.policy = FastPolicy(agent.weights.of_seed(index), agent.distribution, runner.features, runner.scale)
        self._update_row: dict[str, float] = {}
        self._env_share = EnvShare(runner.clock)

    @property
    def step(self) -> int:
        return self.runner.steps

    @property
    def is_complete(self) -> bool:
        return self.step >= self.algo.total_timesteps

    def begin(self) -> None:
        """Start from the beginning: new weights, new episodes."""
        GlobalGenerators.seed(self.seed)
        self.agent.weights.of_seed(self.index).initialise([self.generator])
        self._reset_environments()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint. Environments whose state it could not store are reset."""
        if (checkpoint.backend, checkpoint.algorithm) != (BACKEND, self.algo.name):
            origin = f"{checkpoint.backend}'s `{checkpoint.algorithm}`"
            raise CheckpointInvalid(
                f"checkpoint {checkpoint.path} is of {origin}, not of {BACKEND}'s `{self.algo.name}`",
                hint="resume with the config it was trained with",
            )
        state = checkpoint.state
        where = str(checkpoint.path)
        self.attempt = state["attempt"] + 1
        self.updates = state["updates"]
        self.agent.weights.load(checkpoint.policy, where=where, seed=self.index)
        for name, moments in self._moments().items():
            prefix = f"{name}/"
            arrays = {
                key.removeprefix(prefix): array for key, array in checkpoint.optimizer.items() if key.startswith(prefix)
            }
            moments.load(arrays, where=where, seed=self.index)
        self.agent.adam.steps[self.index] = state["optimizer_steps"]
        self.runner.restore(state["account"])
        if self.runner.normalizer:
            self.runner.normalizer.restore(state["normalizer"])
        if state["env"] is None:
            self._reset_environments()
        else:
            snapshot.restore(self.runner.env, state["env"])
            self.agent.rollout.inputs[self.index, -1] = state["inputs"]
        self.generator.bit_generator.state = state["generator"]
        GlobalGenerators.read(state["random"]).put_back()

    def step_env(self, step: int, actions: Any) -> None:
        """Step the environments with this seed's actions, and store the results in the rollout."""
        rollout = self.agent.rollout
        index = self.index
        rollout.idle[index, step] = self.runner.idle
        rewards, dones, truncations = self.runner.step(
            self.agent.distribution.to_env(actions[index]), rollout.inputs[index, step + 1, :, :-1]
        )
        rollout.rewards[index, step] = rewards
        rollout.raw_rewards[index, step] = self.runner.raw_rewards
        rollout.dones[index, step] = dones
        for env, features in truncations:
            rollout.truncated.append((index, step, env, features))

    def log_update(self, stats: UpdateStats, samples: Samples, settings: Mapping[str, float]) -> None:
        """Keep the metrics of the update that has just been made."""
        self.updates += stats.epochs
        self._update_row = {
            **{f"train/{name}": value for name, value in stats.means().items()},
            "train/loss": self.agent.update.loss(stats.minibatches[-1]),
            "train/explained_variance": explained_variance(samples, self.index),
            **rollout_metrics.critic(samples.values[self.index], samples.returns[self.index]),
            **rollout_metrics.joint_norm([stats.gradient_norms]),
            **settings,
            "train/updates": float(self.updates),
        }
        if self.algo.clip_range_value is not None:
            self._update_row["train/clip_range_vf"] = self.algo.clip_range_value
        if self.agent.distribution.has_log_std:
            self._update_row["train/std"] = float(np.exp(self.agent.weights.log_std[self.index]).mean())

    def metrics(self) -> dict[str, float]:
        """Return the row of the last update, and of the rollout before it."""
        return {
            **self.runner.episodes.metrics(),
            **self._update_row,
            **self._rollout_row(),
            **self.runner.terms.read(self.step),
            **self._env_share.read(),
        }

    def _rollout_row(self) -> dict[str, float]:
        """Return metrics of the last rollout's observations, rewards and actions, without its idle steps."""
        rollout = self.agent.rollout
        is_real = ~rollout.idle[self.index].reshape(-1)
        rows = len(is_real)
        inputs = rollout.inputs[self.index, :-1].reshape(rows, -1)[is_real, :-1]
        rewards = rollout.raw_rewards[self.index].reshape(-1)[is_real]
        actions = np.stack([step[self.index].T for step in rollout.actions]).reshape(rows, -1)[is_real]
        row = rollout_metrics.observations(*self.runner.features.split(inputs)) | rollout_metrics.rewards(rewards)
        space: Any = self.runner.action_space
        sizes = spaces.choice_sizes(space, with_bits=True)
        if not sizes:
            return row | rollout_metrics.box_actions(actions, space.low.reshape(-1), space.high.reshape(-1))
        masks = None
        if rollout.action_masks is not None:
            masks = rollout.action_masks[self.index].reshape(rows, -1)
        row |= rollout_metrics.choices(actions, sizes)
        return row | rollout_metrics.entropy_share(self._update_row["train/entropy"], sizes, masks)

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes, for the live display."""
        return self.runner.episodes.metrics().get("rollout/return_mean")

    def check_health(self) -> None:
        """Raise `Diverged` if the last update left a loss or a weight that is not finite."""
        finite_checks.check_losses(self._update_row, step=self.step)
        if not np.isfinite(self.agent.weights.flat[self.index]).all():
            for name, view in self.agent.weights.named(self.index):
                bad = view[~np.isfinite(view)]
                if bad.size:
                    raise finite_checks.Diverged(f"parameter `{name}`", float(bad[0]), self.step)

    def mark(self) -> dict[str, Any]:
        """Return a copy of everything that a rollout changes; it does not change the weights."""
        normalizer = self.runner.normalizer
        return {
            "attempt": self.attempt,
            "updates": self.updates,
            "random": GlobalGenerators.now().document(),
            "generator": self.generator.bit_generator.state,
            "account": self.runner.document(),
            "inputs": self.agent.rollout.inputs[self.index, -1].copy(),
            "normalizer": normalizer.document() if normalizer else None,
            "env": self.fidelity.capture(self.runner.env),
        }

    def bundle(self, mark: dict[str, Any]) -> Bundle:
        """Return the checkpoint of the moment when `mark` was taken; the weights must not have changed since."""
        optimizer = {
            f"{key}/{name}": array
            for key, moments in self._moments().items()
            for name, array in moments.arrays(self.index).items()
        }
        return Bundle(
            step=mark["account"]["steps"],
            backend=BACKEND,
            algorithm=self.algo.name,
            resume=self.fidelity.label,
            missing=self.fidelity.missing,
            policy=self.agent.weights.arrays(self.index),
            optimizer=optimizer,
            state={**mark, "optimizer_steps": self.agent.adam.steps[self.index]},
            replay={},
            spaces={
                "observation": spaces.describe(self.runner.observation_space),
                "action": spaces.describe(self.runner.action_space),
            },
            parity=self._parity(),
        )

    def _moments(self) -> dict[str, Any]:
        """Return Adam's moments by the names that they have in torch."""
        return {"exp_avg": self.agent.adam.first, "exp_avg_sq": self.agent.adam.second}

    def _parity(self) -> dict[str, Any]:
        """Return the environment's recording with the inputs and greedy actions that training computes for it."""
        replay = self.agent.replay
        if not replay:
            return {}
        observations = replay["observations"]
        parity = {**replay, "greedy": self.policy.predict(observations)}
        if self.runner.normalizer:
            parity["inputs"] = self.policy.inputs(observations)
        return parity

    def _reset_environments(self) -> None:
        seeds = seeds_for(self.seed, self.runner.num_envs, self.attempt)
        self.runner.reset(seeds, self.agent.rollout.inputs[self.index, -1, :, :-1])
