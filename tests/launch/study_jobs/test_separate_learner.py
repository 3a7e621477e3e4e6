"""A candidate's environment, wrappers and reward never share a process with the learner that a study trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.config.load import parse
from rlx.launch import launch
from rlx.runs import loaded_modules, untrusted_rows
from rlx.runs.checkpoints import checkpoint
from rlx.runs.run import Run
from rlx.runs.status import ENDED
from tests.conftest import Project, wait_until
from tests.launch.study_jobs.test_study_job import Door

pytestmark = pytest.mark.slow
SHAPED = """
import gymnasium
class Shaped(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        attack()
        bonus = 0.1 * float(abs(observation[0]))
        info = {**info, "reward_terms": {"bonus": bonus, "env": float(reward)}, "is_success": bonus > 0.001}
        return observation, float(reward) + bonus, terminated, truncated, info
"""
NO_ATTACK = "\ndef attack(): pass\n"
# What the reproduced cheat did: find the learner's weights among all objects, and write them.
SMUGGLE = """
import gc, itertools
steps = itertools.count(1)
def attack():
    if next(steps) % 60: return
    for value in gc.get_objects():
        if type(value).__name__ == "Weights" and hasattr(value, "flat"):
            value.flat[...] = 0.123
"""


def config(env: str, **algo: Any) -> dict[str, Any]:
    return {
        "run_name": "job",
        "env": {"id": env, "num_envs": 2, "wrappers": ["shaped.py:Shaped"], "normalize": {"obs": True}},
        "algo": {
            "name": "ppo",
            "total_timesteps": 256,
            "rollout_steps": 32,
            "batch_size": 32,
            "update_epochs": 2,
            **algo,
        },
        "policy": {"hidden_sizes": [8]},
        "backend": "fast",
        "eval": {"episodes": 2, "report_episodes": 2, "every": 128},
        "checkpoint": {"save_every": 128, "keep": 5},
        "log": {"every": 64},
        "seeds": [3],
    }


def weights(run: Run, name: str = "latest") -> dict[str, Any]:
    kept = checkpoint.read(run.seed(3).checkpoints / name, with_replay=False)
    return {key: array.tolist() for key, array in kept.policy.items()}


def last_row(run: Run) -> dict[str, Any]:
    """Return the last logged row, without its clock times."""
    row = untrusted_rows.read(run.seed(3).folder / "metrics.jsonl").sound[-1]
    return {key: value for key, value in row.items() if not key.startswith("time")}


def train_plainly(root: Path, content: str, settings: dict[str, Any]) -> Run:
    root.mkdir()
    (root / "shaped.py").write_text(content)
    (root / "rlx.toml").touch()
    run = launch.create(parse(settings), root=root)
    launch.start(run, [3])
    wait_until(lambda: Run(run.path).seed(3).status.state in ENDED, seconds=120)
    return Run(run.path)


def train_in_a_study(root: Path, content: str, settings: dict[str, Any]) -> tuple[Run, str]:
    root.mkdir()
    door = Door(Project(root))
    run = door.prepare(config=settings, files={"shaped.py": content})
    launch.start(run, [3])
    wait_until(lambda: door.events("ended"), seconds=120)
    return Run(run.path), str(door.events("ended")[0]["outcome"])


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same training outside a study, and in one."""
    folder = tmp_path_factory.mktemp("honest")
    settings = config("CartPole-v1")
    plain = train_plainly(folder / "plain", SHAPED + NO_ATTACK, settings)
    governed, outcome = train_in_a_study(folder / "study", SHAPED + NO_ATTACK, settings)
    assert outcome == "completed", (governed.path / "logs" / "seed_3.log").read_text()
    return plain, governed


def test_a_study_trains_the_same_weights_as_a_plain_run(honest: tuple[Run, Run]) -> None:
    plain, governed = honest
    assert weights(governed) == weights(plain)
    assert weights(governed) != weights(governed, "untrained")


def test_rewards_terms_and_successes_are_the_same(honest: tuple[Run, Run]) -> None:
    rows = [last_row(run) for run in honest]
    assert {"reward/term/bonus", "rollout/success_rate"} <= rows[0].keys()
    assert rows[1] == rows[0]


def test_the_attempt_says_that_the_learner_ran_apart(honest: tuple[Run, Run]) -> None:
    seed = honest[1].seed(3)
    assert seed.attempts[0]["learner"]["is_apart"] is True
    modules = [module.file.name for module in loaded_modules.read(seed.folder).modules]
    assert "shaped.py" in modules
    documents = [files.read_json(path) for path in (seed.folder / "loaded").glob("*.json")]
    assert len(documents) == 2


def test_weights_cannot_be_smuggled_into_the_learner(honest: tuple[Run, Run], tmp_path: Path) -> None:
    run, outcome = train_in_a_study(tmp_path / "study", SHAPED + SMUGGLE, config("CartPole-v1"))
    assert outcome == "completed"
    assert weights(run) == weights(honest[1])


def test_the_attack_works_where_code_shares_the_process(tmp_path: Path) -> None:
    run = train_plainly(tmp_path / "plain", SHAPED + SMUGGLE, config("CartPole-v1"))
    values = [value for key, array in weights(run).items() if "log_std" not in key for value in _flat(array)]
    assert all(abs(value - 0.123) < 0.05 for value in values)


def _flat(value: Any) -> list[float]:
    if isinstance(value, list):
        return [item for part in value for item in _flat(part)]
    return [value]
