"""A checkpoint from elsewhere is data: what it names as code is refused before anything is imported or called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.errors import CheckpointInvalid, Refused
from rlx.evaluate.measure import protocol_for
from rlx.evaluate.trained_policy import load
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run_reference import resolve
from tests.evaluate.linear import GOOD, config, register, write_checkpoint


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.setenv("RLX_ROOT", str(root))
    return root


def resealed(path: Path, **changes: object) -> Path:
    """Change a checkpoint's config and seal its manifest again, as anyone could."""
    manifest = json.loads((path / checkpoints.MANIFEST).read_text())
    manifest.pop("digest")
    manifest["config"].update(changes)
    (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(manifest))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"env": {"id": "os:system", "kwargs": {"command": "touch PWNED"}}},
        {"env": {"id": "CartPole-v1", "wrappers": [{"name": "subprocess:Popen", "kwargs": {}}]}},
        {"policy": {"type": "evil.py:Policy"}},
        {"algo": {"name": "evil.py:Algorithm", "total_timesteps": 10}},
    ],
)
def test_code_named_by_a_foreign_checkpoint_is_never_run(
    here: Path, tmp_path: Path, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('PWNED', 'w')\n")
    path = resealed(write_checkpoint(tmp_path / "mail", "best", GOOD, plain=config("x"), step=1), **changes)
    with pytest.raises(CheckpointInvalid, match="names code to run"):
        load(path)
    with pytest.raises(CheckpointInvalid, match="names code to run"):
        protocol_for(resolve(str(path), here), root=here)
    assert not (tmp_path / "PWNED").exists()


def test_a_foreign_checkpoint_of_a_registered_env_loads(here: Path, tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "mail", "best", GOOD, plain=config("x"), step=1)
    assert load(str(path)).predict([[0.0, 0.0, 1.0, 0.0]]).tolist() == [1]


def test_neither_python_itself_nor_a_run_folder_is_a_place_for_environments(here: Path) -> None:
    from rlx.config.schema import Env
    from rlx.envs.make import make_env

    with pytest.raises(Refused, match="Python's own module"):
        make_env(Env(id="os:system", kwargs={"command": "touch PWNED"}), root=here)
    (here / "runs" / "x_001").mkdir(parents=True)
    (here / "runs" / "x_001" / "evil.py").write_text("open('PWNED', 'w')\n")
    with pytest.raises(Refused, match="inside a run folder"):
        make_env(Env(id="runs/x_001/evil.py:E"), root=here)


def test_a_checkpoint_is_loaded_by_run_and_name(here: Path) -> None:
    from tests.evaluate.linear import make_run

    make_run(here, "some", {0: GOOD})
    assert load("some_001:best").predict([[0.0, 0.0, 1.0, 0.0]]).tolist() == [1]
    assert load("some_001").predict([[0.0, 0.0, -1.0, 0.0]]).tolist() == [0]
