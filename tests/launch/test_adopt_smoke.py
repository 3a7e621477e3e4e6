"""The smoke test proves that metric, steps and checkpoint are found, and catches a program that logs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.adopt.draft import draft_of
from rlx.adopt.scan import scan
from rlx.launch.adopt_smoke import smoke
from rlx.study.task.task_from_scan import task_from_scan

PROGRAM = """import argparse
import csv
import pathlib
import random

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--total-timesteps", type=int, default=1000)


class Model:
    def learn(self, steps):
        folder = pathlib.Path("logs/run")
        folder.mkdir(parents=True)
        with open("logs/run/progress.csv", "w") as stream:
            writer = csv.writer(stream)
            writer.writerow(["step", NAMES])
            for step in range(0, steps, 500):
                writer.writerow([step, random.random()])

    def save(self, path):
        pathlib.Path(path).write_text("weights")


if __name__ == "__main__":
    args = parser.parse_args()
    random.seed(args.seed)
    model = Model()
    model.learn(args.total_timesteps)
    logger.log("episode_return", 1.0) if False else None
    model.save("logs/run/model.pt")
"""


def tried(root: Path, text: str) -> dict[str, object]:
    (root / "train.py").write_text(text)
    found = scan(root)
    draft = draft_of(found)
    return smoke(found, draft, task_from_scan(found, draft, name="toy"), seconds=60)


@pytest.mark.slow
def test_a_program_that_logs_its_score_is_valid(tmp_path: Path) -> None:
    result = tried(tmp_path, PROGRAM.replace("NAMES", '"episode_return"'))
    assert result["problems"] == []
    assert [(row["rows"], row["last_step"], row["checkpoint"]) for row in result["seeds"]] == [
        (10, 4500, "model.pt")
    ] * 2
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_a_program_that_ends_well_without_its_score_is_invalid(tmp_path: Path) -> None:
    result = tried(tmp_path, PROGRAM.replace("NAMES", '"other"'))
    assert not result["is_valid"]
    assert "never logged rollout/return_mean" in str(result["problems"])
