"""The types are strict where leniency would hide a mistake."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from rlx.config.schema import ALGORITHMS, Env, Experiment, Normalize, Ppo, Schedule, canonical_algorithm


@pytest.mark.parametrize(
    "keys",
    [
        {"batch_size": True},
        {"batch_size": "8"},
        {"batch_size": 0},
        {"batch_size": 8.5},
        {"gamma": True},
        {"gamma": math.nan},
        {"gamma": 1.01},
        {"learning_rate": 0},
        {"learning_rate": math.inf},
        {"learning_rate": {"linear": [1, -1]}},
        {"learning_rate": {"linear": [1, 0], "cosine": [1, 0]}},
        {"learning_rate": {}},
        {"entropy_coef": -0.1},
        {"use_sde": 1},
        {"normalize_advantage": "yes"},
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Ppo.model_validate({"name": "ppo", **keys})


@pytest.mark.parametrize(("value", "read"), [(1e5, 100_000), (64.0, 64), (7, 7)])
def test_a_whole_number_may_be_written_as_a_float(value: float, read: int) -> None:
    steps = Ppo.model_validate({"name": "ppo", "total_timesteps": value}).total_timesteps
    assert (steps, type(steps)) == (read, int)


@pytest.mark.parametrize(
    ("schedule", "remaining", "value"),
    [
        (Schedule(linear=(1.0, 0.0)), 1.0, 1.0),
        (Schedule(linear=(1.0, 0.0)), 0.25, 0.25),
        (Schedule(linear=(1.0, 0.5)), 0.0, 0.5),
        (Schedule(cosine=(1.0, 0.0)), 1.0, 1.0),
        (Schedule(cosine=(1.0, 0.0)), 0.5, 0.5),
        (Schedule(cosine=(1.0, 0.0)), 0.0, 0.0),
    ],
)
def test_a_schedule_moves_from_the_first_value_to_the_second(
    schedule: Schedule, remaining: float, value: float
) -> None:
    assert schedule.at(remaining) == pytest.approx(value)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("PPO", "ppo"), ("QR-DQN", "qrdqn"), ("RecurrentPPO", "recurrent_ppo"), ("maskable ppo", "maskable_ppo"),
     ("file.py:Mine", "file.py:Mine"), ("nope", "nope")],
)  # fmt: skip
def test_an_algorithm_has_one_name(spelling: str, name: str) -> None:
    assert canonical_algorithm(spelling) == name


def test_every_algorithm_names_itself() -> None:
    for name, model in ALGORITHMS.items():
        assert model.model_validate({"name": name}).name == name


def test_wrappers_have_short_forms() -> None:
    env = Env.model_validate({"id": "A", "wrappers": ["flatten", {"frame_stack": {"size": 4}}, {"rescale": None}]})
    assert [(wrapper.name, wrapper.kwargs) for wrapper in env.wrappers] == [
        ("flatten", {}),
        ("frame_stack", {"size": 4}),
        ("rescale", {}),
    ]


@pytest.mark.parametrize(
    ("seed", "seeds", "trained"), [(3, None, (3,)), (3, 2, (3, 4)), (3, (7, 1), (7, 1)), (0, 1, (0,))]
)
def test_seeds_are_a_count_or_a_list(seed: int, seeds: object, trained: tuple[int, ...]) -> None:
    experiment = Experiment.model_validate({"env": {"id": "A"}, "algo": {"name": "ppo"}, "seed": seed, "seeds": seeds})
    assert experiment.training_seeds() == trained


def test_an_experiment_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        Normalize().obs = True  # type: ignore[misc]
