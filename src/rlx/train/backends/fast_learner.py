"""One seed's training as an object: environments, network, optimizer; begun, restored, stepped, snapshotted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rlx.config.schema import Experiment, Ppo, Schedule
from rlx.envs import spaces
from rlx.envs import state as env_state
from rlx.envs.generators import GlobalGenerators
from rlx.errors import CheckpointInvalid
from rlx.evaluate import parity
from rlx.runs.checkpoint import Bundle, Checkpoint
from rlx.train import health
from rlx.train.backends.fast_actions import actions_of
from rlx.train.backends.fast_adam import Adam
from rlx.train.backends.fast_features import Features
from rlx.train.backends.fast_network import Pass, Weights
from rlx.train.backends.fast_policy import FastPolicy, shape_for
from rlx.train.backends.fast_rollout import Rollout
from rlx.train.backends.fast_stage import Stage, seeds_for
from rlx.train.backends.fast_update import Update, explained_variance
from rlx.train.fidelity import Fidelity

BACKEND = "fast"


class Learner:
    """What training consists of between two boundaries, and how it is saved and put back."""

    def __init__(self, experiment: Experiment, *, root: Path, seed: int) -> None:
        assert isinstance(experiment.algo, Ppo)
        self.experiment, self.algo, self.seed = experiment, experiment.algo, seed
        self._root = root
        self.attempt = self.updates = 0
        self.fidelity = Fidelity(experiment, root=root)
        self.stage = Stage(experiment, root=root)
        self.actions = actions_of(self.stage.action_space, is_masked=self.stage.is_masked)
        self.weights = Weights(shape_for(experiment, Features(self.stage.observation_space), self.actions))
        self.adam = Adam(self.weights)
        self.generator = np.random.default_rng(seed)
        self.rollout = Rollout(
            self.weights,
            self.actions,
            steps=self.algo.rollout_steps,
            num_envs=self.stage.num_envs,
            batch_size=self.algo.batch_size,
        )
        self._update = Update(self.weights, self.actions, self.algo)
        self._actor = Pass(self.weights, self.stage.num_envs, nets=slice(0, 1))
        scale = self.stage.normalizer.scale if self.stage.normalizer else None
        self.policy = FastPolicy(self.weights, self.actions, self.stage.features, scale)
        self._row: dict[str, float] = {}

    @property
    def step(self) -> int:
        return self.stage.steps

    @property
    def is_complete(self) -> bool:
        return self.step >= self.algo.total_timesteps

    def begin(self) -> None:
        """Start from nothing: new weights, new episodes."""
        GlobalGenerators.seed(self.seed)
        self.weights.initialise([self.generator])
        self._reset_environments()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was taken; what cannot be put back is reset, and later labels say so."""
        self._refuse_other(checkpoint)
        state, where = checkpoint.state, str(checkpoint.path)
        self.attempt = state["attempt"] + 1
        self.updates = state["updates"]
        self.weights.load(checkpoint.policy, where=where)
        for name, moments in (("exp_avg", self.adam.first), ("exp_avg_sq", self.adam.second)):
            moments.load(_under(name, checkpoint.optimizer), where=where)
        self.adam.steps = [state["optimizer_steps"]]
        self.stage.restore(state["account"])
        if self.stage.normalizer:
            self.stage.normalizer.restore(state["normalizer"])
        if state["env"] is None:
            self._reset_environments()
        else:
            env_state.restore(self.stage.env, state["env"])
            self.rollout.inputs[:, -1] = state["inputs"]
        self.generator.bit_generator.state = state["generator"]
        GlobalGenerators.read(state["random"]).put_back()

    def collect(self, goes_on: Callable[[], bool]) -> bool:
        """Fill a rollout; False where it was broken off."""
        rollout, stage, actions = self.rollout, self.stage, self.actions
        rollout.begin()
        noise = actions.noise(self.generator, (rollout.steps, *self._actor.head.shape), self.weights.dtype)
        for step in range(rollout.steps):
            closed = self._closed(step) if stage.is_masked else None
            self._actor.forward(rollout.inputs[:, step])
            chosen = actions.choose(self._actor.head, self.weights, noise[step], closed)
            rollout.choices.append(chosen)
            rewards, ended, cut = stage.step(actions.for_env(chosen[0]), rollout.inputs[0, step + 1, :, :-1])
            rollout.rewards[0, step] = rewards
            rollout.ended[0, step] = ended
            rollout.cut.extend((0, step, index, features) for index, features in cut)
            if not goes_on():
                return False
        return True

    def learn(self) -> None:
        """Update the weights from the rollout."""
        remaining = max(0.0, 1.0 - self.step / self.algo.total_timesteps)
        learning_rate, clip_range = (_at(rate, remaining) for rate in (self.algo.learning_rate, self.algo.clip_range))
        samples = self.rollout.samples(gamma=self.algo.gamma, gae_lambda=self.algo.gae_lambda)
        losses = self._update.run(
            samples, self.adam, [self.generator], learning_rate=learning_rate, clip_range=clip_range
        )[0]
        self.updates += losses.epochs
        self._row = {
            **{f"train/{name}": value for name, value in losses.means().items()},
            "train/loss": self._update.loss(losses.figures[-1]),
            "train/explained_variance": explained_variance(samples, 0),
            "train/learning_rate": learning_rate,
            "train/clip_range": clip_range,
            "train/updates": float(self.updates),
        }
        if self.algo.clip_range_value is not None:
            self._row["train/clip_range_vf"] = self.algo.clip_range_value
        if self.actions.has_deviation:
            self._row["train/std"] = float(np.exp(self.weights.deviation[0]).mean())

    def metrics(self) -> dict[str, float]:
        """Return the row of the last update."""
        return {**self.stage.metrics(), **self._row}

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes, for the live display."""
        return self.stage.metrics().get("rollout/return_mean")

    def check_health(self) -> None:
        """Stop where the last update left something that is not finite."""
        health.check_losses(self._row, step=self.step)
        if not np.isfinite(self.weights.flat).all():
            for name, view in self.weights.named():
                bad = view[~np.isfinite(view)]
                if bad.size:
                    raise health.Diverged(f"parameter `{name}`", float(bad[0]), self.step)

    def mark(self) -> dict[str, Any]:
        """Return all that a rollout changes, as it is now; the weights are not among it."""
        normalizer = self.stage.normalizer
        return {
            "attempt": self.attempt,
            "updates": self.updates,
            "random": GlobalGenerators.now().document(),
            "generator": self.generator.bit_generator.state,
            "account": self.stage.document(),
            "inputs": self.rollout.inputs[:, -1].copy(),
            "normalizer": normalizer.document() if normalizer else None,
            "env": self.fidelity.capture(self.stage.env),
        }

    def bundle(self, mark: dict[str, Any]) -> Bundle:
        """Return the boundary that `mark` marked; the weights must not have changed since."""
        moments = {"exp_avg": self.adam.first, "exp_avg_sq": self.adam.second}
        return Bundle(
            step=mark["account"]["steps"],
            backend=BACKEND,
            algorithm=self.algo.name,
            resume=self.fidelity.label,
            missing=self.fidelity.missing,
            policy=self.weights.arrays(),
            optimizer={
                f"{key}/{name}": array for key, each in moments.items() for name, array in each.arrays().items()
            },
            state={**mark, "optimizer_steps": self.adam.steps[0]},
            replay={},
            spaces={
                "observation": spaces.describe(self.stage.observation_space),
                "action": spaces.describe(self.stage.action_space),
            },
            parity=self._parity(),
        )

    def close(self) -> None:
        """Close the environments."""
        self.stage.env.close()

    def _parity(self) -> dict[str, Any]:
        """Return the environment's replay and what the training path makes of its observations."""
        if not self._replay:
            return {}
        observations = self._replay["observations"]
        told = {**self._replay, "greedy": self.policy.predict(observations)}
        return {**told, "inputs": self.policy.inputs(observations)} if self.stage.normalizer else told

    @cached_property
    def _replay(self) -> dict[str, Any]:
        return parity.record(self.experiment.env, root=self._root)

    def _reset_environments(self) -> None:
        seeds = seeds_for(self.seed, self.stage.num_envs, self.attempt)
        self.stage.reset(seeds, self.rollout.inputs[0, -1, :, :-1])

    def _closed(self, step: int) -> Any:
        closed = self.stage.closed()
        if self.rollout.closed is None:
            self.rollout.closed = np.zeros((1, self.rollout.steps, *closed.shape), dtype=np.bool_)
        self.rollout.closed[0, step] = closed
        return closed.T[None]

    def _refuse_other(self, checkpoint: Checkpoint) -> None:
        was, now = (checkpoint.backend, checkpoint.algorithm), (BACKEND, self.algo.name)
        if was != now:
            raise CheckpointInvalid(
                f"checkpoint {checkpoint.path} is of {was[0]}'s `{was[1]}`, not of {now[0]}'s `{now[1]}`",
                hint="resume with the config it was trained with",
            )


def _at(rate: float | Schedule, remaining: float) -> float:
    return rate.at(remaining) if isinstance(rate, Schedule) else rate


def _under(name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
