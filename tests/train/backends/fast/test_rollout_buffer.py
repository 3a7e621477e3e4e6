"""A rollout in lockstep with SB3's: observations, rewards, values and advantages are the same up to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rlx.config.load import parse
from rlx.train.backends.fast.env_runner import EnvRunner
from rlx.train.backends.fast.learner import FastLearner
from rlx.train.backends.fast.rollout_buffer import gae
from rlx.train.backends.fast.stacked_agent import StackedAgent
from rlx.train.backends.sb3 import sb3_loop, training_state
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.fast.test_ppo_update import Silent
from tests.train.backends.sb3_examples import TOYS, tiny

ROOT = Path(__file__).parents[4]
LIMIT = [{"time_limit": {"max_steps": 9}}]
NORMALIZE = {"obs": True, "reward": True}
WORLDS: dict[str, dict[str, Any]] = {
    "terminations": {},
    "truncated episodes": {"env": {"id": "Pendulum-v1", "wrappers": LIMIT}},
    "truncated episodes, normalised": {"env": {"id": "Pendulum-v1", "wrappers": LIMIT, "normalize": NORMALIZE}},
    "both, normalised": {"env": {"wrappers": LIMIT, "normalize": NORMALIZE}},
    "only rewards normalised": {"env": {"wrappers": LIMIT, "normalize": {"reward": True}}},
    "only observations normalised, clipped": {"env": {"wrappers": LIMIT, "normalize": {"obs": True, "clip": 0.5}}},
    "float64 observations": {"env": {"id": "InvertedPendulum-v5", "wrappers": LIMIT, "normalize": NORMALIZE}},
    "dict observations": {
        "env": {"id": f"{TOYS}:Mixed", "wrappers": [{"time_limit": {"max_steps": 5}}], "normalize": NORMALIZE},
        "policy": {"type": "multi"},
    },
    "choices seen, bits set": {"env": {"id": f"{TOYS}:Switches"}},
    "one of many seen": {"env": {"id": "FrozenLake-v1"}},
    "masks": {"algorithm": "maskable_ppo"},
}


@pytest.mark.parametrize("name", WORLDS)
def test_rollouts_are_sb3s(name: str, tmp_path: Path) -> None:
    experiment = tiny(**{"rollout_steps": 48, **WORLDS[name]})
    sb3 = Sb3Learner(experiment, root=tmp_path, seed=3)
    runner = EnvRunner(experiment, root=tmp_path)
    agent = StackedAgent(experiment, runner, root=tmp_path)
    ours = FastLearner(agent, runner, seed=3)
    sb3.begin()
    ours.begin()
    agent.weights.load(training_state.policy_arrays(sb3.algorithm), where="here")
    algorithm: Any = sb3.algorithm
    buffer = algorithm.rollout_buffer
    truncated = 0
    for _ in range(3):
        algorithm.collect_rollouts(algorithm.env, sb3_loop.Callback(sb3, cast("Any", Silent())), buffer, 48)
        repeat_actions(agent, buffer.actions)
        collect(ours)
        truncated += len(agent.rollout.truncated)
        samples = agent.rollout.samples(gamma=experiment.algo.gamma, gae_lambda=0.95)
        for key in ("values", "log_probs", "advantages", "returns"):
            mine = getattr(samples, key).reshape(48, 2)
            np.testing.assert_allclose(mine, getattr(buffer, key), rtol=1e-3, atol=2e-5, err_msg=key)
        np.testing.assert_allclose(agent.rollout.rewards[0], buffer.rewards, rtol=1e-4, atol=1e-5)
        if (
            isinstance(buffer.observations, np.ndarray)
            and samples.inputs.shape[-1] == buffer.observations.shape[-1] + 1
        ):
            seen = samples.inputs[0, :, :-1].reshape(buffer.observations.shape)
            np.testing.assert_allclose(seen, buffer.observations, rtol=1e-5, atol=1e-6)
    assert ours.step == sb3.step
    theirs = sb3.metrics()
    assert ours.runner.episodes.metrics() == {key: theirs[key] for key in theirs if key.startswith("rollout/")}
    assert (truncated > 0) == ("wrappers" in experiment.env.model_fields_set)
    compare_normalizers(training_state.normalizer_state(sb3.normalizer), ours)
    sb3.close()
    runner.env.close()


def collect(ours: FastLearner) -> None:
    """Fill a rollout, as the training loop does."""
    agent = ours.agent
    agent.rollout.begin()
    noise = agent.sample_noise([ours])
    for step in range(agent.rollout.steps):
        ours.step_env(step, agent.act(step, noise, [ours]))


def repeat_actions(ours: StackedAgent, actions: Any) -> None:
    """Let our agent sample the actions that SB3 sampled."""
    steps = iter(actions)

    def sample(*_: Any) -> Any:
        sampled = next(steps).T[None]
        return sampled if ours.distribution.has_log_std else sampled.astype(np.int64)

    ours.distribution.sample = sample  # type: ignore[method-assign]


def compare_normalizers(theirs: Any, ours: FastLearner) -> None:
    assert (theirs is None) == (ours.runner.normalizer is None)
    if ours.runner.normalizer is None:
        return
    mine = ours.runner.normalizer.document()
    assert mine["obs"].keys() == theirs["obs"].keys()
    pairs = [(mine["reward"], theirs["reward"]), *((mine["obs"][key], theirs["obs"][key]) for key in mine["obs"])]
    for one, two in pairs:
        for figure in ("mean", "var", "count"):
            np.testing.assert_allclose(one[figure], two[figure], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mine["returns"], theirs["returns"], rtol=1e-6, atol=1e-9)


def test_the_idle_step_of_a_late_reset_is_never_learned_from() -> None:
    experiment = parse({
        "env": {"id": "tests.envs.swarm:Late", "num_envs": 3, "kwargs": {"horizon": 9}, "normalize": {"reward": True}},
        "algo": {"name": "ppo", "rollout_steps": 32, "batch_size": 16, "update_epochs": 2, "total_timesteps": 600},
    })  # fmt: skip
    runner = EnvRunner(experiment, root=ROOT)
    ours = FastLearner(StackedAgent(experiment, runner, root=ROOT), runner, seed=1)
    ours.begin()
    idle = 0
    for _ in range(4):
        before, ended_before = ours.step, ours.runner.idle.copy()
        collect(ours)
        rollout = ours.agent.rollout
        previous = np.concatenate([ended_before[None], rollout.dones[0, :-1]])
        np.testing.assert_array_equal(rollout.idle[0], previous)
        assert not (rollout.idle & rollout.dones).any()
        idle += int(rollout.idle.sum())
        samples = rollout.samples(gamma=0.99, gae_lambda=0.95)
        assert samples.inputs.shape[1] == ours.step - before == 96 - rollout.idle.sum()
        assert np.abs(samples.inputs[0, :, 0]).max() <= 1.5, "a cart that had fallen was learned from"
        ours.agent.learn([ours])
        ours.check_health()
    assert idle > 10
    lengths = [length for _, length in ours.runner.episodes.recent]
    assert max(lengths) == 9
    ours.runner.env.close()


def test_a_rollout_that_is_nothing_but_late_resets_changes_no_weight() -> None:
    experiment = parse({
        "env": {"id": "tests.envs.swarm:Late", "num_envs": 2, "kwargs": {"horizon": 1}},
        "algo": {"name": "ppo", "rollout_steps": 1, "batch_size": 2, "update_epochs": 1, "total_timesteps": 8},
    })  # fmt: skip
    runner = EnvRunner(experiment, root=ROOT)
    ours = FastLearner(StackedAgent(experiment, runner, root=ROOT), runner, seed=1)
    ours.begin()
    changes = []
    while not ours.is_complete:
        before = ours.agent.weights.flat.copy()
        collect(ours)
        ours.agent.learn([ours])
        ours.check_health()
        changes.append(not np.array_equal(before, ours.agent.weights.flat))
    assert changes == [True, False, True, False, True, False, True]
    ours.runner.env.close()


def test_advantages_are_those_of_the_definition() -> None:
    generator = np.random.default_rng(0)
    rewards, values = generator.standard_normal((2, 6, 3)), generator.standard_normal((2, 7, 3))
    ended = generator.random((2, 6, 3)) < 0.3
    found = gae(rewards, values, ended, gamma=0.9, gae_lambda=0.8)
    for seed, env in np.ndindex(2, 3):
        later = 0.0
        for step in reversed(range(6)):
            goes_on = 1.0 - ended[seed, step, env]
            delta = rewards[seed, step, env] + 0.9 * values[seed, step + 1, env] * goes_on - values[seed, step, env]
            later = delta + 0.9 * 0.8 * goes_on * later
            assert found[seed, step, env] == pytest.approx(later)
