from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from rlx.envs.resolve_id import creator_of, latest_specs, missing_package, nearest, spec_of
from rlx.errors import ConfigError, NotFound


def test_only_the_newest_version_of_each_name_is_latest() -> None:
    newest = latest_specs()
    assert "CartPole-v1" in newest
    assert "CartPole-v0" not in newest
    assert "phys2d/CartPole-v1" in newest


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("Pendulm-v1", "Pendulum-v1"), ("phys2d/CartPol-v1", "phys2d/CartPole-v1"), ("taxi", "Taxi-v4"), ("xyzxyz", None)],
)
def test_the_nearest_name_is_found(wrong: str, meant: str | None, tmp_path: Path) -> None:
    assert nearest(wrong, root=tmp_path) == meant


def test_a_registered_id_has_its_spec(tmp_path: Path) -> None:
    assert spec_of("Acrobot-v1", root=tmp_path).max_episode_steps == 500
    with pytest.raises(NotFound):
        spec_of("Acrobat-v9", root=tmp_path)


def test_an_id_that_is_only_a_vector_is_refused(tmp_path: Path) -> None:
    spec = gymnasium.envs.registration.EnvSpec("Many-v0", vector_entry_point="a:b")
    with pytest.raises(ConfigError, match="only be made as a vector"):
        creator_of(spec, tmp_path)


def test_a_missing_dependency_of_somebody_elses_environment_keeps_their_hint() -> None:
    error = gymnasium.error.DependencyNotInstalled("run `pip install\nthat`")
    found = missing_package(error, "Their-v0", "theirs.envs")
    assert found is not None
    assert found.hint == "run `pip install that`"
    assert missing_package(ValueError("x"), "Their-v0", "theirs.envs") is None
