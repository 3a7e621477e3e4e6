"""The finders read the forms in which programs name their metrics, checkpoints, options and trainings."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.adopt.scan import Scan, scan
from tests.adopt.foreign_repos import write_repo

LEARNER = """import torch


class Learner:
    def update(self, batch):
        loss = torch.zeros(1, requires_grad=True)
        loss.backward()
"""


def tags(tmp_path: Path, body: str) -> set[str]:
    lines = ["import torch, wandb", "def train(logger):", *(f"    {line}" for line in body.splitlines())]
    lines += ["    torch.ones(1).backward()", "train(0)", ""]
    return set(scan(write_repo(tmp_path, {"train.py": "\n".join(lines)})).facts.names("metric tag"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("logger.log('eval/return', 1.0, 3)", {"eval/return"}),
        ("with logger.at(3, ty='eval') as log:\n    log('return', 1.0)", {"eval/return"}),
        ("found = dict(reward=1)\nfound.update(step=3)\nlogger.log(found, 'eval')", {"eval/reward", "eval/step"}),
        ("logger.log_metrics(agent.update(), 3, ty='train')", {"train/*"}),
        ("logs = {'loss': 1.0}\nlogs['score'] = 2.0\nwandb.log({'speed': 1, **logs})", {"speed", "loss", "score"}),
        ("wandb.log({'film': wandb.Video('a.mp4'), 'loss': 1.0})", {"loss"}),
        ("wandb.log({f'train/{k}': v for k, v in found.items()})", {"train/*"}),
        ("import math\nmath.log(3.0)\nprint('speed', 1.0)", set()),
    ],
)  # fmt: skip
def test_metric_tags(tmp_path: Path, body: str, expected: set[str]) -> None:
    assert tags(tmp_path, body) == expected


def test_a_dict_that_a_function_returns_is_followed(tmp_path: Path) -> None:
    source = """import torch
class Trainer:
    def eval(self):
        return dict(reward=1.0)
    def train(self):
        torch.ones(1).backward()
        metrics = self.eval()
        self.logger.log(metrics, "eval")
if __name__ == "__main__":
    Trainer().train()
"""
    assert scan(write_repo(tmp_path, {"train.py": source})).facts.names("metric tag") == ["eval/reward"]


def test_a_main_program_with_an_imported_learner_trains(tmp_path: Path) -> None:
    main = """import argparse
from learner import Learner
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    Learner().update(None)
"""
    found = scan(write_repo(tmp_path, {"main.py": main, "learner.py": LEARNER}))
    assert found.facts.names("train") == ["main.py"]
    assert found.facts.names("seed") == ["--seed"]


def test_a_table_of_finetuning_scores_is_not_a_training(tmp_path: Path) -> None:
    table = "import pandas\nif __name__ == '__main__':\n    print(1)\n"
    found = scan(write_repo(tmp_path, {"get_finetune_scores.py": table, "learner.py": LEARNER}))
    assert not found.facts.names("train")


def checkpoints(tmp_path: Path, files: dict[str, str]) -> Scan:
    return scan(write_repo(tmp_path, files))


def test_a_checkpoint_path_is_found_at_the_callers(tmp_path: Path) -> None:
    files = {
        "store.py": "import torch\ndef save_all(step, path):\n    torch.save({}, path)\n",
        "train.py": "from store import save_all\nimport torch\ntorch.ones(1).backward()\n"
        "for step in range(3):\n    save_all(step, f'models/{step}_final.pt')\n",
    }
    assert checkpoints(tmp_path, files).facts.names("checkpoint") == ["*_final.pt"]


def test_films_and_tables_are_not_checkpoints(tmp_path: Path) -> None:
    source = "import torch\nfor i in range(3):\n    torch.ones(1).backward()\n    recorder.save(f'{i}_policy.mp4')\n"
    assert not checkpoints(tmp_path, {"train.py": source}).facts.names("checkpoint")


def test_options_of_a_parsed_dataclass(tmp_path: Path) -> None:
    source = """from dataclasses import dataclass
import pyrallis, torch
@dataclass
class TrainConfig:
    train_seed: int = 3
    learning_rate: float = 1e-3
@pyrallis.wrap()
def train(config: TrainConfig):
    torch.ones(1).backward()
if __name__ == "__main__":
    train()
"""
    found = scan(write_repo(tmp_path, {"train.py": source}))
    assert found.facts.names("config system") == ["dataclass"]
    assert [(fact.name, fact.value) for fact in found.facts.of("seed")] == [("--train_seed", 3)]


def test_hydra_before_version_one_names_the_file_in_its_path(tmp_path: Path) -> None:
    source = """import hydra, torch
@hydra.main(config_path="config/train.yaml", strict=True)
def main(cfg):
    torch.ones(1).backward()
if __name__ == "__main__":
    main()
"""
    found = scan(write_repo(tmp_path, {"train.py": source, "config/train.yaml": "seed: 4\n"}))
    assert [(fact.name, fact.value, fact.file) for fact in found.facts.of("seed")] == [
        ("seed=", 4, "config/train.yaml")
    ]


def test_vector_environments_of_sb3_alone_are_not_its_training(tmp_path: Path) -> None:
    vector = "from stable_baselines3.common.vec_env import SubprocVecEnv\nimport torch\n"
    vector += "for i in range(1):\n    torch.ones(1).backward()\n"
    assert scan(write_repo(tmp_path, {"train.py": vector})).profile.name == "generic"
    learns = "from stable_baselines3 import PPO\nfor i in range(1):\n    PPO('MlpPolicy', 'CartPole-v1').learn(100)\n"
    other = tmp_path / "other"
    assert scan(write_repo(other, {"train.py": learns})).profile.name == "Stable-Baselines3"
