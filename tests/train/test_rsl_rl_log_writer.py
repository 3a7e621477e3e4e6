"""rsl_rl's plug-in writes a run: rsl_rl sees one of its own log writers, and every iteration becomes a row."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType

import pytest

from rlx.runs.run import Run
from rlx.train.rsl_rl_log_writer import RslRlLogWriter


class LogWriter(ABC):
    """As rsl_rl's: it saves models to and stops only instances of this class."""

    @abstractmethod
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...


def test_a_training_of_two_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("rsl_rl.utils.log_writer")
    module.LogWriter = LogWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rsl_rl.utils.log_writer", module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rlx.toml").touch()
    writer = RslRlLogWriter(log_dir="logs/x", run_name="walk", seed=3, steps_per_iteration=24)
    assert isinstance(writer, LogWriter)
    for iteration in range(2):
        writer.add_scalar("Train/mean_reward", iteration + 0.5, iteration)
        writer.add_scalar("Train/mean_reward/time", 9.0, 7)
        writer.add_scalar("Episode_Reward/effort", -0.1, iteration)
    model = tmp_path / "model_1.pt"
    model.write_bytes(b"weights")
    writer.save_model(str(model), 1)
    writer.stop()
    run = Run(tmp_path / "runs" / "walk_001")
    assert run.status == "completed"
    rows = run.seeds[0].rows
    assert [(row["step"], row["rollout/return_mean"], row["reward/term/effort"]) for row in rows] == [
        (24, 0.5, -0.1),
        (48, 1.5, -0.1),
    ]
    assert "Train/mean_reward/time" not in rows[0]
