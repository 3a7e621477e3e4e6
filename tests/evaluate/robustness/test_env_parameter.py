"""Parameters of the world as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.schema import Env
from rlx.errors import UsageError
from rlx.evaluate.robustness.env_parameter import parse_parameter, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5:15:6", (5, 7, 9, 11, 13, 15)),
        ("0.5:2:4", (0.5, 1.0, 1.5, 2.0)),
        ("5:6:3", (5.0, 5.5, 6.0)),
        ("0.01:10:4:log", (0.01, 0.1, 1.0, 10.0)),
        ("0.1:0.3:3", (0.1, 0.2, 0.3)),
        ("15:5:3", (5, 10, 15)),
        ("3,1,2.5,1", (1, 2.5, 3)),
        ("euler,other", ("euler", "other")),
        ("true,false", (False, True)),
        ("-1:1:3", (-1, 0, 1)),
        ("1e-3,1", (0.001, 1)),
    ],
)
def test_values_are_ranges_or_lists(text: str, values: tuple[object, ...]) -> None:
    assert parse_values(text) == pytest.approx(values) if isinstance(values[0], float) else parse_values(text) == values


def test_whole_numbers_stay_whole() -> None:
    assert all(type(value) is int for value in parse_values("5:15:6"))
    assert all(type(value) is float for value in parse_values("5.0:15:6"))


@pytest.mark.parametrize("text", ["5:15", "5:15:1", "a:b:3", "0:10:4:log", "1:2:3:4", "nan:1:3", ",", "0:1:1000"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_values(text)


@pytest.mark.parametrize("text", ["gravity", "=3", "gravity=", "atr:gravity=3", "attr:=3", "model:body_mass=heavy"])
def test_what_is_no_parameter_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_parameter(text)


def test_a_parameter_is_an_argument_an_attribute_or_a_factor_on_the_model() -> None:
    env = Env.model_validate({"id": "CartPole-v1", "kwargs": {"sutton_barto_reward": True}, "wrappers": ["flatten"]})
    argument, attribute, model = (
        parse_parameter("wind=3"),
        parse_parameter("attr:gravity=3"),
        parse_parameter("model:opt.gravity=3"),
    )
    assert argument.applied(env, 3).kwargs == {"sutton_barto_reward": True, "wind": 3}
    inner, outer = attribute.applied(env, 3).wrappers
    assert (inner.name, inner.kwargs, outer.name) == ("set_attributes", {"gravity": 3}, "flatten")
    assert model.applied(env, 2).wrappers[0].kwargs == {"opt.gravity": 2}


def test_the_nominal_value_is_what_the_environment_has(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import gymnasium\n"
        "class Base(gymnasium.Env):\n    def __init__(self, wind=2.5, *, mode='soft'):\n        pass\n"
        "class Own(Base):\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"
    )

    def nominal(text: str, **env: object) -> object:
        return parse_parameter(text).nominal(Env.model_validate(env), root=tmp_path)

    assert nominal("attr:gravity=3", id="CartPole-v1") == 9.8
    assert nominal("model:body_mass=3", id="Hopper-v5") == 1.0
    assert nominal("max_episode_steps=10", id="CartPole-v1") == 500
    assert nominal("sutton_barto_reward=true", id="CartPole-v1") is False
    assert nominal("sutton_barto_reward=true", id="CartPole-v1", kwargs={"sutton_barto_reward": True}) is True
    assert nominal("wind=1", id="own.py:Own") == 2.5
    assert nominal("mode=hard", id="own.py:Own") == "soft"
    assert nominal("other=1", id="own.py:Own") is None
