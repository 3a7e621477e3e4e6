"""Everything that makes a comparison invalid, on plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlx.compare.arms import Arm, Training
from rlx.compare.comparability import SEED_RANGES, objections, trained_changes

VERSIONS = {"torch": "2.4", "numpy": "2.0"}
CONFIG = {"run_name": "a", "seed": 0, "algo": {"name": "ppo", "learning_rate": 0.001}, "log": {"every": 1}}


def side(name: str, seeds: range = range(3), *, rate: float = 0.001, **fields: Any) -> Arm:
    """Return a finished side without any fault; `fields` change every training or the side itself."""
    of_side = {key: fields.pop(key) for key in ("planned_steps", "phase", "config") if key in fields}
    training = {"step": 1000, "episodes": 20, "codes": ("abc",), "versions": (VERSIONS,), **fields}
    trainings = tuple(
        Training(seed, "completed", score=float(seed), weights=f"{name}{seed}", **training) for seed in seeds
    )
    config = {**CONFIG, "run_name": name, "algo": {"name": "ppo", "learning_rate": rate}}
    return Arm(name, trainings, **{"config": config, "planned_steps": 1000, "evaluate": f"rlx eval {name}", **of_side})


def reasons(base: Arm, new: Arm) -> list[str]:
    return [objection.reason for objection in objections(base, new)]


def changed(name: str = "b", **fields: Any) -> Arm:
    return side(name, rate=0.01, **fields)


def test_a_changed_config_on_the_same_code_budget_and_versions_is_compared() -> None:
    assert reasons(side("a"), changed()) == []
    assert [change.key for change in trained_changes(side("a"), changed())] == ["algo.learning_rate"]


def test_budgets_that_differ_beyond_a_rollout_are_refused() -> None:
    assert reasons(side("a"), changed(step=1040)) == []
    assert reasons(side("a"), changed(step=1100)) == ["step counts differ: a 1,000, b 1,100"]
    assert reasons(side("a"), changed(planned_steps=2000, step=2000)) == ["budgets differ: a 1,000 steps, b 2,000"]


def test_a_seed_evaluated_before_its_end_is_refused() -> None:
    (one, *_) = objections(side("a"), changed(step=970))
    assert (one.reason, one.command) == ("seed 0 of b was evaluated at 970 of 1,000 steps", "rlx eval b")


def test_attempts_with_different_code_or_versions_in_one_run_are_refused() -> None:
    mixed = changed()
    mixed = replace(mixed, trainings=(*mixed.trainings[:2], replace(mixed.trainings[2], codes=("abc", "def"))))
    assert reasons(side("a"), mixed) == ["the attempts of b ran different code: abc, def"]
    upgraded = replace(mixed.trainings[2], codes=("abc",), versions=({**VERSIONS, "torch": "2.5"},))
    mixed = replace(mixed, trainings=(*mixed.trainings[:2], upgraded))
    assert reasons(side("a"), mixed)[0] == "the attempts of b ran under different versions: torch 2.4 → 2.5"


def test_another_backend_is_a_change_like_any_other() -> None:
    fast, sb3 = (side(name, config={**CONFIG, "backend": name}) for name in ("fast", "sb3"))
    assert reasons(sb3, fast) == []
    assert [(change.key, change.before, change.after) for change in trained_changes(sb3, fast)] == [
        ("backend", "sb3", "fast")
    ]


def test_other_code_between_the_sides_is_the_change_itself() -> None:
    assert reasons(side("a"), side("b", codes=("def",))) == []


def test_other_versions_are_a_change_too_and_two_changes_at_once_are_refused() -> None:
    newer = ({**VERSIONS, "torch": "2.5"},)
    assert reasons(side("a"), side("b", versions=newer)) == []
    assert reasons(side("a"), changed(versions=newer)) == [
        "versions differ in addition to the change itself: torch 2.4 → 2.5"
    ]


@pytest.mark.parametrize("key", ["run_name", "seed", "seeds", "log", "resources", "checkpoint", "eval"])
def test_only_other_seeds_or_what_is_kept_of_a_run_is_no_change(key: str) -> None:
    other = replace(side("b", range(10, 13)), config={**side("a").config, key: "other"})
    assert reasons(side("a"), other) == ["only the seeds differ between a and b: there is no change to judge"]


def test_without_git_and_hash_it_is_said_that_code_cannot_be_seen() -> None:
    bare = {"codes": ("no git",)}
    (reason,) = reasons(side("a", **bare), side("b", range(5, 8), **bare))
    assert reason.endswith("there is no change to judge (rlx could not hash the code, so it cannot see changes in it)")


def test_bit_identical_weights_at_an_equal_seed_mean_that_the_change_had_no_effect() -> None:
    base, new = side("a"), changed()
    same = tuple(replace(one, weights=f"a{one.seed}") for one in new.trainings[:2])
    assert reasons(base, replace(new, trainings=(same[0], *new.trainings[1:]))) == [
        "the change had no effect: seed 0 ended with bit-identical weights on both sides"
    ]
    assert "seeds 0, 1 ended" in reasons(base, replace(new, trainings=(*same, new.trainings[2])))[0]
    elsewhere = replace(new.trainings[2], weights="a1")
    assert reasons(base, replace(new, trainings=(*new.trainings[:2], elsewhere))) == []


def test_a_training_counted_twice_is_refused() -> None:
    new = changed()
    twice = (*new.trainings[:2], replace(new.trainings[2], weights="b0"))
    assert reasons(side("a"), replace(new, trainings=twice)) == [
        "seeds 0 and 2 of b are one training: their weights are bit-identical"
    ]


def test_a_search_seed_never_confirms() -> None:
    base = side("a", range(1000, 1003), phase="confirm")
    (one,) = objections(base, side("b", range(999, 1002), rate=0.01, phase="confirm"))
    assert one.reason == "seed 999 of b belongs to search, not to confirm"
    assert objections(base, side("b", range(1500, 1503), rate=0.01, phase="confirm")) == []
    assert objections(side("a"), changed(phase="search")) == []


def test_the_seed_ranges_do_not_overlap_and_what_lies_above_them_is_nobodys() -> None:
    search, confirm = SEED_RANGES.values()
    assert (search.start, search.stop, confirm.start, confirm.stop) == (0, 1000, 1000, 2**20)
    (one,) = objections(side("a", range(3), phase="search"), side("b", (2**20, 1, 2), rate=0.01, phase="search"))
    assert one.reason == "seed 1048576 of b belongs to no phase, not to search"


def test_evaluations_of_different_size_are_refused() -> None:
    assert reasons(side("a"), changed(episodes=3)) == ["evaluations differ in size: 3 and 20 episodes"]


def test_a_side_on_which_every_seed_crashed_has_nothing_to_compare() -> None:
    crashed = replace(changed(), trainings=(Training(0, "failed", reason="loss is nan"),))
    (one, *_) = objections(side("a", codes=(), versions=()), crashed)
    assert (one.reason, one.command) == ("no seed of b has a finite score: loss is nan", "rlx info b --traceback")


def test_every_reason_is_given_at_once() -> None:
    assert len(reasons(side("a"), changed(step=2000, episodes=3, versions=({"torch": "3"},)))) == 3
