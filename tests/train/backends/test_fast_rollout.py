"""A rollout in lockstep with SB3's: observations, rewards, values and advantages are the same up to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rlx.config.load import parse
from rlx.train.backends import sb3_loop, sb3_state
from rlx.train.backends.fast_brain import Brain
from rlx.train.backends.fast_learner import Learner
from rlx.train.backends.fast_rollout import gae
from rlx.train.backends.fast_stage import Stage
from rlx.train.backends.sb3_learner import Learner as Sb3Learner
from tests.train.backends.sb3_examples import TOYS, tiny
from tests.train.backends.test_fast_update import Silent

ROOT = Path(__file__).parents[3]
LIMIT = [{"time_limit": {"max_steps": 9}}]
NORMALIZE = {"obs": True, "reward": True}
WORLDS: dict[str, dict[str, Any]] = {
    "terminations": {},
    "cut episodes": {"env": {"id": "Pendulum-v1", "wrappers": LIMIT}},
    "cut episodes, normalised": {"env": {"id": "Pendulum-v1", "wrappers": LIMIT, "normalize": NORMALIZE}},
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
    stage = Stage(experiment, root=tmp_path)
    brain = Brain(experiment, stage, root=tmp_path)
    ours = Learner(brain, stage, seed=3)
    sb3.begin()
    ours.begin()
    brain.weights.load(sb3_state.policy_arrays(sb3.algorithm), where="here")
    algorithm: Any = sb3.algorithm
    buffer = algorithm.rollout_buffer
    cut = 0
    for _ in range(3):
        algorithm.collect_rollouts(algorithm.env, sb3_loop.Callback(sb3, cast("Any", Silent())), buffer, 48)
        repeat_actions(brain, buffer.actions)
        assert brain.collect([ours], lambda: True, drop=fail)
        cut += len(brain.rollout.cut)
        samples = brain.rollout.samples(gamma=experiment.algo.gamma, gae_lambda=0.95)
        for key in ("values", "log_probs", "advantages", "returns"):
            mine = getattr(samples, "chances" if key == "log_probs" else key).reshape(48, 2)
            np.testing.assert_allclose(mine, getattr(buffer, key), rtol=1e-3, atol=2e-5, err_msg=key)
        np.testing.assert_allclose(brain.rollout.rewards[0], buffer.rewards, rtol=1e-4, atol=1e-5)
        if (
            isinstance(buffer.observations, np.ndarray)
            and samples.inputs.shape[-1] == buffer.observations.shape[-1] + 1
        ):
            seen = samples.inputs[0, :, :-1].reshape(buffer.observations.shape)
            np.testing.assert_allclose(seen, buffer.observations, rtol=1e-5, atol=1e-6)
    assert ours.step == sb3.step
    theirs = sb3.metrics()
    assert ours.stage.metrics() == {key: theirs[key] for key in theirs if key.startswith("rollout/")}
    assert (cut > 0) == ("wrappers" in experiment.env.model_fields_set)
    compare_normalizers(sb3_state.normalizer_state(sb3.normalizer), ours)
    sb3.close()
    stage.env.close()


def fail(_: Learner, error: Exception) -> None:
    raise error


def repeat_actions(ours: Brain, actions: Any) -> None:
    """Let our brain choose what SB3 chose."""
    steps = iter(actions)

    def choose(*_: Any) -> Any:
        chosen = next(steps).T[None]
        return chosen if ours.actions.has_deviation else chosen.astype(np.int64)

    ours.actions.choose = choose  # type: ignore[method-assign]


def compare_normalizers(theirs: Any, ours: Learner) -> None:
    assert (theirs is None) == (ours.stage.normalizer is None)
    if ours.stage.normalizer is None:
        return
    mine = ours.stage.normalizer.document()
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
    stage = Stage(experiment, root=ROOT)
    ours = Learner(Brain(experiment, stage, root=ROOT), stage, seed=1)
    ours.begin()
    idle = 0
    for _ in range(4):
        before, ended_before = ours.step, ours.stage.idle.copy()
        assert ours.brain.collect([ours], lambda: True, drop=fail)
        rollout = ours.brain.rollout
        previous = np.concatenate([ended_before[None], rollout.ended[0, :-1]])
        np.testing.assert_array_equal(rollout.idle[0], previous)
        assert not (rollout.idle & rollout.ended).any()
        idle += int(rollout.idle.sum())
        samples = rollout.samples(gamma=0.99, gae_lambda=0.95)
        assert samples.inputs.shape[1] == ours.step - before == 96 - rollout.idle.sum()
        assert np.abs(samples.inputs[0, :, 0]).max() <= 1.5, "a cart that had fallen was learned from"
        ours.brain.learn([ours])
        ours.check_health()
    assert idle > 10
    lengths = [length for _, length in ours.stage.recent]
    assert max(lengths) == 9
    ours.stage.env.close()


def test_a_rollout_that_is_nothing_but_late_resets_changes_no_weight() -> None:
    experiment = parse({
        "env": {"id": "tests.envs.swarm:Late", "num_envs": 2, "kwargs": {"horizon": 1}},
        "algo": {"name": "ppo", "rollout_steps": 1, "batch_size": 2, "update_epochs": 1, "total_timesteps": 8},
    })  # fmt: skip
    stage = Stage(experiment, root=ROOT)
    ours = Learner(Brain(experiment, stage, root=ROOT), stage, seed=1)
    ours.begin()
    changes = []
    while not ours.is_complete:
        before = ours.brain.weights.flat.copy()
        assert ours.brain.collect([ours], lambda: True, drop=fail)
        ours.brain.learn([ours])
        ours.check_health()
        changes.append(not np.array_equal(before, ours.brain.weights.flat))
    assert changes == [True, False, True, False, True, False, True]
    ours.stage.env.close()


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
