"""Two runs trained for real, once for all tests: a corridor whose coin is farmed, and one where nothing can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.runs.run import Run
from tests.conftest import Project
from tests.diagnose.worlds import CORRIDORS


def corridor_project(root: Path) -> Project:
    """Return a project that has `envs/corridors.py`."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "rlx.toml").touch()
    project = Project(root)
    project.write("envs/corridors.py", CORRIDORS)
    return project


def train_corridor(project: Project, world: str, *, seeds: int = 2, **sections: object) -> Run:
    """Train on one of the corridors for a few seconds."""
    config = project.config(
        world.lower(),
        backend="fast",
        algo={"total_timesteps": 8192, "update_epochs": 4, "learning_rate": 0.003},
        policy={"hidden_sizes": [16]},
        checkpoint={"save_every": 8192},
        **{
            "env": {"id": f"envs/corridors.py:{world}", "num_envs": 4},
            "eval": {"every": 819, "episodes": 10},
            **sections,
        },
    )
    project.rlx("train", config, "--seeds", str(seeds))
    return project.run(f"{world.lower()}_001")


@pytest.fixture(scope="session")
def corridors(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with the runs `farm_001` (hacked) and `corridor_001` (clean)."""
    project = corridor_project(tmp_path_factory.mktemp("corridors"))
    train_corridor(project, "Farm")
    train_corridor(project, "Corridor")
    return project
