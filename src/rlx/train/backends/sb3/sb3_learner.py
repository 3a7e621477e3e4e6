"""One seed's SB3 training: environments, normaliser and algorithm; starts it, restores it, logs it and saves it."""

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

from rlx.config.schema import ALGORITHMS, Experiment
from rlx.envs import snapshot, spaces
from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.remote.remote_env import RemoteVector
from rlx.envs.vector import env_seeds, make_vector
from rlx.errors import CheckpointInvalid
from rlx.evaluate import parity
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint
from rlx.train import rollout_metrics
from rlx.train.backends.sb3 import algorithms, log_records, training_state, update_metrics
from rlx.train.backends.sb3.torch_policy import Sb3Policy
from rlx.train.backends.sb3.vec_env import SameStepVecEnv
from rlx.train.resume_fidelity import Fidelity
from rlx.train.rollout_metrics import EnvShare

BACKEND = "sb3"


class Sb3Learner:
    """One seed between two updates, and how it is saved and restored."""

    def __init__(self, experiment: Experiment, *, root: Path, seed: int) -> None:
        self.experiment = experiment
        self.seed = seed
        self.total = experiment.algo.total_timesteps
        self.attempt = 0
        self.threads = experiment.resources.cores
        torch.set_num_threads(self.threads)
        self.fidelity = Fidelity(experiment, root=root)
        is_custom = experiment.algo.name not in ALGORITHMS
        if is_custom:
            self.fidelity.weaken("warm", f"state that `{experiment.algo.name}` keeps in addition to SB3's")
        vector = make_vector(experiment.env, root=root)
        if is_custom and isinstance(vector, RemoteVector):
            vector.keeps_infos = True
        self.env = SameStepVecEnv(vector, seeds=env_seeds(seed, vector.num_envs), keep_infos=is_custom)
        try:
            self.normalizer = normalizer_for(experiment, self.env)
            device = algorithms.device_for(experiment)
            self.algorithm = algorithms.build(
                experiment, self.normalizer or self.env, root=root, seed=seed, device=device
            )
        except BaseException:
            self.env.close()
            raise
        if self.algorithm.device.type == "cuda":
            self.fidelity.weaken("warm", "bit-exact arithmetic on the GPU")
        self.log = log_records.SilentLogger()
        self.gradient_norms = update_metrics.GradientNorms()
        self._env_share = EnvShare(self.env.clock)
        self._root = root
        self.algorithm.set_logger(self.log)  # type: ignore[arg-type]
        normalise = self.normalizer.normalize_obs if self.normalizer else None
        self.policy = Sb3Policy(self.algorithm.policy, normalise)

    @property
    def step(self) -> int:
        return int(self.algorithm.num_timesteps)

    @property
    def is_complete(self) -> bool:
        return self.step >= self.total

    def begin(self) -> None:
        """Reset everything to the first step, as SB3's `learn` does."""
        self.algorithm.ep_info_buffer = deque(maxlen=training_state.EPISODES_KEPT)
        self.algorithm.ep_success_buffer = deque(maxlen=training_state.EPISODES_KEPT)
        self._prepare()
        self._reset_environments()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint. Environments whose state it could not store are reset."""
        algorithm = self.algorithm
        where = str(checkpoint.path)
        if checkpoint.algorithm != self.experiment.algo.name:
            raise CheckpointInvalid(
                f"checkpoint {where} is of `{checkpoint.algorithm}`, not of `{self.experiment.algo.name}`",
                hint="resume with the config it was trained with",
            )
        state = checkpoint.state
        self.attempt = state["attempt"] + 1
        self.threads = state["threads"]  # another number of threads rounds differently
        torch.set_num_threads(self.threads)
        self._prepare()
        training_state.load_policy(algorithm.policy, checkpoint.policy, where=where)
        training_state.load_optimizers(algorithm, checkpoint.optimizer, state["optimizers"])
        training_state.set_normalizer_state(self.normalizer, state["normalizer"])
        training_state.set_progress_state(algorithm, state["progress"])
        self.env.restore(state["account"])
        if isinstance(algorithm, OffPolicyAlgorithm) and checkpoint.replay:
            assert algorithm.replay_buffer is not None
            training_state.load_replay(algorithm.replay_buffer, checkpoint.replay, state["replay"], where=where)
        self._restore_environments(state["env"])
        GlobalGenerators.read(state["random"]).put_back()

    def mark(self) -> dict[str, Any]:
        """Return a copy of everything that a rollout changes; it does not change the weights."""
        return {
            "attempt": self.attempt,
            "threads": self.threads,
            "random": GlobalGenerators.now().document(),
            "progress": training_state.progress_state(self.algorithm),
            "account": self.env.document(),
            "normalizer": training_state.normalizer_state(self.normalizer),
            "env": self.fidelity.capture(self.env.env),
        }

    def bundle(self, mark: dict[str, Any]) -> Bundle:
        """Return the checkpoint of the moment when `mark` was taken; the weights must not have changed since.

        Its replay arrays are views: save it before training goes on.
        """
        algorithm = self.algorithm
        optimizer, plain = training_state.optimizer_state(algorithm)
        state = {**mark, "optimizers": plain}
        replay: dict[str, Any] = {}
        if isinstance(algorithm, OffPolicyAlgorithm) and algorithm.replay_buffer is not None:
            replay, state["replay"] = training_state.replay_arrays(algorithm.replay_buffer)
        return Bundle(
            step=mark["progress"]["counters"]["num_timesteps"],
            backend=BACKEND,
            algorithm=self.experiment.algo.name,
            resume=self.fidelity.label,
            missing=self.fidelity.missing,
            policy=training_state.policy_arrays(algorithm),
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
        """Return the environment's recording with the inputs and greedy actions that training computes for it."""
        if not self._replay:
            return {}
        result = dict(self._replay)
        inputs = result["observations"]
        if self.normalizer:
            inputs = result["inputs"] = self.normalizer.normalize_obs(inputs)
        greedy, _ = self.algorithm.predict(inputs, deterministic=True)
        result["greedy"] = np.asarray(greedy)
        return result

    @cached_property
    def _replay(self) -> dict[str, Any]:
        return parity.record_replay(self.experiment.env, root=self._root)

    def metrics(self) -> dict[str, float]:
        """Return the row of the last update."""
        row = log_records.rollout_row(self.algorithm, episodes=self.env.episodes)
        row |= log_records.canonical(self.log.values)
        if self.log.values.get("train/n_updates"):
            row |= log_records.q_row(self.algorithm)
        row |= self.gradient_norms.row() | self.env.terms.read(self.step) | self._env_share.read()
        if isinstance(self.algorithm, OffPolicyAlgorithm):
            return row | update_metrics.replay_row(self.algorithm, steps=self.experiment.log.every or 1)
        row |= rollout_metrics.rewards(np.concatenate(self.env.raw_rewards))
        return row | update_metrics.rollout_row(self.algorithm, entropy=row.get("train/entropy"))

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes, for the live display."""
        return log_records.rollout_row(self.algorithm, episodes=0).get("rollout/return_mean")

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
            snapshot.restore(self.env.env, captured)
            self.env.reseed(None)
            return
        count = self.env.num_envs
        self.env.reseed(env_seeds(self.seed, count * (self.attempt + 1))[-count:])  # seeds that no attempt had
        self._reset_environments()


def normalizer_for(experiment: Experiment, env: VecEnv) -> VecNormalize | None:
    """Return the environments with the normalisation that a config asks for, or None if it asks for none."""
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
