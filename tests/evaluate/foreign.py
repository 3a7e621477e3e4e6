"""A small repository that is not rlx's: an environment, a policy and a checkpoint of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx.evaluate.checkpoint_evaluation import EvaluationLimits, EvaluationResult, Subject
from rlx.evaluate.sealed import stage_checkpoint
from rlx.evaluate.sealed.pinned_tree import PinnedTree, pin_tree
from rlx.evaluate.sealed.sealed_evaluation import SealedEvaluation, evaluate_sealed

ENV = '''
"""A point that must be pushed to the right; an episode lasts 20 steps."""
import gymnasium
import numpy as np


class Point(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.steps = float(self.np_random.uniform(-1, 1)), 0
        return self._seen(), {}

    def _seen(self):
        return np.array([self.x, self.steps], np.float32)

    def step(self, action):
        self.x += 0.1 * float(action[0])
        self.steps += 1
        info = {"reward_terms": {"push": float(action[0])}, "is_success": self.x > 1}
        return self._seen(), float(action[0]), False, self.steps >= 20, info
'''

POLICY = """
import json


def load(path):
    with open(path) as stream:
        gain = json.load(stream)["gain"]
    return lambda observation: [gain]
"""


class Repository:
    """The repository, its pinned copy, and what is measured there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worktree = self._tree("worktree")
        self.pin: PinnedTree = pin_tree(self._tree("tree"), folder / ".rlx" / "study" / "evaluator")
        self.checkpoint = self.weights(0.5)
        (folder / ".rlx" / "study" / "ledger.jsonl").write_text("the ledger")

    def _tree(self, name: str) -> Path:
        tree = self.folder / name
        tree.mkdir(parents=True)
        (tree / "envs").mkdir()
        (tree / "envs" / "point.py").write_text(ENV)
        (tree / "policy.py").write_text(POLICY)
        return tree

    def weights(self, gain: Any) -> Path:
        path = self.folder / "runs" / "r_001" / "seed_0" / f"model_{gain}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"gain": gain}))
        return path

    def seal(self, **changes: Any) -> SealedEvaluation:
        experiment = {"run_name": "r", "env": {"id": "envs/point.py:Point"}, "algo": {"name": "ppo"}}
        limits = EvaluationLimits(seconds=60, start_seconds=60, answer_seconds=5, scratch_bytes=2**24, processes=12)
        usual: dict[str, Any] = {
            "experiment": experiment, "pin": self.pin, "purpose": "search", "first": 7, "episodes": 4,
            "policy": "policy.py:load", "policy_root": self.worktree, "limits": limits,
        }  # fmt: skip
        return SealedEvaluation(**{**usual, **changes})

    def measure(self, checkpoints: Sequence[Path] | None = None, **changes: Any) -> list[EvaluationResult]:
        paths = checkpoints or [self.checkpoint]
        out = self.folder / ".rlx" / "study" / "evidence"
        subjects = [
            Subject(path, stage_checkpoint.checkpoint_sha256(path), out / f"{number}.json")
            for number, path in enumerate(paths)
        ]
        return evaluate_sealed(self.seal(**changes), subjects)
