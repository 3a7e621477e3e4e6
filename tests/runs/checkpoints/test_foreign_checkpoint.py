from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import CheckpointInvalid
from rlx.runs.checkpoints import checkpoint, foreign_checkpoint
from rlx.runs.run import Seed


def test_a_file_is_kept_with_its_hash_and_replaced_whole(tmp_path: Path) -> None:
    source = tmp_path / "policy.pt"
    for step, content in ((1, b"one"), (2, b"two")):
        source.write_bytes(content)
        kept = foreign_checkpoint.keep(tmp_path / "checkpoints", source, step=step)
        assert foreign_checkpoint.find(tmp_path / "checkpoints") == kept
        assert kept.path.read_bytes() == content
    assert checkpoint.names(tmp_path / "checkpoints") == ["latest_foreign"]
    assert checkpoint.newest(tmp_path / "checkpoints") is None
    assert foreign_checkpoint.weights_sha256(Seed(0, tmp_path)) == kept.sha256


def test_a_folder_is_kept_and_its_hash_knows_names_and_contents(tmp_path: Path) -> None:
    source = tmp_path / "model"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "a").write_bytes(b"1")
    first = foreign_checkpoint.keep(tmp_path / "checkpoints", source, step=1).sha256
    (source / "inner" / "a").rename(source / "inner" / "b")
    assert foreign_checkpoint.keep(tmp_path / "checkpoints", source, step=1).sha256 != first


def test_what_was_altered_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b"a checkpoint that is called so")
    kept = foreign_checkpoint.keep(tmp_path / "checkpoints", tmp_path / "manifest.json", step=1)
    kept.path.write_bytes(b"altered")
    with pytest.raises(CheckpointInvalid, match="was altered"):
        foreign_checkpoint.weights_sha256(Seed(0, tmp_path))
    (kept.path.parent / "manifest.json").write_text('{"file": "../../secret", "step": 1, "sha256": "0"}')
    with pytest.raises(CheckpointInvalid, match="was altered"):
        foreign_checkpoint.find(tmp_path / "checkpoints")
    (kept.path.parent / "manifest.json").write_text("{}")
    with pytest.raises(CheckpointInvalid, match="no usable manifest"):
        foreign_checkpoint.find(tmp_path / "checkpoints")


def test_a_seed_without_a_checkpoint_has_no_hash(tmp_path: Path) -> None:
    assert foreign_checkpoint.weights_sha256(Seed(0, tmp_path)) is None
