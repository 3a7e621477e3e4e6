"""A project with an environment of its own and a run really trained in it, for evaluations in other processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from rlx.evaluate.checkpoint_evaluation import EvaluationLimits, EvaluationResult, Subject
from rlx.evaluate.sealed import stage_checkpoint
from rlx.evaluate.sealed.pinned_tree import PinnedTree, pin_tree
from rlx.evaluate.sealed.sealed_evaluation import SealedEvaluation, evaluate_sealed
from rlx.runs.run import Run

ENV = '''
"""CartPole in a file of the project, which also tells its reward as a term."""
from gymnasium.envs.classic_control import CartPoleEnv


class Cart(CartPoleEnv):
    max_episode_steps = 200

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "reward_terms": {"alive": reward}}
'''
CONFIG = {
    "run_name": "cart",
    "env": {"id": "envs/cart.py:Cart", "num_envs": 2},
    "algo": {"name": "ppo", "total_timesteps": 512, "rollout_steps": 64, "batch_size": 64, "update_epochs": 1},
    "policy": {"hidden_sizes": [8]},
    "eval": {"every": 512, "episodes": 2, "report_episodes": 2},
    "seeds": 2,
}


class Trained:
    """The project, its pinned copy and its run `cart_001`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def train(cls, root: Path, **changes: Any) -> Trained:
        (root / "envs").mkdir(parents=True)
        (root / "rlx.toml").touch()
        (root / "envs" / "cart.py").write_text(ENV)
        (root / "cart.yaml").write_text(yaml.safe_dump({**CONFIG, **changes}))
        subprocess.run([sys.executable, "-m", "rlx", "train", "cart.yaml"], cwd=root, check=True, capture_output=True)
        return cls(root)

    def copy(self, to: Path) -> Trained:
        shutil.copytree(self.root, to)
        return Trained(to)

    @property
    def run(self) -> Run:
        return Run(self.root / "runs" / "cart_001")

    def checkpoint(self, seed: int) -> Path:
        return self.run.path / f"seed_{seed}" / "checkpoints" / "latest"

    def pin(self) -> PinnedTree:
        return pin_tree(self.root, self.root / ".rlx" / "study" / "evaluator")

    def seal(self, **changes: Any) -> SealedEvaluation:
        usual: dict[str, Any] = {
            "experiment": self.run.config, "pin": self.pin(), "purpose": "search", "first": 7, "episodes": 3,
            "limits": EvaluationLimits(seconds=120),
        }  # fmt: skip
        return SealedEvaluation(**{**usual, **changes})

    def measure(self, checkpoints: Sequence[Path] | None = None, **changes: Any) -> list[EvaluationResult]:
        paths = checkpoints or [self.checkpoint(0), self.checkpoint(1)]
        out = self.root / ".rlx" / "study" / "evidence"
        subjects = [
            Subject(path, stage_checkpoint.checkpoint_sha256(path), out / f"{number}.json")
            for number, path in enumerate(paths)
        ]
        return evaluate_sealed(self.seal(**changes), subjects)
