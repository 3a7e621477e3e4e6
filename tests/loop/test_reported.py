"""A study that is measured by what its trainings log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop import mill
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow


def test_a_candidate_that_logs_no_metric_is_to_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, its decision ended with 6 for ever, and it was what came next."""
    monkeypatch.setattr(mill, "TRAIN", mill.TRAIN.replace('"loss": 1.0', '"x" if how == "mute" else "loss": 1.0'))
    settings = ("metric.name=loss", "metric.direction=minimize", "metric.source=training", "evaluation.level=reported")
    agent = Mill.built(tmp_path / "mill", *settings)
    agent.types("study", "baseline")
    identity = agent.proposes(how="mute")
    agent.trains(identity)
    told = agent.types("decide", identity)
    assert (told["verdict"], told["decision"]) == ("invalid", "debug")
    assert "logged no `loss`; it logged x" in told["objections"][0]
