"""What proves a training, and which runs need no proof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.launch.study_jobs import training_proof
from rlx.launch.study_jobs.training_proof import TrainingProof
from rlx.runs.run import Run


def completed(root: Path, step: int, backend: str = "fast") -> Run:
    """Return a run of 256 planned steps whose only seed says that it completed after so many."""
    folder = root / "runs" / "pole_001"
    (folder / "seed_0").mkdir(parents=True)
    text = f"backend: {backend}\nenv: {{id: CartPole-v1}}\nalgo: {{name: ppo, total_timesteps: 256}}\n"
    (folder / "config_snapshot.yaml").write_text(text)
    (folder / "metadata.json").write_text(json.dumps({"schema": 1, "name": "pole_001", "seeds": [0]}))
    rows = [{"event": "started", "time": 1.0}, {"event": "completed", "time": 2.0, "step": step}]
    (folder / "seed_0" / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Run(folder)


@pytest.mark.parametrize(("step", "is_short"), [(256, False), (512, False), (64, True)])
def test_a_seed_that_took_fewer_steps_than_planned_is_no_training(tmp_path: Path, step: int, is_short: bool) -> None:
    says = ["pole_001: seed 0 took 64 of 256 environment steps"]
    assert training_proof.problems(completed(tmp_path, step), must_move=True) == (says if is_short else [])


def test_a_users_own_program_counts_its_own_steps(tmp_path: Path) -> None:
    assert training_proof.problems(completed(tmp_path, 64, backend="command"), must_move=True) == []


def test_only_code_that_a_person_approved_may_leave_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = TrainingProof(seed=0, steps=256, planned=256, seconds=1.0, has_moved=False)
    monkeypatch.setattr(training_proof, "run_proofs", lambda _: iter([still]))
    run = completed(tmp_path, 256)
    assert training_proof.problems(run, must_move=False) == []
    assert len(training_proof.problems(run, must_move=True)) == 1


@pytest.mark.parametrize(("seconds", "is_plausible"), [(95e-6, False), (0.0, False), (0.5, True)])
def test_a_training_that_took_no_time_is_no_training(seconds: float, is_plausible: bool) -> None:
    proof = TrainingProof(seed=0, steps=2000, planned=2000, seconds=seconds, has_moved=True)
    assert (proof.problems == []) == is_plausible
