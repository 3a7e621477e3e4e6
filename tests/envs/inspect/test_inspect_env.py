from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.diagnose.env_checks.env_findings import check_env
from rlx.envs.inspect.inspect_env import inspect

HERE = Path(__file__).parents[1]


def rules(name: str) -> dict[str, str]:
    """Return what is found in one of the odd environments, with its severity."""
    found = check_env(inspect(Env(id=f"odd.py:{name}"), root=HERE, seconds=20))
    return {finding.rule: finding.severity for finding in found}


@pytest.mark.parametrize("name", ["Plain", "Pictures", "Masked", "Carts"])
def test_nothing_is_wrong_with(name: str) -> None:
    assert "high" not in rules(name).values()
    assert "medium" not in rules(name).values()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("DeadComponent", "dead_action"),
        ("DeadNumber", "dead_action"),
        ("GlobalChance", "global_generators"),
        ("OwnChance", "seed_ignored"),
        ("NanReward", "not_finite"),
        ("NanObservation", "not_finite"),
        ("ListObservation", "obs_type"),
        ("OldStep", "api"),
        ("OldReset", "api"),
        ("NoSeed", "env_raises"),
        ("ClassState", "shared_state"),
        ("Leaks", "state_leaks"),
        ("Live", "obs_aliased"),
        ("ChangesAction", "action_modified"),
        ("Endless", "never_ends"),
        ("Blind", "obs_constant"),
        ("FixedLength", "time_limit_as_termination"),
        ("EmptyMask", "masks"),
        ("Crosstalk", "worlds_interfere"),
    ],
)
def test_what_is_wrong_is_found(name: str, rule: str) -> None:
    assert rules(name)[rule] in ("high", "medium")


def test_a_reward_that_sinks_with_time_is_a_remark() -> None:
    assert rules("Sinking")["reward_depends_on_time"] == "low"


def test_only_the_cause_of_several_symptoms_is_named() -> None:
    assert set(rules("GlobalChance")) == {"global_generators"}


def test_the_global_generators_are_left_as_they_were() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[union-attr]
    inspect(Env(id="odd.py:GlobalChance"), root=HERE, seconds=5)
    assert (np.random.get_state()[1] == before).all()


def test_what_could_not_be_tried_is_said() -> None:
    record = inspect(Env(id="odd.py:OldStep"), root=HERE, seconds=5)
    assert "seeding" in dict(record.unchecked)
    assert record.checked == []
