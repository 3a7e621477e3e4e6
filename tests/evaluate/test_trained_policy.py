"""What `rlx.load` returns: one observation or a batch, and a clear error for anything else, whatever the backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

import rlx
from rlx.config.schema import Experiment
from rlx.errors import UsageError
from rlx.evaluate.stored_code import trust_stored_code
from rlx.evaluate.trained_policy import TrainedPolicy
from rlx.testing import RecordingSession
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import TOYS, tiny

BACKENDS = {"fast": FastTrainer, "sb3": Sb3Trainer}


@pytest.fixture(scope="module", autouse=True)
def own_checkpoints() -> Iterator[None]:
    """Trust the code that every checkpoint names, as `--trust` does."""
    trust_stored_code(is_trusted=True)
    yield
    trust_stored_code(is_trusted=False)


def trained(experiment: Experiment, backend: str, folder: Path) -> TrainedPolicy:
    session = RecordingSession(experiment, folder, root=folder)
    BACKENDS[backend]().train(cast("Any", session))
    return rlx.load(folder / "latest")


@pytest.fixture(scope="module", params=BACKENDS)
def cartpole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TrainedPolicy:
    return trained(tiny("ppo", total_timesteps=32), request.param, tmp_path_factory.mktemp("cartpole"))


@pytest.fixture(scope="module", params=BACKENDS)
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TrainedPolicy:
    experiment = tiny("ppo", env={"id": f"{TOYS}:Mixed"}, policy={"type": "multi"}, total_timesteps=32)
    return trained(experiment, request.param, tmp_path_factory.mktemp("mixed"))


def test_one_observation_gives_one_action_that_the_environment_takes(cartpole: TrainedPolicy) -> None:
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    action = cartpole.predict(observation)
    assert np.ndim(action) == 0
    assert env.action_space.contains(action)
    assert action == cartpole.predict(observation.tolist()) == cartpole.predict(observation.astype(np.float64))
    env.step(action)


def test_a_batch_gives_one_action_per_row(cartpole: TrainedPolicy) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    actions = cartpole.predict(rows)
    assert actions.shape == (5,)
    assert actions.tolist() == [cartpole.predict(row) for row in rows]
    assert cartpole.predict(rows[:1]).shape == (1,)


@pytest.mark.parametrize(
    ("observations", "says"),
    [
        (np.zeros(3), "shape (3,), but the policy takes shape (4,), or a batch of shape (rows, 4)"),
        (np.zeros((4, 5)), "shape (4, 5)"),
        (np.zeros((0, 4)), "shape (0, 4)"),
        (np.zeros((2, 2, 4)), "shape (2, 2, 4)"),
        (7.0, "shape ()"),
        ([0.0, 0.0, 0.0, float("nan")], "holds NaN"),
        ([[0.0, 1.0], [0.0]], "rows have different lengths"),
        (["a", "b", "c", "d"], "not made of numbers"),
        (None, "not made of numbers"),
        ({"x": np.zeros(4)}, "not made of numbers"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(cartpole: TrainedPolicy, observations: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        cartpole.predict(observations)
    assert says in caught.value.message


def test_masks_of_a_policy_that_was_trained_without_are_refused(cartpole: TrainedPolicy) -> None:
    with pytest.raises(UsageError, match="trained without action masks"):
        cartpole.predict(np.zeros(4), masks=[True, False])


def test_structured_observations_are_taken_one_or_many_at_a_time(mixed: TrainedPolicy) -> None:
    one = {"numbers": [0.1, 0.2, 0.3], "choice": 2, "bits": [0, 1]}
    two = {key: [value, value] for key, value in one.items()}
    assert mixed.predict(two).tolist() == [mixed.predict(one)] * 2
    with pytest.raises(UsageError, match="keys"):
        mixed.predict({"numbers": [0.1, 0.2, 0.3], "choice": 2})
    with pytest.raises(UsageError, match="the observation is a list"):
        mixed.predict([0.1, 0.2, 0.3])
    with pytest.raises(UsageError, match="different numbers of rows"):
        mixed.predict({**two, "choice": 2})
    with pytest.raises(UsageError, match="outside Discrete"):
        mixed.predict({**one, "choice": 3})
    with pytest.raises(UsageError, match="cannot hold"):
        mixed.predict({**one, "choice": 1.5})


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_fit_the_observations(backend: str, tmp_path: Path) -> None:
    policy = trained(tiny("maskable_ppo", total_timesteps=32), backend, tmp_path)
    observation = policy.observation_space.sample()
    assert policy.predict(observation, masks=[False, False, True, False]) == 2
    with pytest.raises(UsageError, match="masks have the shape"):
        policy.predict(observation[None], masks=[True] * 4)
