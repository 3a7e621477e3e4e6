"""What makes evidence invalid, told of runs as far as it is about their lengths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.loop.study.evidence_checks import _unequal_lengths
from rlx.runs.run import Run


def trained(root: Path, name: str, step: int) -> Run:
    """Return a run of 256 planned steps whose only seed says that it took so many."""
    folder = root / "runs" / name
    (folder / "seed_0").mkdir(parents=True)
    (folder / "config_snapshot.yaml").write_text("env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 256}\n")
    (folder / "metadata.json").write_text(json.dumps({"schema": 1, "name": name, "seeds": [0]}))
    said = {"event": "completed", "time": 1.0, "step": step}
    (folder / "seed_0" / "events.jsonl").write_text(json.dumps(said) + "\n")
    return Run(folder)


@pytest.mark.parametrize(("step", "is_longer"), [(256, False), (280, False), (8192, True), (64, False)])
def test_a_last_round_that_makes_a_training_longer_is_an_objection(tmp_path: Path, step: int, is_longer: bool) -> None:
    runs = {"baseline": [trained(tmp_path, "base_001", 256)], "c001": [trained(tmp_path, "c_001", step)]}
    says = "c001 was trained for 8,192 steps, baseline for 256: its last rollout was too long"
    assert list(_unequal_lengths(runs)) == ([says] if is_longer else [])
