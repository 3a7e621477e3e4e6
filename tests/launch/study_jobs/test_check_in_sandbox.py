"""Asking the code of a tree: what it refuses is told with what helps."""

from __future__ import annotations

from pathlib import Path

from rlx.config.load import parse
from rlx.launch.study_jobs import check_in_sandbox

EYE = """
import gymnasium
import numpy


class Eye(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict(body=gymnasium.spaces.Box(-1, 1, (1,), numpy.float32))
    action_space = gymnasium.spaces.Discrete(2)
"""


def test_a_config_that_the_env_refuses_is_told_with_its_mend(tmp_path: Path) -> None:
    (tmp_path / "eye.py").write_text(EYE)
    experiment = parse({"backend": "sb3", "env": {"id": "eye.py:Eye"}, "algo": {"total_timesteps": 64}}, source="eye")
    found = check_in_sandbox.check_in_sandbox(experiment, tree=tmp_path)
    assert found.experiment is None
    assert "policy `mlp` cannot read them (-s policy.type=multi)" in found.problem
