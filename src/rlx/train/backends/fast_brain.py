"""What seeds that are trained in one process share: the arrays of their networks, optimizers and rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.config.schema import Experiment, Ppo, Schedule
from rlx.evaluate import parity
from rlx.train.backends.fast_actions import actions_of
from rlx.train.backends.fast_adam import Adam
from rlx.train.backends.fast_network import Pass, Weights
from rlx.train.backends.fast_policy import shape_for
from rlx.train.backends.fast_rollout import Rollout
from rlx.train.backends.fast_update import Update
from rlx.train.fidelity import Fidelity

if TYPE_CHECKING:
    from rlx.train.backends.fast_learner import Learner
    from rlx.train.backends.fast_stage import Stage


Drop = Callable[["Learner", Exception], None]


class Brain:
    """The networks of S seeds, made for a stage like each of theirs; a seed's numbers do not depend on the others."""

    def __init__(self, experiment: Experiment, stage: Stage, *, root: Path, seeds: int = 1) -> None:
        assert isinstance(experiment.algo, Ppo)
        self.experiment, self.algo, self.root = experiment, experiment.algo, root
        self.actions = actions_of(stage.action_space, is_masked=stage.is_masked)
        self.weights = Weights(shape_for(experiment, stage.features, self.actions), seeds=seeds)
        self.adam = Adam(self.weights)
        self.rollout = Rollout(
            self.weights,
            self.actions,
            steps=self.algo.rollout_steps,
            num_envs=stage.num_envs,
            batch_size=self.algo.batch_size,
        )
        self.update = Update(self.weights, self.actions, self.algo)
        self._actor = Pass(self.weights, stage.num_envs, nets=slice(0, 1))

    @cached_property
    def fidelity(self) -> Fidelity:
        """How faithfully this kind of environment can be put back."""
        return Fidelity(self.experiment, root=self.root, takes_late=True)

    @cached_property
    def replay(self) -> dict[str, Any]:
        """What the environment shows to a few actions: by it a policy knows its environment again."""
        return parity.record(self.experiment.env, root=self.root)

    def collect(self, learners: Sequence[Learner], goes_on: Callable[[], bool], *, drop: Drop) -> bool:
        """Fill a rollout of these seeds; False where it was broken off. A seed whose environment fails is dropped."""
        rollout, actions = self.rollout, self.actions
        rollout.begin()
        noise, is_masked = self._noise(learners), learners[0].stage.is_masked
        for step in range(rollout.steps):
            closed = self._closed(learners, step) if is_masked else None
            self._actor.forward(rollout.inputs[:, step])
            chosen = actions.choose(self._actor.head, self.weights, noise[step], closed)
            rollout.choices.append(chosen)
            for learner in learners:
                try:
                    learner.act(step, chosen)
                except Exception as error:  # noqa: BLE001  job supervision: what one seed raises is its own outcome
                    drop(learner, error)
                    learners = [one for one in learners if one is not learner]
            if not learners or not goes_on():
                return False
        return True

    def learn(self, learners: Sequence[Learner]) -> None:
        """Update the weights of these seeds from the rollout; one that is nothing but late resets teaches nothing."""
        if self.rollout.idle.all():
            return
        algo, step = self.algo, learners[0].step
        remaining = max(0.0, 1.0 - step / algo.total_timesteps)
        learning_rate, clip_range = (_at(rate, remaining) for rate in (algo.learning_rate, algo.clip_range))
        samples = self.rollout.samples(gamma=algo.gamma, gae_lambda=algo.gae_lambda)
        losses = self.update.run(
            samples,
            self.adam,
            {learner.place: learner.generator for learner in learners},
            learning_rate=learning_rate,
            clip_range=clip_range,
        )
        rates = {"train/learning_rate": learning_rate, "train/clip_range": clip_range}
        for learner in learners:
            learner.take_note(losses[learner.place], samples, rates)

    def _noise(self, learners: Sequence[Learner]) -> Any:
        """Draw every seed's noise for a whole rollout from its own generator: (steps, seeds, outputs, environments)."""
        one = (self.rollout.steps, 1, *self._actor.head.shape[1:])
        drawn = {each.place: self.actions.noise(each.generator, one, self.weights.dtype) for each in learners}
        if len(self.weights.flat) == 1:
            return drawn[0]
        silent = np.zeros(one, dtype=self.weights.dtype)
        return np.concatenate([drawn.get(place, silent) for place in range(len(self.weights.flat))], axis=1)

    def _closed(self, learners: Sequence[Learner], step: int) -> Any:
        rollout = self.rollout
        if rollout.closed is None:
            shape = (len(self.weights.flat), rollout.steps, rollout.num_envs, self.actions.outputs)
            rollout.closed = np.zeros(shape, dtype=np.bool_)
        for learner in learners:
            rollout.closed[learner.place, step] = learner.stage.closed()
        return rollout.closed[:, step].transpose(0, 2, 1)


def _at(rate: float | Schedule, remaining: float) -> float:
    return rate.at(remaining) if isinstance(rate, Schedule) else rate
