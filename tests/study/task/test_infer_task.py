"""Derived tasks: all of an rlx config's, and a draft of a foreign repository's commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx import files
from rlx.config.schema import Source
from rlx.errors import ConfigError, UsageError
from rlx.study.contract.prefill import PrefillInputs, prefill
from rlx.study.task import infer_task, protected_files
from rlx.study.task.task import Task
from tests.study.papers import ENV, HYDRA, foreign_repo, foreign_task, hydra_task, rlx_repo, rlx_task, write


def test_a_config_gives_every_surface(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    surfaces = rlx_task(tmp_path).surfaces
    assert {"algo.*", "policy.*", "env.normalize.*"} <= set(surfaces["hyperparameters"].keys)
    assert surfaces["reward"].paths == ("envs/lift.py::Lift._reward",)
    assert surfaces["env"].paths == ("envs/lift.py::Lift",)
    assert surfaces["curriculum"].keys == ("env.kwargs.difficulty",)
    assert surfaces["randomisation"].keys == ("env.kwargs.friction",)
    assert {"eval.*", "env.id", "seed"} <= set(surfaces["evaluator"].keys)
    assert surfaces["evaluator"].paths == ("configs/lift.yaml",)


def test_facts_have_file_line_and_hash(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    facts = {fact.what: fact for fact in rlx_task(tmp_path).facts}
    assert (facts["env.id is envs/lift.py:Lift"].file, facts["env.id is envs/lift.py:Lift"].line) == (
        "configs/lift.yaml",
        3,
    )
    assert facts["eval.metric is success_rate"].line == 7
    assert facts["region Lift._reward"].line == 15
    assert facts["region Lift"].sha256 == files.sha256((tmp_path / "envs/lift.py").read_bytes())


def test_a_fact_of_what_a_config_extends_is_in_the_file_that_says_it(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "configs/more.yaml", "extends: lift.yaml\nalgo: {gamma: 0.9}\n")
    task = infer_task.task_from_config(tmp_path / "configs/more.yaml", root=tmp_path, name="more")
    assert {(fact.what, fact.file) for fact in task.facts} >= {
        ("the config", "configs/more.yaml"),
        ("env.id is envs/lift.py:Lift", "configs/lift.yaml"),
    }
    assert infer_task.baseline_values(task, tmp_path)["algo"] == {
        "name": "ppo",
        "total_timesteps": 4096,
        "learning_rate": 3e-4,
        "gamma": 0.9,
    }


STEP_WRAPPER = """
import gymnasium

