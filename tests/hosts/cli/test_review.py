"""`rlx review` as it is called, on a run that was trained for real."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project
from tests.diagnose.conftest import corridor_project, train_corridor

REWARDS = """
def arrive(next_observation):
    return float(next_observation[8])


def alive():
    return 1.0
"""


@pytest.fixture(scope="module")
def corridors(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = corridor_project(tmp_path_factory.mktemp("corridors"))
    train_corridor(project, "Corridor", seeds=1)
    return project


def test_a_reward_is_judged_on_what_a_run_keeps(corridors: Project) -> None:
    corridors.write("rewards.py", REWARDS)
    first = corridors.rlx("review", "rewards.py:arrive", "--trajectories", "corridor", code=3)
    assert "hint: rlx eval corridor_001 --keep-trajectories" in first.stderr
    corridors.rlx("eval", "corridor_001", "--keep-trajectories")
    second = corridors.rlx("review", "rewards.py:arrive", "--trajectories", "corridor", code=6)
    hint = second.stderr.split("failures: ")[1].strip()
    corridors.rlx(*hint.split()[1:])
    passed = corridors.rlx("review", "rewards.py:arrive", "--trajectories", "corridor")
    assert "preflight: passed on " in passed.stdout
    refused = corridors.rlx("review", "rewards.py:alive", "--trajectories", "corridor", "--json", code=4)
    data = json.loads(refused.stdout)
    assert data["preflight"]["is_refused"]
    assert data["findings"][0]["rule"] == "reward_ranks_failures"


def test_bad_targets_are_one_line(corridors: Project) -> None:
    corridors.write("rewards.py", REWARDS)
    assert "no run" in corridors.rlx("review", "rewards.py:alive", "--trajectories", "nothing", code=3).stderr
    unnamed = corridors.rlx("review", "rewards.py", "--trajectories", "corridor", code=2)
    assert "rlx review FILE.py:FUNCTION" in unnamed.stderr
    assert "`rewards.py` has no function or class `alvie`" in corridors.rlx("review", "rewards.py:alvie", code=3).stderr


def test_source_is_reviewed_with_its_lines(corridors: Project) -> None:
    corridors.write("shaky.py", "def reward(distance):\n    return 1.0 / distance\n")
    answer = corridors.rlx("review", "shaky.py").stdout
    assert "medium reward_unbounded: `1.0 / distance`" in answer
    assert "  shaky.py:2: 1.0 / distance" in answer
    data = json.loads(corridors.rlx("review", "shaky.py", "--json").stdout)
    assert (data["schema"], data["target"], data["preflight"]) == (1, "shaky.py", None)
    assert data["findings"][0]["evidence"] == [{"what": "shaky.py:2", "value": "1.0 / distance"}]
