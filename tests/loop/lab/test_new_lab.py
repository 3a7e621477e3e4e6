"""A new lab takes a registered or an own environment; one that does not run is refused, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.schema import Env
from rlx.envs.make import inspect
from rlx.errors import ConfigError, NotFound, Refused
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.new_lab import LabWishes, approve_lab, new_lab
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from tests.loop.lab.lab_project import edit


def test_a_lab_of_an_unknown_environment_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as refused:
        new_lab(tmp_path / "hop", LabWishes(env_id="CartPol-v1"))

    assert refused.value.hint == "did you mean `CartPole-v1`?"
    assert list(tmp_path.iterdir()) == []


def test_rules_that_the_first_candidate_cannot_train_with_are_refused_with_the_files_to_edit(tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "grid", LabWishes(template="batched", ladder=((4, 4),)))
    edit(lab, "lab.yaml", "count: 32", "count: 4")
    lab = Lab(lab.root)
    with pytest.raises(ConfigError, match="batch_size") as refused:
        approve_lab(lab, by="tester")
    assert "candidate/train.py" in str(refused.value.hint)
    assert lab.study.state().approval is None
    edit(lab, "candidate/train.py", "256", "64")
    assert approve_lab(lab, by="tester")["by"] == "tester"


CART = '''\
"""A cart that must reach a place that a file names."""
from pathlib import Path

import gymnasium
import numpy

from pay import reward
from shared.limits import STEPS

GOAL = float((Path(__file__).parent / "data" / "goal.txt").read_text())


class Cart(gymnasium.Env):
    max_episode_steps = STEPS
    observation_space = gymnasium.spaces.Box(-99, 99, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = float(self.np_random.uniform(-1, 1))
        return numpy.array([self.at], numpy.float32), {}

    def step(self, action):
        self.at += 1.0 if action else -1.0
        return numpy.array([self.at], numpy.float32), reward(self.at, GOAL), self.at > GOAL, False, {}
'''


def own_project(folder: Path, *, has_data: bool = True) -> Path:
    """Make a project with an environment that imports two modules of it and reads a file."""
    texts = {
        "rlx.toml": "", "envs/cart.py": CART, "envs/pay.py": "def reward(at, goal):\n    return -abs(at - goal)\n",
        "shared/limits.py": "STEPS = 30\n", "unrelated.py": "X = 1\n", "runs/big/model.bin": "x",
    }  # fmt: skip
    if has_data:
        texts["envs/data/goal.txt"] = "6"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("env_id", ["envs/cart.py:Cart", "envs.cart:Cart"])
def test_a_lab_of_an_own_environment_has_a_copy_of_its_files_which_the_agent_cannot_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env_id: str
) -> None:
    monkeypatch.chdir(own_project(tmp_path / "project"))
    lab = new_lab(tmp_path / "hop", LabWishes(env_id=env_id, ladder=((1, 2),)))

    copied = ("envs/cart.py", "envs/pay.py", "envs/data/goal.txt", "shared/limits.py")
    for name in copied:
        assert (lab.root / name).read_bytes() == (tmp_path / "project" / name).read_bytes()
    assert not (lab.root / "unrelated.py").exists()
    assert lab.config.worlds.max_steps == 30, "the environment's own step limit"
    for made in ("evaluator/env.py:Task", "candidate/env.py:TrainingEnv"):
        assert inspect(Env(id=made), root=lab.root).horizon == 30
    approve_lab(lab, by="tester")
    edit(lab, "envs/pay.py", "-abs", "+abs")
    with pytest.raises(Refused) as refused:
        try_attempt(lab, lab.root, LabIdea("pay for the wrong way"), say=print)
    assert [reason["code"] for reason in refused.value.reasons] == ["SCOPE"]
    assert "envs/pay.py" in [fact.file for fact in lab.study.task().facts]


def test_an_own_environment_that_does_not_run_in_its_lab_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = own_project(tmp_path / "project", has_data=False)
    (project / "goal.txt").write_text("6")
    text = (project / "envs/cart.py").read_text()
    (project / "envs/cart.py").write_text(text.replace('parent / "data"', "parents[1]"))
    monkeypatch.chdir(project)

    with pytest.raises(ConfigError, match="does not run in the lab") as refused:
        new_lab(tmp_path / "hop", LabWishes(env_id="envs/cart.py:Cart"))

    assert refused.value.hint
    assert "next to" in refused.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_the_step_limit_is_the_environments_own(tmp_path: Path) -> None:
    assert new_lab(tmp_path / "swing", LabWishes(env_id="Pendulum-v1")).config.worlds.max_steps == 200
    assert new_lab(tmp_path / "short", LabWishes(env_id="Pendulum-v1", max_steps=50)).config.worlds.max_steps == 50


WORLDS = '''\
"""Many counters in one batch."""
import gymnasium
import numpy


class Counters:
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, num_envs=1):
        self.steps = numpy.zeros(num_envs, int)

    def reset(self, seed=None):
        self.steps[:] = 0
        return {"obs": numpy.zeros((len(self.steps), 1), numpy.float32)}

    def step(self, actions):
        self.steps += 1
        done = self.steps >= 9
        self.steps[done] = 0
        obs = numpy.zeros((len(self.steps), 1), numpy.float32)
        return {"obs": obs}, actions.astype(float), done, {}
'''


def test_own_worlds_in_one_batch_become_a_lab_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counters.py").write_text(WORLDS)
    monkeypatch.chdir(tmp_path)
    lab = new_lab(tmp_path / "count", LabWishes(env_id="counters.py:Counters", max_steps=9))
    for made in ("evaluator/env.py:Task", "candidate/env.py:TrainingEnv"):
        assert str(inspect(Env(id=made), root=lab.root).action_space) == "Discrete(2)"
