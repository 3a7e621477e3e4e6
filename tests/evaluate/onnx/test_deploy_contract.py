"""An exported ONNX policy acts as the trained one does, and a wrong order of observations is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx import files
from rlx.errors import NotFound, UsageError
from rlx.evaluate.onnx.deploy_contract import DeployWishes, check_path, contract_path, export_onnx, verify
from rlx.launch import launch
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Checkpoint

pytest.importorskip("onnxruntime")
NAMES = ("cosine", "sine", "speed")


def trained(root: Path, monkeypatch: pytest.MonkeyPatch, **config: Any) -> Checkpoint:
    monkeypatch.chdir(root)
    (root / "rlx.toml").touch()
    run = launch.run({"run_name": "deploy", **config}, seeds=1)
    return checkpoints.read(run.path / "seed_0" / "checkpoints" / "latest", with_replay=False)


PENDULUM = {"id": "Pendulum-v1", "num_envs": 2, "normalize": {"obs": True}}
PPO = {"name": "ppo", "total_timesteps": 256, "rollout_steps": 64, "batch_size": 64}


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    with pytest.MonkeyPatch.context() as patch:
        return trained(tmp_path_factory.mktemp("fast"), patch, backend="fast", env=PENDULUM, algo=PPO)


def test_a_fast_policy_with_normalisation(pendulum: Checkpoint, tmp_path: Path) -> None:
    proof = export_onnx(pendulum, tmp_path / "p.onnx", DeployWishes(NAMES, 20.0, "deploy_001"))
    assert proof["problems"] == []
    assert proof["rows"] == 1000
    assert proof["largest_difference"] <= 1e-5
    contract = json.loads(contract_path(tmp_path / "p.onnx").read_text())
    (part,) = contract["observation"]
    assert part["order"] == list(NAMES)
    assert len(part["scale"]["mean"]) == 3
    assert contract["control_hz"] == 20.0
    assert contract["action"]["mapping"] == "clipped"
    assert contract["checkpoint_sha256"] == pendulum.identity


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "algo", "mapping"),
    [
        (PENDULUM, PPO, "clipped"),
        ({"id": "Pendulum-v1", "normalize": {"obs": True}}, {"name": "sac", "total_timesteps": 120}, "squashed"),
        ({"id": "CartPole-v1"}, {"name": "dqn", "total_timesteps": 120}, "choices"),
        ({"id": "CartPole-v1"}, {"name": "qrdqn", "total_timesteps": 120}, "quantiles"),
    ],
)
def test_policies_of_sb3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, Any], algo: dict[str, Any], mapping: str
) -> None:
    proof = export_onnx(
        trained(tmp_path, monkeypatch, backend="sb3", env=env, algo=algo), tmp_path / "p.onnx", DeployWishes()
    )
    assert proof["problems"] == []
    assert proof["largest_difference"] <= 1e-5
    assert json.loads(contract_path(tmp_path / "p.onnx").read_text())["action"]["mapping"] == mapping


def recorded(model: Path, columns: list[int], names: tuple[str, ...] | None = None) -> Path:
    """Write the stored observations with their columns in another order, as a robot may send them."""
    with np.load(check_path(model)) as arrays:
        content = {"observation": arrays["observation/observation"][:, columns], "action": arrays["action"]}
    if names:
        content["names"] = np.array([names[column] for column in columns])
    path = model.with_name("robot.npz")
    np.savez(path, **content)
    return path


def test_a_swapped_order_of_observations_fails(pendulum: Checkpoint, tmp_path: Path) -> None:
    model = tmp_path / "p.onnx"
    export_onnx(pendulum, model, DeployWishes(NAMES))
    assert verify(model, recorded(model, [0, 1, 2], NAMES))["is_equal"]
    (problem,) = verify(model, recorded(model, [1, 0, 2]))["problems"]
    assert "actions differ" in problem
    order, _ = verify(model, recorded(model, [0, 2, 1], NAMES))["problems"]
    assert order == "the observations are in another order: number 1 is `speed`, not `sine`"


def test_a_changed_contract_or_model_fails(pendulum: Checkpoint, tmp_path: Path) -> None:
    model = tmp_path / "p.onnx"
    export_onnx(pendulum, model, DeployWishes(NAMES))
    contract = files.read_json(contract_path(model))
    order = contract["observation"][0]["order"]
    order[0], order[1] = order[1], order[0]
    files.write_json(contract_path(model), contract)
    assert verify(model)["problems"] == ["the contract is not the one inside the model: `observation` differ"]
    model.write_bytes(model.read_bytes() + b"\0")
    assert verify(model)["problems"] == ["the model is not the one that the contract names (sha256)"]


def test_bad_input_is_one_line(pendulum: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 different names, but the observation has 3 numbers"):
        export_onnx(pendulum, tmp_path / "p.onnx", DeployWishes(("a", "b")))
    with pytest.raises(NotFound, match="no file"):
        verify(tmp_path / "absent.onnx")
    export_onnx(pendulum, tmp_path / "p.onnx", DeployWishes())
    (tmp_path / "log.npz").write_bytes(b"no archive")
    with pytest.raises(NotFound, match="has no observations that can be compared"):
        verify(tmp_path / "p.onnx", tmp_path / "log.npz")
