"""The promises of the verdict, on runs that were really trained."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from rlx.compare.code_version import CurrentCode
from rlx.loop.settle.settle import Contest, Limits
from rlx.runs import interim_looks
from rlx.runs.run import Run
from tests.conftest import Project
from tests.loop.conftest import FAST, FROZEN, train_here, write_config

pytestmark = pytest.mark.slow

POLE = '''
"""CartPole in other units, and one that teaches every fourth training seed the opposite."""

from gymnasium.envs.classic_control import CartPoleEnv

FIRST, BLOCK = 2**30, 2**10  # where the reset seeds of training seed 0 begin, and how many each has


class Pole(CartPoleEnv):
    max_episode_steps = 100

    def __init__(self, scale=1.0, shift=0.0, risky=False):
        super().__init__()
        self.scale, self.shift, self.risky, self.sign = scale, shift, risky, 1.0

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            fails = self.risky and seed >= FIRST and (seed - FIRST) // BLOCK % 4 == 0
            self.sign = -1.0 if fails else 1.0
        self.begins = True
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        reward = self.sign * self.scale * reward + (self.shift if self.begins else 0.0)
        self.begins = False
        return observation, reward, *rest
'''


def pole(**kwargs: Any) -> dict[str, Any]:
    return {"id": "envs/pole.py:Pole", "kwargs": kwargs}


def judge(base: Run, new: Run, project: Project, **kinds: bool) -> dict[str, Any]:
    """Settle two runs that have their ten seeds, without training any further."""
    contest = Contest(base, new, ground=CurrentCode(project.root), limits=Limits(10), report=lambda _: None, **kinds)
    return contest.settle().document()


@pytest.fixture
def poles(hills: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("RLX_ROOT", str(hills.root))
    hills.write("envs/pole.py", POLE)
    return hills


def test_a_better_config_is_better_in_every_unit_and_the_same_config_is_not(poles: Project) -> None:
    answers = []
    for name, kwargs in (("plain", {}), ("scaled", {"scale": 1000.0}), ("shifted", {"shift": -500.0})):
        frozen = write_config(poles, f"{name}_frozen", stride=FROZEN, env=pole(**kwargs))
        fast = write_config(poles, f"{name}_fast", stride=FAST, env=pole(**kwargs))
        runs = train_here(poles, frozen, range(10)), train_here(poles, fast, range(10))
        answers.append([judge(*pair, poles) for pair in (runs, runs[::-1])])
    plain, scaled, shifted = answers
    assert [answer["verdict"] for answer in plain] == ["better", "worse"]
    for units in (scaled, shifted):
        assert [(one["verdict"], one["p"], one["look"]) for one in units] == [
            (one["verdict"], one["p"], one["look"]) for one in plain
        ]
    assert scaled[0]["leaning"] == pytest.approx(1000 * plain[0]["leaning"])
    assert shifted[0]["leaning"] == pytest.approx(plain[0]["leaning"])

    disjoint = train_here(poles, "configs/plain_fast.yaml", range(500, 510))
    same = judge(poles.run("plain_fast_001"), disjoint, poles, is_replication=True)
    assert same["verdict"] == "inconclusive"
    assert judge(poles.run("plain_fast_001"), disjoint, poles)["verdict"] == "invalid"


def test_a_config_that_fails_on_every_fourth_seed_is_not_better_for_its_lucky_ones(poles: Project) -> None:
    steady = train_here(poles, write_config(poles, "steady", stride=0.15, steps=1500, env=pole()), range(10))
    config = write_config(poles, "risky", stride=FAST, steps=1500, env=pole(risky=True))
    data = judge(steady, train_here(poles, config, range(10)), poles)
    ours, theirs = (scores_of(name, poles) for name in ("steady_001", "risky_001"))
    assert max(theirs[seed] for seed in (0, 4, 8)) < 15
    assert median(theirs.values()) > median(ours.values()) + 30
    assert abs(data["leaning"]) < 15
    assert data["verdict"] == "inconclusive"


def scores_of(name: str, project: Project) -> dict[int, float]:
    """Return a run's scores in the last look that was taken."""
    row = interim_looks.read(project.root)[-1]
    (side,) = [side for side in (row.baseline, row.candidate) if side.run == name]
    return dict(side.scores)
