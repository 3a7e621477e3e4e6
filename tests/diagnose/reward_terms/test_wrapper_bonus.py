"""A bonus that a wrapper pays is farmed: one finding with both curves, the same in `diagnose` and `reflect`."""

from __future__ import annotations

import pytest

from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.load_case import read_case
from rlx.diagnose.reward_terms.reflection import reflect
from tests.diagnose.conftest import corridor_project, train_corridor

BONUS = """
import gymnasium


class Plain(gymnasium.Wrapper):
    \"\"\"Hides reward terms and success, as most environments do.\"\"\"

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {}


class Bonus(gymnasium.RewardWrapper):
    \"\"\"Pays for standing at the left end, where the goal is not.\"\"\"

    def reward(self, reward):
        return reward + 0.5 * (self.env.unwrapped.cell <= 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("wrappers", "metric"), [((), "success_rate"), (("Plain",), "evaluation return")])
def test_a_farmed_bonus_of_a_wrapper_is_one_finding_with_both_curves(
    tmp_path_factory: pytest.TempPathFactory, wrappers: tuple[str, ...], metric: str
) -> None:
    project = corridor_project(tmp_path_factory.mktemp("bonus"))
    project.write("envs/bonus.py", BONUS)
    named = [f"envs/bonus.py:{name}" for name in (*wrappers, "Bonus")]
    env = {"id": "envs/corridors.py:Corridor", "num_envs": 4, "wrappers": named}
    run = train_corridor(project, "Corridor", env=env)
    (found,) = [finding for finding in diagnose(read_case(run)).findings if finding.rule == "reward_hacking"]
    assert found.severity == "high"
    curves = {evidence.what: [value for value in evidence.series if value is not None] for evidence in found.evidence}
    task = curves[f"{metric} at the end"]
    returns = curves["rollout/return_mean per episode at the end"]
    assert task[-1] < task[0]
    assert returns[-1] > returns[0]
    document, _ = reflect(run)
    assert [row for row in document["findings"] if row["rule"] == "reward_hacking"] == [found.document()]
    assert document["task"]["metric"] == metric
    assert document["hacking_risk"] == "high"
