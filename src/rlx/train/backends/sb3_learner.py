"""One seed's SB3 training as an object: environments, normaliser, algorithm; begun, restored, snapshotted."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.noise import VectorizedActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from rlx.config.schema import Experiment
from rlx.envs import spaces
from rlx.envs import state as env_state
from rlx.envs.vector import env_seeds, make_vector
from rlx.evaluate import parity
from rlx.runs.checkpoint import Bundle, Checkpoint
from rlx.train import health, signals
from rlx.train.backends import sb3_algorithms, sb3_health, sb3_metrics, sb3_signals, sb3_state
from rlx.train.backends.sb3_policy import Sb3Policy
from rlx.train.backends.sb3_vecenv import SameStepVecEnv
from rlx.train.fidelity import Fidelity
from rlx.train.signals import EnvShare

BACKEND = "sb3"


class Learner:
    """What training consists of between two boundaries, and how it is saved and put back."""

    def __init__(self, experiment: Experiment, *, root: Path, seed: int) -> None:
        self.experiment = experiment
        self._root = root
        self.seed = seed
        self.total = experiment.algo.total_timesteps
        self.attempt = 0
        self.threads = experiment.resources.cores
        torch.set_num_threads(self.threads)
        self.fidelity = Fidelity(experiment, root=root)
        if sb3_algorithms.is_custom(experiment):
            self.fidelity.weaken("warm", f"what `{experiment.algo.name}` keeps beside SB3's own state")
        vector = make_vector(experiment.env, root=root)
        self.env = SameStepVecEnv(
            vector, seeds=env_seeds(seed, vector.num_envs), keep_infos=sb3_algorithms.is_custom(experiment)
        )
        try:
            self.normalizer = normalizer_for(experiment, self.env)
            outer: VecEnv = self.normalizer or self.env
            device = sb3_algorithms.device_for(experiment)
            self.algorithm = sb3_algorithms.build(experiment, outer, root=root, seed=seed, device=device)
        except BaseException:
            self.env.close()
            raise
        if self.algorithm.device.type == "cuda":
            self.fidelity.weaken("warm", "bit-exact arithmetic on the GPU")
        self.values = sb3_metrics.Values()
        self.gradient_norms = sb3_signals.GradientNorms()
        self._env_share = EnvShare(self.env.clock)
        self.algorithm.set_logger(self.values)  # type: ignore[arg-type]
        self.policy = Sb3Policy(self.algorithm.policy, self._normalise if self.normalizer else None)

    @property
    def step(self) -> int:
        return int(self.algorithm.num_timesteps)

    @property
    def is_complete(self) -> bool:
        return self.step >= self.total

    def begin(self) -> None:
        """Reset everything to the first step, as SB3's `learn` does."""
        algorithm = self.algorithm
        algorithm.ep_info_buffer = deque(maxlen=sb3_state.EPISODES_KEPT)
        algorithm.ep_success_buffer = deque(maxlen=sb3_state.EPISODES_KEPT)
        self._prepare()
        self._reset_environments()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was taken; what cannot be put back is reset, and later labels say so."""
        algorithm, where = self.algorithm, str(checkpoint.path)
        sb3_state.check_fits(checkpoint, algorithm=self.experiment.algo.name)
        state = checkpoint.state
        self.attempt = state["attempt"] + 1
        self.threads = state["threads"]  # another number of threads rounds differently
        torch.set_num_threads(self.threads)
        self._prepare()
        sb3_state.load_policy(algorithm.policy, checkpoint.policy, where=where)
        sb3_state.load_optimizers(algorithm, checkpoint.optimizer, state["optimizers"])
        sb3_state.set_normalizer_state(self.normalizer, state["normalizer"])
        sb3_state.set_progress_state(algorithm, state["progress"])
        sb3_state.set_account_state(self.env, state["account"])
        if isinstance(algorithm, OffPolicyAlgorithm) and checkpoint.replay:
            assert algorithm.replay_buffer is not None
            sb3_state.load_replay(algorithm.replay_buffer, checkpoint.replay, state["replay"], where=where)
        self._restore_environments(state["env"])
        sb3_state.set_random_state(state["random"])

    def mark(self) -> dict[str, Any]:
        """Return all that a rollout changes, as it is now; the weights are not among it."""
        return {
            "attempt": self.attempt,
            "threads": self.threads,
            "random": sb3_state.random_state(),
            "progress": sb3_state.progress_state(self.algorithm),
            "account": sb3_state.account_state(self.env),
            "normalizer": sb3_state.normalizer_state(self.normalizer),
            "env": self.fidelity.capture(self.env.env),
        }

    def bundle(self, mark: dict[str, Any]) -> Bundle:
        """Return the boundary that `mark` marked; the weights must not have changed since.

        Its replay arrays are views: save it before training goes on.
        """
        algorithm = self.algorithm
        optimizer, plain = sb3_state.optimizer_state(algorithm)
        state = {**mark, "optimizers": plain}
        replay: dict[str, Any] = {}
        if isinstance(algorithm, OffPolicyAlgorithm) and algorithm.replay_buffer is not None:
            replay, state["replay"] = sb3_state.replay_arrays(algorithm.replay_buffer)
        return Bundle(
            step=mark["progress"]["counters"]["num_timesteps"],
            backend=BACKEND,
            algorithm=self.experiment.algo.name,
            resume=self.fidelity.label,
            missing=self.fidelity.missing,
            policy=sb3_state.policy_arrays(algorithm),
            optimizer=optimizer,
            state=state,
            replay=replay,
            spaces={
                "observation": spaces.describe(self.env.observation_space),
                "action": spaces.describe(self.env.action_space),
            },
            parity=self._parity(),
        )

    def _parity(self) -> dict[str, Any]:
        """Return the environment's replay and what the training path makes of its observations."""
        if not self._replay:
            return {}
        observations = self._replay["observations"]
        inputs = self._normalise(observations) if self.normalizer else observations
        greedy, _ = self.algorithm.predict(inputs, deterministic=True)
        told = {**self._replay, "greedy": np.asarray(greedy)}
        return {**told, "inputs": inputs} if self.normalizer else told

    @cached_property
    def _replay(self) -> dict[str, Any]:
        return parity.record(self.experiment.env, root=self._root)

    def metrics(self) -> dict[str, float]:
        """Return the row of the last update."""
        row = sb3_metrics.rollout_row(self.algorithm, episodes=self.env.episodes)
        row |= sb3_metrics.canonical(self.values.values)
        if self.values.values.get("train/n_updates"):
            row |= sb3_metrics.q_row(self.algorithm)
        row |= self.gradient_norms.row() | self.env.terms.read(self.step) | self._env_share.read()
        if isinstance(self.algorithm, OffPolicyAlgorithm):
            return row | sb3_signals.replay_row(self.algorithm, steps=self.experiment.log.every or 1)
        row |= signals.rewards(np.concatenate(self.env.rewards))
        return row | sb3_signals.rollout_row(self.algorithm, entropy=row.get("train/entropy"))

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes, for the live display."""
        return sb3_metrics.recent_return(self.algorithm)

    def check_health(self, *, with_parameters: bool) -> None:
        """Stop where the last update left something that is not finite."""
        health.check_losses(self.values.values, step=self.step)
        if with_parameters:
            sb3_health.check_parameters(self.algorithm.policy, step=self.step)

    def close(self) -> None:
        """Close the environments."""
        self.env.close()

    def _prepare(self) -> None:
        algorithm = self.algorithm
        algorithm._total_timesteps = self.total
        noise = algorithm.action_noise
        if noise is not None:
            if self.env.num_envs > 1 and not isinstance(noise, VectorizedActionNoise):
                noise = algorithm.action_noise = VectorizedActionNoise(noise, self.env.num_envs)
            noise.reset()

    def _reset_environments(self) -> None:
        algorithm = self.algorithm
        assert algorithm.env is not None
        algorithm._last_obs = algorithm.env.reset()  # type: ignore[assignment]
        algorithm._last_episode_starts = np.ones((self.env.num_envs,), dtype=bool)
        if self.normalizer is not None:
            algorithm._last_original_obs = self.normalizer.get_original_obs()

    def _restore_environments(self, captured: Any) -> None:
        if captured is not None:
            env_state.restore(self.env.env, captured)
            self.env.reseed(None)
            return
        count = self.env.num_envs
        self.env.reseed(env_seeds(self.seed, count * (self.attempt + 1))[-count:])  # never the same starts again
        self._reset_environments()

    def _normalise(self, observations: Any) -> Any:
        assert self.normalizer is not None
        return self.normalizer.normalize_obs(observations)


def normalizer_for(experiment: Experiment, env: VecEnv) -> VecNormalize | None:
    """Return the environments behind the normalisation that a config asks for; None where it asks for none."""
    settings = experiment.env.normalize
    if not (settings.obs or settings.reward):
        return None
    keys = spaces.normalised_keys(env.observation_space)
    return VecNormalize(
        env,
        norm_obs=settings.obs,
        norm_reward=settings.reward,
        clip_obs=settings.clip,
        clip_reward=settings.clip,
        gamma=experiment.algo.gamma,
        norm_obs_keys=keys if settings.obs and keys != [""] else None,
    )
