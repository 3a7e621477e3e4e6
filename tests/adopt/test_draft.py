"""A draft names the commands of a repository, and asks about the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlx.adopt.draft import draft_of
from rlx.adopt.eval_templates import eval_script, write_eval_script
from rlx.adopt.scan import scan
from rlx.errors import NotFound
from rlx.study.task import task as tasks
from rlx.study.task.task_from_scan import task_from_scan
from tests.adopt.foreign_repos import HYDRA, NESTED, ONE_FILE, TERMS, write_repo


def test_the_draft_of_a_one_file_algorithm_is_a_task_without_problems(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, ONE_FILE))
    draft = draft_of(found)
    expected = ["python", "agent/walk.py", "--seed", "{seed}", "--total-timesteps", "{steps}", "{overrides}"]
    assert draft.train == expected
    assert draft.cwd == "{out}/work"
    assert draft.metrics is not None
    assert (draft.metrics.reader, draft.metrics.path) == ("tensorboard", "{out}/work/runs")
    assert draft.metrics.names == {"rollout/return_mean": "charts/episodic_return"}
    task = task_from_scan(found, draft, name="walk")
    assert tasks.problems(task, tmp_path) == ()
    assert task.adapter.steps == 40000
    assert task.surfaces["hyperparameters"].keys == ("learning-rate",)
    assert "env-id" in task.surfaces["evaluator"].keys
    inferred = {fact.what: (fact.file, fact.line) for fact in task.facts}
    assert inferred["inferred (high): seed --seed"] == ("agent/walk.py", 13)


def test_the_draft_of_a_hydra_project_sets_keys_and_the_run_folder(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, HYDRA))
    draft = draft_of(found)
    assert draft.train == [
        "python",
        "train.py",
        "seed={seed}",
        "total_steps={steps}",
        "hydra.run.dir={out}/hydra",
        "{overrides}",
    ]
    assert draft.override == "{key}={value}"
    assert tasks.problems(task_from_scan(found, draft, name="hop"), tmp_path) == ()


def test_required_options_without_a_value_become_questions(tmp_path: Path) -> None:
    source = TERMS["scripts/train.py"].replace('"--task"', '"--robot"')
    found = scan(write_repo(tmp_path, {"train.py": source}))
    draft = draft_of(found)
    assert draft.train[2:4] == ["--robot", "FILL_IN"]
    assert any("--robot" in question.text for question in draft.questions)


@pytest.mark.parametrize("placeholder", ["task_name", "<task>", "TASK", "YOUR_TASK", "path/to/task"])
def test_a_documented_placeholder_is_not_a_value(tmp_path: Path, placeholder: str) -> None:
    source = TERMS["scripts/train.py"].replace('"--task"', '"--robot"')
    readme = f"    python train.py --robot {placeholder}\n"
    draft = draft_of(scan(write_repo(tmp_path, {"train.py": source, "README.md": readme})))
    assert draft.train[2:4] == ["--robot", "FILL_IN"]
    readme += "    python train.py --robot Go2\n"
    draft = draft_of(scan(write_repo(tmp_path, {"train.py": source, "README.md": readme})))
    assert draft.train[2:4] == ["--robot", "Go2"]


def test_the_zoo_starts_with_an_environment_that_every_installation_has(tmp_path: Path) -> None:
    train = """import argparse
from stable_baselines3 import PPO
parser = argparse.ArgumentParser()
parser.add_argument("--algo", default="ppo")
parser.add_argument("--env", default="CartPole-v1")
if __name__ == "__main__":
    PPO("MlpPolicy", "CartPole-v1").learn(100)
"""
    files = {
        "train.py": train,
        "rl_zoo3/train.py": train,
        "README.md": "    python train.py --algo sac --env HalfCheetahBulletEnv-v0\n",
    }
    draft = draft_of(scan(write_repo(tmp_path, files)))
    assert draft.train[3:8] == ["train.py", "--algo", "ppo", "--env", "CartPole-v1"]


def test_a_copy_of_the_rsl_rl_runner_is_recognised(tmp_path: Path) -> None:
    runner = "import torch\nclass Runner:\n    def learn(self):\n        torch.ones(1).backward()\n"
    train = "from walk.on_policy_runner import Runner\nif __name__ == '__main__':\n    Runner().learn()\n"
    found = scan(write_repo(tmp_path, {"train.py": train, "walk/on_policy_runner.py": runner}))
    assert found.profile.name == "rsl_rl"


def test_options_named_after_reward_functions_are_reward_keys(tmp_path: Path) -> None:
    env = "class WalkEnv:\n    def step(self, action):\n        pass\n    def _reward_upright(self):\n        pass\n"
    train = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--upright", type=float, default=1.0)
parser.add_argument("--gamma", type=float, default=0.9)
if __name__ == "__main__":
    torch.ones(1).backward()
"""
    draft = draft_of(scan(write_repo(tmp_path, {"train.py": train, "env.py": env})))
    assert draft.reward_keys == ["upright"]


def test_the_yaml_file_behind_an_option_is_what_a_candidate_edits(tmp_path: Path) -> None:
    train = """import argparse, torch, yaml
parser = argparse.ArgumentParser()
parser.add_argument("--config", default="./configs/cart.yaml")
parser.add_argument("--seed", type=int, default=0)
if __name__ == "__main__":
    settings = yaml.safe_load(open(parser.parse_args().config))
    torch.ones(1).backward()
"""
    root = write_repo(tmp_path, {"train.py": train, "configs/cart.yaml": "gamma: 0.99\n"})
    assert "configs/cart.yaml" in draft_of(scan(root)).edited_paths


