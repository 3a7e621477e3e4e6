"""A checkpoint is copied and hashed at once, and never through a link."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rlx.errors import CheckpointInvalid, NotFound
from rlx.evaluate.sealed import stage_checkpoint
from rlx.files import sha256
from rlx.runs.checkpoints import foreign_checkpoint
from tests.evaluate.trained import Trained


def test_a_file_is_known_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"weights")
    assert stage_checkpoint.stage(tmp_path / "model.pt", tmp_path / "copy") == sha256(b"weights")
    assert stage_checkpoint.checkpoint_sha256(tmp_path / "model.pt") == sha256(b"weights")
    assert (tmp_path / "copy").read_bytes() == b"weights"


def test_a_folder_is_known_by_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "model" / "deep").mkdir(parents=True)
    (tmp_path / "model" / "a").write_text("1")
    (tmp_path / "model" / "deep" / "b").write_text("2")
    (tmp_path / "model" / "deep.b").write_text("2")
    before = stage_checkpoint.checkpoint_sha256(tmp_path / "model")
    assert before == foreign_checkpoint.sha256(tmp_path / "model")
    assert stage_checkpoint.stage(tmp_path / "model", tmp_path / "copy") == before
    assert stage_checkpoint.checkpoint_sha256(tmp_path / "copy") == before
    (tmp_path / "model" / "deep" / "b").write_text("3")
    assert stage_checkpoint.checkpoint_sha256(tmp_path / "model") != before


def test_rlx_checkpoints_are_known_by_all_that_decides_how_they_act(trained: Trained, tmp_path: Path) -> None:
    path = trained.checkpoint(0)
    before = stage_checkpoint.stage(path, tmp_path / "copy")
    assert stage_checkpoint.checkpoint_sha256(path) == stage_checkpoint.checkpoint_sha256(tmp_path / "copy") == before
    for member in ("manifest.json", "policy.safetensors", "state.json", "state.safetensors"):
        other = Path(shutil.copytree(path, tmp_path / member))
        (other / member).write_bytes((other / member).read_bytes() + b" ")
        assert stage_checkpoint.checkpoint_sha256(other) != before
    (tmp_path / "copy" / "optimizer.safetensors").write_bytes(b"other")
    assert stage_checkpoint.checkpoint_sha256(tmp_path / "copy") == before


def test_links_are_refused_wherever_they_stand_in_a_run(tmp_path: Path) -> None:
    other = tmp_path / "runs" / "other" / "seed_0"
    other.mkdir(parents=True)
    (other / "model.pt").write_bytes(b"weights")
    run = tmp_path / "runs" / "mine"
    run.mkdir()
    (run / "model.pt").symlink_to(other / "model.pt")
    (run / "seed_0").symlink_to(other)
    (run / "folder").mkdir()
    (run / "folder" / "model.pt").symlink_to(other / "model.pt")
    for path in (run / "model.pt", run / "seed_0" / "model.pt", run / "folder"):
        with pytest.raises(CheckpointInvalid):
            stage_checkpoint.checkpoint_sha256(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.pt")
    with pytest.raises(CheckpointInvalid, match="not a file"):
        stage_checkpoint.checkpoint_sha256(tmp_path / "model.pt")


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        stage_checkpoint.checkpoint_sha256(tmp_path / "model.pt")
