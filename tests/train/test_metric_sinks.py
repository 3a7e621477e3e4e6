"""Other places metrics go to: TensorBoard gets every row, a broken sink never ends a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.schema import Log
from rlx.train.metric_sinks import Sinks


def test_tensorboard_gets_every_row(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sinks = Sinks(Log(tensorboard=True), folder=tmp_path, name="x")
    for step in range(5):
        sinks.log(step, {"loss": step / 2})
    sinks.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(step, step / 2) for step in range(5)]


def test_a_sink_that_cannot_open_is_said_once_and_training_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tensorboard").write_text("in the way")
    sinks = Sinks(Log(tensorboard=True), folder=tmp_path, name="x")
    sinks.log(1, {"loss": 1.0})
    sinks.close()
    assert capfd.readouterr().out.count("log sink dropped") == 1


def test_no_sink_means_no_thread(tmp_path: Path) -> None:
    sinks = Sinks(Log(), folder=tmp_path, name="x")
    sinks.log(1, {"loss": 1.0})
    sinks.close()
    assert list(tmp_path.iterdir()) == []