class Passes(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation * 2, reward, terminated, truncated, info

class Pays(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward += 0.5
        return observation, reward, terminated, truncated, info

class Adds(Passes):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + 0.5, terminated, truncated, info
"""


def test_wrappers_that_change_the_reward_in_step_are_a_reward_surface(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "envs/pays.py", STEP_WRAPPER)
    wrappers = ", ".join(f"envs/pays.py:{name}" for name in ("Passes", "Pays", "Adds"))
    write(tmp_path, "configs/more.yaml", f"extends: lift.yaml\nenv: {{wrappers: [{wrappers}]}}\n")
    task = infer_task.task_from_config(tmp_path / "configs/more.yaml", root=tmp_path, name="more")
    assert task.surfaces["reward"].paths == (
        "envs/lift.py::Lift._reward", "envs/pays.py::Pays.step", "envs/pays.py::Adds.step"
    )  # fmt: skip
    assert task.surfaces["reward"].keys == ("env.wrappers",)


def test_reward_wrappers_behind_a_training_program_are_a_reward_surface(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from shaping import Pays, Passes\nenv = Pays(Passes(None))\n")
    (tmp_path / "shaping.py").write_text(STEP_WRAPPER)
    task = infer_task.task_from_commands(
        infer_task.Commands(train=("python", "train.py", "{seed}")), root=tmp_path, name="own"
    )
    assert task.surfaces["reward"].paths == ("shaping.py::Pays.step",)


def test_wrappers_that_shape_rewards_are_a_reward_surface(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    wrapper = "import gymnasium\n\nclass Bonus(gymnasium.RewardWrapper):\n    def reward(self, r):\n        return r\n"
    write(tmp_path, "envs/bonus.py", wrapper)
    text = "env: {id: CartPole-v1, wrappers: [{scale_reward: {scale: 2}}, 'envs/bonus.py:Bonus']}\n"
    write(tmp_path, "configs/cart.yaml", text)
    surfaces = infer_task.task_from_config(Path("configs/cart.yaml"), root=tmp_path, name="cart").surfaces
    assert surfaces["reward"].keys == ("env.wrappers",)
    assert surfaces["reward"].paths == ("envs/bonus.py::Bonus",)
    assert "env.wrappers" not in surfaces["env"].keys


def test_an_evaluation_env_of_its_own_is_the_evaluators(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "envs/exam.py", "class Exam: pass\n")
    write(tmp_path, "configs/two.yaml", "env: {id: 'envs/lift.py:Lift'}\neval: {env: {id: 'envs/exam.py:Exam'}}\n")
    task = infer_task.task_from_config(Path("configs/two.yaml"), root=tmp_path, name="two")
    assert task.surfaces["evaluator"].paths == ("configs/two.yaml", "envs/exam.py")


def test_an_env_that_computes_its_reward_in_step_has_that_as_region(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "envs/one.py", "class One:\n    def step(self, a):\n        return 0, a * 2, False, False, {}\n")
    write(tmp_path, "configs/one.yaml", "env: {id: 'envs/one.py:One'}\n")
    task = infer_task.task_from_config(Path("configs/one.yaml"), root=tmp_path, name="one")
    assert task.surfaces["reward"].paths == ("envs/one.py::One.step",)


def test_a_reward_in_a_module_of_its_own_is_the_surface_instead_of_all_of_step(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "envs" / "pay.py").write_text("def reward(x):\n    return -x\n\n\ndef far(x):\n    return x > 3\n")
    (tmp_path / "envs" / "one.py").write_text(
        "import gymnasium\nfrom envs.pay import far, reward\n\n\nclass One(gymnasium.Env):\n"
        "    def step(self, action):\n        return 0, reward(action), far(action), False, {}\n"
    )
    (tmp_path / "one.yaml").write_text("env: {id: 'envs/one.py:One'}\nalgo: {name: ppo}\n")
    task = infer_task.task_from_config(tmp_path / "one.yaml", root=tmp_path, name="one")
    assert task.surfaces["reward"].paths == ("envs/pay.py::reward",)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("from envs import rewards", "rewards.total(action)"),
        ("from . import rewards", "rewards.total(action)"),
        ("import envs.rewards as pay", "pay.total(action)"),
        ("from .rewards import total", "total(action)"),
        ("from envs.rewards import total", "total(action)"),
    ],
)
def test_a_module_that_is_named_after_the_reward_is_the_surface_however_it_is_imported(
    tmp_path: Path, line: str, call: str
) -> None:
    write(tmp_path, "envs/__init__.py", "")
    write(tmp_path, "envs/rewards.py", "WEIGHT = 2.0\n\n\ndef total(x):\n    return WEIGHT * x\n")
    write(tmp_path, "envs/one.py", f"import gymnasium\n{line}\n\n\nclass One(gymnasium.Env):\n"
          f"    def step(self, action):\n        return 0, {call}, False, False, {{}}\n")  # fmt: skip
    write(tmp_path, "one.yaml", "env: {id: 'envs/one.py:One'}\n")
    task = infer_task.task_from_config(Path("one.yaml"), root=tmp_path, name="one")
    assert task.surfaces["reward"].paths == ("envs/rewards.py",)


@pytest.mark.parametrize("config", ["catalog:cartpole", "/etc/hosts"])
def test_a_config_outside_the_project_is_refused(tmp_path: Path, config: str) -> None:
    with pytest.raises(UsageError):
        infer_task.task_from_config(Path(config), root=tmp_path, name="x")


def test_commands_give_options_with_their_defaults_and_lines(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    assert task.adapter.defaults == {"lr": 3e-4, "bonus": -1.0, "layers": 2}
    assert task.adapter.config_system == "argparse"
    assert task.adapter.override == "--{key}={value}"
    assert task.adapter.train[-1] == "{overrides}"
    assert task.surfaces["hyperparameters"].keys == ("lr", "layers")
    assert task.surfaces["evaluator"].paths == ("eval.py",)
    assert {(fact.file, fact.line) for fact in task.facts} >= {("train.py", 8), ("eval.py", 1)}
    assert infer_task.baseline_values(task, tmp_path) == task.adapter.defaults


def test_a_command_without_a_file_is_a_draft_all_the_same(tmp_path: Path) -> None:
    commands = infer_task.Commands(train=("make", "train", "SEED={seed}"))
    task = infer_task.task_from_commands(commands, root=tmp_path, name="x")
    assert task.facts == ()
    assert task.adapter.train == ("make", "train", "SEED={seed}")


def test_sources_are_read_as_they_are_typed() -> None:
    assert infer_task.source_of("jsonl:{out}/m.jsonl", {"return": "r"}) == Source(
        reader="jsonl", path="{out}/m.jsonl", names={"return": "r"}
    )
    assert infer_task.source_of("csv:{out}/m.csv", {"step": "iteration", "return": "r"}) == Source(
        reader="csv", path="{out}/m.csv", step="iteration", names={"return": "r"}
    )
    assert infer_task.source_of(r"stdout:r: (?P<r>\S+)").pattern == r"r: (?P<r>\S+)"
    assert infer_task.source_of("stdout") == infer_task.source_of("stdout:") == Source(reader="stdout")
    for wrong in ("wandb:x", "csv", "jsonl:"):
        with pytest.raises(UsageError, match="is not a source"):
            infer_task.source_of(wrong)


CLI = """import argparse

from arm.learn import RATE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    sub = parser.add_subparsers()
    train = sub.add_parser("train")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--out", required=True)
    train.add_argument("--lr", type=float, default=-0.5)
    train.add_argument("--clip", type=float, default=None)
    train.add_argument("--rate", type=float, default=RATE)
    train.add_argument("--fast", action="store_true")
    group = train.add_argument_group("reward")
    group.add_argument("--effort", type=float, default=0.1)
    play = sub.add_parser("play")
    play.add_argument("--trials", type=int, default=20)
"""


def test_options_are_found_behind_the_entry_file_and_only_of_the_sub_command_that_trains(tmp_path: Path) -> None:
    write(tmp_path, "src/arm/__init__.py", "")
    write(tmp_path, "src/arm/__main__.py", "from arm.cli import main\n\nmain()\n")
    write(tmp_path, "src/arm/learn.py", "RATE = 0.3\n")
    write(tmp_path, "src/arm/cli.py", CLI)
    train = ("python", "-m", "arm", "train", "--seed", "{seed}", "--out", "{out}")
    task = infer_task.task_from_commands(
        infer_task.Commands(train=train, python_path=("src",)), root=tmp_path, name="arm"
    )
    expected = {"device": "cpu", "lr": -0.5, "clip": None, "rate": None, "effort": 0.1}
    assert task.adapter.defaults == expected
    assert task.adapter.override == "--{key}={value}"
    assert task.adapter.train[-1] == "{overrides}"
    assert {one.file for one in task.facts if one.what.startswith("default of")} == {"src/arm/cli.py"}


def test_options_are_no_keys_where_keys_are_written_otherwise(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    train = ("python", "train.py", "--seed", "{seed}", "--out", "{out}", "{overrides}")
    commands = infer_task.Commands(train=train, override="{key}={value}")
    adapter = infer_task.task_from_commands(commands, root=tmp_path, name="arena").adapter
    assert (adapter.config_system, adapter.defaults) == ("custom", {})


def test_the_interpreter_of_an_active_environment_is_named_and_jobs_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = foreign_repo(tmp_path / "lab")
    program = tmp_path / "venv" / "bin" / "python"
    write(tmp_path, "venv/pyvenv.cfg", f"home = {tmp_path / 'python3.11' / 'bin'}\n")
    write(tmp_path, "venv/bin/python", "#!/bin/sh\n").chmod(0o755)
    (tmp_path / "python3.11" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    train = ("python", "train.py", "--seed", "{seed}", "--out", "{out}")

    def drafted(**said: tuple[str, ...]) -> Task:
        commands = infer_task.Commands(train=train, **said)  # type: ignore[arg-type]
        return infer_task.task_from_commands(commands, root=tmp_path / "lab", name="arena")

    assert drafted(prefix=("uv", "run")).adapter.train[0] == "python", "uv chooses it"
    task = drafted(prefix=("env", "MODE=sim"))
    assert task.adapter.train[0] == str(program)
    made = prefill(task, PrefillInputs(commit=sha), study="s1", root=tmp_path / "lab").contract
    assert made.hardware is not None
    assert made.hardware.reads == (str(tmp_path / "venv"), str(tmp_path / "python3.11"))


def test_packages_below_src_are_imported_from_there(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    commands = infer_task.Commands(train=("python3", "train.py", "{seed}"))
    assert infer_task.task_from_commands(commands, root=tmp_path, name="a").adapter.python_path == (".",)
    write(tmp_path, "src/arm/__init__.py", "")
    assert infer_task.task_from_commands(commands, root=tmp_path, name="a").adapter.python_path == ("src", ".")


ROBOT = """env: {num_envs: 8, episode_length: 60, push_force: 2.0}
reward: {scales: {effort: -0.8}}
agent: {lr: 0.06, hidden: [24, 24], init_noise_std: 1.0, max_iterations: 300}
seed: 1
"""


def robot(root: Path, *words: str, override: str | None = "--set={key}={value}") -> infer_task.Task:
    foreign_repo(root)
    write(root, "cfgs/robot.yaml", ROBOT)
    train = ("python", "train.py", *words, "--seed", "{seed}", "{overrides}")
    return infer_task.task_from_commands(infer_task.Commands(train=train, override=override), root=root, name="robot")


@pytest.mark.parametrize("words", [("--cfg", "cfgs/robot.yaml"), ("--cfg=./cfgs/robot.yaml",)])
def test_the_keys_of_a_config_that_the_command_names_are_known(tmp_path: Path, words: tuple[str, ...]) -> None:
    task = robot(tmp_path, *words)
    assert task.adapter.defaults["agent.lr"] == 0.06
    assert task.adapter.defaults["agent.hidden"] == [24, 24]
    assert "seed" not in task.adapter.defaults
    assert task.adapter.config_system == "yaml"
    assert task.surfaces["reward"].keys == ("reward.scales.effort",)
    assert task.surfaces["randomisation"].keys == ("env.push_force",)
    assert task.surfaces["env"].keys == ("env.num_envs", "env.episode_length")
    assert "agent.init_noise_std" in task.surfaces["hyperparameters"].keys
    assert ("what the training is told", "cfgs/robot.yaml") in {(one.what, one.file) for one in task.facts}


def test_another_program_s_config_is_no_rlx_config_and_the_hint_says_how_it_is_used(tmp_path: Path) -> None:
    robot(tmp_path)
    with pytest.raises(ConfigError, match=r"cfgs/robot.yaml is not an rlx config: it has no `env.id`") as error:
        infer_task.task_from_config(Path("cfgs/robot.yaml"), root=tmp_path, name="x")
    assert "rlx task new NAME --train" in (error.value.hint or "")


def test_a_value_that_the_command_gives_itself_is_not_the_file_s(tmp_path: Path) -> None:
    defaults = robot(tmp_path, "--cfg", "cfgs/robot.yaml", "--set=agent.lr=0.01").adapter.defaults
    assert (defaults["agent.lr"], defaults["env.num_envs"]) == (None, 8)


def test_json_and_toml_are_read_too_and_what_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, "a.json", '{"agent": {"lr": 1e-3}}')
    write(tmp_path, "b.toml", "[env]\nnum = 3\n")
    write(tmp_path, "c.yaml", "when: !!python/tuple [1]\n")
    train = ("python", "-c", "0", "a.json", "--more=b.toml", "c.yaml", "{seed}", "{overrides}")
    task = infer_task.task_from_commands(infer_task.Commands(train=train), root=tmp_path, name="x")
    assert task.adapter.defaults == {"agent.lr": 0.001, "env.num": 3}


def test_a_command_s_own_options_are_its_keys_where_they_are_written_so(tmp_path: Path) -> None:
    adapter = robot(tmp_path, "--cfg", "cfgs/robot.yaml", override=None).adapter
    assert adapter.config_system == "argparse"
    assert "agent.lr" not in adapter.defaults


def test_a_hydra_program_has_the_keys_of_its_configs_without_what_the_command_fills_in(tmp_path: Path) -> None:
    main = '@hydra.main(version_base=None, config_path="../conf", config_name="config")\ndef main(cfg):\n    pass\n'
    write(tmp_path, "walk/learn.py", f"import hydra\n\n\n{main}")
    write(tmp_path, "train.py", "from walk.learn import main\n\nmain()\n")
    write(tmp_path, "conf/config.yaml", "defaults: [reward: dense, agent: ppo]\nseed: 0\nout: here\nsteps: 100\n")
    write(tmp_path, "conf/reward/dense.yaml", "alive: 0.5\nforward: 1.0\n")
    write(tmp_path, "conf/agent/ppo.yaml", "lr: 3.0e-4\n")
    words = ("python", "train.py", "seed={seed}", "out={out}", "steps={steps}", "agent.lr=0.01")
    task = infer_task.task_from_commands(infer_task.Commands(train=words), root=tmp_path, name="walk")
    assert task.adapter.config_system == "hydra"
    assert task.adapter.train[-1] == "{overrides}"
    assert task.adapter.defaults == {"reward.alive": 0.5, "reward.forward": 1.0, "agent.lr": None}
    assert task.surfaces["reward"].keys == ("reward.alive", "reward.forward")
    assert task.surfaces["hyperparameters"].keys == ("agent.lr",)
    assert {one.file for one in task.facts} >= {"conf/config.yaml", "conf/reward/dense.yaml"}
    write(tmp_path, "conf/reward/dense.yaml", "alive: 0.75\n")
    assert infer_task.reread(task, tmp_path).adapter.defaults == {"reward.alive": 0.75, "agent.lr": None}


def test_a_reward_that_was_moved_into_a_function_of_the_file_is_the_surface_and_step_is_not(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    moved = ENV.replace("self._reward(action)", "reward_terms(self, action)").partition("    def _reward")[0]
    write(tmp_path, "envs/lift.py", f"{moved}\n\ndef reward_terms(env, action):\n    return -0.1 * action ** 2\n")
    assert rlx_task(tmp_path).surfaces["reward"].paths == ("envs/lift.py::reward_terms",)


def test_keys_of_a_hydra_program_are_all_known_where_its_files_are(tmp_path: Path) -> None:
    task = hydra_task(tmp_path)
    known = protected_files.command_keys(task)
    assert protected_files.unknown_keys(["agent.lrr"], task, known) == {"agent.lrr": "agent.lr"}
    assert protected_files.unknown_keys(["agent.lr"], task, known) == {}


def test_a_group_of_a_hydra_program_may_be_chosen_with_keys_of_its_own(tmp_path: Path) -> None:
    task = hydra_task(tmp_path)
    known = protected_files.command_keys(task)
    assert protected_files.unknown_keys(["experiment", "agent.tau"], task, known) == {}
    assert protected_files.unknown_keys(["+agent.tau"], task, known) == {}


@pytest.mark.parametrize("where", ["the program", "what it imports", "a config that is not here"])
def test_keys_of_a_hydra_program_that_may_come_from_elsewhere_are_not_refused(tmp_path: Path, where: str) -> None:
    store = "from hydra.core.config_store import ConfigStore\n"
    write(tmp_path, "structured.py", store)
    program = {"the program": store, "what it imports": "import structured\n"}.get(where, "") + HYDRA
    config = f"defaults: [agent: {'theirs' if 'not here' in where else 'ppo'}]\n"
    assert protected_files.command_keys(hydra_task(tmp_path, program=program, config=config)) == ()
