"""Reward terms are summed from whatever form a vector environment reports them in."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlx.config.schema import Env
from rlx.envs.reward_terms import TermSums
from rlx.envs.vector import make_vector
from tests.envs.worlds import Walk

GOES_ON, ENDED = np.array([False, False]), np.array([True, False])


class Sparse(Walk):
    """Reports a whole number first, halves later, and a bonus at the end only; its reset reports nonsense."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, _ = super().reset(**options)
        self.count = 0
        return observation, {"reward_terms": {"speed": 1e6}}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *_ = super().step(action)
        self.count += 1
        terms: dict[str, Any] = {"speed": 0 if self.count == 1 else -0.5, "note": "text"}
        if self.count == 4:
            terms["bonus"] = np.float32(8)
        return observation, reward, self.count == 4, False, {"reward_terms": terms}


class DictSparse(Sparse):
    """The same with observations that are no plain array."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space: Any = spaces.Dict({"place": self.observation_space})

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(**options)
        return {"place": observation}, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        return ({"place": observation}, *rest)


@pytest.mark.parametrize("kind", ["Sparse", "DictSparse"])
@pytest.mark.parametrize(("vectorization", "keeps"), [("sync", True), ("sync", False), ("async", True)])
def test_means_are_per_step_whatever_vector_steps_them(
    kind: str, vectorization: str, keeps: bool, tmp_path: Path
) -> None:
    env = Env(id=f"{__name__}:{kind}", vectorization=vectorization)
    vector: Any = make_vector(env, root=tmp_path, num_envs=2)
    vector.keeps_infos = keeps
    vector.reset(seed=0)
    sums = TermSums()
    for _ in range(8):
        *_, terminated, truncated, infos = vector.step(np.ones(2, dtype=np.int64))
        sums.add(infos, terminated | truncated)
    vector.close()
    assert sums.read(16) == {
        "reward/term/speed": -0.375,
        "reward/term_abs/speed": 0.375,
        "reward/term/bonus": 2.0,
        "reward/term_abs/bonus": 2.0,
    }


def test_a_vector_environment_of_ones_own_may_leave_out_masks() -> None:
    sums = TermSums()
    report = partial(sums.add, {"reward_terms": {"near": np.array([1.0, -3.0]), "odd": np.zeros(5)}})
    report(GOES_ON)
    report(ENDED)
    report(GOES_ON, np.array([False, True]))
    assert sums.read(5) == {"reward/term/near": -3 / 5, "reward/term_abs/near": 9 / 5}


def test_masks_say_who_reported_and_an_ended_episode_reports_its_last_step() -> None:
    sums = TermSums()
    late = {"near": np.array([9.0, 2.0]), "_near": np.array([True, True])}
    last = {"near": np.array([5.0, 7.0]), "_near": np.array([True, False])}
    sums.add({"reward_terms": late, "final_info": {"reward_terms": last}}, ENDED)
    assert sums.read(1)["reward/term/near"] == 7.0


def test_a_term_that_is_not_reported_any_more_is_zero() -> None:
    sums = TermSums()
    sums.add({"reward_terms": {"near": np.ones(2)}}, GOES_ON)
    sums.read(2)
    assert sums.read(4) == {"reward/term/near": 0.0, "reward/term_abs/near": 0.0}


def test_what_is_no_mapping_of_numbers_is_no_term() -> None:
    sums = TermSums()
    for odd in (np.ones(2), {"near": np.array(["a", "b"])}, {"near": 3.0}):
        sums.add({"reward_terms": odd}, GOES_ON)
    assert sums.read(2) == {}


def test_sums_can_be_kept_and_put_back() -> None:
    sums, other = TermSums(), TermSums()
    sums.add({"reward_terms": {"near": np.ones(2)}}, GOES_ON)
    other.restore(sums.document())
    assert other.read(2) == sums.read(2) == {"reward/term/near": 1.0, "reward/term_abs/near": 1.0}
