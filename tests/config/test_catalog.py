"""The configs that ship are whole, fit, and name their environment."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from rlx.config import catalog
from rlx.config.cross_check import cross_check
from rlx.config.load import check, read
from rlx.errors import NotFound


@pytest.mark.parametrize("name", catalog.names())
def test_a_catalog_config_loads_without_a_word(name: str) -> None:
    checked = check(Path(f"catalog:{name}"), devices=("cpu",))
    assert checked.problems == ()
    assert checked.experiment is not None
    assert checked.experiment.env.id == catalog.ENTRIES[name].env_id


@pytest.mark.parametrize("name", catalog.names())
def test_its_environment_is_the_newest_of_its_kind(name: str) -> None:
    spec = gymnasium.spec(catalog.ENTRIES[name].env_id)
    versions = [other.version or 0 for other in gymnasium.registry.values() if other.name == spec.name]
    assert spec.version == max(versions)


@pytest.mark.parametrize("name", catalog.names())
def test_its_text_opens_with_what_the_task_is(name: str) -> None:
    text = catalog.read(name)
    assert text.startswith("# ")
    assert "\t" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("name", catalog.names())
def test_a_tenth_of_the_budget_is_still_a_run(name: str) -> None:
    total = read(Path(f"catalog:{name}")).algo.total_timesteps
    short = read(Path(f"catalog:{name}"), overrides=[f"algo.total_timesteps={total // 10}"])
    assert [problem for problem in cross_check(short) if problem.is_error] == []


def test_an_environment_finds_its_config() -> None:
    assert catalog.for_env("CartPole-v1") == "cartpole"
    assert catalog.for_env("Nope-v0") is None


def test_files_and_entries_are_the_same_set() -> None:
    folder = catalog.path("cartpole").parent
    assert sorted(path.stem for path in folder.iterdir()) == sorted(catalog.names())


def test_an_unknown_entry_names_the_one_that_was_meant() -> None:
    with pytest.raises(NotFound) as caught:
        catalog.path("cart_pole")
    assert caught.value.hint == "did you mean `catalog:cartpole`?"
