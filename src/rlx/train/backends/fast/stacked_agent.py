"""The agent of S seeds that are trained in one process: their networks, optimizers and rollouts in shared arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.config.schema import Experiment, Ppo, Schedule
from rlx.evaluate import parity
from rlx.train.backends.fast.action_distributions import distribution_for
from rlx.train.backends.fast.adam import Adam
from rlx.train.backends.fast.network import NetworkPass, Weights
from rlx.train.backends.fast.numpy_policy import shape_for
from rlx.train.backends.fast.ppo_update import PpoUpdate
from rlx.train.backends.fast.rollout_buffer import RolloutBuffer
from rlx.train.resume_fidelity import Fidelity

if TYPE_CHECKING:
    from rlx.train.backends.fast.env_runner import EnvRunner
    from rlx.train.backends.fast.learner import FastLearner


class StackedAgent:
    """The networks of S seeds. A seed's numbers do not depend on the other seeds."""

    def __init__(self, experiment: Experiment, runner: EnvRunner, *, root: Path, seeds: int = 1) -> None:
        assert isinstance(experiment.algo, Ppo)
        self.experiment = experiment
        self.algo = experiment.algo
        self.root = root
        self.distribution = distribution_for(runner.action_space, has_masks=runner.has_masks)
        self.weights = Weights(shape_for(experiment, runner.features, self.distribution), seeds=seeds)
        self.adam = Adam(self.weights)
        self.rollout = RolloutBuffer(
            self.weights,
            self.distribution,
            steps=self.algo.rollout_steps,
            num_envs=runner.num_envs,
            batch_size=self.algo.batch_size,
        )
        self.update = PpoUpdate(self.weights, self.distribution, self.algo)
        self._actor = NetworkPass(self.weights, runner.num_envs, nets=slice(0, 1))

    @cached_property
    def fidelity(self) -> Fidelity:
        """How exactly this kind of environment can be restored."""
        return Fidelity(self.experiment, root=self.root, takes_late=True)

    @cached_property
    def replay(self) -> dict[str, Any]:
        """A short recording of the environment, which later shows that a policy gets the same observations."""
        return parity.record_replay(self.experiment.env, root=self.root)

    def sample_noise(self, learners: Sequence[FastLearner]) -> Any:
        """Draw noise for a whole rollout, (steps, seeds, outputs, environments), from each seed's own generator."""
        shape = (self.rollout.steps, 1, *self._actor.actor_out.shape[1:])
        noise = [np.zeros(shape, dtype=self.weights.dtype)] * len(self.weights.flat)
        for learner in learners:
            noise[learner.index] = self.distribution.noise(learner.generator, shape, self.weights.dtype)
        return noise[0] if len(noise) == 1 else np.concatenate(noise, axis=1)

    def act(self, step: int, noise: Any, learners: Sequence[FastLearner]) -> Any:
        """Sample and store the actions of all seeds at a step of the rollout, (seeds, parts, environments)."""
        masks = None
        if learners[0].runner.has_masks:
            masks = self._action_masks(step, learners)
        self._actor.forward(self.rollout.inputs[:, step])
        actions = self.distribution.sample(self._actor.actor_out, self.weights.log_std, noise[step], masks)
        self.rollout.actions.append(actions)
        return actions

    def learn(self, learners: Sequence[FastLearner]) -> None:
        """Update the weights of these seeds from the rollout, unless all of its steps were idle."""
        if self.rollout.idle.all():
            return
        algo = self.algo
        remaining = max(0.0, 1.0 - learners[0].step / algo.total_timesteps)
        learning_rate = _value_at(algo.learning_rate, remaining)
        clip_range = _value_at(algo.clip_range, remaining)
        samples = self.rollout.samples(gamma=algo.gamma, gae_lambda=algo.gae_lambda)
        generators = {learner.index: learner.generator for learner in learners}
        stats = self.update.run(samples, self.adam, generators, learning_rate=learning_rate, clip_range=clip_range)
        settings = {"train/learning_rate": learning_rate, "train/clip_range": clip_range}
        for learner in learners:
            learner.log_update(stats[learner.index], samples, settings)

    def _action_masks(self, step: int, learners: Sequence[FastLearner]) -> Any:
        rollout = self.rollout
        if rollout.action_masks is None:
            shape = (len(self.weights.flat), rollout.steps, rollout.num_envs, self.distribution.num_outputs)
            rollout.action_masks = np.ones(shape, dtype=np.bool_)
        for learner in learners:
            rollout.action_masks[learner.index, step] = learner.runner.action_masks()
        return rollout.action_masks[:, step].transpose(0, 2, 1)


def _value_at(setting: float | Schedule, remaining: float) -> float:
    return setting.at(remaining) if isinstance(setting, Schedule) else setting
