from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.hosts.cli.main import call

OWN = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Bare(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self.state = self.np_random.uniform(-0.1, 0.1, 2).astype(np.float32)
        return self.state.copy(), {}

    def step(self, action):
        self.count += 1
        self.state = np.clip(self.state + np.float32([0.01, 0.02]) * (2 * int(action) - 1), -1, 1)
        return self.state.copy(), float(self.state[0]), False, self.count >= 20, {}


class Raises(Bare):
    def step(self, action):
        if self.count == 7:
            raise ValueError("the boss\\nis gone")
        return super().step(action)


class Hangs(Bare):
    def step(self, action):
        while self.count == 7:
            try:
                while True:
                    pass
            except Exception:
                pass
        return super().step(action)


class HangsAtOnce(Bare):
    def step(self, action):
        while True:
            pass


class NeverBegins(Bare):
    def reset(self, *, seed=None, options=None):
        while True:
            pass


class Prints(Bare):
    def step(self, action):
        print("step", action)
        return super().step(action)


class Exits(Bare):
    def reset(self, *, seed=None, options=None):
        raise SystemExit(3)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    (tmp_path / "rlx.toml").write_text("")
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    call(["check", "env", *words, "--json"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def findings(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    document = answer(capsys, *words)
    return {one["rule"]: one["claim"] for one in document["findings"]}  # type: ignore[attr-defined]


def test_says_that_a_sound_environment_is_sound(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["check", "env", "own.py:Bare"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("own.py:Bare: no defect found")
    assert shown.splitlines()[-1] == "next: rlx review own.py:Bare"


def test_what_an_environment_raises_is_a_finding_with_its_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["check", "env", "own.py:Raises"]) == 1
    assert "own.py:26: ValueError: the boss is gone" in capsys.readouterr().out


def test_a_step_that_does_not_return_is_a_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "step had not returned after" in findings(capsys, "own.py:Hangs", "--seconds", "2")["env_hangs"]


@pytest.mark.parametrize(("name", "call_name"), [("HangsAtOnce", "step"), ("NeverBegins", "reset")])
def test_a_first_call_that_does_not_return_is_a_finding(
    project: Path, capsys: pytest.CaptureFixture[str], name: str, call_name: str
) -> None:
    found = findings(capsys, f"own.py:{name}", "--seconds", "1")
    assert f"{call_name} had not returned after" in found["env_hangs"]


def test_what_an_environment_prints_stays_out_of_the_answer(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "first 'step " in findings(capsys, "own.py:Prints")["prints"]


def test_an_environment_that_exits_does_not_end_the_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "SystemExit: 3" in findings(capsys, "own.py:Exits")["env_raises"]


def test_a_config_brings_its_kwargs_and_wrappers(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "lake.yaml").write_text(
        "env: {id: FrozenLake-v1, kwargs: {map_name: 8x8}, wrappers: [one_hot]}\nalgo: {name: ppo}\n"
    )
    facts = answer(capsys, "lake.yaml")["facts"]
    assert facts["observation"].startswith("Box(0, 1, (64,)")  # type: ignore[index]


def test_a_run_is_checked_in_the_world_it_was_trained_in(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "lake.yaml").write_text(
        "run_name: lake\nenv: {id: FrozenLake-v1, wrappers: [one_hot], num_envs: 2}\nbackend: fast\n"
        "algo: {name: ppo, total_timesteps: 64, rollout_steps: 16, batch_size: 16, update_epochs: 1}\n"
    )
    subprocess.run([sys.executable, "-m", "rlx", "train", "lake.yaml"], check=True, capture_output=True)
    document = answer(capsys, "lake_001")
    assert document["facts"]["observation"].startswith("Box(0, 1, (16,)")  # type: ignore[index]
    assert call(["check", "env", "lake_001"]) == 0
    assert capsys.readouterr().out.endswith("next: rlx diagnose lake_001\n")


def test_a_catalog_config_can_be_checked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "catalog:cartpole")
    assert document["is_sound"] is True
    assert document["checked"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["CartPol-v1"], 3),
        (["own.py:Bar"], 3),
        (["gone.yaml"], 3),
        (["CartPole-v1", "--seconds", "soon"], 2),
        (["CartPole-v1", "--seconds", "0"], 2),
        (["CartPole-v1", "-s", "env.num_envs=2"], 2),
    ],
)
def test_bad_input_has_the_right_exit_code(
    words: list[str], code: int, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["check", "env", *words]) == code
    assert "hint:" in capsys.readouterr().err


UNTRAINABLE = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Base(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    seen = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.seen, {}

    def step(self, action):
        self.steps += 1
        return self.seen, self.np_random.random(), False, self.steps >= 9, {}


class TupleActions(Base):
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,), np.float32)))


class Words(Base):
    observation_space = spaces.Text(5)
    seen = "ab"


class Endless(Base):
    action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
"""


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("TupleActions", "cannot act in Tuple action spaces"),
        ("Words", "cannot read Text observations"),
        ("Endless", "has no finite bounds"),
    ],
)
def test_spaces_that_cannot_be_trained_are_a_defect(
    project: Path, capsys: pytest.CaptureFixture[str], name: str, claim: str
) -> None:
    (project / "spaces.py").write_text(UNTRAINABLE)
    found = findings(capsys, f"spaces.py:{name}", "--seconds", "1")
    assert claim in found["cannot_train"]
    assert "vector_differs" not in found


def test_a_space_that_can_be_trained_is_not_called_untrainable(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "spaces.py").write_text(UNTRAINABLE)
    assert "cannot_train" not in findings(capsys, "spaces.py:Base", "--seconds", "1")
