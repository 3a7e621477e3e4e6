"""`auto` takes the fast backend where it applies and has passed its gate, and says why it took which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.config.load import config_hash, group_hash, parse
from rlx.config.schema import Experiment
from rlx.envs.make import inspect
from rlx.train.backends.fast import learning_gate
from rlx.train.backends.sb3 import requirements
from rlx.train.choose_backend import BackendChoice, choose


def experiment(env: str = "CartPole-v1", **sections: Any) -> Experiment:
    return parse({"env": {"id": env}, "algo": {"name": "ppo"}, **sections})


def chosen(made: Experiment) -> BackendChoice:
    return choose(made, inspect(made.env, root=Path.cwd()))


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_gate, "PASSED", {"Discrete": ("CartPole-v1", "Acrobot-v1")})


@pytest.fixture
def no_sb3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "PACKAGES", ("no_such_package",))


@pytest.mark.usefixtures("passed")
def test_fast_is_taken_where_its_gate_was_passed() -> None:
    choice = chosen(experiment())
    assert str(choice) == ("backend fast: PPO with an MLP on Discrete actions; gate passed on CartPole-v1, Acrobot-v1")
    assert choice.experiment.backend == "fast"


@pytest.mark.usefixtures("passed")
def test_sb3_is_taken_where_fast_does_not_apply() -> None:
    choice = chosen(experiment(algo={"name": "recurrent_ppo"}))
    assert choice.experiment.backend == "sb3"
    assert "recurrent_ppo" in choice.reason
    assert choice.problems == ()


@pytest.mark.usefixtures("passed")
def test_sb3_is_taken_where_the_gate_is_open_and_the_way_to_fast_is_named() -> None:
    choice = chosen(experiment("Pendulum-v1"))
    assert choice.experiment.backend == "sb3"
    assert "gate has not been passed on Box actions" in choice.reason
    assert "-s backend=fast" in choice.reason


@pytest.mark.usefixtures("passed", "no_sb3")
def test_without_sb3_fast_is_taken_before_its_gate_and_that_is_said() -> None:
    choice = chosen(experiment("Pendulum-v1"))
    assert choice.experiment.backend == "fast"
    assert "gate has not been passed on Box actions" in choice.reason
    assert "`no_such_package` is not installed" in choice.reason
    assert choice.problems == ()


@pytest.mark.usefixtures("no_sb3")
def test_where_neither_will_do_the_error_names_what_to_install_and_what_stands_against_fast() -> None:
    choice = chosen(experiment(algo={"name": "dqn"}))
    first, second = (problem for problem in choice.problems if problem.is_error)
    assert (first.message, first.hint) == (
        "`dqn` needs `no_such_package`, which is not installed",
        "pip install 'rlx[sb3]'",
    )
    assert "dqn" in second.message


@pytest.mark.usefixtures("passed")
@pytest.mark.parametrize("name", ["fast", "sb3"])
def test_a_config_that_names_a_backend_keeps_it(name: str) -> None:
    choice = chosen(experiment(backend=name))
    assert str(choice) == f"backend {name}: as the config says"


def test_masked_actions_have_a_gate_of_their_own() -> None:
    space = inspect(experiment().env, root=Path.cwd()).action_space
    masked = experiment(algo={"name": "maskable_ppo"})
    assert learning_gate.kind(experiment(), space) == "Discrete"
    assert learning_gate.kind(masked, space) == "masked Discrete"


def test_runs_of_two_backends_are_no_replicates() -> None:
    fast, sb3 = experiment(backend="fast"), experiment(backend="sb3")
    assert group_hash(fast) != group_hash(sb3)
    assert config_hash(fast) != config_hash(sb3)
