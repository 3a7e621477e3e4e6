"""A small repository with git, its tasks and contracts that are settled: what the tests take points away from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx import external_programs, files
from rlx.config.schema import Source
from rlx.study.contract import fixes
from rlx.study.contract.contract import POINTS, Contract
from rlx.study.task import infer_task
from rlx.study.task import task as tasks
from rlx.study.task.task import PathsAndKeys, Task

ENV = '''"""A lift."""

import gymnasium

from envs.physics import GRAVITY


class Lift(gymnasium.Env):
    """Goes up."""

    def step(self, action):
        reward = self._reward(action)
        return None, reward, False, False, {"is_success": True}

    def _reward(self, action):
        height = 1.0
        return 2.0 * height - 0.1 * action ** 2
'''
PHYSICS = "GRAVITY = 9.81\n"
CONFIG = """run_name: lift
env:
  id: envs/lift.py:Lift
  kwargs: {difficulty: 1, friction: 0.5}
algo: {name: ppo, total_timesteps: 4096, learning_rate: 3e-4, gamma: 0.99}
eval:
  metric: success_rate
"""
TRAIN = """import argparse

from world.arena import Arena

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="out")
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--bonus", type=float, default=-1.0)
parser.add_argument("--layers", type=int, default=2)
"""
EVAL = "from world.arena import Arena\n\nprint('success=0.5')\n"
ARENA = """class Arena:
    def reward(self):
        return 1.0

    def done(self):
        return False
"""

HYDRA = """import hydra


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    pass
"""


def write(root: Path, path: str, text: str) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def commit(root: Path) -> str:
    """Commit everything and return the hash."""
    if not (root / ".git").exists():
        external_programs.git("init", "--quiet", folder=root)
    external_programs.git("add", "-A", folder=root)
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    assert external_programs.git(*who, "commit", "--quiet", "--allow-empty", "-m", "state", folder=root) is not None
    return (external_programs.git("rev-parse", "HEAD", folder=root) or "").strip()


def rlx_repo(root: Path) -> str:
    """Write a project with its own environment and config; return its commit."""
    for path, text in (("envs/lift.py", ENV), ("envs/physics.py", PHYSICS), ("configs/lift.yaml", CONFIG)):
        write(root, path, text)
    (root / "rlx.toml").touch()
    return commit(root)


def rlx_task(root: Path) -> Task:
    return infer_task.task_from_config(Path("configs/lift.yaml"), root=root, name="lift")


def foreign_repo(root: Path) -> str:
    """Write a repository with its own train.py and eval.py; return its commit."""
    for path, text in (("train.py", TRAIN), ("eval.py", EVAL), ("world/arena.py", ARENA), ("world/__init__.py", "")):
        write(root, path, text)
    return commit(root)


def foreign_task(root: Path) -> Task:
    commands = infer_task.Commands(
        train=("python", "train.py", "--seed", "{seed}", "--out", "{out}"),
        eval=("python", "eval.py", "{checkpoint}", "--episodes", "{episodes}", "--seed", "{episode_seed}"),
        metrics=Source(reader="tensorboard", path="{out}/tb", names={"return": "charts/return"}),
        result=Source(reader="stdout", pattern=r"success=(?P<success>\S+)", names={"energy": "energy"}),
        checkpoint="{out}/model.npz",
        mission="Reach the goal more often.",
        surfaces={"reward": PathsAndKeys(paths=("world/arena.py::Arena.reward",), keys=("bonus",))},
    )
    return infer_task.task_from_commands(commands, root=root, name="arena")


def hydra_task(root: Path, *, program: str = HYDRA, config: str = "defaults: [agent: ppo]\n") -> Task:
    write(root, "train.py", program)
    write(root, "conf/config.yaml", config)
    write(root, "conf/agent/ppo.yaml", "lr: 0.25\n")
    words = ("python", "train.py", "seed={seed}", "out={out}")
    return infer_task.task_from_commands(infer_task.Commands(train=words), root=root, name="walk")


def contract_of(task: Task, root: Path, commit: str, **sections: Any) -> Contract:
    """Return a contract with all eight points settled, some sections replaced (None takes one away)."""
    is_rlx = task.adapter.kind == "rlx"
    config = (root / task.adapter.config).read_bytes() if task.adapter.config else b""
    data: dict[str, Any] = {
        "study": "first",
        "task": task.name,
        "task_sha256": tasks.sha256(task),
        "confirmed": list(POINTS),
        "metric": {"name": "success_rate" if is_rlx else "success"},
        "guardrails": [{"expression": "-length_mean" if is_rlx else "-energy", "margin": 5}],
        "scope": {"surfaces": ["hyperparameters"], "forbidden": ["algo.total_timesteps"]},
        "budget": {"seeds": 60, "hours": 4, "per_seed_minutes": 4},
        "hardware": {"cores": 1, "parallel": 2},
        "baseline": {
            "commit": commit,
            "command": fixes.baseline_command(task),
            "config_sha256": files.sha256(config) if is_rlx else "",
        },
        "evaluation": {"level": "sealed" if is_rlx else "pinned"},
        "automation": {"stop": ["rejected_in_a_row >= 5"]},
    }
    data |= sections
    return Contract.model_validate({key: value for key, value in data.items() if value is not None})
