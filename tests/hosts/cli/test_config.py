"""`rlx config show|check|diff|schema` as they are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlx.config.load import dump, parse
from rlx.hosts.cli.main import call
from rlx.runs import store

CONFIG = "env: {id: CartPole-v1, num_envs: 2}\nalgo:\n  rollout_steps: 64\n  total_timesteps: 1024\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text(CONFIG)
    return tmp_path


def a_run(root: Path, **changes: object) -> str:
    experiment = parse({**yaml.safe_load(CONFIG), **changes})
    return store.create(root, name="cartpole_ppo", snapshot=dump(experiment), metadata={}, seeds=[0]).name


def test_show_prints_a_config_that_can_be_trained_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "show", "configs/a.yaml", "-s", "algo.gamma=0.5"]) == 0
    shown = capsys.readouterr().out
    assert "  gamma: 0.5\n" in shown
    assert parse(yaml.safe_load(shown)).algo.gamma == 0.5


def test_show_as_json_has_the_hashes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "show", "configs/a.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["config"]["algo"]["batch_size"] == 64
    assert len(document["config_hash"]) == len(document["group_hash"]) == 64


@pytest.mark.parametrize("reference", ["cartpole_ppo_001", "runs/cartpole_ppo_001", "cartpole"])
def test_show_takes_a_run(root: Path, capsys: pytest.CaptureFixture[str], reference: str) -> None:
    a_run(root, seed=7)
    assert call(["config", "show", reference]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["seed"] == 7


def test_show_takes_a_catalog_config_and_a_device_that_is_elsewhere(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["config", "show", "catalog:cartpole", "-s", "device=cuda"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["device"] == "cuda"


@pytest.mark.parametrize(
    ("argv", "code", "message", "hint"),
    [
        (["show", "configs/b.yaml"], 3, "no config file `configs/b.yaml`", "there are: configs/a.yaml"),
        (["show", "a.yml"], 3, "no config file `a.yml`", "did you mean `configs/a.yaml`?"),
        (["show", "nope_001"], 3, "no config file and no run `nope_001`", "rlx train CONFIG"),
        (["show", "configs/a.yaml", "-s", "algo.gama=1"], 2, "-s algo.gama=1: unknown key `algo.gama`", "`algo.gamma`"),
        (["show", "configs/a.yaml", "-s", "gamma"], 2, "-s gamma: an override is `key=value`", "-s algo"),
        (["diff", "configs/a.yaml", "catalog:cartpol"], 3, "no catalog config `cartpol`", "`catalog:cartpole`"),
        (["shwo"], 2, "invalid choice", "did you mean `show`?"),
        ([], 2, "required", "--help"),
    ],
)
def test_mistakes_are_one_line_with_a_hint(
    root: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, message: str, hint: str
) -> None:
    assert call(["config", *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    error, _, told = err.partition("\n\nhint: ")
    assert message in error
    assert len(error.splitlines()) == 1
    assert hint in told


def test_check_says_that_a_config_is_fine(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", "configs/a.yaml", "catalog:pendulum", "-s", "backend=sb3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "configs/a.yaml: fine",
        "  backend sb3: as the config says",
        "catalog:pendulum: fine",
        "  backend sb3: as the config says",
    ]


def test_check_and_show_say_what_auto_would_choose_and_why(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", "configs/a.yaml", "-s", "algo.name=a2c"]) == 0
    assert "  backend sb3: the fast backend trains ppo and maskable_ppo, not `a2c`" in capsys.readouterr().out
    assert call(["config", "show", "configs/a.yaml", "-s", "algo.name=a2c"]) == 0
    shown = capsys.readouterr().out
    assert "backend: auto\n" in shown
    assert shown.endswith("# backend sb3: the fast backend trains ppo and maskable_ppo, not `a2c`\n")


def test_show_leaves_the_choice_open_where_the_environment_cannot_be_made(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["config", "show", "configs/a.yaml", "-s", "env.id=Nowhere-v1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["backend"] == "auto"
    assert "Nowhere-v1" in document["reason"]


def test_auto_and_what_it_stands_for_do_not_differ(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = a_run(root, backend="sb3", algo={"name": "a2c"})
    assert call(["config", "show", "configs/a.yaml", "-s", "algo.name=a2c"]) == 0
    (root / "configs" / "a2c.yaml").write_text(capsys.readouterr().out)
    call(["config", "diff", "configs/a2c.yaml", chosen, "--json"])
    assert "backend" not in {row["key"] for row in json.loads(capsys.readouterr().out)["changes"]}
    call(["config", "diff", "configs/a.yaml", chosen, "--json"])
    assert "algo.name" in {row["key"] for row in json.loads(capsys.readouterr().out)["changes"]}


def test_check_tells_every_problem_of_every_config(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "configs" / "b.yaml").write_text("env: {id: A}\nsed: 1\nalgo: {gamma: 7}\n")
    assert call(["config", "check", "configs/b.yaml", "configs/a.yaml", "nope.yaml", "--no-env"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "error: configs/b.yaml:2: unknown key `sed`",
        "  hint: did you mean `seed`?",
        "error: configs/b.yaml:3: `algo.gamma` is 7; expected a number from 0 to 1",
        "  hint: `algo.gamma`: discount of future reward",
        "configs/a.yaml: fine",
        "error: no config file `nope.yaml`",
        "  hint: there are: configs/a.yaml, configs/b.yaml",
    ]


def test_check_as_json_says_where(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "configs" / "b.yaml").write_text("env: {id: A}\nsed: 1\n")
    assert call(["config", "check", "configs/b.yaml", "--json"]) == 2
    (entry,) = json.loads(capsys.readouterr().out)["configs"]
    assert entry["is_fine"] is False
    assert entry["problems"] == [
        {
            "place": "configs/b.yaml:2",
            "key": "sed",
            "message": "configs/b.yaml:2: unknown key `sed`",
            "hint": "did you mean `seed`?",
            "is_error": True,
        }
    ]


def test_check_tells_notes_and_stays_fine(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", "configs/a.yaml", "-s", "eval.every=5000", "--no-env"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("note: -s eval.every=5000: `eval.every` is 5000, longer than the run (1024 steps)")
    assert out.splitlines()[-1] == "configs/a.yaml: fine"


@pytest.mark.parametrize(
    ("override", "code", "message"),
    [
        ("env.id=CartPol-v1", 3, "no environment `CartPol-v1`"),
        ("algo.name=sac", 2, "-s algo.name=sac: "),
        ("device=mps", 2, "device `mps` is not on this machine"),
    ],
)
def test_check_asks_what_training_would_ask(
    root: Path, capsys: pytest.CaptureFixture[str], override: str, code: int, message: str
) -> None:
    assert call(["config", "check", "configs/a.yaml", "-s", override]) == code
    assert f"error: {message}" in capsys.readouterr().out.replace(f"-s {override}: device", "device")


def test_check_can_leave_the_environment_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", "configs/a.yaml", "-s", "env.id=Nope-v0", "--no-env"]) == 0


def test_check_finds_the_projects_environment_from_another_folder(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (root / "mine.py").write_text("from gymnasium.envs.classic_control import CartPoleEnv as Mine\n")
    (root / "configs" / "b.yaml").write_text("env: {id: 'mine.py:Mine'}\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert call(["config", "check", str(root / "configs" / "b.yaml")]) == 0


def test_diff_prints_the_keys_that_differ(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "configs" / "b.yaml").write_text("extends: a.yaml\nalgo: {gamma: 0.9, target_kl: 0.1}\n")
    assert call(["config", "diff", "configs/a.yaml", "configs/b.yaml"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["key", "configs/a.yaml", "configs/b.yaml"],
        ["algo.gamma", "0.99", "0.9"],
        ["algo.target_kl", "–", "0.1"],
    ]


def test_diff_takes_runs_and_gives_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(root, seed=7, policy={"hidden_sizes": [8]})
    assert call(["config", "diff", "configs/a.yaml", "cartpole_ppo_001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == [
        {"key": "policy.hidden_sizes", "before": [64, 64], "after": [8]},
        {"key": "seed", "before": 0, "after": 7},
    ]


def test_diff_of_equal_configs_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "diff", "configs/a.yaml", a_run(root)]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_schema_prints_json_for_editors(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "rlx experiment"


def test_a_file_name_that_is_not_utf_8_is_told_in_one_line(root: Path) -> None:
    name = os.fsencode(root) + b"/caf\xe9.yaml"
    Path(os.fsdecode(name)).write_text("sed: 1\n")
    for extra in ([], ["--json"]):
        argv = [sys.executable, "-m", "rlx", "config", "check", name, *extra]
        done = subprocess.run(argv, capture_output=True, cwd=root)
        assert done.returncode == 2
        assert rb"caf\xe9.yaml" in done.stdout.replace(rb"\\", b"\\")
        assert b"Traceback" not in done.stderr