def test_iterations_are_named_as_the_unit_of_the_length(tmp_path: Path) -> None:
    draft = draft_of(scan(write_repo(tmp_path, TERMS)))
    assert draft.prefix == ["./isaaclab.sh", "-p"]
    assert draft.train[:3] == ["scripts/train.py", "--task", "Isaac-Cartpole-v0"]
    assert draft.unit.startswith("iterations (iterations × num_steps_per_env")
    assert draft.checkpoint == "{out}/work/logs/rsl_rl/**/model_*.pt"


def test_a_program_without_a_seed_is_asked_about(tmp_path: Path) -> None:
    draft = draft_of(scan(write_repo(tmp_path, NESTED)))
    assert draft.train[:2] == ["env", "RLX_SEED={seed}"]
    assert any("no seed option" in question.text for question in draft.questions)


def test_torchrun_is_kept_from_the_documentation(tmp_path: Path) -> None:
    files = {**ONE_FILE, "README.md": "    torchrun --nproc_per_node 2 agent/walk.py\n"}
    draft = draft_of(scan(write_repo(tmp_path, files)))
    assert draft.train[:6] == ["python", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    assert draft.local_sockets


def test_a_repository_without_a_training_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no training program"):
        draft_of(scan(tmp_path))
    with pytest.raises(NotFound, match="not a training program"):
        draft_of(scan(write_repo(tmp_path, ONE_FILE)), program="other.py")


SB3 = """from stable_baselines3 import PPO

if __name__ == "__main__":
    model = PPO("MlpPolicy", "CartPole-v1", tensorboard_log="logs")
    model.learn(1000)
    model.save("logs/model")
"""


@pytest.mark.parametrize("files", [{"train.py": SB3}, ONE_FILE, TERMS])
def test_every_evaluation_template_fails_closed_without_a_checkpoint(tmp_path: Path, files: dict[str, str]) -> None:
    found = scan(write_repo(tmp_path, files))
    path = write_eval_script(found, draft_of(found))
    assert path is not None
    command = [sys.executable, str(path), "--checkpoint", "absent.zip", "--out", "rows.jsonl", "--episodes", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 6, done.stderr
    assert "no checkpoint absent.zip" in done.stderr
    assert not (tmp_path / "rows.jsonl").exists()
    assert write_eval_script(found, draft_of(found)) is None


def test_a_damaged_checkpoint_fails_closed_too(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, ONE_FILE))
    (tmp_path / "eval.py").write_text(eval_script(found, draft_of(found)).replace("Walk-v1", "CartPole-v1"))
    (tmp_path / "model.pt").write_bytes(b"damaged")
    command = [sys.executable, "eval.py", "--checkpoint", "model.pt", "--out", "rows.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 6, done.stderr


def test_the_documented_length_comes_before_the_default(tmp_path: Path) -> None:
    readme = {"README.md": "    python agent/walk.py --total-timesteps 9000\n"}
    assert draft_of(scan(write_repo(tmp_path, {**ONE_FILE, **readme}))).steps == 9000


def test_a_manager_that_is_not_installed_becomes_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = scan(write_repo(tmp_path, {**ONE_FILE, "uv.lock": "version = 1\n"}))
    monkeypatch.setattr("shutil.which", lambda name: None)
    draft = draft_of(found)
    assert not draft.prefix
    assert next(question.key for question in draft.questions) == "adapter.prefix"
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert draft_of(found).prefix == ["uv", "run"]


def test_reward_weights_are_keys_if_options_reach_them(tmp_path: Path) -> None:
    found = scan(write_repo(tmp_path, TERMS))
    draft = draft_of(found)
    assert draft.reward_keys == ["env.rewards.forward.weight", "env.rewards.effort.weight"]
    task = task_from_scan(found, draft, name="walk")
    assert task.surfaces["reward"].keys == tuple(draft.reward_keys)


def test_an_option_that_is_a_reward_weight_is_a_reward_key(tmp_path: Path) -> None:
    source = ONE_FILE["agent/walk.py"].replace(
        "learning_rate: float = 1e-3", "learning_rate: float = 1e-3\n    fall_penalty: float = -2.0"
    )
    draft = draft_of(scan(write_repo(tmp_path, {"agent/walk.py": source})))
    assert draft.reward_keys == ["fall-penalty"]


def test_the_draft_of_a_sacred_program_sets_its_keys_after_with(tmp_path: Path) -> None:
    source = """import torch
from sacred import Experiment
ex = Experiment("walk")
@ex.config
def defaults():
    seed = 4
@ex.automain
def main(seed):
    torch.ones(1).backward()
"""
    draft = draft_of(scan(write_repo(tmp_path, {"train.py": source})))
    assert draft.train == ["python", "train.py", "with", "seed={seed}", "{overrides}"]
    assert draft.override == "{key}={value}"


def test_settings_of_a_json_file_are_changed_in_the_file(tmp_path: Path) -> None:
    source = """import json, torch
if __name__ == "__main__":
    config = json.load(open("config.json"))
    torch.manual_seed(config["seed"])
    torch.ones(1).backward()
"""
    draft = draft_of(scan(write_repo(tmp_path, {"train.py": source, "config.json": '{"seed": 8, "gamma": 0.9}\n'})))
    assert draft.edited_paths == ["train.py", "config.json"]
    assert "{seed}" not in draft.train
