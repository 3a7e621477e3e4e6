"""Train one seed of PPO on either side of the learning gate, and evaluate the greedy policy in its last iterations.

`stable_baselines3` trains as its users do: `make_vec_env`, `VecNormalize` if the task normalises, `PPO.learn`. `rlx`
trains through its own backend with a session. Both are observed in the same way: after each of the last iterations, the
greedy policy plays one episode from each of the same start states.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from rlx.config.load import parse
from rlx.config.schema import Env, Schedule
from rlx.envs.make import make_env

Predict = Callable[[Any], Any]
Spec = Mapping[str, Any]
"""`env` and `algo` as in a config; hyperparameters that are left out have rlx's defaults on both sides."""

FIRST_START = 10_000_000
"""Reset seeds of the evaluation's start states go up from here; training seeds stay below."""
SPACING = 100
"""Seeds of two trainings lie this far apart: SB3 seeds its environments s, s + 1, …"""


class Starts:
    """Fixed start states of one environment."""

    def __init__(self, env: Env, count: int) -> None:
        self._envs = [make_env(env, root=Path.cwd()) for _ in range(count)]

    def play(self, predict: Predict) -> float:
        """Return the mean return of one episode from each start state, the environments in lockstep."""
        total = 0.0
        playing = [(env, env.reset(seed=FIRST_START + index)[0]) for index, env in enumerate(self._envs)]
        while playing:
            actions = predict(np.stack([observation for _, observation in playing]))
            going = []
            for (env, _), action in zip(playing, actions, strict=True):
                observation, reward, terminated, truncated, _ = env.step(action)
                total += float(reward)
                if not (terminated or truncated):
                    going.append((env, observation))
            playing = going
        return total / len(self._envs)

    def close(self) -> None:
        for env in self._envs:
            env.close()


def with_sb3(spec: Spec, seed: int, *, starts: Starts, last: int) -> list[float]:
    """Train with Stable-Baselines3 on one thread and return the last iterations' evaluations."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    experiment = parse({**spec, "backend": "sb3"})
    env, algo = experiment.env, cast("Any", experiment.algo)
    vector: Any = make_vec_env(partial(make_env, env, root=Path.cwd()), n_envs=env.num_envs or 1, seed=seed)
    norm = env.normalize
    if norm.obs or norm.reward:
        vector = VecNormalize(
            vector, norm_obs=norm.obs, norm_reward=norm.reward, clip_obs=norm.clip, clip_reward=norm.clip,
            gamma=algo.gamma,
        )  # fmt: skip
    model = PPO(
        "MlpPolicy",
        vector,
        learning_rate=sb3_rate(algo.learning_rate),
        n_steps=algo.rollout_steps,
        batch_size=algo.batch_size,
        n_epochs=algo.update_epochs,
        gamma=algo.gamma,
        gae_lambda=algo.gae_lambda,
        clip_range=algo.clip_range,
        ent_coef=algo.entropy_coef,
        vf_coef=algo.value_coef,
        max_grad_norm=algo.max_grad_norm,
        seed=seed,
        device="cpu",
    )

    def evaluate() -> float:
        act = _greedy(model)
        return starts.play(lambda seen: act(vector.normalize_obs(seen) if norm.obs else seen))

    returns: list[float] = []
    first = first_watched(spec, last)

    class Watch(BaseCallback):  # a rollout starts where the update before it ended
        def _on_rollout_start(self) -> None:
            if self.num_timesteps >= first:
                returns.append(evaluate())

        def _on_step(self) -> bool:
            return True

    model.learn(algo.total_timesteps, callback=Watch())
    returns.append(evaluate())
    vector.close()
    return returns


def sb3_rate(rate: float | Schedule) -> float | Callable[[float], float]:
    """Return a learning rate as SB3 takes it: a number, or a function of the remaining share of training."""
    return (lambda remaining: rate.at(max(0.0, remaining))) if isinstance(rate, Schedule) else rate


def _greedy(model: Any) -> Predict:
    """Return an SB3 policy's greedy actions in NumPy, a fifth of the cost of its `predict`; checked against that."""
    linear = [*model.policy.mlp_extractor.policy_net[::2], model.policy.action_net]
    *hidden, head = [(one.weight.detach().numpy().T.copy(), one.bias.detach().numpy().copy()) for one in linear]
    space, seen = model.action_space, model.observation_space
    states = np.eye(seen.n, dtype=np.float32) if hasattr(seen, "n") else None

    def act(observations: Any) -> Any:
        features = np.asarray(observations, dtype=np.float32) if states is None else states[observations]
        for weight, bias in hidden:
            features = np.tanh(features @ weight + bias)
        output = features @ head[0] + head[1]
        return np.clip(output, space.low, space.high) if hasattr(space, "low") else output.argmax(axis=1)

    generator = np.random.default_rng(0)
    sample: Any = generator.normal(size=(8, *seen.shape)).astype(np.float32)
    if states is not None:
        sample = generator.integers(seen.n, size=8)
    np.testing.assert_allclose(act(sample), model.predict(sample, deterministic=True)[0], atol=1e-4)
    return act


def with_rlx(spec: Spec, seed: int, *, starts: Starts, last: int, backend: str = "fast") -> list[float]:
    """Train with one of rlx's backends and return the last iterations' evaluations."""
    from rlx.testing import RecordingSession
    from rlx.train.trainer import trainer_for

    experiment = parse({**spec, "backend": backend})
    returns: list[float] = []
    first = first_watched(spec, last)

    class Watch(RecordingSession):
        def after_update(self, step: int, metrics: Any, *, policy: Any, snapshot: Any) -> bool:
            if step >= first:
                policy.reset()
                returns.append(starts.play(partial(policy.predict, deterministic=True)))
            return super().after_update(step, metrics, policy=policy, snapshot=snapshot)

    with tempfile.TemporaryDirectory() as folder:
        session = Watch(experiment, Path(folder), root=Path.cwd(), seed=seed)
        trainer_for(experiment).train(cast("Any", session))
    return returns


def first_watched(spec: Spec, last: int) -> int:
    """Return the step from which evaluations count: the end of the first of the last iterations."""
    algo, size = spec["algo"], spec["env"]["num_envs"] * spec["algo"]["rollout_steps"]
    if algo["total_timesteps"] % size:
        raise SystemExit(f"{spec['env']['id']}: {algo['total_timesteps']} steps are not whole iterations of {size}")
    return int(algo["total_timesteps"] - (last - 1) * size)
