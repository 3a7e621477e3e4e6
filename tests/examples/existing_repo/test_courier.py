"""The example repository trains and is measured by its own programs, and by rlx through its command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlx.runs.checkpoints import foreign_checkpoint
from tests.conftest import Project

REPOSITORY = Path(__file__).parents[3] / "examples" / "existing_repo"
pytestmark = pytest.mark.slow


def call(*words: str, folder: Path = REPOSITORY) -> str:
    place = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=place, capture_output=True, text=True, check=True
    ).stdout


def test_it_trains_is_reproducible_and_success_is_measured_by_its_own_eval(tmp_path: Path) -> None:
    for name in ("one", "two"):
        call("train.py", "--seed=3", "--steps=200000", f"--out={tmp_path / name}")
    one, two = (foreign_checkpoint.sha256(tmp_path / name / "policy.npz") for name in ("one", "two"))
    assert one == two
    shown = json.loads(call("eval.py", f"--checkpoint={tmp_path / 'one' / 'policy.npz'}", "--episodes=20",
                            f"--out={tmp_path / 'result.json'}"))  # fmt: skip
    written = json.loads((tmp_path / "result.json").read_text())
    assert shown == {key: written[key] for key in ("success", "return", "length", "drowned")}
    assert len(written["episodes"]) == 20


def test_a_key_of_its_config_can_be_set_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    call("train.py", "--seed=0", "--steps=50000", f"--out={tmp_path / 'a'}")
    call("train.py", "--seed=0", "--steps=50000", f"--out={tmp_path / 'b'}", "reward.effort=3.0")
    assert foreign_checkpoint.sha256(tmp_path / "a" / "policy.npz") != foreign_checkpoint.sha256(
        tmp_path / "b" / "policy.npz"
    )
    with pytest.raises(subprocess.CalledProcessError):
        call("train.py", "--seed=0", f"--out={tmp_path / 'c'}", "reward.efort=3.0")


def test_rlx_is_nowhere_in_it() -> None:
    sources = [*REPOSITORY.rglob("*.py"), REPOSITORY / "pyproject.toml"]
    assert [path for path in sources if "rlx" in path.read_text()] == []


def test_rlx_trains_it_by_its_command(project: Project) -> None:
    shutil.copytree(REPOSITORY, project.root, dirs_exist_ok=True)
    command = {
        "train": ["python", "train.py", "--seed={seed}", "--out={out}", "--steps={steps}", "{overrides}"],
        "overrides": {"reward.effort": 0.1},
        "metrics": {
            "reader": "tensorboard",
            "path": "{out}/tb",
            "names": {"rollout/return_mean": "Train/mean_reward", "rollout/success_rate": "Train/success"},
        },
        "checkpoint": "{out}/policy.npz",
        "python_path": ["src", "."],
    }
    config = {"run_name": "courier", "backend": "command", "algo": {"total_timesteps": 400_000}, "command": command}
    project.write("configs/rlx.yaml", yaml.safe_dump(config))
    project.rlx("train", "configs/rlx.yaml", "--seeds", "2")
    run = project.run("courier_001")
    assert run.status == "completed"
    assert {"rollout/return_mean", "rollout/success_rate", "Reward/effort"} <= set(run.metric_names())
    assert all(seed.step == 400_000 for seed in run.seeds)
