"""One seed's training as an object: environments, accounts, its place in a brain; begun, restored, snapshotted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from rlx.envs import spaces
from rlx.envs import state as env_state
from rlx.envs.generators import GlobalGenerators
from rlx.errors import CheckpointInvalid
from rlx.runs.checkpoint import Bundle, Checkpoint
from rlx.train import health, signals
from rlx.train.backends import fast_signals
from rlx.train.backends.fast_brain import Brain
from rlx.train.backends.fast_policy import FastPolicy
from rlx.train.backends.fast_rollout import Samples
from rlx.train.backends.fast_stage import Stage, seeds_for
from rlx.train.backends.fast_update import Losses, explained_variance
from rlx.train.signals import EnvShare

BACKEND = "fast"


class Learner:
    """One of the seeds that share a brain: what it consists of between two boundaries, how it is saved and put back."""

    def __init__(self, brain: Brain, stage: Stage, *, seed: int, place: int = 0) -> None:
        self.brain, self.stage, self.seed, self.place = brain, stage, seed, place
        self.algo = brain.algo
        self.attempt = self.updates = 0
        self.fidelity = copy(brain.fidelity)
        self.generator = np.random.default_rng(seed)
        scale = stage.normalizer.scale if stage.normalizer else None
        self.policy = FastPolicy(brain.weights.only(place), brain.actions, stage.features, scale)
        self._row: dict[str, float] = {}
        self._env_share = EnvShare(stage.clock)

    @property
    def step(self) -> int:
        return self.stage.steps

    @property
    def is_complete(self) -> bool:
        return self.step >= self.algo.total_timesteps

    def begin(self) -> None:
        """Start from nothing: new weights, new episodes."""
        GlobalGenerators.seed(self.seed)
        self.brain.weights.only(self.place).initialise([self.generator])
        self._reset_environments()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was taken; what cannot be put back is reset, and later labels say so."""
        self._refuse_other(checkpoint)
        state, where, adam = checkpoint.state, str(checkpoint.path), self.brain.adam
        self.attempt = state["attempt"] + 1
        self.updates = state["updates"]
        self.brain.weights.load(checkpoint.policy, where=where, seed=self.place)
        for name, moments in (("exp_avg", adam.first), ("exp_avg_sq", adam.second)):
            moments.load(_under(name, checkpoint.optimizer), where=where, seed=self.place)
        adam.steps[self.place] = state["optimizer_steps"]
        self.stage.restore(state["account"])
        if self.stage.normalizer:
            self.stage.normalizer.restore(state["normalizer"])
        if state["env"] is None:
            self._reset_environments()
        else:
            env_state.restore(self.stage.env, state["env"])
            self.brain.rollout.inputs[self.place, -1] = state["inputs"]
        self.generator.bit_generator.state = state["generator"]
        GlobalGenerators.read(state["random"]).put_back()

    def act(self, step: int, chosen: Any) -> None:
        """Step the environments with this seed's choices, and write down what came of it."""
        rollout, place = self.brain.rollout, self.place
        actions = self.brain.actions.for_env(chosen[place])
        rollout.idle[place, step] = self.stage.idle
        rewards, ended, cut = self.stage.step(actions, rollout.inputs[place, step + 1, :, :-1])
        rollout.rewards[place, step] = rewards
        rollout.raw_rewards[place, step] = self.stage.rewards
        rollout.ended[place, step] = ended
        if cut:
            rollout.cut.extend((place, step, index, features) for index, features in cut)

    def take_note(self, losses: Losses, samples: Samples, rates: Mapping[str, float]) -> None:
        """Keep the figures of the update that has just been made."""
        self.updates += losses.epochs
        self._row = {
            **{f"train/{name}": value for name, value in losses.means().items()},
            "train/loss": self.brain.update.loss(losses.figures[-1]),
            "train/explained_variance": explained_variance(samples, self.place),
            **signals.critic(samples.values[self.place], samples.returns[self.place]),
            **signals.joint_norm([losses.norms]),
            **rates,
            "train/updates": float(self.updates),
        }
        if self.algo.clip_range_value is not None:
            self._row["train/clip_range_vf"] = self.algo.clip_range_value
        if self.brain.actions.has_deviation:
            self._row["train/std"] = float(np.exp(self.brain.weights.deviation[self.place]).mean())

    def metrics(self) -> dict[str, float]:
        """Return the row of the last update, and of the rollout before it."""
        entropy = self._row["train/entropy"]
        return {
            **self.stage.metrics(),
            **self._row,
            **fast_signals.rollout_row(self.brain.rollout, self.stage, place=self.place, entropy=entropy),
            **self.stage.terms.read(self.step),
            **self._env_share.read(),
        }

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes, for the live display."""
        return self.stage.metrics().get("rollout/return_mean")

    def check_health(self) -> None:
        """Stop where the last update left something that is not finite."""
        health.check_losses(self._row, step=self.step)
        if not np.isfinite(self.brain.weights.flat[self.place]).all():
            for name, view in self.brain.weights.named(self.place):
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
            "inputs": self.brain.rollout.inputs[self.place, -1].copy(),
            "normalizer": normalizer.document() if normalizer else None,
            "env": self.fidelity.capture(self.stage.env),
        }

    def bundle(self, mark: dict[str, Any]) -> Bundle:
        """Return the boundary that `mark` marked; the weights must not have changed since."""
        adam, place = self.brain.adam, self.place
        moments = {"exp_avg": adam.first, "exp_avg_sq": adam.second}
        return Bundle(
            step=mark["account"]["steps"],
            backend=BACKEND,
            algorithm=self.algo.name,
            resume=self.fidelity.label,
            missing=self.fidelity.missing,
            policy=self.brain.weights.arrays(place),
            optimizer={
                f"{key}/{name}": array for key, each in moments.items() for name, array in each.arrays(place).items()
            },
            state={**mark, "optimizer_steps": adam.steps[place]},
            replay={},
            spaces={
                "observation": spaces.describe(self.stage.observation_space),
                "action": spaces.describe(self.stage.action_space),
            },
            parity=self._parity(),
        )

    def _parity(self) -> dict[str, Any]:
        """Return the environment's replay and what the training path makes of its observations."""
        replay = self.brain.replay
        if not replay:
            return {}
        observations = replay["observations"]
        told = {**replay, "greedy": self.policy.predict(observations)}
        return {**told, "inputs": self.policy.inputs(observations)} if self.stage.normalizer else told

    def _reset_environments(self) -> None:
        seeds = seeds_for(self.seed, self.stage.num_envs, self.attempt)
        self.stage.reset(seeds, self.brain.rollout.inputs[self.place, -1, :, :-1])

    def _refuse_other(self, checkpoint: Checkpoint) -> None:
        was, now = (checkpoint.backend, checkpoint.algorithm), (BACKEND, self.algo.name)
        if was != now:
            raise CheckpointInvalid(
                f"checkpoint {checkpoint.path} is of {was[0]}'s `{was[1]}`, not of {now[0]}'s `{now[1]}`",
                hint="resume with the config it was trained with",
            )


def _under(name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
